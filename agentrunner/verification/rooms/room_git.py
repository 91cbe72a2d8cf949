"""Makes the `.git` of a clean room: the baseline's references and settings, the room's own index.

So `git status`, `ls-files` and `diff` in a test see what is handed over, as they would after
`git add -A`. It is made for each room, may be written to, and is removed with the room. Objects are
the user's own, read-only; only contents that the user's index does not have are added. Nothing
here starts git. Everything blocks.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import struct
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from os import stat_result
from pathlib import Path

from agentrunner.errors import UsageError
from agentrunner.folders import walk
from agentrunner.git.attributes import Attributes
from agentrunner.git.restore import Entry
from agentrunner.git.snapshot_writer import stand_ins
from agentrunner.git.snapshots import Snapshots
from agentrunner.git.stat_cache import blob_of, mode_of
from agentrunner.git.user_index import IndexDamaged, UserIndex, read_index
from agentrunner.sandboxes.base import Mount
from agentrunner.sandboxes.gitdirs import SHARED_OBJECTS, alternates_of, git_folders, hand_over
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.rooms.copies import copy_tree

LENGTH = 0x0FFF
SECOND = 1_000_000_000
LOW = 0xFFFF_FFFF
_FIXED = struct.Struct(">10I20sH")

IndexEntry = tuple[bytes, int, bytes, stat_result | None]
"""Path, git's mode, the blob's SHA-1 as bytes, and the file's stat; with None git reads the
file."""

SHARED = ("config", "packed-refs", "refs", "reftable", "hooks", "info", "shallow", "description")
"""What all work trees of a repository share; objects and logs are left where they are."""
OWN = ("HEAD", "index", "config.worktree")
MOST_ADDED = 1_000
"""Contents of changed files that are added; of further files only the object name is known."""
MOST_BYTES = 1 << 20
"""Bytes of one such file."""
MOST_COPIED = 16 << 20
"""Bytes of one copied file, such as a hook."""
SUBMODULE = 0o160000
OTHER_WORK_TREE = lazy_regex(r"(?im)^[^\S\n]*worktree\s*=")
"""A setting by which the work tree is not where the git folder is."""
FILTERS = lazy_regex(r"(?im)^[^\S\n]*(autocrlf|eol|safecrlf)\s*=")


def seal_git(repo: Path, target: Path) -> None:
    """Copy what rooms need of the repository's git data, replacing an earlier copy.

    Nothing is copied where the repository has no git data of a usual kind. Raises OSError.
    """
    shutil.rmtree(target, ignore_errors=True)
    found = _folders(repo)
    if found is None:
        return
    own, common = found
    target.mkdir(mode=0o700, parents=True)
    for folder, wanted in ((common, SHARED), (own, OWN)):
        for name in wanted:
            _copy(folder / name, target / name)
    for place, folders, names in walk(target):
        for inner in (*folders, *names):
            path = Path(place, inner)
            if not path.is_symlink():
                path.chmod(0o700 & path.lstat().st_mode)


@dataclass
class RoomGit:
    """Makes the `.git` of rooms from what was sealed."""

    snapshots: Snapshots
    sealed: Path
    mounts: bool
    """Whether the sandbox can mount."""

    def __post_init__(self) -> None:
        self._index: UserIndex | None = None

    def furnish(
        self, room: Path, scratch: Path, entries: Mapping[str, Entry], ignored: Collection[str]
    ) -> tuple[Mount, ...]:
        """Make the `.git` for a checkout of `entries`; return the mounts it needs.

        It is made in `scratch` where the sandbox can mount, else in the room. `ignored` are the
        paths that git does not track. Nothing is made where the user's git data is missing or of an
        unusual kind. Raises OSError.
        """
        known = self._baseline_index()
        folders = _folders(self.snapshots.work_tree)
        if known is None or folders is None:
            return ()
        own, common = folders
        objects = common / "objects"
        target = scratch / "git" if self.mounts else room / ".git"
        if os.path.lexists(target):
            return ()
        copy_tree(self.sealed, target)
        object_folders = SHARED_OBJECTS if self.mounts else objects.resolve()
        self._link_objects(target, [object_folders, *alternates_of(objects)])
        chosen = self._index_entries(room, entries, ignored, known)
        (target / "index").write_bytes(index_of(chosen))
        self._add_contents(room, target, chosen, known)
        hand_over(target, self.snapshots.work_tree)
        if not self.mounts:
            return ()
        return (
            Mount(target, own, read_only=False),
            Mount(objects.resolve(), SHARED_OBJECTS),
        )

    def _baseline_index(self) -> UserIndex | None:
        """The user's index at the baseline; None where there is no usable git data."""
        if self._index is None and self._is_usual():
            try:
                found = read_index(os.fsencode(self.sealed / "index"))
            except IndexDamaged:
                return None
            self._index = found or UserIndex({}, {})
        return self._index

    def _is_usual(self) -> bool:
        if not (self.sealed / "HEAD").is_file():
            return False
        text = self._settings()
        if re.search(r"(?i)objectformat\s*=\s*(?!sha1\b)", text):
            return False
        return self.mounts or not OTHER_WORK_TREE.search(text)

    def _settings(self) -> str:
        places = (self.sealed / "config", self.sealed / "config.worktree")
        return "\n".join(p.read_text(errors="replace") for p in places if p.is_file())

    def _link_objects(self, target: Path, object_folders: Collection[Path]) -> None:
        info = target / "objects" / "info"
        info.mkdir(parents=True)
        lines = "".join(f"{line}\n" for line in object_folders)
        (info / "alternates").write_bytes(to_bytes(lines))
        (target / "refs").mkdir(exist_ok=True)

    def _index_entries(
        self,
        room: Path,
        entries: Mapping[str, Entry],
        ignored: Collection[str],
        known: UserIndex,
    ) -> list[IndexEntry]:
        """The entries of the index: the tree's, and submodules as the user's index has them.

        Where git may store another content than the file has, as with line ends, a tracked file
        keeps the blob of the user's index, so that it does not show as changed.
        """
        filtered = self._filtered(room, entries)
        modules = {
            path: blob_of(entry)
            for path, entry in known.entries.items()
            if mode_of(entry) == SUBMODULE
        }
        inside = tuple(path + b"/" for path in modules)
        found: list[IndexEntry] = [(p, SUBMODULE, blob, None) for p, blob in modules.items()]
        large = stand_ins(self.snapshots.git) or set()
        for text, (mode, name) in entries.items():
            path = to_bytes(text)
            if text in ignored or (inside and path.startswith(inside)):
                continue
            old = known.entries.get(path)
            blob = bytes.fromhex(name)
            if old is not None and (name in large or filtered.changes(path)):
                blob = blob_of(old)
            elif name in large:
                continue
            with contextlib.suppress(OSError):
                found.append((path, int(mode, 8), blob, os.lstat(room / os.fsdecode(path))))
        return found

    def _filtered(self, room: Path, entries: Mapping[str, Entry]) -> Attributes:
        rules = Attributes()
        if FILTERS.search(self._settings()):
            rules.add(b"", b"** eol")
        for path in entries:
            if path.rpartition("/")[2] == ".gitattributes":
                folder = to_bytes(path.rpartition("/")[0])
                with contextlib.suppress(OSError):
                    rules.add(folder, (room / path).read_bytes())
        rules.add_users_own(os.fsencode(self.sealed), [os.fsencode(self.sealed / "config")])
        return rules

    def _add_contents(
        self, room: Path, target: Path, chosen: Collection[IndexEntry], known: UserIndex
    ) -> None:
        """Write loose objects for contents that the user's index does not have, within bounds."""
        known_blobs = set(map(blob_of, known.entries.values()))
        new = [one for one in chosen if one[2] not in known_blobs and one[1] != SUBMODULE]
        for path, _, blob, _ in new[:MOST_ADDED]:
            data = _content(room / os.fsdecode(path))
            whole = b"blob %d\0" % len(data) + data
            if hashlib.sha1(whole).digest() == blob:
                place = target / "objects" / blob.hex()[:2] / blob.hex()[2:]
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(zlib.compress(whole, 1))


