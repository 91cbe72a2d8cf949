"""Tries the checks that a planner proposes on the tree before the run: which of them count.

Whether a check can run is found out by running it, in the same kind of room in which it will
decide, and never by reading its text.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentrunner.state.run_state import Awaited, Baseline, CheckOutcome, Criterion
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.check_runner import Tried
from agentrunner.verification.checks import ReadFile
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import own_name
from agentrunner.verification.results.registry import readers_of
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.target import Measured, test_target
from agentrunner.verification.verifier import Verifier, colours_of, looks_at_changes

Standing = Literal["red", "green", "to_write", "to_install", "cannot_run"]
SLOW_SEC = 120.0
"""A suite that takes longer is not run again to see whether it would collect a file."""
MOST_OUTPUT = 600
"""Characters of a check's output that are passed to its author."""
MOST_MEANT = 5
"""Tests that a wrong name may have meant and that are listed for its author."""
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
    read = await asyncio.to_thread(verifier.trees.reader, baseline.tree)
    absent = {one.criterion.id: _absent_test(one, read) for one in tried}
    wanted = {file for found in absent.values() if found for file in [found.file] if file}
    collected = await _collected(verifier, baseline, wanted, read)
    before = await asyncio.to_thread(verifier.before, baseline)
    checks = [
        _misnamed(made, absent[one.criterion.id], before, one)
        for one in tried
        for made in [_as_it_stands(one, absent[one.criterion.id], collected, asked)]
    ]
    outcomes = [_believed(one, made) for one, made in zip(tried, checks, strict=True)]
    ids = {one.id for one in mine}
    others = [one for one in baseline.check_outcomes if one.criterion_id not in ids]
    return (
        baseline.model_copy(
            update={
                "checks": {
                    **{name: c for name, c in baseline.checks.items() if name not in ids},
                    **colours_of(mine, outcomes),
                },
                "check_outcomes": [*others, *outcomes],
                "reporters": dict(verifier.measurer.means),
            }
        ),
        checks,
    )


def _believed(tried: Tried, check: BaselineCheck) -> CheckOutcome:
    """A check's outcome; one that could not run was neither red nor green."""
    if check.standing in ("cannot_run", "to_install"):
        return tried.outcome.model_copy(update={"outcome": "not_run", "results": None, "red": []})
    return tried.outcome


def _as_it_stands(
    tried: Tried, absent: _Absent | None, collected: Mapping[str, bool], asked: str
) -> BaselineCheck:
    outcome = tried.outcome
    check = BaselineCheck(tried.criterion.id, "red", outcome.what, _shortened_output(tried))
    if looks_at_changes(tried.criterion):
        return check  # nothing has changed before the run, whatever it asks
    if outcome.outcome == "passed":
        return replace(check, standing="green")
    if tried.why:
        tool = _wanted_tool(tried, asked)
        if not tool:
            return replace(check, standing="cannot_run")
        return replace(check, standing="to_install", awaits=Awaited(kind="tool", what=tool))
    if tried.measured is None:
        return check if outcome.outcome == "failed" else replace(check, standing="cannot_run")
    if tried.measured.ran.timed_out:
        return replace(check, standing="cannot_run")
    if absent is None:
        return check
    if absent.file and not collected.get(absent.file, True):
        return replace(check, standing="cannot_run")
    where = "::".join(part for part in (absent.file, absent.name) if part)
    return replace(check, standing="to_write", awaits=Awaited(kind="test", what=where))


def _misnamed(
    check: BaselineCheck, absent: _Absent | None, before: Results | None, tried: Tried
) -> BaselineCheck:
    """Turn a check that waits for a test into one that cannot run, where it misnames the test.

    The suite already has a test of that name within a class: nobody would write one without it.
    With another class it may be a new test, and the check stays.
    """
    if check.standing != "to_write" or absent is None or before is None or not absent.name:
        return check
    cwd = tried.measured.target.cwd if tried.measured is not None else "."
    last = own_name(absent.name)
    if last != absent.name:
        return check
    meant = [
        test.name
        for test in before.tests
        if own_name(test.name) == last
        and absent.file in ("", posixpath.normpath(posixpath.join(cwd, test.file or "")))
    ]
    if not meant:
        return check
    output = f"the suite has no test {absent.name}; it has {', '.join(meant[:MOST_MEANT])}"
    return replace(check, standing="cannot_run", output=output, awaits=None)


