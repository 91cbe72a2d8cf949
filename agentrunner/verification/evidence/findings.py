"""Builds findings: what was seen, why it counts, and what would settle it; their ids. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from shlex import quote
from typing import Literal

from msgspec import Struct

from agentrunner.git.staging import commit_commands
from agentrunner.state.evidence_words import NOT_IN_GIT
from agentrunner.state.run_state import Evidence, Finding
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.target import TEST, Target
from agentrunner.verification.results.model import Exchanged
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.world import InputChange

EXAMINED = frozenset(
    """tests_changed tests_gone flaky inputs_written tool_changed tool_exchanged editable_install
    packages_changed work_unasked work_beside only_in_tests work_not_lasting work_pinned
    not_built_again""".split()
)
"""Codes of findings that an examination makes; each examination makes them anew."""
MOST_PATHS = 50
SHOWN = 5


class Ways(Struct, frozen=True):
    """The commands by which a person takes what was found, or sends it back."""

    yes: str
    no: str


WAITING = Ways("agentrunner approve --reason TEXT", "agentrunner reject --reason TEXT")
"""Of a run that asks."""
ENDED = Ways("agentrunner accept --reason TEXT", "agentrunner resume -m TEXT")
"""Of one that has ended, and asks nobody any more."""
YES, NO = "\0yes", "\0no"
"""In a remedy: the commands of the run that it is said in. No path has such a character."""


def _asking(
    *,
    code: str,
    message: str,
    remedy: str,
    paths: Sequence[str] = (),
    tests: Sequence[str] = (),
    blocks: bool = True,
) -> Finding:
    """A finding that a person may take as it is; its remedy is said for both kinds of runs."""
    waiting, ended = (remedy.replace(YES, by.yes).replace(NO, by.no) for by in (WAITING, ENDED))
    return Finding(
        code=code,
        message=message,
        paths=paths,
        tests=list(tests[:MOST_PATHS]),
        blocks=blocks,
        remedy=waiting,
        remedy_when_ended=ended,
    )


def _notice(code: str, message: str, paths: Sequence[str], remedy: str = "") -> Finding:
    """A finding that nobody has to settle."""
    paths = list(paths[:MOST_PATHS])
    return Finding(code=code, message=message, paths=paths, blocks=False, remedy=remedy)


def fingerprint(finding: Finding) -> str:
    """An id of a finding, so that it is reported once and its approval can be remembered."""
    about = [*sorted(finding.paths), *sorted(finding.tests)] or [finding.message]
    text = "\0".join([finding.code, *about])
    return hashlib.sha256(to_bytes(text)).hexdigest()[:12]


def approval_of(finding: Finding, tree: str) -> str:
    """An id of a finding about one tree: a person approves what they were shown, and no more."""
    return f"{fingerprint(finding)}-{tree[:12]}"


def allowed_paths(evidence: Evidence, approved: Collection[str]) -> list[str]:
    """Paths that a person allowed to change on this tree: they count as the worker left them."""
    paths = set(evidence.allowed)
    for finding in evidence.findings:
        if approval_of(finding, evidence.tree) in approved:
            paths.update(finding.paths)
    return sorted(paths)


def first_few(names: Sequence[str], most: int = SHOWN, number: int = 0) -> str:
    """The first names of a list for people, and how many more there are; `number` if it was cut."""
    number = max(number, len(names))
    more = f" and {number - most} more" * (number > most)
    return ", ".join(names[:most]) + more


def ignored_lost(paths: Sequence[str]) -> Finding:
    """A notice about ignored files, too large to be kept, that changed or are gone."""
    return _notice(
        "ignored_lost",
        f"{first_few(paths)}: gone or changed. Git ignores such a file and it is too large to be"
        " kept, so no undo brings it back",
        paths,
    )


def not_kept(paths: Sequence[str]) -> Finding:
    """A finding about changed files that are too large to be kept and so are not verified."""
    return _asking(
        code="unkept",
        message="These files changed and are too large to be kept, so what they hold, or held"
        f" before, is not verified: {first_few(paths)}",
        paths=paths[:MOST_PATHS],
        remedy=f"look at them, then {YES};"
        " runner.sandbox.keep_files_up_to keeps larger ones from the next run on",
    )


def left_in_submodule(name: str, paths: Sequence[str]) -> Finding:
    """A finding about work in a submodule, in a state that no remote of it has."""
    commands = commit_commands([path[len(name) + 1 :] for path in paths], f"git -C {quote(name)}")
    settled = f"{commands[0]} && git -C {quote(name)} push && git add {quote(name)}"
    return _asking(
        code="submodule_changed",
        message=f"{name} is a repository of its own, of which this one holds no more than the name"
        " of a commit. The run changed files there, and no remote of it was known before to have a"
        " commit with what the run left, so who checks this one out does not get it:"
        f" {first_few(paths)}",
        paths=paths[:MOST_PATHS],
        remedy=f"`{settled}` where others are to get it; then, or where it is to stay in this"
        f" checkout alone, {YES}",
    )


def not_held(paths: Sequence[str]) -> Finding:
    """A notice about what a worker left that no snapshot, and so no hand-over, can hold."""
    return _notice(
        "not_held",
        "What is verified is what is handed over, and these are not in it, since they cannot be"
        " read, are no files (pipes, sockets, devices) or have too long a path:"
        f" {first_few(paths)}",
        paths,
        "delete them, or let their owner read them (chmod u+r)",
    )


def empty_folders(paths: Sequence[str], *, red: bool) -> Finding:
    """A notice about empty folders that the worker left: git holds none.

    `red` is whether a command is red in the checkout, which lacks them.
    """
    what = "the empty folder" if len(paths) == 1 else "the empty folders"
    after = ", and something is red there" if red else ""
    return _notice(
        "empty_folders",
        f"A checkout lacks {what} {first_few(paths)}, as git holds none{after}",
        paths,
        f"put a file into it, such as {paths[0]}/.gitkeep, or let the code make it",
    )


def links_out(links: Sequence[tuple[str, str]]) -> Finding:
    """A finding about links of the work that lead out of the tree: pairs of path and target.

    It blocks where code lies behind one: then the work itself is not handed over.
    """
    is_code = any(language_of(one) is not None for pair in links for one in pair)
    named = first_few([f"{path} to {target}" for path, target in links])
    verb = "A link leads" if len(links) == 1 else "Links lead"
    return _asking(
        code="links_out",
        message=f"{verb} out of what is handed over: {named}. Another machine may have"
        " something else there, or nothing",
        paths=[path for path, _ in links[:MOST_PATHS]],
        blocks=is_code,
        remedy="put a copy of the file in its place, or let the link lead to a path in the"
        " repository" + f"; or {YES}, where it is to stay so" * is_code,
    )


def not_in_git(paths: Sequence[str]) -> Finding:
    """A notice about ignored files that the task names: handed over beside what git has."""
    return _notice(
        NOT_IN_GIT,
        f"git ignores {first_few(paths)}: asked for and verified, and no part of the tree as"
        " `git add` makes it",
        paths,
        f"git add -f {paths[0]}, where it is to be in the repository",
    )


def checkout_lacks(paths: Sequence[str]) -> Finding:
    """A notice about ignored files that a red command may need."""
    return _notice(
        "checkout_lacks",
        "What is verified is what is handed over, and git ignores what the worker left here:"
        f" {', '.join(paths[:SHOWN])}",
        paths,
        "take it off .gitignore, or make it in task.setup.command",
    )


TIMED_OUT = "timed out after"
MORE_TIME = "task.test.timeout_sec, or that of the check, gives it more time; "


def tests_changed(
    target: Target, changes: Sequence[InputChange], problem: str, *, cut: bool, lines: str
) -> Finding:
    """A finding: the command passes only with these changes of its inputs.

    `problem` is what fails without them; `cut` says that the search for fewer ran out of time.
    `lines` are the changed lines of expected data.
    """
    what = "; ".join(
        f"{change.path}{' (deleted)' * (change.kind == 'deleted')}: {change.why}"
        for change in changes[:SHOWN]
    )
    more = f"; and {len(changes) - SHOWN} more" * (len(changes) > SHOWN)
    paths = [change.path for change in changes]
    message = (
        f"{_label(target)} passes only as the worker left what decides it ({what}{more});"
        f" with it as it was: {problem}"
    )
    if lines:
        message += f". What changed in it: {lines}"
    if cut:
        message += ". The search for the smallest set of such changes was cut short"
    listed = ", ".join(paths[:SHOWN])
    return Finding(
        code="tests_changed",
        message=message,
        paths=paths[:MOST_PATHS],
        remedy=MORE_TIME
        * problem.startswith(TIMED_OUT)
        + f"task.test.may_change: [{listed}] allows it; task.test.product: [{listed}] says"
        " that it is no test",
    )


def tests_reworded(
    target: Target, names: Sequence[str], paths: Sequence[str], problem: str
) -> Finding:
    """A finding: claimed tests pass with the worker's wording, but not with the old one."""
    return Finding(
        code="tests_changed",
        message=f"{_label(target)} passes only as the worker worded its tests"
        f" ({', '.join(paths[:SHOWN])}); worded as before, with the imports as they are now:"
        f" {problem}",
        paths=list(paths)[:MOST_PATHS],
        tests=list(names)[:MOST_PATHS],
        remedy=f"agentrunner diff shows it; task.test.may_change: [{', '.join(paths[:SHOWN])}] says"
        " that these tests may ask something else",
    )


