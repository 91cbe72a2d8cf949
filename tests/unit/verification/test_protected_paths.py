"""What the task or threat T2 protects: a `.gitattributes` that is asked for may start nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.trees import Trees
from tests.kit.repository import uncommitted
from tests.kit.task_specs import task_spec_of

WANTED = "Add a .gitattributes that marks pictures as binary."


@pytest.mark.parametrize("is_link", [False, True], ids=["file", "link"])
@pytest.mark.parametrize(
    ("text", "codes"),
    [("*.png binary\n", []), ("* filter=evil\n", ["protected_path"])],
    ids=["plain", "driver"],
)
def test_attributes_that_are_asked_for(
    tmp_path: Path, *, is_link: bool, text: str, codes: list[str]
) -> None:
    repo = uncommitted(tmp_path / "repo", {"app.py": "1\n"})
    snapshots = Snapshots(tmp_path / "store", repo)
    before = snapshots.take().tree
    (repo / ("attributes" if is_link else ".gitattributes")).write_text(text)
    if is_link:
        (repo / ".gitattributes").symlink_to("attributes")
    after = snapshots.take().tree
    trees = Trees(snapshots, task_spec_of(prd=WANTED, repo=repo).task)
    found = trees.protected(trees.between(before, after), WANTED, before, after)
    assert [one.code for one in found] == codes
