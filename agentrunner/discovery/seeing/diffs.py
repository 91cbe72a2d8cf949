"""A change between two trees as a diff within a budget: every file gets a share of it.

A large harmless file cannot push a small bad one out: the smallest come first, each takes at most
an equal share of what is left, and what is left out is named. Blocks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from msgspec import Struct

from agentrunner.discovery.seeing.safe import (
    Redact,
    clean_text,
    holds_credentials,
    is_binary,
    is_stand_in,
    shown_name,
)
from agentrunner.git.snapshots import Change, Snapshots
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes

BUDGET = 12_000
"""Characters of a diff."""
MOST_BYTES = 1 << 20
"""Of a file that is compared; a larger one is named only."""
MOST_FILES = 300
"""Files that are compared; of more, those that are left over are named only."""
MOST_NAMED = 60
"""Files that are named as left out; of more, the rest is a count."""
LEAST = 160
"""Characters of a share that is worth a part of a hunk."""

_NO_TEXT = ("binary", "a link", "was no plain file", "looks like credentials", "to be kept")
"""How the reasons end that no look gets around."""
_HUNK = lazy_regex(r"^@@ ", re.MULTILINE)
_FILE = lazy_regex(r"^diff --git ", re.MULTILINE)


class Diff(Struct, frozen=True):
    """A change as it is shown."""

    text: str = ""
    left_out: tuple[str, ...] = ()
    """Files of which something is not shown, each with why; the rest is a count."""
    paths: tuple[str, ...] = ()
    """The same files, all of them, as the tree names them."""
    to_look_at: tuple[str, ...] = ()
    """Those of them that are text, of which a look shows more."""
    files: tuple[str, ...] = ()
    """The text of each file; all of them together are `text`."""

    @property
    def whole(self) -> bool:
        """Whether all that changed is shown."""
        return not self.left_out


class _File(Struct, frozen=True):
    """What changed in one file."""

    path: str
    head: str
    hunks: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.head) + sum(map(len, self.hunks))


def diff_of(
    snapshots: Snapshots,
    before: str,
    after: str,
    redact: Redact,
    *,
    budget: int = BUDGET,
    only: str | None = None,
) -> Diff:
    """The change from one tree to another, of all files or of the `only` one.

    What git ignored before the run is no part of it. Raises GitFailed and OSError.
    """
    changes = [one for one in snapshots.changes(before, after) if only is None or one.path == only]
    ignored = snapshots.ignored_paths([one.path for one in changes]) if changes else set()
    changes = [one for one in changes if one.path not in ignored]
    if not changes:
        return Diff()
    files, named = _compared(snapshots, before, after, changes, redact)
    shown, cut = _shared(files, budget)
    missing = {**named, **cut}
    texts = tuple(shown[path] for path in sorted(shown))
    names = [f"{shown_name(path)}: {why}" for path, why in sorted(missing.items())]
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], f"… and {len(names) - MOST_NAMED} more files"]
    to_look_at = [path for path, why in missing.items() if not why.endswith(_NO_TEXT)]
    paths = tuple(sorted(missing))
    return Diff("\n".join(texts), tuple(names), paths, tuple(sorted(to_look_at)), texts)


def _compared(
    snapshots: Snapshots,
    before: str,
    after: str,
    changes: Sequence[Change],
    redact: Redact,
) -> tuple[list[_File], dict[str, str]]:
    """The files that can be shown, and why others cannot."""
    named: dict[str, str] = {}
    # Counts of lines are git's, which a .gitattributes can turn off: they only order what is read.
    order = sorted(changes, key=lambda one: ((one.added or 0) + (one.removed or 0), one.path))
    paths = [one.path for one in order]
    sizes = [snapshots.sizes(tree, paths) for tree in (before, after)]
    fit: list[Change] = []
    for one in order:
        if max(size.get(one.path, 0) for size in sizes) > MOST_BYTES:
            named[one.path] = f"{one.kind}, too large to be shown"
        elif len(fit) >= MOST_FILES:
            named[one.path] = f"{one.kind}, not shown"
        else:
            fit.append(one)
    wanted = [one.path for one in fit]
    old, new = (snapshots.read_many(tree, wanted) for tree in (before, after))
    links = snapshots.list(after)
    textual: list[Change] = []
    for one in fit:
        sides = [side[one.path] for side in (old, new) if one.path in side]
        expected = 1 if one.kind in ("added", "deleted") else 2
        if holds_credentials(one.path, b"\n".join(sides)):
            named[one.path] = f"{one.kind}, looks like credentials"
        elif len(sides) < expected:
            target = links.get(one.path, ("", ""))[0] == "120000"
            named[one.path] = f"{one.kind}, a link" if target else f"{one.kind}, was no plain file"
        elif any(map(is_stand_in, sides)):
            named[one.path] = f"{one.kind}, too large to be kept"
        elif any(map(is_binary, sides)):
            named[one.path] = f"{one.kind}, binary"
        else:
            textual.append(one)
    return list(_files(snapshots, before, after, textual, redact)), named


def _files(
    snapshots: Snapshots,
    before: str,
    after: str,
    changes: Collection[Change],
    redact: Redact,
) -> list[_File]:
    """The hunks of each file, by a diff for which everything is text."""
    kinds = {one.path: one.kind for one in changes}
    patch = snapshots.patch(before, after, kinds, text=True)
    sections = _FILE.split(patch)[1:]
    paths = sorted(kinds, key=to_bytes)
    if len(sections) != len(paths):  # cannot be told apart: then one after the other
        sections = [
            "".join(_FILE.split(snapshots.patch(before, after, [path], text=True))[1:])
            for path in paths
        ]
    found = []
    for path, section in zip(paths, sections, strict=True):
        start = _HUNK.search(section)
        modes = [line for line in section[: start.start() if start else None].split("\n")
                 if line.startswith(("old mode", "new mode", "new file mode 1007"))]  # fmt: skip
        about = ", ".join([kinds[path], *modes])
        body = section[start.start() :] if start else ""
        # Redacted as a whole: a cut could halve a secret.
        body = clean_text(body, redact)
        hunks = tuple(f"@@ {part}" for part in _HUNK.split(body)[1:])
        found.append(_File(path, f"=== {shown_name(path)} ({about})\n", hunks))
    return found


def _shared(files: Sequence[_File], budget: int) -> tuple[dict[str, str], dict[str, str]]:
    """What is shown of each file, and of which not all is, with why. Smallest first."""
    shown: dict[str, str] = {}
    cut: dict[str, str] = {}
    left = budget
    order = sorted(files, key=lambda one: (one.size, one.path))
    for number, file in enumerate(order):
        share = left // (len(order) - number)
        if file.size <= share:
            shown[file.path] = file.head + "".join(file.hunks)
        else:
            text, why = _part(file, share)
            cut[file.path] = why
            if text:
                shown[file.path] = text
        left -= len(shown.get(file.path, ""))
    return shown, cut


def _part(file: _File, share: int) -> tuple[str, str]:
    """Whole hunks as far as they fit, the smallest first; of one that is too large its beginning.

    They stand in the order of the file.
    """
    total = len(file.hunks)
    left = share - len(file.head) - LEAST // 2
    if left < LEAST:
        return "", f"{total} hunks, none shown"
    kept: dict[int, str] = {}
    for number in sorted(range(total), key=lambda at: (len(file.hunks[at]), at)):
        hunk = file.hunks[number]
        if len(hunk) <= left:
            kept[number] = hunk
            left -= len(hunk)
            continue
        if not kept:
            end = hunk.rfind("\n", 0, left) + 1 or left
            rest = hunk[end:].count("\n") or 1
            kept[number] = f"{hunk[:end]}… ({rest} more lines of this hunk are not shown)\n"
        break
    parts = [kept[number] for number in sorted(kept)]
    missing = total - len(kept)
    if missing:
        parts.append(f"… ({missing} more hunks of this file are not shown)\n")
    return file.head + "".join(parts), f"{len(kept)} of {total} hunks shown, or parts of them"
