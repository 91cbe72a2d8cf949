"""Take a snapshot of a folder into a private git object store.

Git never sees the folder. A worker may have made it a trap: hooks, filters, fsmonitor and textconv
commands in its configuration, attributes, embedded repositories, ignore files that hide things.
So we walk the folder, read the files, name blobs and trees ourselves and hand git one pack.

The supervisor runs this module after a worker has ended, with the standard library only
(`command`), and reads the snapshot as JSON from its stdout.

Paths are bytes in here and text with surrogate escapes (always UTF-8) outside.
"""
# Paths are bytes here, which pathlib does not take.
# ruff: noqa: PTH118, PTH119

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Self, TypedDict

from agentrunner.runs.git import Git, replace, to_bytes, to_text
from agentrunner.runs.ignore import IgnoreRules

LARGE_BYTES = 50 << 20
"""Larger files are kept as a line about them, not as their content."""

LARGE_MARK = b"agentrunner: a large file, content not kept\n"

RACY_NS = 2_000_000_000
"""A file changed this shortly before it was read may change again within the same time stamp."""

LOOSE_OBJECTS = 200
"""Fewer new objects than this become loose files, more stay a pack."""

LISTED = 200
"""Of each list in a snapshot at most so many paths are kept."""

CACHES = frozenset({b"__pycache__", b".pytest_cache", b".mypy_cache", b".ruff_cache"})
"""Written by test runs, read as a convenience only; checks keep their byte code elsewhere."""

FileKey = tuple[int, int, int, int, int]
"""Size, mtime, ctime, inode, mode: a file with the same ones has the same content."""

BOOTSTRAP = """\
import os, sys
os.umask(0o077)
sys.path.append(sys.argv[1])
from agentrunner.runs.take import main
main(sys.argv[2:])
"""


class Cache(TypedDict):
    """What the last snapshot saw."""

    trees: list[str]
    keys: dict[str, list[int]]
    """Of files that had settled: the others may change again within the same time stamps."""
    blobs: dict[str, str]


@dataclass(frozen=True)
class Snapshot:
    """A folder at one moment. `tree` names its whole content; the lists have at most 200 paths."""

    tree: str
    files: int
    embedded: list[str]
    """`.git` files and folders below the top: dangerous to the user's git if a worker made them."""
    skipped: list[str]
    """Unreadable files and folders, pipes, sockets, devices."""
    ignored: list[str]
    """Folders that were left out, by the ignore rules as they were at the first snapshot."""
    large: list[str]
    """Files of which only size and times are kept."""


def object_name(kind: bytes, data: bytes) -> str:
    """Git's name of an object."""
    return hashlib.sha1(b"%s %d\0" % (kind, len(data)) + data).hexdigest()


def blob_name(data: bytes) -> str:
    """Git's name of a file's content."""
    return object_name(b"blob", data)


class Pack:
    """New objects on their way into the store: in a file of `folder`, once there are any."""

    def __init__(self, folder: Path, known: set[str]) -> None:
        self.folder = folder
        self.known = known
        """Names of objects that the store has already."""
        self.count = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, kind: str, data: bytes) -> str:
        """Add an object unless it is known; returns its name."""
        name = object_name(kind.encode(), data)
        if name not in self.known:
            self.known.add(name)
            self.count += 1
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115  (ours closes it)
                self._file.write(bytes(12))
            self._file.write(self._header({"tree": 2, "blob": 3}[kind], len(data)))
            self._file.write(zlib.compress(data, 1))
        return name

    @staticmethod
    def _header(kind: int, size: int) -> bytes:
        out = bytearray()
        byte, size = kind << 4 | size & 15, size >> 4
        while size:
            out.append(byte | 128)
            byte, size = size & 127, size >> 7
        out.append(byte)
        return bytes(out)

    def store(self, git: Git) -> None:
        """Hand everything to git."""
        file = self._file
        if file is None:
            return
        file.seek(0)
        file.write(b"PACK" + struct.pack(">II", 2, self.count))
        file.seek(0)
        digest = hashlib.sha1()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
        file.write(digest.digest())
        file.flush()
        file.seek(0)
        few = self.count < LOOSE_OBJECTS
        git.run(*(["unpack-objects", "-q"] if few else ["index-pack", "--stdin"]), stdin=file)


