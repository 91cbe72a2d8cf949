"""The real Claude Code through the gateway, with a key and with the token of a login."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any, Literal

import pytest
from aiohttp import web

from agentrunner.gateway.order import Allowance
from agentrunner.gateway.usage import read_calls
from agentrunner.money.counters import read_usage
from tests.kit.claude import anthropic_messages, require_claude
from tests.kit.gateway import PLACEHOLDER, REAL_KEY, gateway, order_for, provider

STEPS = (("Making it.", "echo hello > hello.txt; pwd; date"), ("Done.", ""))


async def claude(
    place: Path, base_url: str, key_env: str = "ANTHROPIC_API_KEY"
) -> tuple[int, dict[str, Any]]:
    """Exit code and result of one run in `place`/shop."""
    home = place / "state" / "runs" / "shop-1a2b3c4d" / "box"
    for folder in (place / "shop", home / "claude", home / "tmp"):
        folder.mkdir(parents=True, exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        *(require_claude(), "-p", "--output-format", "json", "--model", "claude-sonnet-4-5"),
        "--dangerously-skip-permissions",
        cwd=place / "shop",
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            "CLAUDE_CONFIG_DIR": str(home / "claude"),
            "CLAUDE_CODE_TMPDIR": str(home / "tmp"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "2",
            "IS_SANDBOX": "1",
            "ANTHROPIC_BASE_URL": base_url,
            key_env: PLACEHOLDER,
        },
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(b"Make hello.txt.")
    assert process.returncode is not None
    assert out, err
    return process.returncode, json.loads(out)


@pytest.mark.parametrize(
    ("key_env", "scheme", "header"),
    [
        ("ANTHROPIC_API_KEY", "key", "X-Api-Key"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "bearer", "Authorization"),
    ],
)
async def test_the_key_is_only_behind_the_gateway_and_every_token_is_counted(
    tmp_path: Path, key_env: str, scheme: Literal["key", "bearer"], header: str
) -> None:
    require_claude()
    seen: list[web.Request] = []
    async with provider(anthropic_messages(STEPS, seen)) as base:
        order = order_for(tmp_path, base, "anthropic", scheme=scheme)
        async with gateway(order) as box:
            code, result = await claude(tmp_path, box, key_env)
    assert (code, result["result"]) == (0, "Done.")
    assert (tmp_path / "shop" / "hello.txt").read_text() == "hello\n"
    shown = REAL_KEY if scheme == "key" else f"Bearer {REAL_KEY}"
    assert {request.headers[header] for request in seen} == {shown}
    assert PLACEHOLDER not in str([request.headers for request in seen])
    assert all(
        ("oauth-2025-04-20" in request.headers["anthropic-beta"]) is (scheme == "bearer")
        for request in seen
    )
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if REAL_KEY.encode() in path.read_bytes()] == []
    usage = read_usage(order.usage_log)
    calls = len(seen)
    assert (usage.total.calls, usage.total.unknown_calls) == (calls, 0)
    assert (usage.total.input_tokens, usage.total.cached_tokens) == (1200 * calls, 200 * calls)
    assert usage.total.output_tokens == 34 * calls
    assert usage.total.price == pytest.approx(calls * (1000 * 3 + 200 * 0.3 + 34 * 15) / 1e6)


async def test_a_budget_that_is_used_up_ends_it_at_once(tmp_path: Path) -> None:
    require_claude()
    seen: list[web.Request] = []
    async with provider(anthropic_messages(STEPS, seen)) as base:
        order = order_for(tmp_path, base, "anthropic", allowance=Allowance(tokens=0))
        async with gateway(order) as box:
            code, result = await claude(tmp_path, box)
    assert (code, result["is_error"], seen) == (1, True, [])
    assert "the token budget of this run is used up" in result["result"]
    usage = read_usage(order.usage_log)
    refused = [call.error for call in read_calls(order.usage_log)]
    assert (usage.total.calls, refused) == (0, ["budget"])  # it did not try again
    assert usage.last_error is not None and usage.last_error.error == "budget"


async def test_a_recording_is_played_in_another_folder_without_a_provider(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    require_claude()
    tape = tmp_path / "run.cassette"
    one, other = tmp_path / "one", tmp_path / "quite" / "another"
    async with provider(anthropic_messages(STEPS, [])) as base:
        order = order_for(one, base, "anthropic", record=tape, workdir=str(one / "shop"))
        async with gateway(order) as box:
            recorded = await claude(one, box)
    nowhere = f"http://127.0.0.1:{unused_tcp_port}"
    again = order_for(other, nowhere, "anthropic", replay=tape, workdir=str(other / "shop"))
    async with gateway(again) as box:
        replayed = await claude(other, box)
    for code, result in (recorded, replayed):
        assert (code, result["result"]) == (0, "Done."), read_usage(again.usage_log)
    assert (other / "shop" / "hello.txt").read_text() == "hello\n"
    assert read_usage(again.usage_log) == read_usage(order.usage_log)
    assert REAL_KEY not in tape.read_text()
