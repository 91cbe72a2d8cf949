"""The reference says what the models say, and its samples load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentrunner.config.load import task_schema
from agentrunner.config.mistakes import all_keys
from tests.kit.task_files import Load

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "task-file.md"
CRITERION = "task.acceptance_criteria."


def rows() -> dict[str, str]:
    """Key to meaning, as the tables have them."""
    found = re.findall(
        r"^\| `([\w.…\[\]]+)` \|.*\| ([^|]+) \|$",
        REFERENCE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    return {
        name: meaning
        for key, meaning in found
        for name in _spelled_out(key.replace("…", CRITERION).replace("criteria[]", "criteria"))
    }


def _spelled_out(key: str) -> list[str]:
    """The settings that a row stands for: of each role, of one worker and of each in a list."""
    if "ROLE" in key:
        return [key.replace("ROLE", role) for role in ("meta", "plan", "assess")]
    if key.startswith("runner.worker."):
        return [key, key.replace("runner.worker.", "runner.workers.")]
    return [key]


def test_every_setting_is_in_the_reference_and_nothing_else() -> None:
    settings = {key for key in all_keys() if "." in key}
    assert settings == set(rows())


def test_meanings_are_those_of_the_schema() -> None:
    meanings = {
        " ".join(field["description"].split())
        for name, model in task_schema()["$defs"].items()
        for field in model["properties"].values()
    }
    assert set(rows().values()) == meanings


@pytest.mark.parametrize(("language", "name"), [("yaml", "t.yaml"), ("markdown", "p.md")])
def test_samples_load(load: Load, repo: Path, language: str, name: str) -> None:
    (repo / "docs").mkdir()
    (repo / "docs" / "users-api.md").write_text("x")
    text = REFERENCE.read_text(encoding="utf-8")
    samples = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(samples) == 1
    spec = load(samples[0], name, environ={"CODEX_API_KEY": "k"})
    assert spec.criteria
