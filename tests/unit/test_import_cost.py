"""What `--help`, `validate` and looking at a run or a plan must never import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cold import LOOKS, TASK, begin, heavy_imports
from benchmarks.measure import environment

LOOK = """\
import sys
import agentrunner.engine.runs
print(*sorted({"openai", "langchain_openai", "docker"} & set(sys.modules)))
"""


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("validate", "task.yaml")])
def test_a_light_command_imports_no_heavy_library(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "task.yaml").write_text(TASK, encoding="utf-8")
    assert heavy_imports(arguments, tmp_path) == []


def test_looking_at_what_is_there_imports_no_heavy_library_and_reads_no_replies(
    tmp_path: Path,
) -> None:
    place = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    begin(place)
    state = ("--state-dir", str(place.with_suffix(".state")))
    replies = ("agentrunner.protocol", "agentrunner.git.private_clone")
    for words in (*LOOKS, ("list",), ("logs",)):
        wanted = replies if words == ("plan", "status") else ()
        if words == ("show",):
            wanted = ("agentrunner.git.snapshots", "agentrunner.git.worktree")
        if words[0] in ("list", "logs"):  # half of their time, for nothing that they show
            wanted = ("pydantic.main", "importlib.metadata")
        assert heavy_imports((*words, *state), place, also=wanted) == [], words


def test_who_has_no_plan_waits_for_no_models(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    state = ("--state-dir", str(tmp_path / "state"))
    assert heavy_imports(("plan", "status", *state), tmp_path, also=("pydantic.main",)) == []


MISTAKEN = """\
import sys
from agentrunner import cli
code = cli.call(cli.app, sys.argv[1:], "agentrunner")
print(code, *sorted({"pydantic.main", "agentrunner.results"} & set(sys.modules)))
"""


@pytest.mark.parametrize("words", [("show", "nothing"), ("shwo",), ("show", "--jsn")])
def test_an_error_on_a_terminal_waits_for_no_models(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    command = [sys.executable, "-c", MISTAKEN, *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment()
    )
    assert done.stdout.split() == ["2"]


def test_the_engine_imports_no_model_client_before_one_is_asked() -> None:
    command = [sys.executable, "-c", LOOK]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    assert done.stdout.split() == []


REFUSED = """\
import sys
from agentrunner import cli
code = cli.call(cli.app, ["run", "nothing.yaml"], "agentrunner")
print(code, *sorted({"langgraph", "langchain_core"} & set(sys.modules)))
"""


def test_a_run_that_is_refused_imports_no_engine(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    command = [sys.executable, "-c", REFUSED]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment()
    )
    assert done.stdout.split() == ["2"]