class Walk:
    """The files of a folder, found without following links or believing anything in it."""

    def __init__(self, work_tree: bytes, note_dir: bytes, rules: IgnoreRules) -> None:
        self.work_tree = work_tree
        self.note_dir = note_dir
        self.rules = rules
        self.files: dict[bytes, os.stat_result] = {}
        self.embedded: list[bytes] = []
        self.skipped: list[bytes] = []
        self.ignored: list[bytes] = []

    def run(self) -> None:
        """Walk the whole folder, level by level, so that a level is judged in one go."""
        level = [b""]
        while level:
            below = [path for folder in level for path in self._scan(folder)]
            level = self.rules.kept(below)
            self.ignored += set(below).difference(level)

    def _scan(self, folder: bytes) -> Iterator[bytes]:
        self.rules.folder_seen(folder)
        try:
            with os.scandir(os.path.join(self.work_tree, folder)) as found:
                entries = list(found)
        except OSError:
            self.skipped.append(folder)
            return
        for entry in entries:
            path = folder + b"/" + entry.name if folder else entry.name
            if entry.name.lower() == b".git":
                if folder:
                    self.embedded.append(path)
                continue
            try:
                facts = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError:  # a path longer than the system takes
                self.skipped.append(path)
                continue
            if stat.S_ISDIR(facts.st_mode):
                if not self._passed_over(folder, entry.name):
                    yield path
            elif stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
                self.files[path] = facts
            else:
                self.skipped.append(path)

    def _passed_over(self, folder: bytes, name: bytes) -> bool:
        return (
            name in CACHES
            or (name == b".cache" and os.path.basename(folder) == b"node_modules")
            or (not folder and name == self.note_dir)
        )


def _key(facts: os.stat_result) -> FileKey:
    return (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_mode)


def file_mode(facts: os.stat_result) -> str:
    """Git's mode of a file or link: 100644, 100755 or 120000."""
    if stat.S_ISLNK(facts.st_mode):
        return "120000"
    return "100755" if facts.st_mode & stat.S_IXUSR else "100644"


def stand_in(facts: os.stat_result) -> bytes:
    """What is kept of a file that is too large to keep."""
    return LARGE_MARK + b"size %d\nmtime %d\nctime %d\n" % _key(facts)[:3]


def content(path: bytes, facts: os.stat_result, dir_fd: int | None = None) -> bytes | None:
    """What a snapshot keeps of a file or link; None if it can't be read or has been replaced."""
    try:
        if stat.S_ISLNK(facts.st_mode):
            return os.readlink(path, dir_fd=dir_fd)
        if facts.st_size > LARGE_BYTES:
            return stand_in(facts)
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=dir_fd)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        now = os.fstat(fd)
        if (now.st_dev, now.st_ino) != (facts.st_dev, facts.st_ino):
            return None
        return file.read(LARGE_BYTES)


def _write_trees(pack: Pack, files: Mapping[bytes, tuple[str, str]]) -> tuple[str, list[str]]:
    """Name the trees of these (mode, blob)s, bottom up; returns the top one and all."""
    folders: dict[bytes, list[tuple[bytes, bytes, str, str]]] = {b"": []}
    for path, (mode, blob) in files.items():
        folder, _, name = path.rpartition(b"/")
        folders.setdefault(folder, []).append((name, name, mode, blob))
        while folder:
            folder = folder.rpartition(b"/")[0]
            folders.setdefault(folder, [])
    names: list[str] = []
    for folder in sorted(folders, key=lambda path: path.count(b"/") + bool(path), reverse=True):
        lines = (
            mode.encode() + b" " + name + b"\0" + bytes.fromhex(blob)
            for _, name, mode, blob in sorted(folders[folder])
        )
        names.append(pack.add("tree", b"".join(lines)))
        if folder:
            above, _, name = folder.rpartition(b"/")
            # Git sorts a folder as if its name ended in a slash.
            folders[above].append((name + b"/", name, "40000", names[-1]))
    return names[-1], names


