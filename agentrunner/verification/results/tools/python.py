"""The hook for Python tools: a `sitecustomize` of ours that hooks them when they are imported."""

from __future__ import annotations

import functools
import marshal
import sys
from collections.abc import Mapping
from importlib.util import MAGIC_NUMBER

from agentrunner.verification.results.model import Instrumented
from agentrunner.verification.results.reporters import sitecustomize_of, text_of
from agentrunner.verification.results.shell import put_first

NAMES = ("agentrunner_python.py", "agentrunner_look.py")


def hooked(shell: str, place: str) -> Instrumented:
    """The command with our files on Python's path, also where it sets PYTHONPATH itself."""
    here = f"{place}/py"
    first = sitecustomize_of(text_of("sitecustomize.py"))
    files = {"py/sitecustomize.py": first, **{f"py/{name}": text_of(name) for name in NAMES}}
    return Instrumented(
        put_first(shell, "PYTHONPATH", here), {"PYTHONPATH": here}, {**files, **_compiled()}
    )


@functools.cache
def _compiled() -> Mapping[str, bytes]:
    """Our files as this Python compiles them, for projects whose Python is of the same kind.

    Others compile the text, which takes 15 ms of CPU each time that a test tool starts.
    """
    kind = f"{sys.implementation.cache_tag}-{MAGIC_NUMBER.hex()}"
    return {
        f"py/{name}.{kind}": marshal.dumps(compile(text_of(name), "<agentrunner>", "exec"))
        for name in NAMES
    }
