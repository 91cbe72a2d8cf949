"""What a person can do next with a run, as commands to paste."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from agentrunner.git.staging import commit_commands
from agentrunner.screens.layout import fit, flat, pasteable, wrap
from agentrunner.state.lifecycle import end_of
from agentrunner.text.terminal import cell_width

if TYPE_CHECKING:  # looking at runs must not load the models
    from agentrunner.results import Result

_IDS = 4
"""Ids that a command to accept lists; without any it accepts all."""


def result_steps(
    result: Result,
    target: str,
    width: int,
    git: str,
    driven: bool,
    *,
    first: tuple[str, str] | None = None,
) -> list[str]:
    """Return the lines `Next:` for a run that ended, stopped or, if `driven`, is at work.

    `first` is a step before those of an end in which something is missing.
    """
    name = f" {target}" if target else ""
    back = [(f"agentrunner undo{name}", "put the files back")] if result.changed_files else []
    hint = f'agentrunner resume{name} -m "..."'
    end, reason = end_of(result.state), result.reason or ""
    if result.undone:
        return next_lines([(f"agentrunner undo{name}", "brings its files again")], width)
    if result.part_of and (end or not driven):
        return next_lines(_steps_of_plan(result, name), width)
    if end is None and driven:
        return next_lines([(f"agentrunner watch{name}", "see it work")], width)
    if end is None or reason == "interrupted":
        begun = result.state != "PENDING" and reason != "not_started"
        again = (f"agentrunner resume{name}", "continue it" if begun else "begin it")
        return next_lines([again, *back] if begun else [again], width)
    match end.next_step:
        case "use":
            steps = _steps_to_use(result, name, git)
        case "review":
            steps = [*_diff_step(result, name), *_accept_steps(result, name)]
            steps += [(hint, "send it back with a remark"), *back]
        case "retry":
            again = (hint, "try again")
            if reason.startswith("budget: "):
                limit = flat(reason.removeprefix("budget: "))
                again = (f"agentrunner resume{name} --budget {limit}=+AMOUNT", "continue with more")
            logs = (f"agentrunner logs{name}", "what the worker did")
            steps = [*_diff_step(result, name), *_known_reds(result, name)]
            steps += _output_step(result, name)
            steps += [*([logs] if result.worker_runs else []), again]
            steps += back
        case other:
            assert_never(other)
    return next_lines([*([first] if first else []), *steps], width)


def _steps_to_use(result: Result, name: str, git: str) -> list[tuple[str, str]]:
    if not (result.changed_files or result.commit):
        return [(f"agentrunner logs{name}", "what happened")]
    steps = [(f"agentrunner diff{name}", "what this run changed")]
    commit = result.commit
    if commit and result.worktree:
        steps.append((f"{git} merge {shlex.quote(commit.branch)}", "take it over"))
    elif commit:
        steps.append((f"{git} show {commit.id[:10]}", "as it was committed"))
    else:
        steps.append((f"agentrunner undo{name}", "put it back"))
    if git and not commit and result.to_commit:
        commands = commit_commands(result.to_commit, git, result.repo)
        steps += [(command, "nothing was committed for you") for command in commands]
    return steps


def _diff_step(result: Result, name: str) -> list[tuple[str, str]]:
    """Return the step to see what a person has to settle, where that is about files."""
    open_ones = any(one.blocks and one.paths for one in result.findings)
    return [(f"agentrunner diff{name}", "what is asked about")] if open_ones else []


def _output_step(result: Result, name: str) -> list[tuple[str, str]]:
    """Return the step to see why a command fails of which no test is known to be red."""
    test = result.test
    known = test is None or test.failed or test.red or test.known_red or not test.measured
    if test is None or known or not test.exit_code:
        return []
    return [(f"agentrunner logs{name} --tests", "what the test command printed")]


def _accept_steps(result: Result, name: str) -> list[tuple[str, str]]:
    """Return the command for a person's acceptance, where it can count: never for red tests."""
    if result.red:
        return []
    nothing = [] if result.changed_files else ["--unchanged"]
    words = " ".join([f"agentrunner accept{name}", *_review_ids(result), *nothing])
    what = "nothing had to change; ends COMPLETE" if nothing else _YES
    return [(f'{words} --reason "..."', what)]


_YES = "your yes is recorded; COMPLETE, or asks of changed tests"


def _known_reds(result: Result, name: str) -> list[tuple[str, str]]:
    """Return the step for a run where only tests are red that were red before."""
    test = result.test
    if test is None or not test.still_red or test.newly_red or test.gone:
        return []
    criteria = [one for one in result.acceptance_criteria if one.critical]
    # One that the whole command stands for may be held back by these tests alone, where others have
    # turned green.
    kinds = {"tested"} if test.turned else set()
    if any(one.status != "passed" and one.evidence not in kinds for one in criteria):
        return []
    command = f'agentrunner accept{name} --known-red NAME --reason "..."'
    return [(command, "red for another reason")]


def _steps_of_plan(result: Result, name: str) -> list[tuple[str, str]]:
    """Return the steps for a plan's task: messages go to the plan, which continues with them."""
    say = f'agentrunner plan answer {flat(str(result.task_id))} "..."'
    go_on = ("agentrunner plan run", "the plan continues with it")
    end = end_of(result.state)
    match end.next_step if end else None:
        case "use":
            diff = (f"agentrunner diff{name}", "what this run changed")
            lands = ("agentrunner plan run", "merges it, if it is not merged")
            return [diff, ("agentrunner plan status", "what became of it"), lands]
        case "review":
            return [*_accept_steps(result, name), (say, "send it back with a remark"), go_on]
        case "retry":
            logs = (f"agentrunner logs{name}", "what the worker did")
            return [logs, (say, "try again with a hint"), go_on]
        case None:
            return [go_on]
        case other:
            assert_never(other)


def _review_ids(result: Result) -> list[str]:
    """Return ids that need a person's acceptance; [], which means all, if there are too many."""
    ids = [
        flat(criterion.id)
        for criterion in result.acceptance_criteria
        if criterion.critical and (criterion.status != "passed" or criterion.evidence == "judged")
    ]
    return ids if len(ids) <= _IDS else []


def next_lines(steps: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Format `Next:  COMMAND   what it does` with commands in one column and nothing cut.

    A meaning without room beside its command is below it.
    """
    column = _column(steps, width - _LEAD)
    lines = []
    for index, (command, meaning) in enumerate(steps):
        lead = f"{'Next:' if index == 0 else '     '}  "
        if cell_width(command) <= column:
            lines.append(f"{lead}{fit(command, column)}  {flat(meaning)}".rstrip())
        else:
            lines += _in_lines(lead, command, width)
            lines += wrap(meaning, width, " " * (_LEAD + 2))
    return lines


def _in_lines(lead: str, command: str, width: int) -> list[str]:
    first, *rest = pasteable(command, width - _LEAD - 2)
    return [lead + first, *(" " * (_LEAD + 2) + part for part in rest)]


_LEAD = len("Next:  ")


def _column(steps: Sequence[tuple[str, str]], room: int) -> int:
    """The widest command column with room for every meaning beside it; 0 if there is none."""
    beside = sorted(steps, key=lambda step: cell_width(step[0]))
    while beside:
        column = cell_width(beside[-1][0])
        if column + 2 + max(cell_width(flat(meaning)) for _, meaning in beside) <= room:
            return column
        beside.pop()
    return 0