def looks_at_nothing(target: Target, paths: Sequence[str]) -> Finding:
    """A finding: a command is green now and names paths that are gone."""
    listed = ", ".join(paths[:SHOWN])
    return _asking(
        code="tests_changed",
        message=f"{_label(target)} passes, and looks at {listed}, which was there before this run"
        " and is gone: it may be green because it finds nothing to look at",
        paths=paths[:MOST_PATHS],
        remedy=f"name in the check where that is now; or {YES}, where it is wanted gone",
    )


RAN_BEFORE = "ran these before and does not run them now, or skips them"
NOT_LOADED_BEFORE = "could not load these before, and they are gone, left out or changed now"


def tests_gone(target: Target, names: Sequence[str], what: str) -> Finding:
    """A finding: tests are missing or skipped now; `what` says what became of them."""
    return _asking(
        code="tests_gone",
        message=f"{_label(target)} {what}: {first_few(names)}",
        tests=names,
        remedy=_REMEDIES[what],
    )


_REMEDIES: dict[str, str] = {
    RAN_BEFORE: (
        f"{YES}, where they are not wanted any more; task.test.may_change"
        " names their files in advance"
    ),
    NOT_LOADED_BEFORE: (
        "have them put back as they were, so that they can be loaded and"
        f" pass; {YES}, where agentrunner diff shows that they ask what they asked or are not"
        " wanted any more"
    ),
}


