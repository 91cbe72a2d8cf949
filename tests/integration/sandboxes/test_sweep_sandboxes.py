"""Boxes that are left on a real engine.

Every run that begins on this engine meanwhile sweeps, too, and may be the one that removes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import docker.errors
import pytest

from agentrunner import cli
from agentrunner.sandboxes.base import SandboxOrder
from agentrunner.sandboxes.docker.builds import import_host_image
from agentrunner.sandboxes.docker.engine import Engine
from agentrunner.sandboxes.docker.owners import OWNER_START, RUN, owner_labels, remove_dead
from tests.kit.docker import docker as docker_box
from tests.kit.docker import require_docker
from tests.kit.process import PATIENCE_SEC

NEVER = {OWNER_START: "1"}
"""A process of our number that has started long before us."""


class Left:
    """Containers that are there until the end of the test."""

    def __init__(self, engine: Engine, image: str) -> None:
        self.engine = engine
        self.image = image
        self.made: list[str] = []

    async def add(self, labels: dict[str, str], *, running: bool = False) -> str:
        name = f"agentrunner-test-{secrets.token_hex(6)}"
        self.made.append(name)

        def make() -> None:
            api = self.engine.api
            config = api.create_host_config(network_mode="none", binds=["/usr:/usr:ro"])
            api.create_container(
                self.image, ["sleep", "infinity"], name=name, labels=labels, host_config=config
            )
            if running:
                with contextlib.suppress(docker.errors.NotFound):
                    api.start(name)

        await self.engine.call("make", lambda api: make())
        return name

    async def there(self) -> list[str]:
        found = await self.engine.call("list", lambda api: api.containers(all=True))
        names = {name.removeprefix("/") for box in found for name in box["Names"]}
        return [name for name in self.made if name in names]

    async def gone(self, *names: str) -> bool:
        """True once they are; another sweep may have begun to remove them, and not be through."""
        async with asyncio.timeout(PATIENCE_SEC):
            while set(names) & set(await self.there()):  # noqa: ASYNC110 - nobody tells us
                await asyncio.sleep(0.05)
        return True


@pytest.fixture
async def left(engine: Engine) -> AsyncIterator[Left]:
    image = f"agentrunner-test/sweep:{secrets.token_hex(4)}"
    await import_host_image(engine, image)
    boxes = Left(engine, image)
    yield boxes
    there = await boxes.there()

    def tidy_up() -> None:
        for name in there:
            engine.api.remove_container(name, force=True)
        engine.api.remove_image(image)

    await engine.call("tidy up", lambda api: tidy_up())


async def test_a_sweep_takes_the_boxes_of_the_dead_and_no_others(left: Left) -> None:
    mine = {RUN: "shop-7f3a", **owner_labels()}
    live = await left.add(mine, running=True)
    foreign = await left.add({"somebody": "else"})
    dead = [await left.add({**mine, **NEVER}), await left.add({**mine, **NEVER}, running=True)]

    removed = await remove_dead(left.engine)

    assert await left.gone(*dead)
    assert await left.there() == [live, foreign]
    assert not {live, foreign} & set(removed)


async def test_a_box_that_is_closed_leaves_none_of_a_helper_that_was_killed(
    left: Left, tmp_path: Path
) -> None:
    """The helper is killed while it makes its container: then nobody holds the other end of it."""
    await asyncio.to_thread(require_docker)
    for name in ("repo", "run/box"):
        (tmp_path / name).mkdir(parents=True)
    sandbox = docker_box(SandboxOrder(repo=tmp_path / "repo", home=tmp_path / "run/box"))
    await sandbox.open()
    dead = await left.add({**owner_labels(), **NEVER}, running=True)
    await sandbox.close()
    assert await left.gone(dead)


async def test_gc_removes_them_too(left: Left, tmp_path: Path) -> None:
    dead = await left.add({**owner_labels(), **NEVER})
    code = await asyncio.to_thread(
        cli.call, cli.app, ["gc", "--state-dir", str(tmp_path)], "agentrunner"
    )
    assert code == 0
    assert await left.gone(dead)
