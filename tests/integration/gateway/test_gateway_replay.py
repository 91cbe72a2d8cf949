"""Recording and playing whatever a provider does, well or badly."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from agentrunner.errors import UsageError
from agentrunner.gateway.cassette import read_cassette
from agentrunner.gateway.usage import ModelCall, read_calls
from agentrunner.money.counters import read_usage
from tests.kit.gateway import BEARER, REAL_KEY, gateway, order_for, provider

NOWHERE = "http://127.0.0.1:9"
EVENT = b'data: {"usage": {"input_tokens": 5, "output_tokens": 7}}\n\n'


async def _answer(request: web.Request) -> web.StreamResponse:
    """Does what the request's text says."""
    if request.method == "GET":
        return web.json_response({"data": [{"id": "gpt-5.5"}]})
    what = (await request.json())["input"]
    if what == "refuse":
        body = {"error": {"message": f"Slow down, {REAL_KEY}", "code": "rate_limit_exceeded"}}
        return web.json_response(body, status=429, headers={"x-ratelimit-reset-tokens": "6m0s"})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(b"data: {}\n\n")
    if what == "break off":
        assert request.transport is not None
        request.transport.close()
        return response
    await response.write(EVENT)
    return response


async def _ask(box: str, what: str) -> tuple[int, bytes | None]:
    """Status and body; None for a body that breaks off."""
    async with aiohttp.ClientSession() as client:
        sent = {"model": "gpt-5.5", "input": what}
        async with client.post(f"{box}/responses", json=sent, headers=BEARER) as reply:
            try:
                return reply.status, await reply.read()
            except aiohttp.ClientPayloadError:
                return reply.status, None


def _facts(calls: list[ModelCall]) -> list[ModelCall]:
    """Calls without what depends on the clock."""
    return [
        replace(call, ts="", duration_ms=0, reset_at=call.reset_at and "then") for call in calls
    ]  # fmt: skip


ALL = ("answer", "refuse", "break off", "answer")


async def test_what_went_wrong_goes_wrong_again(tmp_path: Path) -> None:
    tape = tmp_path / "run.cassette"
    async with provider(_answer) as base:
        order = order_for(tmp_path / "one", base, record=tape)
        async with gateway(order) as box:
            recorded = [await _ask(box, what) for what in ALL]
    unreachable = order_for(tmp_path / "two", base, record=tape)  # nobody is there any more
    async with gateway(unreachable) as box:
        recorded.append(await _ask(box, "answer"))
    assert [status for status, _ in recorded] == [200, 429, 200, 200, 502]
    assert recorded[2][1] is None and recorded[3][1] == b"data: {}\n\n" + EVENT

    again = order_for(tmp_path / "three", NOWHERE, replay=tape)
    async with gateway(again) as box:
        replayed = [await _ask(box, what) for what in (*ALL, "answer")]
    assert [status for status, _ in replayed] == [status for status, _ in recorded]
    assert [body for _, body in replayed[:4]] == [body for _, body in recorded[:4]]
    calls = read_calls(order.usage_log) + [
        replace(call, n=5) for call in read_calls(unreachable.usage_log)
    ]
    assert _facts(read_calls(again.usage_log)) == _facts(calls)
    assert [call.error for call in calls] == [None, "quota", "network", None, "network"]
    assert REAL_KEY not in tape.read_text()


async def test_a_new_process_goes_on_where_the_old_one_stopped(tmp_path: Path) -> None:
    tape = tmp_path / "run.cassette"
    async with provider(_answer) as base:
        for what in ("answer", "refuse"):
            async with gateway(order_for(tmp_path, base, record=tape)) as box:
                await _ask(box, what)
    assert [exchange.number for exchange in read_cassette(tape)] == [1, 2]
    again = order_for(tmp_path / "again", NOWHERE, replay=tape)
    statuses = []
    for what in ("answer", "refuse", "answer"):
        async with gateway(again) as box:
            statuses.append((await _ask(box, what))[0])
    assert statuses == [200, 429, 400]
    error = read_usage(again.usage_log).last_error
    assert error is not None and (error.error, error.detail) == (
        "replay", "request 3 of '1-001' ('answer') is one more than were recorded.",
    )  # fmt: skip


async def test_lists_of_models_are_played_at_any_time(tmp_path: Path) -> None:
    tape = tmp_path / "run.cassette"

    async def models(box: str) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"{box}/models?client_version=1", headers=BEARER) as reply,
        ):
            return reply.status, await reply.text()

    async with provider(_answer) as base, gateway(order_for(tmp_path, base, record=tape)) as box:
        await models(box)
        await _ask(box, "answer")
    order = order_for(tmp_path / "again", NOWHERE, replay=tape)
    async with gateway(order) as box:
        assert (await _ask(box, "answer"))[0] == 200
        for _ in range(2):
            status, text = await models(box)
            assert (status, json.loads(text)["data"][0]["id"]) == (200, "gpt-5.5")
    assert read_usage(order.usage_log).last_error is None


async def test_the_first_difference_is_told_from_then_on(tmp_path: Path) -> None:
    tape = tmp_path / "run.cassette"
    async with provider(_answer) as base, gateway(order_for(tmp_path, base, record=tape)) as box:
        await _ask(box, "answer")
    order = order_for(tmp_path / "again", NOWHERE, replay=tape)
    async with gateway(order) as box:
        said = [await _ask(box, what) for what in ("other", "answer")]
    assert said[0] == said[1]
    status, body = said[0]
    assert body is not None
    assert status == 400 and json.loads(body)["error"] == {
        "message": "AgentRunner: request 1 of '1-001' ('other') differs from the recorded one at "
        'input: "answer" then, "other" now.',
        "type": "replay", "param": None, "code": "replay",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["nonsense\n{}\n", None])
async def test_a_recording_that_cannot_be_played_starts_nothing(
    tmp_path: Path, text: str | None
) -> None:
    tape = tmp_path / "run.cassette"
    if text is not None:
        tape.write_text(text)
    with pytest.raises(UsageError):
        async with gateway(order_for(tmp_path, NOWHERE, replay=tape)):
            pass
