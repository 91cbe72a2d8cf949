"""Lifelines whose owner was killed between making one and giving it to a box."""

from __future__ import annotations

import os
from pathlib import Path

from agentrunner.sandboxes.docker.lifeline import (
    BEING_MADE_SEC,
    PREFIX,
    Lifeline,
    remove_dead_lifelines,
)


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
