"""How a CLI that plans gets to its model: by a key, or by the login it has on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentrunner.config.spec import TaskSpec
from agentrunner.environment import home_of
from agentrunner.errors import InfraError
from agentrunner.errors.planners import NoPlannerKey
from agentrunner.errors.workers import LoginElsewhere, LoginUnsupported
from agentrunner.planners.endpoint import checked_url
from agentrunner.workers.base import Worker
from agentrunner.workers.launching import CliCredential, by_key, by_login
from agentrunner.workers.login import MIN_VALID_SEC, Login, login_for, not_logged_in

URL_NAMES: Mapping[str, str] = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
"""By wire, the variable of the process that names another server than the provider's."""


class CliAccess:
    """Chooses key or login once, and gives what is shown call by call."""

    def __init__(
        self, spec: TaskSpec, worker: Worker, environ: Mapping[str, str], *, replays: bool
    ) -> None:
        """Raises InfraError where neither is to be had, UsageError for settings that clash.

        A run that `replays` a recording needs neither.
        """
        meta = spec.runner.meta
        self._worker = worker
        self._environ = environ
        self._login: Login | None = None
        self.key_name = next((n for n in worker.key_names if environ.get(n, "").strip()), "")
        if meta.auth == "login" or (meta.auth is None and not self.key_name and not replays):
            self._login = _usable_login(worker, environ, meta.base_url, named=meta.auth == "login")
        elif not self.key_name and not replays:
            raise _no_key(worker)
        self._base_url = _base_url(meta.base_url, worker, environ)

    @property
    def subscription(self) -> bool:
        """Whether calls are part of a subscription."""
        return self._login is not None

    def describe(self) -> str:
        """For the header."""
        return "with its login" if self._login else f"with {self.key_name or 'no key'}"

    async def shown(self, seconds: float, *, gateway: bool, refused: str = "") -> CliCredential:
        """What is shown in a call that may take `seconds`, a login refreshed where needed.

        `refused` is the fingerprint of a token that was not taken. Raises InfraError where a
        login is over or cannot be refreshed.
        """
        if self._login is not None:
            access = await self._login.access(max(MIN_VALID_SEC, seconds), refused=refused)
            return by_login(self._worker, access, gateway=gateway)
        key = self._environ.get(self.key_name, "").strip()
        shown = by_key(self._worker, key, self._base_url, gateway=gateway)
        secrets = {self.key_name: key} if key else {}
        return replace(shown, base_url=self._base_url, secrets=secrets)


def _base_url(written: str | None, worker: Worker, environ: Mapping[str, str]) -> str:
    name = URL_NAMES[worker.wire]
    base_url = written or environ.get(name) or worker.provider_url
    checked_url(base_url, "runner.meta.base_url" if written else name, from_file=bool(written))
    return base_url


def _usable_login(
    worker: Worker, environ: Mapping[str, str], base_url: str | None, *, named: bool
) -> Login:
    if base_url:
        if not named:
            raise _no_key(worker)
        raise LoginElsewhere(
            "A login goes to its own provider only; the task names another address.",
            path="runner.meta.base_url",
            remedy="remove runner.meta.base_url, or set runner.meta.auth to key",
        )
    home = home_of(environ)
    login = login_for(worker.kind, environ, home)
    if login is None:
        raise LoginUnsupported(
            f"The planner {worker.kind} has no login that can be used.",
            path="runner.meta.auth",
            remedy="remove runner.meta.auth",
        )
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
