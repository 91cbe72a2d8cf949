"""A loopback model server that misbehaves on order, and a clock that only sleeping moves."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agentrunner.config.spec import (
    TaskSpec,
)


@dataclass(frozen=True)
class Fault:
    """One answer of the server."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    reset: bool = False
    """Close the connection without an answer."""
    cut: bool = False
    """Close it in the middle of the body."""
    stall: bool = False
    """Send the head, then nothing until the test ends."""
    streamed: bool = False
    """Whether it comes as a stream, where one is asked for."""
    compiling: float = 0
    """Seconds until a word is sent of an answer that a schema is asked for."""
    pieces: tuple[bytes, ...] | None = None
    """The body of a stream, piece by piece; an empty one is silence until the test ends."""


def completion(content: str | None, finish_reason: str = "stop", **message: Any) -> Fault:
    """An ordinary answer of the Chat Completions API: 3 tokens in, 4 out."""
    choice = {
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": content, **message},
    }
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "some-model-0613",
        "choices": [choice],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }
    return Fault(body=json.dumps(body), streamed=True)


def events_of(body: str, request: dict[str, Any]) -> bytes:
    """An ordinary answer as the stream that a server makes of it."""
    whole = json.loads(body)
    choice = whole["choices"][0]
    head = {key: whole[key] for key in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    text = choice["message"].get("content")
    deltas: list[Any] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[at : at + 7]} for at in range(0, len(text or ""), 7)]
    rest = {k: v for k, v in choice["message"].items() if k not in ("role", "content")}
    told = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in [*deltas, rest]]
    end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    told.append({**head, "choices": [end]})
    if (request.get("stream_options") or {}).get("include_usage") and "usage" in whole:
        told.append({**head, "choices": [], "usage": whole["usage"]})
    lines = [f"data: {json.dumps(one)}\n\n" for one in told]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


class FaultServer:
    """Answers from `script`, in order; the last one repeats."""

    def __init__(self) -> None:
        self.script: list[Fault] = []
        self.pages: dict[str, object] | None = {}
        """What GET finds, by path; with None GET takes from the script as well."""
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.answer(self)

            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        if handler.command == "GET" and self.pages is not None:
            self.page(handler)
            return
        raw = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        fault = self.script[min(len(self.paths), len(self.script) - 1)]
        self.requests.append(json.loads(raw or "{}"))
        self.headers.append({k.lower(): v for k, v in handler.headers.items()})
        self.paths.append(handler.path)
        handler.close_connection = True
        if fault.compiling and "response_format" in self.requests[-1]:
            self.over.wait(fault.compiling)
        if fault.reset:
            return
        if fault.pieces is not None:
            self.stream(handler, fault)
            return
        body = fault.body.encode()
        kind = "application/json"
        if self.requests[-1].get("stream") and fault.streamed:
            body, kind = events_of(fault.body, self.requests[-1]), "text/event-stream"
        size = len(body) + (100 if fault.cut or fault.stall else 0)
        handler.send_response(fault.status)
        headers = {"content-type": kind, "content-length": str(size)}
        for name, value in {**headers, **fault.headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if fault.stall:
            handler.wfile.flush()
            self.over.wait(30)
        else:
            handler.wfile.write(body)

    def page(self, handler: BaseHTTPRequestHandler) -> None:
        """What the server says of itself."""
        found = (self.pages or {}).get(handler.path)
        body = json.dumps(found).encode()
        handler.send_response(404 if found is None else 200)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def stream(self, handler: BaseHTTPRequestHandler, fault: Fault) -> None:
        """A stream as the fault has it; its end closes the connection."""
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        for piece in fault.pieces or ():
            handler.wfile.flush()
            if not piece:
                self.over.wait(30)
                return
            handler.wfile.write(piece)

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class VirtualClock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def __call__(self) -> float:
        return self.now


MakeSpec = Callable[..., TaskSpec]


@pytest.fixture
def server() -> Iterator[FaultServer]:
    """Until the test ends."""
    with closing(FaultServer()) as made:
        yield made
