"""What a planner looks at, answered from a snapshot. Blocks.

Never the folder that workers write to, never what was ignored before the run, never a file that
looks like credentials; a link is not followed but named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from agentrunner.discovery.seeing.diffs import diff_of
from agentrunner.discovery.seeing.safe import (
    Redact,
    clean_text,
    holds_credentials,
    is_binary,
    is_stand_in,
    shown_name,
    shown_text,
)
from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import Snapshots
from agentrunner.protocol.looks import AT_ONCE, Look
from agentrunner.text.cut import tokens

MOST_CHARS = 40_000
"""Of all looks before one answer."""
CUT = "… (cut: no more can be shown)"
MOST_HEAD = 300
"""Characters of what a look asks for, above what it shows."""
MOST_LINES = 400
"""Of a file, where the look names no last line."""
MOST_HITS = 100
MOST_LISTED = 300
HIT_CHARS = 200
NEEDLE_CHARS = 300
SEARCHED_FILES = 5_000
SEARCHED_BYTES = 64 << 20
MOST_BYTES = 1 << 20
"""Of a file that is read."""

Outputs = Callable[[str], str | None]
"""The output of a worker run by its id, or of the last `test`; None for one that is not known."""


class Looker:
    """Answers looks before one answer of the planner."""

    def __init__(
        self,
        snapshots: Snapshots,
        before: str,
        now: str,
        redact: Redact,
        outputs: Outputs,
        most_tokens: int | None = None,
    ) -> None:
        """`before` is the tree before the task, `now` the one that is worked on or judged.

        `most_tokens` bounds all looks where the planner's context is short.
        """
        self._snapshots = snapshots
        self._before = before
        self._now = now
        self._redact = redact
        self._outputs = outputs
        self._tokens = most_tokens
        self._left = MOST_CHARS if most_tokens is None else min(MOST_CHARS, 4 * most_tokens)
        self._most = self._left
        self.seen: set[str] = set()
        """Files of which all that changed was shown."""
        self.looked_at: set[str] = set()
        """Files of which something was shown."""

    @property
    def spent(self) -> bool:
        """Whether nothing more can be shown."""
        return self._left <= MOST_HEAD

    def answer(self, looks: Sequence[Look]) -> str:
        """Each look with what it found, within what is left of the budget."""
        parts: list[str] = []
        for number, look in enumerate(looks[:AT_ONCE], 1):
            head = f"=== {number}. {look.form}: {clean_text(look.what, self._redact)[:MOST_HEAD]}\n"
            found, whole = self._look(look)
            shown = look.form in ("read", "diff") and not (
                found.startswith("(") and found.endswith(")")
            )
            room = self._left - len(head)
            if room <= 0:
                parts.append(f"{head}(not shown: {self._most} characters have been shown already)")
                continue
            if self._size(found) > room:
                found, whole = f"{self._beginning(found, room)}\n{CUT}", False
            self._left -= len(head) + self._size(found)
            if shown:
                self.looked_at.add(self._path(look.what))
            if whole:
                self.seen.add(self._path(look.what))
            parts.append(head + found)
        if len(looks) > AT_ONCE:
            parts.append(
                f"({len(looks) - AT_ONCE} further looks were not read: {AT_ONCE} at a time)"
            )
        return "\n\n".join(parts)

    def _size(self, text: str) -> int:
        """What a text takes of the budget: its characters, or as much as its tokens do in ASCII."""
        return len(text) if self._tokens is None else max(len(text), 4 * tokens(text))

    def _beginning(self, text: str, room: int) -> str:
        text = text[:room]
        while text and self._size(text) > room:
            text = text[: len(text) * room // self._size(text)]
        return text

    def _look(self, look: Look) -> tuple[str, bool]:
        """What is shown, and whether that is all that changed in the file."""
        match look.form:
            case "read":
                return self._read(look)
            case "search":
                return self._search(look), False
            case "list":
                return self._list(look.what), False
            case "diff":
                return self._diff(look.what)
            case _:
                return self._output(look), False

    @cached_property
    def _files(self) -> dict[str, Entry]:
        """The tree without what git ignored before the run: snapshots keep some of it."""
        listed = self._snapshots.list(self._now)
        ignored = self._snapshots.ignored_paths(list(listed))
        return {path: entry for path, entry in listed.items() if path not in ignored}

    @staticmethod
    def _path(text: str) -> str:
        return text.strip().removeprefix("./").rstrip("/")

    def _refusal(self, path: str) -> str:
        """Why a file cannot be shown, by its entry in the tree; "" where it can."""
        if not path or path.startswith("/") or ".." in path.split("/"):
            return "(a path is relative to the repository and stays in it)"
        entry = self._files.get(path)
        if entry is None:
            return "(there is no such file)"
        if entry[0] == "120000":
            target = self._snapshots.read(self._now, path) or b""
            return f"(a link to {shown_name(target.decode('utf-8', 'replace'))}; not followed)"
        if not entry[0].startswith("100"):
            return "(not a file)"
        if self._snapshots.sizes(self._now, [path]).get(path, 0) > MOST_BYTES:
            return f"(larger than {MOST_BYTES >> 20} MiB; not shown)"
        return ""

    def _read(self, look: Look) -> tuple[str, bool]:
        path = self._path(look.what)
        if why := self._refusal(path):
            return why, False
        data = self._snapshots.read_many(self._now, [path]).get(path, b"")
        if holds_credentials(path, data):
            return "(looks like credentials; not shown)", False
        if is_binary(data) or is_stand_in(data):
            return "(binary, or too large to be kept; not shown)", False
        lines = shown_text(data, self._redact).split("\n")
        if lines and not lines[-1]:
            lines.pop()
        first = max(1, look.first or 1)
        last = min(len(lines), look.last or first + MOST_LINES - 1)
        if first > len(lines):
            return f"(the file has {len(lines)} lines)", False
        shown = "\n".join(f"{at}: {lines[at - 1]}" for at in range(first, last + 1))
        whole = first == 1 and last == len(lines)
        added = path not in self._snapshots.list(self._before)
        return f"(lines {first} to {last} of {len(lines)})\n{shown}", whole and added

    def _search(self, look: Look) -> str:
        needle, folder = look.what[:NEEDLE_CHARS], self._path(look.folder or "")
        folder = "" if folder == "." else folder
        paths = sorted(
            path
            for path, (mode, _) in self._files.items()
            if mode.startswith("100") and (not folder or path == folder
                                           or path.startswith(f"{folder}/"))
        )  # fmt: skip
        if not paths:
            return "(there are no such files)"
        hits: list[str] = []
        size = 0
        for at in range(0, min(len(paths), SEARCHED_FILES), 200):
            for path, data in sorted(self._snapshots.read_many(self._now, paths[at : at + 200])
                                     .items()):  # fmt: skip
                size += len(data)
                if needle.encode("utf-8", "replace") not in data or is_binary(data):
                    continue
                if not holds_credentials(path, data):
                    hits += self._hits(path, data, needle)
            if len(hits) >= MOST_HITS or size > SEARCHED_BYTES:
                break
        more = len(hits) > MOST_HITS or size > SEARCHED_BYTES or len(paths) > SEARCHED_FILES
        hits = [*hits[:MOST_HITS], *(["… (not all is searched or shown)"] if more else [])]
        return "\n".join(hits) or "(nowhere)"

    def _hits(self, path: str, data: bytes, needle: str) -> list[str]:
        # Redacted as a whole, then searched again: a secret cannot be felt for letter by letter.
        lines = shown_text(data, self._redact).split("\n")
        return [
            f"{shown_name(path)}:{number}: {line.strip()[:HIT_CHARS]}"
            for number, line in enumerate(lines, 1)
            if needle in line
        ][: MOST_HITS + 1]

    def _list(self, folder: str) -> str:
        folder = self._path(folder)
        below = "" if folder in ("", ".") else f"{folder}/"
        names: dict[str, int] = {}
        for path in self._files:
            if path.startswith(below):
                name, slash, _ = path[len(below) :].partition("/")
                names[name + slash] = names.get(name + slash, 0) + 1
        lines = [
            f"{shown_name(name)} ({count} files)" if name.endswith("/") else shown_name(name)
            for name, count in sorted(names.items())
        ]
        if len(lines) > MOST_LISTED:
            lines = [*lines[:MOST_LISTED], f"… and {len(lines) - MOST_LISTED} more"]
        return "\n".join(lines) or "(there is no such folder)"

    def _diff(self, what: str) -> tuple[str, bool]:
        path = self._path(what)
        found = diff_of(
            self._snapshots, self._before, self._now, self._redact,
            budget=max(self._left - 500, 0), only=path,
        )  # fmt: skip
        if found.left_out:
            return "\n".join([found.text, *found.left_out]).strip(), False
        return (found.text, True) if found.text else ("(nothing changed there)", False)

    def _output(self, look: Look) -> str:
        text = self._outputs(look.what.strip())
        if text is None:
            return '(there is no such output; say "test" or the id of a worker run)'
        text = clean_text(text, self._redact)
        first = look.first or 0
        return f"(from character {first} of {len(text)})\n{text[first : first + self._most // 4]}"
