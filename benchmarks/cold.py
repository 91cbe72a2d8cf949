"""What a command costs before it does anything.

    python -m benchmarks.cold [--rounds 15]

CPU time of whole processes, against an empty Python program (`--help`) and against the libraries
that reading a task takes (`validate`); and which heavy libraries they import.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Figure, by_turns, cpu_sec, environment, ms, python, report

HEAVY = ("langgraph", "langchain_core", "langchain_openai", "openai", "docker", "httpx", "rich")
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


def figures(rounds: int) -> list[Figure]:
    """Measure, in a scratch repository."""
    with tempfile.TemporaryDirectory(prefix="agentrunner-bench-") as name:
        place = Path(name)
        task = place / "task.yaml"
        task.write_text(TASK, encoding="utf-8")
        subprocess.run(["git", "init", "-q", name], check=True)
        validate = ("validate", str(task))
        empty, overview, libraries, checked = by_turns(
            rounds,
            lambda: cpu_sec(python("-c", "pass")),
            lambda: cpu_sec(python("-m", "agentrunner", "--help")),
            lambda: cpu_sec(python("-c", LIBRARIES)),
            lambda: cpu_sec(python("-m", "agentrunner", *validate), cwd=place),
        )
        return [
            Figure("--help, CPU", ms(overview), f"python -c pass, {ms(empty)}",
                   overview / empty, 14),
            Figure("validate, CPU", ms(checked), f"typer, yaml, a pydantic model, {ms(libraries)}",
                   checked / libraries, 1.8),
            _imported("--help", ("--help",), place),
            _imported("validate", validate, place),
        ]  # fmt: skip


def _imported(name: str, arguments: Sequence[str], place: Path) -> Figure:
    found = heavy_imports(arguments, place)
    return Figure(f"{name}, heavy libraries", ", ".join(found) or "none", "-", len(found), 0)


def heavy_imports(arguments: Sequence[str], place: Path) -> list[str]:
    """Which of HEAVY a command imports."""
    done = subprocess.run(
        python("-c", IMPORTS, *arguments),
        check=True,
        capture_output=True,
        env=environment(),
        cwd=place,
    )
    modules = json.loads(done.stderr)
    return [name for name in HEAVY if name in modules]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold")
    parser.add_argument("--rounds", type=int, default=15)
    return report(figures(parser.parse_args(arguments).rounds))


if __name__ == "__main__":
    sys.exit(main())
