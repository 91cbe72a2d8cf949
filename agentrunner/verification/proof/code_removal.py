"""Whether a test that the worker wrote shows the work.

It has to be red on the old code because the work is missing there, and red where the functions that
the work added or altered have empty bodies. A test that passes there is not about the work.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.target import Measured, Target, in_repo, test_target
from agentrunner.verification.inputs.wanted_tests import asks_for_tests_alone
from agentrunner.verification.inputs.words_of_change import outside_of_checks
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.change_alone import is_only_text
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.named_work import NamedWork
from agentrunner.verification.proof.names_of_work import NamesOfWork, new_names, words_in
from agentrunner.verification.proof.other_tests import (
    ACCEPTS_MORE,
    PlacedTests,
    find_switched_on,
    find_wider_answers,
    not_asked_for,
)
from agentrunner.verification.proof.pinned_answers import KnownTexts
from agentrunner.verification.proof.red_on_old_code import why_not_red_on_old_code
from agentrunner.verification.proof.trees_without_work import turns_red
from agentrunner.verification.results.model import ReadFile, Results, TestResult
from agentrunner.verification.syntax.asserts import asserts_of
from agentrunner.verification.syntax.calls import names_called
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.test_finder import find_test
from agentrunner.verification.world import SnapshotTrees

NOT_TRIED = "not tried without the work: no function was changed in a language that is known"
ONLY_TEXT = "the work is nothing but comments and docstrings"
EMPTIED = "it passes with the changed functions emptied"
SWITCHED_ON = "it was skipped before the run, and asks for less now: `{}` is gone"
OLD_EMPTIED = "it passes with the functions emptied that it is to test"
ENDLESS = "it does not end on the old code"
MOST_ALONE = 5
"""So many tests are run one by one where all together do not end."""
RAISING = "it only asks for the exception that stands where the work should be"
DOCUMENTED = lazy_regex(r" - (?:\w+::)*(\w+) \(line \d+\)$")
"""What an example of Rust stands above, in its name."""
NO_QUESTION = (EMPTIED, RAISING, ACCEPTS_MORE)


class ShownTests(Struct, frozen=True):
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


async def find_shown_tests(
    exam: Examination, case: Case, names: Sequence[str], stood: Sequence[str]
) -> ShownTests:
    """Those of `names`, which pass on the new tree, that show something.

    Functions of the work that people name have to be asked by some test. `stood` are tests of
    others that turned green. Raises what running in rooms raises.
    """
    target, now = case.target, case.results
    asked, whole = _asked_of(exam, case)
    stood = [name for name in stood if now.passed(name)]  # others have moved since
    if not names and not stood:
        return ShownTests()
    only_text = await asyncio.to_thread(is_only_text, exam.world, asked)
    if names and only_text:
        return ShownTests(why=f"{names[0]}: {ONLY_TEXT}")
    work = await asyncio.to_thread(NamesOfWork.of, exam.world, asked, exam.criteria)
    tried = _TriedTests(exam, target, asked, work)
    before = case.before.tests if case.before else ()
    skipped = {one.name for one in before if one.outcome == "skipped"}
    await asyncio.to_thread(tried.look_at_texts, names, now, skipped)
    if tried.left and not exam.world.product and asks_for_tests_alone(asked):
        return await tried.of_code_that_stood()
    await tried.on_old_code()
    await tried.where_emptied()
    await tried.where_raising()
    await tried.where_answers_are_wider()
    if unasked := await tried.with_switches(stood, whole, now):
        return ShownTests(why=unasked, unasked=unasked)
    if tried.left or stood:
        texts = await asyncio.to_thread(tried.texts_of, [*tried.left, *stood])
        named = NamedWork(exam, target, whole, asked, texts)
        silent = [name for name, why in tried.refused.items() if why == EMPTIED]
        unasked = await named.unasked(now, tried.left, stood, tried.refused, silent)
        if unasked:
            return ShownTests(why=unasked, unasked=unasked)
        tried.notes += named.notes
    asks_nothing = bool(names) and all(tried.refused[name] in NO_QUESTION for name in names)
    return tried.shown(asks_nothing=asks_nothing)


def _asked_of(exam: Examination, case: Case) -> tuple[str, Target]:
    """What people ask for, and the target of the tests that have to ask for all of it.

    Without a test command a check has to ask only for its own criterion.
    """
    spec, own = exam.verifier.spec, [one for one in exam.criteria if one.id == case.target.id]
    if own and spec.task.test is None:
        return "\n".join(one.description for one in own), case.target
    texts = [outside_of_checks(spec.prd_text), *(one.description for one in exam.criteria)]
    whole = test_target(spec.task.test) if spec.task.test else case.target
    return "\n".join(texts), whole


class _TriedTests(Struct):
    """Tests of the worker, with what they use, and why they show nothing as far as is known."""

    exam: Examination
    target: Target
    asked: str
    work: NamesOfWork
    files: Mapping[str, TestResult] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Why a test shows nothing; "" where nothing is known against it."""
    uses: dict[str, set[str]] = field(default_factory=dict)
    words: dict[str, set[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def left(self) -> list[str]:
        """Tests of the worker with nothing known against them."""
        return [name for name in self.uses if not self.refused[name]]

    def shown(self, *, asks_nothing: bool, of_old_code: bool = False) -> ShownTests:
        """Those that are left, and why the first of the others is not."""
        left = self.left
        why = next((f"{name}: {text}" for name, text in self.refused.items() if text), "")
        uses = {one for name in left for one in self.uses[name]}
        return ShownTests(
            left, uses, self.notes, why, asks_nothing=asks_nothing, of_old_code=of_old_code
        )

    def look_at_texts(
        self, names: Sequence[str], now: Results, skipped: Collection[str] = ()
    ) -> None:
        """Begin with tests by what their texts say; `skipped` ones stood before. Blocks."""
        self.files = {test.name: test for test in now.tests}
        for name in names:
            test, cwd, world = self.files[name], self.target.cwd, self.exam.world
            self.uses[name], self.words[name] = _look_at_text(test, cwd, world.now)
            lost = _lost_assertion(test, cwd, world) if name in skipped else ""
            self.refused[name] = SWITCHED_ON.format(lost) if lost else ""

    async def of_code_that_stood(self) -> ShownTests:
        """Tests that are the work themselves: they have to fail where the code they are for does
        nothing."""
        left = self.left
        tree = await self.exam.without_work.without_code(self.asked)
        if tree is None:
            return ShownTests(why=f"{left[0]}: it passes on the old code as well")
        ran = await self._run(tree, left)
        self.refused = _why_not_red_where_empty(left, ran, OLD_EMPTIED)
        self.uses = {name: self.uses[name] for name in left}
        return self.shown(asks_nothing=not self.left, of_old_code=True)

    async def on_old_code(self) -> None:
        """Leave those that are red on the old code because the work is missing there."""
        if not (left := self.left):
            return
        old = await self._run(self.exam.world.mixed, left)
        if any("[" in name for name in left) and not _has_any_of(old, left):
            # A case from a list that only the new tree has keeps the tool from running others.
            old = await self._run(self.exam.world.mixed, ())
        known = self.work.changed | self.work.imported
        if not old.ran.timed_out:
            self.refused |= why_not_red_on_old_code(left, old, self.files, known)
            self.refused |= dict.fromkeys(await asyncio.to_thread(self._of_new_code, old), "")
            unsaid = [name for name in left if self.refused[name]]
            for name in _not_reached(unsaid, old)[:MOST_ALONE]:
                alone = await self._run(self.exam.world.mixed, [name])
                self.refused |= why_not_red_on_old_code([name], alone, self.files, known)
            return
        # One of them hides what the others would say.
        self.refused |= dict.fromkeys(left, ENDLESS)
        for name in left[:MOST_ALONE]:
            alone = await self._run(self.exam.world.mixed, [name])
            if alone.ran.timed_out:
                self.refused[name] = "" if self.uses[name] & self.work.wanted else ENDLESS
            else:
                self.refused |= why_not_red_on_old_code([name], alone, self.files, known)

    def _of_new_code(self, old: Measured) -> list[str]:
        """Examples in the documentation of new code: without it they are nowhere. Blocks."""
        if old.results is None:
            return []
        documented = {
            name: hit[1]
            for name, why in self.refused.items()
            if why and (hit := DOCUMENTED.search(name)) and not old.results.named(name)
        }
        new = new_names(self.exam.world) if documented else set()
        return [name for name, of in documented.items() if of in new]

    async def where_emptied(self) -> None:
        """Leave those that are red where the functions of the work have empty bodies."""
        if not (left := self.left):
            return
        emptied = await self.exam.without_work.emptied(text=True)
        if emptied is not None:
            ran = await self._run(emptied, left)
            self.refused |= _why_not_red_where_empty(left, ran, EMPTIED)
            await self._where_data_is_missing([one for one in left if self.refused[one]])
        elif await self.exam.without_work.is_empty():
            self.refused |= dict.fromkeys(left, EMPTIED)
        else:
            self.notes.append(NOT_TRIED)
            # What is no function may be named in a text of the test: a column, a key. And
            # a program is started by its file's name, mostly in a helper of the tests.
            tests = [self.files[name] for name in left]
            started = await asyncio.to_thread(_that_start, tests, self.target.cwd, self.exam.world)
            self.refused |= {
                n: ""
                if n in started or self.work.written & self.words[n]
                else _why_unrelated(self.uses[n], self.work.wanted)
                for n in left
            }

    async def _where_data_is_missing(self, left: Sequence[str]) -> None:
        """Take those again that are about a file which people ask for beside the functions."""
        if left and (tree := await self.exam.without_work.without_data(self.asked)) is not None:
            ran = await self._run(tree, left)
            self.refused |= _why_not_red_where_empty(left, ran, EMPTIED)

    async def where_raising(self) -> None:
        """Leave those that are red where the work raises only the exceptions that it raises."""
        if (left := self.left) and (
            raising := await self.exam.without_work.only_raising(self.asked)
        ) is not None:
            ran = await self._run(raising, left)
            self.refused |= _why_not_red_where_empty(left, ran, RAISING)

    async def where_answers_are_wider(self) -> None:
        """Leave those that do not accept other answers than the work's."""
        if left := self.left:
            self.refused |= await find_wider_answers(self._placed(left), self.asked)

    async def with_switches(self, stood: Sequence[str], whole: Target, now: Results) -> str:
        """Leave those for which nothing has to be switched on; return what no test asks for."""
        if not (left := self.left):
            return ""
        tests = self._placed([*left, *stood])
        self.refused |= await find_switched_on(tests, self.asked)
        return await not_asked_for(tests, self.asked, now) if whole.id == self.target.id else ""

    async def _run(self, tree: str, names: Sequence[str]) -> Measured:
        return await self.exam.run(self.target, tree, names)

    def _placed(self, names: Sequence[str]) -> PlacedTests:
        return PlacedTests(self.exam, self.target, self._by_file(names))

    def texts_of(self, names: Sequence[str]) -> list[bytes]:
        """The files of tests; all that decide where a tool does not name those. Blocks."""
        known = KnownTexts(self.exam, self.target, frozenset(self._by_file(names)))
        return [text for _, text in known.sources]

    def _by_file(self, names: Sequence[str]) -> dict[str, list[str]]:
        places: dict[str, list[str]] = {}
        for name in names:
            places.setdefault(in_repo(self.files[name].file, self.target.cwd), []).append(name)
        return places


def _look_at_text(test: TestResult, cwd: str, read: ReadFile) -> tuple[set[str], set[str]]:
    """What a test uses, and its words."""
    path = in_repo(test.file, cwd)
    language, source = language_of(path), read(path) if path else None
    found = find_test(source, language, test.name) if language and source is not None else None
    if source is None or found is None:
        return set(), set()
    return names_called(found), words_in(source[found.span.start : found.span.end])


def _lost_assertion(test: TestResult, cwd: str, world: SnapshotTrees) -> str:
    """What a test that was skipped asked in its text, and does not ask now that it is run."""
    path = in_repo(test.file, cwd)
    language = language_of(path)
    texts = []
    for source in (world.was(path), world.now(path)):
        found = find_test(source, language, test.name) if language and source else None
        if found is None:
            return ""
        asserted = (found.parsed.text(one.node) for one in asserts_of(found))
        texts.append([" ".join(text.split()) for text in asserted])
    before, now = texts
    return next((text for text in before if text not in now), "")


def _that_start(tests: Sequence[TestResult], cwd: str, world: SnapshotTrees) -> set[str]:
    """Names of tests whose file names a program of the work."""
    names = [posixpath.basename(path) for path in world.product if language_of(path) is not None]
    named = re.compile(to_bytes("|".join(rf"[\"'`/ ]{re.escape(one)}[\"'`\s]" for one in names)))
    places = {in_repo(test.file, cwd) for test in tests if test.file} if names else set()
    found = {path for path in places if named.search(world.now(path) or b"")}
    return {test.name for test in tests if test.file and in_repo(test.file, cwd) in found}


def _why_unrelated(uses: set[str], wanted: set[str]) -> str:
    return "" if not uses or uses & wanted else "it uses nothing that was changed or asked for"


def _not_reached(names: Sequence[str], ran: Measured) -> list[str]:
    """Tests that have no result, as another one ended the run."""
    if ran.results is None or ran.results.all_named:
        return []
    return [name for name in names if not ran.results.named(name)]


def _has_any_of(ran: Measured, names: Sequence[str]) -> bool:
    return ran.results is not None and any(ran.results.named(name) for name in names)


def _why_not_red_where_empty(names: Sequence[str], ran: Measured, why: str) -> dict[str, str]:
    return {name: "" if turns_red(ran, [name]) else why for name in names}
