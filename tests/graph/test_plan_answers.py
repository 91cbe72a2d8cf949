"""What the questions of a plan name as the way on works."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentrunner.engine.queries import show
from agentrunner.engine.runs import accept
from agentrunner.plans.execution import scheduler, task_runner
from agentrunner.plans.execution.answers import TRIED_AGAIN
from agentrunner.plans.execution.executor import StoreInbox
from agentrunner.plans.execution.inherited_decisions import (
    answered_about_plan,
    decided_before,
)
from agentrunner.plans.execution.status import look
from agentrunner.plans.execution.task_runs import TaskRunStore
from agentrunner.plans.execution.waiting_questions import waiting_questions
from agentrunner.plans.plan import PlanTaskStatus
from agentrunner.storage.index import RunIndex
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.worker_ledger import Ledger
from tests.kit.bwrap import require_bwrap
from tests.kit.plan_project import AT, SCRIPT, PlanProject, Work, answer

START = {"a.txt": "one\n"}


@pytest.mark.whole
def test_what_needs_a_review_is_accepted_with_the_command_of_its_question(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work(criteria=["is fast"])], START)
    assert plan.carry()["exit_code"] == 3
    (asked,) = waiting_questions(plan.store)
    found = re.search(r'agentrunner accept (\S+) --reason "', asked.text)
    assert found, asked.text
    options = plan.order().options
    done = asyncio.run(accept(found[1], [], "I looked.", "hana", options)).as_dict()
    assert done["state"] == "COMPLETE"
    # Nobody is asked any more, also before the plan goes on.
    status = look(plan.project.state_dir, plan.folder, datetime.now(UTC))
    assert not status.questions
    inbox = StoreInbox(plan.store, TaskRunStore(plan.folder), plan.project.state_dir)
    assert inbox.answered({asked.id}) == {asked.id}
    assert plan.carry()["exit_code"] == 0
    assert plan.published("1.done") == "" and waiting_questions(plan.store) == []


def test_an_answer_about_work_that_does_not_land_is_what_its_next_round_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_runner, "MOST_FIXES", 0)
    works = [Work(f"grep -q '<<<<' a.txt || echo {n} > a.txt", f"grep -q {n} a.txt") for n in "xy"]
    plan = PlanProject.make(tmp_path, works, START)
    assert plan.carry()["exit_code"] == 3
    assert sorted(plan.statuses()) == [PlanTaskStatus.COMPLETE, PlanTaskStatus.NEEDS_REVIEW]
    (asked,) = waiting_questions(plan.store)
    assert "a.txt" in asked.text
    # Until somebody answers, nothing is tried and nothing asked anew.
    plan.events.clear()
    assert plan.carry()["exit_code"] == 3
    assert plan.told("run_started") == plan.told("plan_question") == []
    assert [q.id for q in waiting_questions(plan.store)] == [asked.id]
    answer(plan.store, asked.task_id, "Both:\nDO: printf 'x\\ny\\n' > a.txt", AT)
    monkeypatch.undo()
    assert plan.carry()["exit_code"] == 0, plan.events
    assert plan.published("a.txt") == "x\ny\n"
    # What the person said is a record of the run that followed, and in its prompts.
    turn = TaskRunStore(plan.folder).latest(asked.task_id)
    assert turn is not None
    result = show(plan.project.state_dir, turn.run_id).as_dict()
    (kept,) = result["people"]["decisions"]
    assert kept["text"].startswith("Both:") and "a.txt" in kept["asked"]
    (order,) = (plan.project.state_dir / "runs" / turn.run_id / "prompts").iterdir()
    assert "> Both:" in order.read_text("utf-8")


def test_an_answer_to_a_task_s_run_is_kept_with_it_and_goes_on_to_its_next_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_runner, "MOST_FIXES", 0)
    plan = PlanProject.make(tmp_path, [Work("true")], START)
    assert plan.carry()["exit_code"] == 1
    (asked,) = waiting_questions(plan.store)
    answer(plan.store, asked.task_id, "no, blue", AT)
    plan.carry()
    turn = TaskRunStore(plan.folder).latest(asked.task_id)
    assert turn is not None
    (kept,) = show(plan.project.state_dir, turn.run_id).as_dict()["people"]["decisions"]
    assert (kept["text"], kept["kind"]) == ("no, blue", "message")
    assert kept["asked"].startswith("Failed")
    later = replace(turn, number=turn.number + 1, words="and large", words_for="How large?")
    rounds = [turn, later]
    people = asyncio.run(decided_before(plan.project.state_dir, rounds, later, AT))
    assert people is not None
    assert [one.text for one in people.recent] == ["no, blue", "and large"]


def test_what_people_answered_about_the_plan_is_in_every_task_that_starts_after_it(
    tmp_path: Path,
) -> None:
    plan = PlanProject.make(tmp_path, [Work(), Work(needs=[1])], START)
    first = plan.store.ask("Are prices net?", AT)
    plan.store.answer(first, "no VAT, prices are net", AT)
    later = plan.store.ask("Which currency?", AT)
    plan.store.ask("Is there a discount?", AT)  # nobody has answered it

    def while_it_runs(event: dict[str, Any]) -> None:
        if event["event"] == "plan_landed" and event["task_id"] == "TASK-0001":
            plan.store.answer(later, "only yen", AT)

    plan.heard = while_it_runs
    assert plan.carry()["exit_code"] == 0, plan.events
    known = {
        "TASK-0001": [("Are prices net?", "no VAT, prices are net")],
        "TASK-0002": [
            ("Are prices net?", "no VAT, prices are net"),
            ("Which currency?", "only yen"),
        ],
    }
    for task_id, decisions in known.items():
        turn = TaskRunStore(plan.folder).latest(task_id)
        assert turn is not None
        people = show(plan.project.state_dir, turn.run_id).as_dict()["people"]
        assert [(one["asked"], one["text"]) for one in people["decisions"]] == decisions
        (order,) = (plan.project.state_dir / "runs" / turn.run_id / "prompts").iterdir()
        assert all(text in order.read_text("utf-8") for _, text in decisions)
        (note,) = (plan.project.repo / ".agent-runner").glob(f"*{task_id}*.md")
        assert all(text in note.read_text("utf-8") for _, text in decisions)
        # Another run of the task has each of them once.
        again = replace(turn, number=turn.number + 1)
        answers = answered_about_plan(plan.store)
        kept = asyncio.run(
            decided_before(plan.project.state_dir, [turn, again], again, AT, answers)
        )
        assert kept is not None
        assert [one.text for one in kept.recent] == ["no VAT, prices are net", "only yen"]


@pytest.mark.whole
def test_a_set_up_that_fails_is_asked_about_once_and_the_next_time_tried_again(
    tmp_path: Path,
) -> None:
    plan = PlanProject.make(tmp_path, [Work(), Work(), Work()], START)
    broken = plan.settings().model_copy(update={"setup": "echo unreachable; test -e ready"})
    assert plan.carry(settings=broken, parallel=1)["exit_code"] == 4
    assert plan.statuses() == ["BLOCKED", "PENDING", "PENDING"]
    (asked,) = plan.told("plan_question")
    assert "The set-up command fails" in asked["text"] and "unreachable" in asked["text"]
    assert not [e for e in plan.told("plan_task") if e["status"] == "RETRY_WAIT"]

    plan.events.clear()
    assert plan.carry(settings=broken, parallel=3)["exit_code"] == 4
    (started,) = plan.told("plan_started")
    assert started["waiting"] == []
    (again,) = plan.told("plan_question")
    assert (
        [q.id for q in waiting_questions(plan.store)] == [again["question"]] != [asked["question"]]
    )

    plan.events.clear()
    mended = plan.settings().model_copy(update={"setup": "true"})
    assert plan.carry(settings=mended)["exit_code"] == 0, plan.events
    assert waiting_questions(plan.store) == []


def test_a_commit_that_repairs_the_repository_reaches_a_task_that_has_not_started(
    tmp_path: Path,
) -> None:
    plan = PlanProject.make(tmp_path, [Work(), Work()], START)
    settings = plan.settings().model_copy(update={"setup": "test -e ready"})
    assert plan.carry(settings=settings, parallel=1)["exit_code"] == 4
    assert plan.statuses() == ["BLOCKED", "PENDING"]
    (before,) = (one.run_id for one in TaskRunStore(plan.folder).all())
    (plan.project.repo / "ready").write_text("", "utf-8")
    plan.project.git("add", "-A")
    plan.project.git("commit", "-qm", "what the set-up needs")
    assert plan.carry(settings=settings)["exit_code"] == 0, plan.events
    assert plan.statuses() == ["COMPLETE", "COMPLETE"]
    assert waiting_questions(plan.store) == []
    # The run that did not start is none of the task's any more.
    assert before not in {row.run_id for row in RunIndex(plan.project.state_dir).runs()}


def test_a_run_whose_worker_is_at_work_is_not_begun_anew(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)
    settings = plan.settings().model_copy(update={"setup": "test -e ready"})
    assert plan.carry(settings=settings)["exit_code"] == 4
    (before,) = (one.run_id for one in TaskRunStore(plan.folder).all())
    (plan.project.repo / "ready").write_text("", "utf-8")
    plan.project.git("add", "-A")
    plan.project.git("commit", "-qm", "what the set-up needs")
    run = RunFolder.open(plan.project.state_dir, before)
    with closing(Ledger(run).claim(f"{before}-1")) as claim:
        (claim.dir / "started.json").write_text("{}", "utf-8")
        plan.carry(settings=settings)
    assert [one.run_id for one in TaskRunStore(plan.folder).all()] == [before]


def test_a_script_of_the_worker_that_was_not_committed_reaches_its_task(
    tmp_path: Path,
) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)
    settings = plan.settings()
    overrides = {**settings.overrides, "command": "runner.worker.command=sh agent.sh"}
    settings = settings.model_copy(update={"overrides": overrides})
    assert plan.carry(settings=settings)["exit_code"] == 4
    (asked,) = waiting_questions(plan.store)
    assert "agent.sh is not there" in asked.text and "what is committed" in asked.text
    (plan.project.repo / "agent.sh").write_text(SCRIPT, "utf-8")
    plan.project.git("add", "-A")
    plan.project.git("commit", "-qm", "the worker")
    assert plan.carry(settings=settings)["exit_code"] == 0, plan.events
    assert plan.statuses() == ["COMPLETE"] and waiting_questions(plan.store) == []


@pytest.mark.whole
def test_how_a_question_came_to_need_no_answer_is_nobody_s_hint(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work("true")], START)
    assert plan.carry()["exit_code"] == 1
    (asked,) = waiting_questions(plan.store)
    answer(plan.store, str(asked.id), TRIED_AGAIN, AT)  # and then the process was killed
    plan.events.clear()
    assert plan.carry()["exit_code"] == 1
    assert plan.told("run_resumed") and len(waiting_questions(plan.store)) == 1
    logs = (plan.project.state_dir / "runs").rglob("*.jsonl")
    assert not [log for log in logs if TRIED_AGAIN in log.read_text()]


def test_a_worker_that_the_sandbox_lacks_is_asked_about_at_once(tmp_path: Path) -> None:
    require_bwrap()
    script = tmp_path / "outside.sh"
    script.write_text("true\n", "utf-8")
    plan = PlanProject.make(tmp_path / "plan", [Work(), Work()], START)
    settings = plan.settings(sandbox="bwrap")
    overrides = {**settings.overrides, "command": f"runner.worker.command=[sh, {script}]"}
    broken = settings.model_copy(update={"overrides": overrides})
    assert plan.carry(settings=broken, parallel=1)["exit_code"] == 4
    asked = plan.told("plan_question")
    assert asked and "outside.sh" in asked[0]["text"] and "try: " in asked[0]["text"]
    assert not [e for e in plan.told("plan_task") if e["status"] == "RETRY_WAIT"]


def test_a_script_that_is_not_committed_is_named_as_it_is_in_the_repository(
    tmp_path: Path,
) -> None:
    """Its work tree is removed with the task: nobody can put the script there."""
    plan = PlanProject.make(tmp_path, [Work()], START)
    settings = plan.settings()
    overrides = {**settings.overrides, "command": "runner.worker.command=[sh, tools/agent.sh]"}
    assert plan.carry(settings=settings.model_copy(update={"overrides": overrides}))["exit_code"]
    (asked,) = waiting_questions(plan.store)
    assert "commit tools/agent.sh: a task of a plan" in asked.text
    assert str(plan.folder.work) not in asked.text


NEEDS_A_FILE = "test ! -e needed.txt || echo two >> a.txt"


def commit_what_is_needed(plan: PlanProject) -> None:
    plan.project.write({"needed.txt": ""})
    plan.project.git("add", "needed.txt")
    plan.project.git("commit", "-qm", "What was missing")


@pytest.mark.parametrize("words", ["It is there now.", ""])
def test_a_task_tried_again_begins_from_a_commit_made_since_where_nothing_is_lost(
    words: str, tmp_path: Path
) -> None:
    """With an answer, or named by --only, which asks for no further answer."""
    plan = PlanProject.make(tmp_path, [Work(NEEDS_A_FILE, "grep -q two a.txt")], START)
    assert plan.carry()["exit_code"] != 0
    (asked,) = waiting_questions(plan.store)
    assert "afresh" not in asked.text
    commit_what_is_needed(plan)
    if words:
        answer(plan.store, asked.task_id, words, AT)
    only = () if words else (asked.task_id,)
    assert plan.carry(only=only)["exit_code"] == 0, plan.events
    assert plan.published("a.txt") == "one\ntwo\n" and not waiting_questions(plan.store)
    turn = TaskRunStore(plan.folder).latest(asked.task_id)
    assert turn is not None and (turn.number, turn.words) == (2, words)


def test_a_worker_that_could_not_start_is_tried_again_with_what_was_committed(
    tmp_path: Path,
) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)
    settings = plan.settings()
    overrides = {**settings.overrides, "command": 'runner.worker.command="true && exec ./agent.sh"'}
    settings = settings.model_copy(update={"overrides": overrides})
    assert plan.carry(settings=settings)["exit_code"] == 4
    (asked,) = waiting_questions(plan.store)
    assert (
        "its command fails: exit code 127" in asked.text and len(plan.told("worker_started")) == 1
    )
    plan.project.write({"agent.sh": "#!/bin/sh\ntouch 1.done\n"})
    (plan.project.repo / "agent.sh").chmod(0o755)
    plan.project.git("add", "agent.sh")
    plan.project.git("commit", "-qm", "The agent")
    answer(plan.store, asked.task_id, "yes", AT)
    assert plan.carry(settings=settings)["exit_code"] == 0, plan.events
    assert plan.published("1.done") == ""


HOLDS = """
import sys
from pathlib import Path
from agentrunner.storage.locks import me, run_lock
from agentrunner.storage.run_folder import RunFolder
folder = RunFolder.open(Path(sys.argv[1]), sys.argv[2])
run_lock(folder).acquire(me(folder.run_id, ""))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_elsewhere(plan: PlanProject, run_id: str) -> Iterator[None]:
    """Another process drives this run, until a task of the plan waits for it."""
    command = [sys.executable, "-c", HOLDS, str(plan.project.state_dir), run_id]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"

        def hear(event: dict[str, Any]) -> None:
            if event.get("status") == "RETRY_WAIT" and process.poll() is None:
                assert [one.run_id for one in TaskRunStore(plan.folder).all()] == [run_id]
                process.communicate("")

        plan.heard = hear
        yield
        assert process.poll() is not None


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot go on now is tried again at once, and once only where that is a failure."""
    monkeypatch.setattr(scheduler, "BACK_OFF_SEC", (0.01,))


@pytest.mark.usefixtures("at_once")
def test_a_run_that_is_gone_on_with_elsewhere_gets_no_second_one(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work(NEEDS_A_FILE, "grep -q two a.txt")], START)
    assert plan.carry()["exit_code"] != 0
    (asked,) = waiting_questions(plan.store)
    commit_what_is_needed(plan)
    answer(plan.store, asked.task_id, "It is there now.", AT)
    (before,) = TaskRunStore(plan.folder).all()
    with held_elsewhere(plan, before.run_id):
        assert plan.carry()["exit_code"] == 0, plan.events


@pytest.mark.usefixtures("at_once")
def test_a_task_that_had_not_started_begins_anew_when_it_is_free_elsewhere(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)
    settings = plan.settings().model_copy(update={"setup": "test -e ready"})
    assert plan.carry(settings=settings)["exit_code"] == 4
    (before,) = TaskRunStore(plan.folder).all()
    plan.project.write({"ready": ""})
    plan.project.git("add", "-A")
    plan.project.git("commit", "-qm", "what the set-up needs")
    with held_elsewhere(plan, before.run_id):
        assert plan.carry(settings=settings)["exit_code"] == 0, plan.events
    assert before.run_id not in {row.run_id for row in RunIndex(plan.project.state_dir).runs()}


def test_where_something_would_be_lost_the_question_says_how_to_begin_afresh(
    tmp_path: Path,
) -> None:
    works = [Work(f"echo x >> b.txt; {NEEDS_A_FILE}", "grep -q two a.txt")]
    plan = PlanProject.make(tmp_path, works, START)
    assert plan.carry()["exit_code"] != 0
    (asked,) = waiting_questions(plan.store)
    commit_what_is_needed(plan)
    answer(plan.store, asked.task_id, "It is there now.", AT)
    assert plan.carry()["exit_code"] != 0
    (asked,) = waiting_questions(plan.store)
    assert "`afresh: WORDS`" in asked.text
    answer(plan.store, asked.task_id, "Afresh: look for it.", AT)
    assert plan.carry()["exit_code"] == 0, plan.events
    assert plan.published("b.txt") == "x\n"
    turn = TaskRunStore(plan.folder).latest(asked.task_id)
    assert turn is not None and (turn.number, turn.words) == (2, "look for it.")
