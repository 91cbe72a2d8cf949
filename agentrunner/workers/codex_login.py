"""The ChatGPT login of the Codex CLI: `auth.json` below CODEX_HOME. Tested with 0.169.0.

That version needs no `auth.json` in the sandbox: with our own provider it sends the value of its
`env_key` as `Authorization: Bearer`, so the gateway can hold the access token. It refuses an
`auth.json` without a refresh token. With an empty one it tries to refresh by itself, asks
chatgpt.com for more than the model, and keeps the answer: so it gets none.

On this machine it may refresh concurrently with us. It writes `auth.json` under a lock on
`auth.lock` and rereads it first; we hold the same lock during the whole refresh.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentrunner.errors import InfraError
from agentrunner.errors.planners import BaseUrlRefused
from agentrunner.errors.workers import LoginExpired, LoginUnreachable
from agentrunner.workers.codex import ACCOUNT_ENV
from agentrunner.workers.login import Access, LoginState, Now, fingerprint, not_logged_in
from agentrunner.workers.token_file import FileReplacement, locked
from agentrunner.workers.token_refresh import (
    IssuerUnreachable,
    RefreshRefused,
    is_safe_url,
    refreshed,
)

BASE_URL = "https://chatgpt.com/backend-api/codex"
BASE_URL_ENV = "AGENTRUNNER_CODEX_LOGIN_URL"
"""Another address for model calls with this login, for instance a company's own proxy."""
REFRESH_URL = "https://auth.openai.com/oauth/token"
REFRESH_URL_ENV = "CODEX_REFRESH_TOKEN_URL_OVERRIDE"
"""The CLI's own variable."""
CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann"
_CLAIMS = "https://api.openai.com/auth"
_LOOK_AGAIN_SEC = 1.0
"""How long Codex may take to write new tokens if it refreshed before us."""


@dataclass(frozen=True)
class _Tokens:
    document: dict[str, Any] = field(repr=False)
    access: str = field(repr=False)
    refresh: str = field(repr=False)
    account: str
    who: str
    expires_at: float | None

    def lasts(self, seconds: float, now: float, refused: str) -> bool:
        """Whether the access token is valid for so many seconds, and was not refused before."""
        if refused and refused == fingerprint(self.access):
            return False
        return self.expires_at is None or self.expires_at - now >= seconds


