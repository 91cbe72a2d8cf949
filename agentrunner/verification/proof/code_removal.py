"""Whether a test that the worker wrote shows the work.

It has to be red on the old code because the work is missing there, and red where the functions that
the work added or altered have empty bodies. A test that passes there is not about the work.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agentrunner.git.snapshots import Snapshots
from agentrunner.state.red_tests import first_line
from agentrunner.state.run_state import Criterion
from agentrunner.text.mentions import alone
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.wanted_tests import asks_for_tests_alone
from agentrunner.verification.proof.named_work import NamedWork
from agentrunner.verification.proof.needed_options import not_asked_for
from agentrunner.verification.proof.new_programs import new_programs
from agentrunner.verification.proof.other_tests import ACCEPTS_MORE, find_wider_answers
from agentrunner.verification.proof.switches import find_switched_on
from agentrunner.verification.proof.trees_without_work import TreesWithoutWork, turns_red
from agentrunner.verification.proof.unchanged_code import is_only_text
from agentrunner.verification.results.model import ReadFile, Results, TestResult
from agentrunner.verification.syntax.calls import (
    names_called,
    names_changed,
    names_declared,
    users_of,
)
from agentrunner.verification.syntax.imports import imported
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.substance import is_empty_test
from agentrunner.verification.syntax.test_finder import find_test
from agentrunner.verification.syntax.words import identifiers
from agentrunner.verification.target import Measured, Run, Target, in_repo
from agentrunner.verification.world import SnapshotTrees

SAYS_NOTHING = re.compile(
    r"SyntaxError|IndentationError|TabError|fixture '[^']+' not found|[Tt]imed? ?out|TimeoutError"
)
"""A test that is red for such a reason says nothing about the code under test."""
NOT_TRIED = "not tried without the work: no function was changed in a language that is known"
MISSING = re.compile(
    r"ImportError|ModuleNotFoundError|cannot find|Cannot find|not found|unresolved|undefined"
    r"|NameError|AttributeError|is not defined|is not a function|has no attribute|cannot import"
    r"|does not provide an export|no field|no method|undeclared|E0\d{3}|cannot find symbol"
    r"|is not exported|Undefined subroutine|Can't locate"
)
"""Messages of red tests that name something which does not exist."""
DOUBLED = re.compile(
    r"`(\w+)` is defined multiple times|duplicate definitions with name `(\w+)`"
    r"|\b(\w+) redeclared|redefinition of \W?(\w+)"
)
"""Messages of compilers about a name that two places define: the tests bring their own."""
OF_NOTHING = re.compile(
    r"Cannot (?:read|set) propert(?:y|ies) .*?of (?:undefined|null)"
    r"|(?:undefined|null) is not (?:iterable|an object)"
    r"|(?:AttributeError: )?'NoneType' object has no attribute|undefined method .*? for nil\b"
    r"|^\S+:\d+: AttributeError$",
    re.MULTILINE,
)
"""What a test that runs says where the old code returned nothing: no name is missing there. Where
one is, other lines of pytest's report name it, too, than the last, which tells the place."""
ASSERTED = re.compile(
    r"\s*(?:(?:[\w.]*\.)?assert(?:ion\w*)?\b|(?:\w*Error: )?(?:\?\[[\d;]*m)*expect(?:ed)?\b"
    r"|Failed: DID NOT RAISE|Failed asserting\b|(?:\w*Error: |Error \[\w+\]: )?Missing expected\b"
    r"|\[[\w:., ]+\] expected but\b|test did not panic\b)",
    re.IGNORECASE,
)
"""The beginning of an assertion that failed, also by the error that did not come; it may quote the
message of another error.

The colours that Jest writes have their first character replaced.
"""
BAD_SYNTAX = re.compile(
    r"^.*SyntaxError: (?!.*(?:does not provide an export|[Nn]amed export )).*$", re.MULTILINE
)
"""A file that cannot be parsed; an export that is missing in an ES module has the same kind."""
JAVASCRIPT = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
MOST_SEEN = 200
"""Characters of the reason that was seen, in a refusal."""
WORD = re.compile(r"[^\W\d]\w{2,}")
ONLY_TEXT = "the work is nothing but comments and docstrings"
EMPTIED = "it passes with the changed functions emptied"
OLD_EMPTIED = "it passes with the functions emptied that it is to test"
ENDLESS = "it does not end on the old code"
MOST_ALONE = 5
"""So many tests are run one by one where all together do not end."""
RAISING = "it only asks for the exception that stands where the work should be"
NO_QUESTION = (EMPTIED, RAISING, ACCEPTS_MORE)
MOST_FILES = 2_000
"""Files of code that are searched for the names of data."""
MOST_READ = 500_000
"""Bytes of a file without a grammar that are searched for words."""


