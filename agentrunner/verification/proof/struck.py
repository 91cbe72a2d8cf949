"""Whether a test that the worker wrote shows the work.

It has to be red on the old code because the work is missing there, and red where the functions that
the work added or altered have empty bodies. A test that passes there is not about the work.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import Snapshots
from agentrunner.state.red_tests import first_line
from agentrunner.state.run_state import Criterion
from agentrunner.verification.checks import ReadFile
from agentrunner.verification.differential import in_repo
from agentrunner.verification.proof.without_options import not_asked_for
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.syntax.calls import names_called, names_changed
from agentrunner.verification.syntax.empty import changed_functions, empty_functions, last_name
from agentrunner.verification.syntax.empty_c import ENDINGS, changed_in_c, emptied_in_c
from agentrunner.verification.syntax.find import find_test
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.raising import only_raising, that_only_raise
from agentrunner.verification.syntax.stand_ins import new_functions, stand_ins, unread
from agentrunner.verification.syntax.substance import is_empty_test
from agentrunner.verification.syntax.words import identifiers, signatures
from agentrunner.verification.target import Measured, Run, Target
from agentrunner.verification.world import SnapshotTrees

SAYS_NOTHING = re.compile(
    r"SyntaxError|IndentationError|TabError|fixture '[^']+' not found|[Tt]imed? ?out|TimeoutError"
)
"""A test that is red for such a reason says nothing about the code under test."""
MISSING = re.compile(
    r"ImportError|ModuleNotFoundError|cannot find|Cannot find|not found|unresolved|undefined"
    r"|NameError|AttributeError|is not defined|is not a function|has no attribute|cannot import"
    r"|does not provide an export|no field|no method|undeclared|E0\d{3}|cannot find symbol"
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
)
"""What a test that runs says where the old code returned nothing: no name is missing there."""
ASSERTED = re.compile(
    r"\s*(?:(?:[\w.]*\.)?assert(?:ion\w*)?\b|(?:\w*Error: )?(?:\?\[[\d;]*m)*expect\b)",
    re.IGNORECASE,
)
"""The beginning of an assertion that failed; it may quote the message of another error.

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
EMPTIED = "it passes with the changed functions emptied"
RAISING = "it only asks for the exception that stands where the work should be"
NOT_ASKED = "no test asks `{}`, which the requirements name: with an empty body all stay green"
ONE_ANSWER = "`{}`, which the requirements name with what it is handed, {}"
SAME_ANSWER = "every test that asks `{}`, which the requirements name, also passes where it {}"
NOT_THERE = "`{}`, which the requirements name, does nothing but raise an exception"
UNUSED = "`{}` does not use its new `{}`, which the requirements name"
MOST_NAMED = 5
"""So many functions that the requirements name are emptied one by one."""
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
    """Whether all of them pass where the work has no bodies, or only raises."""


