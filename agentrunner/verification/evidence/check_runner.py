"""Runs a criterion's check on a tree in a clean room, or reads it, and returns its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentrunner.config.prd import describe_check
from agentrunner.config.spec import TaskSpec
from agentrunner.state.red_tests import as_values, path_of
from agentrunner.state.run_state import CheckOutcome, Criterion
from agentrunner.verification.evidence.checks import read_check
from agentrunner.verification.evidence.measure import Measurer
from agentrunner.verification.evidence.outcomes import Colour, check_outcome, stands_for_others
from agentrunner.verification.evidence.target import TEST, Measured, Target, target_of
from agentrunner.verification.results.commands import runs_of
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.registry import readers_of
from agentrunner.verification.results.shell import simple_commands
from agentrunner.verification.rooms.decision_sandbox import DecisionSandbox, not_ready
from agentrunner.verification.rooms.room import Room
from agentrunner.verification.rooms.start_up import tool_lacking, why_not_started

SILENT = frozenset({"set", "true", ":", "echo", "printf", "unset", "umask", "mkdir"})
"""Shell words that decide nothing."""

Emit = Callable[..., Any]
MOST_PATHS = 500


class Tried(Struct, frozen=True):
    """One check, run or read on the tree before the run."""

    criterion: Criterion
    outcome: CheckOutcome
    measured: Measured | None = None
    why: str = ""
    """Why it could not start and so decided nothing; "" where it did start."""


class CheckRunner(Struct, frozen=True):
    """Runs or reads checks, one at a time; `emit` receives the events `awaiting` and `check`."""

    spec: TaskSpec
    sandbox: DecisionSandbox
    measurer: Measurer
    emit: Emit

    async def first_try(self, criterion: Criterion, room: Room, read: ReadFile) -> Tried:
        """Try the check on the tree before the run, where it need not be able to start."""
        assert criterion.check is not None
        target = target_of(criterion, self.spec, read)
        if criterion.check.kind in ("file", "diff") or target is None:
            outcome = await self.check(criterion, room, read, [], first=True)
            assert outcome is not None
            return Tried(criterion, outcome)
        measured = await self.measurer.find_reporter(target, room, read)
        why = await asyncio.to_thread(self._not_started, target, measured, read)
        ref = await asyncio.to_thread(self.measurer.keep, measured.results, target.id)
        what = describe_check(criterion.check)
        outcome = with_writes(check_outcome(measured, what, why, results=ref), measured)
        return Tried(criterion, outcome, measured, why)

    def _not_started(self, target: Target, measured: Measured, read: ReadFile) -> str:
        """Why a check could not start, a missing test tool included; "" where it started."""
        why = why_not_started(target.shell, measured.ran, Path(self.spec.repo), is_test=False)
        if why or not readers_of(target.shell, target.cwd, read):
            return why
        return tool_lacking(target.shell, measured.ran, Path(self.spec.repo))

    async def check(
        self,
        criterion: Criterion,
        room: Room,
        read: ReadFile,
        changed: Sequence[str],
        *,
        was: Mapping[str, CheckOutcome] | None = None,
        colours: Mapping[str, Colour] | None = None,
        first: bool = False,
        listed: Collection[str] = (),
    ) -> CheckOutcome | None:
        """Run or read one criterion's check; None where it has no check of its own.

        `first` means the tree before the run: EnvironmentNotReady is raised where the check cannot
        start there. The event `check` is emitted where `was` is given. `listed` are known
        reds by a person: the check of one test is not red for those of them that cannot be loaded.
        """
        check = criterion.check
        if check is None or (check.kind == "test" and not check.name):
            return None
        what = describe_check(check)
        before: Colour = (colours or {}).get(criterion.id, "unknown")
        reading = await asyncio.to_thread(read_check, check, read, changed)
        if reading is not None:
            outcome = CheckOutcome(
                criterion_id=criterion.id, what=what, before=before, detail=reading.detail,
                outcome="passed" if reading.passed
                else "not_run" if reading.passed is None and criterion.check_origin == "model"
                else "failed",
            )  # fmt: skip
        elif (target := target_of(criterion, self.spec, read)) is None:
            return CheckOutcome(
                criterion_id=criterion.id, what=what, outcome="not_run", before=before,
                detail="nothing to execute",
            )  # fmt: skip
        else:
            awaited = criterion.awaits is not None
            known = frozenset(listed if check.kind == "test" else ())
            if before == "red" and was is not None and criterion.id in was:
                old = await asyncio.to_thread(self.measurer.kept, was[criterion.id].results)
                before = "green" if stands_for_others(old, known) else before
            outcome = await self._run_check(target, room, read, what, before, first, awaited, known)
        if was is not None:
            self.emit_check(outcome)
        return outcome

    def emit_check(self, outcome: CheckOutcome) -> None:
        """Emit `check` of what decides a criterion."""
        self.emit(
            "check", target=outcome.criterion_id, command=outcome.what,
            exit_code=outcome.exit_code, outcome=outcome.outcome, detail=outcome.detail,
            red=as_values(outcome.red), output=path_of(outcome.output),
        )  # fmt: skip

    async def _run_check(
        self,
        target: Target,
        room: Room,
        read: ReadFile,
        what: str,
        before: Colour,
        first: bool,
        awaited: bool,
        known: Collection[str],
    ) -> CheckOutcome:
        self.announce(target)
        run = self.measurer.find_reporter if first else self.measurer.run
        measured = await run(target, room, read)
        why = await asyncio.to_thread(self._not_started, target, measured, read)
        if why and first:
            raise not_ready(
                target.shell, measured.ran, why, self.sandbox.describe(),
                what=f"The check of {target.id}", place=self.spec.places.get(target.id, ""),
            )  # fmt: skip
        ref = await asyncio.to_thread(self.measurer.keep, measured.results, target.id)
        # A check that counted once and cannot run now is red: else breaking it would pass it.
        counted = not first and (before != "unknown" or awaited)
        unsure = first or (target.author == "planner" and not counted)
        excused = not (why or measured.passed or measured.ran.timed_out) and stands_for_others(
            measured.results, known
        )
        if excused:
            excused = await asyncio.to_thread(is_one_stage, target.shell, target.cwd, read)
        outcome = check_outcome(measured, what, why, before, ref, unsure=unsure, excused=excused)
        return with_writes(outcome, measured) if first else outcome

    def announce(self, target: Target, why: str = "") -> None:
        """Emit `awaiting`: a command begins, with its time limit; `why` is why it runs again."""
        who = "tests" if target.id == TEST else "check"
        facts = {"why": why} if why else {}
        self.emit("awaiting", who=who, what=target.shell, at_most_sec=target.timeout_sec, **facts)


def with_writes(outcome: CheckOutcome, measured: Measured) -> CheckOutcome:
    """The outcome of a check before the run, with the paths that it wrote there by itself."""
    return outcome.model_copy(update={"writes": sorted(measured.written)[:MOST_PATHS]})


def is_one_stage(shell: str, cwd: str, read: ReadFile) -> bool:
    """Whether only tests can have caused a red exit of a command that reported tests.

    That is so where everything that runs is one command, recipes of make, just and npm followed. It
    is so for `lint && pytest` as well: where lint fails, no test is reported. A red exit of `pytest
    && lint` hides what lint would say, and one of `lint; pytest` what lint said; then no known red
    excuses it.
    """
    runs = [run for run in runs_of(shell, cwd, read) if run.program not in SILENT]
    if len(runs) == 1:
        return True
    commands = simple_commands(shell)
    if len(commands) < 2 or {command.after for command in commands[:-1]} != {"&&"}:
        return False
    last = commands[-1]
    start = min(word.start for word in (*last.assignments, *last.words))
    earlier = shell[:start].rstrip().removesuffix("&&")
    if readers_of(earlier, cwd, read):
        return False
    return last.after == "" and sum(run.outer == last for run in runs) == 1
