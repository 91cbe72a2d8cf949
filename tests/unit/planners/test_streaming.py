"""Streamed answers, and everything that can be wrong with a stream."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from agentrunner.config.agents import PlannerSpec
from agentrunner.config.load import with_environment
from agentrunner.planners import timeouts
from agentrunner.planners.base import PartialAnswer, PlannerUnavailable
from agentrunner.planners.cut import cut_of
from agentrunner.planners.factory import make_planner
from agentrunner.planners.streaming import BLANKS, CompletionStream
from agentrunner.planners.timeouts import BETWEEN_SEC, FAR, NEAR, is_near, limits_of
from tests.kit.asked_planner import KEY, ask, fail, request
from tests.kit.fault_server import Fault, FaultServer, MakeSpec, completion, events_of

TEXT = '{"理由": "テストが失敗 🙂", "a": 1}'
MODEL = "openai:m-1"
COUNTED = {"stream": True, "stream_options": {"include_usage": True}}
WHOLE = events_of(completion(TEXT).body, COUNTED)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test can wait for."""
    monkeypatch.setattr(timeouts, "NEAR", (10.0, 1.0))
    monkeypatch.setattr(timeouts, "BETWEEN_SEC", 0.3)


def event(**delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta}
    return f"data: {json.dumps({'choices': [choice]}, ensure_ascii=False)}\n\n".encode()


