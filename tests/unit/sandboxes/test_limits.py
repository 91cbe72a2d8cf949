from __future__ import annotations

import os

import pytest

from agentrunner.errors import UsageError
from agentrunner.sandboxes.base import ResourceLimit
from agentrunner.sandboxes.limits import describe_limits, limit_prefix, memory_bytes


@pytest.mark.parametrize(
    ("text", "size"), [("512m", 512 << 20), ("4g", 4 << 30), ("100K", 100 << 10), ("7", 7)]
)
def test_memory(text: str, size: int) -> None:
    assert memory_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "lots", "1.5g", "-1m", "4gb", "4t"])
def test_no_memory(text: str) -> None:
    with pytest.raises(UsageError):
        memory_bytes(text)


def test_without_limits_nothing_stands_before_the_command() -> None:
    assert limit_prefix(ResourceLimit()) == ()
    assert describe_limits(ResourceLimit()) == ""


def test_a_memory_limit_is_said_to_be_per_process() -> None:
    limits = ResourceLimit(memory="1g")
    assert limit_prefix(limits)[1:] == (f"--data={1 << 30}", "--")
    assert "per process" in describe_limits(limits)


def test_what_cannot_be_held_is_refused_and_not_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="cpus"):
        limit_prefix(ResourceLimit(cpus=1.5))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(UsageError, match="exempts root"):
        limit_prefix(ResourceLimit(pids=100))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "--nproc=100" in limit_prefix(ResourceLimit(pids=100))
