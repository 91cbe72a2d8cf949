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
import fcntl
import json
import math
import os
import secrets
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from agentrunner.config.hosts import is_loopback
from agentrunner.errors import InfraError, LockHeld
from agentrunner.errors.planners import BaseUrlRefused
from agentrunner.errors.workers import LoginExpired, LoginUnreachable, LoginUnwritable
from agentrunner.storage.locks import try_flock
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.workers.codex import ACCOUNT_ENV
from agentrunner.workers.login import Access, LoginState, Now, fingerprint, not_logged_in

PATIENCE_SEC = 60.0
"""Another program's refresh takes a second; a hung one must not block us forever."""
_ROOM = 64 * 1024

TIMEOUT_SEC = 30.0
_MOST_BYTES = 1 << 20
_CODE = lazy_regex(r"[a-z][a-z_]{0,60}")


class RefreshRefused(Exception):
    """The issuer does not accept this refresh token. The text is for people."""


class IssuerUnreachable(Exception):
    """There was no answer, or no usable one. The text is for people."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would pass the refresh token to somebody else."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """Follow none: a redirect is then an error like any other status."""


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


def is_safe_url(url: str) -> bool:
    """Whether a token may be sent there: https, or http on this very machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if not host or parts.username is not None:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def refreshed(url: str, body: Mapping[str, str]) -> dict[str, Any]:
    """Return the issuer's answer; raises RefreshRefused or IssuerUnreachable.

    Blocks, at most TIMEOUT_SEC per step.
    """
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Accept": "application/json"},
    )
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_SEC) as reply:
            data = json.loads(reply.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            if error.code in (400, 401, 403):
                raise RefreshRefused(
                    _code_of(error) or f"its issuer answers {error.code}"
                ) from None
        raise IssuerUnreachable(f"it answers {error.code}") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise IssuerUnreachable(
            getattr(reason, "strerror", None) or type(reason).__name__
        ) from None
    if not isinstance(data, dict):
        raise IssuerUnreachable("its answer is no JSON object")
    return data


def _code_of(error: urllib.error.HTTPError) -> str:
    """Return the error code in {"error": {"code": "refresh_token_reused"}} or {"error": "…"}."""
    try:
        reply = json.loads(error.read(_MOST_BYTES))
    except (OSError, HTTPException, ValueError):
        return ""
    reply = reply.get("error") if isinstance(reply, dict) else None
    code = reply.get("code") if isinstance(reply, dict) else reply
    return code.replace("_", " ") if isinstance(code, str) and _CODE.fullmatch(code) else ""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the flock of a file, which stays; raises LockHeld after PATIENCE_SEC. Blocks."""
    deadline = time.monotonic() + PATIENCE_SEC
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        while not try_flock(fd, fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                raise LockHeld(
                    f"Another program holds {path}, and so the login.",
                    remedy=f"fuser {path}",
                )
            time.sleep(0.02)
        yield
    finally:
        os.close(fd)


class FileReplacement:
    """A file's next content: entering it reserves the space, `commit` swaps the files.

    Mode and owner stay; a link leads to the file that is replaced. Without `commit` nothing
    changes. Raises InfraError (`login-unwritable`) on entering, not later.
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(os.path.realpath(path))
        self._temporary = self._path.with_name(f".{self._path.name}.{secrets.token_hex(6)}")

    def __enter__(self) -> Self:
        try:
            facts = self._path.stat()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(self._temporary, flags, 0o600)
        except OSError as error:
            raise _unwritable(self._path, error) from error
        try:
            if (facts.st_uid, facts.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(self._fd, facts.st_uid, facts.st_gid)
            os.fchmod(self._fd, stat.S_IMODE(facts.st_mode))
            os.posix_fallocate(self._fd, 0, facts.st_size + _ROOM)
        except OSError as error:
            self._drop()
            raise _unwritable(self._path, error) from error
        return self

    def commit(self, data: bytes) -> None:
        """Put `data` in the file's place; it is on the disk before this returns."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        os.ftruncate(self._fd, len(data))
        os.fsync(self._fd)
        self._temporary.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._drop()

    def _drop(self) -> None:
        os.close(self._fd)
        self._temporary.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> InfraError:
    return LoginUnwritable(
        f"The login has to be refreshed, and {path} cannot be written: {error.strerror}.",
        remedy="run it as the user whose login it is",
    )
