"""Let a person edit texts in $VISUAL or $EDITOR, as YAML in reading order."""

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
"""Keys in reading order; the others follow in their own order."""
_HEAD = """\
# The plan to approve. What you save is what is approved; leave it unchanged to go back.
# A criterion has id, description and, where something can be executed, a check:
#   check: {kind: command, run: "pytest -q"}
"""


def editor() -> list[str]:
    """Return the command of the person's editor."""
    return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")


def open_editor(file: Path) -> None:
    """Open a file in the person's editor and wait; raises InfraError if there is no editor."""
    try:
        subprocess.run([*editor(), str(file)], check=False)
    except OSError as error:
        raise NoEditor(
            f"The editor {editor()[0]} cannot be started: {error.strerror}",
            remedy="set EDITOR or VISUAL to one that is installed",
        ) from error


def edited(text: str, suffix: str) -> str:
    """Return a text after the person has edited it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"subject{suffix}"
        file.write_text(text, encoding="utf-8")
        open_editor(file)
        return file.read_text(encoding="utf-8")


def as_yaml(subject: Any) -> str:
    """Return a subject as YAML to be edited."""
    import yaml

    body = yaml.safe_dump(_ordered(subject), sort_keys=False, allow_unicode=True, width=88)
    return _HEAD + str(body)


def from_yaml(text: str) -> str:
    """Return an edited subject as JSON; raises UsageError if it is not YAML or not a plan."""
    from agentrunner.config.yaml_text import read_yaml
    from agentrunner.execution.criteria import edited_criteria

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
