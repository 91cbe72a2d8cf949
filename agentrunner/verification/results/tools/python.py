"""The hook for Python tools: a `sitecustomize` of ours that hooks them when they are imported."""

from __future__ import annotations

from agentrunner.verification.results.model import Instrumented
from agentrunner.verification.results.reporters import text_of
from agentrunner.verification.results.shell import put_first

NAMES = ("sitecustomize.py", "agentrunner_python.py", "agentrunner_look.py")


def hooked(shell: str, place: str) -> Instrumented:
    """The command with our files on Python's path, also where it sets PYTHONPATH itself."""
    here = f"{place}/py"
    files = {f"py/{name}": text_of(name) for name in NAMES}
    return Instrumented(put_first(shell, "PYTHONPATH", here), {"PYTHONPATH": here}, files)
