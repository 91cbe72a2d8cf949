"""What a plan begins from: a repository, one that is made for it, or the folder itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import UsageError
from agentrunner.plans.execution.delivery import DeliveryOptions
from tests.kit.plan_project import PlanProject, Work

START = {"a.txt": "one\n", "b.txt": "one\n", ".gitignore": "*.log\n"}


@pytest.fixture
def plain(tmp_path: Path) -> PlanProject:
    """Two tasks, of which the second needs the first, in a folder without git."""
    works = [Work("echo two >> a.txt; touch x.log", "grep -q two a.txt"), Work(needs=[1])]
    plan = PlanProject.make(tmp_path, works, START)
    shutil.rmtree(plan.project.repo / ".git")
    return plan


def refused(plan: PlanProject, **how: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        plan.carry(**how)
    assert plan.told("run_started") == []
    return caught.value


def notices(plan: PlanProject) -> str:
    return " ".join(plan.told("plan_started")[-1]["notices"])


# -- no git ---------------------------------------------------------------------------------------


def test_a_folder_without_git_is_worked_in_one_task_after_another(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work(), Work()], START)
    shutil.rmtree(plan.project.repo / ".git")
    error = refused(plan)
    assert error.code == "no-repository"
    assert "--in-place" in error.remedy and "--git-init" in error.remedy
    result = plan.carry(in_place=True, parallel=2)
    assert (result["exit_code"], result["branch"]) == (0, None), plan.events
    kinds = [e["event"] for e in plan.events if e["event"] in ("run_started", "plan_landed")]
    assert kinds == ["run_started", "plan_landed"] * 2
    assert not any("brought together" in e["detail"] for e in plan.told("plan_task"))
    assert (plan.project.repo / "2.done").exists()
    note = Path(result["note"]).read_text("utf-8")
    assert "TASK-0002 is done, in the folder itself" in note and "TASK-0002 merged" not in note


def test_a_folder_becomes_a_repository_with_what_is_there(
    plain: PlanProject, tmp_path: Path
) -> None:
    (plain.project.repo / "x.log").write_text("noise")
    settings = tmp_path / "gitconfig"
    settings.write_text("[user]\n\tname = Hana\n\temail = hana@example.org\n")
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": str(settings)}
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"):
        environ.pop(name, None)
    result = plain.carry(git_init=True, options={"environ": environ})
    assert result["exit_code"] == 0, plain.events
    assert "main of the git repository begins at" in notices(plain)
    assert "with .gitignore, a.txt, b.txt." in notices(plain) and "Not committed" not in notices(
        plain
    )
    git = plain.project.git
    assert git("ls-tree", "--name-only", "main").split() == [".gitignore", "a.txt", "b.txt"]
    assert git("status", "--porcelain") == "?? .agent-runner/\n"
    assert plain.published("a.txt") == "one\ntwo\n"
    assert plain.project.read("a.txt") == "one\n"
    for commit in ("main", result["branch"]):
        assert git("log", "-1", "--format=%an <%ae>", commit) == "Hana <hana@example.org>\n"
    # Once there is one, the option says nothing new.
    assert plain.carry(git_init=True)["exit_code"] == 0
    assert git("rev-list", "--count", "main") == "1\n"


def test_a_repository_without_a_commit_gets_its_first_one(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)
    git = plan.project.git
    git("checkout", "-q", "--orphan", "trunk")
    git("rm", "-q", "-r", "--cached", ".")
    (plan.project.repo / ".git" / "index").unlink()
    error = refused(plan)
    assert error.code == "no-commit" and "--git-init" in error.remedy
    assert plan.carry(git_init=True)["exit_code"] == 0, plan.events
    assert git("rev-list", "--count", "trunk") == "1\n"
    assert git("rev-parse", f"{plan.result['branch']}~1") == git("rev-parse", "trunk")


@pytest.mark.whole
def test_a_first_commit_that_somebody_began_is_theirs(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)
    plan.project.git("checkout", "-q", "--orphan", "trunk")
    for how in ({}, {"git_init": True}):
        error = refused(plan, **how)
        assert error.code == "no-commit" and error.remedy.startswith("git commit")


def test_no_repository_is_made_inside_of_another(plain: PlanProject) -> None:
    subprocess.run(["git", "init", "-q", plain.project.repo.parent], check=True)
    error = refused(plain, git_init=True)
    assert error.code == "no-repository" and f"--repo {plain.project.repo.parent}" in error.remedy
    assert not (plain.project.repo / ".git").exists()


# -- from the one to the other --------------------------------------------------------------------


@pytest.mark.series(2)
@pytest.mark.parametrize("way", ["include", "init"])
def test_what_was_done_in_the_folder_is_part_of_the_branch(plain: PlanProject, way: str) -> None:
    assert plain.carry(in_place=True, only=("TASK-0001",))["exit_code"] == 0, plain.events
    git = plain.project.git
    if way == "include":
        git("init", "-q", "-b", "main")
        git("add", "b.txt", ".gitignore")
        git("commit", "-q", "-m", "start")
        plain.events.clear()
        error = refused(plain)
        assert error.code == "uncommitted-work" and "--include-uncommitted" in error.remedy
        assert "TASK-0001" in error.message and "a.txt" in error.message
        assert git("branch", "--list", "agentrunner/*") == ""
    how = {"git_init": way == "init", "include_uncommitted": way == "include"}
    assert plain.carry(**how)["exit_code"] == 0, plain.events
    assert plain.published("a.txt") == "one\ntwo\n" and plain.published("2.done") == ""


def test_a_question_of_a_run_in_the_folder_is_not_left_behind(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work("[ ! -e .git ] || touch {}.done")], START)
    shutil.rmtree(plan.project.repo / ".git")
    assert plan.carry(in_place=True)["questions"]
    assert plan.carry(git_init=True)["exit_code"] == 0, plan.events
    assert plan.result["questions"] == []
    assert [q.answer for q in plan.store.questions()] == ["tried again"]


def test_in_a_repository_nothing_is_done_in_place(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work(), Work(needs=[1])], START)
    error = refused(plan, in_place=True)
    assert error.code == "in-place" and "without --in-place" in error.remedy
    assert plan.carry(only=("TASK-0001",))["exit_code"] == 0
    shutil.rmtree(plan.project.repo / ".git")
    plan.events.clear()
    error = refused(plan, in_place=True)
    assert error.code == "in-place" and "--git-init" in error.remedy
    assert plan.carry(git_init=True)["exit_code"] == 0
    assert plan.published("1.done") == plan.published("2.done") == ""


def test_wishes_that_exclude_each_other_are_refused(plain: PlanProject) -> None:
    assert refused(plain, in_place=True, git_init=True).code == "usage"
    assert "--pr" in refused(plain, in_place=True, wishes=DeliveryOptions(request=True)).message


# -- what else a repository may be ----------------------------------------------------------------


@pytest.mark.whole
def test_submodules_stay_as_they_are_and_are_said(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)
    git = plan.project.git
    library = PlanProject.make(tmp_path / "library", [], START).project
    allowed = ("-c", "protocol.file.allow=always")
    git(*allowed, "submodule", "--quiet", "add", str(library.repo), "lib")
    git("commit", "-q", "-m", "with a library")
    assert plan.carry()["exit_code"] == 0, plan.events
    assert "Not taken along: the submodules lib." in notices(plan)
    branch = plan.result["branch"]
    for path in ("lib", ".gitmodules"):
        assert git("ls-tree", branch, path) == git("ls-tree", "main", path) != ""
    assert git("ls-tree", branch, "lib").startswith("160000 commit ")
    assert git("diff", "--name-only", "main", branch).split() == ["1.done"]
