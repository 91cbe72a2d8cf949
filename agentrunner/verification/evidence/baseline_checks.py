"""Tries the checks that a planner proposes on the tree before the run: which of them count.

Whether a check can run is found out by running it, in the same kind of room in which it will
decide, and never by reading its text.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from msgspec import Struct

from agentrunner.config.spec import Check, TaskSpec
from agentrunner.state.run_state import Awaited, Baseline, CheckOutcome, Criterion
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone, speaks_of, speaks_of_place
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.check_runner import Tried
from agentrunner.verification.evidence.target import (
    Measured,
    Target,
    files_of,
    in_repo,
    test_target,
)
from agentrunner.verification.evidence.verifier import Verifier, colours_of, looks_at_changes
from agentrunner.verification.results.commands import Run, runs_of
from agentrunner.verification.results.model import ReadFile, Results
from agentrunner.verification.results.names import own_name, parts_of
from agentrunner.verification.results.registry import options_that_name, readers_of
from agentrunner.verification.results.shell import words_of
from agentrunner.verification.rooms.wrong_commands import WrongCommand, wrong_command
from agentrunner.verification.syntax.languages import language_of

NO_ATTRIBUTE = lazy_regex(r"has no attribute '(?P<name>\w+)'")
"""What unittest says of a class or method that it was to run and that is not there."""


@dataclass(frozen=True)
class Absent:
    """A test that a check names and no test tool found."""

    file: str
    """Relative to the repository; "" where the check names no file."""
    name: str
    exact: bool = False
    """Whether its author said that it is new; a command may misname one that exists."""

    @property
    def where(self) -> str:
        """File and name, as people read them."""
        return "::".join(part for part in (self.file, self.name) if part)


Standing = Literal["red", "green", "to_write", "to_install", "cannot_run", "taken"]
SLOW_SEC = 120.0
"""A suite that takes longer is not run again to see whether it would collect a file."""
MOST_OUTPUT = 600
"""Characters of a check's output that are passed to its author."""
MOST_MEANT = 5
"""Tests that a wrong name may have meant and that are listed for its author."""
ASKED_FOR_TESTS = lazy_regex(r"(?i)\btests?\b|テスト")
OWN_TEXT = "{} says what is wanted, not whether it is done"
"""Of a check that reads the requirements."""
EMPTY_TEST: Mapping[str, str] = {
    "python": "def test_there_is_a_test_here():\n    assert False\n",
}
"""A failing test by language, where the suite has no test yet that could be copied."""


@dataclass(frozen=True)
class BaselineCheck:
    """How one check stands on the tree before the run."""

    criterion_id: str
    standing: Standing
    what: str
    """The check, as people read it."""
    output: str = ""
    """Its output, shortened."""
    awaits: Awaited | None = None
    """What the check needs first, where it counts all the same."""


def proposed(criterion: Criterion) -> bool:
    """Whether a planner wrote this criterion's check, and it is not just the test command."""
    return criterion.check_origin == "model" and has_own_check(criterion)


def has_own_check(criterion: Criterion) -> bool:
    """Whether it has a check that is not just the task's test command."""
    check = criterion.check
    return check is not None and not (check.kind == "test" and not check.name)


class _Seen(Struct, frozen=True):
    """What is known of all tried checks together."""

    asked: str
    """What people ask for."""
    read: ReadFile
    absent: Mapping[str, Absent]
    """By criterion, the test that its check names and that is not there."""
    wrong: Mapping[str, WrongCommand]
    """By criterion, why its command is itself at fault."""
    collected: Mapping[str, bool]
    """By file, whether the suite runs the tests in it."""
    before: Results | None
    """What the suite said before the run."""
    cwd: str
    """The folder in which the suite runs."""
    own: frozenset[str]
    """The files of the repository that the task was read from."""

    def has_tests(self, file: str) -> bool:
        """Whether the suite has run a test of this file."""
        return file in files_of(self.before, self.cwd)


