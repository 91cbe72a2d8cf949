"""The real Claude Code inside of each kind of box: no route out, and a placeholder for its key."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from agentrunner.gateway.gateway_process import running
from agentrunner.gateway.order import GATEWAY_PORT, GATEWAY_SOCKET
from agentrunner.money.counters import read_usage
from agentrunner.sandboxes.base import Door, Request, SandboxOrder
from agentrunner.sandboxes.choose import open_sandbox
from tests.kit.bwrap import require_bwrap
from tests.kit.claude import anthropic_messages, require_claude
from tests.kit.docker import on_host_usr, require_docker
from tests.kit.gateway import PLACEHOLDER, REAL_KEY, order_for, provider

LOOK = "env; cat /proc/[0-9]*/environ; echo hello > hello.txt"
STEPS = (("Making it.", LOOK), ("Done.", ""))


def spec_of(kind: str, place: Path, binary: Path) -> SandboxOrder:
    """A box on an empty repository, which sees the program."""
    repo, run = place / "shop", place / "state" / "runs" / "shop-1a2b3c4d"
    for folder in (repo, run / "sock", run / "box" / "claude", run / "box" / "tmp"):
        folder.mkdir(parents=True, mode=0o700)
    programs = (str(binary), "sh")
    spec = SandboxOrder(repo=repo, home=run / "box", programs=programs, sockets=run / "sock")
    return on_host_usr(spec) if kind == "docker" else spec


@pytest.fixture(params=["bwrap", "docker"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    require_docker() if name == "docker" else require_bwrap()
    return name


async def test_claude_works_behind_the_door(kind: str, tmp_path: Path) -> None:
    binary = require_claude()
    spec = spec_of(kind, tmp_path, binary)
    assert spec.sockets is not None
    request = Request(
        command=(
            *(str(binary), "-p", "--output-format", "json", "--model", "claude-sonnet-4-5"),
            "--dangerously-skip-permissions",
        ),
        workdir=spec.repo,
        env={
            "TMPDIR": str(spec.home / "tmp"),
            "CLAUDE_CONFIG_DIR": str(spec.home / "claude"),
            "CLAUDE_CODE_TMPDIR": str(spec.home / "tmp"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "2",
            "IS_SANDBOX": "1",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{GATEWAY_PORT}",
            "ANTHROPIC_API_KEY": PLACEHOLDER,
        },
        stdin=b"Make hello.txt.",
        timeout_sec=120,
        door=Door(spec.sockets, {GATEWAY_PORT: GATEWAY_SOCKET}),
    )
    seen: list[web.Request] = []
    async with provider(anthropic_messages(STEPS, seen)) as base:
        order = replace(order_for(tmp_path, base, "anthropic"), sockets=spec.sockets)
        box = await open_sandbox(kind, spec, os.environ, Path.home(), state_root=tmp_path / "state")
        try:
            async with running(order, os.environ):
                result = await box.run(request)
        finally:
            await box.close()
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["result"] == "Done."
    assert (spec.repo / "hello.txt").read_text() == "hello\n"
    assert {call.headers["X-Api-Key"] for call in seen} == {REAL_KEY}
    told = str([await call.text() for call in seen])
    assert PLACEHOLDER in told and REAL_KEY not in told  # what it saw of its environment
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if REAL_KEY.encode() in path.read_bytes()] == []
    assert read_usage(order.usage_log).total.calls == len(seen)