def about_work(kind: AboutWork, what: str) -> Finding:
    """A finding about the work: `unasked`, something that was asked for is asked by no test;
    `missing`, it is not written, by the words of the task or of the work; `beside`, the work takes
    away, or touches, what it was not asked to; `only in tests`, it passes by what only a tested
    program has around it; `not lasting`, it stands where it is written over, or where only tests
    read it."""
    code, remedy = _ABOUT_WORK[kind]
    is_sentence = kind in ("unasked", "not lasting")  # others may begin with a path
    message = what[:1].upper() + what[1:] if is_sentence else what
    return _asking(code=code, message=message, remedy=remedy)


AboutWork = Literal["unasked", "missing", "beside", "only in tests", "not lasting"]
_ABOUT_WORK: dict[AboutWork, tuple[str, str]] = {
    "unasked": ("work_unasked", f"have a test that asks it; or {YES}, after looking at it"),
    "missing": (
        "work_unasked",
        f"have it done; or {YES}, where agentrunner diff shows that it is done in another way",
    ),
    "beside": ("work_beside", f"agentrunner diff shows it; {YES}, where it is wanted"),
    "only in tests": (
        "only_in_tests",
        f"name it in the task, where it is wanted; or {YES}, after looking at agentrunner diff",
    ),
    "not lasting": (
        "work_not_lasting",
        f"change the source, too; or {YES}, after looking at agentrunner diff",
    ),
}


