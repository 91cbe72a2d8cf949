"""A model server on loopback that plays a script, for real clients and CLIs to talk to.

    with ModelServer(Scenario([Turn("hello")]), chat_script=['{"type": …}', Fault(429)]) as server:
        … base_url=server.base_url …
        assert [request.path for request in server.requests] == […]

POST /v1/responses, Anthropic's /v1/messages and Gemini's /v1beta/models/MODEL:generateContent
play the scenario.
POST /v1/chat/completions answers with the items of `chat_script` in order, whatever it is asked,
or plays the scenario where there is none.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.kit.faults import HttpError, Provider, refused
from tests.kit.scenario import Scenario, Turn, tool_call
from tests.kit.wire import Answer, Ask, Chat, Responses, Usage, Wire, error_body
from tests.kit.wire_anthropic import Anthropic, anthropic_error
from tests.kit.wire_gemini import Gemini, gemini_error, gemini_of


@dataclass(frozen=True)
class Say:
    """A scripted answer on /v1/chat/completions; a plain text is short for `Say(text)`."""

    text: str
    finish_reason: str = "stop"
    input_tokens: int = 1200
    output_tokens: int = 34
    delay_sec: float = 0


@dataclass(frozen=True)
class Fault:
    """A scripted failure on /v1/chat/completions: an HTTP error, or a dropped connection."""

    status: int = 0
    """0 closes the connection without an answer."""
    message: str = "scripted error"
    headers: Mapping[str, str] = field(default_factory=dict)
    """For instance `{"Retry-After": "2"}`."""
    delay_sec: float = 0


ScriptItem = str | Say | Fault


@dataclass(frozen=True)
class LoggedRequest:
    """A request as it came in."""

    method: str
    path: str
    bearer: str
    """The API key that was sent."""
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""


@dataclass(frozen=True)
class Served:
    """How a model call was answered."""

    path: str
    model: str
    status: int
    """0 where the connection was dropped without a word."""
    told: Usage | None = None
    """The tokens that the client was told in the end; None for no word of them."""


class ModelServer:
    """Starts on an ephemeral loopback port when entered, and stops when left."""

    def __init__(
        self,
        scenario: Scenario | None = None,
        *,
        chat_script: Sequence[ScriptItem] = (),
        accepts: Callable[[str], bool] = lambda bearer: True,
        context: int | None = None,
        port: int = 0,
    ) -> None:
        """`port` is that of a server that has ended, where this one is to be it, back again."""
        self.context = context
        """The length of its model's context, as vLLM tells it; None: it does not tell."""
        self.accepts = accepts
        """Whether this credential is good on /v1/responses; any other is answered with 401."""
        self.requests: list[LoggedRequest] = []
        self.served: list[Served] = []
        """Every model call, in the order in which their answers began."""
        self._scenario = scenario or Scenario([Turn("ok")])
        self._script = tuple(chat_script)
        self._answered = 0
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._http = _HttpServer(self, port)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))

    @property
    def base_url(self) -> str:
        """What clients are given, with /v1."""
        return f"{self.address}/v1"

    @property
    def address(self) -> str:
        """What clients are given who put the version there themselves, as Gemini's do."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._http.server_port

    @property
    def script_left(self) -> int:
        """How many items of `chat_script` nobody has asked for."""
        return len(self._script) - self._answered

    def start(self) -> Self:
        """Serve, until `stop`."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End every answer that waits, and the server."""
        self._stopping.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def record(self, request: LoggedRequest) -> None:
        """Add to the log of requests."""
        with self._lock:
            self.requests.append(request)

    def book(self, served: Served) -> None:
        """Add to the log of answers."""
        with self._lock:
            self.served.append(served)

    @property
    def told(self) -> Usage:
        """The tokens of all answers together."""
        with self._lock:
            told = [one.told for one in self.served if one.told is not None]
        return Usage(sum(one.input_tokens for one in told), sum(one.output_tokens for one in told))

    def wait(self, seconds: float) -> None:
        """Wait, or until the server stops."""
        self._stopping.wait(seconds)

    def next_turn(self, path: str, ask: Ask) -> tuple[Turn, Usage]:
        """What to answer."""
        if path.endswith("/chat/completions") and self._script:
            return self._scripted()
        if not ask.tools and not self._scenario.toolless:
            return Turn(self._scenario.side_reply), Usage()
        return self._scenario.pick(self._scenario.done(ask.turns)), Usage()

    def _scripted(self) -> tuple[Turn, Usage]:
        with self._lock:
            if self._answered == len(self._script):
                return Turn("the chat script is used up", status=400), Usage()
            item = self._script[self._answered]
            self._answered += 1
        if isinstance(item, str):
            item = Say(item)
        if isinstance(item, Say):
            turn = Turn(item.text, finish_reason=item.finish_reason, delay_sec=item.delay_sec)
            return turn, Usage(item.input_tokens, item.output_tokens)
        fault = Turn(
            item.message,
            status=item.status or 500,
            headers=item.headers,
            delay_sec=item.delay_sec,
            cut=not item.status,
        )
        return fault, Usage()


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: ModelServer, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.owner = owner

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the script; anything else is shown."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _HttpServer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Be quiet: tests read `requests`."""

    def do_GET(self) -> None:
        if self.headers.get("Authorization"):  # without a key it is asked what it is
            self._record({})
        if self.path.endswith("/models"):
            model: dict[str, object] = {"id": "fake", "object": "model"}
            if self.server.owner.context:
                model["max_model_len"] = self.server.owner.context
            self._reply(200, {"object": "list", "data": [model]})
        else:
            self._reply(404, error_body(404, f"not found: {self.path}"))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        self._record(body)
        wire = _wire_of(self.path)
        if wire is None:
            self._reply(404, error_body(404, f"not found: {self.path}"))
            return
        bearer = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if isinstance(wire, Responses) and not self.server.owner.accepts(bearer):
            self._reply(401, error_body(401, "Your authentication token has expired."))
            return
        ask = wire.ask(body)
        turn, usage = self.server.owner.next_turn(self.path, ask)
        self.server.owner.wait(turn.delay_sec)
        if error := _error_of(turn, wire, ask):
            self._book(ask, error.status)
            self._reply(error.status, error.body, error.headers)
        elif turn.status:
            self._book(ask, 0)
            self._hang_up()
        elif turn.raw is not None:
            self._book(ask, 200)
            self._send(200, turn.raw.encode(), "text/event-stream")
        elif turn.hang:
            self._book(ask, 200)
            self._start_stream()
            self.server.owner.wait(3600)
            self._hang_up()
        else:
            self._answer(wire, ask, turn, usage)

    def _answer(self, wire: Wire, ask: Ask, turn: Turn, usage: Usage) -> None:
        try:
            calls = [tool_call(action, ask.tools) for action in turn.actions]
        except LookupError as error:
            self._book(ask, 400)
            self._reply(400, error_body(400, str(error)))
            return
        answer = Answer(turn.text, calls, turn.finish_reason, usage)
        self._book(ask, 200, None if turn.cut else usage)
        if not ask.stream:
            data = json.dumps(wire.whole(ask, answer)).encode()
            self._send(200, data, "application/json", cut=turn.cut)
            return
        self._start_stream()
        events = list(wire.events(ask, answer))
        if turn.cut:
            events = events[: max(2, len(events) // 2)]
        for name, event in events:
            head = f"event: {name}\n" if name else ""
            self._send_chunk(f"{head}data: {json.dumps(event)}\n\n".encode())
        if turn.cut:
            self._hang_up()
            return
        if isinstance(wire, Chat):
            self._send_chunk(b"data: [DONE]\n\n")
        self._send_chunk(b"")

    def _book(self, ask: Ask, status: int, told: Usage | None = None) -> None:
        self.server.owner.book(Served(self.path, ask.model, status, told))

    def _record(self, body: Mapping[str, Any]) -> None:
        names = ("Authorization", "X-Goog-Api-Key", "X-Api-Key")
        shown = next((value for name in names if (value := self.headers.get(name))), "")
        bearer = shown.removeprefix("Bearer ")
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.owner.record(LoggedRequest(self.command, self.path, bearer, body, headers))

    def _reply(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        self._send(status, json.dumps(body).encode(), "application/json", headers)

    def _send(
        self,
        status: int,
        data: bytes,
        kind: str,
        headers: Mapping[str, str] | None = None,
        *,
        cut: bool = False,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self._hang_up()

    def _start_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


def _wire_of(path: str) -> Wire | None:
    if path.endswith("/responses"):
        return Responses()
    if path.endswith("/chat/completions"):
        return Chat()
    if path.partition("?")[0].endswith("/messages"):
        return Anthropic()
    return gemini_of(path)


def _error_of(turn: Turn, wire: Wire, ask: Ask) -> HttpError | None:
    """The HTTP error that this turn is; None where it is none."""
    provider: Provider = "openai"
    in_words = error_body
    if isinstance(wire, Anthropic):
        provider, in_words = "anthropic", anthropic_error
    elif isinstance(wire, Gemini):
        provider, in_words = "gemini", gemini_error
    if turn.refusal is not None:
        now = datetime.now(UTC)
        return refused(
            turn.refusal, provider, ask.model, now,
            reset_sec=turn.reset_sec, reset_in=turn.reset_in,
        )  # fmt: skip
    if turn.status and not turn.cut:
        return HttpError(turn.status, in_words(turn.status, turn.text), turn.headers)
    return None
