"""Whole runs with real parts; those of this process begin with compiled test tools."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agentrunner.sandboxes.docker.engine import Engine
from tests.kit.byte_code import begin_compiled
from tests.kit.engine import connected


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    begin_compiled(monkeypatch)


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    async with connected() as engine:
        yield engine