OF_TESTS = "known from tests or examples alone"


def pinned_to(places: Sequence[tuple[str, str]], test: str) -> Finding:
    """A finding: a test passes only as the work compares with the test's own literals.

    `places` are paths with lines, and what the code there does with a literal. `test` is the name
    of the test, or a command in back quotes.
    """
    why = f"{OF_TESTS}: with another value there {test} fails"
    return _of_own_values(places, test, why)


def knows_just(places: Sequence[tuple[str, str]], test: str) -> Finding:
    """A finding: the work answers for a test's own values, and for none near by.

    `places` and `test` are as for `pinned_to`.
    """
    why = f"{OF_TESTS}: {test}, asking for values near by, is answered as before, or always alike"
    return _of_own_values(places, test, why)


def _of_own_values(places: Sequence[tuple[str, str]], test: str, why: str) -> Finding:
    where = ", ".join(f"{place} {what}" for place, what in places[:SHOWN])
    more = f" and {len(places) - SHOWN} more" * (len(places) > SHOWN)
    return _asking(
        code="work_pinned",
        message=f"{where}{more}, {why}",
        paths=list(dict.fromkeys(place.rpartition(":")[0] for place, _ in places))[:MOST_PATHS],
        tests=[] if test.startswith("`") else [test],
        remedy="let the code decide it for any value, or say in the requirements that just this"
        f" one is meant; {YES}, after a look, where it is the work",
    )


def question_about(finding: Finding) -> str:
    """What a person is asked about a finding."""
    return _QUESTIONS.get(finding.code, "Is this wanted?")


_QUESTIONS = {
    "tests_gone": "May they be gone, or ask something else?",
    "flaky": "May it count all the same?",
    "tool_changed": "May it count all the same?",
    "work_unasked": "Is the work done all the same?",
    "not_built_again": "May it count all the same?",
    "submodule_changed": "May it stay in this checkout alone?",
}


def flaky(names: Sequence[str], first: str = "Green", then: str = "red") -> Finding:
    """A finding: two runs on one tree had different results."""
    return Finding(
        code="flaky",
        message=f"{first} once and {then} once on this very tree: {first_few(names)}",
        tests=list(names[:MOST_PATHS]),
        remedy="make it steady, or leave it out of task.test.command",
    )


def inputs_written(paths: Sequence[str]) -> Finding:
    """A finding: inputs of the proof were written while the tests ran."""
    return _asking(
        code="inputs_written",
        message="Files that decide were changed while the tests ran, which did not happen before"
        f" the run: {', '.join(paths[:SHOWN])}",
        paths=paths[:MOST_PATHS],
        remedy=f"agentrunner show; {NO}, or {YES}",
    )


def leads_out(places: Sequence[str], repo: str) -> Finding:
    """A finding: installed packages link to the worker's folder, not to what is handed over."""
    return Finding(
        code="editable_install",
        message=f"A package is installed as a link to {repo} ({', '.join(places[:SHOWN])}). Without"
        " a sandbox the tests import the worker's folder through it, not the checkout of what is"
        " handed over",
        paths=list(places[:MOST_PATHS]),
        remedy="take runner.sandbox.kind: auto, bwrap or docker; or install without -e",
    )


