"""An issuer of tokens on loopback, as strict as the real ones: a refresh token works once.

with TokenIssuer() as issuer:
    issuer.write_login(home / ".codex" / "auth.json")
    … environ={"CODEX_REFRESH_TOKEN_URL_OVERRIDE": issuer.url} …
    assert issuer.reused == []
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

EMAIL = "hana@example.invalid"
ACCOUNT = "account-123"


class TokenIssuer:
    """Starts on an ephemeral loopback port when entered, and stops when left."""

    def __init__(self, lifetime_sec: float = 3600) -> None:
        self.lifetime_sec = lifetime_sec
        """Of the access tokens that are made from now on."""
        self.spent: list[str] = []
        """Refresh tokens in the order in which they were taken."""
        self.reused: list[str] = []
        """Refresh tokens that came again."""
        self.asked: list[Mapping[str, Any]] = []
        """Every request."""
        self.faults: list[tuple[int, Mapping[str, str], Mapping[str, Any]]] = []
        """Status, headers and body in place of the next answers."""
        self.arrived, self.go_on = threading.Event(), threading.Event()
        """A request is there; answers wait for the second one."""
        self.go_on.set()
        self._lock = threading.Lock()
        self.made: list[str] = []
        """Access tokens in the order in which they were made."""
        self._good: dict[str, float] = {}
        self._unspent: set[str] = set()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        """Where tokens are refreshed."""
        return f"http://127.0.0.1:{self._http.server_port}/oauth/token"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.go_on.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def tokens(self) -> dict[str, str]:
        """A new set: identity, access and refresh token."""
        with self._lock:
            return self._tokens()

    def write_login(self, file: Path, **more: Any) -> dict[str, Any]:
        """A login of Codex as `codex login` leaves it."""
        document = {
            "auth_mode": "chatgpt",
            "OPENAI_API_KEY": None,
            "tokens": {**self.tokens(), "account_id": ACCOUNT},
            "last_refresh": "2026-01-01T00:00:00.000000Z",
            **more,
        }
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(document, indent=2), encoding="utf-8")
        file.chmod(0o600)
        return document

    def accepts(self, token: str) -> bool:
        """Whether a provider would take this access token now."""
        return self._good.get(token, 0) > time.time()

    def revoke(self, token: str) -> None:
        """Take back an access token before its time."""
        self._good.pop(token, None)

    def answer(self, body: Mapping[str, Any]) -> tuple[int, Mapping[str, str], Mapping[str, Any]]:
        """Status, headers and body for a request."""
        with self._lock:
            self.asked.append(body)
            self.arrived.set()
            if self.faults:
                return self.faults.pop(0)
            token = str(body.get("refresh_token"))
            if token in self.spent:
                self.reused.append(token)
                return 401, {}, {"error": {"code": "refresh_token_reused", "message": token}}
            if body.get("grant_type") != "refresh_token" or token not in self._unspent:
                return 400, {}, {"error": "invalid_grant", "error_description": token}
            self._unspent.remove(token)
            self.spent.append(token)
            return 200, {}, self._tokens()

    def _tokens(self) -> dict[str, str]:
        number = len(self.made) + 1
        access = self._jwt({"jti": f"access-{number}"})
        refresh = f"refresh-{number}-{'5e' * 16}"
        self.made.append(access)
        self._good[access] = time.time() + self.lifetime_sec
        self._unspent.add(refresh)
        identity = {"email": EMAIL, "https://api.openai.com/auth": {"chatgpt_plan_type": "plus"}}
        return {
            "id_token": self._jwt(identity),
            "access_token": access,
            "refresh_token": refresh,
        }

    def _jwt(self, claims: Mapping[str, Any]) -> str:
        now = time.time()
        body = {"iat": now, "exp": now + self.lifetime_sec, **claims}
        parts: tuple[Mapping[str, Any], ...] = ({"alg": "none"}, body, {})
        return ".".join(
            base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
            for part in parts
        )


def _handler(issuer: TokenIssuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
            """Be quiet: tests read what was asked."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            status, headers, said = issuer.answer(body)
            issuer.go_on.wait()
            data = json.dumps(said).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    return Handler
