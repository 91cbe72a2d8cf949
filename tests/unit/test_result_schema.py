from __future__ import annotations

from functools import cache

import jsonschema
import pytest

from agentrunner import events, results
from agentrunner.errors import EnvironmentNotReady, UsageError
from agentrunner.execution.result import build_result
from agentrunner.results import FindingEntry, Result
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import Question
from agentrunner.state.run_state import (
    Baseline,
    Counters,
    Criterion,
    Evidence,
    Proof,
    RedTest,
    RunInfo,
    TaskContext,
    TestOutcome,
    Verdict,
)
from tests.kit.contract import check_event
from tests.kit.screen_samples import result as sample
from tests.kit.screen_samples import story_events
from tests.kit.task_specs import task_spec_of

SPEC = task_spec_of()
STATE = TaskContext(
    run=RunInfo(run_id="t-0000", task_id="t", title="T", repo="/r"),
    state=TaskState.PLANNING,
    counters=Counters(),
)
QUESTION = Question(id="abc", kind="ask_human", text="?", subject="{}", state=TaskState.PLANNING)


@cache
def of_results() -> jsonschema.Draft202012Validator:
    """A validator made once: `jsonschema.validate` checks the whole schema again each time."""
    return jsonschema.Draft202012Validator(results.result_schema())


@cache
def of_events() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(events.event_schema())


def test_schemas_are_schemas() -> None:
    for one in (results.result_schema(), events.event_schema()):
        jsonschema.Draft202012Validator.check_schema(one)


@pytest.mark.parametrize("error", [UsageError("x"), EnvironmentNotReady("y", path="z")])
def test_a_result_without_a_run_has_every_key(error: UsageError | EnvironmentNotReady) -> None:
    told = Result.of_error(error).as_dict()
    of_results().validate(told)
    assert tuple(told) == tuple(results.Result.model_fields)
    assert told["run_id"] is None and told["state"] is None
    assert told["exit_code"] == error.exit_code and told["error"]["code"] == error.code


def test_the_engine_keeps_what_the_schema_promises() -> None:
    for waiting in (None, QUESTION):
        told = build_result(STATE, SPEC, waiting=waiting).as_dict()
        of_results().validate(told)


def test_what_an_examined_tree_came_to_is_in_the_schema_to_the_last_key() -> None:
    """The objects of the schema that are open would hide a key that nobody describes."""
    whole: TaskContext = {
        **STATE,
        "state": TaskState.COMPLETE,
        "verdict": Verdict(state="COMPLETE", reason="complete", text="x", grade="shown"),
        "criteria": [
            Criterion(id="AC-1", description="x", grade="shown", author="worker", evidence="tested",
                      status="passed", tests=["a::b"], tests_origin="model"),
        ],
        "baseline": Baseline(tree="t", test=TestOutcome(command="x", exit_code=1)),
        "evidence": Evidence(
            tree="u",
            test=TestOutcome(command="x", exit_code=1, red=[RedTest(name="c::d")], reader="go",
                             known_red=["c::d"], gone=["e"], flaky=["f"]),
            proof=["p"],
            proofs=[Proof(target="test", author="worker", grade="shown", text="p", tests=["a::b"])],
        ),
    }  # fmt: skip
    told = build_result(whole, SPEC).as_dict()
    of_results().validate(told)
    assert told["grade"] == "shown"
    assert told["acceptance_criteria"][0]["mapped_by"] == "planner"
    assert told["test"]["known_red"] == ["c::d"]
    (proof,) = told["proofs"]
    assert set(proof) == set(results.ProofEntry.model_fields)
    assert list(sample().as_dict()["test"]) == list(told["test"])


def test_sample_results_and_events_are_valid() -> None:
    of_results().validate(sample().as_dict())
    for event in story_events():
        of_events().validate(event)


def test_an_event_of_another_shape_is_refused() -> None:
    with pytest.raises(jsonschema.ValidationError):
        of_events().validate({**story_events()[0], "event": "surprise"})


def test_an_event_is_typed_to_its_last_key() -> None:
    """`dict[str, Any]` promises nothing, and an extra key within an object is seen."""
    schema = events.event_schema()["$defs"]
    assert isinstance(schema, dict)
    for name, key in (
        ("RunStarted", "header"),
        ("RunResumed", "header"),
        ("PlannerCalled", "usage"),
        ("CriteriaPlanned", "acceptance_criteria"),
    ):
        assert "$ref" in str(schema[name]["properties"][key]), name
    started = story_events()[0]
    limits = {**started["header"]["limits"], "surprise": 1}
    with pytest.raises(AssertionError, match=r"header.limits.*surprise"):
        check_event({**started, "header": {**started["header"], "limits": limits}})


def test_a_finding_of_an_earlier_version_has_no_diff() -> None:
    told = FindingEntry(
        code="secret", message="m", paths=["a"], blocks=True, remedy="", tests=[], diff="-a"
    ).model_dump()
    del told["diff"]
    read = Result.model_validate({**sample().as_dict(), "findings": [told]})
    assert read.findings[0].diff == ""