@dataclass(frozen=True)
class ShownTests:
    """The worker's tests that show something."""

    names: list[str] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)
    """Identifiers that these tests use."""
    notes: list[str] = field(default_factory=list)
    why: str = ""
    """Why the first of the other tests shows nothing."""
    unasked: str = ""
    """Which function that the requirements name is not there, or is asked by no test."""
    asks_nothing: bool = False
    """Whether all of them pass where the work has no bodies, only raises, or does otherwise."""
    of_old_code: bool = False
    """Whether they are what was asked for: tests of code that stood."""


@dataclass(frozen=True)
class CodeRemoval:
    """Tries tests of the worker. Methods raise what running in rooms raises."""

    trees: TreesWithoutWork
    known: set[tuple[str, str]] = field(default_factory=set)
    """Trees and functions of them that some test asks."""

    async def shown(
        self,
        run: Run,
        target: Target,
        names: Sequence[str],
        world: SnapshotTrees,
        now: Results,
        criteria: Sequence[Criterion],
        asked: str = "",
        whole: Target | None = None,
        stood: Sequence[str] = (),
    ) -> ShownTests:
        """Those of `names`, which pass on the new tree, that show something.

        `asked` is what people ask for; functions of the work that it names have to be asked by some
        test of `whole`, which is the target of all tests. `stood` are tests of others that turned
        green.
        """
        stood = [name for name in stood if now.passed(name)]  # others have moved since
        if not names and not stood:
            return ShownTests()
        read = await asyncio.to_thread(self.trees.snapshots.reader, world.new)
        read_old = await asyncio.to_thread(self.trees.snapshots.reader, world.old)
        only_text = await asyncio.to_thread(is_only_text, world, read_old, read, asked)
        if names and only_text:
            return ShownTests(why=f"{names[0]}: {ONLY_TEXT}")
        names_of_work = await asyncio.to_thread(_changed_names, world, read_old, read, asked)
        removed = await asyncio.to_thread(_removed_names, world, read_old, read)
        touched = await asyncio.to_thread(_touched_names, self.trees.snapshots, world, asked)
        wanted = names_of_work | touched | identifiers(asked)
        wanted |= {i for c in criteria for i in identifiers(f"{c.description} {c.detail}")}
        files = {test.name: test for test in now.tests}
        refused: dict[str, str] = {}
        uses: dict[str, set[str]] = {}
        words: dict[str, set[str]] = {}
        for name in names:
            refused[name], uses[name], words[name] = await asyncio.to_thread(
                _look_at_text, files[name], target.cwd, read
            )
        candidates = [name for name in names if not refused[name]]
        if candidates and not world.product and asks_for_tests_alone(asked):
            return await self._of_code_that_stood(run, target, candidates, world, asked, uses)
        if candidates:
            old = await run(target, world.mixed, candidates)
            if any("[" in name for name in candidates) and not _has_any_of(old, candidates):
                # A case from a list that only the new tree has keeps the tool from running others.
                old = await run(target, world.mixed, ())
            brought = await asyncio.to_thread(_imported_names, world, read_old, read)
            known = names_of_work | brought
            if old.ran.timed_out:  # one of them hides what the others would say
                alone = candidates[:MOST_ALONE]
                refused |= dict.fromkeys(candidates, ENDLESS)
                for name in alone:
                    old = await run(target, world.mixed, [name])
                    endless = {name: "" if uses[name] & wanted else ENDLESS}
                    refused |= (
                        endless
                        if old.ran.timed_out
                        else _why_not_red_on_old_code([name], old, files, known)
                    )
            else:
                refused |= _why_not_red_on_old_code(candidates, old, files, known)
                unsaid = [name for name in candidates if refused[name]]
                for name in _not_reached(unsaid, old)[:MOST_ALONE]:
                    alone_ran = await run(target, world.mixed, [name])
                    refused |= _why_not_red_on_old_code([name], alone_ran, files, known)
            candidates = [name for name in candidates if not refused[name]]
        notes: list[str] = []
        if candidates:
            emptied = await self.trees.emptied(world, text=True)
            if emptied is None and await self.trees.is_empty(world):
                refused |= dict.fromkeys(candidates, EMPTIED)
            elif emptied is None:
                notes.append(NOT_TRIED)
                # What is no function may be named in a text of the test: a column, a key. And
                # a program is started by its file's name, mostly in a helper of the tests.
                started = await asyncio.to_thread(
                    _that_start, [files[n] for n in candidates], target.cwd, world.product, read
                )
                refused |= {
                    n: ""
                    if n in started or (names_of_work | touched | removed) & words[n]
                    else _why_unrelated(uses[n], wanted)
                    for n in candidates
                }
            else:
                ran = await run(target, emptied, candidates)
                refused |= _why_not_red_where_empty(candidates, ran, EMPTIED)
            candidates = [name for name in candidates if not refused[name]]
        if candidates:
            raising = await self.trees.only_raising(world, asked)
            if raising is not None:
                ran = await run(target, raising, candidates)
                refused |= _why_not_red_where_empty(candidates, ran, RAISING)
                candidates = [name for name in candidates if not refused[name]]
        if candidates:
            own: dict[str, list[str]] = {}
            for name in candidates:
                own.setdefault(in_repo(files[name].file, target.cwd), []).append(name)
            refused |= await find_wider_answers(
                run, target, self.trees.snapshots, world, own, asked
            )
            candidates = [name for name in candidates if not refused[name]]
        if candidates:
            places: dict[str, list[str]] = {}
            for name in [*candidates, *stood]:
                places.setdefault(in_repo(files[name].file, target.cwd), []).append(name)
            snapshots = self.trees.snapshots
            refused |= await find_switched_on(run, target, snapshots, world, places, asked)
            candidates = [name for name in candidates if not refused[name]]
            unasked = ""
            if whole is None or whole.id == target.id:
                unasked = await not_asked_for(run, target, snapshots, world, places, asked, now)
            if unasked:
                return ShownTests(why=unasked, unasked=unasked)
        if candidates or stood:
            paths = {in_repo(files[name].file, target.cwd) for name in [*candidates, *stood]}
            texts = await asyncio.to_thread(lambda: [read(path) or b"" for path in sorted(paths)])
            named = NamedWork(
                self.trees, run, target, whole or target, world, asked, self.known, texts
            )
            silent = [name for name, why in refused.items() if why == EMPTIED]
            unasked = await named.unasked(now, candidates, stood, refused, silent)
            if unasked:
                return ShownTests(why=unasked, unasked=unasked)
            notes += named.notes
        why = next((f"{name}: {text}" for name, text in refused.items() if text), "")
        return ShownTests(
            candidates,
            {one for name in candidates for one in uses[name]},
            notes,
            why,
            asks_nothing=bool(names) and all(refused[name] in NO_QUESTION for name in names),
        )

    async def _of_code_that_stood(
        self,
        run: Run,
        target: Target,
        names: Sequence[str],
        world: SnapshotTrees,
        asked: str,
        uses: Mapping[str, set[str]],
    ) -> ShownTests:
        """Tests that are the work themselves: they have to fail where the code they are for does
        nothing."""
        tree = await self.trees.without_code(world, asked)
        if tree is None:
            return ShownTests(why=f"{names[0]}: it passes on the old code as well")
        refused = _why_not_red_where_empty(names, await run(target, tree, names), OLD_EMPTIED)
        shown = [name for name in names if not refused[name]]
        why = next((f"{name}: {text}" for name, text in refused.items() if text), "")
        found = {one for name in shown for one in uses[name]}
        return ShownTests(shown, found, [], why, asks_nothing=not shown, of_old_code=True)