def test_a_stream_may_come_in_any_pieces() -> None:
    for size in (1, 2, 3, 5, 64, len(WHOLE)):
        stream = CompletionStream()
        for at in range(0, len(WHOLE), size):
            stream.feed(WHOLE[at : at + size])
        body = stream.end()
        assert body["choices"][0]["message"]["content"] == TEXT
        assert body["choices"][0]["finish_reason"] == "stop" and stream.done
        assert body["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
        assert body["model"] == "some-model-0613"


def test_comments_carriage_returns_thoughts_and_messages_are_read() -> None:
    stream = CompletionStream()
    stream.feed(b": keep-alive\r\n\r\n")
    stream.feed(event(reasoning_content="let me think").replace(b"\n", b"\r\n"))
    stream.feed(b'data: {"choices": [{"message": {"content": "yes"}, "finish_reason": "length"}]}')
    assert stream.thoughts == 12
    assert stream.end()["choices"][0] == {
        "index": 0,
        "finish_reason": "length",
        "message": {"role": "assistant", "content": "yes"},
    }


async def test_what_has_come_is_told_and_the_answer_is_the_same_as_in_one_piece(
    make_spec: MakeSpec, server: FaultServer
) -> None:
    unnamed = Fault(body=WHOLE.decode())  # a stream that says that it is JSON
    server.script = [completion(TEXT), Fault(body=completion(TEXT).body), unnamed]
    told: list[PartialAnswer] = []
    streamed = await ask(make_spec, server, request(progress=told.append))
    assert streamed == await ask(make_spec, server) == await ask(make_spec, server)
    assert streamed.text == TEXT and streamed.known == "counted"
    assert told and told[-1].text == TEXT
    assert [one.reading > 0 for one in told][:2] == [True, False]  # first it reads
    assert server.requests[0]["stream"] is True


async def test_the_chat_of_any_provider_is_streamed_as_well(
    make_spec: MakeSpec, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.script = [completion(TEXT), Fault(body=completion(TEXT).body)]
    told: list[PartialAnswer] = []
    reply = await ask(make_spec, server, request(progress=told.append), kind="chat", model=MODEL)
    assert (reply.text, reply.input_tokens, reply.model) == (TEXT, 3, "some-model-0613")
    assert [one.text for one in told][-1] == TEXT and len(told) > 3
    assert server.requests[0]["stream"] is True
    # one that answers in one piece is asked for one piece
    assert (await ask(make_spec, server, kind="chat", model=MODEL)).text == TEXT
    assert [bool(one.get("stream")) for one in server.requests[1:]] == [True, False]


@pytest.mark.parametrize("body", [{}, {"usage": None}, {"usage": {"prompt_tokens": "many"}}])
@pytest.mark.parametrize("streamed", [True, False])
async def test_a_usage_that_is_none_is_not_known(
    make_spec: MakeSpec, server: FaultServer, body: dict[str, Any], streamed: bool
) -> None:
    whole = json.loads(completion("{}").body)
    del whole["usage"]
    server.script = [Fault(body=json.dumps({"usage": {}, **whole, **body}), streamed=streamed)]
    reply = await ask(make_spec, server)
    assert (reply.text, reply.known, reply.input_tokens) == ("{}", "unknown", 0)


async def test_an_absurd_usage_is_not_believed(make_spec: MakeSpec, server: FaultServer) -> None:
    usage = {"prompt_tokens": -5, "completion_tokens": 10**12, "total_tokens": 7}
    whole = {**json.loads(completion("{}").body), "usage": usage}
    server.script = [Fault(body=json.dumps(whole), streamed=True)]
    assert (await ask(make_spec, server)).known == "unknown"


BROKEN: dict[str, tuple[tuple[bytes, ...], str, bool]] = {
    "it stops in a token": ((event(content='{"a'), b'data: {"choices": [{"de'), "no JSON", True),
    "it stops between tokens": ((event(content='{"a'),), "broke off after 3 char", True),
    "it ends before it begins": ((b": hello\n\n",), "broke off after 0 char", True),
    "an event cut in UTF-8": (
        (event(content="理").replace("理".encode(), "理".encode()[:2]),),
        "no UTF-8",
        True,
    ),
    "an error in the middle": (
        (event(content="{"), b'data: {"error": {"message": "out of memory"}}\n\n'),
        "out of memory",
        False,
    ),
    "an error of an older server": (
        (b'error: {"code": 500, "message": "slot unavailable"}\n\n',),
        "slot unavailable",
        False,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_stream_that_breaks_is_never_an_answer(
    make_spec: MakeSpec, server: FaultServer, name: str
) -> None:
    pieces, told, retryable = BROKEN[name]
    server.script = [Fault(pieces=pieces)]
    failure = await fail(make_spec, server)
    assert told in failure.message and failure.retryable is retryable


COMPILING_SEC = 60
HASTE = 50
"""How much faster time passes in a test."""


@pytest.mark.parametrize("limits", [NEAR, FAR], ids=["near", "far"])
@pytest.mark.parametrize("answers", ["in a stream", "in one piece"])
async def test_a_schema_that_is_compiled_for_a_minute_is_waited_for(
    make_spec: MakeSpec, server: FaultServer, monkeypatch: pytest.MonkeyPatch,
    limits: tuple[float, float], answers: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(timeouts, "NEAR", tuple(seconds / HASTE for seconds in limits))
    monkeypatch.setattr(timeouts, "BETWEEN_SEC", BETWEEN_SEC / HASTE)
    slow = replace(completion(TEXT), compiling=COMPILING_SEC / HASTE)
    server.script = [replace(slow, streamed=answers == "in a stream")]
    assert (await ask(make_spec, server)).text == TEXT
    (sent,) = server.requests  # the schema is not given up, and nothing is asked for twice
    assert "json_schema" in sent["response_format"]


async def test_a_time_limit_that_was_set_ends_that_wait(
    make_spec: MakeSpec, server: FaultServer
) -> None:
    server.script = [replace(completion(TEXT), compiling=30)]
    failure = await fail(make_spec, server, timeout_sec=0.3)
    assert failure.retryable and len(server.requests) == 1


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault(pieces=(b"",)), "wrote nothing: no sign of life for 1 s"),
        (Fault(pieces=(event(content='{"abc'), b"")), "stopped after 5 characters"),
        (Fault(stall=True), "wrote nothing"),
    ],
)
async def test_a_server_that_falls_silent_is_not_waited_for_without_end(
    make_spec: MakeSpec, server: FaultServer, fault: Fault, told: str
) -> None:
    server.script = [fault]
    failure = await fail(make_spec, server)
    assert told in failure.message and failure.retryable and failure.kind == "network"


async def test_blanks_without_end_are_ended(make_spec: MakeSpec, server: FaultServer) -> None:
    blanks = tuple(event(content=" \n" * 50) for _ in range(BLANKS // 90))
    server.script = [Fault(pieces=(*blanks, b"")), Fault(pieces=(event(content="{"), *blanks, b""))]
    asked = make_planner(make_spec(base_url=server.url), {"OPENAI_API_KEY": KEY})
    nothing, cut = await asked.complete(request()), await asked.complete(request())
    await asked.close()
    assert (nothing.text.strip(), nothing.finish_reason) == ("", "stop")
    assert (cut.text.strip(), cut.finish_reason) == ("{", "length")


async def test_what_a_server_does_not_take_is_left_out_from_then_on(
    make_spec: MakeSpec, server: FaultServer
) -> None:
    no = '{"error": {"message": "%s"}}'
    server.script = [
        Fault(400, no % "unknown field stream_options"),
        Fault(400, no % "response_format is not supported"),
        Fault(422, no % "streaming is not available"),
        Fault(400, no % "json schema: cannot compile"),
        completion("{}"),
    ]
    client = make_planner(make_spec(base_url=server.url), {"OPENAI_API_KEY": KEY})
    asked = request(simpler={"type": "object"})
    for _ in range(4):
        with pytest.raises(PlannerUnavailable) as caught:
            await client.complete(asked)
        assert caught.value.retryable and caught.value.retry_after == 0
    assert (await client.complete(asked)).text == (await client.complete(asked)).text == "{}"
    await client.close()
    told = [
        (bool(one.get("stream")), "stream_options" in one, "response_format" in one)
        for one in server.requests
    ]
    assert told == [
        (True, True, True),
        (True, False, True),
        (True, False, True),
        (False, False, True),
        (False, False, False),
        (False, False, False),
    ]


def test_limits_by_where_the_server_is() -> None:
    meta = PlannerSpec()
    here, far = limits_of(meta, {}, "192.168.1.7"), limits_of(meta, {}, "api.example.com")
    assert (here.whole, here.first, here.between) == (*NEAR, BETWEEN_SEC)
    assert (far.whole, far.first, far.between) == (*FAR, BETWEEN_SEC)
    assert limits_of(meta, {"META_TIMEOUT_SEC": "60"}, "localhost").first == 60
    set_ = limits_of(PlannerSpec(timeout_sec=5), {"META_TIMEOUT_SEC": "60"}, "localhost")
    assert (set_.whole, set_.first, set_.between) == (5, 5, 5)
    assert [is_near(host) for host in ("::1", "10.0.0.1", "8.8.8.8", "nas.local", "")] == [
        True, True, False, False, False
    ]  # fmt: skip


def test_the_time_out_of_a_chat_model_is_not_that_of_a_cli() -> None:
    environ = {"META_TIMEOUT_SEC": "45"}
    limits_ = {
        kind: with_environment(PlannerSpec(kind=kind), environ).timeout_sec
        for kind in ("openai-chat", "chat", "codex-cli", "claude-code")
    }
    assert limits_ == {"openai-chat": 45, "chat": 45, "codex-cli": None, "claude-code": None}


ENGLISH = "The planner is asked what to do next, and obeys the limits of the run. " * 400
JAPANESE = "受け入れ条件がすべて満たされているかどうかを判定してください。" * 200


@pytest.mark.parametrize(
    ("text", "read", "cut"),
    [
        (ENGLISH, 6200, False),  # as a tokenizer reads it
        (ENGLISH, 4096, True),  # the window of a server
        (ENGLISH, 4095, True),
        (ENGLISH, 4900, False),
        (ENGLISH, 2500, True),
        (ENGLISH, 0, False),  # it does not say
        (JAPANESE, 3900, False),
        (JAPANESE, 2048, True),
        (ENGLISH[:4000], 100, False),  # too short to tell
    ],
)
def test_a_prompt_that_was_cut_is_found_out(text: str, read: int, cut: bool) -> None:
    found = cut_of([text[:100], text[100:]], read)
    assert (found is not None) is cut
    if found is not None:
        assert f"read {read:,} of about" in found.sentence()
        assert found.wanted >= 2 * found.sent and found.wanted in (8192, 16384, 32768)
