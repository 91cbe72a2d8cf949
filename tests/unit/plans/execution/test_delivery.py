"""Where a plan's result goes: its branch, one commit, another branch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from agentrunner.errors import AgentRunnerError, UsageError
from agentrunner.git.private_clone import CloneStore, Identity
from agentrunner.plans.execution.branch import BRANCH, Publisher
from agentrunner.plans.execution.delivery import Delivered, Delivery, DeliveryOptions
from agentrunner.plans.execution.merging.merge_queue import TreeTests
from agentrunner.plans.execution.plan_settings import PlanSettings
from agentrunner.storage.plan_folder import PlanFolder
from tests.kit.merges import Tests
from tests.kit.project import Project
from tests.kit.repository import AT, WHO


@dataclass
class Result:
    """A repository with a plan's result of two commits in its clone."""

    project: Project
    clone: CloneStore
    publisher: Publisher

    def delivery(self, wishes: DeliveryOptions, tests: TreeTests | None = None) -> Delivery:
        publish = self.publisher.publish
        return Delivery(self.clone, publish, wishes, author=WHO, environ={}, tests=tests or Tests())

    async def deliver(self, tests: TreeTests | None = None, **wishes: object) -> Delivered:
        made = self.delivery(DeliveryOptions(**wishes), tests)  # type: ignore[arg-type]
        return await made.deliver("Make it", "body")

    def at(self, name: str) -> str:
        return self.project.git("rev-parse", name).strip()

    def next_with(self, name: str) -> str:
        """A commit with this file on a branch `next` of the user's."""
        self.project.git("checkout", "-q", "-b", "next")
        self.project.write({name: "theirs"})
        self.project.git("add", "-A")
        self.project.git("commit", "-qm", "theirs")
        self.project.git("checkout", "-q", "main")
        return self.at("next")


@pytest.fixture
def result(tmp_path: Path) -> Result:
    project = Project.make(tmp_path, {"a.txt": "one\n"})
    clone = CloneStore(tmp_path / "clone.git", project.repo)
    head = clone.fetch()
    for name in ("b.txt", "c.txt"):
        (tmp_path / name).write_text(name)
        head = clone.commit(tmp_path, [name], parents=(head,), message=name, author=WHO, at=AT)
    clone.branch(BRANCH, head)
    folder = PlanFolder(tmp_path / "plan")
    folder.make()
    return Result(project, clone, Publisher(clone, folder, "Make it"))


async def test_one_commit_for_the_whole_plan(result: Result) -> None:
    made = await result.deliver(squash=True)
    commit = result.at("agentrunner/make-it")
    assert made == Delivered("agentrunner/make-it", commit, onto="")
    assert result.at(f"{commit}^") == result.at("main")
    assert result.project.git("log", "-1", "--format=%an|%B", commit).strip() == "Hana|Make it"
    assert result.project.git("ls-tree", "--name-only", commit).split() == [
        "a.txt", "b.txt", "c.txt"
    ]  # fmt: skip
    assert await result.deliver(squash=True) == made


async def test_onto_a_branch_that_is_where_the_plan_began(result: Result) -> None:
    result.project.git("branch", "next")
    made = await result.deliver(onto="next")
    assert result.at("next") == made.commit == result.clone.branch_at(BRANCH)
    assert await result.deliver(onto="next") == made
    assert result.project.git("status", "--porcelain") == ""


async def test_onto_a_branch_that_went_on_is_a_merge_that_is_tested(result: Result) -> None:
    theirs, tests = result.next_with("d.txt"), Tests(["it is red"])
    with pytest.raises(AgentRunnerError) as caught:
        await result.deliver(tests, onto="next")
    assert caught.value.code == "onto-red" and result.at("next") == theirs
    made = await result.deliver(tests, onto="next")
    assert result.project.git("log", "-1", "--format=%P", "next").split() == [theirs, made.commit]
    (asked,) = {(one.before, one.mine) for one in tests.asked}
    assert asked == (theirs, made.commit)


async def test_onto_a_branch_with_other_lines_is_refused(result: Result) -> None:
    theirs = result.next_with("b.txt")
    with pytest.raises(AgentRunnerError) as caught:
        await result.deliver(onto="next")
    assert caught.value.code == "onto-conflict" and "b.txt" in caught.value.details[0][1]
    assert result.at("next") == theirs
    assert result.at("agentrunner/make-it") == result.clone.branch_at(BRANCH)


@pytest.mark.parametrize(
    ("name", "code"), [("main", "branch-checked-out"), ("x", "unknown-branch")]
)
def test_a_branch_that_cannot_be_moved_is_told_of_first(
    result: Result, name: str, code: str
) -> None:
    with pytest.raises(UsageError) as caught:
        result.delivery(DeliveryOptions(onto=name)).check("agentrunner/make-it")
    assert caught.value.code == code and caught.value.remedy.startswith(("git", "without"))


def test_the_plans_own_branch_is_not_moved_under_a_checkout(result: Result) -> None:
    first = result.at("main")
    name = result.publisher.publish(first)
    result.project.git("checkout", "-q", name)
    with pytest.raises(UsageError) as caught:
        result.publisher.publish(result.clone.resolve(f"refs/heads/{BRANCH}"))
    assert caught.value.code == "branch-checked-out" and result.at(name) == first


def test_an_author_of_ones_own(tmp_path: Path) -> None:
    settings = PlanSettings(base_dir="/").with_commits("Hana K <hana@example.org>", None)
    clone = CloneStore(tmp_path, tmp_path)
    assert settings.identity(clone, {}) == Identity("Hana K", "hana@example.org")
    for bad in ("Hana", "<a@b>", "Hana <a\nb>", "Hana <>"):
        with pytest.raises(UsageError, match="names no author"):
            settings.with_commits(bad, None)