class CodexLogin:
    """Reads `auth.json`, and replaces it after a refresh as the CLI itself does."""

    given_names: tuple[str, ...] = ()

    def __init__(self, environ: Mapping[str, str], home: Path, now: Now) -> None:
        self._folder = Path(environ.get("CODEX_HOME") or home / ".codex").expanduser()
        self._file = self._folder / "auth.json"
        self._base_url = environ.get(BASE_URL_ENV) or BASE_URL
        self._refresh_url = environ.get(REFRESH_URL_ENV) or REFRESH_URL
        self._now = now

    def describe(self) -> LoginState:
        """Return who is logged in, and until when the access token is valid."""
        try:
            tokens = self._read()
        except InfraError as error:
            return LoginState(False, error.message.rstrip("."), error.remedy)
        until = "it does not tell until when"
        if tokens.expires_at is not None:
            at = datetime.fromtimestamp(tokens.expires_at, UTC)
            until = f"expires {at:%Y-%m-%d %H:%M} UTC, then refreshed on this machine"
        return LoginState(True, f"logged in as {tokens.who}; the access token {until}")

    async def access(self, min_valid_sec: float, *, refused: str = "") -> Access:
        """Return a token that is valid for `min_valid_sec`; see `Login.access`."""
        for name, url in ((BASE_URL_ENV, self._base_url), (REFRESH_URL_ENV, self._refresh_url)):
            if not is_safe_url(url):
                raise BaseUrlRefused(
                    f"{name} is no https:// address: a token would cross the network in the clear.",
                    path=name,
                    remedy=f"unset {name}",
                    nothing_spent=True,
                )
        tokens = self._read()
        if not tokens.lasts(min_valid_sec, self._now(), refused):
            # Run this in a thread, which even a cancelled event loop waits for: between the
            # issuer's answer and the written file, the only refresh token must not be lost.
            tokens = await asyncio.to_thread(self._renew, min_valid_sec, refused)
        env = {ACCOUNT_ENV: tokens.account} if tokens.account else {}
        return Access(tokens.access, self._base_url, env=env, expires_at=tokens.expires_at)

    def _renew(self, min_valid_sec: float, refused: str) -> _Tokens:
        """Return the tokens after a refresh by us, or by another program that was faster."""
        try:
            with locked(self._folder / "auth.lock"):
                tokens = self._read()
                if tokens.lasts(min_valid_sec, self._now(), refused):
                    return tokens
                return self._refresh(tokens)
        except RefreshRefused as error:
            # Codex asks the issuer before it takes the lock: it may have used this refresh token.
            if renewed := self._wait_for_other_refresh(tokens):
                return renewed
            return self._use_while_valid(tokens, refused, _expired(str(error)))
        except IssuerUnreachable as error:
            return self._use_while_valid(tokens, refused, _unreachable(str(error)))

    def _refresh(self, tokens: _Tokens) -> _Tokens:
        # Everything that can fail on our side fails before the refresh token is used.
        with FileReplacement(self._file) as replacement:
            body = {
                "client_id": CLIENT_ID,
                "grant_type": "refresh_token",
                "refresh_token": tokens.refresh,
            }
            reply = refreshed(self._refresh_url, body)
            given = {
                name: reply[name]
                for name in ("id_token", "access_token", "refresh_token")
                if isinstance(reply.get(name), str) and reply[name]
            }
            document = {
                **tokens.document,
                "tokens": {**tokens.document["tokens"], **given},
                "last_refresh": _stamp(self._now()),
            }
            replacement.commit(json.dumps(document, indent=2).encode())
        if "access_token" not in given:
            raise IssuerUnreachable("its answer holds no access token")
        return _tokens(document)

    def _wait_for_other_refresh(self, before: _Tokens) -> _Tokens | None:
        deadline = time.monotonic() + _LOOK_AGAIN_SEC
        while time.monotonic() < deadline:
            tokens = self._read()
            if tokens.refresh != before.refresh:
                return tokens
            time.sleep(0.05)
        return None

    def _use_while_valid(self, tokens: _Tokens, refused: str, error: InfraError) -> _Tokens:
        if tokens.lasts(1, self._now(), refused):
            return tokens
        raise error

    def _read(self) -> _Tokens:
        """Return the tokens in the file as it is now; raises InfraError (`login-missing`)."""
        try:
            document = json.loads(self._file.read_bytes())
        except FileNotFoundError:
            raise not_logged_in(
                f"Codex is not logged in on this machine: there is no {self._file}.",
                '`codex login -c cli_auth_credentials_store="file"`',
            ) from None
        except OSError as error:
            raise not_logged_in(
                f"{self._file} cannot be read: {error.strerror}.", "codex login"
            ) from error
        except ValueError:
            raise not_logged_in(f"{self._file} is damaged.", "codex login") from None
        try:
            return _tokens(document)
        except (KeyError, TypeError, ValueError):
            pass
        if isinstance(document, dict) and document.get("OPENAI_API_KEY"):
            raise not_logged_in(
                "Codex is logged in with an API key, which is no subscription.",
                "set runner.worker.auth to key, and export CODEX_API_KEY",
            )
        raise not_logged_in(f"{self._file} holds no ChatGPT login.", "codex login")


def _tokens(document: Any) -> _Tokens:
    """Parse the tokens; raises KeyError, TypeError or ValueError if it is no ChatGPT login."""
    tokens = document["tokens"]
    access, refresh = tokens["access_token"], tokens["refresh_token"]
    if not (isinstance(access, str) and isinstance(refresh, str) and access):
        raise ValueError
    identity = _claims(tokens.get("id_token"))
    auth = identity.get(_CLAIMS)
    auth = auth if isinstance(auth, dict) else {}
    account = tokens.get("account_id") or auth.get("chatgpt_account_id") or ""
    plan = auth.get("chatgpt_plan_type")
    who = str(identity.get("email") or "an account without a name")
    expires = _claims(access).get("exp")
    return _Tokens(
        document=document,
        access=access,
        refresh=refresh,
        account=str(account),
        who=f"{who} ({plan})" if plan else who,
        expires_at=expires if isinstance(expires, int | float) and math.isfinite(expires) else None,
    )


def _claims(token: Any) -> dict[str, Any]:
    """Return the claims of a JSON Web Token; {} for any other text. Nothing is verified."""
    if not isinstance(token, str) or token.count(".") != 2:
        return {}
    payload = token.split(".")[1]
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (binascii.Error, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _stamp(now: float) -> str:
    at = datetime.fromtimestamp(now, UTC)
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _expired(reason: str) -> InfraError:
    return LoginExpired(
        f"The Codex login of this machine is over: {reason}.",
        remedy="codex login, then agentrunner resume",
    )


def _unreachable(reason: str) -> InfraError:
    return LoginUnreachable(
        f"The Codex login needs a new access token, and its issuer is not reached: {reason}.",
        remedy="look at the network, then agentrunner resume",
    )
