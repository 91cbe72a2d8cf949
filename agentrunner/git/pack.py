"""Writes new objects into a private store, in git's formats, without git.

Git's own `unpack-objects` would mark objects of the user's store as fresh when our store borrows
from it, and `index-pack` reads everything once more. Standard library only, like everything that
`take` needs.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
import zlib
from pathlib import Path
from typing import IO, Self

from agentrunner.git.process import Git

LOOSE_OBJECTS, LOOSE_BYTES = 200, 4 << 20
"""Fewer and smaller new objects than this become loose files, more become a pack."""

CHUNK = 1 << 20
SAMPLE = 1 << 16
DENSE = 0.95
"""Content whose sample shrinks to no less than this share is stored uncompressed, to save time."""

KINDS = {"tree": 2, "blob": 3}


class SizeChanged(Exception):
    """A file is shorter or longer than it was when it was opened."""


def object_name(kind: bytes, data: bytes) -> str:
    """Return git's name of an object."""
    return hashlib.sha1(b"%s %d\0" % (kind, len(data)) + data).hexdigest()


def blob_name(data: bytes) -> str:
    """Return git's name of a file's content."""
    return object_name(b"blob", data)


class Pack:
    """New objects for the store: in memory while they are few, then in a file in `folder`."""

    def __init__(self, folder: Path, known: set[str]) -> None:
        self.folder = folder
        self.known = known
        """Names of objects that the store already has."""
        self.count = 0
        self._loose: list[tuple[str, str, bytes]] = []
        self._loose_bytes = 0
        self._file: IO[bytes] | None = None
        self._index: list[tuple[bytes, int, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            Path(self._file.name).unlink(missing_ok=True)

    def add(self, kind: str, data: bytes) -> str:
        """Add an object unless it is known; return its name."""
        name = object_name(kind.encode(), data)
        if name not in self.known:
            self.known.add(name)
            self.count += 1
            if self._file is None and self._fits(len(data)):
                self._loose.append((name, kind, data))
                self._loose_bytes += len(data)
            else:
                self._spill()
                self._write(name, kind, data)
        return name

    def add_stream(self, source: IO[bytes], size: int) -> str:
        """Add a blob of `size` bytes, piece by piece; raises SizeChanged if the size differs."""
        self._spill()
        file = self._file
        assert file is not None
        start = file.tell()
        digest = hashlib.sha1(b"blob %d\0" % size)
        header = _header(KINDS["blob"], size)
        crc = zlib.crc32(header)
        file.write(header)
        packer = None
        remaining = size
        while piece := source.read(min(CHUNK, remaining + 1)):
            remaining -= len(piece)
            if remaining < 0:
                break
            digest.update(piece)
            packer = packer or zlib.compressobj(_level(piece))
            packed = packer.compress(piece)
            crc = zlib.crc32(packed, crc)
            file.write(packed)
        if remaining:
            self._truncate_to(start)
            raise SizeChanged
        tail = (packer or zlib.compressobj(1)).flush()
        crc = zlib.crc32(tail, crc)
        file.write(tail)
        name = digest.hexdigest()
        if name in self.known:
            self._truncate_to(start)
        else:
            self.known.add(name)
            self.count += 1
            self._index.append((digest.digest(), crc, start))
        return name

    def store(self, git: Git) -> None:
        """Put everything into the store, all at once or not at all."""
        objects = git.git_dir / "objects"
        if self._file is None:
            for name, kind, data in self._loose:
                _write_loose(objects, name, b"%s %d\0" % (kind.encode(), len(data)) + data)
            return
        if not self._index:
            return
        checksum = self._finish(self._file)
        place = objects / "pack"
        place.mkdir(mode=0o700, exist_ok=True)
        target = place / f"pack-{checksum.hex()}"
        index = Path(f"{self._file.name}.idx")
        try:
            with index.open("xb") as file:
                file.write(_index_of(self._index, checksum))
                _make_durable(file)
            Path(self._file.name).replace(target.with_suffix(".pack"))
            index.replace(target.with_suffix(".idx"))
        finally:
            index.unlink(missing_ok=True)

    def _fits(self, size: int) -> bool:
        return len(self._loose) + 1 < LOOSE_OBJECTS and self._loose_bytes + size <= LOOSE_BYTES

    def _spill(self) -> None:
        """From now on write everything to a file."""
        if self._file is None:
            # Named, so that it can be renamed into the store; otherwise `__exit__` removes it.
            self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115  (ours closes it)
                prefix="agentrunner.pack.", dir=self.folder, delete=False
            )
            self._file.write(b"PACK" + struct.pack(">II", 2, 0))
            for name, kind, data in self._loose:
                self._write(name, kind, data)
            self._loose = []

    def _write(self, name: str, kind: str, data: bytes) -> None:
        file = self._file
        assert file is not None
        entry = _header(KINDS[kind], len(data)) + zlib.compress(data, _level(data))
        self._index.append((bytes.fromhex(name), zlib.crc32(entry), file.tell()))
        file.write(entry)

    def _truncate_to(self, start: int) -> None:
        assert self._file is not None
        self._file.seek(start)
        self._file.truncate()

    def _finish(self, file: IO[bytes]) -> bytes:
        """Write header and checksum; return the checksum."""
        file.seek(0)
        file.write(b"PACK" + struct.pack(">II", 2, len(self._index)))
        file.seek(0)
        digest = hashlib.sha1()
        while chunk := file.read(CHUNK):
            digest.update(chunk)
        file.write(digest.digest())
        _make_durable(file)
        return digest.digest()


def _level(data: bytes) -> int:
    if len(data) < SAMPLE:
        return 1
    return 1 if len(zlib.compress(data[:SAMPLE], 1)) < DENSE * SAMPLE else 0


def _header(kind: int, size: int) -> bytes:
    out = bytearray()
    byte, size = kind << 4 | size & 15, size >> 4
    while size:
        out.append(byte | 128)
        byte, size = size & 127, size >> 7
    out.append(byte)
    return bytes(out)


def _index_of(entries: list[tuple[bytes, int, int]], checksum: bytes) -> bytes:
    """Return version 2 of git's pack index: fan-out, names, checksums, offsets."""
    entries = sorted(entries)
    fan, at = [], 0
    for first in range(256):
        while at < len(entries) and entries[at][0][0] <= first:
            at += 1
        fan.append(at)
    far = [offset for _, _, offset in entries if offset >> 31]
    places = iter(range(len(far)))
    near = [1 << 31 | next(places) if offset >> 31 else offset for _, _, offset in entries]
    body = b"".join(
        (
            b"\xfftOc" + struct.pack(">I", 2),
            struct.pack(">256I", *fan),
            b"".join(name for name, _, _ in entries),
            struct.pack(f">{len(entries)}I", *(crc for _, crc, _ in entries)),
            struct.pack(f">{len(near)}I", *near),
            struct.pack(f">{len(far)}Q", *far),
            checksum,
        )
    )
    return body + hashlib.sha1(body).digest()


def _make_durable(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
    os.fchmod(file.fileno(), 0o400)


def _write_loose(objects: Path, name: str, data: bytes) -> None:
    folder = objects / name[:2]
    target = folder / name[2:]
    if target.exists():
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    temporary = folder / f"tmp_obj_{os.urandom(6).hex()}"
    try:
        with open(temporary, "xb", opener=_private) as file:
            file.write(zlib.compress(data, 1))
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o400)
