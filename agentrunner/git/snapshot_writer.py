"""Takes a snapshot of a folder into a private git object store.

Git never sees the folder. A worker may have turned it into a trap: hooks, filters, fsmonitor and
textconv commands in its configuration, attributes, embedded repositories, ignore files that hide
things. So we walk the folder, read the files, name blobs and trees ourselves and write the objects.
At the first snapshot, the user's own index is trusted about a file, under narrow conditions
(`borrow`): its content is then not read.

The supervisor runs this module after a worker has ended, with the standard library only
(`command`), and reads the snapshot as JSON from its stdout.

Paths are bytes in here and text with surrogate escapes (always UTF-8) outside.
"""
# Paths are bytes here, which pathlib does not take.
# ruff: noqa: PTH100, PTH115, PTH118, PTH120, PTH123

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from agentrunner.environment import is_out_of_room
from agentrunner.errors.repositories import GitDiskFull, GitFailed
from agentrunner.git import borrow
from agentrunner.git.attributes import Attributes
from agentrunner.git.blobs import blobs
from agentrunner.git.ignore import IgnoreRules
from agentrunner.git.pack import Pack as Pack
from agentrunner.git.pack import SizeChanged
from agentrunner.git.pack import blob_name as blob_name
from agentrunner.git.process import Git, read_small, replace
from agentrunner.git.stat_cache import (
    BORROWED,
    KEY,
    SETTLED,
    STAND_IN,
    FileKey,
    Seen,
    StatCache,
    blob_of,
    facts_of,
    flags_of,
    key_of,
    mode_of,
    seen_file,
    size_of,
)
from agentrunner.git.walk import Walk
from agentrunner.text.unicode import to_bytes, to_text

LARGE_BYTES = 50 << 20
"""Larger files that exist at the first snapshot are kept as a line about them."""

LARGE_MARK = b"agentrunner: a large file, content not kept\n"

COPIED_BYTES = 4 << 30
"""How many bytes of larger files that a worker made or changed one snapshot copies."""

RESERVE_BYTES = 1 << 30
"""Larger files are not copied if less than this would remain free on the disk."""

STREAMED_BYTES = 4 << 20
"""Files up to this size are read in one piece."""

RACY_NS = borrow.RACY_NS

LISTED = 200
"""The most paths kept of each list in a snapshot."""

TRIES = 3
"""How often a file that changes while it is read is read again."""

BOOTSTRAP = """\
import os, sys
os.umask(0o077)
sys.path.append(sys.argv[1])
from agentrunner.git.snapshot_writer import main
main(sys.argv[2:])
"""


class Snapshot(NamedTuple):
    """A folder at one moment. `tree` names its whole content; the lists have at most 200 paths."""

    tree: str
    files: int
    embedded: list[str]
    """`.git` files and folders below the top: dangerous to the user's git if a worker made them."""
    skipped: list[str]
    """Unreadable files and folders, pipes, sockets, devices, paths longer than the system
    accepts; after the first snapshot only those that it did not have."""
    ignored: list[str]
    """Folders that were left out, by the ignore rules as they were at the first snapshot."""
    large: list[str]
    """Files of which only size and times are kept: changes to them cannot be undone."""
    unkept: list[str]
    """Files that were made or changed since the last snapshot and whose content, before or
    after, is not kept: too large to be copied, or gone from the user's repository."""
    seen: list[str]
    """Ignored files whose content is not kept; `Snapshots.ignored_seen` has the facts of all."""
    borrowed: int
    """How many files were not read because the user's repository has their content."""
    empty: list[str]
    """Folders with nothing in them; after the first snapshot only those that it did not have."""


class TakeOptions(NamedTuple):
    """How snapshots of a folder are taken."""

    note_dir: str = ".agent-runner"
    worked: Path | None = None
    """A file whose time says when a worker of ours last ran in the folder; it may be absent.

    If it is None, that time is unknown, and the user's index is not trusted.
    """
    keep_up_to: int | None = None
    """Bytes of a file; None stands for `LARGE_BYTES`."""


def take(
    git: Git, work_tree: Path, note_dir: str = ".agent-runner", options: TakeOptions | None = None
) -> Snapshot:
    """Take a snapshot of `work_tree`; raises OSError (also GitFailed) if folder or disk fail.

    Raises InfraError if the folder has more files than can be handled.
    """
    options = options or TakeOptions(note_dir)
    git.borrows = True
    git.init()
    try:
        return _SnapshotRun(git, os.fsencode(work_tree.resolve(strict=True)), options).run()
    except GitFailed:
        raise
    except OSError as error:
        if is_out_of_room(error):
            raise GitDiskFull.of(git.git_dir) from error
        raise


