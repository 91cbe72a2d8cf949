"""Claude Code's login for machines: the token of `claude setup-token`. Tested with 2.1.197.

That version accepts CLAUDE_CODE_OAUTH_TOKEN together with ANTHROPIC_BASE_URL, sends it as
`Authorization: Bearer` with `anthropic-beta: oauth-2025-04-20`, and does not check its content: so
the gateway can hold the real one. With `--bare` it is ignored. The login of the interactive CLI has
a single-use refresh token, and no documented way to refresh it from outside: it is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentrunner.errors.workers import LoginExpired
from agentrunner.workers.login import Access, LoginState, Now, fingerprint, not_logged_in

TOKEN_ENV = "CLAUDE_CODE_OAUTH_TOKEN"
BASE_URL = "https://api.anthropic.com"
_CURE = f"claude setup-token, then export {TOKEN_ENV}=…"


class ClaudeLogin:
    """A token that is valid for about a year and is never refreshed."""

    given_names: tuple[str, ...] = (TOKEN_ENV,)

    def __init__(self, environ: Mapping[str, str], home: Path, now: Now) -> None:
        self._token = environ.get(TOKEN_ENV, "").strip()
        folder = environ.get("CLAUDE_CONFIG_DIR")
        self._own = (Path(folder) if folder else home / ".claude") / ".credentials.json"

    def describe(self) -> LoginState:
        """Return whether the variable is set. The token does not reveal its expiry."""
        if self._token:
            return LoginState(True, f"{TOKEN_ENV} is set; until when it is good, it does not tell")
        return LoginState(False, self._missing(), _CURE)

    async def access(self, min_valid_sec: float, *, refused: str = "") -> Access:
        """Return the token unchanged.

        Raises InfraError: `login-missing` without one, `login-expired` for one that was refused.
        """
        if not self._token:
            raise not_logged_in(f"{self._missing()}.", _CURE)
        if refused == fingerprint(self._token):
            raise LoginExpired(
                f"Anthropic does not take the token in {TOKEN_ENV} any more.",
                remedy=_CURE,
            )
        return Access(self._token, BASE_URL, token_env=TOKEN_ENV)

    def _missing(self) -> str:
        if self._own.exists():
            return (
                "Claude Code is logged in for its own use only: that login cannot be shared, and "
                f"{TOKEN_ENV} is not set"
            )
        return f"{TOKEN_ENV} is not set"
