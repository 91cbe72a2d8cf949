"""Whether a test that the worker wrote shows the work.

It has to be red on the old code for a reason that is the work, and red where the functions that
the work added or altered have empty bodies. A test that passes there is not about the work.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import Snapshots
from agentrunner.state.run_state import Criterion
from agentrunner.verification.checks import ReadFile
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.syntax.calls import names_called, names_changed
from agentrunner.verification.syntax.empty import empty_functions
from agentrunner.verification.syntax.empty_c import ENDINGS, emptied_in_c
from agentrunner.verification.syntax.find import find_test
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.substance import is_empty_test
from agentrunner.verification.syntax.words import identifiers
from agentrunner.verification.target import Measured, Run, Target
from agentrunner.verification.world import SnapshotTrees

UNSOUND = re.compile(
    r"SyntaxError|IndentationError|TabError|fixture '[^']+' not found|[Tt]imed? ?out|TimeoutError"
)
"""A red of this kind says nothing about the code that is tested."""
MISSING = re.compile(
    r"ImportError|ModuleNotFoundError|cannot find|Cannot find|not found|unresolved|undefined"
    r"|NameError|AttributeError|is not defined|is not a function|has no attribute|cannot import"
    r"|does not provide an export|no field|no method|undeclared|E0\d{3}|cannot find symbol"
)
"""A red that names something which is not there."""
ASSERTED = re.compile(r"\s*(?:[\w.]*\.)?assert(?:ion\w*)?\b", re.IGNORECASE)
"""The beginning of an assertion that failed; it may quote the message of another error."""
WORD = re.compile(r"[^\W\d]\w{2,}")
MOST_READ = 500_000
"""Bytes of a file without a grammar that are read for its words."""


@dataclass(frozen=True)
class ShownTests:
    """Tests of the worker that show something."""

    names: list[str] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)
    """Identifiers in them."""
    notes: list[str] = field(default_factory=list)
    why: str = ""
    """Why the first of the others shows nothing."""


@dataclass(frozen=True)
class TakenOut:
    """Tries tests of the worker. Methods raise what runs in rooms raise."""

    snapshots: Snapshots

    async def shown(
        self,
        run: Run,
        target: Target,
        names: Sequence[str],
        world: SnapshotTrees,
        now: Results,
        criteria: Sequence[Criterion],
    ) -> ShownTests:
        """Those of `names`, which pass on the new tree, that show something."""
        if not names:
            return ShownTests()
        read = await asyncio.to_thread(self.snapshots.reader, world.new)
        read_old = await asyncio.to_thread(self.snapshots.reader, world.old)
        added = await asyncio.to_thread(_changed_names, world, read_old, read)
        wanted = added | {i for c in criteria for i in identifiers(f"{c.description} {c.detail}")}
        files = {test.name: test for test in now.tests}
        refused: dict[str, str] = {}
        uses: dict[str, set[str]] = {}
        words: dict[str, set[str]] = {}
        for name in names:
            refused[name], uses[name], words[name] = await asyncio.to_thread(
                _read_test, files[name], target.cwd, read
            )
        left = [name for name in names if not refused[name]]
        if left:
            old = await run(target, world.mixed, left)
            if any("[" in name for name in left) and not _ran_any(old, left):
                # A case of a list that only the new tree gives keeps the tool from running others.
                old = await run(target, world.mixed, ())
            refused |= _red_on_old_code(left, old, files, added)
            left = [name for name in left if not refused[name]]
        notes: list[str] = []
        if left:
            hollow = await asyncio.to_thread(self._emptied, world, read_old, read)
            if hollow is None:
                notes.append("not struck: no function was changed in a language that is known")
                # What is no function may well be named in a text of the test: a column, a key.
                refused |= {
                    n: "" if added & words[n] else _unrelated(uses[n], wanted) for n in left
                }
            else:
                struck = await run(target, hollow, left)
                refused |= _red_where_empty(left, struck)
            left = [name for name in left if not refused[name]]
        why = next((f"{name}: {text}" for name, text in refused.items() if text), "")
        return ShownTests(left, {one for name in left for one in uses[name]}, notes, why)

    async def emptied(self, world: SnapshotTrees) -> str | None:
        """The new tree with empty bodies where functions were added or altered; None for none."""
        read = await asyncio.to_thread(self.snapshots.reader, world.new)
        read_old = await asyncio.to_thread(self.snapshots.reader, world.old)
        return await asyncio.to_thread(self._emptied, world, read_old, read)

    def _emptied(self, world: SnapshotTrees, read_old: ReadFile, read: ReadFile) -> str | None:
        entries = self.snapshots.list(world.new)
        changed: dict[str, Entry | None] = {}
        for path in world.product:
            after = read(path)
            if after is None or path not in entries:
                continue
            empty = _empty(path, read_old(path), after)
            if empty is not None:
                changed[path] = (entries[path][0], self.snapshots.write_blob(empty))
        return self.snapshots.combine(world.new, changed) if changed else None


def _empty(path: str, before: bytes | None, after: bytes) -> bytes | None:
    """A file whose changed functions do nothing; None where none is known to have changed."""
    language = language_of(path)
    if language is not None:
        made = empty_functions(before, after, language)
        return made.source if made is not None else None
    return emptied_in_c(before, after) if path.endswith(ENDINGS) else None


def _changed_names(world: SnapshotTrees, read_old: ReadFile, read: ReadFile) -> set[str]:
    """Names that the work added or altered: of functions, classes and modules.

    Of files without a grammar all words that are new in them.
    """
    found: set[str] = set()
    for path in world.product:
        stem = posixpath.basename(path).split(".")[0]
        if path not in world.old_paths:
            found |= {stem, *posixpath.dirname(path).split("/")} - {""}
        language, after = language_of(path), read(path)
        if after is None:
            continue
        if language is not None:
            found |= names_changed(read_old(path), after, language)
        else:
            found |= _words(after) - _words(read_old(path) or b"")
    return found


def _words(source: bytes) -> set[str]:
    return set(WORD.findall(source[:MOST_READ].decode("utf-8", "replace")))


def _read_test(test: TestResult, cwd: str, read: ReadFile) -> tuple[str, set[str], set[str]]:
    """Why a test shows nothing, by its text alone ("" for none), what it uses, its words."""
    path = posixpath.normpath(posixpath.join(cwd, test.file)) if test.file else ""
    language, source = language_of(path), read(path) if path else None
    span = find_test(source, language, test.name) if language and source is not None else None
    if language is None or source is None or span is None:
        return "", set(), set()
    if is_empty_test(source, language, span):
        return "it asserts nothing", set(), set()
    return "", names_called(source, language, span), _words(source[span.start : span.end])


def _unrelated(uses: set[str], wanted: set[str]) -> str:
    return "" if not uses or uses & wanted else "it uses nothing that was changed or asked for"


def _red_on_old_code(
    names: Sequence[str], old: Measured, files: dict[str, TestResult], added: set[str]
) -> dict[str, str]:
    """Why tests are not red on the old code as tests of the work are; "" where they are."""
    if old.ran.timed_out:
        return dict.fromkeys(names, "it does not end on the old code")
    if old.results is None:
        if old.passed:
            return dict.fromkeys(names, "it passes on the old code as well")
        missing = _names_missing(old.ran.stdout + old.ran.stderr, added)
        return dict.fromkeys(names, "" if missing else "the tests do not run on the old code")
    broken = [test for test in old.results.red if test.outcome == "error"]
    found = {}
    for name in names:
        results = old.results.named(name)
        if results and all(test.outcome == "passed" for test in results):
            found[name] = "it passes on the old code as well"
            continue
        red = [test for test in results if test.red]
        if any(_is_sound(test, added) for test in red):
            found[name] = ""
            continue
        mine = [test for test in broken if test.file == files[name].file or not test.file]
        text = "\n".join(test.message for test in [*red, *mine])
        text = text or old.ran.stdout + old.ran.stderr
        found[name] = (
            ""
            if _names_missing(text, added)
            else "on the old code it fails for a reason that is not the work"
        )
    return found


def _ran_any(ran: Measured, names: Sequence[str]) -> bool:
    return ran.results is not None and any(ran.results.named(name) for name in names)


def _is_sound(test: TestResult, added: set[str]) -> bool:
    """Whether a red says something about the code: an assertion, or what the work adds."""
    missing = MISSING.search(test.message) and not ASSERTED.match(test.message)
    if test.outcome == "error" or missing:
        return _names_missing(test.message, added)
    return not UNSOUND.search(test.message)


def _names_missing(text: str, added: set[str]) -> bool:
    """Whether an output names something that the work adds."""
    return not added.isdisjoint(re.findall(r"\w+", text))


def _red_where_empty(names: Sequence[str], struck: Measured) -> dict[str, str]:
    if struck.results is None:
        text = "it passes with the changed functions emptied" if struck.passed else ""
        return dict.fromkeys(names, text)
    return {
        name: "it passes with the changed functions emptied" if struck.results.passed(name) else ""
        for name in names
    }
