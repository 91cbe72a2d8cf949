"""What a run hands over: what the worker left, without what git ignores."""

from pathlib import Path

import pytest

from agentrunner.config.spec import CriterionSpec, TaskSpec
from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.trees import changes_between, delivered_tree, installs_anew
from tests.kit.repository import uncommitted
from tests.kit.task_specs import task_spec_of


def spec(repo: Path, prd: str = "Do it.", criteria: tuple[str, ...] = ()) -> TaskSpec:
    listed = [CriterionSpec(id=f"AC-{n}", description=d) for n, d in enumerate(criteria)]
    return task_spec_of(prd=prd, repo=repo, criteria=listed)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    files = {".gitignore": "*.local\n*.log\n", "app.py": "1\n", "old.local": "before\n"}
    return uncommitted(tmp_path / "repo", files)


def handed_over(
    repo: Path, store: Path, task: TaskSpec
) -> tuple[dict[str, bytes | None], list[str]]:
    """What a worker's edits come to: the content of each path, and what was put back."""
    snapshots = Snapshots(store, repo)
    before = snapshots.take().tree
    (repo / "app.py").write_text("2\n")
    (repo / "old.local").write_text("after\n")
    (repo / "new.local").write_text("after\n")
    tree = snapshots.take().tree
    total = changes_between(snapshots, before, tree)
    made, lacking, _ = delivered_tree(snapshots, task, tree, before, total)
    paths = ("app.py", "old.local", "new.local")
    return {path: snapshots.read(made, path) for path in paths}, lacking


def test_ignored_files_are_as_they_were(repo: Path, tmp_path: Path) -> None:
    content, lacking = handed_over(repo, tmp_path / "store", spec(repo))
    assert content == {"app.py": b"2\n", "old.local": b"before\n", "new.local": None}
    assert lacking == ["new.local", "old.local"]


@pytest.mark.parametrize(
    "task",
    [{"prd": "Write new.local."}, {"criteria": ("`new.local` holds the settings",)}],
    ids=["prd", "criterion"],
)
def test_one_that_the_task_names_is_the_work(
    repo: Path, tmp_path: Path, task: dict[str, object]
) -> None:
    content, lacking = handed_over(repo, tmp_path / "store", spec(repo, **task))  # type: ignore[arg-type]
    assert content["new.local"] == b"after\n"
    assert lacking == ["old.local"]


def test_a_longer_name_is_another(repo: Path, tmp_path: Path) -> None:
    task = spec(repo, "See conf/new.local and new.local/x.")
    assert "new.local" in handed_over(repo, tmp_path / "store", task)[1]


def test_a_tree_without_changes_is_itself(repo: Path, tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "store", repo)
    tree = snapshots.take().tree
    total = changes_between(snapshots, tree, tree)
    assert delivered_tree(snapshots, spec(repo), tree, tree, total) == (tree, [], [])


@pytest.mark.parametrize(
    ("path", "anew"),
    [
        ("package.json", True),
        ("web/package-lock.json", True),
        ("requirements/dev.txt", True),
        ("dev-requirements.txt", True),
        ("go.mod", True),
        ("ext/fast.c", True),
        ("src/Shop.csproj", True),
        ("app.py", False),
        ("docs/requirements.md", False),
        ("my-package.json.txt", False),
    ],
)
def test_what_package_managers_read_asks_for_another_set_up(path: str, anew: bool) -> None:
    assert installs_anew(["README.md", path]) is anew