def set_up_fails(last: str, withheld: Sequence[str], hosts: Sequence[str]) -> Finding:
    """A finding: the set-up fails where it runs again.

    `last` is its last line of output; `hosts` are those it asked for. The finding blocks where the
    set-up was not given variables of ours (`withheld`), since what it runs may be the worker's.
    """
    message = f"The set-up command fails on the delivered tree: {last}"
    if not withheld:
        listed = ", ".join(hosts) or "HOST:443"
        remedy = f"task.setup.network: [{listed}], for what it fetches"
        return Finding(code="setup_failed", message=message, remedy=remedy, blocks=False)
    return _asking(
        code="setup_failed",
        message=f"{message}. It was not given {', '.join(withheld)}, which task.setup.env takes"
        " from our environment, as it runs here what a worker may have written",
        remedy=f"run the set-up yourself after a look at agentrunner diff, then {YES}",
    )


def packages_changed(target: Target, paths: Sequence[str], red: Sequence[str]) -> Finding:
    """A finding: the command needs packages that the set-up made from the worker's changes."""
    return _asking(
        code="packages_changed",
        message=f"{_label(target)} passes only with what the set-up, run again on the worker's"
        f" changes, installs for tests and tools: {first_few(paths)}. With these as"
        f" they were before the run, {', '.join(red[:SHOWN])} fails",
        paths=paths[:MOST_PATHS],
        tests=red,
        remedy=f"agentrunner diff shows what it installs from; {NO}, or {YES}",
    )


def not_built_again(target: Target, builds: Sequence[str], sources: Sequence[str]) -> Finding:
    """A finding: the command rests on ignored builds of sources that the work changes."""
    made = "was built" if len(builds) == 1 else "were built"
    return _asking(
        code="not_built_again",
        message=f"{_label(target)} passes with {first_few(builds)}, which git ignores and which"
        f" {made} before the run. {first_few(sources)} changed, from which that seems to be built,"
        " and nothing here builds it again: without it the command fails. So it says what the old"
        " sources did",
        paths=sources[:MOST_PATHS],
        remedy="name in task.setup.command, or in the test command, what builds it, such as"
        f" `make`; {YES}, where it is not built from that",
    )


def may_be_old(builds: Sequence[str], sources: Sequence[str]) -> Finding:
    """A notice beside red tests: they may run what old sources were built to."""
    return _notice(
        "may_be_old",
        f"{first_few(sources)} changed, and {first_few(builds)}, which git ignores and which seems"
        " to be built from that, is as it was before the run. Red tests may say what the old"
        " sources did",
        builds,
        "name in task.setup.command, or in the test command, what builds it",
    )


def tool_changed(target: Target, what: str) -> Finding:
    """A finding: the test tool can no longer report a failure."""
    return _asking(
        code="tool_changed",
        message=f"{_label(target)} does not say no any more: {what}",
        remedy="agentrunner diff shows what was changed: something in it answers for the test;"
        f" {NO} sends it back, {YES} where it is wanted",
    )


def tool_exchanged(target: Target, found: Sequence[Exchanged]) -> Finding:
    """A finding: functions of the test tool are not what they are without the change."""
    several = {one.what: one for one in reversed(found)}  # one name with several values once
    names = [f"{what}" + f" (seen at {one.test})" * bool(one.test) for what, one in several.items()]
    names.reverse()
    named, more = names[:SHOWN], f"; and {len(names) - SHOWN} more" * (len(names) > SHOWN)
    return _asking(
        code="tool_exchanged",
        message=f"{_label(target)}: the change exchanges functions that decide what a test says, in"
        f" the test tool's own process: {'; '.join(named)}{more}. Without the change they stay"
        " what they are",
        remedy=f"agentrunner diff shows what does it; {NO}, or {YES}",
    )


def _label(target: Target) -> str:
    return f"`{target.shell}`" if target.id == TEST else f"The check of {target.id}"
