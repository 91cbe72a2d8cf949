"""What a container costs: a command in one that is kept, and many at once.

    python -m benchmarks.box [--rounds 40] [--boxes 20]

A command in the box is compared with docker-py's own `exec_run` in a container of the same image
on the same engine. Then so many boxes are opened at the same time, each with a command in it, and
compared with one: how long until all of them run, and how much memory the containers and the
engine's process beside each of them hold then.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from statistics import median

import docker

from agentrunner.sandboxes.base import Request, SandboxOrder
from agentrunner.sandboxes.choose import image_to_try
from agentrunner.sandboxes.docker import DockerSandbox
from agentrunner.sandboxes.docker.engine import Engine
from agentrunner.sandboxes.docker.owners import OWNER_PID
from benchmarks.measure import Figure, megabytes, ms, program

MACHINE = 24 << 30
"""What many boxes must fit into."""
TOUCHED = 32 << 20
"""Bytes that the command in each of them holds."""
HOLDING = f"""
import pathlib, time
held = bytearray({TOUCHED})
held[::4096] = b"x" * len(held[::4096])
pathlib.Path("on").touch()
while not pathlib.Path("off").exists():
    time.sleep(0.05)
"""


async def figures(place: Path, rounds: int, boxes: int) -> list[Figure]:
    """Measure everything, in repositories made in `place`."""
    image, read_paths = await image_to_try("docker", os.environ)
    specs = []
    for number in range(boxes):
        repo, home = place / f"{number}/repo", place / f"{number}/box"
        repo.mkdir(parents=True)
        home.mkdir()
        specs.append(SandboxOrder(repo=repo, home=home, image=image, read_paths=read_paths))
    ours, bare = await one_command(specs[0], rounds)
    one, many = await at_once(specs[:1]), await at_once(specs)
    name = f"{boxes} boxes at once"
    return [
        Figure("a command in the box, wall", ms(ours), f"docker-py exec_run, {ms(bare)}",
               ours / bare, 1.3),
        Figure(f"{name}, wall", ms(many[0]), f"one, {ms(one[0])}", many[0] / one[0], boxes),
        Figure(f"{name}, memory", megabytes(many[1]), f"one, {megabytes(one[1])}",
               many[1] / one[1], 1.2 * boxes),
        Figure(f"{name}, of 24 GiB", megabytes(many[1]), "24 GiB", many[1] / MACHINE, 1),
    ]  # fmt: skip


async def one_command(spec: SandboxOrder, rounds: int) -> tuple[float, float]:
    """The median second of `true` in a box that is kept, and of exec_run in a bare container."""
    request = Request(("true",), spec.repo)
    async with AsyncExitStack() as stack:
        engine = stack.enter_context(closing(await Engine.connect(os.environ)))
        client = stack.enter_context(closing(docker.DockerClient(base_url=engine.host)))
        container = client.containers.run(
            spec.image,
            ["sleep", "infinity"],
            detach=True,
            network_mode="none",
            volumes=[f"{path}:{path}:ro" for path in spec.read_paths],
        )
        stack.callback(container.remove, force=True)
        sandbox = DockerSandbox(spec, environ=os.environ, host_home=Path.home())
        stack.push_async_callback(sandbox.close)
        await sandbox.open()
        ours, bare = [], []
        for _ in range(rounds):
            began = time.perf_counter()
            await sandbox.run(request)
            middle = time.perf_counter()
            container.exec_run(["true"])
            ours.append(middle - began)
            bare.append(time.perf_counter() - middle)
    return median(ours), median(bare)


async def at_once(specs: Sequence[SandboxOrder]) -> tuple[float, float]:
    """Seconds until a command runs in each of these boxes, and the bytes that are then held."""
    files = [spec.repo / name for spec in specs for name in ("on", "off")]
    for file in files:
        file.unlink(missing_ok=True)
    began = time.perf_counter()
    working = asyncio.gather(*map(_hold, specs))
    while not all((spec.repo / "on").exists() for spec in specs):
        if working.done():
            await working
        await asyncio.sleep(0.01)
    took = time.perf_counter() - began
    with closing(await Engine.connect(os.environ)) as engine:
        used = await engine.call("measure", _held)
    for spec in specs:
        (spec.repo / "off").touch()
    await working
    return took, used


async def _hold(spec: SandboxOrder) -> None:
    sandbox = DockerSandbox(spec, environ=os.environ, host_home=Path.home())
    try:
        await sandbox.open()
        result = await sandbox.run(Request(("python3", "-c", HOLDING), spec.repo))
    finally:
        await sandbox.close()
    if result.exit_code != 0:
        raise RuntimeError(result.stderr.decode(errors="replace"))


def _held(api: docker.APIClient) -> float:
    """Bytes of our containers, without the files that could be dropped, and of their shims."""
    mine = f"{OWNER_PID}={os.getpid()}"
    total = 0
    for box in api.containers(filters={"label": mine}):
        memory = api.stats(box["Id"], stream=False, one_shot=True)["memory_stats"]
        detail = memory["stats"]
        dropped = detail.get("total_inactive_file", detail.get("inactive_file", 0))
        total += memory["usage"] - dropped + _resident(box["Id"])
    return float(total)


def _resident(box: str) -> int:
    """Of the processes outside of the box that bear its name."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if box.encode() in (process / "cmdline").read_bytes():
                pages = int((process / "statm").read_text().split()[1])
                total += pages * os.sysconf("SC_PAGE_SIZE")
    return total


if __name__ == "__main__":
    sys.exit(program(figures, rounds=40, boxes=20))