@dataclass(frozen=True)
class TakenOut:
    """Tries tests of the worker. Methods raise what running in rooms raises."""

    snapshots: Snapshots
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
        read = await asyncio.to_thread(self.snapshots.reader, world.new)
        read_old = await asyncio.to_thread(self.snapshots.reader, world.old)
        names_of_work = await asyncio.to_thread(_changed_names, world, read_old, read)
        wanted = names_of_work | {
            i for c in criteria for i in identifiers(f"{c.description} {c.detail}")
        }
        files = {test.name: test for test in now.tests}
        refused: dict[str, str] = {}
        uses: dict[str, set[str]] = {}
        words: dict[str, set[str]] = {}
        for name in names:
            refused[name], uses[name], words[name] = await asyncio.to_thread(
                _look_at_text, files[name], target.cwd, read
            )
        candidates = [name for name in names if not refused[name]]
        if candidates:
            old = await run(target, world.mixed, candidates)
            if any("[" in name for name in candidates) and not _has_any_of(old, candidates):
                # A case from a list that only the new tree has keeps the tool from running others.
                old = await run(target, world.mixed, ())
            refused |= _why_not_red_on_old_code(candidates, old, files, names_of_work)
            candidates = [name for name in candidates if not refused[name]]
        notes: list[str] = []
        if candidates:
            emptied = await asyncio.to_thread(self._emptied, world, read_old, read)
            if emptied is None:
                notes.append("not struck: no function was changed in a language that is known")
                # What is no function may be named in a text of the test: a column, a key.
                refused |= {
                    n: "" if names_of_work & words[n] else _why_unrelated(uses[n], wanted)
                    for n in candidates
                }
            else:
                struck = await run(target, emptied, candidates)
                refused |= _why_not_red_where_empty(candidates, struck, EMPTIED)
            candidates = [name for name in candidates if not refused[name]]
        if candidates:
            raising = await asyncio.to_thread(self._only_raising, world, read_old, read, asked)
            if raising is not None:
                struck = await run(target, raising, candidates)
                refused |= _why_not_red_where_empty(candidates, struck, RAISING)
                candidates = [name for name in candidates if not refused[name]]
        if candidates and (whole is None or whole.id == target.id):
            places: dict[str, list[str]] = {}
            for name in [*candidates, *stood]:
                places.setdefault(in_repo(files[name].file, target.cwd), []).append(name)
            unasked = await not_asked_for(run, target, self.snapshots, world, places, asked)
            if unasked:
                return ShownTests(why=unasked, unasked=unasked)
        if candidates or stood:
            unasked = await self._unasked(
                run, target, whole or target, world, now, asked, candidates, stood, refused
            )
            if unasked:
                return ShownTests(why=unasked, unasked=unasked)
        why = next((f"{name}: {text}" for name, text in refused.items() if text), "")
        return ShownTests(
            candidates,
            {one for name in candidates for one in uses[name]},
            notes,
            why,
            asks_nothing=bool(names) and all(refused[name] in (EMPTIED, RAISING) for name in names),
        )

    async def _unasked(
        self,
        run: Run,
        target: Target,
        whole: Target,
        world: SnapshotTrees,
        now: Results,
        asked: str,
        candidates: Sequence[str],
        stood: Sequence[str],
        refused: Mapping[str, str],
    ) -> str:
        """Why a function of the work that people name is not there or asked by no test; else "".

        Beside tests of others (`stood`) alone, only functions that are new have to be asked.
        """
        read = await asyncio.to_thread(self.snapshots.reader, world.new)
        read_old = await asyncio.to_thread(self.snapshots.reader, world.old)
        names, added, idle = await asyncio.to_thread(_named_functions, world, read_old, read, asked)
        if idle:
            return NOT_THERE.format(idle[0])
        if unused := await asyncio.to_thread(_unused, world, read_old, read, asked):
            return UNUSED.format(*unused)
        elsewhere = _AllTests(run, whole, world, now if whole.id == target.id else None, refused)
        unasked, is_asked = "", False
        for name in [*added, *names][:MOST_NAMED]:
            # A text may name what stood before in passing: that one such function is asked is
            # enough, and none has to be where it asks for functions that are new.
            if name not in added and (added or is_asked or not candidates):
                continue
            if (world.new, name) in self.known:
                is_asked = True
                continue
            tree = await asyncio.to_thread(self._emptied, world, read_old, read, name)
            if tree is None:
                continue
            first = [*candidates, *stood]
            ran = await run(target, tree, first)
            red = [one for one in first if _turns_red(ran, [one])]
            asking: bool | None = bool(red)
            if not asking:
                asking = await elsewhere.is_red(tree)
            if asking is None:
                continue  # it says nothing
            if not asking:
                unasked = unasked or NOT_ASKED.format(name)
                if name in added:
                    break
                continue
            if name in added and candidates:
                same = await self._answers_alike(
                    run, target, elsewhere, world, asked, first, name, several=len(red) > 1
                )
                if same:
                    return same
            is_asked = True
            self.known.add((world.new, name))
        return unasked if added or not is_asked else ""

    async def _answers_alike(
        self,
        run: Run,
        target: Target,
        elsewhere: _AllTests,
        world: SnapshotTrees,
        asked: str,
        candidates: Sequence[str],
        name: str,
        *,
        several: bool,
    ) -> str:
        """Why the tests do not ask what a new function makes of what it is handed; else "".

        One test may ask for one value; where `several` ask the function, they ask for several.
        """
        read = await asyncio.to_thread(self.snapshots.reader, world.new)
        read_old = await asyncio.to_thread(self.snapshots.reader, world.old)
        for path in world.product:
            language, after = language_of(path), read(path)
            if language is None or after is None:
                continue
            for one in stand_ins(read_old(path), after, language, name, asked):
                if one.own:
                    return ONE_ANSWER.format(name, one.what)
                if one.constant and not several:
                    continue
                tree = await asyncio.to_thread(
                    self._changed, world, read_old, read, _only_in(path, one.source)
                )
                if tree is None or _turns_red(await run(target, tree, candidates), candidates):
                    continue
                if await elsewhere.is_red(tree) is False:
                    return SAME_ANSWER.format(name, one.what)
        return ""

    async def emptied(
        self, world: SnapshotTrees, *, added: bool = False, memory: bool = False
    ) -> str | None:
        """The new tree with empty bodies in functions that were added or altered, or None.

        With `added`, altered functions stay as they are. With `memory`, functions in C that return
        a pointer return memory full of zeros.
        """
        read = await asyncio.to_thread(self.snapshots.reader, world.new)
        read_old = await asyncio.to_thread(self.snapshots.reader, world.old)
        return await asyncio.to_thread(
            self._emptied, world, read_old, read, added=added, memory=memory
        )

    def _emptied(
        self,
        world: SnapshotTrees,
        read_old: ReadFile,
        read: ReadFile,
        only: str = "",
        *,
        added: bool = False,
        memory: bool = False,
    ) -> str | None:
        def change(path: str, before: bytes | None, after: bytes) -> bytes | None:
            return _with_empty_functions(path, before, after, only, added=added, memory=memory)

        return self._changed(world, read_old, read, change)

    def _only_raising(
        self, world: SnapshotTrees, read_old: ReadFile, read: ReadFile, asked: str
    ) -> str | None:
        """The new tree with changed functions raising at once where they raise in place of work,
        and empty elsewhere; None where no function does that."""
        found: list[str] = []

        def change(path: str, before: bytes | None, after: bytes) -> bytes | None:
            language = language_of(path)
            if language is None:
                return _with_empty_functions(path, before, after)
            made, raises = only_raising(before, after, language, asked)
            found.extend([path] if raises else [])
            return made

        tree = self._changed(world, read_old, read, change)
        return tree if found else None

    def _changed(
        self,
        world: SnapshotTrees,
        read_old: ReadFile,
        read: ReadFile,
        change: Callable[[str, bytes | None, bytes], bytes | None],
    ) -> str | None:
        """The new tree with a change in each file of the product; None where there is none."""
        entries = self.snapshots.list(world.new)
        changed: dict[str, Entry | None] = {}
        for path in world.product:
            after = read(path)
            if after is None or path not in entries:
                continue
            made = change(path, read_old(path), after)
            if made is not None:
                changed[path] = (entries[path][0], self.snapshots.write_blob(made))
        return self.snapshots.combine(world.new, changed) if changed else None


