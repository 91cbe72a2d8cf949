"""A task as it is once its file was read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentrunner.config.spec import RunnerSection, TaskSection, TaskSpec


def task_spec_of(
    task: Mapping[str, Any] | None = None,
    runner: RunnerSection | None = None,
    *,
    prd: str = "x",
    repo: str | Path = "/r",
    **fields: Any,
) -> TaskSpec:
    """With these keys of `task`, and the rest as it is where a file says nothing."""
    known = {"task_id": "t", "title": "T", "repo": str(repo), "base_dir": str(repo), **fields}
    section = TaskSection.model_validate({"prd": {"text": prd}, **(task or {})})
    return TaskSpec(prd_text=prd, task=section, runner=runner or RunnerSection(), **known)
