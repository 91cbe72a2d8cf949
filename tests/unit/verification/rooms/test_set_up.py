"""What is told of a set-up that fails."""

from dataclasses import replace
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.state.state_model import FileRef
from agentrunner.verification.rooms.decision_sandbox import CommandOutcome
from agentrunner.verification.rooms.set_up import MOST_LINES, set_up_failed
from tests.kit.task_specs import task_spec_of

RAN = CommandOutcome(
    1, FileRef(path="setup.log"), "error EAI_AGAIN\n\nerror getaddrinfo\n", None, 3.0
)


def spec(**setup: Any) -> TaskSpec:
    return task_spec_of({"setup": {"command": "npm ci", **setup}})


def test_the_end_of_its_output_is_told_and_that_it_has_no_network() -> None:
    error = set_up_failed(spec(), RAN, "bubblewrap")
    assert error.message == "The set-up command fails in the sandbox."
    told = dict(error.details)
    assert told["ran"] == "npm ci      exit 1"
    assert told["output"] == "error EAI_AGAIN\nerror getaddrinfo"
    assert error.remedy.startswith("task.setup.network: [HOST:443]")


def test_one_that_has_a_network_is_not_told_to_have_none() -> None:
    error = set_up_failed(spec(network=["a.example:443"]), RAN, "bubblewrap")
    assert error.remedy == "correct task.setup.command"


def test_much_output_is_cut_and_an_end_by_time_is_called_so() -> None:
    long = replace(RAN, tail="line\n" * 100, timed_out=True)
    told = dict(set_up_failed(spec(timeout_sec=5), long, "bubblewrap").details)
    assert len(told["output"].splitlines()) == MOST_LINES
    assert told["ran"] == "npm ci      not over after 5 s"
