"""The notes that a plan leaves: its own, and beside it those of its tasks' runs."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest

from agentrunner import events, results
from agentrunner.engine import queries
from agentrunner.errors import InfraError
from agentrunner.plans.plan import PlanTaskStatus
from agentrunner.storage.index import RunIndex
from tests.kit.plan_project import AT, PlanProject, Work, answer

START = {"a.txt": "one\n"}
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "events.md"
DOCUMENTED = REFERENCE.read_text("utf-8").partition("## Of a plan")[2].splitlines()
LINK = re.compile(r"\[note[^]]*\]\(([^)]*)\)")


def noted(plan: PlanProject) -> dict[str, str]:
    """All files of the folder of notes."""
    folder = plan.project.repo / ".agent-runner"
    return {file.name: file.read_text("utf-8") for file in folder.iterdir()}


def test_each_tasks_note_stands_beside_the_plans_once_however_often_it_is_run(
    tmp_path: Path,
) -> None:
    solve = "if grep -q '<<<<' a.txt; then printf 'x\\ny\\n' > a.txt; else echo {} > a.txt; fi"
    works = [Work(solve.format(name), f"grep -q {name} a.txt") for name in ("x", "y")]
    works[0].do = f"{works[0].do}; echo at $PWD"
    plan = PlanProject.make(tmp_path, works, START)
    seen_at_work: set[bool] = set()

    def heard(event: dict[str, object]) -> None:
        if event["event"] != "plan_result":
            seen_at_work.add((plan.project.repo / ".agent-runner").exists())

    plan.heard = heard
    assert plan.carry(parallel=2)["exit_code"] == 0, plan.events
    assert seen_at_work == {False}, "the checkout was touched while the plan was at work"
    (again,) = plan.told("plan_fixing")
    other = {"TASK-0001": "TASK-0002", "TASK-0002": "TASK-0001"}[again["task_id"]]
    first, last = f"task-{again['task_id']}.1.md", f"task-{again['task_id']}.md"
    notes = noted(plan)
    assert set(notes) == {"plan-make-it.md", f"task-{other}.md", first, last}
    told = notes["plan-make-it.md"]
    tree = told[: told.index("## Merged")]
    assert set(LINK.findall(tree)) == notes.keys() - {"plan-make-it.md"}
    assert f"[note of round 1]({first}), [note of round 2]({last})" in tree
    assert "a.txt" in told[told.index("## Merged") : told.index("## Cost")]
    # Nothing in them leads to the work trees, which are gone.
    work = str(plan.folder.work)
    assert not [name for name, text in notes.items() if work in text]
    assert "agentrunner plan status" in notes[last] and "agentrunner undo" not in notes[last]
    # `show` names the note where it is now.
    run = plan.standings()[again["task_id"]].run_id
    result = queries.show(plan.project.state_dir, run).as_dict()
    assert result["note"] == str(plan.project.repo / ".agent-runner" / last)
    assert (result["repo"], result["part_of"]) == (str(plan.project.repo), "plan")
    # It is found from the user's repository, the newest run of a task by the task's name.
    index = RunIndex(plan.project.state_dir)
    assert len(index.runs(plan.project.repo)) == 3
    assert index.find(again["task_id"], plan.project.repo) == run
    with pytest.raises(InfraError, match="is gone"):
        queries.undo(plan.project.state_dir, run)
    # Once more: the same files, and the same notes of tasks.
    plan.heard = lambda event: None
    assert plan.carry()["exit_code"] == 0
    tasks = notes.keys() - {"plan-make-it.md"}
    assert {name: noted(plan).get(name) for name in tasks} == {name: notes[name] for name in tasks}
    assert noted(plan).keys() == notes.keys()


def test_what_a_person_answered_stands_in_the_note_and_what_to_do_in_the_tasks(
    tmp_path: Path,
) -> None:
    plan = PlanProject.make(tmp_path, [Work("true")], START)
    assert plan.carry()["exit_code"] == 1
    task = noted(plan)["task-TASK-0001.md"]
    assert "agentrunner plan answer TASK-0001" in task and "agentrunner plan run" in task
    assert "agentrunner resume" not in task
    answer(plan.store, "TASK-0001", "Touch the file", AT)
    plan.carry()
    assert plan.statuses() == [PlanTaskStatus.FAILED]
    told = noted(plan)["plan-make-it.md"]
    assert "Answered about TASK-0001: Touch the file" in told
    assert "asked again" not in told
    assert noted(plan).keys() == {"plan-make-it.md", "task-TASK-0001.md"}


def test_notes_that_the_repository_cannot_take_stay_where_they_are(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)
    (plan.project.repo / ".agent-runner").write_text("mine")
    result = plan.carry()
    assert result["exit_code"] == 0
    assert plan.project.read(".agent-runner") == "mine"
    assert Path(result["note"]).parent == plan.folder.root
    assert LINK.findall(Path(result["note"]).read_text("utf-8")) == []
    assert [e["code"] for e in plan.told("warning")] == ["note-elsewhere"]


def test_what_it_prints_as_json_is_as_promised(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work(), Work("true"), Work(needs=[2])], START)
    result = plan.carry()
    assert tuple(result) == tuple(results.PlanResult.model_fields)
    assert all(one["event"] in events.PLAN_EVENTS or "run_id" in one for one in plan.events)
    own = [one["seq"] for one in plan.events if one["event"] not in events.RUN_EVENTS]
    assert own == list(range(1, len(own) + 1))
    schema = jsonschema.Draft202012Validator(events.event_schema())
    for event in plan.events:
        schema.validate(event)
    row = next(line for line in DOCUMENTED if line.startswith("| `plan_landed` "))
    own_keys = plan.told("plan_landed")[0].keys() - {"ts", "event", "seq"}
    assert all(f"`{name}`" in row for name in own_keys)


def own_fields(name: str) -> list[str]:
    """Fields that not every event of a plan has."""
    model = events.PLAN_EVENTS[name]
    return [field for field in model.model_fields if field not in events.PlanEvent.model_fields]


@pytest.mark.parametrize("name", events.PLAN_EVENTS)
def test_each_event_and_key_of_a_plan_is_documented(name: str) -> None:
    (row,) = [line for line in DOCUMENTED if line.startswith(f"| `{name}` ")]
    if name != "plan_result":
        assert all(f"`{field}`" in row for field in own_fields(name))
    else:
        keys = "".join(line.split("|")[1] for line in DOCUMENTED if line.startswith("| `"))
        assert all(f"`{key}`" in keys for key in tuple(results.PlanResult.model_fields))
