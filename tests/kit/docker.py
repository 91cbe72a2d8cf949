"""A real engine, and boxes on it: the image is empty, and has the host's /usr."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentrunner.errors import SandboxUnavailable
from agentrunner.sandboxes.base import SandboxOrder
from agentrunner.sandboxes.docker import DockerSandbox
from agentrunner.sandboxes.docker.engine import Engine, EngineError
from tests.kit.missing import missing

IMAGE = "agentrunner/worker:hostusr"
"""Made by scripts/engine.sh."""
GRACE_SEC = 0.5
IN_DOCKER: dict[str, dict[str, Any]] = {
    "worker": {"docker_image": IMAGE},
    "sandbox": {
        "kind": "docker",
        "read_paths": list(dict.fromkeys(["/usr", sys.prefix, sys.base_prefix])),
    },
}
"""The `runner` of a task that runs in that image, with the Python of these tests."""


def on_host_usr(spec: SandboxOrder) -> SandboxOrder:
    """The same box in that image."""
    return replace(spec, image=IMAGE, read_paths=(Path("/usr"), *spec.read_paths))


def docker(spec: SandboxOrder) -> DockerSandbox:
    """A box on the engine of this environment; for the conformance suite."""
    environ = dict(os.environ)
    return DockerSandbox(
        on_host_usr(spec), environ=environ, host_home=Path.home(), grace_sec=GRACE_SEC
    )


def require_docker() -> str:
    """The engine's address; skips or fails the test where none answers or has the image."""
    try:
        return asyncio.run(_engine_with_image())
    except (SandboxUnavailable, EngineError) as error:
        missing(f"{error.message} (scripts/engine.sh up; scripts/engine.sh hostusr)")


async def _engine_with_image() -> str:
    engine = await Engine.connect(os.environ)
    try:
        await engine.call("find the image", lambda api: api.inspect_image(IMAGE))
        return engine.host
    finally:
        engine.close()