async def try_checks(
    verifier: Verifier,
    criteria: Sequence[Criterion],
    baseline: Baseline,
    asked: str,
    of: Callable[[Criterion], bool] = proposed,
) -> tuple[Baseline, list[BaselineCheck]]:
    """Run the checks of `criteria` on the tree before the run, in a clean room.

    Only those for which `of` returns true, by default the planner's. `asked` is the text of what
    people ask for: a tool that a check lacks and that this text names is still to be installed. The
    returned baseline holds what each check said; one that could not run counts as not run. Raises
    SandboxError and OSError.
    """
    mine = [one for one in criteria if of(one)]
    if not mine:
        return baseline, []
    tried = await verifier.first_tries(mine, baseline)
    read = await asyncio.to_thread(verifier.snapshots.reader, baseline.tree)
    absent = {
        one.criterion.id: found for one in tried if (found := _absent_test(one, read)) is not None
    }
    wrong = await asyncio.to_thread(_wrong_commands, tried, Path(verifier.spec.repo))
    wanted = {found.file for found in absent.values() if found.file}
    collected = await _collected(verifier, baseline, wanted, read)
    before = await asyncio.to_thread(verifier.before, baseline)
    cwd = verifier.test.cwd if verifier.test is not None else "."
    seen = _Seen(asked, read, absent, wrong, collected, before, cwd, _own_files(verifier.spec))
    checks = [_as_it_stands(one, seen) for one in tried]
    outcomes = [_believed(one, made) for one, made in zip(tried, checks, strict=True)]
    ids = {one.id for one in mine}
    others = [one for one in baseline.check_outcomes if one.criterion_id not in ids]
    colours = {name: one for name, one in baseline.checks.items() if name not in ids}
    update = {
        "checks": colours | colours_of(mine, outcomes),
        "check_outcomes": [*others, *outcomes],
    }
    return verifier.measurer.remember(baseline).model_copy(update=update), checks


def _believed(tried: Tried, check: BaselineCheck) -> CheckOutcome:
    """A check's outcome; one that could not run was neither red nor green."""
    if check.standing in ("cannot_run", "to_install"):
        return tried.outcome.model_copy(update={"outcome": "not_run", "results": None, "red": []})
    return tried.outcome


def _as_it_stands(tried: Tried, seen: _Seen) -> BaselineCheck:
    outcome, text = tried.outcome, f"{seen.asked}\n{tried.criterion.description}"
    check = BaselineCheck(tried.criterion.id, "red", outcome.what, _shortened_output(tried))
    if path := _own_text(tried.criterion, seen.own):
        return replace(check, standing="cannot_run", output=OWN_TEXT.format(path))
    if looks_at_changes(tried.criterion):
        return check  # nothing has changed before the run, whatever it asks
    if outcome.outcome == "passed":
        return replace(check, standing="green")
    if tried.why:
        tool = _wanted_tool(tried, seen.asked)
        if not tool:
            return replace(check, standing="cannot_run")
        return replace(check, standing="to_install", awaits=Awaited(kind="tool", what=tool))
    measured = tried.measured
    if measured is None:
        return check if outcome.outcome == "failed" else replace(check, standing="cannot_run")
    if measured.ran.timed_out:
        return replace(check, standing="cannot_run")
    absent = seen.absent.get(tried.criterion.id)
    wrong = seen.wrong.get(tried.criterion.id)
    if wrong is not None and not (absent is not None and _is_about(wrong, absent)):
        return _wrong(check, wrong, text, seen)
    if absent is not None:
        return _absent(check, absent, tried, text, seen)
    if ran_any_test(measured) or not runs_a_test_tool(measured.target, seen.read):
        return check
    if measured.results is not None and measured.results.tests:
        return check  # what could not be loaded may be the product's fault
    if what := _place_for_tests(measured, "", text, seen):
        return replace(check, standing="to_write", awaits=Awaited(kind="test", what=what))
    return replace(check, standing="cannot_run")


def _own_files(spec: TaskSpec) -> frozenset[str]:
    sources = (spec.task_file, spec.prd_file)
    places = [Path(one.path) for one in sources if one is not None and one.path]
    repo = Path(spec.repo)
    return frozenset(one.relative_to(repo).as_posix() for one in places if one.is_relative_to(repo))