class _SnapshotRun:
    """One snapshot in progress."""

    def __init__(self, git: Git, root: bytes, options: TakeOptions) -> None:
        self.git = git
        self.root = root
        self.options = options
        self.started = time.time_ns()
        self.large_from = LARGE_BYTES if options.keep_up_to is None else options.keep_up_to
        self.rules = IgnoreRules(git, root)
        self.walk = Walk(root, to_bytes(options.note_dir), self.rules)
        self.place = git.git_dir / "agentrunner"
        self.before = StatCache.load(self.place / "seen")
        self.stand_ins: set[str] = set()
        self.unkept: set[bytes] = set()
        self.copied = 0

    def run(self) -> Snapshot:
        self.walk.run()
        files = self.walk.files
        unseen = {
            path: files.pop(path) for path in self.rules.unkept_files(files, self.before.files)
        }
        borrowed = self._borrowed() if self.rules.baseline else {}
        with Pack(self.git.git_dir, self.before.own_objects()) as pack:
            now = self._entries(borrowed, pack)
            self._rescue(now, pack)
            trees = write_trees(pack, now)
            pack.store(self.git)
        self._save(StatCache(now, trees), unseen)
        tree = trees[-1].hex()
        self.rules.save(tree)
        return Snapshot(
            tree=tree,
            files=len(now),
            embedded=_first_paths(self.walk.embedded),
            skipped=_first_paths(self._new_since_first("skipped", self.walk.skipped)),
            ignored=_first_paths(self.walk.ignored),
            large=_first_paths(path for path, seen in now.items() if flags_of(seen) & STAND_IN),
            unkept=_first_paths(self.unkept),
            seen=_first_paths(unseen),
            borrowed=sum(1 for seen in now.values() if flags_of(seen) & BORROWED),
            empty=_first_paths(self._new_since_first("empty", self.walk.empty)),
        )

    def _new_since_first(self, kind: str, paths: Iterable[bytes]) -> set[bytes]:
        """Return paths that no snapshot can hold, without those from before the first worker.

        `kind` names the file in which those are kept.
        """
        found, place = set(paths), self.place / kind
        if self.rules.baseline:
            replace(place, b"\0".join(sorted(found)))
            return found
        with contextlib.suppress(FileNotFoundError):
            found.difference_update(place.read_bytes().split(b"\0"))
        return found

    # -- what the user's repository has already -----------------------------------------------

    def _borrowed(self) -> dict[bytes, bytes]:
        """Return the files that surely match the user's index, with their blobs."""
        rules, index = self.rules, self.rules.index
        if index is None or rules.repository is None or not index.entries:
            return {}
        objects = os.path.abspath(os.path.join(rules.common, b"objects"))
        locked = os.path.lexists(os.path.join(rules.repository, b"index.lock"))
        if locked or b"\n" in objects or self._worker_ran_since(index.written_ns):
            return {}
        if not borrow.keeps_ctime(self.root):
            return {}
        files = {p: key for p, key in self.walk.files.items() if p not in self.walk.elsewhere}
        try:
            borrow.lend(self.git, objects)
            found = borrow.believed(self.git, index, files, self._attributes(), rules.in_repository)
            index.entries.clear()  # 100,000 entries are 50 MB, and nothing reads them again
        except (OSError, GitFailed):
            found = {}
        if not found:
            borrow.stop(self.git)
        return found

    def _worker_ran_since(self, written_ns: int) -> bool:
        if self.options.worked is None:
            return True
        with contextlib.suppress(FileNotFoundError):
            return self.options.worked.stat().st_mtime_ns >= written_ns
        return False

    def _attributes(self) -> Attributes:
        rules, found = self.rules, Attributes()
        assert rules.repository is not None
        configs = (rules.common + b"/config", rules.repository + b"/config.worktree")
        found.add_users_own(rules.common, configs)
        above, folder = self.root, rules.prefix
        while folder:
            above, folder = os.path.dirname(above), folder.rpartition(b"/")[0]
            found.add(folder, read_small(os.path.join(above, b".gitattributes")) or b"")
        for path in self.walk.files:
            if path.endswith(b".gitattributes"):
                name = rules.in_repository(path)
                if name.rpartition(b"/")[2] == b".gitattributes":
                    text = read_small(os.path.join(self.root, path)) or b""
                    found.add(name.rpartition(b"/")[0], text)
        return found

    def _rescue(self, now: Mapping[bytes, Seen], pack: Pack) -> None:
        """Copy from the user's repository the old content of files that have changed since.

        The user's git may delete it; from here on it may.
        """
        changed: dict[str, list[bytes]] = {}
        for path, old in self.before.files.items():
            if flags_of(old) & BORROWED and (path not in now or blob_of(now[path]) != blob_of(old)):
                changed.setdefault(blob_of(old).hex(), []).append(path)
        for name, data in blobs(self.git, changed) if changed else ():
            if data is None:
                self.unkept.update(changed[name])
            elif isinstance(data, bytes):
                pack.add("blob", data)
            else:
                size = data.seek(0, os.SEEK_END)
                data.seek(0)
                pack.add_stream(data, size)

    # -- contents -----------------------------------------------------------------------------

    def _entries(self, borrowed: Mapping[bytes, bytes], pack: Pack) -> dict[bytes, Seen]:
        """Return each file with its blob; only files that may have changed are read."""
        now: dict[bytes, Seen] = {}
        settled_before = self.started - RACY_NS
        files = self.walk.files
        for path in list(files):
            key = files.pop(path)  # what is not needed twice is not kept twice
            old = self.before.files.get(path)
            if old and old.startswith(key) and flags_of(old) & (SETTLED | STAND_IN):
                now[path] = old
            elif path in borrowed:
                now[path] = seen_file(key, borrowed[path], SETTLED | BORROWED)
            elif (found := self._content(path, key, pack)) is None:
                self.walk.skipped.append(path)
            else:
                blob, flags = found
                _, mtime, ctime, *_ = KEY.unpack(key)
                settled = SETTLED if max(mtime, ctime) < settled_before else 0
                now[path] = seen_file(key, bytes.fromhex(blob), flags | settled)
        return now

    def _content(self, path: bytes, key: FileKey, pack: Pack) -> tuple[str, int] | None:
        """Return a file's or link's blob and flags; None if it can't be read or was replaced."""
        place = os.path.join(self.root, path)
        if stat.S_ISLNK(mode_of(key)):
            try:
                return pack.add("blob", os.readlink(place)), 0
            except OSError:
                return None
        size = size_of(key)
        if size > self.large_from:
            if self.rules.baseline:
                return self._stand_in(key, pack)
            if not self._has_room_for(size):
                old = self.before.files.get(path)
                if old and old.startswith(key):
                    return blob_of(old).hex(), 0
                self.unkept.add(path)
                return self._stand_in(key, pack)
        try:
            fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        with open(fd, "rb", buffering=0) as file:
            now = os.fstat(fd)
            if now.st_ino != KEY.unpack(key)[3] or not stat.S_ISREG(now.st_mode):
                return None
            if now.st_size <= STREAMED_BYTES:
                return pack.add("blob", _read_all(file, now.st_size)), 0
            return self._stream(file, pack), 0

    def _stand_in(self, key: FileKey, pack: Pack) -> tuple[str, int]:
        name = pack.add("blob", _large_mark(key))
        self.stand_ins.add(name)
        return name, STAND_IN

    def _has_room_for(self, size: int) -> bool:
        self.copied += size
        free = shutil.disk_usage(self.git.git_dir).free
        return self.copied <= COPIED_BYTES and size + RESERVE_BYTES <= free

    def _stream(self, file: BinaryIO, pack: Pack) -> str:
        for _ in range(TRIES):
            file.seek(0)
            with contextlib.suppress(SizeChanged):
                return pack.add_stream(file, os.fstat(file.fileno()).st_size)
        # The file changes all the time. A copy of its present content has a fixed size.
        with tempfile.TemporaryFile(dir=self.git.git_dir) as copy:
            file.seek(0)
            remaining = os.fstat(file.fileno()).st_size
            while remaining and (piece := file.read(min(1 << 20, remaining))):
                remaining -= len(piece)
                copy.write(piece)
            size = copy.tell()
            copy.seek(0)
            return pack.add_stream(copy, size)

    def _save(self, now: StatCache, unseen: Mapping[bytes, FileKey]) -> None:
        if now.files != self.before.files or now.trees != self.before.trees:
            now.save(self.place / "seen")
        if self.rules.baseline or self.stand_ins:
            known = stand_ins(self.git) or set()
            text = "".join(f"{name}\n" for name in sorted(known | self.stand_ins))
            replace(self.place / "stand-ins", text.encode())
        facts = {to_text(path): facts_of(key) for path, key in sorted(unseen.items())}
        if facts != seen_files(self.git):
            replace(self.place / "ignored-seen.json", json.dumps(facts).encode())


