"""Labels that say who owns a sandbox. Everything we make on an engine carries them.

A sandbox is dead when its owner is: the process (number, start time, boot) that started it. Nearly
always it has then ended by itself (see `container`); the labels are for what is left if the engine
was killed, too.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentrunner.sandboxes.docker.engine import Engine, remove_container
from agentrunner.sandboxes.enter import start_time

RUN = "agentrunner.run"
TASK = "agentrunner.task"
PURPOSE = "agentrunner.purpose"
"""`command` for checks and tests, `worker` for a worker, `image` for making an image."""
OWNER_PID = "agentrunner.owner-pid"
OWNER_START = "agentrunner.owner-start"
"""Clock ticks since boot, as in /proc/PID/stat."""
OWNER_BOOT = "agentrunner.owner-boot"
OWNER_SPACE = "agentrunner.owner-pid-space"
"""The PID namespace in which the owner has that number."""


def owner_labels() -> dict[str, str]:
    """Return labels that name this process as the owner."""
    pid = os.getpid()
    return {
        OWNER_PID: str(pid),
        OWNER_START: str(start_time(pid)),
        OWNER_BOOT: _boot_id(),
        OWNER_SPACE: _pid_space(),
    }


def owner_is_dead(labels: Mapping[str, str]) -> bool:
    """Whether the process that these labels name is surely gone.

    False for sandboxes that are not ours, and for an owner that is invisible from here: processes
    in another container have their own numbers.
    """
    names = (OWNER_PID, OWNER_START, OWNER_BOOT, OWNER_SPACE)
    pid, start, boot, space = (labels.get(name, "") for name in names)
    if not (pid.isdecimal() and start and boot and space):
        return False
    if boot != _boot_id():
        return True
    return space == _pid_space() and str(start_time(int(pid))) != start


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _pid_space() -> str:
    return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - a text, not a path


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
