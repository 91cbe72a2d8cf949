"""A forge on this machine: git over HTTP, and the parts of the APIs of GitHub and GitLab we use.

with Forge.serving(tmp_path / "forge", token="…") as forge:
    forge.address            # http://127.0.0.1:PORT/team/shop.git, to push to
    forge.requests           # what was opened
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.kit.http_server import http_server

PROJECT = "team/shop"


@dataclass
class Forge:
    """One project; every call is kept, and the next ones can be made to fail."""

    root: Path
    token: str
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Pull and merge requests as they were asked for."""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """Method and path."""
    refused: list[str] = field(default_factory=list)
    """Paths that were asked for without the token."""
    in_arguments: list[str] = field(default_factory=list)
    """Command lines of this machine that held the token while git was talking to us."""
    fail_after_post: int = 0
    """So many requests are opened and answered with 502."""
    hang_up_after_post: int = 0
    """So many are opened and not answered at all."""
    fail_before: int = 0
    """So many calls of the API get 503 and do nothing."""

    @property
    def address(self) -> str:
        """Of the project's repository."""
        return f"{self.url}/{PROJECT}.git"

    @property
    def bare(self) -> Path:
        """The project's repository."""
        return self.root / f"{PROJECT}.git"

    def git(self, *words: str) -> str:
        """Git in the project's repository."""
        command = ["git", "--git-dir", str(self.bare), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    @classmethod
    @contextmanager
    def serving(cls, root: Path, token: str) -> Iterator[Forge]:
        """Until the block ends."""
        forge = cls(root, token)
        forge.bare.mkdir(parents=True)
        forge.git("init", "-q", "--bare", "-b", "main")
        forge.git("config", "http.receivepack", "true")
        handler = type("Handler", (_Handler,), {"forge": forge})
        with http_server(handler) as port:
            forge.url = f"http://127.0.0.1:{port}"
            yield forge

    def look_at_arguments(self) -> None:
        """Search the command lines of every process for the token, as it is and encoded."""
        secrets = spellings(self.token)
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = file.read_bytes()
            except OSError:
                continue
            if any(secret in line for secret in secrets):
                self.in_arguments.append(line.decode("utf-8", "replace"))


def spellings(token: str) -> list[bytes]:
    """The token as it may be written down, alone and with the names that git sends it under."""
    users = ("x-access-token", "oauth2")
    pairs = [base64.b64encode(f"{user}:{token}".encode()) for user in users]
    return [token.encode(), *pairs]


class _Handler(BaseHTTPRequestHandler):
    forge: Forge
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing is printed."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        url = urlsplit(self.path)
        self.forge.calls.append((self.command, url.path))
        body = self._body()
        if not self._allowed():
            self.forge.refused.append(url.path)
            self._json(401, {"message": "Bad credentials"}, {"WWW-Authenticate": "Basic"})
        elif url.path.startswith(f"/{PROJECT}.git/"):
            self._git(url.path, url.query, body)
        elif self.forge.fail_before:
            self.forge.fail_before -= 1
            self._json(503, {"message": "try later"})
        else:
            self._api(unquote(url.path), parse_qs(url.query), body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _allowed(self) -> bool:
        kind, _, value = (self.headers.get("Authorization") or "").partition(" ")
        if kind == "Basic":
            value = base64.b64decode(value).decode().partition(":")[2]
        return value == self.forge.token

    # -- the APIs -------------------------------------------------------------------------------

    def _api(self, path: str, query: dict[str, list[str]], body: bytes) -> None:
        match self.command, path:
            case "GET", "/api/v3/repos/team/shop" | "/api/v4/projects/team/shop":
                self._json(200, {"default_branch": "main", "id": 1})
            case "GET", "/api/v3/repos/team/shop/pulls":
                owner, _, head = query["head"][0].partition(":")
                assert owner == "team" and query["state"] == ["open"]
                self._json(200, [one for one in self._opened() if one["head"]["ref"] == head])
            case "GET", "/api/v4/projects/team/shop/merge_requests":
                assert query["state"] == ["opened"]
                branch = query["source_branch"][0]
                self._json(200, [one for one in self._opened() if one["source_branch"] == branch])
            case "POST", "/api/v3/repos/team/shop/pulls":
                self._open(json.loads(body), "head", 422)
            case "POST", "/api/v4/projects/team/shop/merge_requests":
                self._open(json.loads(body), "source_branch", 409)
            case _:
                self._json(404, {"message": "Not Found"})

    def _open(self, asked: dict[str, Any], key: str, exists: int) -> None:
        forge = self.forge
        if any(one[key] == asked[key] for one in forge.requests):
            self._json(exists, {"message": "A request for this branch exists already"})
            return
        forge.requests.append(asked)
        if forge.fail_after_post:
            forge.fail_after_post -= 1
            self._json(502, {"message": "bad gateway"})
        elif forge.hang_up_after_post:
            forge.hang_up_after_post -= 1
            self.close_connection = True
        else:
            self._json(201, self._opened()[-1])

    def _opened(self) -> list[dict[str, Any]]:
        """The open requests as both forges would tell of them."""
        return [
            {
                "number": number,
                "iid": number,
                "html_url": f"{self.forge.url}/{PROJECT}/pull/{number}",
                "web_url": f"{self.forge.url}/{PROJECT}/-/merge_requests/{number}",
                "head": {"ref": asked.get("head")},
                "source_branch": asked.get("source_branch"),
            }
            for number, asked in enumerate(self.forge.requests, start=1)
        ]

    def _json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    # -- git ------------------------------------------------------------------------------------

    def _git(self, path: str, query: str, body: bytes) -> None:
        """As a web server runs `git http-backend`."""
        self.forge.look_at_arguments()
        env = {
            "PATH": os.defpath,
            "GIT_PROJECT_ROOT": str(self.forge.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "REMOTE_USER": "somebody",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type") or "",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
        }
        ran = subprocess.run(
            ["git", "http-backend"], env=env, input=body, capture_output=True, check=True
        )
        head, _, data = ran.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