def _folders(repo: Path) -> tuple[Path, Path] | None:
    """The git folder and the one that it shares; None without git data of a usual kind."""
    try:
        return git_folders(repo)
    except UsageError:
        return None


def _content(place: Path) -> bytes:
    """What git keeps of a file or link; the beginning of a large file."""
    if place.is_symlink():
        return os.fsencode(os.readlink(place))  # noqa: PTH115 - its text
    with place.open("rb") as file:
        return file.read(MOST_BYTES)


def _copy(source: Path, target: Path) -> None:
    """Copy a file or folder, without locks, sample hooks, large files and special files.

    The path itself is never a link: what is written at its place later would follow it.
    """
    if source.is_symlink():
        return
    if source.is_file():
        shutil.copy2(source, target)
    elif source.is_dir():
        copy_tree(source, target, ignore=_left_out)


def _left_out(folder: str, names: list[str]) -> set[str]:
    left_out = set()
    for name in names:
        facts = os.lstat(os.path.join(folder, name))  # noqa: PTH118
        is_kept_kind = stat.S_ISDIR(facts.st_mode) or stat.S_ISLNK(facts.st_mode)
        is_small_file = stat.S_ISREG(facts.st_mode) and facts.st_size <= MOST_COPIED
        if name.endswith((".lock", ".sample")) or not (is_kept_kind or is_small_file):
            left_out.add(name)
    return left_out


def index_of(entries: Iterable[IndexEntry]) -> bytes:
    """Return an index of version 2 with these entries, each path once."""
    parts = []
    for path, mode, blob, facts in sorted(entries, key=lambda entry: entry[0]):
        stats = (0,) * 6 if facts is None else _times_and_inode(facts)
        owner = (0, 0, 0) if facts is None else (facts.st_uid, facts.st_gid, facts.st_size & LOW)
        head = _FIXED.pack(*stats, mode, *owner, blob, min(len(path), LENGTH))
        size = len(head) + len(path)
        parts.append(head + path + bytes(8 - size % 8))
    data = struct.pack(">4sII", b"DIRC", 2, len(parts)) + b"".join(parts)
    return data + hashlib.sha1(data).digest()


def _times_and_inode(facts: stat_result) -> tuple[int, int, int, int, int, int]:
    return (
        facts.st_ctime_ns // SECOND & LOW,
        facts.st_ctime_ns % SECOND,
        facts.st_mtime_ns // SECOND & LOW,
        facts.st_mtime_ns % SECOND,
        facts.st_dev & LOW,
        facts.st_ino & LOW,
    )
