"""The record of a worker run: in the state, the run log and the events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentrunner.environment import is_full
from agentrunner.errors.runs import DiskFull
from agentrunner.execution.deps import Deps
from agentrunner.execution.egress import refused_hosts, usage_log, usage_of
from agentrunner.git.snapshots import Change, stat_line
from agentrunner.git.user_config import git_settings
from agentrunner.money.amount import Amount, least_usd, total
from agentrunner.state.rounds import round_of
from agentrunner.state.run_state import TAIL_BYTES, Finding, TaskContext
from agentrunner.state.state_model import FileRef
from agentrunner.state.worker_runs import CommandSeen, WorkerOrder, WorkerRun
from agentrunner.supervisor.client import SupervisedResult
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.check_runner import MOST_PATHS
from agentrunner.verification.trees import changes_between
from agentrunner.workers.base import WorkerReading
from agentrunner.workers.outcome import WorkerOutcome

EVERY_SEC = 2.0
"""Least time between two `worker_usage` events of a worker run."""


class LiveUsage:
    """Emits `worker_usage` when the gateway of a worker run has counted more."""

    def __init__(self, deps: Deps, order: WorkerOrder) -> None:
        self._deps, self._worker_run_id = deps, order.worker_run_id
        self._log = usage_log(deps, order.worker_run_id)
        self._subscribed = deps.member(order.member).subscribed
        self._size, self._tokens = 0, 0
        self._next_at = float("-inf")

    def look(self) -> None:
        """Emit what is counted by now if that has changed; cheap where it has not."""
        now = self._deps.clock.monotonic()
        if now < self._next_at:
            return
        try:
            size = self._log.stat().st_size
        except FileNotFoundError:  # no gateway, or no call yet
            return
        if size == self._size:
            return
        self._size, self._next_at = size, now + EVERY_SEC
        amounts = usage_of(self._deps, self._worker_run_id).by_model.values()
        used = total(amounts)
        if used.tokens != self._tokens:
            self._tokens = used.tokens
            usd = None if self._subscribed else least_usd(amounts)
            self._deps.emit(
                "worker_usage", worker_run_id=self._worker_run_id, tokens=used.tokens, usd=usd
            )


MOST_COMMANDS = 10
"""Commands of a worker run that the state keeps, the latest."""
MOST_CHANGES = 20
PATH_CHARS = 120
"""Characters of a changed file's path in the state; its beginning is cut."""
INSTALLS = lazy_regex(
    r"\b(pip3?|uv|npm|pnpm|yarn|poetry|pdm|bundle|cargo|go)\b.*\b(install|add|sync|update|get|ci)\b"
)


def worker_run_of(
    deps: Deps,
    order: WorkerOrder,
    supervised: SupervisedResult,
    trees: tuple[str, str],
    reading: WorkerReading,
    outcome: WorkerOutcome,
) -> WorkerRun:
    """Return the worker run as the state keeps it; `trees` are those before and after it."""
    redact = deps.redactor.redact
    seen = [
        CommandSeen(command=redact(command.command)[:200], exit_code=command.exit_code)
        for command in reading.commands[-MOST_COMMANDS:]
    ]
    return WorkerRun(
        worker_run_id=order.worker_run_id,
        worker=order.worker,
        member=order.member,
        loop=order.loop,
        round=order.round,
        outcome=outcome.outcome,
        exit_code=supervised.exit_code,
        started_at=supervised.started_at,
        ended_at=supervised.ended_at,
        duration_sec=supervised.duration_sec,
        summary=redact(reading.summary)[:600],
        error=redact(outcome.error or supervised.error)[:600],
        tree_before=trees[0],
        tree_after=trees[1],
        session_id=reading.session_id,
        session_lost=reading.session_lost,
        reset_at=outcome.reset_at,
        commands=seen,
        output=deps.folder.ref(supervised.stdout) if supervised.stdout.exists() else None,
        errors=_errors(deps, supervised),
    )


def record_run(
    state: TaskContext,
    deps: Deps,
    run: WorkerRun,
    reading: WorkerReading,
    changes: Sequence[Change],
    embedded: Sequence[str] | None = None,
    amounts: Sequence[Amount] = (),
) -> dict[str, object]:
    """Record a worker run in the run log and the events, with every changed file. Blocks.

    Returns what it changed, as fields of the worker run in the state.

    `changes` are what it changed, `embedded` the `.git` folders that the snapshot after it found,
    where there was one, and `amounts` what it cost.
    """
    findings, git_before = _findings_and_git(deps, run, reading, embedded)
    redact = deps.redactor.redact
    data: dict[str, object] = {
        **run.model_dump(mode="json"),
        "changed_files": len(changes),
        "commands": [
            {"command": redact(c.command)[:500], "exit_code": c.exit_code, "status": c.status}
            for c in reading.commands[:100]
        ],
        "changes": [
            {"path": c.path, "kind": c.kind, "added": c.added, "removed": c.removed}
            for c in changes[:500]
        ],
        "findings": [finding.model_dump(mode="json") for finding in findings],
        "git_before": git_before,
        "tokens": {"input": reading.input_tokens, "output": reading.output_tokens},
        "usage": [amount.as_dict() for amount in amounts],
    }
    deps.record(state, "worker_run", run.worker_run_id, data)
    deps.emit(
        "worker_finished", worker_run_id=run.worker_run_id,
        round=round_of(run.round, run.loop), outcome=run.outcome,
        exit_code=run.exit_code, duration_sec=run.duration_sec, changed_files=len(changes),
        hosts_refused=refused_hosts(deps, run.worker_run_id),
        tokens=total(amounts).tokens, usd=least_usd(amounts),
        error=redact(run.error),
    )  # fmt: skip
    if is_full(Path(deps.spec.repo)):
        where = f"No room is left on the disk of {deps.spec.repo}"
        deps.warn(state, DiskFull.code, f"{where}: what the worker wrote may be cut short")
    return _change_fields(changes)