@dataclass
class _AllTests:
    """All tests of a task, for what the tests of one command do not ask."""

    run: Run
    target: Target
    world: SnapshotTrees
    now: Results | None
    """Their results on the new tree, where they are known."""
    refused: Mapping[str, str]
    """Tests that show nothing, with the reason."""
    passed: list[str] | None = None

    async def is_red(self, tree: str) -> bool | None:
        """Whether any of them that passes on the new tree, and shows something, does not here.

        None where they do not pass on the new tree either, so that this would say nothing.
        """
        if self.passed is None:
            results = self.now
            if results is None:
                ran = await self.run(self.target, self.world.new, ())
                results = ran.results
                if results is None and not ran.passed:
                    return None
            names = results.names if results else []
            self.passed = [
                one
                for one in names
                if results and results.passed(one) and not self.refused.get(one)
            ]
        return _turns_red(await self.run(self.target, tree, ()), self.passed)


def _only_in(path: str, source: bytes) -> Callable[[str, bytes | None, bytes], bytes | None]:
    """A change that gives one file another content."""
    return lambda other, before, after: source if other == path else None


def _named_functions(
    world: SnapshotTrees, read_old: ReadFile, read: ReadFile, asked: str
) -> tuple[list[str], list[str], list[str]]:
    """Functions of the work that a text names in code; those of them that no file had before it,
    and those that only raise."""
    wanted = identifiers(asked)
    found: set[str] = set()
    known: set[str] = set()
    idle: set[str] = set()
    work: set[str] = set()
    for path in world.product if wanted else ():
        language, before, after = language_of(path), read_old(path), read(path)
        if before is not None and language is not None:
            known |= new_functions(None, before, language)
        elif before is not None and path.endswith(ENDINGS):
            known |= changed_in_c(None, before)
        if after is None:
            continue
        if language is not None:
            _, functions = changed_functions(before, after, language, inner=True)
            names = {last_name(one) for one in functions}
            raising = that_only_raise(before, after, language, asked)
            idle |= raising
            work |= names - raising
        else:
            names = changed_in_c(before, after) if path.endswith(ENDINGS) else set()
        found |= names & wanted
    return sorted(found), sorted(found - known), sorted((idle - work) & wanted)