def _changed_names(
    world: SnapshotTrees, read_old: ReadFile, read: ReadFile, asked: str = ""
) -> set[str]:
    """Names of functions, classes and modules that the work added or altered.

    For files without a grammar all words that are new in them; for others those that are `asked`
    for: a file may give out what another one has.
    """
    found = new_programs(world.product, world.old_paths, read)
    for path in world.product:
        stem = posixpath.basename(path).split(".")[0]
        if path not in world.old_paths:
            found |= {stem, *posixpath.dirname(path).split("/")} - {""}
        language, after = language_of(path), read(path)
        if after is None:
            continue
        if language is not None:
            found |= names_changed(read_old(path), after, language)
            if (before := read_old(path)) is not None:
                found |= (_words(after) - _words(before)) & _words(to_bytes(asked))
        else:
            found |= _words(after) - _words(read_old(path) or b"")
    return found


def _imported_names(world: SnapshotTrees, read_old: ReadFile, read: ReadFile) -> set[str]:
    """Names that files of the work import now: tests put doubles in their place."""
    found: set[str] = set()
    for path in world.product:
        language, before, after = language_of(path), read_old(path), read(path)
        if language is not None and before is not None and after is not None:
            found |= imported(after, language).keys() - imported(before, language).keys()
    return found


def _removed_names(world: SnapshotTrees, read_old: ReadFile, read: ReadFile) -> set[str]:
    """Names that files of the work declared and do not declare any more."""
    found: set[str] = set()
    for path in world.product:
        language, before = language_of(path), read_old(path)
        if language is not None and before is not None:
            after = read(path)
            still = names_declared(after, language) if after is not None else set()
            found |= names_declared(before, language) - still
    return found


