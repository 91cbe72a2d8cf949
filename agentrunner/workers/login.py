"""The login of a worker's CLI on this machine: used for its access token, never copied.

A refresh token can be used once. A sandbox that got a copy of a login and refreshed it would log
the person out, so only access tokens leave this package, and only this machine refreshes.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agentrunner.errors import InfraError
from agentrunner.errors.workers import LoginMissing
from agentrunner.registry import LOGINS, load

MIN_VALID_SEC = 300.0
"""A token that expires sooner is refreshed, however short the worker may run."""

Now = Callable[[], float]
"""The time in seconds since 1970."""


@dataclass(frozen=True)
class Access:
    """What a login permits for a while. It holds no refresh token."""

    token: str = field(repr=False)
    base_url: str
    """The address of model calls that carry the token, whatever a task says."""
    token_env: str = ""
    """The variable from which the CLI reads the token; "" leaves it to the adapter's `key_env`."""
    env: Mapping[str, str] = field(default_factory=dict)
    """What the CLI needs besides the token. Not secret."""
    expires_at: float | None = None
    """Seconds since 1970; None if the token does not say."""

    @property
    def fingerprint(self) -> str:
        """Distinguishes tokens without revealing them; may be stored."""
        return fingerprint(self.token)


@dataclass(frozen=True)
class LoginState:
    """What `doctor` reports about a login."""

    usable: bool
    text: str
    """Never contains a token."""
    cure: str = ""


class Login(Protocol):
    """The login of one CLI."""

    given_names: tuple[str, ...]
    """Variables in which a task may pass a token of its own."""

    def describe(self) -> LoginState:
        """Return whether somebody is logged in, who, and until when; never raises."""

    async def access(self, min_valid_sec: float, *, refused: str = "") -> Access:
        """Return a token that is valid for `min_valid_sec`, refreshed first if necessary.

        `refused` is the fingerprint of a token that the provider no longer accepted. A token that
        cannot be refreshed is returned as long as it is valid at all.

        Raises InfraError (`login-missing`, `login-expired`, `login-unreachable`).
        """


def login_for(
    worker_kind: str,
    environ: Mapping[str, str],
    home: Path,
    *,
    given: Mapping[str, str] | None = None,
) -> Login | None:
    """Return the login that this worker's CLI has on this machine; None for a kind without logins.

    `environ` is the environment of this process: it says where tokens are, and where they are sent.
    From `given`, a task's variables, only a token that was made for the task is used.
    """
    if worker_kind not in LOGINS:
        return None
    adapter = load(LOGINS, worker_kind, "login")
    tokens = {name: given[name] for name in adapter.given_names if given and name in given}
    login: Login = adapter({**environ, **tokens}, home, time.time)
    return login


def fingerprint(token: str) -> str:
    """Return twelve hex digits that distinguish tokens and cannot be reversed."""
    return hashlib.sha256(token.encode()).hexdigest()[:12]


def not_logged_in(message: str, remedy: str) -> InfraError:
    """Return the error for a login that is missing or unusable."""
    return LoginMissing(message, remedy=remedy, nothing_spent=True)
