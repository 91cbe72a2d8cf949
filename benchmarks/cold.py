"""What a command costs before it does anything.

    python -m benchmarks.cold [--rounds 15]

CPU time of whole processes, against an empty Python program (`--help`) and against the libraries
that reading a task takes (`validate`; `show`, `diff` and `plan status` of a run and a plan); and
which heavy libraries they import.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.measure import Figure, by_turns, cpu_sec, environment, ms, program, python

HEAVY = ("langgraph", "langchain_core", "langchain_openai", "openai", "docker", "httpx", "rich")
LOOKS = (("show",), ("diff",), ("plan", "status"))
"""What people look at again and again, of something that is there."""
TASK = """\
version: 1
task:
  id: cold
  repo: .
  prd: {text: Make it work.}
  acceptance_criteria:
    - It works.
"""
LIBRARIES = """\
import typer, yaml
from pydantic import BaseModel
class Task(BaseModel):
    id: str
"""
IMPORTS = """\
import json, sys
from agentrunner.cli import app
app(sys.argv[1:], prog_name="agentrunner", standalone_mode=False)
sys.stderr.write(json.dumps(sorted(sys.modules)))
"""


def figures(place: Path, rounds: int) -> list[Figure]:
    """Measure, in a scratch repository in `place`."""
    place /= "shop"
    place.mkdir()
    task = place / "task.yaml"
    task.write_text(TASK, encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    validate = ("validate", str(task))
    begin(place)
    empty, overview, libraries, checked, *looked = by_turns(
        rounds,
        lambda: cpu_sec(python("-c", "pass")),
        lambda: cpu_sec(python("-m", "agentrunner", "--help")),
        lambda: cpu_sec(python("-c", LIBRARIES)),
        lambda: cpu_sec(python("-m", "agentrunner", *validate), cwd=place),
        *(partial(_cpu_of, words, place) for words in LOOKS),
    )
    return [
        Figure("--help, CPU", ms(overview), f"python -c pass, {ms(empty)}",
               overview / empty, 14),
        Figure("validate, CPU", ms(checked), f"typer, yaml, a pydantic model, {ms(libraries)}",
               checked / libraries, 1.8),
        *(
            Figure(f"{' '.join(words)}, CPU", ms(sec),
                   f"typer, yaml, a pydantic model, {ms(libraries)}", sec / libraries, 2)
            for words, sec in zip(LOOKS, looked, strict=True)
        ),
        _imported("--help", ("--help",), place),
        _imported("validate", validate, place),
        *(_imported(" ".join(words), words, place) for words in LOOKS),
    ]  # fmt: skip


def begin(place: Path) -> None:
    """Make a run and a plan in a repository, by the planner that only tries the program out."""
    mock = ("--planner", "mock", "--state-dir", str(place.with_suffix(".state")))
    run = ("run", "-g", "Make it work", "--worker", "mock", "--sandbox", "none", "-q", "--no-input")
    for words in ((*run, *mock), ("plan", "a page of products", "--yes", *mock)):
        subprocess.run(
            python("-m", "agentrunner", *words),
            check=False, capture_output=True, env=environment(), cwd=place,
        )  # fmt: skip


def _cpu_of(words: Sequence[str], place: Path) -> float:
    state = ("--state-dir", str(place.with_suffix(".state")))
    return cpu_sec(python("-m", "agentrunner", *words, *state), cwd=place)


def _imported(name: str, arguments: Sequence[str], place: Path) -> Figure:
    state = ("--state-dir", str(place.with_suffix(".state"))) if tuple(arguments) in LOOKS else ()
    found = heavy_imports((*arguments, *state), place)
    return Figure(f"{name}, heavy libraries", ", ".join(found) or "none", "-", len(found), 0)


def heavy_imports(arguments: Sequence[str], place: Path, also: Sequence[str] = ()) -> list[str]:
    """Which of HEAVY, and of `also`, a command imports; raises where the command fails."""
    done = subprocess.run(
        python("-c", IMPORTS, *arguments),
        check=True,
        capture_output=True,
        env=environment(),
        cwd=place,
    )
    modules = json.loads(done.stderr.splitlines()[-1])
    return [name for name in (*HEAVY, *also) if name in modules]


if __name__ == "__main__":
    sys.exit(program(figures, rounds=15))