def _touched_names(snapshots: Snapshots, world: SnapshotTrees, asked: str) -> set[str]:
    """Names of functions that use what the work altered beside functions.

    This is a constant of their file, or a file without a grammar, such as a table of settings,
    that their file names. A word of such a file says nothing: a test may read it by itself. Where
    `asked` writes a text of the altered lines, functions that use these functions count as well.
    """
    read_old, read = snapshots.reader(world.old), snapshots.reader(world.new)
    found: set[str] = set()
    data: list[str] = []
    for path in world.product:
        language, before, after = language_of(path), read_old(path), read(path)
        if before is None or after is None:
            continue
        if language is not None:
            names = names_changed(before, after, language)
            through = _is_written(before, after, asked)
            found |= users_of(after, language, names, through=through)
        else:
            data.append(posixpath.basename(path))
    return found | (_users_of_data(snapshots, world, data) if data else set())


def _is_written(before: bytes, after: bytes, asked: str) -> bool:
    """Whether a text in quotes on a line that is new stands in what was asked for.

    As it is written, or as what it means: people write `\\e` where code has `"\\\\e"`.
    """
    old = set(before.splitlines())
    new = b"\n".join(line for line in after.splitlines() if line not in old)
    texts = re.findall(r"[\"'`]([^\"'`\n]{2,80})[\"'`]", new.decode("utf-8", "replace"))
    texts += [one.replace("\\\\", "\\") for one in texts if "\\\\" in one]
    return any(re.search(rf"(?<!\w){re.escape(text)}(?!\w)", asked) for text in texts)


def _users_of_data(snapshots: Snapshots, world: SnapshotTrees, data: Sequence[str]) -> set[str]:
    """Names of functions in files of code that name data, and of functions that use these.

    Tests that the run changed are left out.
    """
    was, now = snapshots.list(world.old), snapshots.list(world.new)
    paths = [
        path
        for path in sorted(now)
        if language_of(path) and (path in world.product or was.get(path) == now[path])
    ]
    texts = snapshots.read_many(world.new, paths[:MOST_FILES])
    named = re.compile(to_bytes("|".join(alone(one, before=".") for one in data)))
    found: set[str] = set()
    for path, text in texts.items():
        if text is not None and named.search(text):
            found |= names_declared(text, language_of(path) or "")
    for path, text in texts.items():
        if text is not None and found:
            found |= users_of(text, language_of(path) or "", found)
    return found


def _words(source: bytes) -> set[str]:
    return set(WORD.findall(source[:MOST_READ].decode("utf-8", "replace")))


def _look_at_text(test: TestResult, cwd: str, read: ReadFile) -> tuple[str, set[str], set[str]]:
    """Why a test's text shows nothing ("" if it may), what the test uses, and its words."""
    path = posixpath.normpath(posixpath.join(cwd, test.file)) if test.file else ""
    language, source = language_of(path), read(path) if path else None
    span = find_test(source, language, test.name) if language and source is not None else None
    if language is None or source is None or span is None:
        return "", set(), set()
    if is_empty_test(source, language, span):
        return "it asserts nothing", set(), set()
    return "", names_called(source, language, span), _words(source[span.start : span.end])


