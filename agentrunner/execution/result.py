"""The `Result` of a run, made from its state: the same for --json, `show` and the note. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Literal

from agentrunner.config.spec import TaskSpec
from agentrunner.results import (
    BillEntry,
    CommitMade,
    CriterionResult,
    DecisionEntry,
    FindingEntry,
    InboxItem,
    PeopleSummary,
    ProofEntry,
    Result,
    TestSummary,
    TokenCount,
    UsageTotals,
)
from agentrunner.state.decisions import words_of
from agentrunner.state.evidence_words import Origin
from agentrunner.state.lifecycle import END_STATES, KEPT_EXIT, TERMINAL, WAITING_EXIT, TaskState
from agentrunner.state.people import People, Question
from agentrunner.state.red_tests import shown_red
from agentrunner.state.rounds import rounds_so_far
from agentrunner.state.run_state import Counters, Criterion, Evidence, TaskContext
from agentrunner.verification.evidence.findings import approval_of
from agentrunner.verification.verdict import worker_trouble

NEVER_LET_IN = ("auth", "model")
"""Reasons of a planner's failure (`planners.faults`) that are mistakes of this machine's set-up."""


def _waiting_exit(question: Question, state: TaskContext) -> int:
    """Return the exit code of a run that waits for this answer.

    A key or model that is refused at the first call of all is something that this machine lacks:
    nothing was decided, and nobody has to weigh anything. It stays a question, so that the run
    goes on once that is put right.
    """
    if question.kind == "planner" and state["run"].attempt == 1:
        subject, counters = json.loads(question.subject), state["counters"]
        begun = (
            counters.decisions or counters.worker_runs or subject.get("asked_for") != "plan_task"
        )
        if not begun and subject.get("reason") in NEVER_LET_IN:
            return KEPT_EXIT
    return WAITING_EXIT


def build_result(
    state: TaskContext,
    spec: TaskSpec,
    *,
    waiting: Question | None = None,
    exit_code: int | None = None,
    reason: str | None = None,
    note: str | None = None,
    bill: Sequence[BillEntry] = (),
    commit: CommitMade | None = None,
    latest_at: str = "",
    diffs: Mapping[str, str] = MappingProxyType({}),
) -> Result:
    """Return the result of a run so far.

    `bill` comes from `money.bill.bill_of`, `commit` from `commit_of`; `latest_at` is when the run
    log was last written to, and `diffs` are those of open findings (`kept_diffs`).
    """
    run, counters = state["run"], state["counters"]
    verdict, evidence = state.get("verdict"), state.get("evidence") or Evidence(tree="")
    ended = state["state"] in TERMINAL
    worked = round(run.start_sec + counters.wall_sec, 3)
    if exit_code is None:
        end = END_STATES.get(state["state"])
        exit_code = (
            _waiting_exit(waiting, state) if waiting else end.exit_code if end else KEPT_EXIT
        )
    return Result(
        run_id=run.run_id,
        task_id=run.task_id,
        title=run.title,
        state=state["state"],
        exit_code=exit_code,
        reason=reason or (verdict.reason if verdict else None),
        text=verdict.text if verdict and ended else None,
        missing=_missing(state) if ended else [],
        note=note,
        repo=run.repo,
        attempt=run.attempt,
        loops=counters.loops,
        max_loops=run.max_loops,
        rounds=rounds_so_far(state),
        worker_runs=counters.worker_runs,
        meta_calls=counters.calls,
        completion=spec.completion,
        grade=verdict.grade if verdict and ended else None,
        acceptance_criteria=[criterion_result(one) for one in state.get("criteria", [])],
        test=_test(state),
        proof=evidence.proof,
        proofs=[ProofEntry.of(one) for one in evidence.proofs],
        findings=[
            FindingEntry.of(one, diff=diffs.get(approval_of(one, evidence.tree), one.diff))
            for one in evidence.findings
        ],
        changed_files=evidence.changed_files,
        deleted_files=evidence.deleted_files,
        lines_added=evidence.lines_added,
        lines_removed=evidence.lines_removed,
        tree=evidence.tree if state.get("evidence") else None,
        usage=_usage(counters),
        bill=list(bill),
        duration_sec=worked,
        waited_sec=_waited(run.started_at, latest_at, worked),
        commit=commit,
        worktree=spec.repo if spec.repo != spec.shown_repo else None,
        part_of=spec.part_of,
        people=_people(state.get("people") or People()),
        waiting=InboxItem.of(waiting) if waiting else None,
        waiting_until=_waiting_until(state),
    )


def _missing(state: TaskContext) -> list[str]:
    """Return what stands between this end and COMPLETE.

    In a run that failed or got stuck, what stopped the worker comes first.
    """
    verdict = state.get("verdict")
    if verdict is None or not verdict.missing:
        return []  # the reason of the end is enough
    failed = state["state"] == TaskState.FAILED or verdict.reason == "stuck"
    trouble = worker_trouble(state.get("recent", [])) if failed else ""
    return [*([trouble] if trouble else []), *verdict.missing]


def _people(people: People) -> PeopleSummary:
    """Return what people decided: the last twenty in full, older ones in one line each."""
    return PeopleSummary(
        decisions=[DecisionEntry.of(one, text=words_of(one)) for one in people.recent],
        older=[one.line for one in people.older],
        omitted=people.omitted,
    )


def _waiting_until(state: TaskContext) -> str | None:
    """Return when the run resumes by itself; None where it waits for no quota or provider."""
    wait = state.get("wait")
    return wait.until if wait is not None and state["state"] not in TERMINAL else None


def _waited(began: str, latest: str, worked: float) -> float | None:
    """Return the seconds from the beginning to `latest` spent on people, quotas and providers."""
    if not (began and latest):
        return None
    whole = datetime.fromisoformat(latest) - datetime.fromisoformat(began)
    return round(max(whole.total_seconds() - worked, 0.0), 3)


def _usage(counters: Counters) -> UsageTotals:
    """Return what all calls used, and their cost where that is known of each of them."""
    known = counters.priced_calls and not counters.unpriced_calls
    return UsageTotals(
        meta=TokenCount(
            input_tokens=counters.meta_input_tokens, output_tokens=counters.meta_output_tokens
        ),
        worker=TokenCount(
            input_tokens=counters.worker_input_tokens, output_tokens=counters.worker_output_tokens
        ),
        usd=round(counters.usd, 6) if known else None,
    )


_MAPPED_BY: Mapping[Origin, Literal["person", "planner"]] = {
    "task": "person",
    "human": "person",
    "model": "planner",
}


def criterion_result(criterion: Criterion) -> CriterionResult:
    """Return a criterion, as results have it."""
    return CriterionResult.of(
        criterion,
        mapped_by=_MAPPED_BY[criterion.tests_origin] if criterion.tests else None,
        detail=criterion.proof or criterion.comment,
        former_checks=criterion.former,
    )


def _test(state: TaskContext) -> TestSummary | None:
    evidence, baseline = state.get("evidence"), state.get("baseline")
    at_baseline = baseline.test if baseline else None
    now = evidence.test if evidence and evidence.test else at_baseline
    if now is None:
        return None
    return TestSummary.of(
        now,
        reader=now.reader or None,
        red=shown_red(now),
        baseline_exit_code=at_baseline.exit_code if at_baseline else None,
        baseline_passed=at_baseline.passed if at_baseline else None,
        baseline_failed=at_baseline.failed if at_baseline else None,
        added=evidence.tests_added if evidence else 0,
        measured=bool(evidence and evidence.test),
    )
