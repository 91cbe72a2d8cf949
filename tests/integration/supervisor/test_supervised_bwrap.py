"""The supervisor around a box as the product launches it, with its limits and its door."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agentrunner.sandboxes.base import Door, Request, ResourceLimit, SandboxOrder
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.cgroups import Limit, hierarchies, hold
from agentrunner.sandboxes.enter import GROUP_PREFIX, sweep
from agentrunner.supervisor.client import SupervisorOrder
from tests.kit.bwrap import require_bwrap
from tests.kit.control_server import ControlServer
from tests.kit.missing import missing
from tests.kit.stage import Stage

PARENTS = [group.parent for group in hold([Limit("pids", 64)], hierarchies()).groups]


def boxed(stage: Stage, script: str, **fields: object) -> SupervisorOrder:
    require_bwrap()
    limits, door = fields.pop("limits", ResourceLimit()), fields.pop("door", None)
    home = stage.root / "home"
    home.mkdir(exist_ok=True)
    spec = SandboxOrder(repo=stage.repo, home=home, programs=("python3",), limits=limits)  # type: ignore[arg-type]
    sandbox = BwrapSandbox(spec, environ=os.environ, host_home=home)
    env = {"MARKER": stage.marker}
    request = Request(("bash", "-c", script), stage.repo, env=env, door=door)  # type: ignore[arg-type]
    return SupervisorOrder(sandbox.launch(request), **{"wall_sec": 30, **fields})  # type: ignore[arg-type]


async def test_memory_that_runs_out_is_told_as_such(stage: Stage) -> None:
    if hold([Limit("memory", 64 << 20)], hierarchies()).refused:
        missing("no cgroup can hold memory here")
    hog = "python3 -c 'bytearray(300 << 20)'; echo went on"
    result = await stage.run(boxed(stage, hog, limits=ResourceLimit(memory="100m")))
    assert (result.outcome, result.leftovers) == ("oom", 0)
    assert stage.text("w1") == "went on\n"


async def test_the_worker_may_save_its_work_and_nothing_is_left_of_the_box(stage: Stage) -> None:
    script = "trap 'echo saved; exit 7' TERM; (setsid sleep 600) & sleep 600 & wait"
    result = await stage.run(boxed(stage, script, wall_sec=0.7))
    assert (result.outcome, result.exit_code, result.leftovers) == ("timeout", 7, 0)
    assert stage.text("w1") == "saved\n" and stage.left() == []


@pytest.mark.parametrize("door", [False, True])
async def test_the_end_of_the_supervisor_is_the_end_of_the_box(stage: Stage, door: bool) -> None:
    sockets = stage.root / "sock"
    sockets.mkdir()
    order = boxed(
        stage,
        "touch on; setsid sleep 600",
        door=Door(sockets, {8787: "gateway.sock"}) if door else None,
    )
    process = await asyncio.to_thread(stage.start, "w1", order)
    while not (stage.repo / "on").exists():  # noqa: ASYNC110 - made by a process in the box
        await asyncio.sleep(0.01)
    process.kill()
    await asyncio.to_thread(process.wait)
    while stage.left():  # noqa: ASYNC110 - the kernel ends them
        await asyncio.sleep(0.01)
    for parent in PARENTS:
        # A group can be removed only when the kernel has buried the last process in it.
        while not all(map(alive, parent.glob(f"{GROUP_PREFIX}*"))):
            sweep(str(parent))


async def test_a_worker_reaches_its_door(stage: Stage) -> None:
    sockets = stage.root / "sock"
    sockets.mkdir()
    server = ControlServer(sockets)
    script = "exec 3<>/dev/tcp/127.0.0.1/8787; cat <&3"
    try:
        result = await stage.run(boxed(stage, script, door=Door(sockets, {8787: "gateway.sock"})))
    finally:
        server.stop()
    assert (result.outcome, result.exit_code, result.leftovers) == ("exited", 0, 0)
    assert stage.text("w1") == "gateway.sock served\n"


def alive(group: Path) -> bool:
    return Path("/proc", group.name.removeprefix(GROUP_PREFIX).partition("-")[0]).exists()
