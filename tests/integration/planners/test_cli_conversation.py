"""Talking about a plan with the real Codex CLI as the planner."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from agentrunner.plans.conversation import Conversation
from agentrunner.plans.planner import open_conversation, planning_spec
from agentrunner.storage.plan_folder import plan_folder
from tests.kit.planner_host import REAL_KEY, PlannerHost
from tests.kit.planner_server import PlannerServer
from tests.kit.process import living
from tests.kit.scenario import Turn
from tests.kit.talks import change, create, decompose, outline, patch, phase, task
from tests.kit.wire import Ask, Usage

WISH = decompose(phase("Build", task("t1", "List"), task("t2", "Search", "t1")))["reply"]
EDIT = patch(create("n1", "Basket"), change("delete", "TASK-0002"))["reply"]
BAD = patch(change("delete", "TASK-0099"))["reply"]
IN_BWRAP = [("codex-cli", "bwrap")]


@asynccontextmanager
async def talking(host: PlannerHost, server: PlannerServer) -> AsyncIterator[Conversation]:
    spec = planning_spec(host.spec(server, model="planner-1"), host.environ, host.state_dir)
    folder = plan_folder(host.state_dir, host.repo)
    async with open_conversation(spec, folder, host.state_dir, host.environ, author="hana") as (
        talk,
        _,
    ):
        yield talk


@pytest.mark.parametrize("host", IN_BWRAP, indirect=True, ids="-".join)
async def test_a_wish_is_split_and_the_plan_changed(host: PlannerHost) -> None:
    with PlannerServer([WISH, BAD, EDIT]) as server:
        async with talking(host, server) as talk:
            talk.accept(await talk.propose("make a page"))
            plan = talk.accept(await talk.propose("a basket in place of the search"))
    assert outline(plan) == ["Build", "  TASK-0001 List", "TASK-0003 Basket"]
    bodies = [str(call.body) for call in server.requests if call.method == "POST"]
    assert "there is no task or node TASK-0099" in bodies[-1]
    assert "secret.txt" in bodies[0]  # a name of the repository's tree
    place = plan_folder(host.state_dir, host.repo).root
    files = [path for path in place.rglob("*") if path.is_file()]
    assert [path for path in files if REAL_KEY.encode() in path.read_bytes()] == []
    assert list(place.glob("conversation/cli-*")) == [] and living(host.place) == {}


class SlowServer(PlannerServer):
    """Tells when it is asked, and takes its time."""

    def __init__(self) -> None:
        super().__init__([Turn("", delay_sec=600)])
        self.asked = threading.Event()

    def next_turn(self, path: str, ask: Ask) -> tuple[Turn, Usage]:
        self.asked.set()
        return super().next_turn(path, ask)


@pytest.mark.parametrize("host", IN_BWRAP, indirect=True, ids="-".join)
async def test_a_cli_that_nobody_waits_for_is_ended(host: PlannerHost) -> None:
    with SlowServer() as server:
        async with talking(host, server) as talk:
            asking = asyncio.create_task(talk.propose("make a page"))
            assert await asyncio.to_thread(server.asked.wait, 60)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert living(host.place) == {}
            assert talk.store.conversation() == []
