"""Idle containers that wait for their next command, by what they were made for."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentrunner.sandboxes.base import Door
from agentrunner.sandboxes.docker.config import User
from agentrunner.sandboxes.docker.container import Container
from agentrunner.sandboxes.docker.engine import Engine, EngineError
from agentrunner.sandboxes.docker.layers import Copies

MOST_IDLE = 4
"""The most idle containers; beyond it, the one idle longest is removed."""


class ContainerRecipe(Struct, frozen=True):
    """What a container is made from, and for what."""

    config: Mapping[str, Any]
    user: User
    door: Door | None
    identity: tuple[tuple[str, int, int], ...]
    """Identifies the folders that are mounted into it."""
    masked: bool = False
    layers: Copies = field(default_factory=Copies)
    """Layers belong to one command: a container that has any is not used again."""

    @property
    def key(self) -> str:
        """The same for recipes that one container can serve."""
        door = self.door and (str(self.door.folder), sorted(self.door.ports.items()))
        return json.dumps([self.config, self.identity, door], sort_keys=True)


class Pool:
    """The containers of one sandbox."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        """`folder` is for lifelines."""
        self._engine = engine
        self._folder = folder
        self._idle: list[tuple[str, Container]] = []
        self._busy: set[Container] = set()

    async def take(self, recipe: ContainerRecipe) -> Container:
        """Return a container for one command; raises EngineError."""
        key = recipe.key
        for entry in self._idle:
            if entry[0] == key:
                self._idle.remove(entry)
                self._busy.add(entry[1])
                return entry[1]
        container = await Container.start(self._engine, recipe.config, recipe.user, self._folder)
        self._busy.add(container)
        try:
            if recipe.door is not None:
                await container.forward(recipe.door)
        except BaseException:
            await self.give_back(recipe, container)
            raise
        return container

    async def give_back(self, recipe: ContainerRecipe, container: Container) -> None:
        """Keep the container for the next command, or remove it if it is not clean."""
        self._busy.discard(container)
        keep = container.clean and not recipe.layers.sources
        dropped = [] if keep else [container]
        if keep:
            self._idle.append((recipe.key, container))
        while len(self._idle) > MOST_IDLE:
            dropped.append(self._idle.pop(0)[1])
        for each in dropped:
            with contextlib.suppress(EngineError):  # the containers end without the engine, too
                await asyncio.shield(each.remove())

    async def pause(self) -> None:
        """Freeze the busy containers."""
        await asyncio.gather(*(container.pause() for container in self._busy))

    async def unpause(self) -> None:
        """Resume the busy containers."""
        await asyncio.gather(*(container.unpause() for container in self._busy))

    async def close(self) -> None:
        """Remove the idle containers; raises EngineError."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(container.remove() for _, container in idle))
