"""Byte code of Python and pytest, compiled once for all runs of a test process.

A run compiles what its test tool imports on the untouched tree (`DecisionSandbox.warm`), and each
run of a test is a first one: pytest takes 1 s of CPU then, and a quarter of it from byte code.
Here a run begins with the byte code that a program of ours compiled, and no test's code. What is
kept and removed from then on is the product's.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agentrunner.verification.rooms.decision_sandbox import DecisionSandbox

EVERYTHING = """\
import ctypes, importlib, json, pdb, unittest.main, _pytest._argcomplete
from _pytest.config import default_plugins
for name in default_plugins:
    importlib.import_module("_pytest." + name)
"""


@functools.cache
def compiled() -> Path:
    """A folder for PYTHONPYCACHEPREFIX; it is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="byte-code-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    prefix = f"pycache_prefix={folder}"
    argv = [sys.executable, "-I", "-X", prefix, "-c", EVERYTHING]
    subprocess.run(argv, env={}, check=True, umask=0o077)  # as private as a run's folder
    return folder


def warmed(
    byte_code: Callable[[], Path], warm: Callable[[DecisionSandbox], None] = DecisionSandbox.warm
) -> Callable[[DecisionSandbox], None]:
    """`DecisionSandbox.warm`, with the byte code of that folder to begin with."""

    def warm_with_it(sandbox: DecisionSandbox) -> None:
        place, source = sandbox._byte_code, byte_code()
        new = not place.exists()
        warm(sandbox)
        # Byte code is replaced, never written in place, so that two names may stand for it. On
        # another file system, which may be a small one, the run compiles.
        if new and place.stat().st_dev == source.stat().st_dev:
            shutil.copytree(source, place, dirs_exist_ok=True, copy_function=os.link)

    return warm_with_it


def begin_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs in this process begin with byte code of what all of them import."""
    monkeypatch.setattr(DecisionSandbox, "warm", warmed(compiled))
