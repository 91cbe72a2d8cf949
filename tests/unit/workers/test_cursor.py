"""Cursor's CLI, as its documentation describes it: a fake `agent` stands for the real one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentrunner.workers.base import CommandRun, Ended, WorkerReading
from agentrunner.workers.outcome import outcome_of
from tests.kit.files import write
from tests.kit.readings import HOME, adapter, command

KIND = "cursor-cli"
SESSION = "c6b62c6f-7ead-4fd6-9922-e952131177ff"


def event(type_: str, **fields: Any) -> dict[str, Any]:
    return {"type": type_, **fields, "session_id": SESSION}


def tool(subtype: str, call: str, name: str, args: Any, result: Any = None) -> dict[str, Any]:
    use = {"args": args} if result is None else {"args": args, "result": result}
    return event("tool_call", subtype=subtype, call_id=call, tool_call={name: use})


def said(text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return event("assistant", message={"role": "assistant", "content": content})


BEGIN = event("system", subtype="init", apiKeySource="env", model="a-model", cwd="/task/repo")
WRITE = {"path": "hello.py", "fileText": "print(1)\n"}
SHELL = {"command": "python3 hello.py"}
WORK = (
    tool("started", "t1", "writeToolCall", WRITE),
    tool("completed", "t1", "writeToolCall", WRITE, {"success": {"path": "hello.py"}}),
    tool("started", "t2", "shellToolCall", SHELL),
    tool("completed", "t2", "shellToolCall", SHELL, {"failure": {"exitCode": 3}}),
)
END = event("result", subtype="success", is_error=False, duration_ms=9, result="Done.")


def run_agent(
    place: Path, *events: dict[str, Any], exit_code: int = 0
) -> tuple[WorkerReading, str]:
    """Run a fake `agent` by the adapter's own command line; the reading and the outcome."""
    fake = place / "agent"
    lines = "\n".join(json.dumps(one) for one in events)
    write(place, {"agent": f"#!/bin/sh\ncat <<'EVENTS'\n{lines}\nEVENTS\nexit {exit_code}\n"})
    worker = adapter(KIND, command=[str(fake)])
    made = command(KIND)
    with (place / "stdout").open("wb") as out, (place / "stderr").open("wb") as err:
        ran = subprocess.run(
            [worker.program(), *made.argv[1:]],
            env={"PATH": os.defpath, **made.env},
            stdout=out,
            stderr=err,
            check=False,
        )
    ended = Ended(ran.returncode, "exited", place / "stdout", place / "stderr")
    reading = worker.read(ended)
    came = outcome_of(ended, reading, gateway_error=None, changed=1, reports=worker.reports)
    return reading, came.outcome


def test_it_says_that_it_was_never_run() -> None:
    worker = adapter(KIND)
    assert worker.verified == "built from its documentation; not run against the real binary"
    assert worker.wire == "" and worker.provider_url == ""
    assert "*.cursor.sh:443" in worker.hosts
    assert not worker.confines_itself


def test_the_command_line() -> None:
    made = command(KIND, mode="resume", session_id=SESSION)
    assert made.argv[1:] == (
        *("-p", "--output-format", "stream-json", "--workspace", "/src/repo", "--trust"),
        *("--force", "--sandbox", "disabled", "--model", "some-model"),
        *("--resume", SESSION, "The task:\n\ndo it"),
    )
    assert made.key_env == "CURSOR_API_KEY"
    assert made.env["HOME"] == str(HOME / "cursor")


def test_a_run_that_ends_well(tmp_path: Path) -> None:
    reading, outcome = run_agent(tmp_path, BEGIN, said("I begin."), *WORK, END)
    assert reading.completed and outcome == "completed"
    assert (reading.summary, reading.session_id, reading.model) == ("Done.", SESSION, "a-model")
    assert reading.actions == 2
    assert reading.commands == (CommandRun("python3 hello.py", 3, "failed"),)


@pytest.mark.parametrize(
    ("end", "exit_code", "outcome"),
    [
        (event("result", subtype="success", is_error=True, result="Unauthorized"), 0, "auth"),
        (event("result", subtype="error", is_error=True, result="Rate limit hit"), 1, "rate_limit"),
        (said("And then"), 0, "interrupted"),
    ],
)
def test_what_went_wrong(tmp_path: Path, end: dict[str, Any], exit_code: int, outcome: str) -> None:
    reading, came = run_agent(tmp_path, BEGIN, *WORK, end, exit_code=exit_code)
    assert not reading.completed and came == outcome


def test_a_rejected_tool_is_told(tmp_path: Path) -> None:
    rejected = tool("completed", "t1", "shellToolCall", SHELL, {"rejected": {"reason": "no"}})
    reading, outcome = run_agent(tmp_path, BEGIN, rejected, END)
    assert reading.denied == ("shell",) and outcome == "denied"
