"""What a set-up gets of this machine's environment, and when it gets nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentrunner.config.spec import TaskSpec
from agentrunner.sandboxes.base import SandboxOrder
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.storage.run_folder import RunFolder
from agentrunner.verification.rooms.decision_sandbox import CopyOfRepo, DecisionSandbox
from agentrunner.verification.rooms.set_up import run_set_up
from tests.kit.bwrap import require_bwrap
from tests.kit.task_specs import task_spec_of

ASK = "echo $A $B $TOKEN $OURS"


@pytest.fixture
def spec(tmp_path: Path) -> TaskSpec:
    setup = {"command": ASK, "env": {"TOKEN": "env:OURS", "B": "two"}}
    return task_spec_of({"setup": setup, "env": {"A": "one"}}, repo=tmp_path / "repo")


async def test_a_reference_is_for_the_user_s_own_code_alone(tmp_path: Path, spec: TaskSpec) -> None:
    require_bwrap()
    folder = RunFolder(tmp_path / "state/runs/r")
    copy = tmp_path / "copy"
    for place in (Path(spec.repo), folder.sandbox_dir, folder.checks_dir, copy):
        place.mkdir(parents=True)
    sandbox = BwrapSandbox(
        SandboxOrder(repo=Path(spec.repo), home=folder.sandbox_dir),
        environ={"PATH": os.environ["PATH"]},
        host_home=tmp_path,
    )
    environ = {"OURS": "s3cret"}
    box = DecisionSandbox(sandbox, Path(spec.repo), folder, str, environ, spec.task.env)
    first = await run_set_up(box, spec, trusted=True)
    again = await run_set_up(box, spec, copy=CopyOfRepo(copy, ()), trusted=False)
    test = await box.run(ASK)
    assert first is not None
    assert again is not None
    assert (first.tail, again.tail, test.tail) == ("one two s3cret\n", "one two\n", "one\n")
    await sandbox.close()