def _own_text(criterion: Criterion, own: Collection[str]) -> str:
    """The file of the task's that a planner's check looks for a text in, "" where it does not."""
    check = criterion.check
    if check is None or criterion.check_origin != "model" or check.kind != "file":
        return ""
    path = posixpath.normpath(check.path)
    return path if path in own else ""


def _wrong(check: BaselineCheck, wrong: WrongCommand, text: str, seen: _Seen) -> BaselineCheck:
    """A command that is itself at fault, where nobody speaks of what it lacks."""
    speaks = speaks_of_place if wrong.common else speaks_of
    if any(speaks(text, name) for name in wrong.lacks):
        if not wrong.file:
            return check
        return replace(check, standing="to_write", awaits=Awaited(kind="file", what=wrong.file))
    folder = wrong.lacks[0] if wrong.folder else ""
    if folder and _place_for_tests(None, folder, text, seen):
        return replace(check, standing="to_write", awaits=Awaited(kind="test", what=f"{folder}/"))
    output = check.output
    if wrong.text not in output:
        output = f"{output.partition(':')[0]}: {wrong.text}"[:MOST_OUTPUT]
    return replace(check, standing="cannot_run", output=output)


def _is_about(wrong: WrongCommand, absent: Absent) -> bool:
    """Whether a tool's complaint is that it lacks the very test that is still to be written."""
    names = [posixpath.basename(absent.file), *parts_of(absent.name)]
    return any(speaks_of(wrong.text, name) for name in names if name)


def _absent(
    check: BaselineCheck, absent: Absent, tried: Tried, text: str, seen: _Seen
) -> BaselineCheck:
    """A check that names a test which is not there: still to be written, or a wrong name."""
    not_run = absent.file and not seen.collected.get(absent.file, True)
    if not_run or (not absent.name and seen.has_tests(absent.file)):
        return replace(check, standing="cannot_run")
    made = replace(check, standing="to_write", awaits=Awaited(kind="test", what=absent.where))
    return _misnamed(made, absent, seen.before, tried, text)


def _place_for_tests(measured: Measured | None, folder: str, text: str, seen: _Seen) -> str:
    """Where tests are to be written that a command looks for, in a project that has none yet.

    People must ask for tests; "" where they do not, or where there are tests already.
    """
    if (seen.before is not None and seen.before.tests) or not ASKED_FOR_TESTS.search(text):
        return ""
    return folder or (f"tests for `{measured.target.shell}`" if measured else "")


def _misnamed(
    check: BaselineCheck, absent: Absent, before: Results | None, tried: Tried, text: str = ""
) -> BaselineCheck:
    """Turn a check that waits for a test into one that cannot run, where it misnames the test.

    The suite already has a test of that name, within a class or within another one that nobody
    speaks of. A test that its author calls new may have the name of one in another class.
    """
    if check.standing != "to_write" or before is None or not absent.name:
        return check
    cwd = tried.measured.target.cwd if tried.measured is not None else "."
    *owners, last = parts_of(absent.name)
    owner = owners[-1] if owners else ""
    if owner and (absent.exact or speaks_of(text, owner) or _has_class(before, owner)):
        return check
    meant = [
        test.name
        for test in before.tests
        if own_name(test.name) == last and absent.file in ("", in_repo(test.file, cwd))
    ]
    if not meant:
        return check
    output = f"the suite has no test {absent.name}; it has {', '.join(meant[:MOST_MEANT])}"
    return replace(check, standing="cannot_run", output=output, awaits=None)


def _has_class(before: Results, owner: str) -> bool:
    """Whether the suite has a test within a class, or in a file, of this name."""
    return any(owner in parts_of(test.name)[:-1] for test in before.tests)


def _absent_test(tried: Tried, read: ReadFile) -> Absent | None:
    measured, check = tried.measured, tried.criterion.check
    if measured is None or tried.why or check is None or tried.outcome.outcome == "passed":
        return None
    return absent_test(measured, check, read)


def _wrong_commands(tried: Sequence[Tried], repo: Path) -> dict[str, WrongCommand]:
    """By criterion, why a command that failed is itself at fault."""
    found = {}
    for one in tried:
        ran = one.measured
        if ran is None or one.why or one.outcome.outcome == "passed" or ran_any_test(ran):
            continue
        target = ran.target
        wrong = wrong_command(target.shell, ran.ran.exit_code, ran.ran.tail, repo, target.cwd)
        if wrong is not None:
            found[one.criterion.id] = wrong
    return found


