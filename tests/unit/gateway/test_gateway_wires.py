"""The four shapes of model APIs: what is let through, and what replies say was used."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from yarl import URL

from agentrunner.gateway import metering
from agentrunner.gateway.metering import Meter, decoded
from agentrunner.gateway.order import Wire
from agentrunner.gateway.provider import proxy_for
from agentrunner.gateway.wires import WIRES, CallTokens, credential_headers
from tests.kit.scenario import Turn
from tests.kit.wire import Answer, Ask, Chat, Responses
from tests.kit.wire import Wire as ServerWire

SSE = "text/event-stream; charset=utf-8"
ANTHROPIC = [
    {
        "type": "message_start",
        "message": {
            "usage": {
                "input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 200,
                "cache_creation_input_tokens": 30,
            }
        },
    },
    {"type": "content_block_delta", "delta": {"text": 'the word "usage" in a text'}},
    {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 34}},
    {"type": "message_stop"},
]  # fmt: skip
GEMINI: list[Any] = [
    {"candidates": [{"content": {}}], "usageMetadata": {"promptTokenCount": 100}},
    {
        "candidates": [{"finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 100, "candidatesTokenCount": 7, "thoughtsTokenCount": 5,
            "cachedContentTokenCount": 60, "toolUsePromptTokenCount": 3,
        },
    },
]  # fmt: skip


def events(*data: Any) -> bytes:
    return b"".join(b"event: x\ndata: %s\n\n" % json.dumps(item).encode() for item in data)


def read(wire: Wire, body: bytes, kind: str = SSE, encoding: str = "") -> CallTokens | None:
    meter = Meter(WIRES[wire], kind, encoding)
    meter.feed(body)
    return meter.tokens()


@pytest.mark.parametrize(
    ("wire", "method", "path", "metered"),
    [
        ("openai", "POST", "/responses", True),
        ("openai", "POST", "/chat/completions", True),
        ("openai", "GET", "/models", False),
        ("openai", "GET", "/models/org/gpt-5.5", False),
        ("anthropic", "POST", "/v1/messages", True),
        ("anthropic", "POST", "/v1/messages/count_tokens", False),
        ("gemini", "POST", "/v1beta/models/gemini-2.5-pro:streamGenerateContent", True),
        ("gemini", "POST", "/v1/models/gemini-2.5-pro:countTokens", False),
        ("openai", "POST", "/models", None),
        ("openai", "POST", "/v1/messages", None),
        ("openai", "GET", "/models/../files", None),
        ("openai", "POST", "/responses/", None),
        ("anthropic", "POST", "/v1/messages/batches", None),
        ("gemini", "POST", "/v1beta/models/m:predict", None),
        ("gemini", "POST", "/v1beta/models/a/b:generateContent", None),
        ("gemini", "POST", "/v1beta/models/m:generateContent\n", None),
    ],
)
def test_a_fixed_list_of_calls(wire: Wire, method: str, path: str, metered: bool | None) -> None:
    route = WIRES[wire].route(method, path)
    assert (route.metered if route else None) is metered


@pytest.mark.parametrize("server", [Responses(), Chat()])
@pytest.mark.parametrize("stream", [False, True])
def test_what_openai_says_was_used(server: ServerWire, stream: bool) -> None:
    ask = Ask("gpt-5.5", [], {}, stream)
    answer = Answer(Turn('say "usage"').text)
    if stream:
        body, kind = events(*(data for _, data in server.events(ask, answer))), SSE
    else:
        body, kind = json.dumps(server.whole(ask, answer)).encode(), "application/json"
    assert read("openai", body, kind) == CallTokens(1200, 34)


def test_details_of_openai() -> None:
    responses = {
        "input_tokens": 100, "output_tokens": 20,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "output_tokens_details": {"reasoning_tokens": 15},
    }  # fmt: skip
    chat = {
        "prompt_tokens": 100, "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 15},
    }  # fmt: skip
    for usage in (responses, chat):
        body = json.dumps({"usage": usage}).encode()
        assert read("openai", body, "application/json") == CallTokens(100, 20, 60, 10)


def test_what_anthropic_says_was_used() -> None:
    used = CallTokens(input=240, output=34, cached=200, cache_write=30)
    assert read("anthropic", events(*ANTHROPIC)) == used
    usage = {**ANTHROPIC[0]["message"]["usage"], "output_tokens": 34}  # type: ignore[index]
    whole = json.dumps({"type": "message", "usage": usage}).encode()
    assert read("anthropic", whole, "application/json") == used


def test_what_gemini_says_was_used() -> None:
    used = CallTokens(input=103, output=12, cached=60)
    assert read("gemini", events(*GEMINI)) == used
    assert read("gemini", json.dumps(GEMINI).encode(), "application/json") == used
    assert read("gemini", json.dumps(GEMINI[1]).encode(), "application/json") == used


@pytest.mark.parametrize(
    ("wire", "body", "kind"),
    [
        ("openai", events({"choices": [{"delta": {"content": "hi"}}], "usage": None}), SSE),
        ("openai", b"data: [DONE]\n\n", SSE),
        ("openai", events({"usage": {"prompt_tokens": 3}}), SSE),
        ("openai", b'{"usage": {"input_tokens": "3", "output_tokens": true}}', "application/json"),
        ("openai", b"<html>", "text/html"),
        ("anthropic", events(*ANTHROPIC[:2]), SSE),
        ("gemini", events(GEMINI[0]), SSE),
        ("openai", b"[" * 100_000, "application/json"),
    ],
)
def test_what_is_not_told_is_unknown(wire: Wire, body: bytes, kind: str) -> None:
    """Streams that were cut, or whose client asked for no usage."""
    assert read(wire, body, kind) is None


def test_a_stream_may_be_cut_anywhere_into_pieces() -> None:
    body = events(*ANTHROPIC)
    for size in range(1, 40):
        meter = Meter(WIRES["anthropic"], SSE)
        for start in range(0, len(body), size):
            meter.feed(body[start : start + size])
        assert meter.tokens() == CallTokens(240, 34, 200, 30)


def test_an_event_too_long_to_be_read_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "MAX_EVENT", 1000)
    meter = Meter(WIRES["openai"], SSE)
    usage = {"usage": {"input_tokens": 1, "output_tokens": 2}}
    body = events({"usage": {"input_tokens": 9, "output_tokens": 9}, "x": "y" * 5000}, usage)
    for start in range(0, len(body), 400):
        meter.feed(body[start : start + 400])
    assert meter.tokens() == CallTokens(1, 2)
    whole = json.dumps({**usage, "x": "y" * 5000}).encode()
    assert read("openai", whole, "application/json") is None


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("", bytes)]
)
def test_a_copy_of_a_compressed_reply_is_read(encoding: str, pack: Any) -> None:
    packed = pack(events(*ANTHROPIC))
    meter = Meter(WIRES["anthropic"], SSE, encoding)
    for start in range(0, len(packed), 7):
        meter.feed(packed[start : start + 7])
    assert meter.tokens() == CallTokens(240, 34, 200, 30)
    assert decoded(packed, encoding) == events(*ANTHROPIC)


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "compress"])
def test_what_cannot_be_decompressed_is_unknown(encoding: str) -> None:
    assert read("anthropic", b"\xff\xfenothing", SSE, encoding) is None
    assert decoded(b"\xff\xfenothing", encoding) == b"\xff\xfenothing"


def test_an_error_in_a_stream_is_seen() -> None:
    for wire, event, error in (
        ("openai", {"type": "response.failed", "response": {"error": {"code": "x"}}}, "x"),
        ("openai", {"type": "error", "code": "x"}, "x"),
        ("openai", {"error": {"code": "x"}}, "x"),
        ("anthropic", {"type": "error", "error": {"code": "x"}}, "x"),
    ):
        meter = Meter(WIRES[wire], SSE)  # type: ignore[index]
        meter.feed(events(event))
        assert meter.error is not None and meter.error["error"]["code"] == error
    meter = Meter(WIRES["openai"], SSE)
    meter.feed(events({"type": "response.created", "response": {"error": None, "usage": None}}))
    assert meter.error is None


@pytest.mark.parametrize(
    ("wire", "path", "body", "model"),
    [
        ("openai", "/responses", {"model": "gpt-5.5"}, "gpt-5.5"),
        ("gemini", "/v1beta/models/gemini-2.5-pro:generateContent", {}, "gemini-2.5-pro"),
        ("openai", "/responses", {"model": ["x"]}, ""),
        ("openai", "/responses", None, ""),
    ],
)
def test_the_model_of_a_call(wire: Wire, path: str, body: Any, model: str) -> None:
    assert WIRES[wire].model(path, body) == model


def test_no_key_is_no_header() -> None:
    """A server on this machine that asks for none."""
    assert all(credential_headers(wire, "", bearer=True) == {} for wire in WIRES.values())


@pytest.mark.parametrize(
    ("base_url", "proxy"),
    [
        ("https://api.example/v1", "http://proxy.example:3128"),
        ("https://api.internal.example/v1", None),
        ("http://api.example/v1", "http://proxy.example:3128"),
        ("http://127.0.0.1:8000/v1", None),
        ("http://192.168.1.20:8000/v1", None),
        ("https://192.168.1.20/v1", "http://proxy.example:3128"),
        ("https://localhost/v1", None),
    ],
)
def test_a_proxy_of_this_machine_is_used_for_the_outside_only(
    monkeypatch: pytest.MonkeyPatch, base_url: str, proxy: str | None
) -> None:
    for name in ("all_proxy", "http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "internal.example")
    assert proxy_for(URL(base_url)) == proxy


def test_errors_look_like_the_providers() -> None:
    said = {name: wire.error_body(400, "budget", "No.") for name, wire in WIRES.items()}
    assert said == {
        "openai": {
            "error": {"message": "No.", "type": "budget", "param": None, "code": "budget"}
        },
        "anthropic": {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "No."},
        },
        "gemini": {"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}},
    }  # fmt: skip
