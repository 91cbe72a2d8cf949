"""The allowance of a worker run, and what the books know after a crash."""

from __future__ import annotations

import json
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from agentrunner.gateway.order import Allowance, Wire
from agentrunner.gateway.usage import read_calls
from agentrunner.money.counters import read_usage
from tests.kit.gateway import BEARER, gateway, order_for, provider

PATHS: dict[Wire, str] = {
    "openai": "/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1/models/gemini-2.5-pro:generateContent",
}


async def _answer(request: web.Request) -> web.Response:
    if request.method == "GET":
        return web.json_response({"data": []})
    return web.json_response({"usage": {"input_tokens": 100, "output_tokens": 20}})


async def _post(box: str, path: str, model: str = "gpt-5.5") -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as client,
        client.post(box + path, json={"model": model}, headers=BEARER) as reply,
    ):
        return reply.status, await reply.text()


async def test_a_call_begins_only_while_something_is_left(tmp_path: Path) -> None:
    async with provider(_answer) as base:
        order = order_for(tmp_path, base, allowance=Allowance(tokens=200))
        async with gateway(order) as box:
            statuses = [(await _post(box, "/responses"))[0] for _ in range(4)]
    assert statuses == [200, 200, 400, 400]
    usage = read_usage(order.usage_log)
    assert usage.total.input_tokens + usage.total.output_tokens == 240
    assert usage.last_error is not None and usage.last_error.error == "budget"
    assert usage.last_error.detail == (
        "the token budget of this run is used up (240 of 200 tokens that were left for this "
        "worker)."
    )


@pytest.mark.parametrize("wire", PATHS)
async def test_with_nothing_left_nothing_is_asked(tmp_path: Path, wire: Wire) -> None:
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return await _answer(request)

    async with provider(answer) as base:
        order = order_for(tmp_path, base, wire, allowance=Allowance(tokens=0))
        async with gateway(order) as box:
            status, text = await _post(box, PATHS[wire])
    assert (status, asked) == (400, [])
    error = json.loads(text)["error"]
    assert error["message"].startswith("AgentRunner: the token budget of this run is used up")
    assert error.get("code") == {"openai": "budget", "anthropic": None, "gemini": 400}[wire]


async def test_money_runs_out_too_but_only_where_a_price_is_known(tmp_path: Path) -> None:
    """A call of gpt-5.5 costs 100 × $5 and 20 × $30 per million: $0.0011."""
    async with provider(_answer) as base:
        order = order_for(tmp_path, base, allowance=Allowance(usd=0.002))
        async with gateway(order) as box:
            unpriced = [(await _post(box, "/responses", "local-model"))[0] for _ in range(3)]
            priced = [(await _post(box, "/responses"))[0] for _ in range(3)]
    assert (unpriced, priced) == ([200] * 3, [200, 200, 400])
    usage = read_usage(order.usage_log)
    assert usage.total.usd == pytest.approx(0.0022)
    assert (usage.total.price, usage.total.unpriced_calls, usage.total.unknown_calls) == (
        None,
        3,
        0,
    )
    assert usage.by_model["gpt-5.5"].price == pytest.approx(0.0022)


async def test_lists_of_models_cost_nothing(tmp_path: Path) -> None:
    async with provider(_answer) as base:
        order = order_for(tmp_path, base, allowance=Allowance(tokens=0, usd=0))
        async with (
            gateway(order) as box,
            aiohttp.ClientSession() as client,
            client.get(f"{box}/models?client_version=1", headers=BEARER) as reply,
        ):
            assert reply.status == 200
    assert read_usage(order.usage_log).total.calls == 0
    (call,) = read_calls(order.usage_log)
    assert (call.path, call.metered, call.usd) == ("/models", False, 0)


async def test_a_new_process_goes_on_counting(tmp_path: Path) -> None:
    async with provider(_answer) as base:
        order = order_for(tmp_path, base, allowance=Allowance(tokens=200))
        async with gateway(order) as box:
            await _post(box, "/responses")
        other = order_for(tmp_path, base, label="1-002")
        async with gateway(other) as box:
            await _post(box, "/responses")
        with order.usage_log.open("ab") as log:
            log.write(b'{"ts": "2026-11-21T10:00:00Z", "label": "1-0')  # killed in mid-write
        async with gateway(order) as box:
            statuses = [(await _post(box, "/responses"))[0] for _ in range(2)]
    assert statuses == [200, 400]
    counted = [(call.label, call.n, call.error) for call in read_calls(order.usage_log)]
    assert counted == [
        ("1-001", 1, None), ("1-002", 1, None), ("1-001", 2, None), ("1-001", 3, "budget"),
    ]  # fmt: skip


async def test_ones_own_prices_are_laid_over_the_table(tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("models: {local-model: {input: 10, output: 100}, gpt-5.5: null}\n")
    async with provider(_answer) as base:
        order = order_for(tmp_path, base, prices=prices)
        async with gateway(order) as box:
            await _post(box, "/responses", "local-model")
            await _post(box, "/responses", "gpt-5.5")
    models = read_usage(order.usage_log).by_model
    assert models["local-model"].price == pytest.approx(0.003)
    assert models["gpt-5.5"].price is None
