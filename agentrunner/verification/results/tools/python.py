"""The hook for Python tools: a `sitecustomize` of ours that hooks them when they are imported."""

from __future__ import annotations

from agentrunner.verification.results.reporters import text_of
from agentrunner.verification.results.shell import edited, quoted, simple_commands

NAMES = ("sitecustomize.py", "agentrunner_python.py", "agentrunner_look.py")


def python_files() -> dict[str, str]:
    """The files that the project's Python loads, below the report's folder."""
    return {f"py/{name}": text_of(name) for name in NAMES}


def python_shell(shell: str, place: str) -> str:
    """The command; where it sets PYTHONPATH itself, our folder is put before its value."""
    edits = []
    for command in simple_commands(shell):
        for word in (*command.assignments, *command.words):
            name, equals, _ = word.text.partition("=")
            if equals and name == "PYTHONPATH":
                at = shell.index("=", word.start) + 1
                edits.append((at, at, quoted(f"{place}/py") + ":"))
    return edited(shell, edits)
