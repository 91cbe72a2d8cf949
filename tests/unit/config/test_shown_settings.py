"""Each piece of a task file or PRD that a page shows can be loaded."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentrunner.config.spec import RunnerSection, TaskFile, TaskSection
from tests.kit.task_files import Load

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^( *)```(yaml|markdown)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
FRONT_MATTER = {*TaskSection.model_fields, "runner"}
AROUND = "---\ntest: pytest\n---\n# Wanted\n\n## Done when\n"
"""What criteria that are shown alone stand in."""
EXTENSIONS = {"until-green", "sed-script", "low-priority"}
"""Kinds of docs/how-to/extend.md, which are not installed here."""


def shown() -> Iterator[Any]:
    """Every block with its page and line, as a PRD, or as a task file that is whole."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = page.read_text("utf-8")
        for found in BLOCK.finditer(text):
            block = textwrap.dedent(found[3])
            line = text.count("\n", 0, found.start()) + 1
            if found[2] == "yaml":
                block = as_task_file(yaml.safe_load(block))
            elif not block.startswith("---"):
                block = f"{AROUND}{block}" if "(check:" in block else ""
            if block and not any(kind in block for kind in EXTENSIONS):
                name = "task.yaml" if found[2] == "yaml" else "prd.md"
                yield pytest.param(name, block, id=f"{page.relative_to(ROOT)}:{line}")


def as_task_file(piece: Any) -> str:
    """A task file with this piece of one in its place; "" for YAML that is something else."""
    if not isinstance(piece, dict):
        return ""
    keys = piece.keys()
    task: dict[str, Any] = {"prd": {"text": "x"}}
    runner: dict[str, Any] = {}
    if keys <= TaskFile.model_fields.keys():
        task |= piece.get("task", {})
        runner = piece.get("runner", {})
    elif keys <= FRONT_MATTER:
        runner = piece.pop("runner", {})
        task |= piece
    elif keys <= RunnerSection.model_fields.keys():
        runner = piece
    else:
        return ""
    return yaml.safe_dump({"version": 1, "task": task, "runner": runner})


@pytest.mark.parametrize(("name", "text"), list(shown()))
def test_what_a_page_shows_can_be_loaded(name: str, text: str, load: Load, repo: Path) -> None:
    for path in ("docs/users-api.md", "patterns.yaml", "Dockerfile"):
        (repo / path).parent.mkdir(exist_ok=True)
        (repo / path).write_text("x")
    names = re.findall(r"env:(\w+)", text)
    load(text, name, environ={**dict.fromkeys(names, "secret-1"), "OPENAI_API_KEY": "secret-2"})
