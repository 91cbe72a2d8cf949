"""The hook for Python tools: a `sitecustomize` of ours that hooks them when they are imported."""

from __future__ import annotations

from agentrunner.verification.results.reporters import text_of
from agentrunner.verification.results.shell import put_first

NAMES = ("sitecustomize.py", "agentrunner_python.py", "agentrunner_look.py")


def python_files() -> dict[str, str]:
    """The files that the project's Python loads, below the report's folder."""
    return {f"py/{name}": text_of(name) for name in NAMES}


def python_shell(shell: str, place: str) -> str:
    """The command; where it sets PYTHONPATH itself, our folder is put before its value."""
    return put_first(shell, "PYTHONPATH", f"{place}/py")
