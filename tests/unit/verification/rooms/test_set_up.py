"""What is told of a set-up that fails."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
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
    error = asyncio.run(set_up_failed(spec(), RAN, "bubblewrap"))
    assert error.message == "The set-up command fails in the sandbox."
    told = dict(error.details)
    assert told["ran"] == "npm ci      exit 1"
    assert told["output"] == "error EAI_AGAIN\nerror getaddrinfo"
    assert error.remedy.startswith("task.setup.network: [HOST:443]")


def test_one_that_has_a_network_is_not_told_to_have_none() -> None:
    granted = spec(network=["a.example:443"])
    error = asyncio.run(set_up_failed(granted, RAN, "bubblewrap"))
    assert error.remedy == "correct task.setup.command"


def test_hosts_that_it_asked_for_in_vain_are_named() -> None:
    granted, refused = spec(network=["a.example:443"]), ["b.example:443", "c.example:443@10.0.0.5"]
    error = asyncio.run(set_up_failed(granted, RAN, "bubblewrap", refused=refused))
    assert error.remedy.startswith(f"task.setup.network: [{', '.join(refused)}] reaches")


def test_much_output_is_cut_and_an_end_by_time_is_called_so() -> None:
    long = replace(RAN, tail="line\n" * 100, timed_out=True)
    told = dict(asyncio.run(set_up_failed(spec(timeout_sec=5), long, "bubblewrap")).details)
    assert len(told["output"].splitlines()) == MOST_LINES
    assert told["ran"] == "npm ci      not over after 5 s"


async def test_others_go_on_while_tools_say_where_they_look(tmp_path: Path) -> None:
    """A tool that answers only once another task of the loop has run."""
    (tmp_path / "pyproject.toml").touch()
    tools = tmp_path.parent / f"{tmp_path.name}-tools"
    tools.mkdir()
    os.mkfifo(pipe := tools / "pipe")
    (tools / "python3").write_text(f"#!/bin/sh\nread address < {pipe}; echo $address\n")
    (tools / "python3").chmod(0o755)
    task = spec().model_copy(update={"repo": str(tmp_path)})
    around = {"PATH": str(tools), "HOME": str(tools)}
    error, _ = await asyncio.gather(
        set_up_failed(task, replace(RAN, tail=""), "bubblewrap", around),
        asyncio.to_thread(pipe.write_text, "https://index.example/simple\n"),
    )
    assert "[index.example:443]" in error.remedy
