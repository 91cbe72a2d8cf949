"""A real container engine, for tests that make containers and images."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from agentrunner.errors import SandboxUnavailable
from agentrunner.sandboxes.docker.engine import Engine
from tests.kit.missing import missing


@asynccontextmanager
async def connected() -> AsyncIterator[Engine]:
    """The engine that DOCKER_HOST names; skips or fails the test where none answers."""
    try:
        engine = await Engine.connect(os.environ)
    except SandboxUnavailable as error:
        missing(error.message)
    try:
        yield engine
    finally:
        engine.close()


@cache
def quiet_address() -> str:
    """Where something listens and nobody answers, for as long as this process lives."""
    name = f"\0agentrunner-test-{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen(4096)
    listener.detach()
    return f"unix://{name}"
