"""Known reds that a person accepts in a run: tests that were red before it for another reason."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentrunner.config.spec import TaskSpec
from agentrunner.engine.attempts import looking_again
from agentrunner.errors import UsageError
from agentrunner.errors.runs import NotAKnownRed, NoTestNames, UnknownTest
from agentrunner.execution.decisions import KNOWN_RED
from agentrunner.state.decisions import in_one_line, with_decision
from agentrunner.state.people import PersonDecision
from agentrunner.state.rounds import rounds_so_far
from agentrunner.state.run_state import TaskContext
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from agentrunner.verification.evidence.claims import Picked, pick, red_names
from agentrunner.verification.evidence.measure import kept_results
from agentrunner.verification.evidence.wanted import mapped_by, named_by, wanted_by
from agentrunner.verification.results.model import Results

MOST_SHOWN = 10
"""Candidates that a refusal lists."""


def accepted_reds(log: RunLog) -> list[str]:
    """Return whole names of all tests that people accepted as known reds in this run. Blocks."""
    records = log.records(KNOWN_RED)
    return list(dict.fromkeys(str(name) for record in records for name in record.data["names"]))


def task_file_line(spec: TaskSpec, log: RunLog) -> str:
    """Return the line of a task file that has the same effect for later runs. Blocks."""
    listed = spec.task.test.known_red if spec.task.test else []
    names = list(dict.fromkeys([*listed, *accepted_reds(log)]))
    return f"task.test.known_red: {json.dumps(names, ensure_ascii=False)}"


def known_reds(
    folder: RunFolder, spec: TaskSpec, state: TaskContext, names: Sequence[str]
) -> list[str]:
    """Return the whole names of the red tests that a person means by `names`. Blocks.

    Raises UsageError where one was green, is claimed or is unknown, and where the test command
    reported no names before the run.
    """
    run_id, before = state["run"].run_id, _before(folder, state)
    if before is None or before.weak or not before.tests:
        raise NoTestNames(
            f"{run_id} has no results by test from before it, so no name can be held against them.",
            path="--known-red",
            remedy="task.test.command: a tool whose tests are reported by name",
        )
    criteria = state["criteria"]
    found = pick(names, before, wanted_by(spec, criteria), mapped_by(criteria), named_by(criteria))
    if found.unknown or found.green or found.claimed:
        raise _refused(run_id, found, red_names(before))
    return list(found.names)


def _before(folder: RunFolder, state: TaskContext) -> Results | None:
    baseline = state.get("baseline")
    test = baseline.test if baseline else None
    return kept_results(folder, test.results) if test else None


def _refused(run_id: str, found: Picked, red: Sequence[str]) -> UsageError:
    more = f" and {len(red) - MOST_SHOWN} more" * (len(red) > MOST_SHOWN)
    were = f"Red before were: {', '.join(red[:MOST_SHOWN])}{more}." if red else "None was red."
    if found.unknown:
        return UnknownTest(
            f"Before {run_id} no test was called {', '.join(found.unknown)}. {were}",
            path="--known-red",
        )
    if found.green:
        return NotAKnownRed(
            f"Not red before {run_id}: {', '.join(found.green)}. {were}",
            path="--known-red",
            remedy=f"agentrunner logs {run_id} --tests shows why it is red now",
        )
    return NotAKnownRed(
        f"What was asked for names {', '.join(found.claimed)}, by test, file or subject: it has to"
        " turn green.",
        path="--known-red",
        remedy="task.test.known_red in the task file, for the next run, if it is red for another"
        " reason all the same",
    )


def with_known_reds(
    state: TaskContext,
    spec: TaskSpec,
    names: Sequence[str],
    reason: str,
    *,
    at: str,
    by: str,
    number: int,
) -> tuple[TaskContext, PersonDecision]:
    """Return an attempt that measures and judges once more, and the decision that it is based on.

    `number` counts such decisions of the run, from 1.
    """
    decision = PersonDecision(
        id=f"known-red-{number}",
        kind="acceptance",
        asked=in_one_line(f"known red: {', '.join(names)}"),
        decision="accept",
        text=reason,
        at=at,
        by=by,
        round=rounds_so_far(state),
    )
    fresh = looking_again(state, spec)
    fresh["evidence"] = None  # it was measured with other claimed tests
    fresh["people"] = with_decision(state.get("people"), decision)
    return fresh, decision
