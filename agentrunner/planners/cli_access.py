"""How a planner CLI gets to its model: by a key, or by its login on this machine."""

from __future__ import annotations

from collections.abc import Mapping

from agentrunner.config.agents import PlannerSpec
from agentrunner.config.spec import TaskSpec
from agentrunner.errors import InfraError
from agentrunner.errors.planners import NoPlannerKey
from agentrunner.launching.access import CliAccess, find_login
from agentrunner.planners.endpoint import checked_url
from agentrunner.workers.base import Worker
from agentrunner.workers.login import Login, not_logged_in

URL_NAMES: Mapping[str, str] = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
"""By wire protocol, the environment variable that names another server than the provider's."""


def planner_access(
    spec: TaskSpec, worker: Worker, environ: Mapping[str, str], *, replays: bool
) -> CliAccess:
    """Return the CLI's credential: its key, else its login, unless the task names one of them.

    Raises InfraError where there is neither, UsageError for settings that clash. A run that
    `replays` a recording needs neither.
    """
    meta = spec.runner.meta
    key_name = next((name for name in worker.key_names if environ.get(name, "").strip()), "")
    login = None
    if meta.auth == "login" or (meta.auth is None and not key_name and not replays):
        login = _usable_login(spec, worker, environ)
    elif not key_name and not replays:
        raise _no_key(worker)
    url = _base_url(meta, worker, environ)
    return CliAccess(worker, url, key_name, environ.get(key_name, "").strip(), login, url)


def _base_url(planner: PlannerSpec, worker: Worker, environ: Mapping[str, str]) -> str:
    name = URL_NAMES[worker.wire]
    base_url = planner.base_url or environ.get(name) or worker.provider_url
    from_file = bool(planner.base_url)
    place = "runner.meta.base_url" if from_file else name
    checked_url(base_url, place, from_file=from_file, plain=planner.allow_plain_http)
    return base_url


def _usable_login(spec: TaskSpec, worker: Worker, environ: Mapping[str, str]) -> Login:
    named = spec.runner.meta.auth == "login"
    if spec.runner.meta.base_url and not named:
        raise _no_key(worker)
    login = find_login(spec, "meta", worker, environ)
    state = login.describe()
    if state.usable:
        return login
    if named:
        raise not_logged_in(f"{state.text}.", state.cure)
    raise _no_key(worker, f" {state.text}.", state.cure)


def _no_key(worker: Worker, login: str = "", cure: str = "") -> InfraError:
    names = worker.key_names
    return NoPlannerKey(
        f"The planner {worker.kind} has neither a key nor a login here: "
        f"{' and '.join(names)} {'are' if len(names) > 1 else 'is'} not set.{login}",
        remedy=f"export {names[0]}=…" + (f", or {cure}" if cure else ""),
        nothing_spent=True,
    )
