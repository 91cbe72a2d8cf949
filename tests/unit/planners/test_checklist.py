"""The planner without a model: only what is run decides."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.config.spec import Check, CriterionSpec, TaskSpec
from agentrunner.planners.base import PlannerRequest
from agentrunner.planners.checklist import ChecklistPlanner
from agentrunner.protocol import CompletionAssessment, parse_reply
from agentrunner.protocol.message import MessageType
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.run_state import (
    CheckOutcome,
    Counters,
    Criterion,
    Evidence,
    Finding,
    RedTest,
    TaskContext,
    TestOutcome,
)
from agentrunner.state.summary import REFUSED, summarize
from agentrunner.state.worker_runs import WorkerRun
from tests.kit.fault_server import MakeSpec

CHECK = Check(kind="command", run="make check")
WITH_CHECK = Criterion(id="AC-1", description="It works.", check=CHECK)
WITHOUT = Criterion(id="AC-2", description="It is pretty.")
OPTIONAL = Criterion(id="AC-3", description="It is quick.", check=CHECK, critical=False)
WHOLE_TEST = Criterion(id="AC-1", description="Tests pass.", check=Check(kind="test"))
UNKNOWN = Criterion(id="AC-4", description="x", check=Check(kind="test", name="it"))
RUN = WorkerRun(worker_run_id="w1", worker="codex-cli", loop=0, outcome="completed")


def outcome(criterion: Criterion, ended: str) -> CheckOutcome:
    return CheckOutcome.model_validate(
        {
            "criterion_id": criterion.id,
            "what": "make check",
            "outcome": ended,
            "exit_code": 0 if ended == "passed" else 2,
            "detail": "2 targets failed" if ended == "failed" else "",
        }
    )


def suite(exit_code: int) -> TestOutcome:
    failing = ["test_hello"] if exit_code else []
    return TestOutcome(
        command="pytest -q", exit_code=exit_code, failing=failing, tail="E assert 1 == 2\n",
        red=[RedTest(name="test_bye", file="a.py", line=3, message="assert 3 == 4")] * exit_code,
    )  # fmt: skip


def state(criteria: list[Criterion], evidence: Evidence | None, **more: Any) -> TaskContext:
    base: TaskContext = {
        "state": TaskState.VALIDATING,
        "counters": Counters(worker_runs=1),
        "criteria": criteria,
        "evidence": evidence,
        "recent": [RUN],
    }
    return {**base, **more}  # type: ignore[typeddict-item]


async def ask(spec: TaskSpec, type_: MessageType, context: TaskContext) -> Any:
    request = PlannerRequest(
        type=type_, messages=(), schema={}, facts=summarize(context, spec), call_number=0
    )
    reply = await ChecklistPlanner(spec, {}).complete(request)
    parse_reply(reply.text, type_, finish_reason=reply.finish_reason)
    return json.loads(reply.text)["payload"]


async def action(spec: TaskSpec, context: TaskContext) -> str:
    return str((await ask(spec, "next_action", context))["decision"]["action"])


# -- plan ---------------------------------------------------------------------------------------


async def test_the_plan_adds_nothing_to_the_tasks_criteria(make_spec: MakeSpec) -> None:
    own = [
        CriterionSpec(id="AC-1", description="It works."),
        CriterionSpec(id="B", description="x"),
    ]
    spec = make_spec(kind="checklist", criteria=own, test="pytest -q")
    assert await ask(spec, "plan_task", {}) == {
        "acceptance_criteria": [
            {"id": "AC-1", "description": "It works."},
            {"id": "B", "description": "x"},
        ]
    }


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The tests pass: `pytest -q`."),
        ("ja", "テストコマンド `pytest -q` が成功する。"),
    ],
)
async def test_with_only_a_test_command_that_is_the_criterion(
    make_spec: MakeSpec, language: str, text: str
) -> None:
    spec = make_spec(kind="checklist", test="pytest -q", language=language)
    assert await ask(spec, "plan_task", {}) == {
        "acceptance_criteria": [{"id": "AC-1", "description": text, "check": {"kind": "test"}}]
    }


async def test_with_nothing_there_is_one_criterion_that_nothing_decides(
    make_spec: MakeSpec,
) -> None:
    plan = await ask(make_spec(kind="checklist"), "plan_task", {})
    (criterion,) = plan["acceptance_criteria"]
    assert "check" not in criterion and "Hello" in criterion["description"]


# -- next action --------------------------------------------------------------------------------


async def test_the_first_run_gets_the_requirements(make_spec: MakeSpec) -> None:
    spec = make_spec(kind="checklist", worker="command", test="pytest -q", prd="Say {{ hello }}.")
    context: TaskContext = {"state": TaskState.RUNNING, "criteria": [WHOLE_TEST]}
    payload = await ask(spec, "next_action", context)
    assert payload["decision"] == {"action": "run_worker", "reason": "Nothing was done yet."}
    call = payload["worker_call"]
    assert (call["worker_type"], call["mode"]) == ("command", "exec")
    assert "Say {{ hello }}." in call["prompt"] and "Hello" in call["prompt"]
    assert "not right yet" not in call["prompt"]
    assert payload["used_patterns"] == ["implement_feature", "run_all_checks"]


RED_OR_MISSING = [
    ("red check", [WITH_CHECK], Evidence(tree="t", checks=[outcome(WITH_CHECK, "failed")])),
    ("no check yet", [WITH_CHECK], Evidence(tree="t")),
    ("red test", [WHOLE_TEST], Evidence(tree="t", test=suite(1))),
    ("no evidence", [WHOLE_TEST], None),
    (
        "green check, red test",
        [WITH_CHECK],
        Evidence(tree="t", test=suite(1), checks=[outcome(WITH_CHECK, "passed")]),
    ),
]


@pytest.mark.parametrize(
    ("criteria", "evidence"),
    [case[1:] for case in RED_OR_MISSING],
    ids=[case[0] for case in RED_OR_MISSING],
)
async def test_red_or_missing_is_work(
    make_spec: MakeSpec, criteria: list[Criterion], evidence: Evidence | None
) -> None:
    spec = make_spec(kind="checklist", test="pytest -q")
    assert await action(spec, state(criteria, evidence)) == "run_worker"


async def test_all_green_is_a_claim(make_spec: MakeSpec) -> None:
    evidence = Evidence(tree="t", test=suite(0), checks=[outcome(WITH_CHECK, "passed")])
    spec = make_spec(kind="checklist", test="pytest -q")
    assert await action(spec, state([WITH_CHECK, WITHOUT], evidence)) == "mark_complete"


async def test_what_is_optional_does_not_hold_up(make_spec: MakeSpec) -> None:
    checks = [outcome(WITH_CHECK, "passed"), outcome(OPTIONAL, "failed")]
    context = state([WITH_CHECK, OPTIONAL], Evidence(tree="t", checks=checks))
    assert await action(make_spec(kind="checklist"), context) == "mark_complete"


async def test_a_check_that_runs_nothing_is_no_work(make_spec: MakeSpec) -> None:
    checks = [outcome(WITH_CHECK, "passed"), outcome(UNKNOWN, "not_run")]
    context = state([WITH_CHECK, UNKNOWN], Evidence(tree="t", checks=checks))
    assert await action(make_spec(kind="checklist"), context) == "mark_complete"
    payload = await ask(make_spec(kind="checklist"), "completion_assessment", context)
    assert [verdict["id"] for verdict in payload["by_criterion"]] == ["AC-1"]
    whole = state([WITH_CHECK, WHOLE_TEST.model_copy(update={"id": "AC-9"})],
                  Evidence(tree="t", checks=checks[:1]))  # fmt: skip
    assert await action(make_spec(kind="checklist"), whole) == "mark_complete"


@pytest.mark.parametrize(
    ("evidence", "remarks", "chosen"),
    [
        ({}, [], "mark_complete"),
        ({}, ["New from a person: a message; it stands under `people`."], "run_worker"),
        ({"proof": []}, [], "run_worker"),
        ({"findings": [Finding(code="tests_changed", message="m")]}, [], "run_worker"),
        ({"test": suite(1)}, [], "run_worker"),
    ],
    ids=["nothing else", "a person's words", "no proof", "a finding", "tests red"],
)
async def test_what_no_check_decides_is_for_a_person(
    make_spec: MakeSpec, evidence: dict[str, Any], remarks: list[str], chosen: str
) -> None:
    seen: dict[str, Any] = {"test": suite(0), "checks": [outcome(WITH_CHECK, "passed")]}
    found = Evidence(tree="t", **{**seen, "proof": ["AC-1 failed before"], **evidence})
    refused = f"{REFUSED}AC-2 is not proven yet"
    context = state(
        [WITH_CHECK, WITHOUT], found, state=TaskState.FIXING, remarks=[*remarks, refused]
    )
    payload = await ask(make_spec(kind="checklist", test="pytest -q"), "next_action", context)
    assert payload["decision"]["action"] == chosen
    assert ("AC-2" in payload["decision"]["reason"]) is (chosen == "mark_complete")


@pytest.mark.parametrize("runs", [0, 1, 5])
async def test_without_anything_to_execute_it_never_claims(make_spec: MakeSpec, runs: int) -> None:
    accepted = WITHOUT.model_copy(update={"status": "passed", "evidence": "judged"})
    context = state([accepted], Evidence(tree="t"), counters=Counters(worker_runs=runs))
    assert await action(make_spec(kind="checklist"), context) == "run_worker"


async def test_the_next_run_gets_what_is_red(make_spec: MakeSpec) -> None:
    evidence = Evidence(tree="t", test=suite(1), checks=[outcome(WITH_CHECK, "failed")])
    context = state([WITH_CHECK], evidence, remarks=["Keep the greeting short."])
    spec = make_spec(kind="checklist", test="pytest -q")
    payload = await ask(spec, "next_action", context)
    prompt = payload["worker_call"]["prompt"]
    for part in (
        "Say hello.",
        "Keep the greeting short.",
        "`pytest -q` ended with exit code 1",
        "- failing: test_hello\n",
        "- failing: test_bye (a.py:3): assert 3 == 4\n",
        "    E assert 1 == 2",
        "AC-1: make check → failed, exit code 2: 2 targets failed",
    ):
        assert part in prompt
    assert "AC-1, test" in payload["decision"]["reason"]


async def test_a_worker_is_called_by_its_name(make_spec: MakeSpec) -> None:
    spec = make_spec(kind="checklist", test="pytest -q")
    workers = [WorkerSpec(kind="command", name="first"), WorkerSpec(kind="command")]
    spec = spec.with_runner(workers=workers, worker=workers[0])
    context: TaskContext = {"state": TaskState.RUNNING, "criteria": [WHOLE_TEST]}
    payload = await ask(spec, "next_action", context)
    assert payload["worker_call"]["worker_type"] == "first"


async def test_a_session_is_gone_on_with(make_spec: MakeSpec) -> None:
    run = RUN.model_copy(update={"session_id": "s-1"})
    context = state([WITH_CHECK], Evidence(tree="t"), recent=[run])
    payload = await ask(make_spec(kind="checklist"), "next_action", context)
    assert payload["worker_call"]["mode"] == "resume"


async def test_after_a_refusal_the_worker_is_told_why_and_then_it_is_claimed_again(
    make_spec: MakeSpec,
) -> None:
    finding = Finding(code="tests_changed", message="Tests were changed", paths=["tests/a.py"])
    evidence = Evidence(tree="t", test=suite(0), findings=[finding])
    spec = make_spec(kind="checklist", test="pytest -q")
    refused = state([WHOLE_TEST], evidence, state=TaskState.FIXING)
    payload = await ask(spec, "next_action", refused)
    prompt = payload["worker_call"]["prompt"]
    assert "Tests were changed: tests/a.py" in prompt
    assert await action(spec, state([WHOLE_TEST], evidence)) == "mark_complete"


@pytest.mark.parametrize(("language", "says"), [("en", "add tests"), ("ja", "テストを追加")])
async def test_without_proof_tests_are_asked_for(
    make_spec: MakeSpec, language: str, says: str
) -> None:
    spec = make_spec(kind="checklist", test="pytest -q", language=language)
    context = state([WHOLE_TEST], Evidence(tree="t", test=suite(0)), state=TaskState.FIXING)
    payload = await ask(spec, "next_action", context)
    assert says in payload["worker_call"]["prompt"]


# -- assessment ---------------------------------------------------------------------------------


async def test_green_is_passed_red_is_failed_the_rest_is_left_out(make_spec: MakeSpec) -> None:
    red = Criterion(id="AC-9", description="x", check=CHECK)
    checks = [outcome(WITH_CHECK, "passed"), outcome(red, "failed")]
    context = state([WITH_CHECK, WITHOUT, red], Evidence(tree="t", checks=checks))
    payload = await ask(make_spec(kind="checklist"), "completion_assessment", context)
    assert [(v["id"], v["status"]) for v in payload["by_criterion"]] == [
        ("AC-1", "passed"),
        ("AC-9", "failed"),
    ]
    assert payload["all_criteria_satisfied"] is False
    read = CompletionAssessment.model_validate(payload)
    assert read.passed_ids() == ["AC-1"] and read.failed_ids() == ["AC-9"]
    assert not read.satisfied(["AC-1", "AC-2"])
    assert read.satisfied(["AC-1"])


async def test_the_test_command_decides_its_criterion(make_spec: MakeSpec) -> None:
    context = state([WHOLE_TEST], Evidence(tree="t", test=suite(0)))
    spec = make_spec(kind="checklist", test="pytest -q")
    payload = await ask(spec, "completion_assessment", context)
    assert payload["by_criterion"][0]["status"] == "passed"
    assert payload["all_criteria_satisfied"] is True


@pytest.mark.parametrize(
    ("language", "says"),
    [("en", "1 of 2 criteria have a green check."), ("ja", "2 件のうち 1 件")],
)
async def test_the_summary_is_in_the_language_of_the_task(
    make_spec: MakeSpec, language: str, says: str
) -> None:
    spec = make_spec(kind="checklist", language=language)
    context = state(
        [WITH_CHECK, WITHOUT], Evidence(tree="t", checks=[outcome(WITH_CHECK, "passed")])
    )
    assert says in (await ask(spec, "completion_assessment", context))["summary"]


@pytest.mark.parametrize(
    ("language", "says"),
    [("en", "No criterion has a check of its own; the tests are green."), ("ja", "テストが成功")],
)
async def test_where_only_the_suite_decides_no_criteria_are_counted(
    make_spec: MakeSpec, language: str, says: str
) -> None:
    spec = make_spec(kind="checklist", test="pytest -q", language=language)
    context = state([WITHOUT], Evidence(tree="t", test=suite(0)))
    assert says in (await ask(spec, "completion_assessment", context))["summary"]


async def test_nothing_executable_is_no_satisfaction(make_spec: MakeSpec) -> None:
    payload = await ask(
        make_spec(kind="checklist"), "completion_assessment", state([WITHOUT], Evidence(tree="t"))
    )
    assert payload["by_criterion"] == [] and payload["all_criteria_satisfied"] is False
