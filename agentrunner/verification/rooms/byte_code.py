"""Redirects the output of commands that only compile Python. Pure.

Rooms keep byte code read-only, so that a product cannot forge that of the tests. A program that
compiles but runs nothing of the repository may write to a place that no other program reads.
"""

from __future__ import annotations

import re

PLACE = "/tmp/agentrunner-compiled"
"""Inside the sandbox; a fresh folder for each command."""
_COMPILES = re.compile(
    r"(?P<quoted>'[^']*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?:^|(?<=[\s;&|({]))(?P<program>(?:[\w.~-]*/)*python[\d.]*(?:[ \t]+-[a-zA-Z]+)*?)"
    r"(?=[ \t]+-\w*m[ \t]*(?:compileall|py_compile)\b)"
)


def compiled_elsewhere(shell: str) -> str:
    """The command, with each `python -m compileall` and `py_compile` in it writing to `PLACE`.

    Text in quotes is left as it is: it may be data.
    """
    return _COMPILES.sub(_redirected, shell)


def _redirected(found: re.Match[str]) -> str:
    if found["quoted"]:
        return found[0]
    return f"env PYTHONPYCACHEPREFIX={PLACE} {found['program']}"
