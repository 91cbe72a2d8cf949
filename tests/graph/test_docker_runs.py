"""Whole runs in Docker: what a hostile worker does to tests, git and tools is seen there, too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.graph.test_honesty import CHEATS
from tests.kit.docker import IN_DOCKER, require_docker
from tests.kit.evil import poison, touched
from tests.kit.metas import assess, finish, give_up, plan, work
from tests.kit.project import BROKEN, Project
from tests.kit.runs import FIX, SMALL, TEST, Run

UNITTEST = {
    "calc.py": BROKEN["calc.py"],
    "tests/__init__.py": "",
    "tests/test_calc.py": (
        "import unittest\nfrom calc import add\n\n\n"
        "class Sums(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n"
    ),
}
RUNNER = {"command": f"{sys.executable} -m unittest"}
"""It loads in a fifth of the time that pytest takes."""
SHADOW = (
    "printf 'import sys\\nprint(\"Ran 1 test in 0.001s\\\\n\\\\nOK\", file=sys.stderr)\\n'"
    " > unittest.py"
)
CHEATS_AT_UNITTEST = {
    "shadows the runner behind an ignore file": (
        f"echo unittest.py > .gitignore; {SHADOW}",
        "as they were",
    ),
    "forges byte code": (CHEATS["forges byte code"][0], "test_add"),
}


@pytest.fixture(scope="module", autouse=True)
def _engine() -> None:
    require_docker()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Project.make(tmp_path, SMALL))


def findings(run: Run, code: str) -> set[str]:
    found = [f for f in run.result["findings"] if f["code"] == code]
    return {path for finding in found for path in finding["paths"]}


# -- honesty ---------------------------------------------------------------------------------------


def said(result: dict[str, Any]) -> str:
    return " ".join([*result["missing"], result["text"] or "", str(result["waiting"])])


@pytest.mark.parametrize(
    ("worker", "reason"), CHEATS_AT_UNITTEST.values(), ids=CHEATS_AT_UNITTEST.keys()
)
async def test_a_cheat_is_not_complete(tmp_path: Path, worker: str, reason: str) -> None:
    project = Project.make(tmp_path, UNITTEST)
    result = await project.run(worker, test=RUNNER, runner=IN_DOCKER)
    assert result["state"] != "COMPLETE" and result["exit_code"] in (1, 3, 4)
    assert reason in said(result)


async def test_honest_work_is_complete(tmp_path: Path) -> None:
    project = Project.make(tmp_path, UNITTEST)
    result = await project.run(FIX, test=RUNNER, runner=IN_DOCKER)
    assert (result["state"], result["exit_code"], result["missing"]) == ("COMPLETE", 0, [])
    assert result["proof"]
    assert list(project.repo.rglob("__pycache__")) == []


async def test_a_patched_test_tool_in_an_ignored_environment_is_noticed(tmp_path: Path) -> None:
    tool = ".venv/lib/python3/site-packages/checker.py"
    check = (
        "import calc\nok = calc.add(2, 3) == 5\nprint('1 passed in 0.01s')\n"
        "raise SystemExit(not ok)\n"
    )
    project = Project.make(
        tmp_path,
        {**BROKEN, ".gitignore": ".venv/\n", ".venv/pyvenv.cfg": "home = /usr/bin\n", tool: check},
    )
    command = f"PYTHONPATH=.venv/lib/python3/site-packages:. {sys.executable} -m checker"
    worker = f"sed -i 's/ok = .*/ok = True/' {tool}"
    result = await project.run(worker, test={"command": command}, runner=IN_DOCKER)
    assert result["state"] != "COMPLETE"
    assert [finding["code"] for finding in result["findings"]] == ["dependencies_changed"]


# -- protected paths -------------------------------------------------------------------------------

GIT_ATTACK = (
    "git status --short && git log --oneline && git diff --stat && git blame calc.py || exit 9;"
    " git -c user.name=x -c user.email=x@x commit -qam x && exit 8;"
    " (mv .git .git2 && mkdir .git) 2>&1; echo evil >> .git/config; rm -rf .git;"
    " mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout; echo x > .git/commondir; true"
)


@pytest.mark.parametrize("layout", ["plain", "worktree"])
def test_git_is_read_and_never_written(tmp_path: Path, layout: str) -> None:
    project = Project.make(tmp_path / "main", SMALL)
    if layout == "worktree":
        project.git("worktree", "add", "-q", str(tmp_path / "tree"))
        project = Project(tmp_path / "tree", tmp_path / "state")
    git = tmp_path / "main/repo/.git"

    def seen() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in git.rglob("*") if p.is_file() and p.name != "index"}

    before = seen()
    run = Run(project)
    script = [plan(), work(), finish(), assess()]
    run.start(script, f"{FIX}\n{GIT_ATTACK}", test=TEST, runner=IN_DOCKER)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.log("worker_run")[0].data["exit_code"] == 0
    assert seen() == before


def test_a_git_folder_that_was_not_there_cannot_be_made(tmp_path: Path) -> None:
    project = Project(tmp_path / "repo", tmp_path / "state")
    project.repo.mkdir()
    project.write(SMALL)
    run = Run(project)
    worker = f"{FIX}; mkdir -p .git/hooks; echo x > .git/config; true"
    run.start([plan(), work(), finish(), assess()], worker, test=TEST, runner=IN_DOCKER)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert not (project.repo / ".git").exists()


def test_what_tools_run_unasked_is_not_complete(tmp_path: Path) -> None:
    """Traps below the top, and settings of editors, agents and CI."""
    canaries = tmp_path / "canaries"
    canaries.mkdir()
    run = Run(Project.make(tmp_path, SMALL))
    settings = (".vscode/tasks.json", ".claude/settings.json", ".mcp.json", ".cursor/mcp.json",
                ".codex/config.toml", ".github/workflows/x.yml", ".gitmodules")  # fmt: skip
    write = "; ".join(f"mkdir -p $(dirname {name}); echo x > {name}" for name in settings)
    worker = f"{FIX}\n{write}\n{poison(canaries, 'below')}"
    run.start([plan(), work(), finish(), give_up()], worker, test=TEST, runner=IN_DOCKER)
    assert touched(canaries) == set()
    assert run.result["state"] == "FAILED"
    assert {*settings, ".gitattributes", "sub/.git", "hooked/.git"} <= findings(
        run, "protected_path"
    )
    assert all(name in run.note() for name in settings)