def _that_start(
    tests: Sequence[TestResult], cwd: str, product: Sequence[str], read: ReadFile
) -> set[str]:
    """Names of tests whose file names a program of the work."""
    names = [posixpath.basename(path) for path in product if language_of(path) is not None]
    named = re.compile(to_bytes("|".join(rf"[\"'`/ ]{re.escape(one)}[\"'`\s]" for one in names)))
    places = {in_repo(test.file, cwd) for test in tests if test.file} if names else set()
    found = {path for path in places if named.search(read(path) or b"")}
    return {test.name for test in tests if test.file and in_repo(test.file, cwd) in found}


def _why_unrelated(uses: set[str], wanted: set[str]) -> str:
    return "" if not uses or uses & wanted else "it uses nothing that was changed or asked for"


def _why_not_red_on_old_code(
    names: Sequence[str], old: Measured, files: dict[str, TestResult], names_of_work: set[str]
) -> dict[str, str]:
    """Why each test is not red on the old code because of the work; "" where it is."""
    if old.results is None:
        if old.passed:
            return dict.fromkeys(names, "it passes on the old code as well")
        text = old.ran.stdout + old.ran.stderr
        return {
            name: ""
            if _names_missing(text, names_of_work, files[name].file)
            else "the tests do not run on the old code"
            for name in names
        }
    broken = [test for test in old.results.red if test.outcome == "error"]
    found = {}
    for name in names:
        results = old.results.named(name)
        if results and all(test.outcome == "passed" for test in results):
            found[name] = "it passes on the old code as well"
            continue
        red = [test for test in results if test.red]
        if any(_is_sound(test, names_of_work) for test in red):
            found[name] = ""
            continue
        of_this_file = [test for test in broken if test.file == files[name].file or not test.file]
        text = "\n".join(test.message for test in [*red, *of_this_file])
        text = text or old.ran.stdout + old.ran.stderr
        seen = [*red, *of_this_file]
        if of_this_file:  # a report that was cut off says less than what stands above it
            lines = (old.ran.stdout + old.ran.stderr).splitlines()
            text += "\n" + "\n".join(one for one in lines if MISSING.search(one))
        is_missing = _names_missing(text, names_of_work, files[name].file)
        found[name] = "" if is_missing else _why_unsound(seen)
    return found


def _not_reached(names: Sequence[str], ran: Measured) -> list[str]:
    """Tests that have no result, as another one ended the run."""
    if ran.results is None or ran.results.all_named:
        return []
    return [name for name in names if not ran.results.named(name)]


def _why_unsound(seen: Sequence[TestResult]) -> str:
    """What was seen of a test that is not red on the old code because of the work."""
    if not seen:
        return "on the old code it is not run"
    reason = first_line("\n".join(test.message for test in seen))
    return (
        "on the old code it fails for a reason that is not the work"
        + (f", {reason[:MOST_SEEN]}" if reason else "")
        + "; to settle it, write a test that fails there by an assertion or because a name"
        " that the work adds is missing"
    )


def _has_any_of(ran: Measured, names: Sequence[str]) -> bool:
    return ran.results is not None and any(ran.results.named(name) for name in names)


def _is_sound(test: TestResult, names_of_work: set[str]) -> bool:
    """Whether a red test says something about the code: it asserts, or needs what the work adds."""
    text = OF_NOTHING.sub("", test.message)
    missing = MISSING.search(text) and not ASSERTED.match(text)
    if test.outcome == "error" or missing:
        return _names_missing(test.message, names_of_work, test.file)
    # An assertion quotes the code, which may well be called `timeout`.
    return bool(ASSERTED.match(text)) or not SAYS_NOTHING.search(test.message)


def _names_missing(text: str, names_of_work: set[str], file: str = "") -> bool:
    """Whether an output contains a name that the work adds.

    What the old code and the tests both define is not missing: the tests try their own double. The
    path of the test's own file in JavaScript does not count, which Node's messages contain:
    `ship.test.js` is not about `ship` because of its name.
    """
    doubled = {name for found in DOUBLED.findall(text) for name in found if name}
    text = BAD_SYNTAX.sub("", text)
    if file.endswith(JAVASCRIPT):
        text = re.sub(rf"(?<![\w./-])(?:file://)?(?:/\S*/|\./)?{re.escape(file)}\b", "", text)
    return names_of_work.isdisjoint(doubled) and not names_of_work.isdisjoint(
        re.findall(r"\w+", text)
    )


def _why_not_red_where_empty(names: Sequence[str], ran: Measured, why: str) -> dict[str, str]:
    return {name: "" if turns_red(ran, [name]) else why for name in names}
