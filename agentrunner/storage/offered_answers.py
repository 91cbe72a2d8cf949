"""Answers given in another terminal: files in the run's folder, for the process that asks.

The process that drives a run holds its lock while a person is asked. An answer given elsewhere
cannot drive the run, so it is left here, and the process that asks takes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.worker_ledger import read_json

NAME = "offered-answer.json"


def offer(folder: RunFolder, answer: Mapping[str, str]) -> None:
    """Leave an answer; its `id` is the question's. An earlier one is replaced."""
    folder.write(NAME, json.dumps(dict(answer)))


def is_offered(folder: RunFolder) -> bool:
    """Whether an answer is still there."""
    return (folder.root / NAME).exists()


def take(folder: RunFolder, question_id: str) -> dict[str, str] | None:
    """Remove and return the answer to this question; None for none."""
    found = read_json(folder.root / NAME)
    if found is None or found.get("id") != question_id or not withdraw(folder):
        return None
    return {name: str(value) for name, value in found.items()}


def withdraw(folder: RunFolder) -> bool:
    """Remove the answer unread; return False if it was already gone."""
    try:
        Path(folder.root / NAME).unlink()
    except FileNotFoundError:
        return False
    return True
