"""The real Codex CLI through the gateway: the placeholder in its environment, the key behind it."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.gateway.cassette import read_cassette
from agentrunner.gateway.order import Allowance, GatewayOrder
from agentrunner.gateway.usage import read_calls
from agentrunner.money.counters import Usage, read_usage
from agentrunner.workers.base import WorkerRequest
from agentrunner.workers.codex import CodexWorker
from tests.kit.codex import require_codex
from tests.kit.gateway import LABEL, PLACEHOLDER, REAL_KEY, gateway, order_for
from tests.kit.model_server import ModelServer
from tests.kit.scenario import Patch, Scenario, Shell, Turn, Write

TURNS = (
    Turn("Creating it.", [Write("hello.py", "print('hello')\n")]),
    Turn("Looking.", [Shell("python3 hello.py; pwd; date; sleep 0.02; env | grep -c sk-real-")]),
    Turn("Changing it.", [Patch("*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch")]),
    Turn("Done."),
)


@dataclass
class Codex:
    """Codex in a folder of its own, laid out as a run is."""

    place: Path
    binary: Path

    @property
    def repo(self) -> Path:
        return self.place / "shop"

    @property
    def home(self) -> Path:
        return self.place / "state" / "runs" / "shop-1a2b3c4d" / "box"

    def order(self, base_url: str, **more: Any) -> GatewayOrder:
        return order_for(self.place, base_url, workdir=str(self.repo), **more)

    async def run(self, base_url: str, prompt: str = "Make hello.py.") -> tuple[int, list[Any]]:
        """Exit code and events."""
        for folder in (self.repo, self.home):
            folder.mkdir(parents=True, exist_ok=True)
        worker = CodexWorker(WorkerSpec(command=[str(self.binary)], model="gpt-5.5"))
        call = WorkerRequest(
            "1-001", prompt, self.repo, self.home, self.home / "prompt.md", base_url=base_url
        )
        command = worker.command(call)
        for folder in command.folders:
            folder.mkdir(exist_ok=True)
        process = await asyncio.create_subprocess_exec(
            *command.argv,
            cwd=self.repo,
            # Without a home the login shell reads root's own files, which may print something.
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                **command.env,
                command.key_env: PLACEHOLDER,
            },
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate(command.stdin)
        assert process.returncode is not None
        return process.returncode, [json.loads(line) for line in out.splitlines()]

    def holds(self, secret: str) -> list[str]:
        files = [path for path in self.place.rglob("*") if path.is_file()]
        assert files
        return [str(path) for path in files if secret.encode() in path.read_bytes()]


def codex_in(place: Path) -> Codex:
    return Codex(place, require_codex())


def usage_of(codex: Codex) -> Usage:
    return read_usage(codex.order("").usage_log)


def errors_of(codex: Codex) -> list[str | None]:
    """Of each call, refused ones among them."""
    return [call.error for call in read_calls(codex.order("").usage_log)]


async def test_the_key_is_only_behind_the_gateway_and_every_token_is_counted(
    tmp_path: Path,
) -> None:
    codex = codex_in(tmp_path)
    with ModelServer(Scenario(TURNS)) as server:
        async with gateway(codex.order(server.base_url)) as box:
            code, events = await codex.run(box)
        requests = server.requests
    assert code == 0, events
    assert (codex.repo / "hello.py").read_text() == "print('hello')\n"
    assert (codex.repo / "new.txt").read_text() == "new\n"
    assert {request.bearer for request in requests} == {REAL_KEY}
    assert PLACEHOLDER not in str([request.body for request in requests])
    assert codex.holds(REAL_KEY) == []
    usage = usage_of(codex)
    assert (usage.total.calls, usage.total.input_tokens, usage.total.output_tokens) == (
        4,
        4800,
        136,
    )
    assert events[-1]["usage"]["input_tokens"] == usage.total.input_tokens
    assert (usage.total.unknown_calls, usage.total.unpriced_calls, usage.last_error) == (0, 0, None)


async def test_a_budget_that_is_used_up_ends_codex_at_once(tmp_path: Path) -> None:
    codex = codex_in(tmp_path)
    with ModelServer(Scenario(TURNS)) as server:
        async with gateway(codex.order(server.base_url, allowance=Allowance(tokens=2000))) as box:
            code, events = await codex.run(box)
        asked = len(server.requests)
    assert (code, asked) == (1, 2)
    assert "the token budget of this run is used up (2468 of 2000" in str(events[-1])
    usage = usage_of(codex)
    assert usage.total.calls == 2
    assert errors_of(codex) == [None, None, "budget"]  # it did not try again
    assert usage.last_error is not None and usage.last_error.error == "budget"


@pytest.mark.series(2)
@pytest.mark.parametrize(
    ("turn", "kind", "reset"),
    [
        (Turn("Incorrect API key provided", status=401), "auth", False),
        (Turn("The model does not exist", status=404), "model", False),
        # Codex would wait an hour if it were told to.
        (Turn("Rate limit reached", status=429, headers={"Retry-After": "3600"}), "quota", True),
    ],
)
async def test_why_it_failed_is_known(tmp_path: Path, turn: Turn, kind: str, reset: bool) -> None:
    codex = codex_in(tmp_path)
    with ModelServer(Scenario([turn])) as server:
        async with gateway(codex.order(server.base_url)) as box:
            code, _ = await codex.run(box)
    error = usage_of(codex).last_error
    assert code == 1 and error is not None
    assert (error.error, error.detail, bool(error.reset_at)) == (kind, turn.text, reset)


async def test_a_recording_is_played_in_another_folder_without_a_provider(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    tape = tmp_path / "run.cassette"
    one, other = codex_in(tmp_path / "one"), codex_in(tmp_path / "quite" / "another")
    with ModelServer(Scenario(TURNS)) as server:
        async with gateway(one.order(server.base_url, record=tape)) as box:
            recorded = await one.run(box)
    nowhere = f"http://127.0.0.1:{unused_tcp_port}"
    order = other.order(nowhere, replay=tape)
    assert order.upstream is not None
    order = replace(order, upstream=replace(order.upstream, credential=""))
    async with gateway(order) as box:
        replayed = await other.run(box)
    assert recorded[0] == replayed[0] == 0, usage_of(other)
    assert [event["type"] for event in replayed[1]] == [event["type"] for event in recorded[1]]
    assert replayed[1][-1] == recorded[1][-1]
    for name in ("hello.py", "new.txt"):
        assert (other.repo / name).read_bytes() == (one.repo / name).read_bytes()
    assert usage_of(other) == replace(usage_of(one), last_error=None)
    exchanges = read_cassette(tape)
    assert [(e.channel, e.number, e.status) for e in exchanges] == [
        (LABEL, number, 200) for number in range(1, 5)
    ]
    text = tape.read_text()
    assert REAL_KEY not in text and PLACEHOLDER not in text and str(one.repo) not in text


async def test_a_replay_that_goes_another_way_says_where(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    tape = tmp_path / "run.cassette"
    one, other = codex_in(tmp_path / "one"), codex_in(tmp_path / "other")
    with ModelServer(Scenario(TURNS)) as server:
        async with gateway(one.order(server.base_url, record=tape)) as box:
            await one.run(box)
    nowhere = f"http://127.0.0.1:{unused_tcp_port}"
    async with gateway(other.order(nowhere, replay=tape)) as box:
        code, events = await other.run(box, "Make goodbye.py.")
    error = usage_of(other).last_error
    assert code == 1 and error is not None and error.error == "replay"
    assert error.detail.startswith("request 1 of '1-001' ('Make goodbye.py.') differs from")
    assert '"Make hello.py." then, "Make goodbye.py." now.' in error.detail
    assert "Make goodbye.py." in str(events[-1])
    assert errors_of(other) == ["replay"]
