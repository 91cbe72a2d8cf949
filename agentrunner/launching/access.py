"""A CLI's credential for its model: a key, or the access token of its login on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agentrunner.config.load import resolve_env
from agentrunner.config.spec import TaskSpec
from agentrunner.environment import home_of
from agentrunner.errors.workers import LoginElsewhere, LoginUnsupported
from agentrunner.gateway.order import Upstream, new_placeholder
from agentrunner.workers.base import Worker
from agentrunner.workers.login import MIN_VALID_SEC, Access, Login, login_for, not_logged_in

Section = Literal["worker", "meta"]
"""The section of the task file, below `runner`, whose CLI it is."""


@dataclass(frozen=True)
class CliCredential:
    """The credential that a CLI sends, and where its model calls go."""

    upstream: Upstream | None = None
    """For the gateway; None if there is none."""
    base_url: str = ""
    """The address that the CLI gets without a gateway; "" leaves it to the adapter."""
    key: str = field(default="", repr=False)
    """A placeholder if there is a gateway, otherwise the real key."""
    token_env: str = ""
    """The variable for a login's token; "" leaves it to the CLI's usual one."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further variables of the sandbox. They override those of the task."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the redactor must learn before the CLI starts."""
    fingerprint: str = ""
    """The fingerprint of a login's token, to report later that it was refused. May be stored."""

    @property
    def bare_login(self) -> bool:
        """Whether the CLI itself sees the token of a login."""
        return bool(self.fingerprint) and self.upstream is None


@dataclass(frozen=True)
class CliAccess:
    """A key or a login, chosen once; each process gets its own credential."""

    worker: Worker
    """The adapter, which knows the CLI's provider."""
    server: str
    """The address of the provider, or of another server, for calls with a key."""
    key_name: str = ""
    key: str = field(default="", repr=False)
    login: Login | None = None
    """Overrides the key."""
    shown_url: str = ""
    """The address that a CLI with a key gets without a gateway; "" leaves it to the adapter."""

    async def credential(
        self, seconds: float, *, gateway: bool, refused: str = ""
    ) -> CliCredential:
        """Return the credential for a process that may take `seconds`; refresh a login if needed.

        With a `gateway` the CLI sees a placeholder. `refused` is the fingerprint of a token that
        was not accepted. Raises InfraError if a login has expired or cannot be refreshed.
        """
        if self.login is not None:
            access = await self.login.access(max(MIN_VALID_SEC, seconds), refused=refused)
            return self._by_login(access, gateway=gateway)
        upstream = self._upstream(self.server, self.key, "key") if gateway else None
        return CliCredential(
            upstream=upstream,
            base_url=self.shown_url,
            key=upstream.placeholder if upstream else self.key,
            secrets={self.key_name: self.key} if self.key else {},
        )

    def _by_login(self, access: Access, *, gateway: bool) -> CliCredential:
        upstream = self._upstream(access.base_url, access.token, "bearer") if gateway else None
        return CliCredential(
            upstream=upstream,
            base_url="" if upstream else access.base_url,
            key=upstream.placeholder if upstream else access.token,
            token_env=access.token_env,
            env=access.env,
            secrets={f"{self.worker.kind} login": access.token},
            fingerprint=access.fingerprint,
        )

    def _upstream(self, base_url: str, real: str, scheme: Literal["key", "bearer"]) -> Upstream:
        assert self.worker.wire, "only calls of a known wire pass the gateway"
        return Upstream(
            wire=self.worker.wire,
            base_url=base_url,
            credential=real,
            placeholder=new_placeholder(),
            scheme=scheme,
        )


def worker_access(
    spec: TaskSpec, worker: Worker, environ: Mapping[str, str], *, replays: bool = False
) -> CliAccess:
    """Return the access of a task's worker: its key, or its login with `auth: login`.

    A run that `replays` a recording needs no login. Raises UsageError for a worker without logins
    and for a login that would go to another address.
    """
    name, key = worker_key(spec, worker, environ)
    login = None
    if spec.runner.worker.auth == "login" and not replays:
        login = find_login(spec, "worker", worker, environ)
    return CliAccess(worker, worker.provider_url, name or "", key, login)


def worker_key(
    spec: TaskSpec, worker: Worker, environ: Mapping[str, str]
) -> tuple[str | None, str]:
    """Return name and value of the worker's key: the task's own entry, or else the host's."""
    own = resolve_env(spec.runner.worker.env, environ)
    for name in worker.key_names:
        if value := own.get(name) or environ.get(name):
            return name, value
    return None, ""


def worker_env(spec: TaskSpec, worker: Worker, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the task gives the worker; its key is passed separately."""
    own = resolve_env(spec.runner.worker.env, environ)
    return {name: value for name, value in own.items() if name not in worker.key_names}


def check_login(spec: TaskSpec, worker: Worker, environ: Mapping[str, str]) -> None:
    """Refuse a task with `auth: login` that has no usable one, before anything starts.

    Raises InfraError if nobody is logged in, and UsageError like `worker_access`. Nothing is
    refreshed.
    """
    if spec.runner.worker.auth == "login":
        state = find_login(spec, "worker", worker, environ).describe()
        if not state.usable:
            raise not_logged_in(f"{state.text}.", state.cure)


def find_login(
    spec: TaskSpec, section: Section, worker: Worker, environ: Mapping[str, str]
) -> Login:
    """Return the login of a CLI on this machine, usable or not.

    Raises UsageError if the task names another address than the provider's, and for a CLI without
    logins.
    """
    setting = f"runner.{section}"
    written = spec.runner.worker if section == "worker" else spec.runner.meta
    if written.base_url:
        raise LoginElsewhere(
            "A login goes to its own provider only; the task names another address.",
            path=spec.places.get(f"{setting}.base_url", f"{setting}.base_url"),
            remedy=f"remove {setting}.base_url, or set {setting}.auth to key",
        )
    given = resolve_env(spec.runner.worker.env, environ) if section == "worker" else None
    login = login_for(worker.kind, environ, home_of(environ), given=given)
    if login is None:
        role = "worker" if section == "worker" else "planner"
        raise LoginUnsupported(
            f"The {role} {worker.kind} has no login that can be used.",
            path=spec.places.get(f"{setting}.auth", f"{setting}.auth"),
            remedy=f"remove {setting}.auth",
        )
    return login
