"""Finds out whether an engine supports overlays over folders of this host."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agentrunner.sandboxes.base import Mount
from agentrunner.sandboxes.docker.config import bind
from agentrunner.sandboxes.docker.container import remove_container
from agentrunner.sandboxes.docker.engine import Engine, EngineError
from agentrunner.sandboxes.docker.labels import owner_labels
from agentrunner.sandboxes.layers import make_uppers, remove_layers


async def can_overlay(engine: Engine, image: str, run: Path, sources: Sequence[Path]) -> bool:
    """Whether overlays work, tried with a container of this image that has one.

    `run` is the folder of the run, `sources` are the folders to put overlays over. An engine in a
    virtual machine, or one without the right to mount, fails at the start.
    """
    if not all(path.is_dir() and _is_plain(path) for path in (run, *sources)):
        return False
    with tempfile.TemporaryDirectory(dir=run, prefix="overlay-") as place:
        lower, folder = Path(place, "lower"), f"{place}/layer"
        lower.mkdir()
        try:
            keeper = await asyncio.to_thread(make_uppers, folder, [str(lower)])
        except OSError:
            return False
        try:
            mount = Mount(lower, Path("/overlay"), read_only=False, upper=Path(folder, "0"))
            return await _starts(engine, image, mount)
        finally:
            await asyncio.to_thread(remove_layers, folder)
            os.close(keeper)


def _is_plain(path: Path) -> bool:
    """Whether a path can be written in the options of an overlay."""
    return not set(":,\\\"'\n").intersection(str(path))


async def _starts(engine: Engine, image: str, mount: Mount) -> bool:
    body = {
        "Image": image,
        # The image may have no program at all: it is enough that the engine's own one starts.
        "Entrypoint": ["true"],
        "Labels": await asyncio.to_thread(owner_labels),
        "HostConfig": {
            "Init": True,
            "NetworkMode": "none",
            "Mounts": [bind(mount, apart=False)],
        },
    }
    ident = ""
    try:
        answer = await engine.call("create", lambda api: api.create_container_from_config(body))
        ident = answer["Id"]
        await engine.call("start", lambda api: api.start(ident))
        return True
    except EngineError:
        return False
    finally:
        if ident:
            with contextlib.suppress(EngineError):
                await remove_container(engine, ident)
