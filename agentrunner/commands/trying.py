"""Trying a command in a box, the only way to know whether it starts there."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentrunner.errors import AgentRunnerError
from agentrunner.screens.layout import duration

if TYPE_CHECKING:
    from agentrunner.evidence.box import Ran
    from agentrunner.sandboxes.base import Caches, Sandbox

TRY_SEC = 120
"""A test command that runs longer certainly starts."""


@dataclass(frozen=True)
class Trial:
    """How a box and a command in it did."""

    box: str = ""
    """What the box isolates; "" where none could be opened."""
    kind: str = ""
    """Its kind: "docker", "bwrap"."""
    reason: str = ""
    """Why `auto` took it, and not one before it; "" where the kind was named."""
    problem: AgentRunnerError | None = None
    """Why there is no box."""
    started: bool = False
    said: str = ""
    """`41 passed, 1 failed, 3.8 s`, or why the command did not start."""
    tools: tuple[str, ...] = ()
    """Toolchains that are visible in the box, read-only."""
    caches: Caches | None = None
    """Package caches of the user's that are visible there; None where there is no box."""


async def try_in_box(
    repo: Path, command: str, environ: Mapping[str, str], state_dir: Path, kind: str = "auto"
) -> Trial:
    """Open a box on `repo`, run `command` (if any) in it, and close it again."""
    from agentrunner.evidence.box import DecisionBox, why_not_started
    from agentrunner.graph.workshop import first_words
    from agentrunner.runs.folder import RunFolder
    from agentrunner.sandboxes.base import BoxSpec
    from agentrunner.sandboxes.choose import open_sandbox
    from agentrunner.sandboxes.find_caches import find_caches
    from agentrunner.task.crew import WorkerSpec

    home = Path(environ.get("HOME") or Path.home())
    with tempfile.TemporaryDirectory(prefix="agentrunner-") as root:
        folder = RunFolder(Path(root))
        folder.box_dir.mkdir()
        spec = BoxSpec(
            repo=repo,
            home=folder.box_dir,
            programs=tuple(first_words(command)),
            worker_kind=WorkerSpec().kind,  # what `run` takes where the task names no other
            caches=await asyncio.to_thread(find_caches, repo, environ, home),
        )
        try:
            sandbox = await open_sandbox(kind, spec, environ, home, state_root=state_dir)
        except AgentRunnerError as error:
            return Trial(problem=error)
        box = DecisionBox(sandbox, repo, folder, str, environ)
        try:
            if not command:
                return Trial(
                    sandbox.describe(), sandbox.kind, _reason(sandbox), tools=_tools(sandbox, home),
                    caches=spec.caches,
                )  # fmt: skip
            while True:
                ran = await box.run(command, timeout_sec=TRY_SEC)
                why = "" if ran.timed_out else why_not_started(command, ran, repo, is_test=True)
                # As a run does that begins with it: in the next box it may start.
                if not why or not await box.fall_back(why):
                    break
            return Trial(
                sandbox.describe(), sandbox.kind, _reason(sandbox), None, not why,
                why or _told(ran), _tools(sandbox, home), spec.caches,
            )  # fmt: skip
        except AgentRunnerError as error:
            return Trial(sandbox.describe(), sandbox.kind, _reason(sandbox), said=error.message)
        finally:
            await sandbox.close()


def _reason(sandbox: Sandbox) -> str:
    from agentrunner.sandboxes.auto import AutoSandbox

    return sandbox.reason if isinstance(sandbox, AutoSandbox) else ""


def _tools(sandbox: Sandbox, home: Path) -> tuple[str, ...]:
    return tuple(
        str(mount.source)
        for mount in sandbox.mounts()
        if mount.read_only and mount.source.is_relative_to(home)
    )


def _told(ran: Ran) -> str:
    if ran.timed_out:
        return f"still running after {TRY_SEC} s"
    took = duration(ran.duration_sec)
    if ran.counts:
        return f"{ran.counts.passed} passed, {ran.counts.failed} failed, {took}"
    return f"exit {ran.exit_code}, {took}"