def take(git: Git, work_tree: Path, note_dir: str = ".agent-runner") -> Snapshot:
    """Snapshot `work_tree`; raises OSError (also GitFailed) where folder or disk fail."""
    git.init()
    root = os.fsencode(work_tree.resolve(strict=True))
    started = time.time_ns()
    rules = IgnoreRules(git, root)
    walk = Walk(root, to_bytes(note_dir), rules)
    walk.run()
    cache_file = git.git_dir / "agentrunner" / "cache.json"
    cache = _load_cache(cache_file)
    with Pack(git.git_dir, {*cache["trees"], *cache["blobs"].values()}) as pack:
        entries = dict(_entries(walk, cache, pack))
        tree, trees = _write_trees(
            pack, {path: (file_mode(walk.files[path]), blob) for path, blob in entries.items()}
        )
        pack.store(git)
    seen = _seen(trees, entries, walk, started)
    if seen != cache:
        replace(cache_file, json.dumps(seen).encode())
    rules.save()
    large = (path for path in entries if _is_large(walk.files[path]))
    return Snapshot(
        tree=tree,
        files=len(entries),
        embedded=_listed(walk.embedded),
        skipped=_listed(walk.skipped),
        ignored=_listed(walk.ignored),
        large=_listed(large),
    )


def _is_large(facts: os.stat_result) -> bool:
    return stat.S_ISREG(facts.st_mode) and facts.st_size > LARGE_BYTES


def _load_cache(path: Path) -> Cache:
    with contextlib.suppress(OSError, ValueError):
        loaded: Cache = json.loads(path.read_bytes())
        return loaded
    return {"trees": [], "keys": {}, "blobs": {}}


def _seen(trees: list[str], entries: Mapping[bytes, str], walk: Walk, started: int) -> Cache:
    keys = {}
    for name in entries:
        key = _key(walk.files[name])
        if max(key[1], key[2]) < started - RACY_NS:
            keys[to_text(name)] = list(key)
    return {
        "trees": trees,
        "keys": keys,
        "blobs": {to_text(name): blob for name, blob in entries.items()},
    }


def _entries(walk: Walk, cache: Cache, pack: Pack) -> Iterator[tuple[bytes, str]]:
    """Each file with the name of its blob, read only where it may have changed."""
    for path, facts in walk.files.items():
        name = to_text(path)
        if cache["keys"].get(name) == list(_key(facts)):
            yield path, cache["blobs"][name]
            continue
        data = content(os.path.join(walk.work_tree, path), facts)
        if data is None:
            walk.skipped.append(path)
        else:
            yield path, pack.add("blob", data)


def _listed(paths: Iterable[bytes]) -> list[str]:
    return [to_text(path) for path in sorted(paths)[:LISTED]]


def command(python: str, git: Git, work_tree: Path, note_dir: str) -> list[str]:
    """The command line that takes a snapshot in a process of its own."""
    package_home = Path(__file__).resolve().parents[2]
    start = [python, "-I", "-S", "-c", BOOTSTRAP, str(package_home)]
    return [*start, str(git.git_dir), str(work_tree), git.binary, note_dir]


def main(arguments: list[str]) -> None:
    """Take one snapshot and print it."""
    git_dir, work_tree, binary, note_dir = arguments
    snapshot = take(Git(Path(git_dir), binary), Path(work_tree), note_dir)
    sys.stdout.write(json.dumps(asdict(snapshot)) + "\n")
