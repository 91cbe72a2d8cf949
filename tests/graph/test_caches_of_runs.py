"""Whole runs of projects whose packages are where their tools keep them, without a network."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import EnvironmentNotReady
from agentrunner.folders import remove_tree
from tests.kit.cached_tasks import TASKS, Task
from tests.kit.caches import SECRET, Make, cargo, go, maven, serving
from tests.kit.caches import Project as Cached
from tests.kit.docker import IN_DOCKER, require_docker
from tests.kit.files import write
from tests.kit.metas import assess, finish, plan, work
from tests.kit.project import Project
from tests.kit.runs import Run

GIT = """
git mv notes.txt NOTES && git add {0} && git status --short
if git commit -qm done; then exit 9; fi
"""


BOXES: dict[str, dict[str, Any]] = {"bwrap": {}, "docker": IN_DOCKER}


@dataclass
class Started:
    """A run that can begin, of a project whose server of packages is gone."""

    run: Run
    cached: Cached
    task: Task

    def start(self, script: list[Any], box: str = "bwrap", **sandbox: Any) -> None:
        """Begin in a box of this kind."""
        if box == "docker":
            require_docker()
        given = BOXES[box]
        in_box = {**given.get("sandbox", {}), **sandbox}
        tools = [str(one) for one in self.cached.tools]
        if tools:
            in_box["read_paths"] = [*in_box.get("read_paths", ()), *tools]
        path = "".join(f"{one}/bin:" for one in tools)
        test = self.task.test or self.cached.test
        worker = f'sed -i \'s/?"/"/; s/ + ""//\' {self.task.product}{GIT.format(self.task.product)}'
        self.run.start(
            script,
            worker,
            test=f'PATH="{path}$PATH" {test}' if path else test,
            runner={**given, "sandbox": in_box},
        )


Begin = Callable[[Task], Started]


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    def begin(task: Task) -> Started:
        project = Project.make(tmp_path, {"notes.txt": "notes\n"})
        user = tmp_path / "user"
        user.mkdir()
        with serving(tmp_path / "served") as server:
            cached = task.make(user, project.repo, server)
        if task.gone:
            (project.repo / task.gone).unlink()
        write(project.repo, {".gitignore": "target/\n", **task.files})
        project.git("add", ".")
        project.git("commit", "-qm", "app")
        run = Run(project)
        run.environ = {**os.environ, "HOME": str(user)}
        return Started(run, cached, task)

    return begin


# Compilers build their library in each room; what a sandbox shows of caches is in test_caches.
@pytest.mark.whole
@pytest.mark.parametrize(
    ("task", "box"),
    [pytest.param(task, box, id=f"{task.make.__name__}-{box}") for task in TASKS for box in BOXES],
)
def test_it_is_complete_with_nothing_but_the_user_s_cache(
    begin: Begin, task: Task, box: str
) -> None:
    if box == "docker":
        require_docker()
    started = begin(task)
    run = started.run
    before = run.project.git("rev-parse", "HEAD"), run.project.git("diff", "--cached")
    started.start([plan(), work(), finish(), assess()], box)
    assert run.ending == ("COMPLETE", "complete", 0), run.result["missing"]
    assert (run.project.repo / "NOTES").exists()
    assert before == (run.project.git("rev-parse", "HEAD"), run.project.git("diff", "--cached"))
    header = run.project.told("run_started")[0]["header"]
    assert f"package caches of {started.cached.ecosystem}" in header["box"]
    assert any("left out as they hold credentials" in notice for notice in header["notices"])
    kept = [file for file in run.folder.root.rglob("*") if file.is_file()]
    assert not [file for file in kept if SECRET.encode() in file.read_bytes()]


@pytest.mark.parametrize(
    "task",
    [pytest.param(task, marks=[pytest.mark.whole] if at else []) for at, task in enumerate(TASKS)],
    ids=lambda task: task.make.__name__,
)
def test_without_the_cache_nobody_is_paid(begin: Begin, task: Task) -> None:
    started = begin(task)
    with pytest.raises(EnvironmentNotReady):
        started.start([plan(), work()], caches="none")


HALF: dict[Make, str] = {go: "**/@v/*.zip", cargo: "**/*.crate", maven: "**/junit-4*.jar"}
"""What of a cache is cut off in the middle, as by a download that was killed."""


@pytest.mark.whole
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.make.__name__)
def test_with_a_cache_that_is_half_written_nobody_is_paid(begin: Begin, task: Task) -> None:
    started = begin(task)
    user = Path((started.run.environ or {})["HOME"])
    for unpacked in (user / "go/pkg/mod/example.test", *user.glob(".cargo/registry/src/*")):
        remove_tree(str(unpacked))
    cut = [file for file in user.glob(HALF[task.make]) if file.is_file()]
    for file in cut:
        file.chmod(0o644)
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert cut
    with pytest.raises(EnvironmentNotReady):
        started.start([plan(), work()])
