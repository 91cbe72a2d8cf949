"""Small parts of decisions: the state a worker runs in, questions, remarks, claims."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentrunner.execution.assessing import assessment_of, without_doubt
from agentrunner.execution.questions import answered, question, remark, subject_of
from agentrunner.nodes.decide import _state_for_worker
from agentrunner.protocol import parse_reply
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import Answer
from agentrunner.state.run_state import (
    Assessment,
    CheckOutcome,
    Criterion,
    Evidence,
    RunInfo,
    TaskContext,
    TestOutcome,
)
from agentrunner.state.worker_runs import Outcome, WorkerRun

RUN = RunInfo(run_id="probe-0000", task_id="probe", title="t", repo="/r")
RED = Evidence(tree="t", test=TestOutcome(command="x", exit_code=1))
GREEN = Evidence(tree="t", test=TestOutcome(command="x", exit_code=0))
CHECK = CheckOutcome(criterion_id="AC-1", what="x", outcome="failed")
RED_CHECK = Evidence(tree="t", checks=[CHECK])
UNSURE = Evidence(tree="t", checks=[CHECK.model_copy(update={"outcome": "not_run"})])


def worker_run(outcome: Outcome) -> WorkerRun:
    return WorkerRun(worker_run_id="1-001", worker="command", loop=0, outcome=outcome)


@pytest.mark.parametrize(
    ("evidence", "outcome", "state"),
    [
        (GREEN, "completed", TaskState.RUNNING),
        (UNSURE, "completed", TaskState.RUNNING),
        (None, None, TaskState.RUNNING),
        (RED, "completed", TaskState.FIXING),
        (RED_CHECK, "completed", TaskState.FIXING),
        (GREEN, "failed", TaskState.FIXING),
        (GREEN, "timeout", TaskState.FIXING),
        (GREEN, "lost", TaskState.FIXING),
        (GREEN, "interrupted", TaskState.FIXING),
    ],
)
def test_red_evidence_or_a_broken_worker_make_the_next_round_a_fix(
    evidence: Evidence | None, outcome: Outcome | None, state: TaskState
) -> None:
    recent = [worker_run(outcome)] if outcome else []
    context = TaskContext(state=TaskState.VALIDATING, evidence=evidence, recent=recent)
    assert _state_for_worker(context) == state


@pytest.mark.parametrize("state", [TaskState.RUNNING, TaskState.FIXING])
def test_a_worker_ordered_in_between_leaves_the_state(state: TaskState) -> None:
    assert _state_for_worker(TaskContext(state=state, evidence=RED)) == state


# -- questions ----------------------------------------------------------------------------------


def asked(subject: dict[str, Any], run: RunInfo = RUN) -> str:
    state = TaskContext(run=run, state=TaskState.RUNNING)
    return question("worker", "Start?", subject, state).id


def test_a_question_is_named_by_its_subject() -> None:
    subject = {"order": {"prompt": "a", "flags": ["-x"]}}
    same = json.loads(json.dumps(dict(reversed(subject.items()))))
    assert asked(subject) == asked(same)
    assert len(asked(subject)) == 12
    assert asked({"order": {"prompt": "b", "flags": ["-x"]}}) != asked(subject)
    assert asked(subject, RUN.model_copy(update={"run_id": "probe-0001"})) != asked(subject)


def test_the_subject_comes_back_as_it_was() -> None:
    subject = {"text": "日本 <b> \u202e", "n": [1, {"a": None}]}
    state = TaskContext(run=RUN, state=TaskState.RUNNING)
    state["question"] = question("plan", "?", subject, state)
    assert subject_of(state) == subject
    assert subject_of(TaskContext()) == {}


def test_an_answer_is_used_by_the_node_of_its_kind_only() -> None:
    answer = Answer(id="x", kind="worker", decision="reject")
    state = TaskContext(answer=answer)
    assert answered(state, "plan", "worker") is answer
    assert answered(state, "plan") is None
    assert answered(TaskContext(), "plan") is None


def test_remarks_are_the_last_five_and_none_is_endless() -> None:
    state = TaskContext(remarks=[str(n) for n in range(5)])
    assert remark(state, "x" * 9000) == ["1", "2", "3", "4", "x" * 4000]


# -- claims -------------------------------------------------------------------------------------


def claim(**payload: Any) -> Assessment:
    reply = {"type": "completion_assessment", "version": 1, "payload": {"summary": "s", **payload}}
    message = parse_reply(json.dumps(reply), "completion_assessment")
    criteria = [Criterion(id=f"AC-{n}", description="x", critical=n < 3) for n in (1, 2, 3)]
    return assessment_of(message, criteria, "t")


def test_the_more_negative_word_wins() -> None:
    both = claim(
        all_criteria_satisfied=True,
        by_criterion=[{"id": "AC-1", "status": "failed"}, {"id": "AC-2", "status": "passed"}],
        details={"passed_criteria": ["AC-1", "AC-2"]},
    )
    assert (both.failed, both.passed) == (["AC-1"], ["AC-2"])
    assert not both.satisfied


def test_all_means_all_where_none_is_named() -> None:
    assert claim(all_criteria_satisfied=True).passed == ["AC-1", "AC-2", "AC-3"]
    assert claim(all_criteria_satisfied=False).passed == []


def test_of_a_contradiction_the_no_counts_for_what_rests_on_the_judgement() -> None:
    verdicts = [{"id": f"AC-{n}", "status": "passed"} for n in (1, 2, 3)]
    payload = {"summary": "s", "all_criteria_satisfied": False, "by_criterion": verdicts}
    reply = {"type": "completion_assessment", "version": 1, "payload": payload}
    message = parse_reply(json.dumps(reply), "completion_assessment")
    open_ = [Criterion(id=f"AC-{n}", description="x", critical=n < 3) for n in (1, 2, 3)]
    vote = assessment_of(message, open_, "t")
    torn = without_doubt(vote, message, open_)
    assert (torn.satisfied, torn.passed, torn.failed) == (False, [], ["AC-1", "AC-2", "AC-3"])
    proven = [one.model_copy(update={"status": "passed"}) for one in open_]
    assert without_doubt(vote, message, proven) == vote
    (one_more,) = [Criterion(id="AC-4", description="x")]
    assert without_doubt(vote, message, [*open_, one_more]) == vote  # of that one it says nothing


def test_criteria_that_nobody_asked_about_are_left_out() -> None:
    named = claim(all_criteria_satisfied=True, by_criterion=[{"id": "AC-9", "status": "passed"}])
    assert "AC-9" not in named.passed
