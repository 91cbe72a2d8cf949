"""TaskContext → the short view that the planner reads; deterministic and bounded.

Values only: texts of people, workers and tests stay data here, and are marked as such where a
prompt is made of them. The view contains nothing of the host: no paths outside the repository, no
environment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from agentrunner.config.prd import describe_check
from agentrunner.config.spec import TaskSpec
from agentrunner.state.budget import NAMES, WHOLE, left_of
from agentrunner.state.decisions import shown
from agentrunner.state.run_state import (
    RECENT,
    TAIL_BYTES,
    CheckOutcome,
    Counters,
    Criterion,
    Evidence,
    Finding,
    RedTest,
    TaskContext,
    TestOutcome,
)
from agentrunner.state.worker_runs import Outcome, WorkerRun
from agentrunner.text.cut import cut

PRD_CHARS = 2000
PATHS = 100
FAILING = 20
RED = 10
REFUSED = "Completion was refused, because: "
"""The beginning of the remark that says why completion was refused."""
NOTICED = "Noticed: "
"""The beginning of the remark about work that led nowhere."""
FROM_PERSON = "New from a person: "
"""The beginning of the remark that a person decided something since the last order."""
MEANING: dict[Outcome, str] = {
    "completed": "it ended without an error; whether the work is right only the evidence tells",
    "failed": "its CLI ended with an error",
    "timeout": "ended at its time limit",
    "idle_timeout": "ended after a long silence",
    "output_limit": "ended for too much output",
    "disk_limit": "ended for filling the disk",
    "oom": "out of memory",
    "egress": "ended for wanting a host that is not allowed",
    "no_op": "it changed no file and ran no command",
    "denied": "its CLI refused it a tool it wanted",
    "auth": "its credential was refused",
    "model": "its model is unavailable",
    "rate_limit": "its quota is spent, or its provider overloaded",
    "context": "too long for its model's context: fresh start, smaller step",
    "server": "its provider had an error",
    "network": "its provider was not reached",
    "protocol": "its provider refused the request",
    "budget": "ended by the budget",
    "interrupted": "stopped from outside",
    "lost": "its end is not known",
    "infra": "it could not be started",
}
"""What each outcome means, in a few words."""

View = dict[str, Any]


def summarize(
    context: TaskContext,
    spec: TaskSpec,
    *,
    patterns: Iterable[str] = (),
    workers: Collection[str] | None = None,
) -> View:
    """Return what is to be done, what was done and what was found, JSON-native.

    `patterns` are the names of the pattern library. `workers` are the candidates that can work
    here; by default all of them. The same arguments give an equal result with the same order of
    keys.
    """
    evidence = context.get("evidence")
    recent = context.get("recent", [])
    baseline = context.get("baseline")
    view = {
        "task": _task(spec),
        "state": str(context.get("state", "PENDING")),
        "acceptance_criteria": [_criterion(c) for c in context.get("criteria", [])],
        **_limits(context, spec),
        "completion": spec.completion,
        "last_worker_result": _last_worker(
            recent, context.get("tail", ""), context.get("error_tail", "")
        ),
        "recent_worker_runs": [_worker_run(worker_run) for worker_run in recent[-RECENT:]],
        "baseline_test": _test(baseline.test if baseline else None),
        "test_result": _test(evidence.test if evidence else None),
        "evidence": _evidence(evidence),
        "changed_files": _changed(evidence),
        "last_assessment": _assessment(context),
        "refused": _refused(context),
        "workers": [
            _worker(name, own, context)
            for name, own in spec.candidates
            if workers is None or name in workers
        ],
        "patterns": list(patterns),
        "notes": list(context.get("remarks", []))[-RECENT:],
        "people": shown(context.get("people")),
    }
    return dict(without_host(view, spec.repo))


def _limits(context: TaskContext, spec: TaskSpec) -> View:
    """Return the present counts of the run, and their limits."""
    counters = context.get("counters") or Counters()
    run = context.get("run")
    max_loops = run.max_loops if run else spec.runner.meta.max_loops
    return {
        "worker_runs_count": counters.worker_runs,
        "loops": counters.loops,
        "max_loops": max_loops,
        "loops_left": max(0, max_loops - counters.loops),
        "budget_left": _budget_left(context, spec, counters),
    }


def _task(spec: TaskSpec) -> View:
    return {
        "id": spec.task_id,
        "title": spec.title,
        "prd_summary": cut(spec.prd_text, PRD_CHARS),
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
        "grade": criterion.grade,
        "proof": criterion.proof,
        "comment": criterion.comment,
        **({"awaits": criterion.awaits.what} if criterion.awaits else {}),
    }


def _last_worker(recent: list[WorkerRun], output: str, errors: str) -> View:
    if not recent:
        return {"exists": False}
    view = _worker_run(recent[-1])
    for name in ("changes", "commands"):  # the recent runs have them
        del view[name]
    tails = {"stdout_tail": tail(output, TAIL_BYTES), "stderr_tail": tail(errors, TAIL_BYTES)}
    return {"exists": True, **view, **tails}


def _worker_run(run: WorkerRun) -> View:
    return {
        "worker_run_id": run.worker_run_id,
        "worker": run.member or run.worker,
        "loop": run.loop,
        "outcome": run.outcome,
        "meaning": MEANING[run.outcome],
        "exit_code": run.exit_code,
        "summary": run.summary,
        "error": run.error,
        "changed_files": run.changed_files,
        "diff_stat": run.diff_stat,
        "changes": list(run.changes),
        "commands": [
            {"command": seen.command, "exit_code": seen.exit_code} for seen in run.commands
        ],
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
        **_red(test.red),
        **_by_name(test),
        "finding": test.finding,
        "tail": tail(test.tail, TAIL_BYTES),
    }


def _by_name(test: TestOutcome) -> View:
    """Return the comparison by name with the tree before the run; only lists that are not empty."""
    lists = {
        "known_red": test.known_red,
        "turned_green": test.turned,
        "new_and_passing": test.added,
        "red_before_and_still": test.still_red,
        "red_only_now": test.newly_red,
    }
    shown: View = {key: names[:FAILING] for key, names in lists.items() if names}
    if test.how_many("known_red") > FAILING:
        shown["known_red_in_all"] = test.how_many("known_red")
    return shown


def _red(reds: Sequence[RedTest]) -> View:
    """Return why tests are red, for at most ten; nothing at all where no message is known."""
    return {"red": [red.model_dump() for red in reds[:RED]]} if reds else {}


def _evidence(evidence: Evidence | None) -> View:
    if evidence is None:
        return {"exists": False}
    view: View = {
        "exists": True,
        "red": evidence.red,
        "checks": [_check(check) for check in evidence.checks],
        "findings": [_finding(finding) for finding in evidence.findings],
        "proof": list(evidence.proof),
    }
    if evidence.examined:  # before that nothing is known of what new tests show
        view["tests_added"] = evidence.tests_added
    return view


def _check(check: CheckOutcome) -> View:
    return {
        "criterion_id": check.criterion_id,
        "what": check.what,
        "outcome": check.outcome,
        "exit_code": check.exit_code,
        "before": check.before,
        "detail": check.detail,
        **_red(check.red),
    }


def _finding(finding: Finding) -> View:
    return {
        "code": finding.code,
        "message": finding.message,
        "blocks": finding.blocks,
        "remedy": finding.remedy,
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


def _changed(evidence: Evidence | None) -> View:
    """Return what all worker runs together changed, against the tree before the first."""
    if evidence is None:
        return _paths([])
    return {
        **_paths(evidence.changed_files),
        "deleted": _paths(evidence.deleted_files)["total"],
        "lines_added": evidence.lines_added,
        "lines_removed": evidence.lines_removed,
    }


def _budget_left(context: TaskContext, spec: TaskSpec, counters: Counters) -> View:
    """Return what is left of each limit; None where there is none."""
    left = left_of(spec, TaskContext(counters=counters, grants=context.get("grants", {})))
    view: View = {name: left.get(name) for name in NAMES}
    for name in WHOLE & left.keys():
        view[name] = int(left[name])
    if "usd" in left:
        view["usd"] = round(left["usd"], 4)
    if "wall_sec" in left:
        # In a form that a replay recognises as a duration: no two runs take equally long.
        view["wall_sec"] = f"{math.ceil(left['wall_sec'] / 60) * 60:.1f} s"
    return view


def _refused(context: TaskContext) -> View:
    """Return the latest refusals: of completion, and of hosts."""
    remarks = context.get("remarks", [])
    completion = (text for text in reversed(remarks) if text.startswith(REFUSED))
    return {
        "completion": next(completion, None),
        "hosts": list(context.get("refused_hosts", []))[-PATHS:],
    }


def _worker(name: str, own: TaskSpec, context: TaskContext) -> View:
    """Return a candidate; it has a session to resume if its latest run left one."""
    worker = own.runner.worker
    runs = [run for run in context.get("recent", []) if (run.member or run.worker) == name]
    session = bool(runs) and runs[-1].session_id is not None and not runs[-1].session_lost
    return {
        "worker_type": name,
        "kind": worker.kind,
        "model": worker.model,
        "further_models": list(worker.models),
        "modes": ["exec", "resume"] if session else ["exec"],
        "session_available": session,
        "left_alone_until": _cooling(name, context),
    }


def _cooling(name: str, context: TaskContext) -> str | None:
    """Return until when its quota is spent or it cannot work, if that was still ahead when a worker
    last ended.
    """
    cooling = context.get("cooling", {})
    until = cooling.get(f"unable:{name}") or cooling.get(f"worker:{name}")
    latest = [run.ended_at for run in context.get("recent", []) if run.ended_at][-1:]
    if until and latest and datetime.fromisoformat(until) <= datetime.fromisoformat(latest[0]):
        return None
    return until


def without_host(value: Any, repo: str) -> Any:
    """Return the value with paths in the repository relative to its root.

    Tools print absolute paths, and where a person keeps a repository is private.
    """
    if not repo.strip("/"):
        return value
    inside = re.compile(re.escape(repo.rstrip("/")) + r"(/(?=[\w.-])|(?![\w.-]))")
    return _walked(value, lambda text: inside.sub(_from_root, text) if repo in text else text)


def _from_root(found: re.Match[str]) -> str:
    return "" if found[1] == "/" else "."


def _walked(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _walked(item, change) for name, item in value.items()}
    if isinstance(value, list):
        return [_walked(item, change) for item in value]
    return value


def tail(text: str, size: int) -> str:
    """Return the end of a text in at most `size` bytes of UTF-8, with `…` where it was cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= size:
        return text
    return "…" + data[-(size - 3) :].decode("utf-8", "ignore")
