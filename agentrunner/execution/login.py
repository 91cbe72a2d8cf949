"""What a worker shows as its credential in one run: a key, or the access token of a login."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentrunner.config.load import resolve_env
from agentrunner.config.spec import TaskSpec
from agentrunner.errors.workers import LoginElsewhere, LoginUnsupported
from agentrunner.execution.credentials import credential, upstream_of
from agentrunner.execution.deps import Deps
from agentrunner.execution.tries import after_refused_login
from agentrunner.execution.worker_record import seen_before
from agentrunner.gateway.order import Upstream, new_placeholder
from agentrunner.state.run_state import TaskContext, WorkerOrder, WorkerRun
from agentrunner.workers.base import Worker
from agentrunner.workers.login import MIN_VALID_SEC, Access, Login, login_for, not_logged_in


@dataclass(frozen=True)
class WorkerCredential:
    """Where a worker's model calls go, and with what."""

    upstream: Upstream | None = None
    """For the gateway; None where there is none."""
    base_url: str | None = None
    """What a worker without a gateway is told; None leaves it to the adapter."""
    key: str = field(default="", repr=False)
    """For the adapter's `key_env`: a placeholder where there is a gateway, else the real one."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further variables of the box. They win over those of the task."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the redactor must learn before the worker starts."""
    fingerprint: str = ""
    """Of a login's token; tells `credential_for` later that it was refused. May be stored."""
    warning: str = ""
    """What a person should know."""


async def credential_for(
    spec: TaskSpec,
    worker: Worker,
    environ: Mapping[str, str],
    *,
    gateway: bool,
    refused: str = "",
    replays: bool = False,
) -> WorkerCredential:
    """The credential for one worker run, a login refreshed where needed.

    With a `gateway` the worker sees a placeholder. `refused` is the fingerprint of the token with
    which the run before ended as `auth`. A run that `replays` a recording needs no login. Raises
    InfraError where a login is not there, is over or cannot be refreshed, UsageError for a worker
    without logins.
    """
    if spec.runner.worker.auth == "key" or replays:
        upstream = upstream_of(spec, worker, environ) if gateway else None
        real = credential(spec, worker, environ)[1]
        return WorkerCredential(upstream, key=upstream.placeholder if upstream else real)
    seconds = max(MIN_VALID_SEC, spec.runner.worker.max_run_time_sec)
    access = await _login(spec, worker, environ).access(seconds, refused=refused)
    return _shown(access, worker, gateway=gateway)


def check_login(spec: TaskSpec, worker: Worker, environ: Mapping[str, str]) -> None:
    """Refuse a task with `auth: login` that cannot have one, before anything starts.

    Raises as `credential_for` does. Nothing is refreshed.
    """
    if spec.runner.worker.auth == "login":
        state = _login(spec, worker, environ).describe()
        if not state.usable:
            raise not_logged_in(f"{state.text}.", state.cure)


def refused_login(state: TaskContext, deps: Deps, order: WorkerOrder) -> str:
    """The fingerprint of the token that its latest run was refused with; "" for none."""
    runs = [run for run in state.get("recent", []) if run.member == order.member]
    latest = runs[-1] if runs else None
    if latest is None or not _ended_by_auth(latest):
        return ""
    return str(seen_before(deps, latest.worker_run_id).get("login", ""))


def again_with_login(deps: Deps, order: WorkerOrder, run: WorkerRun) -> WorkerOrder | None:
    """The same order, to go on in the same session with a fresh token; None where it is no use."""
    member = deps.member(order.member)
    if member.spec.runner.worker.auth == "key" or not _ended_by_auth(run):
        return None
    again = after_refused_login(order.worker_run_id)
    if again is None:
        return None
    mode = "resume" if run.session_id else order.mode
    return order.model_copy(update={"worker_run_id": again, "mode": mode})


def _ended_by_auth(run: WorkerRun) -> bool:
    return run.outcome == "auth"


def _login(spec: TaskSpec, worker: Worker, environ: Mapping[str, str]) -> Login:
    if spec.runner.worker.base_url:
        raise LoginElsewhere(
            "A login goes to its own provider only; the task names another address.",
            path=spec.places.get("runner.worker.base_url", "runner.worker.base_url"),
            remedy="remove runner.worker.base_url, or set runner.worker.auth to key",
        )
    home = Path(environ.get("HOME") or Path.home())
    given = resolve_env(spec.runner.worker.env, environ)
    login = login_for(worker.kind, environ, home, given=given)
    if login is None:
        raise LoginUnsupported(
            f"The worker {worker.kind} has no login that can be used.",
            path=spec.places.get("runner.worker.auth", "runner.worker.auth"),
            remedy="remove runner.worker.auth",
        )
    return login


def _shown(access: Access, worker: Worker, *, gateway: bool) -> WorkerCredential:
    upstream, shown, warning = None, access.token, ""
    if gateway and worker.wire:
        upstream = Upstream(
            wire=worker.wire,
            base_url=access.base_url,
            credential=access.token,
            placeholder=new_placeholder(),
            scheme="bearer",
        )
        shown = upstream.placeholder
    else:
        warning = (
            f"There is no gateway: the worker sees the access token of the {worker.kind} login. "
            "Whoever reads it can use the subscription until it ends."
        )
    by_name = {access.token_env: shown} if access.token_env else {}
    return WorkerCredential(
        upstream=upstream,
        base_url=None if gateway else access.base_url,
        key="" if access.token_env else shown,
        env={**access.env, **by_name},
        secrets={f"{worker.kind} login": access.token},
        fingerprint=access.fingerprint,
        warning=warning,
    )
