"""The plan's branch in the user's repository is known again wherever a process was killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentrunner.errors import UsageError
from agentrunner.git.private_clone import CloneStore
from agentrunner.plans.execution.branch import Publisher
from agentrunner.storage.failpoints import FailPointReached
from agentrunner.storage.plan_folder import PlanFolder
from tests.kit.repository import WHO, committed, git

NAME = "agentrunner/make-it"


@pytest.fixture
def clone(tmp_path: Path) -> CloneStore:
    return CloneStore(tmp_path / "clone.git", committed(tmp_path / "shop", {"a": ""}))


@pytest.fixture
def commits(clone: CloneStore) -> list[str]:
    """Four, one after another."""
    made = [clone.fetch()]
    for number in range(4):
        at = f"2026-01-01T00:00:0{number}Z"
        tree, parents = clone.tree_of(made[0]), (made[-1],)
        made.append(clone.commit_tree(tree, parents=parents, message="m\n", author=WHO, at=at))
    return made[1:]


@pytest.fixture
def publish(clone: CloneStore, tmp_path: Path) -> Callable[[str], str]:
    """As a process of its own would."""
    return lambda commit: Publisher(clone, PlanFolder(tmp_path), "Make it").publish(commit)


@pytest.fixture
def killed(
    publish: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], None]:
    """Publishing a commit by a process that dies at a point."""

    def die(point: str, commit: str) -> None:
        with monkeypatch.context() as patch:
            patch.setenv("AGENTRUNNER_TEST", "1")
            patch.setenv("AGENTRUNNER_FAILPOINT", f"{point}:raise")
            with pytest.raises(FailPointReached):
                publish(commit)

    return die


@pytest.mark.parametrize("begun", [False, True])
def test_wherever_it_was_killed_the_branch_is_known(
    begun: bool,
    clone: CloneStore,
    commits: list[str],
    publish: Callable[[str], str],
    killed: Callable[[str, str], None],
) -> None:
    first, second, third, last = commits
    if begun:
        publish(first)
    killed("publish_after", second)
    killed("publish_before", third)
    killed("publish_before", first)
    assert publish(last) == NAME
    assert git(clone.repo, "rev-parse", NAME).strip() == last
    assert git(clone.repo, "branch", "--list", "agentrunner/*").split() == [NAME]


def test_what_is_published_is_where_it_may_be_and_nothing_before(
    clone: CloneStore,
    commits: list[str],
    publish: Callable[[str], str],
    killed: Callable[[str, str], None],
) -> None:
    """A candidate of an earlier time is none any more once the branch is known to be elsewhere."""
    first, second, third, last = commits
    killed("publish_before", first)
    killed("publish_after", second)
    publish(third)
    git(clone.repo, "update-ref", f"refs/heads/{NAME}", second)
    with pytest.raises(UsageError, match="was moved since"):
        publish(last)
    assert git(clone.repo, "rev-parse", NAME).strip() == second
