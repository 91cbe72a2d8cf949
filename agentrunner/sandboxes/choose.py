"""From a sandbox's name in the task file to a box that works."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentrunner.errors import SandboxUnavailable
from agentrunner.registry import SANDBOXES, load
from agentrunner.sandboxes.base import BoxSpec, Sandbox
from agentrunner.sandboxes.deny import check_read_paths, check_repo

AUTO = ("bwrap",)
"""What `auto` tries, in this order. `none` isolates nothing and is only taken by name."""


@dataclass(frozen=True)
class Chosen:
    """An open sandbox, and why it is this one."""

    sandbox: Sandbox
    reason: str


def make_sandbox(
    kind: str,
    spec: BoxSpec,
    environ: Mapping[str, str],
    host_home: Path,
    *,
    state_root: Path,
) -> Sandbox:
    """A sandbox that is not open yet; "auto" is the first of AUTO.

    Raises UsageError for an unknown kind, a repository that no box may hold, or a read path of
    the deny list.
    """
    check_repo(spec.repo, host_home=host_home, state_root=state_root)
    check_read_paths(spec.read_paths, host_home=host_home, state_root=state_root)
    cls = load(SANDBOXES, AUTO[0] if kind == "auto" else kind, "sandbox")
    sandbox: Sandbox = cls(spec, environ=environ, host_home=host_home)
    return sandbox


async def open_sandbox(
    kind: str,
    spec: BoxSpec,
    environ: Mapping[str, str],
    host_home: Path,
    *,
    state_root: Path,
) -> Chosen:
    """An open sandbox of this kind, or for "auto" the first that opens.

    Raises SandboxUnavailable with every reason, and UsageError as `make_sandbox` does.
    """
    candidates = AUTO if kind == "auto" else (kind,)
    failures: list[tuple[str, SandboxUnavailable]] = []
    for name in candidates:
        sandbox = await asyncio.to_thread(
            make_sandbox, name, spec, environ, host_home, state_root=state_root
        )
        try:
            await sandbox.open()
        except SandboxUnavailable as error:
            failures.append((name, error))
            continue
        if kind != "auto":
            return Chosen(sandbox, "named by the task")
        passed_over = "".join(f"; {other}: {error.message}" for other, error in failures)
        return Chosen(sandbox, f"the first that starts here{passed_over}")
    reasons = "; ".join(f"{name}: {error.message}" for name, error in failures)
    first = failures[0][1]
    raise SandboxUnavailable(
        f"no sandbox starts here: {reasons}", remedy=first.remedy, details=first.details
    )
