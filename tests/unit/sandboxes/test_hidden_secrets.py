"""What an error message, a log or a debugger shows of a request: never its environment or stdin."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.sandboxes.base import Launch, Request
from agentrunner.sandboxes.docker.attach import AttachOrder
from agentrunner.sandboxes.docker.config import User
from agentrunner.sandboxes.docker.exec import ExecCommand
from agentrunner.supervisor.client import SupervisorOrder

SECRET = "sk-hidden-" + "5a" * 8
HERE = Path("/src")
COMMAND = ExecCommand(("true",), {"KEY": SECRET}, "/src")
LAUNCH = Launch(("true",), {"KEY": SECRET}, HERE)


@pytest.mark.parametrize(
    "thing",
    [
        COMMAND,
        LAUNCH,
        Request(("true",), HERE, env={"KEY": SECRET}, stdin=SECRET.encode()),
        AttachOrder("unix:///x", HERE, {}, User(1000, 1000), COMMAND, None, None),
        SupervisorOrder(LAUNCH, 1, stdin=SECRET.encode(), secrets={SECRET.encode(): "KEY"}),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_a_secret_is_not_shown(thing: object) -> None:
    assert SECRET not in repr(thing)
    assert "true" in repr(thing)