def _change_fields(changes: Sequence[Change]) -> dict[str, object]:
    """Return what a worker run changed, short enough for the state."""
    return {
        "changed_files": len(changes),
        "diff_stat": stat_line(changes) if changes else "",
        "changes": [_change_line(change) for change in changes[:MOST_CHANGES]],
    }


def _change_line(change: Change) -> str:
    """Return a changed file in a few words: "app/links.py +10 -3", "old.py deleted"."""
    path = change.path if len(change.path) <= PATH_CHARS else "…" + change.path[1 - PATH_CHARS :]
    if change.kind in ("deleted", "type"):
        return f"{path} {'deleted' if change.kind == 'deleted' else 'changed its type'}"
    if change.added is None:
        return f"{path} {change.kind} (binary)"
    return f"{path} +{change.added} -{change.removed}"


def _findings_and_git(
    deps: Deps, run: WorkerRun, reading: WorkerReading, embedded: Sequence[str] | None
) -> tuple[list[Finding], dict[str, str]]:
    """Return findings about what no snapshot shows, and the changed `.git` folders."""
    before = seen_before(deps, run.worker_run_id)
    if not before:
        return [], {}
    findings = _suspicions(deps, run, reading, before["dependencies"])
    return findings, _git_changed(deps, before["gitdirs"], embedded)


def _suspicions(
    deps: Deps, run: WorkerRun, reading: WorkerReading, before: Mapping[str, str]
) -> list[Finding]:
    """Return a finding where ignored dependency folders changed; it blocks without an install
    command.

    A `command` worker reports its own commands, so an install that it reports does not count.
    """
    after = deps.snapshots.dependency_fingerprint()
    names = sorted(before.keys() | after.keys())
    changed = [name for name in names if before.get(name) != after.get(name)]
    if not changed:
        return []
    trusted = run.worker != "command"
    seen = trusted and any(INSTALLS.search(command.command) for command in reading.commands)
    message = f"Installed dependencies were changed: {', '.join(changed[:5])}"
    return [
        Finding(
            code="dependencies_changed",
            message=message,
            paths=changed[:MOST_PATHS],
            blocks=not seen,
        )
    ]


def git_places(deps: Deps, embedded: Sequence[str]) -> dict[str, str]:
    """Return digests of git settings below the top, and at the top where no sandbox protects it."""
    top = [] if deps.sandbox.isolates else [".git"]
    return git_settings(Path(deps.spec.repo), [*top, *embedded])


def _git_changed(
    deps: Deps, before: Mapping[str, str], embedded: Sequence[str] | None
) -> dict[str, str]:
    """Return each `.git` that the run changed, with its digest before it ("": there was none)."""
    found = deps.snapshots.take().embedded if embedded is None else embedded
    after = git_places(deps, [*found, *before])
    names = sorted(before.keys() | after.keys())
    return {name: before.get(name, "") for name in names if before.get(name) != after.get(name)}


def seen_before(deps: Deps, worker_run_id: str) -> dict[str, Any]:
    """Return tree, git and dependencies as saved when the worker started; {} where nothing was."""
    return deps.ledger.claimed_with(worker_run_id)


def tree_before(deps: Deps, order: WorkerOrder) -> str:
    """Return the tree when the worker was started; "" where it was not saved."""
    return str(seen_before(deps, order.worker_run_id).get("tree", ""))


def booked_tokens(deps: Deps, order: WorkerOrder) -> tuple[int, int]:
    """Return input and output tokens already counted for earlier runs of the same session."""
    if order.mode != "resume":
        return 0, 0
    session = None
    total = [0, 0]
    for record in reversed(deps.log.records("worker_run")):
        if record.key == order.worker_run_id or not record.data.get("session_id"):
            continue
        session = session or record.data["session_id"]
        if record.data["session_id"] == session:
            tokens = record.data.get("tokens", {})
            total = [total[0] + tokens.get("input", 0), total[1] + tokens.get("output", 0)]
    return total[0], total[1]


def output_tails(deps: Deps, supervised: SupervisedResult) -> tuple[str, str]:
    """Return the ends of the worker's standard output and standard error."""
    return _tail(deps, supervised.stdout), _tail(deps, supervised.stderr)


def _tail(deps: Deps, path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    return deps.redactor.redact(text)[-TAIL_BYTES // 2 :]


def _errors(deps: Deps, supervised: SupervisedResult) -> FileRef | None:
    """Return the file of the worker's standard error, or None where it is empty."""
    path = supervised.stderr
    return deps.folder.ref(path) if path.exists() and path.stat().st_size else None


def note_foreign_edits(state: TaskContext, deps: Deps, tree: str) -> list[str]:
    """Return the paths that changed since the latest known tree, and record them. Blocks.

    Where the run had ended, a finding of its evidence says so.
    """
    known = state.get("tree")
    if not known or known == tree:
        return []
    changes = changes_between(deps.snapshots, known, tree)
    if changes.all:
        shown = ", ".join(changes.all[:5]) + (" …" if len(changes.all) > 5 else "")
        ended = bool(state["run"].accepting)
        if not ended:
            deps.warn(state, "edited", f"edited while running, not by the worker: {shown}")
        data = {
            "paths": changes.all[:500],
            "tree_before": known,
            "tree_after": tree,
            "ended": ended,
        }
        deps.record(state, "human_edit", f"{known[:12]}-{tree[:12]}", data)
    return changes.all
