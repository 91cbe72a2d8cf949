"""Where the worker's key is while the real Codex works in a Docker box: nowhere but on our side."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from docker import APIClient

from agentrunner.engine.runs import start
from agentrunner.sandboxes.docker.engine import Engine, EngineError
from tests.kit.codex import require_codex
from tests.kit.codex_project import FIX, JUDGEMENT, KEYS, PLAN, Codex
from tests.kit.docker import require_docker
from tests.kit.engine import connected
from tests.kit.metas import DONE
from tests.kit.model_server import ModelServer
from tests.kit.project import Project
from tests.kit.scenario import Scenario, Shell, Turn

LOOK = "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; sed -i 's/a - b/a + b/' calc.py"
HOME_LOOK = "cat $CODEX_HOME/* $HOME/* /run/agentrunner/* 2>/dev/null; true"
SCENARIO = Scenario([Turn("I look.", [Shell(LOOK), Shell(HOME_LOOK)]), Turn("It adds.")])


@pytest.fixture
def codex(tmp_path: Path) -> Codex:
    require_docker()
    return Codex(Project.make(tmp_path), require_codex(), "docker")


class Sightings:
    """What a curious neighbour could read while the run goes on."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self.containers = 0
        self.processes = 0

    def look_at_processes(self) -> None:
        """Every command line of this machine; and the environment of whatever is in a container."""
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                self.seen += (place / "cmdline").read_bytes()
                if b"docker/" in (place / "cgroup").read_bytes():
                    self.processes += 1
                    self.seen += (place / "environ").read_bytes()

    async def look_at_engine(self, run_label: str) -> None:
        """All that the engine tells of our containers and of what was started in them."""
        async with connected() as engine:
            found = await engine.call("list", lambda api: api.containers(all=True))
            for container in found:
                if run_label not in json.dumps(container.get("Labels") or {}):
                    continue
                with contextlib.suppress(EngineError):  # it may be gone again
                    await self._look_at(engine, container["Id"])

    async def _look_at(self, engine: Engine, name: str) -> None:
        facts = await engine.call("look", lambda api: api.inspect_container(name))
        self.containers += 1
        self.seen += json.dumps(facts).encode()
        for started in facts.get("ExecIDs") or []:
            told = await engine.call("look", partial(APIClient.exec_inspect, exec_id=started))
            self.seen += json.dumps(told).encode()


@asynccontextmanager
async def neighbour() -> AsyncIterator[Sightings]:
    """Looks again and again while the block lasts."""
    sightings, over = Sightings(), asyncio.Event()

    async def look() -> None:
        while not over.is_set():
            await asyncio.to_thread(sightings.look_at_processes)
            await sightings.look_at_engine("agentrunner")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), 0.05)

    looking = asyncio.create_task(look())
    try:
        yield sightings
    finally:
        over.set()
        await looking


async def test_the_key_is_nowhere_but_at_the_gateway(codex: Codex) -> None:
    with ModelServer(SCENARIO, chat_script=(PLAN, FIX, DONE, JUDGEMENT)) as server:
        options = replace(codex.project.options(), environ={**os.environ, **KEYS})
        async with neighbour() as seen:
            result = (await start(codex.spec(server), options)).as_dict()
        requests = server.requests
    assert (result["state"], result["exit_code"]) == ("COMPLETE", 0)
    assert {r.bearer for r in requests if r.path == "/v1/responses"} == {KEYS["CODEX_API_KEY"]}
    assert seen.containers and seen.processes  # it did look while there was something to see
    worker = (codex.history(result).worker_runs[0].data)["worker_run_id"]
    stdout = codex.project.state_dir / "runs" / result["run_id"] / "workers" / worker / "stdout"
    assert "placeholder" in stdout.read_text()  # what stands in its place was seen
    for name, key in KEYS.items():
        assert key.encode() not in seen.seen, name
    assert codex.leaks() == []
