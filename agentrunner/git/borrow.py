"""Borrows from the user's repository the contents of files that did not change.

For most files the index says what they contain. It is trusted under narrow conditions only, and
objects are read by our own git, which knows the user's folder of objects as an alternate and obeys
nothing else there. Standard library only, like everything that `take` needs.
"""
# Paths are bytes here, which pathlib does not take.
# ruff: noqa: PTH112, PTH118

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

from agentrunner.git.attributes import Attributes
from agentrunner.git.process import Git, replace
from agentrunner.git.stat_cache import KEY, FileKey, blob_of, size_of
from agentrunner.git.user_index import UserIndex
from agentrunner.text.unicode import to_bytes, to_text

SIZES_AT_ONCE = 20_000
"""Blobs whose sizes git is asked for in one call."""
RACY_NS = 2_000_000_000
"""A file changed this shortly before it was read may change again within the same time stamp."""

KEEPS_CTIME = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}
)
"""File systems on which Linux itself sets ctime, so that changes are hardest to hide."""

LOW = 0xFFFF_FFFF


def lender_file(git: Git) -> Path:
    """Return the file that records from whom a store borrows."""
    return git.git_dir / "agentrunner" / "borrowed.json"


def lend(git: Git, objects: bytes) -> None:
    """From now on the store's git finds objects there, too. Raises OSError."""
    saved = {"objects": to_text(objects), "seal": _seal(objects)}
    replace(lender_file(git), json.dumps(saved).encode())
    git.borrows_from(objects)


def store_above(store: Path, place: Path) -> None:
    """Make a store at `place` that sees all objects of `store`, and keeps new ones to itself.

    Raises OSError.
    """
    objects = str((store / "objects").resolve())
    shutil.copytree(store, place, symlinks=True, ignore=shutil.ignore_patterns("objects"))
    (place / "objects" / "info").mkdir(mode=0o700, parents=True)
    # Git reads a quoted line as a C string, so that a path may contain anything.
    quoted = objects.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    (place / "objects" / "info" / "alternates").write_bytes(to_bytes(f'"{quoted}"\n'))


def is_untouched(git: Git) -> bool:
    """Whether the objects that a store borrows are surely unchanged since the first snapshot.

    Also true for a store that borrows nothing. Changed objects may still be right, but must be
    checked against their names before use.
    """
    try:
        saved = json.loads(lender_file(git).read_bytes())
        return bool(saved["seal"] == _seal(to_bytes(saved["objects"])))
    except FileNotFoundError:
        return True
    except (OSError, ValueError, KeyError):
        return False


def _seal(objects: bytes) -> str:
    """Return a digest over names and stats of all objects and packs, and other object folders."""
    digest = hashlib.sha256()
    for name in sorted(os.listdir(objects)):  # noqa: PTH208
        folder = os.path.join(objects, name)
        if not os.path.isdir(folder):
            continue
        with os.scandir(folder) as found:
            for entry in sorted(found, key=lambda item: item.name):
                facts = entry.stat(follow_symlinks=False)
                key = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
                digest.update(name + b"/" + entry.name + b"\0%r\n" % (key,))
    if os.path.lexists(os.path.join(objects, b"info/alternates")):
        # Those folders are not examined: a random digest makes every content be checked.
        digest.update(os.urandom(16))
    return digest.hexdigest()


def keeps_ctime(folder: bytes) -> bool:
    """Whether only the kernel sets ctime on the file system that a folder is on."""
    best, kind = b"", ""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return False
    for line in lines:
        fields, _, rest = line.partition(b" - ")
        point = re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), fields.split()[4])
        inside = folder == point or folder.startswith(point.rstrip(b"/") + b"/")
        if inside and len(point) >= len(best):
            best, kind = point, rest.split()[0].decode()
    return kind in KEEPS_CTIME


def believed(
    git: Git,
    index: UserIndex,
    files: Mapping[bytes, FileKey],
    attributes: Attributes,
    named: Callable[[bytes], bytes],
) -> dict[bytes, bytes]:
    """Return the blobs of those files that surely match the index.

    `named` turns a path into the one that the index has. The store must already borrow.
    """
    settled = index.written_ns - RACY_NS
    found = {}
    for path, key in files.items():
        name = named(path)
        entry = index.entries.get(name)
        if entry is None:
            continue
        size, mtime, ctime, inode, mode = KEY.unpack(key)
        same = entry.startswith(KEY.pack(size & LOW, mtime, ctime, inode & LOW, git_mode(mode)))
        if same and mtime < settled and ctime < settled and not attributes.changes(name):
            found[path] = blob_of(entry)
    paths = iter(list(found))
    while some := list(islice(paths, SIZES_AT_ONCE)):
        sizes = _sizes(git, {found[path].hex() for path in some})
        for path in some:
            if sizes.get(found[path].hex()) != size_of(files[path]):
                del found[path]
    return found


def git_mode(mode: int) -> int:
    """Return git's mode of a file or link, as a number."""
    if stat.S_ISLNK(mode):
        return 0o120000
    return 0o100755 if mode & stat.S_IXUSR else 0o100644


def _sizes(git: Git, blobs: set[str]) -> dict[str, int]:
    asked = "".join(f"{blob}\n" for blob in sorted(blobs)).encode()
    out = git.run(
        *("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", "--buffer"),
        stdin=asked,
    )
    sizes = {}
    for line in out.decode().splitlines():
        with contextlib.suppress(ValueError):
            name, kind, size = line.split(" ")
            if kind == "blob":
                sizes[name] = int(size)
    return sizes


def stop(git: Git) -> None:
    """Borrow nothing after all."""
    lender_file(git).unlink(missing_ok=True)
    git.borrows_nothing()
