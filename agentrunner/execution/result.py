"""From the state of a run to its `Result`, the same for --json, `show` and the note. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.results import Result
from agentrunner.state.decisions import words_of
from agentrunner.state.lifecycle import TERMINAL, TaskState
from agentrunner.state.red_tests import as_values, shown_red
from agentrunner.state.run_state import Counters, People, Question, TaskContext
from agentrunner.verification.verdict import worker_trouble

EXIT_CODES = {TaskState.COMPLETE: 0, TaskState.FAILED: 1, TaskState.NEEDS_REVIEW: 3}
WAITING = 4
SURROUNDINGS = 5


def _missing(state: TaskContext) -> list[str]:
    """What stands between this end and COMPLETE; of a failed run first what stopped its worker."""
    verdict = state.get("verdict")
    if verdict is None or not verdict.missing:
        return []  # the reason of the end says it all
    failed = state["state"] == TaskState.FAILED
    trouble = worker_trouble(state.get("recent", [])) if failed else ""
    return [*([trouble] if trouble else []), *verdict.missing]


def build_result(
    state: TaskContext,
    spec: TaskSpec,
    *,
    waiting: Question | None = None,
    error: Mapping[str, Any] | None = None,
    exit_code: int | None = None,
    reason: str | None = None,
    note: str | None = None,
    bill: Sequence[Mapping[str, Any]] = (),
    commit: Mapping[str, Any] | None = None,
    latest_at: str = "",
) -> Result:
    """What a run has come to so far.

    `bill` is what `notes.bill.bill_of` makes of the run log, `commit` what `commit_of` does;
    `latest_at` is when it was last written to.
    """
    run, counters = state["run"], state["counters"]
    verdict, evidence = state.get("verdict"), state.get("evidence")
    ended = state["state"] in TERMINAL
    if exit_code is None:
        exit_code = WAITING if waiting else EXIT_CODES.get(state["state"], SURROUNDINGS)
    values = {
        "run_id": run.run_id,
        "task_id": run.task_id,
        "title": run.title,
        "state": str(state["state"]),
        "exit_code": exit_code,
        "reason": reason or (verdict.reason if verdict else None),
        "text": verdict.text if verdict and ended else None,
        "missing": _missing(state) if ended else [],
        "error": dict(error) if error else None,
        "note": note,
        "repo": run.repo,
        "attempt": run.attempt,
        "loops": counters.loops,
        "max_loops": run.max_loops,
        "worker_runs": counters.worker_runs,
        "meta_calls": counters.calls,
        "completion": spec.completion,
        "grade": verdict.grade if verdict and ended else None,
        "acceptance_criteria": [_criterion(c.model_dump()) for c in state.get("criteria", [])],
        "test": _test(state),
        "proof": evidence.proof if evidence else [],
        "proofs": [_proof(p.model_dump()) for p in evidence.proofs] if evidence else [],
        "findings": [f.model_dump() for f in evidence.findings] if evidence else [],
        "changed_files": evidence.changed_files if evidence else [],
        "deleted_files": evidence.deleted_files if evidence else [],
        "lines_added": evidence.lines_added if evidence else 0,
        "lines_removed": evidence.lines_removed if evidence else 0,
        "tree": evidence.tree if evidence else None,
        "usage": {
            "meta": {
                "input_tokens": counters.meta_input_tokens,
                "output_tokens": counters.meta_output_tokens,
            },
            "worker": {
                "input_tokens": counters.worker_input_tokens,
                "output_tokens": counters.worker_output_tokens,
            },
            "usd": _usd(counters),
        },
        "bill": [dict(row) for row in bill],
        "duration_sec": counters.wall_sec,
        "waited_sec": _waited(run.started_at, latest_at, counters.wall_sec),
        "commit": _commit(commit),
        "worktree": spec.repo if spec.repo != spec.shown_repo else None,
        "part_of": spec.part_of,
        "people": _people(state),
        "waiting": _waiting(waiting),
        "waiting_until": _waiting_until(state),
    }
    return Result.model_validate(values)


def _people(state: TaskContext) -> dict[str, Any]:
    """What people decided: the last twenty in full, older ones in one line each."""
    people = state.get("people") or People()
    return {
        "decisions": [
            one.model_dump(mode="json", exclude={"steers", "characters"}) | {"text": words_of(one)}
            for one in people.recent
        ],
        "older": [one.line for one in people.older],
        "omitted": people.omitted,
    }


def _commit(made: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {name: made[name] for name in ("id", "branch")} if made else None


def _waiting_until(state: TaskContext) -> str | None:
    """When it goes on by itself; None where it does not wait for a quota or a provider."""
    wait = state.get("wait")
    return wait.until if wait is not None and state["state"] not in TERMINAL else None


def _waited(began: str, latest: str, worked: float) -> float | None:
    """Seconds from the beginning to `latest` that were no work: for people, quotas, providers."""
    if not (began and latest):
        return None
    whole = datetime.fromisoformat(latest) - datetime.fromisoformat(began)
    return round(max(whole.total_seconds() - worked, 0.0), 3)


def _usd(counters: Counters) -> float | None:
    """What all calls cost, where that is known of each of them."""
    known = counters.priced_calls and not counters.unpriced_calls
    return round(counters.usd, 6) if known else None


_MAPPED_BY = {"task": "person", "human": "person", "model": "planner"}


def _criterion(criterion: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": criterion["id"],
        "description": criterion["description"],
        "critical": criterion["critical"],
        "status": criterion["status"],
        "evidence": criterion["evidence"],
        "grade": criterion["grade"],
        "author": criterion["author"],
        "tests": criterion["tests"],
        "mapped_by": _MAPPED_BY[criterion["tests_origin"]] if criterion["tests"] else None,
        "origin": criterion["origin"],
        "detail": criterion["proof"] or criterion["comment"],
    }


def _proof(proof: dict[str, Any]) -> dict[str, Any]:
    return {key: proof[key] for key in ("target", "author", "grade", "text", "tests", "notes")}


def _test(state: TaskContext) -> dict[str, Any] | None:
    evidence, baseline = state.get("evidence"), state.get("baseline")
    before = baseline.test if baseline else None
    now = evidence.test if evidence and evidence.test else before
    if now is None:
        return None
    return {
        "command": now.command,
        "exit_code": now.exit_code,
        "passed": now.passed,
        "failed": now.failed,
        "finding": now.finding,
        "failing": now.failing,
        "reader": now.reader or None,
        "red": as_values(shown_red(now)),
        "known_red": now.known_red,
        "turned": now.turned,
        "still_red": now.still_red,
        "newly_red": now.newly_red,
        "gone": now.gone,
        "flaky": now.flaky,
        "baseline_exit_code": before.exit_code if before else None,
        "baseline_passed": before.passed if before else None,
        "baseline_failed": before.failed if before else None,
        "added": evidence.tests_added if evidence else 0,
    }


def _waiting(question: Question | None) -> dict[str, Any] | None:
    if question is None:
        return None
    return {
        "id": question.id,
        "kind": question.kind,
        "text": question.text,
        "options": question.options,
        "subject": question.subject,
    }