def _shortened_output(tried: Tried) -> str:
    if tried.measured is None:
        return tried.outcome.detail[:MOST_OUTPUT]
    lines = tried.measured.ran.tail.strip().splitlines()
    exit_code = tried.outcome.exit_code
    return f"exit {exit_code}: {' / '.join(line.strip() for line in lines)[-MOST_OUTPUT:]}"


# -- what is not there yet -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Absent:
    """A test that a check names and no test tool found."""

    file: str
    """Relative to the repository; "" where the check names no file."""
    name: str


def _absent_test(tried: Tried, read: ReadFile) -> _Absent | None:
    """The test that a check was to run, where its tool ran no test at all; else None.

    A program that is no known test tool decides by its exit code alone.
    """
    measured, check = tried.measured, tried.criterion.check
    if measured is None or tried.why or check is None or tried.outcome.outcome == "passed":
        return None
    target = measured.target
    if not readers_of(target.shell, target.cwd, read) or _ran_any_test(measured):
        return None
    named = posixpath.normpath(check.file) if check.kind == "test" and check.file else ".."
    if not named.startswith(("..", "/")):
        return _Absent(named, check.name)
    errors = measured.results is not None and bool(measured.results.tests)
    for word in _words(target.shell):
        path, _, name = word.partition("::")
        if language_of(path) is not None and not path.startswith("-"):
            file = posixpath.normpath(posixpath.join(target.cwd, path))
            # Where a tool reports that it failed to load a file, the file may exist and be broken.
            if not file.startswith(("..", "/")) and not (errors and read(file) is not None):
                return _Absent(file, name or check.test_name or "")
    if errors:
        return None
    return _Absent("", check.test_name or check.name or "")


def _ran_any_test(measured: Measured) -> bool:
    if measured.results is not None:
        return any(test.outcome != "error" for test in measured.results.tests)
    counts = measured.ran.counts
    return counts is not None and counts.ran > 0


def _words(shell: str) -> list[str]:
    try:
        return shlex.split(shell)
    except ValueError:
        return shell.split()


def _wanted_tool(tried: Tried, asked: str) -> str:
    """The tool or module whose absence kept a check from starting, if people ask for it; else "".

    It is a word of both the check and the message of the shell or interpreter.
    """
    assert tried.measured is not None
    in_command = set(re.findall(r"[\w.+-]*\w", tried.measured.target.shell))
    for word in re.findall(r"[\w.+-]*\w", tried.why):
        is_wanted = re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", asked, re.IGNORECASE)
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
    tested = {posixpath.normpath(posixpath.join(cwd, one.file)) for one in before.tests if one.file}
    found = dict.fromkeys(files & tested, True)
    # A file that exists and has no test that the suite runs is no place for a test.
    without_tests = {file for file in files - tested if (read(file) or b"").strip()}
    found |= dict.fromkeys(without_tests, False)
    samples = {file: _sample(file, tested, read) for file in files - tested - without_tests}
    trial = {file: text for file, text in samples.items() if text is not None}
    slow = baseline.test is not None and baseline.test.duration_sec > SLOW_SEC
    if not trial or slow:
        return found
    tree = await asyncio.to_thread(_with_files, verifier, baseline.tree, trial)
    trial_read = await asyncio.to_thread(verifier.trees.reader, tree)
    async with verifier.rooms.open(tree) as room:
        verifier.awaits(target := test_target(verifier.test), "with a test where it is proposed")
        trial_run = await verifier.measurer.run(target, room, trial_read)
    if trial_run.results is None or not _still_runs(before, trial_run.results):
        return found  # the copies keep the suite from running, which shows nothing
    run_files = {
        posixpath.normpath(posixpath.join(cwd, t.file)) for t in trial_run.results.tests if t.file
    }
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


def _with_files(verifier: Verifier, tree: str, files: Mapping[str, bytes]) -> str:
    return verifier.snapshots.with_texts(tree, files)


def _still_runs(before: Results, now: Results) -> bool:
    """Whether all tests that ran before are reported again, so that the copies broke nothing."""
    return bool(now.tests) and set(before.names) <= set(now.names)
