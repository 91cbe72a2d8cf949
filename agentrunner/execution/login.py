"""What a worker shows as its credential in one run: a key, or the access token of a login."""

from __future__ import annotations

from collections.abc import Mapping

from agentrunner.config.load import resolve_env
from agentrunner.config.spec import TaskSpec
from agentrunner.environment import home_of
from agentrunner.errors.workers import LoginElsewhere, LoginUnsupported
from agentrunner.execution.credentials import credential
from agentrunner.execution.deps import Deps
from agentrunner.execution.tries import after_refused_login
from agentrunner.execution.worker_record import seen_before
from agentrunner.state.run_state import TaskContext, WorkerOrder, WorkerRun
from agentrunner.workers.base import Worker
from agentrunner.workers.launching import CliCredential, by_key, by_login
from agentrunner.workers.login import MIN_VALID_SEC, Login, login_for, not_logged_in


async def credential_for(
    spec: TaskSpec,
    worker: Worker,
    environ: Mapping[str, str],
    *,
    gateway: bool,
    refused: str = "",
    replays: bool = False,
) -> CliCredential:
    """The credential for one worker run, a login refreshed where needed.

    With a `gateway` the worker sees a placeholder. `refused` is the fingerprint of the token with
    which the run before ended as `auth`. A run that `replays` a recording needs no login. Raises
    InfraError where a login is not there, is over or cannot be refreshed, UsageError for a worker
    without logins.
    """
    if spec.runner.worker.auth == "key" or replays:
        real = credential(spec, worker, environ)[1]
        return by_key(worker, real, worker.provider_url, gateway=gateway)
    seconds = max(MIN_VALID_SEC, spec.runner.worker.max_run_time_sec)
    access = await _login(spec, worker, environ).access(seconds, refused=refused)
    return by_login(worker, access, gateway=gateway)


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
    home = home_of(environ)
    given = resolve_env(spec.runner.worker.env, environ)
    login = login_for(worker.kind, environ, home, given=given)
    if login is None:
        raise LoginUnsupported(
            f"The worker {worker.kind} has no login that can be used.",
            path=spec.places.get("runner.worker.auth", "runner.worker.auth"),
            remedy="remove runner.worker.auth",
        )
    return login
