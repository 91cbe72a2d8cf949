"""Where a sandbox does not start, the policies that left no other are named, and only those."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.engine.resources import _naming_policy
from agentrunner.errors.sandboxes import SandboxUnavailable
from agentrunner.policy.check import narrowed
from tests.kit.policies import Desk
from tests.kit.task_files import ENVIRON, Load, load, repo

__all__ = ["load", "repo"]


def test_only_the_policy_that_left_one_sandbox_is_named(load: Load, tmp_path: Path) -> None:
    desk = Desk(load, tmp_path)
    ways = {"one": ["bwrap"], "any": ["bwrap", "docker"]}
    policies = [desk.policy({"sandbox": {"kinds": ways[name]}}, name) for name in ways]
    policies.append(desk.policy({"meta": {"max_loops": 9}}, "rounds"))
    spec = narrowed(desk.task({}, {}), policies, ENVIRON)
    with pytest.raises(SandboxUnavailable) as refused, _naming_policy(spec):
        raise SandboxUnavailable("bwrap is not installed")
    says = ("policy", f"{tmp_path / 'one'} leaves no other sandbox than bwrap")
    assert refused.value.details == (says,)
