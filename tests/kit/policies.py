"""Tasks and the policies that they are held against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentrunner.config.spec import TaskSpec
from agentrunner.errors import UsageError
from agentrunner.policy.check import narrowed
from agentrunner.policy.load import load_policies
from agentrunner.policy.policy_file import Policy
from tests.kit.task_files import ENVIRON, Load
from tests.kit.task_files import load as load
from tests.kit.task_files import repo as repo


class Desk:
    """Tasks and policies as people write them."""

    def __init__(self, load: Load, place: Path) -> None:
        self.load = load
        self.place = place

    def task(self, runner: Mapping[str, Any], task: Mapping[str, Any], **how: Any) -> TaskSpec:
        document = {"version": 1, "task": {"prd": {"text": "x"}, **task}, "runner": dict(runner)}
        return self.load(yaml.safe_dump(document, sort_keys=False), environ=ENVIRON, **how)

    def policy(self, caps: Mapping[str, Any], name: str = "policy.yaml") -> Policy:
        file = self.place / name
        file.write_text(yaml.safe_dump({"version": 1, **caps}, sort_keys=False), encoding="utf-8")
        file.chmod(0o600)
        return load_policies(file, {}, system=Path("/nonexistent/policy.yaml"))[0]

    def held(
        self,
        caps: Mapping[str, Any],
        runner: Mapping[str, Any] | None = None,
        task: Mapping[str, Any] | None = None,
        *,
        environ: Mapping[str, str] = ENVIRON,
        stored: bool = False,
        **how: Any,
    ) -> TaskSpec:
        spec = self.task(runner or {}, task or {}, **how)
        return narrowed(spec, [self.policy(caps)], environ, stored=stored)

    def refused(self, caps: Mapping[str, Any], *about: Any, **how: Any) -> UsageError:
        environ, stored = how.pop("environ", ENVIRON), how.pop("stored", False)
        spec = self.task(*(about or ({},)), *(() if len(about) > 1 else ({},)), **how)
        return self.breach(spec, self.policy(caps), environ=environ, stored=stored)

    def breach(
        self,
        spec: TaskSpec,
        policy: Policy,
        *,
        environ: Mapping[str, str] = ENVIRON,
        stored: bool = False,
    ) -> UsageError:
        with pytest.raises(UsageError) as refusal:
            narrowed(spec, [policy], environ, stored=stored)
        assert refusal.value.code == "policy-breach"
        assert refusal.value.exit_code == 2
        return refusal.value
