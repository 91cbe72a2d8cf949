"""Texts that somebody edits: in $VISUAL or $EDITOR, as YAML in the order one reads."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentrunner.errors.command_line import NoEditor
from agentrunner.errors.runs import WrongAnswer

_FIRST = ("id", "description", "critical", "check", "kind", "run")
"""Keys in the order one reads; the others follow as they are."""
_HEAD = """\
# The plan to approve. What you save is what is approved; leave it unchanged to go back.
# A criterion has id, description and, where something can be executed, a check:
#   check: {kind: command, run: "pytest -q"}
"""


def editor() -> list[str]:
    """The command of the person's editor."""
    return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")


def open_editor(file: Path) -> None:
    """Let the person edit a file, and wait; raises InfraError where there is no editor."""
    try:
        subprocess.run([*editor(), str(file)], check=False)
    except OSError as error:
        raise NoEditor(
            f"The editor {editor()[0]} cannot be started: {error.strerror}",
            remedy="set EDITOR or VISUAL to one that is installed",
        ) from error


def edited(text: str, suffix: str) -> str:
    """A text after the person's editor."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"subject{suffix}"
        file.write_text(text, encoding="utf-8")
        open_editor(file)
        return file.read_text(encoding="utf-8")


def as_yaml(subject: Any) -> str:
    """A subject to be edited."""
    import yaml

    body = yaml.safe_dump(_ordered(subject), sort_keys=False, allow_unicode=True, width=88)
    return _HEAD + str(body)


def from_yaml(text: str) -> str:
    """An edited subject as JSON; raises UsageError for what is no YAML or no plan."""
    from agentrunner.config.yaml_text import read_yaml
    from agentrunner.nodes.plan import edited_criteria

    subject = json.dumps(read_yaml(text, "the plan").value, ensure_ascii=False)
    try:
        edited_criteria(subject)
    except ValueError as error:
        problem = " ".join(str(error).split("\n")[:3])
        raise WrongAnswer(f"This is no plan: {problem}.") from error
    return subject


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        keys = [*(key for key in _FIRST if key in value), *(k for k in value if k not in _FIRST)]
        return {key: _ordered(value[key]) for key in keys}
    return [_ordered(item) for item in value] if isinstance(value, list) else value