def seen_files(git: Git) -> dict[str, str]:
    """Return size, mtime, ctime and inode of ignored files that the last snapshot did not keep."""
    with contextlib.suppress(OSError, ValueError):
        found: dict[str, str] = json.loads(
            (git.git_dir / "agentrunner" / "ignored-seen.json").read_bytes()
        )
        return found
    return {}


def empty_at_first(git: Git) -> list[str]:
    """Return the empty folders of the first snapshot; none if there was none yet."""
    try:
        text = (git.git_dir / "agentrunner" / "empty").read_bytes()
    except FileNotFoundError:
        return []
    return [to_text(path) for path in text.split(b"\0") if path]


def changed_since(work_tree: Path, facts: Mapping[str, str]) -> list[str]:
    """Return which files are gone or have other facts than those, which are of `seen_files`."""
    found = []
    for path, before in facts.items():
        now = ""
        with contextlib.suppress(OSError, ValueError):
            now = facts_of(key_of((work_tree / path).lstat()))
        if now != before:
            found.append(path)
    return sorted(found)


def stand_ins(git: Git) -> set[str] | None:
    """Return the names of all blobs that stand for a large file; None if they were not recorded."""
    try:
        return set((git.git_dir / "agentrunner" / "stand-ins").read_text("ascii").split())
    except (OSError, ValueError):
        return None


