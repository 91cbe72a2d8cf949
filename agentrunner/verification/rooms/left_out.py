"""Finds what a worker's folder has and rooms lack, have in an older form, or only seem to hold.

Rooms have ignored folders as they were before the first worker, and no ignored file above the size
that snapshots keep. Every honest run changes such files: builds, caches, coverage. What is green in
a room did not need them, and nothing is reported. What is red and names one may be red because of
it. No tree holds an empty folder, and of a link that leads out it holds the way alone. Everything
here blocks.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from agentrunner.folders import walk
from agentrunner.git.snapshot_writer import changed_since
from agentrunner.git.snapshots import LINK, folders_of
from agentrunner.state.run_state import CheckOutcome, TestOutcome
from agentrunner.text.mentions import alone
from agentrunner.text.unicode import to_text
from agentrunner.verification.rooms.room import Rooms

MOST_COMPARED = 50_000
"""Files of one folder that are compared; a folder with more does not count as changed."""

Facts = dict[str, tuple[int, int]]


class LeftOut:
    """Finds such files for one run."""

    def __init__(self, rooms: Rooms) -> None:
        self._snapshots = rooms.snapshots
        self._rooms = rooms

    def named(self, text: str) -> list[str]:
        """Ignored files that no room has, and that a command's output names."""
        return [path for path in self._snapshots.ignored_seen() if _is_file_named(path, text)]

    def links_out(self, tree: str, paths: Collection[str]) -> list[tuple[str, str]]:
        """Those of these paths that are links out of the tree, with their targets."""
        entries = self._snapshots.list(tree)
        found = []
        for path in sorted(paths):
            if path in entries and entries[path][0] == LINK:
                target = to_text(self._snapshots.read(tree, path) or b"")
                if _leads_out(path, target):
                    found.append((path, target))
        return found

    def empty_folders(self, empty: Collection[str], old: str, *, all_of_them: bool) -> list[str]:
        """Those of these empty folders that a checkout lacks and that matter.

        A folder that had files in the tree before the run was emptied on purpose; it is named with
        `all_of_them` only.
        """
        if not empty or all_of_them:
            return sorted(empty)
        return sorted(set(empty) - folders_of(self._snapshots.list(old)))

    def lost(self, written: Collection[str]) -> list[str]:
        """Ignored files of before the run whose content is not kept and that are gone or changed.

        Those that the tests write by themselves (`written`) are left out.
        """
        before = self._rooms.sealed.files_seen() or {}
        changed = changed_since(self._snapshots.work_tree, before)
        return [path for path in changed if path not in written]

    def changed(self, text: str) -> list[str]:
        """Ignored files and folders that changed since they were sealed, and that `text` names."""
        before = self._rooms.sealed.files_seen()
        found = [
            path
            for path, facts in self._snapshots.ignored_seen().items()
            if before is not None and before.get(path) != facts and _is_file_named(path, text)
        ]
        folders = self._rooms.sealed.folders()
        sealed = {one.name: source for one, source in folders if one.copied}
        large = {one.name for one, _ in folders if not one.copied}
        for name in self._snapshots.ignored_folders():
            if name in large or not is_folder_named(name, text):
                continue
            now = _facts(self._snapshots.work_tree / name)
            if now is not None and now != (_facts(sealed[name]) if name in sealed else {}):
                found.append(name)
        return found


def words_of_red(test: TestOutcome | None, checks: Sequence[CheckOutcome]) -> str:
    """What the red commands printed, as far as it is kept with their outcomes."""
    texts: list[str] = []
    if test is not None and not test.green:
        texts += [test.tail, *(red.message for red in test.red)]
    for check in checks:
        if check.outcome == "failed":
            texts += [check.detail, *(red.message for red in check.red)]
    return "\n".join(texts)


def _leads_out(path: str, target: str) -> bool:
    if target.startswith("/"):
        return True
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return place == ".." or place.startswith("../")


def _is_file_named(path: str, text: str) -> bool:
    return bool(re.search(alone(path.rpartition("/")[2], before="."), text))


def is_folder_named(path: str, text: str) -> bool:
    """Whether a text names a path in a folder, or the folder itself with a slash."""
    return bool(re.search(rf"(?<![\w.-]){re.escape(path)}/", text))


def _facts(folder: Path) -> Facts | None:
    """Size and modification time of each file by path; None where there are too many files."""
    found: Facts = {}
    for path in (Path(place, name) for place, _, names in walk(folder) for name in names):
        if len(found) >= MOST_COMPARED:
            return None
        with contextlib.suppress(OSError):
            facts = path.lstat()
            found[str(path.relative_to(folder))] = (facts.st_size, facts.st_mtime_ns)
    return found
