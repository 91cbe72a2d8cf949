"""Lifelines whose owner, or whose engine, was killed between making one and giving it to a box."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentrunner.sandboxes.docker.config import User
from agentrunner.sandboxes.docker.container import (
    BEING_MADE_SEC,
    PREFIX,
    Container,
    Lifeline,
    remove_dead_lifelines,
)
from agentrunner.sandboxes.docker.engine import Engine, EngineError


def test_those_of_the_dead_are_removed_and_no_others(tmp_path: Path) -> None:
    living = Lifeline(tmp_path)
    dead, file = tmp_path / f"{PREFIX}dead", tmp_path / f"{PREFIX}file"
    os.mkfifo(dead)
    file.touch()
    made = dead.lstat().st_ctime
    remove_dead_lifelines(tmp_path, now=made + BEING_MADE_SEC / 2)
    assert dead.exists(), "its owner may be about to open it"
    remove_dead_lifelines(tmp_path, now=made + BEING_MADE_SEC * 2)
    assert not dead.exists() and file.exists() and living.mount.source.exists()
    living.cut()


class DyingEngine:
    """An engine that is killed when it is told to start a container, which begins all the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.silent = True
        self.read: list[bytes] = []
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._late = threading.Event()

    async def call(self, op: str, do: Callable[[Any], object]) -> object:
        if op == "create":
            return {"Id": "a" * 64}
        if op == "start":
            self._keeper.start()
        raise EngineError(op, "the connection was closed")

    def _keep(self) -> None:
        self._late.wait(0.2)  # as long as the runtime needs after the engine's death
        (pipe,) = self._folder.glob(f"{PREFIX}*")
        self.read.append(pipe.read_bytes())

    def ended(self) -> bool:
        self._keeper.join(10)
        return not self._keeper.is_alive()


def test_a_container_that_begins_after_its_engine_died_ends(tmp_path: Path) -> None:
    engine = DyingEngine(tmp_path)
    config: dict[str, Any] = {"Labels": {}, "HostConfig": {"Mounts": []}}
    known = SimpleNamespace(call=engine.call, silent=True)
    with pytest.raises(EngineError):
        asyncio.run(Container.start(cast(Engine, known), config, User(1, 1), tmp_path))
    assert engine.ended() and engine.read == [b""]
    assert not list(tmp_path.glob(f"{PREFIX}*"))