def file_mode(mode: int) -> str:
    """Return git's mode of a file or link: 100644, 100755 or 120000."""
    return f"{borrow.git_mode(mode):o}"


def stand_in(facts: os.stat_result) -> bytes:
    """Return what is kept of a file that is too large to keep."""
    return _large_mark(key_of(facts))


def _large_mark(key: FileKey) -> bytes:
    return LARGE_MARK + b"size %d\nmtime %d\nctime %d\n" % KEY.unpack(key)[:3]


def _read_all(file: BinaryIO, size: int) -> bytes:
    """Return the content of a file that should have `size` bytes, and may grow while it is read."""
    data = piece = file.read(size + 1)
    while piece and len(data) != size and len(data) <= 2 * STREAMED_BYTES:
        data += (piece := file.read(STREAMED_BYTES))
    return data


def write_trees(pack: Pack, files: Mapping[bytes, Seen]) -> list[bytes]:
    """Add the trees of these files, bottom up; return their names, the top one last."""
    folders: dict[bytes, list[tuple[bytes, bytes]]] = {b"": []}
    modes: dict[int, bytes] = {}
    for path, seen in files.items():
        folder, _, name = path.rpartition(b"/")
        number = mode_of(seen)
        mode = modes.get(number) or modes.setdefault(number, file_mode(number).encode())
        line = (name, mode + b" " + name + b"\0" + blob_of(seen))
        try:
            folders[folder].append(line)
        except KeyError:
            folders[folder] = [line]
            while folder:
                folder = folder.rpartition(b"/")[0]
                if folder in folders:
                    break
                folders[folder] = []
    names: list[bytes] = []
    for folder in sorted(folders, key=lambda path: path.count(b"/") + bool(path), reverse=True):
        data = b"".join([line for _, line in sorted(folders[folder])])
        names.append(bytes.fromhex(pack.add("tree", data)))
        if folder:
            above, _, name = folder.rpartition(b"/")
            # Git sorts a folder as if its name ended in a slash.
            folders[above].append((name + b"/", b"40000 " + name + b"\0" + names[-1]))
    return names


def _first_paths(paths: Iterable[bytes]) -> list[str]:
    return [to_text(path) for path in sorted(paths)[:LISTED]]


def note_worker(worked: Path) -> None:
    """Record that a worker runs, or has just run, in the folder that `worked` is about."""
    try:
        os.utime(worked, follow_symlinks=False)
    except FileNotFoundError:
        worked.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace(worked, b"")


def command(python: str, git: Git, work_tree: Path, options: TakeOptions) -> list[str]:
    """Return the command that takes a snapshot in a separate process, after a worker."""
    package_home = Path(__file__).resolve().parents[2]
    start = [python, "-I", "-S", "-c", BOOTSTRAP, str(package_home)]
    worked = "" if options.worked is None else str(options.worked)
    keep = "" if options.keep_up_to is None else str(options.keep_up_to)
    folders = (str(git.git_dir), str(work_tree), git.binary, options.note_dir)
    return [*start, *folders, worked, keep]


def main(arguments: list[str]) -> None:
    """Take one snapshot after a worker, and print it."""
    git_dir, work_tree, binary, note_dir, *more = arguments
    worked, keep = more or ("", "")
    options = TakeOptions(note_dir, Path(worked) if worked else None, int(keep) if keep else None)
    if options.worked is not None:
        note_worker(options.worked)
    snapshot = take(Git(Path(git_dir), binary), Path(work_tree), note_dir, options)
    sys.stdout.write(json.dumps(snapshot._asdict()) + "\n")
