"""Which commands decide, and who wrote them."""

from typing import Any

import pytest

from agentrunner.config.spec import Check, TaskSpec, TestSpec
from agentrunner.state.run_state import Criterion
from agentrunner.state.state_model import FileRef
from agentrunner.verification.evidence.target import TEST, Measured, Target, target_of
from agentrunner.verification.evidence.target import test_target as suite_target
from agentrunner.verification.rooms.decision_sandbox import CommandOutcome
from tests.kit.task_specs import task_spec_of

SUITE = TestSpec(command="pytest -q", cwd="api", timeout_sec=9)


def spec(test: TestSpec | None = SUITE) -> TaskSpec:
    return task_spec_of({"test": test})


def criterion(check: Check | None, origin: Any = "task") -> Criterion:
    return Criterion(id="AC-1", description="x", check=check, check_origin=origin)


def test_the_test_command_is_a_persons_target() -> None:
    assert suite_target(SUITE) == Target(TEST, "pytest -q", "api", 9, author="person")


@pytest.mark.parametrize(
    ("origin", "author"), [("task", "person"), ("human", "person"), ("model", "planner")]
)
def test_a_command_is_its_writers(origin: str, author: str) -> None:
    check = Check(kind="command", run="make check", cwd="web", timeout_sec=3, expect_exit=2)
    target = target_of(criterion(check, origin), spec(), None)
    assert target is not None
    assert (target.id, target.shell, target.cwd) == ("AC-1", "make check", "web")
    assert (target.timeout_sec, target.expect_exit, target.author) == (3, 2, author)


@pytest.mark.parametrize(
    "check",
    [
        None,
        Check(kind="test"),
        Check(kind="file", path="README.md", exists=True),
        Check(kind="diff", must_change=["a"]),
        Check(kind="command"),
        Check(kind="of a later version"),
    ],
)
def test_what_is_read_or_is_the_whole_suite_runs_nothing_of_its_own(check: Check | None) -> None:
    assert target_of(criterion(check), spec(), None) is None


def test_one_test_of_the_suite_is_a_command_where_there_is_a_suite() -> None:
    check = Check(kind="test", name="test_total")
    target = target_of(criterion(check), spec(), None)
    assert target is not None and "test_total" in target.shell and target.cwd == "api"
    assert target_of(criterion(check), spec(None), None) is None


@pytest.mark.parametrize(
    ("exit_code", "expected", "timed_out", "passed"),
    [(0, 0, False, True), (1, 0, False, False), (2, 2, False, True), (0, 0, True, False)],
)
def test_the_wanted_exit_code_in_time_means_yes(
    exit_code: int, expected: int, timed_out: bool, passed: bool
) -> None:
    ran = CommandOutcome(exit_code, FileRef(path="out"), "", None, 1.0, timed_out=timed_out)
    assert Measured(Target("AC-1", "x", expect_exit=expected), ran).passed is passed
