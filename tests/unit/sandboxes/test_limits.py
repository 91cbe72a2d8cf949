from __future__ import annotations

import os

import pytest

from agentrunner.errors import UsageError
from agentrunner.sandboxes.base import ResourceLimit
from agentrunner.sandboxes.limits import hold_by_rlimits, hold_limits, memory_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [("512m", 512 << 20), ("4g", 4 << 30), ("100K", 100 << 10), ("7", 7), ("1.5g", 3 << 29)],
)
def test_an_amount(text: str, size: int) -> None:
    assert memory_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "lots", "0.1", ".5g", "-1m", "4gb", "4t"])
def test_no_amount(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        memory_bytes(text, "disk")
    assert caught.value.path == "runner.sandbox.disk"


def test_without_limits_nothing_stands_before_the_command() -> None:
    held = hold_by_rlimits(ResourceLimit())
    assert not held.prefix and not held.groups and held.describe() == ""
    assert set(held.means.values()) == {"unlimited"}


def test_a_memory_limit_without_a_cgroup_is_said_to_be_per_process() -> None:
    held = hold_by_rlimits(ResourceLimit(memory="1g", disk="2g"))
    assert held.prefix[1:] == (f"--data={1 << 30}", "--")
    assert held.describe() == "memory 1g (rlimit, each process), disk 2g (watched)"


def test_what_cannot_be_held_is_refused_and_not_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="cpus"):
        hold_by_rlimits(ResourceLimit(cpus=1.5))
    with pytest.raises(UsageError, match="no such cgroup is mounted"):
        hold_limits(ResourceLimit(cpus=1.5), [])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(UsageError, match="exempts root"):
        hold_by_rlimits(ResourceLimit(pids=100))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "--nproc=100" in hold_by_rlimits(ResourceLimit(pids=100)).prefix
