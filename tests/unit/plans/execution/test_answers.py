"""What waits for a person, and what an answer means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agentrunner.config.budget import BudgetSpec
from agentrunner.errors import UsageError
from agentrunner.plans.execution.answers import (
    afresh,
    answer_of,
    asked_text,
    ended_text,
    unfit_text,
)
from agentrunner.plans.execution.plan_budget import Spending
from agentrunner.plans.execution.task_runs import TaskRun, TaskRunStore
from agentrunner.plans.execution.waiting_questions import waiting_questions
from agentrunner.plans.store import BUDGET, PlanStore
from agentrunner.results import CriterionResult, InboxItem, Result, TestSummary
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import Question
from agentrunner.storage.index import RunIndex, RunRow
from agentrunner.storage.plan_folder import plan_folder
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from tests.kit.plan_project import Work, answer, plan_of

AT = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "decision", "reason"),
    [
        ("yes", "approve", ""),
        (" OK.", "approve", ""),
        ("はい", "approve", ""),
        ("no: too large", "reject", "too large"),
        ("nothing of the kind", "reject", "nothing of the kind"),
        ("no", "reject", "no"),
    ],
)
def test_an_approval_is_yes_or_no_and_why(text: str, decision: str, reason: str) -> None:
    question = Question(id="a1", kind="plan", text="?", subject="{}", state=TaskState.PLANNING)
    found = answer_of(question, text)
    assert (found.id, found.decision, found.text) == ("a1", decision, reason)


def test_other_questions_are_answered_in_words() -> None:
    question = Question(id="a1", kind="budget", text="?", subject="{}", state=TaskState.RUNNING)
    assert (
        answer_of(question, "yes").text == "yes" and answer_of(question, "yes").decision == "answer"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("afresh", ""),
        (" Afresh\n", ""),
        ("AFRESH : look\nfor it. ", "look\nfor it."),
        ("afresh is not what I want", None),
        ("afresh, please", None),
        ("do it afresh", None),
        ("afreshly: no", None),
    ],
)
def test_a_task_begins_afresh_by_that_word_alone_or_with_a_remark(
    text: str, words: str | None
) -> None:
    assert afresh(text) == words


def asking(folder: Path) -> PlanStore:
    """A plan of two tasks that ask, beside one that is gone, its budget and its planner."""
    store = PlanStore(folder / "plan.sqlite")
    plan = plan_of([Work(), Work()])
    store.save(plan, at=AT, kind="decompose", author="hana", message="make it")
    for about in ("TASK-0001", "TASK-0002", "TASK-0009", BUDGET, ""):
        store.ask(f"{about}?", AT, about)
    return store


def test_what_waits_is_about_the_plan_its_budget_or_a_task_that_is_in_it(tmp_path: Path) -> None:
    folder = plan_folder(tmp_path, Path("/repo"))
    folder.make()
    store = asking(folder.root)
    assert [q.id for q in waiting_questions(store)] == [1, 2, 4, 5]
    TaskRunStore(folder).save(TaskRun("TASK-0001", 1, run_id="r1", question=1))
    RunFolder.create(tmp_path, "r1")
    row = RunRow("r1", "TASK-0001", "1", "/repo", "COMPLETE", started_at=AT, finished_at=AT)
    RunIndex(tmp_path).record(row)  # a person has accepted it by hand
    assert [q.id for q in waiting_questions(store)] == [2, 4, 5]


def test_a_question_is_answered_by_its_task_or_its_number(tmp_path: Path) -> None:
    store = asking(tmp_path)
    assert answer(store, "task-0002", "so", AT).id == 2
    assert answer(store, "1", "so", AT).id == 1
    for name in ("TASK-0001", "99", "3", ""):
        with pytest.raises(UsageError) as caught:
            answer(store, name, "so", AT)
        assert caught.value.code == "unknown-question"


def test_the_next_run_has_what_is_left_of_the_budget(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "a-1", Path("/nowhere"))
    log = RunLog(folder.log_file)
    for number, (tokens, usd) in enumerate(((300, 1.25), (200, 0.5))):
        call = {"usage": {"input_tokens": tokens}, "usd": usd, "known": "counted"}
        log.append("meta_call", str(number), call, attempt=1, loop=0, at=AT)

    def spending(**limits: float) -> Spending:
        return Spending(tmp_path, BudgetSpec.model_validate(limits), ["a-1", "gone-1"])

    left = spending(usd=2, tokens=400).left(BudgetSpec())
    assert (left.usd, left.tokens) == (0.25, 0)
    assert spending(usd=2, tokens=400).reached == "tokens"
    assert spending(usd=1.75).reached == "usd"
    assert spending().reached == ""


def made(model: type[BaseModel], **fields: Any) -> BaseModel:
    """An entry of a result with these fields alone."""
    return model.model_construct(**fields)


def ended(state: str, **more: Any) -> str:
    result = Result(
        exit_code=1, run_id="TASK-0001-a1b2", text="", reason="loop_limit", missing=["AC-1"],
        state=TaskState(state),
    )  # fmt: skip
    return ended_text(result.model_copy(update=more))


def test_a_question_names_the_ways_on() -> None:
    assert "agentrunner accept TASK-0001-a1b2 --unchanged --reason" in ended("NEEDS_REVIEW")
    review = ended("NEEDS_REVIEW", changed_files=["a.py"])
    assert "- AC-1" in review and "agentrunner accept TASK-0001-a1b2 --reason" in review
    assert "accept" not in ended("FAILED")
    red = made(CriterionResult, id="AC-1", status="failed")
    assert "accept" not in ended("NEEDS_REVIEW", acceptance_criteria=[red])
    known = made(TestSummary, exit_code=1, failed=1, known_red=["a::b"])
    assert "accept" in ended("NEEDS_REVIEW", test=known)
    broken = made(TestSummary, exit_code=2, failed=None, known_red=[])
    assert "accept" not in ended("NEEDS_REVIEW", test=broken)
    waiting = InboxItem(id="a1", kind="ask_human", text="Which?", options=["a", "b"])
    assert asked_text(waiting) == "Which?\n1. a\n2. b"
    approval = waiting.model_copy(update={"kind": "complete"})
    assert asked_text(approval).endswith("Answer yes, or no and why.")
    for text, ended_so in (
        ("Accept it as complete? `x` passes now", "."),
        ("Start it (again)", "."),
        ("So?", ""),
    ):
        asked = approval.model_copy(update={"text": text, "options": []})
        assert asked_text(asked) == f"{text}{ended_so}\nAnswer yes, or no and why."
    assert "change it" in unfit_text(UsageError("No.", remedy="change it"))
