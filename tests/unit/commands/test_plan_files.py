"""plan export and plan import: files for people, and never over anything else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentrunner.commands import plan_files
from agentrunner.errors import LockHeld, UsageError
from agentrunner.plans.patch import PlanEdit, apply
from agentrunner.plans.plan import ROOT, NodeDesign, Plan, PlannedTask, PlanNode, PlanTaskStatus
from agentrunner.plans.store import PlanStore, StoredTask
from agentrunner.storage.locks import me
from agentrunner.storage.plan_folder import PlanFolder, plan_folder

AT = "2026-11-21T05:00:00Z"
PLAN = Plan(
    version=1,
    goal="A list",
    nodes={
        ROOT: PlanNode(None, ("node-0001", "node-0002")),
        "node-0001": PlanNode(ROOT, (), "TASK-0001"),
        "node-0002": PlanNode(ROOT, (), "TASK-0002"),
    },
    designs={
        "node-0001": NodeDesign("List", "Show it", ("It lists.",)),
        "node-0002": NodeDesign("一覧", "表示する", dependencies=("TASK-0001",)),
    },
    tasks={"TASK-0001": PlannedTask("node-0001"), "TASK-0002": PlannedTask("node-0002")},
    tasks_made=2,
    nodes_made=2,
)


class Desk:
    """A repository with a plan, and the two commands."""

    def __init__(self, place: Path) -> None:
        self.repo = place / "shop"
        self.state = place / "state"
        (self.repo / ".git").mkdir(parents=True)
        self.folder: PlanFolder = plan_folder(self.state, self.repo)
        self.store = PlanStore(self.folder.plan)
        self.out = place / "out"

    def made(self) -> Desk:
        self.store.save(PLAN, at=AT, kind="decompose", author="hana", message="a list")
        return self

    def export(self, force: bool = False) -> int:
        return plan_files.export(self.out, force, str(self.repo), str(self.state))

    def take(self) -> int:
        return plan_files.import_plan(self.out, str(self.repo), str(self.state))

    def edit(self, name: str, change: Callable[[Any], None]) -> None:
        path = self.out / name
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value))

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.out)): path.read_bytes()
            for path in sorted(self.out.rglob("*"))
            if path.is_file()
        }


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path).made()


def test_what_was_exported_comes_back_elsewhere(desk: Desk, tmp_path: Path) -> None:
    desk.export()
    assert "一覧" in (desk.out / "design" / "node-0002.json").read_text()
    assert json.loads((desk.out / "history" / "patches.jsonl").read_text())["author"] == "hana"
    other = Desk(tmp_path / "other")
    shutil.copytree(desk.out, other.out)
    other.take()
    assert other.store.load() == PLAN
    (change,) = other.store.changes()
    assert (change.kind, change.version_before) == ("import", 0)


def test_the_same_plan_is_the_same_bytes(desk: Desk) -> None:
    desk.export()
    before = desk.files()
    desk.export(force=True)
    assert desk.files() == before
    assert [path.name for path in desk.out.parent.iterdir() if path.name.startswith(".out")] == []


def test_an_import_is_a_change_that_can_be_undone(desk: Desk) -> None:
    desk.export()
    desk.edit("design/node-0001.json", lambda design: design.update(title="Other"))
    desk.take()
    assert desk.store.load().designs["node-0001"].title == "Other"
    assert desk.store.load().version == 2
    desk.store.undo(at=AT, author="hana")
    assert desk.store.load().designs["node-0001"].title == "List"
    assert desk.store.conversation()[-1].text == 'Taken back: "plan import"'  # no path is told


def test_an_edit_of_what_is_for_readers_only_is_told_and_changes_nothing(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.export()
    desk.edit("tasks/TASK-0001.json", lambda task: task.update(title="Other"))
    desk.take()
    shown = capsys.readouterr().out
    assert "tasks/TASK-0001.json was edited and is not read" in shown
    assert "design/node-0001.json" in shown and "Nothing changed" in shown
    assert desk.store.load() == PLAN
    desk.edit("design/node-0001.json", lambda design: design.update(title="Other"))
    desk.take()
    assert "not read" not in capsys.readouterr().out and desk.store.load().version == 2


def test_only_what_was_proven_here_is_complete(desk: Desk) -> None:
    desk.export()
    for task_id in ("TASK-0001", "TASK-0002"):
        desk.store.note(StoredTask(task_id, PlanTaskStatus.COMPLETE), AT)

    def claim(tasks: Any) -> None:
        tasks["TASK-0001"]["status"] = "COMPLETE"

    desk.edit("state/tasks.json", claim)
    desk.edit("design/node-0002.json", lambda design: design.update(description="Else"))
    desk.take()
    tasks = desk.store.load().tasks
    assert tasks["TASK-0001"].status == PlanTaskStatus.COMPLETE
    assert tasks["TASK-0002"].status == PlanTaskStatus.PENDING


def test_another_task_under_the_id_of_a_deleted_one_is_not_complete(desk: Desk) -> None:
    desk.export()
    desk.store.note(StoredTask("TASK-0002", PlanTaskStatus.COMPLETE), AT)
    without = apply(desk.store.load(), [PlanEdit("delete", "TASK-0002")])
    desk.store.save(without, at=AT, kind="plan_patch", author="hana", message="not the second")
    desk.edit("design/node-0002.json", lambda design: design.update(description="Else"))
    desk.take()
    assert desk.store.load().tasks["TASK-0002"].status == PlanTaskStatus.PENDING


def test_a_task_file_says_where_it_is_in_the_tree(desk: Desk) -> None:
    desk.export()
    told = json.loads((desk.out / "tasks" / "TASK-0002.json").read_text())
    assert (told["id"], told["node_id"], told["parent_id"]) == ("TASK-0002", "node-0002", ROOT)


def test_a_file_completes_no_task(desk: Desk, tmp_path: Path) -> None:
    desk.export()
    desk.edit("state/tasks.json", lambda tasks: tasks["TASK-0001"].update(status="COMPLETE"))
    other = Desk(tmp_path / "other")
    shutil.copytree(desk.out, other.out)
    other.take()
    assert other.store.load().tasks["TASK-0001"].status == PlanTaskStatus.PENDING


def test_ids_are_never_given_twice(desk: Desk) -> None:
    desk.export()
    desk.edit("wbs.json", lambda wbs: wbs.update(tasks_made=0, nodes_made=0))
    desk.take()
    assert (desk.store.load().tasks_made, desk.store.load().nodes_made) == (2, 2)


@pytest.mark.parametrize("what", ["file", "folder", "mixed", "link"])
def test_nothing_else_is_ever_written_over(what: str, desk: Desk, tmp_path: Path) -> None:
    if what == "file":
        desk.out.write_text("mine")
    elif what == "link":
        (tmp_path / "mine").mkdir()
        desk.out.symlink_to(tmp_path / "mine")
    else:
        if what == "mixed":
            desk.export()
        desk.out.mkdir(exist_ok=True)
        (desk.out / "mine.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(UsageError) as refused:
            desk.export(force)
        assert refused.value.code == "export-folder"
    if what == "file":
        assert desk.out.read_text() == "mine"


def test_an_earlier_export_is_replaced_only_on_demand(desk: Desk) -> None:
    desk.out.mkdir()
    desk.export()
    with pytest.raises(UsageError) as refused:
        desk.export()
    assert refused.value.code == "export-folder"
    assert "--force" in refused.value.remedy


def test_no_plan_is_nothing_to_export(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with pytest.raises(UsageError) as refused:
        desk.export()
    assert refused.value.code == "no-plan"
    assert not desk.out.exists()


def test_nothing_is_exchanged_while_it_is_worked_on(desk: Desk) -> None:
    desk.export()
    desk.store.note(StoredTask("TASK-0001", PlanTaskStatus.RUNNING), AT)
    with pytest.raises(UsageError) as refused:
        desk.take()
    assert refused.value.code == "plan-at-work"
    lock = desk.folder.lock()
    lock.acquire(me("", AT))
    with pytest.raises(LockHeld):
        desk.take()
    lock.close()
    assert desk.store.load().version == 1


def renamed(value: Any) -> None:
    value["../../x"] = value.pop("TASK-0001")


HOSTILE: dict[str, tuple[str, Callable[[Any], None]]] = {
    "path as an id": ("state/tasks.json", renamed),
    "cycle": ("design/node-0001.json", lambda d: d.update(dependencies=["TASK-0002"])),
    "nobody": ("design/node-0001.json", lambda d: d.update(dependencies=["TASK-0009"])),
    "no root": ("wbs.json", lambda wbs: wbs["node_index"].pop("node-root")),
    "twice": ("wbs.json", lambda w: w["node_index"]["node-0001"].update(children=["node-0002"])),
    "format": ("wbs.json", lambda wbs: wbs.update(format=99)),
    "status": ("state/tasks.json", lambda tasks: tasks["TASK-0001"].update(status="DONE")),
    "no tasks": ("state/tasks.json", lambda tasks: tasks.clear()),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_files_that_are_no_plan_change_nothing(name: str, desk: Desk) -> None:
    desk.export()
    desk.edit(*HOSTILE[name])
    with pytest.raises(UsageError) as refused:
        desk.take()
    assert refused.value.code == "plan-files"
    assert desk.store.load() == PLAN


def test_a_missing_file_is_named(desk: Desk) -> None:
    desk.export()
    (desk.out / "state" / "tasks.json").unlink()
    with pytest.raises(UsageError) as refused:
        desk.take()
    assert refused.value.path.endswith("tasks.json")