def _shortened_output(tried: Tried) -> str:
    if tried.measured is None:
        return tried.outcome.detail[:MOST_OUTPUT]
    lines = tried.measured.ran.tail.strip().splitlines()
    exit_code = tried.outcome.exit_code
    return f"exit {exit_code}: {' / '.join(line.strip() for line in lines)[-MOST_OUTPUT:]}"


def _wanted_tool(tried: Tried, asked: str) -> str:
    """The tool or module whose absence kept a check from starting, if people ask for it; else "".

    It is a word of both the check and the message of the shell or interpreter.
    """
    assert tried.measured is not None
    in_command = set(re.findall(r"[\w.+-]*\w", tried.measured.target.shell))
    for word in re.findall(r"[\w.+-]*\w", tried.why):
        is_wanted = re.search(alone(word, before="."), asked, re.IGNORECASE)
        if len(word) > 1 and word in in_command and is_wanted:
            return str(word)
    return ""


# -- whether the suite would collect a file --------------------------------------------------------


async def _collected(
    verifier: Verifier, baseline: Baseline, files: set[str], read: ReadFile
) -> dict[str, bool]:
    """By file, whether the suite runs the tests in it, as far as that can be found out.

    A file whose tests the suite has run counts. Into the others a test that the suite runs is
    copied, into all at once, and the suite runs once more on that tree. A file that cannot be tried
    is left out.
    """
    if not files or verifier.test is None:
        return {}
    before = await asyncio.to_thread(verifier.before, baseline)
    if before is None or before.weak:
        return {}
    cwd = verifier.test.cwd
    tested = files_of(before, cwd)
    found = dict.fromkeys(files & tested, True)
    # A file that exists and has no test that the suite runs is no place for a test.
    without_tests = {file for file in files - tested if (read(file) or b"").strip()}
    found |= dict.fromkeys(without_tests, False)
    samples = {file: _sample(file, tested, read) for file in files - tested - without_tests}
    trial = {file: text for file, text in samples.items() if text is not None}
    slow = baseline.test is not None and baseline.test.duration_sec > SLOW_SEC
    if not trial or slow:
        return found
    tree = await asyncio.to_thread(verifier.snapshots.with_texts, baseline.tree, trial)
    async with verifier.room_for(tree) as (_, run):
        verifier.announce(target := test_target(verifier.test), "with a test where it is proposed")
        trial_run = await run(target)
    if trial_run.results is None or not _still_runs(before, trial_run.results):
        return found  # the copies keep the suite from running, which shows nothing
    run_files = files_of(trial_run.results, cwd)
    return {**found, **{file: file in run_files for file in trial}}


def _sample(file: str, tested: set[str], read: ReadFile) -> bytes | None:
    """A test file of the suite in the same language, else a minimal one; None for neither."""
    language = language_of(file)
    same = sorted(one for one in tested if language is not None and language_of(one) == language)
    for one in same:
        if (text := read(one)) is not None:
            return text
    smallest = EMPTY_TEST.get(language or "")
    return to_bytes(smallest) if smallest and not tested else None


def _still_runs(before: Results, now: Results) -> bool:
    """Whether all tests that ran before are reported again, so that the copies broke nothing."""
    return bool(now.tests) and set(before.names) <= set(now.names)


def absent_test(measured: Measured, check: Check, read: ReadFile) -> Absent | None:
    """The test that a check names, where its tool ran no test at all and says so; else None.

    A program that is no known test tool decides by its exit code alone, and so does a program in
    the command itself.
    """
    target = measured.target
    if not readers_of(target.shell, target.cwd, read) or ran_any_test(measured):
        return None
    named = posixpath.normpath(check.file) if check.kind == "test" and check.file else ".."
    if not named.startswith(("..", "/")):
        return Absent(named, check.name, exact=True)
    errors = measured.results is not None and bool(measured.results.tests)
    for run in runs_of(target.shell, target.cwd, read):
        found = _named_by(run, check, measured, read, errors=errors)
        if found is not None:
            return found
    if runs_a_test_tool(target, read):  # a script of a package passes its arguments on
        return next(_files_in(words_of(target.shell), target.cwd, check, read, errors=errors), None)
    return None