def _unused(
    world: SnapshotTrees, read_old: ReadFile, read: ReadFile, asked: str
) -> tuple[str, str] | None:
    """A new parameter that a text names with its function, and that the function does not read:
    that function and the parameter."""
    wanted = signatures(asked)
    for path in world.product if wanted else ():
        language, before, after = language_of(path), read_old(path), read(path)
        if language is None or before is None or after is None:
            continue
        for name, parameter in sorted(unread(before, after, language)):
            if parameter in re.findall(r"\w+", wanted.get(name, "").partition("(")[2]):
                return name, parameter
    return None


def _with_empty_functions(
    path: str,
    before: bytes | None,
    after: bytes,
    only: str = "",
    *,
    added: bool = False,
    memory: bool = False,
) -> bytes | None:
    """A file whose changed functions do nothing; None where none is known to have changed."""
    language = language_of(path)
    if language is not None:
        made = empty_functions(before, after, language, only, added=added)
        return made.source if made is not None else None
    if not path.endswith(ENDINGS):
        return None
    return emptied_in_c(before, after, only, added=added, memory=memory)


def _changed_names(world: SnapshotTrees, read_old: ReadFile, read: ReadFile) -> set[str]:
    """Names of functions, classes and modules that the work added or altered.

    For files without a grammar all words that are new in them.
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


def _why_unrelated(uses: set[str], wanted: set[str]) -> str:
    return "" if not uses or uses & wanted else "it uses nothing that was changed or asked for"


def _why_not_red_on_old_code(
    names: Sequence[str], old: Measured, files: dict[str, TestResult], names_of_work: set[str]
) -> dict[str, str]:
    """Why each test is not red on the old code because of the work; "" where it is."""
    if old.ran.timed_out:
        return dict.fromkeys(names, "it does not end on the old code")
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
        is_missing = _names_missing(text, names_of_work, files[name].file)
        found[name] = "" if is_missing else _why_unsound(seen)
    return found


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
    return not SAYS_NOTHING.search(test.message)


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


def _why_not_red_where_empty(names: Sequence[str], struck: Measured, why: str) -> dict[str, str]:
    return {name: "" if _turns_red(struck, [name]) else why for name in names}


def _turns_red(ran: Measured, names: Sequence[str]) -> bool:
    """Whether any of these tests, which pass with the work, fails here or cannot be loaded.

    One that is left out here says nothing.
    """
    if ran.results is None:
        return not ran.passed
    found = [ran.results.named(name) for name in names]
    return any(
        not tests or any(test.outcome not in ("passed", "skipped") for test in tests)
        for tests in found
    )
