"""The plan on disk: one change is one step, two writers are told apart, nothing is lost."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from agentrunner.errors import UsageError
from agentrunner.errors.plans import PlanConflict
from agentrunner.plans.patch import PatchRejected, PlanEdit, apply
from agentrunner.plans.plan import Hint, Plan, PlanTaskStatus, PotentialConflict
from agentrunner.plans.serialization import files_of, plan_from_files, plan_from_json, plan_to_json
from agentrunner.plans.store import KEPT_PLANS, ChangeKind, PlanStore, StoredTask
from tests.kit.files import write

AT = "2026-01-01T00:00:00.000Z"


def create(name: str, **given: object) -> PlanEdit:
    return PlanEdit("create", name, {"title": name, **given})


def keep(store: PlanStore, plan: Plan, message: str, kind: ChangeKind = "plan_patch") -> Plan:
    store.save(plan, at=AT, kind=kind, author="hana", message=message)
    return plan


@pytest.fixture
def store(tmp_path: Path) -> PlanStore:
    return PlanStore(tmp_path / "state" / "plan.sqlite")


def test_a_plan_comes_back_as_it_was_kept(store: PlanStore) -> None:
    assert store.load() == Plan()
    assert not store.path.exists()
    hint = Hint("go", ("a.go",), ("fast",))
    edits = [create("a", suggested_impl=hint), create("b", dependencies=("a",))]
    said = [PotentialConflict("a.go", ("a",), "いま変更中")]
    plan = keep(store, apply(Plan(), edits, conflicts=said, goal="目標"), "make it")
    assert store.load() == plan
    assert store.path.stat().st_mode & 0o777 == 0o600


def test_a_second_writer_is_refused_and_told_what_came_between(store: PlanStore) -> None:
    plan = keep(store, apply(Plan(), [create("a")]), "first")
    mine, theirs = apply(plan, [create("b")]), apply(plan, [create("c")])
    keep(store, theirs, "add c")
    before = store.path.read_bytes()
    with pytest.raises(PlanConflict) as refused:
        keep(store, mine, "add b")
    assert refused.value.details == (("version 2", "hana: add c"),)
    assert store.path.read_bytes() == before
    assert store.load() == theirs


def test_a_refused_patch_leaves_the_file_as_it_is(store: PlanStore) -> None:
    plan = keep(store, apply(Plan(), [create("a")]), "first")
    before = store.path.read_bytes()
    with pytest.raises(PatchRejected):
        keep(store, apply(store.load(), [create("b"), PlanEdit("delete", "nobody")]), "bad")
    assert store.path.read_bytes() == before
    assert store.load() == plan


@pytest.mark.parametrize("point", ["plan_half_changed", "plan_before_commit"])
def test_a_crash_leaves_the_old_plan_or_the_new_one(store: PlanStore, point: str) -> None:
    old = keep(store, apply(Plan(), [create("a")]), "first")
    script = (
        "import sys; from pathlib import Path;"
        "from agentrunner.plans.store import PlanStore;"
        "from agentrunner.plans.patch import apply; from agentrunner.plans.patch import PlanEdit;"
        "store = PlanStore(Path(sys.argv[1]));"
        "plan = apply(store.load(), [PlanEdit('create', 'b', {'title': 'b'})]);"
        "store.save(plan, at='', kind='plan_patch', author='', message='')"
    )
    command = [sys.executable, "-c", script, str(store.path)]
    env = {**os.environ, "AGENTRUNNER_TEST": "1", "AGENTRUNNER_FAILPOINT": f"{point}:kill"}
    assert subprocess.run(command, env=env, check=False).returncode == -signal.SIGKILL
    assert store.load() == old
    del env["AGENTRUNNER_FAILPOINT"]
    subprocess.run(command, env=env, check=True)
    assert store.load().task_order() == ["TASK-0001", "TASK-0002"]


def test_changes_are_undone_one_after_the_other(store: PlanStore) -> None:
    first = keep(store, apply(Plan(), [create("a")]), "add a", "decompose")
    second = keep(store, apply(first, [create("b")]), "add b")
    keep(store, apply(second, [PlanEdit("delete", "TASK-0001")]), "drop a")
    for message, left in (
        ("drop a", ["TASK-0001", "TASK-0002"]),
        ("add b", ["TASK-0001"]),
        ("add a", []),
    ):
        _, plan, undone = store.undo(at=AT, author="hana")
        assert (undone.message, plan.task_order()) == (message, left)
        assert store.load() == plan
    with pytest.raises(UsageError, match="no change to undo"):
        store.undo(at=AT, author="hana")
    again = keep(store, apply(store.load(), [create("c")]), "add c")
    assert again.task_order() == ["TASK-0003"]
    kinds = [change.kind for change in store.changes()]
    assert kinds == ["decompose", *["plan_patch"] * 2, *["undo"] * 3, "plan_patch"]


def test_only_the_latest_versions_are_kept_whole(store: PlanStore) -> None:
    plan = Plan()
    for number in range(KEPT_PLANS + 2):
        plan = keep(store, apply(plan, [create(f"t{number}")]), f"{number}")
    undone = 0
    with suppress(UsageError):
        while store.undo(at=AT, author=""):
            undone += 1
    assert undone >= KEPT_PLANS // 2  # an undo is a version, too
    with pytest.raises(UsageError, match="can be undone"):
        store.undo(at=AT, author="")
    assert len(store.changes()) == KEPT_PLANS + 2 + undone


def test_how_a_task_stands_is_no_change_of_the_plan(store: PlanStore) -> None:
    plan = keep(store, apply(Plan(), [create("a"), create("b", dependencies=("a",))]), "first")
    done = StoredTask("TASK-0001", PlanTaskStatus.COMPLETE, "a-1", detail="checked")
    assert plan.shown_status("TASK-0002") == PlanTaskStatus.BLOCKED
    store.note(done, AT)
    assert store.load().version == plan.version
    assert store.load().tasks["TASK-0001"].status == PlanTaskStatus.COMPLETE
    assert store.load().shown_status("TASK-0002") == PlanTaskStatus.PENDING
    assert store.standings() == {"TASK-0001": done}


def test_what_was_proven_of_a_task_is_not_said_of_another(store: PlanStore) -> None:
    four = [create("a"), create("b"), create("c"), create("d")]
    plan = keep(store, apply(Plan(), four), "first")
    for task_id in ("TASK-0001", "TASK-0002"):
        store.note(StoredTask(task_id, PlanTaskStatus.COMPLETE, run_id="r"), AT)
    store.note(StoredTask("TASK-0003", PlanTaskStatus.FIXING), AT)
    store.note(StoredTask("TASK-0004", PlanTaskStatus.STOPPED), AT)
    edits = [
        PlanEdit("update", "TASK-0001", {"acceptance_criteria": ("It flies.",)}),
        PlanEdit("update", "TASK-0002", {"milestone": "M2", "dependencies": ("TASK-0001",)}),
        PlanEdit("update", "TASK-0003", {"description": "Else"}),
        PlanEdit("update", "TASK-0004", {"description": "Else"}),
    ]
    keep(store, apply(plan, edits), "it must fly")
    tasks = store.load().tasks
    assert [task.status for task in tasks.values()] == ["PENDING", "COMPLETE", "FIXING", "PENDING"]
    assert "was COMPLETE until version 2" in store.standings()["TASK-0001"].detail
    keep(store, apply(store.load(), [PlanEdit("update", "TASK-0001", {"title": "A"})]), "call it A")
    store.undo(at=AT, author="hana")
    assert store.load().tasks["TASK-0001"].status == PlanTaskStatus.PENDING
    store.undo(at=AT, author="hana")
    assert store.load().tasks["TASK-0001"].status == PlanTaskStatus.COMPLETE


def test_a_conversation_and_its_questions_are_kept(store: PlanStore) -> None:
    store.say("user", "make it", AT)
    store.say("planner", "which one?", AT)
    assert [(m.role, m.text) for m in store.conversation()] == [
        ("user", "make it"),
        ("planner", "which one?"),
    ]
    number = store.ask("Which one?", AT)
    assert store.answer(number, "the blue one", AT).answer == "the blue one"
    with pytest.raises(UsageError, match="no open question"):
        store.answer(number, "the red one", AT)
    assert [q.answer for q in store.questions()] == ["the blue one"]


def test_what_is_no_plan_is_said_to_be_damaged(store: PlanStore) -> None:
    store.path.parent.mkdir(parents=True)
    store.path.write_bytes(b"no database at all, but long enough to be looked at" * 50)
    with pytest.raises(UsageError) as refused:
        store.load()
    assert refused.value.code == "plan-damaged"


def test_a_plan_goes_to_files_and_back(tmp_path: Path) -> None:
    hint = Hint("go", ("a.go",))
    plan = apply(
        Plan(),
        [
            PlanEdit("create", "p", {"title": "Phase"}, phase=True),
            PlanEdit("create", "a", {"title": "a", "suggested_impl": hint}, parent_id="p"),
            create("b", dependencies=("a",), acceptance_criteria=("it works",)),
        ],
        goal="A goal",
    )
    plan = apply(plan, [PlanEdit("delete", "TASK-0001")])
    write(tmp_path, dict(files_of(plan, [{"version": 1}])))
    assert plan_from_files(tmp_path) == plan
    assert plan_from_json(plan_to_json(plan)) == plan
    assert '"id": "TASK-0002"' in (tmp_path / "tasks/TASK-0002.json").read_text()


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("wbs.json", None, "cannot be read"),
        ("wbs.json", "{", "is no JSON"),
        ("wbs.json", '{"format": 2}', "is not of format 1"),
        ("state/tasks.json", "{}", "the tasks are not those of the tree"),
        ("state/tasks.json", '{"TASK-0001": {"node_id": "node-root"}}', "which is another"),
        ("design/node-0001.json", "{}", "title"),
        (
            "design/node-0001.json",
            '{"title": "a", "dependencies": ["TASK-0009"]}',
            "depends on TASK-0009, which is not there",
        ),
    ],
)
def test_files_that_hold_no_plan_are_named(
    tmp_path: Path, path: str, text: str | None, said: str
) -> None:
    plan = apply(Plan(), [create("a")])
    write(tmp_path, dict(files_of(plan, [])))
    if text is None:
        (tmp_path / path).unlink()
    else:
        (tmp_path / path).write_text(text)
    with pytest.raises(UsageError) as refused:
        plan_from_files(tmp_path)
    assert said in str(refused.value)


def test_a_deleted_design_is_kept_for_history(store: PlanStore) -> None:
    plan = keep(store, apply(Plan(), [create("a")]), "add")
    after = keep(store, apply(plan, [PlanEdit("delete", "TASK-0001")]), "drop")
    assert after.designs["node-0001"] == replace(plan.designs["node-0001"], deleted_in=2)


def test_a_disk_without_room_is_named_and_changes_nothing(store: PlanStore) -> None:
    """SQLite has taken the transaction back itself by then."""
    store.note(StoredTask("TASK-0001", PlanTaskStatus.RUNNING), AT)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(sqlite3.OperationalError) as caught:
            store.note(StoredTask("TASK-0001", PlanTaskStatus.FAILED), AT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.sqlite_errorname.startswith(("SQLITE_IOERR", "SQLITE_FULL"))
    assert store.standings()["TASK-0001"].status == PlanTaskStatus.RUNNING