def ran_any_test(measured: Measured) -> bool:
    """Whether a test tool ran at least one test, which may have failed."""
    if measured.results is not None:
        return any(test.outcome != "error" for test in measured.results.tests)
    counts = measured.ran.counts
    return counts is not None and counts.ran > 0


def runs_a_test_tool(target: Target, read: ReadFile) -> bool:
    """Whether a command runs a test tool itself, and not just a program of the product."""
    return any(
        _is_test_run(run) and readers_of(shlex.join(run.words), run.folder, read)
        for run in runs_of(target.shell, target.cwd, read)
    )


def _is_test_run(run: Run) -> bool:
    """Whether a run is one of a test tool: no interpreter with a script or a program in words."""
    python = run.python
    if python is not None:
        return python[0].startswith("-m ")
    if run.program == "node":
        return "--test" in run.words
    return run.program not in ("ruby", "perl", "php", "sh", "bash", "deno", "bun") or (
        len(run.words) > 1 and run.words[1] == "test"
    )


def _named_by(
    run: Run, check: Check, measured: Measured, read: ReadFile, *, errors: bool
) -> Absent | None:
    if not _is_test_run(run):
        return None
    if run.python is not None and run.python[0] == "-m unittest":
        named = next(_named_for_unittest(run, measured, read, errors=errors), None)
        if named is not None:
            return named
    selected = _selected(run, read)
    for found in _files_in(run.words[1:], run.folder, check, read, errors=errors):
        return replace(found, name=found.name or selected)
    if errors:
        return None
    name = check.test_name or check.name or selected
    return Absent("", name) if name else None


def _files_in(
    words: Sequence[str], folder: str, check: Check, read: ReadFile, *, errors: bool
) -> Iterator[Absent]:
    """The sources among the words of a command, with the tests that are named in them."""
    for word in words:
        path, _, name = word.partition("::")
        if language_of(path) is None or path.startswith("-"):
            continue
        file = posixpath.normpath(posixpath.join(folder, path))
        # Where a tool reports that it failed to load a file, the file may exist and be broken.
        if not file.startswith(("..", "/")) and not (errors and read(file) is not None):
            yield Absent(file, name or check.test_name or "")


def _selected(run: Run, read: ReadFile) -> str:
    """The name by which an option selects tests; "" for none, or for more than a name."""
    words = [*run.words, ""]
    for option in options_that_name(shlex.join(run.words), run.folder, read):
        for index, word in enumerate(words[:-1]):
            name = words[index + 1] if word == option else word.removeprefix(f"{option}=")
            if name != word and re.fullmatch(r"\^?[\w ./-]+\$?", name):
                return name.strip("^$")
    return ""


def _named_for_unittest(
    run: Run, measured: Measured, read: ReadFile, *, errors: bool
) -> Iterator[Absent]:
    """What `python -m unittest package.module.Class.method` names and does not find."""
    messages = [test.message for test in measured.results.tests] if measured.results else []
    missing = set(NO_ATTRIBUTE.findall("\n".join([*messages, measured.ran.tail])))
    assert run.python is not None
    words = list(run.words[run.python[1] + 1 :])
    for word in () if words[:1] == ["discover"] else words:
        if not re.fullmatch(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*", word) or language_of(word):
            continue
        parts = word.split(".")
        for end in range(len(parts), 0, -1):
            file = posixpath.normpath(posixpath.join(run.folder, *parts[:end]) + ".py")
            if read(file) is not None:
                rest = parts[end:]
                if rest and (not errors or missing & set(rest)):
                    yield Absent(file, ".".join(rest))
                break
        else:
            end = next((i for i, part in enumerate(parts) if part[0].isupper()), len(parts))
            module = parts[:end] or parts[:1]
            package = posixpath.normpath(posixpath.join(run.folder, *module, "__init__.py"))
            if read(package) is None:
                file = posixpath.normpath(posixpath.join(run.folder, *module) + ".py")
                yield Absent(file, ".".join(parts[end:]))
