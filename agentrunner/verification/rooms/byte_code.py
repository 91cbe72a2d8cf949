"""Redirects the output of commands that only compile Python.

Rooms keep byte code read-only, so that a product cannot forge that of the tests. A program that
compiles but runs nothing of the repository may write to a place that no other program reads.

In the text of a command such programs are found and redirected. Where a file of the repository, a
Makefile for example, starts them, `python` and `python3` on PATH stand for programs of ours that
redirect `-m compileall` and `-m py_compile`, and start the real Python with everything else. A
Python that is started by its path, as that of a virtual environment, does so by a `sitecustomize`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections import deque
from pathlib import Path

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.reporters import sitecustomize_of

PLACE = "/tmp/agentrunner-compiled"
"""Inside the sandbox; a fresh folder for each command."""
_COMPILES = lazy_regex(
    r"(?P<quoted>'[^']*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?:^|(?<=[\s;&|({]))(?P<program>(?:[\w.~-]*/)*python[\d.]*(?:[ \t]+-[a-zA-Z]+)*?)"
    r"(?=[ \t]+-\w*m[ \t]*(?:compileall|py_compile)\b)"
)

PROGRAMS = Path("/tmp/agentrunner-python")
"""Inside the sandbox: our programs, which no command can write."""
NAMES = ("python", "python3")
WITH_PROGRAMS = (
    'PATH="$0:$PATH"; PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$0/site"; export PATH PYTHONPATH;'
    ' exec sh -c "$1"'
)
"""Starts a command with our programs first on PATH, and what Python loads last on its own path."""
COMPILING = lazy_regex(rb"\b(?:compileall|py_compile)\b")
MOST_FILES, MOST_BYTES = 20_000, 50_000_000
"""So many files of up to so many bytes are searched; what is not searched may have any words."""
_PROGRAM = """\
#!/bin/sh
next= skip=
for word; do
  [ -n "$next" ] || [ -n "$skip" ] || case $word in
    -mcompileall|-mpy_compile) export PYTHONPYCACHEPREFIX=%(place)s; break ;;
    -X|-W) skip=1; continue ;;
    --*) break ;;
    -*m) next=1; continue ;;
    -*) continue ;;
    *) break ;;
  esac
  if [ -n "$skip" ]; then skip=; continue; fi
  case $word in compileall|py_compile) export PYTHONPYCACHEPREFIX=%(place)s ;; esac
  break
done
exec %(program)s "$@"
"""
_REDIRECTING = """\
import os
import sys


def _compiles():
    with open("/proc/self/cmdline") as file:
        words = iter(file.read().split("\\0")[1:])
    for word in words:
        if word in ("-X", "-W"):
            next(words, "")
        elif word[:1] != "-" or word[:2] == "--" or "c" in word.partition("m")[0]:
            return False
        elif "m" in word:
            return (word.partition("m")[2] or next(words, "")) in ("compileall", "py_compile")
    return False


def _start():
    try:
        if _compiles():
            sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = "%(place)s"
    except Exception:
        pass


"""


def speaks_of(words: re.Pattern[bytes], root: Path) -> bool:
    """Whether a file of a tree has such words, `COMPILING` programs for example. Blocks.

    What an earlier command made unreadable, or removes meanwhile, names nothing.
    """
    seen = 0
    folders = deque([root])
    while folders:
        entries: list[os.DirEntry[str]] = []
        with contextlib.suppress(OSError):
            entries = sorted(os.scandir(folders.popleft()), key=lambda one: one.name)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.extend([Path(entry.path)] if entry.name != ".git" else [])
            elif entry.is_file(follow_symlinks=False):
                seen += 1
                with contextlib.suppress(OSError):
                    searched = seen <= MOST_FILES and entry.stat().st_size <= MOST_BYTES
                    if not searched or words.search(Path(entry.path).read_bytes()):
                        return True
    return False


def write_programs(folder: Path, found: str) -> None:
    """Write our programs for the real ones in `found`, the output of `command -v`. Blocks."""
    (folder / "site").mkdir(mode=0o755, parents=True, exist_ok=True)
    first = folder / "site" / "sitecustomize.py"
    first.write_text(sitecustomize_of(_REDIRECTING % {"place": PLACE}), encoding="utf-8")
    for line in found.splitlines():
        name = Path(line).name
        if not line.startswith("/") or name not in NAMES:
            continue
        text = _PROGRAM % {"place": PLACE, "program": shlex.quote(line)}
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)


def compiled_elsewhere(shell: str) -> str:
    """The command, with each `python -m compileall` and `py_compile` in it writing to `PLACE`.

    Text in quotes is left as it is: it may be data.
    """
    return _COMPILES.sub(_redirected, shell)


def _redirected(found: re.Match[str]) -> str:
    if found["quoted"]:
        return found[0]
    return f"env PYTHONPYCACHEPREFIX={PLACE} {found['program']}"
