"""Removes containers whose owner died with the engine, before either could remove them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from agentrunner.sandboxes.docker.container import remove_container
from agentrunner.sandboxes.docker.engine import Engine
from agentrunner.sandboxes.docker.labels import OWNER_PID, owner_is_dead


async def remove_dead(engine: Engine) -> list[str]:
    """Remove the sandboxes of dead owners, running or not; return their names.

    Sandboxes of other programs, of living owners, and of owners that cannot be judged from here are
    left alone. Two concurrent sweeps do not hurt each other. Raises EngineError.
    """
    containers = await engine.call(
        "look for sandboxes that are left",
        lambda api: api.containers(all=True, filters={"label": OWNER_PID}),
    )
    removed = []
    for container in await asyncio.to_thread(of_dead_owners, containers):
        container_id = str(container["Id"])
        if await remove_container(engine, container_id):
            removed.append(
                next(iter(container.get("Names") or [container_id]), "").removeprefix("/")
            )
    return removed


def of_dead_owners(containers: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the containers that nobody can need any more, judged by their labels."""
    return [container for container in containers if owner_is_dead(container.get("Labels") or {})]
