"""TaskContext → the short view that the meta-agent reads; deterministic and bounded.

Values only: texts of people, workers and tests stay data here, and are marked as such where a
prompt is made of them. Nothing of the host is told: no paths outside the repository, no
environment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentrunner.task.context import (
    RECENT,
    TAIL_BYTES,
    CheckOutcome,
    Criterion,
    Evidence,
    Finding,
    TaskContext,
    TestOutcome,
    WorkerRun,
)
from agentrunner.task.prd import describe_check
from agentrunner.task.spec import TaskSpec

PRD_CHARS = 2000
PATHS = 100
FAILING = 20
REFUSED = "Completion was refused, because: "
"""How the note begins that says what completion was refused for."""

View = dict[str, Any]


def summarize(context: TaskContext, spec: TaskSpec, *, patterns: Iterable[str] = ()) -> View:
    """What is to be done, what was done and what was found, JSON-native.

    `patterns` are the names of the pattern library. The same arguments give an equal result
    with the same order of keys.
    """
    evidence = context.get("evidence")
    counters = context.get("counters")
    run = context.get("run")
    recent = context.get("recent", [])
    baseline = context.get("baseline")
    return {
        "task": _task(spec),
        "state": str(context.get("state", "PENDING")),
        "acceptance_criteria": [_criterion(c) for c in context.get("criteria", [])],
        "worker_runs_count": counters.worker_runs if counters else 0,
        "loops": counters.loops if counters else 0,
        "max_loops": run.max_loops if run else spec.runner.meta.max_loops,
        "completion": spec.completion,
        "last_worker_result": _last_worker(recent, context.get("tail", "")),
        "recent_worker_runs": [_worker_run(worker_run) for worker_run in recent[-RECENT:]],
        "baseline_test": _test(baseline.test if baseline else None),
        "test_result": _test(evidence.test if evidence else None),
        "evidence": _evidence(evidence),
        "changed_files": _paths(evidence.changed_files if evidence else []),
        "last_assessment": _assessment(context),
        "workers": [_worker(spec, recent)],
        "patterns": list(patterns),
        "notes": list(context.get("remarks", []))[-RECENT:],
    }


def _task(spec: TaskSpec) -> View:
    return {
        "id": spec.task_id,
        "title": spec.title,
        "prd_summary": head(spec.prd_text, PRD_CHARS),
        "test_command": spec.task.test.command if spec.task.test else None,
    }


def _criterion(criterion: Criterion) -> View:
    return {
        "id": criterion.id,
        "description": criterion.description,
        "detail": criterion.detail,
        "critical": criterion.critical,
        "origin": criterion.origin,
        "check": describe_check(criterion.check),
        "status": criterion.status,
        "passed": criterion.status == "passed",
        "evidence": criterion.evidence,
        "proof": criterion.proof,
        "comment": criterion.comment,
    }


def _last_worker(recent: list[WorkerRun], output: str) -> View:
    if not recent:
        return {"exists": False}
    return {"exists": True, **_worker_run(recent[-1]), "stdout_tail": tail(output, TAIL_BYTES)}


def _worker_run(run: WorkerRun) -> View:
    return {
        "worker_run_id": run.worker_run_id,
        "worker": run.worker,
        "loop": run.loop,
        "outcome": run.outcome,
        "exit_code": run.exit_code,
        "summary": run.summary,
        "error": run.error,
        "changed_files": run.changed_files,
    }


def _test(test: TestOutcome | None) -> View:
    if test is None:
        return {"executed": False}
    return {
        "executed": True,
        "command": test.command,
        "exit_code": test.exit_code,
        "green": test.green,
        "passed": test.passed,
        "failed": test.failed,
        "skipped": test.skipped,
        "failing": test.failing[:FAILING],
        "finding": test.finding,
        "tail": tail(test.tail, TAIL_BYTES),
    }


def _evidence(evidence: Evidence | None) -> View:
    if evidence is None:
        return {"exists": False}
    view: View = {
        "exists": True,
        "red": evidence.red,
        "checks": [_check(check) for check in evidence.checks],
        "findings": [_finding(finding) for finding in evidence.findings],
        "proof": list(evidence.proof),
        "tests_added": evidence.tests_added,
    }
    if evidence.restored_test is not None:
        view["test_with_the_old_tests_restored"] = _test(evidence.restored_test)
    return view


def _check(check: CheckOutcome) -> View:
    return {
        "criterion_id": check.criterion_id,
        "what": check.what,
        "outcome": check.outcome,
        "exit_code": check.exit_code,
        "before": check.before,
        "detail": check.detail,
    }


def _finding(finding: Finding) -> View:
    return {
        "code": finding.code,
        "message": finding.message,
        "blocks": finding.blocks,
        "paths": _paths(finding.paths),
    }


def _paths(paths: Iterable[str]) -> View:
    known = sorted(set(paths))
    return {"total": len(known), "paths": known[:PATHS]}


def _assessment(context: TaskContext) -> View | None:
    assessment = context.get("assessment")
    if assessment is None:
        return None
    return {
        "satisfied": assessment.satisfied,
        "summary": assessment.summary,
        "failed": list(assessment.failed),
        "remaining_risks": list(assessment.risks),
    }


def _worker(spec: TaskSpec, recent: list[WorkerRun]) -> View:
    """The worker that may be ordered; a session to go on in exists once a run left one."""
    session = bool(recent) and recent[-1].session_id is not None
    return {
        "worker_type": spec.runner.worker.kind,
        "model": spec.runner.worker.model,
        "modes": ["exec", "resume"] if session else ["exec"],
        "session_available": session,
    }


def head(text: str, characters: int) -> str:
    """The beginning of a text, with `…` where it was cut."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


def tail(text: str, size: int) -> str:
    """The end of a text in at most `size` bytes of UTF-8, with `…` where it was cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= size:
        return text
    return "…" + data[-(size - 3) :].decode("utf-8", "ignore")
