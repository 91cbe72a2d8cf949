"""What a run would do, for --dry-run: no model is called, and nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from agentrunner.config.prd import describe_check
from agentrunner.config.spec import TaskSpec
from agentrunner.engine.attempt_run import Options
from agentrunner.engine.attempts import first_state
from agentrunner.engine.header import header_of, reach_of_all
from agentrunner.engine.policies import capped_as_far
from agentrunner.engine.resolve import resolve
from agentrunner.engine.resources import lacking_in_sandbox, sandbox_order, with_caches
from agentrunner.environment import home_of
from agentrunner.errors import InfraError
from agentrunner.execution.resolved import ResolvedRun
from agentrunner.gateway.order import GATEWAY_PORT
from agentrunner.registry import AUTO_SANDBOXES
from agentrunner.sandboxes.base import Mount, SandboxOrder
from agentrunner.sandboxes.choose import make_sandbox
from agentrunner.storage.run_folder import RunFolder
from agentrunner.workers.base import WorkerRequest
from agentrunner.workers.member import Member


class ShownMount(TypedDict):
    """A folder of this machine in the sandbox."""

    source: str
    target: str
    read_only: bool


class Preview(TypedDict):
    """A run that would be started, as `run --dry-run --json` prints it."""

    header: Mapping[str, Any]
    criteria: list[Mapping[str, object]]
    worker_command: list[str]
    mounts: list[ShownMount]
    network: str
    reach: Mapping[str, str]
    missing: list[Mapping[str, Any]]


async def preview(spec: TaskSpec, options: Options) -> Preview:
    """Return header, criteria, the worker's command, mounts and network of a run that would be
    started.

    `missing` lists what keeps it from starting. Raises UsageError where the task goes beyond a
    policy.
    """
    resolved, order, missing = await asyncio.to_thread(_resolved, spec, options)
    missing = missing or await lacking_in_sandbox(resolved, order, options.state_dir)
    return await asyncio.to_thread(_shown, resolved, order, missing, options)


def _resolved(
    spec: TaskSpec, options: Options
) -> tuple[ResolvedRun, SandboxOrder, list[InfraError]]:
    environ = options.environ
    replays = options.cassette.replay is not None
    spec, missing = capped_as_far(spec, environ, options.state_dir, options.policy, replays=replays)
    resolved = resolve(spec, environ, options.cassette, begins=True)
    folder = _folder(spec, options)
    order = with_caches(sandbox_order(spec, resolved.members, folder), spec, environ)
    resolved = resolved.noting(order.caches.notices)
    return resolved, order, list(missing or resolved.missing)


def _folder(spec: TaskSpec, options: Options) -> RunFolder:
    return RunFolder(options.state_dir / "runs" / f"{spec.task_id}-0000")


def _shown(
    resolved: ResolvedRun, order: SandboxOrder, missing: list[InfraError], options: Options
) -> Preview:
    spec, environ, first = resolved.spec, options.environ, resolved.members[0]
    folder, kind = _folder(spec, options), spec.runner.sandbox.kind
    home, root = home_of(environ), options.state_dir
    sandbox = make_sandbox(kind, order, environ, home, state_root=root)
    state = first_state(spec, folder.run_id, options.clock)
    name = ", else ".join(AUTO_SANDBOXES) if kind == "auto" else sandbox.describe()
    return {
        "header": header_of(resolved, sandbox=name, state=state),
        "criteria": [
            {
                "id": c.id,
                "description": c.description,
                "critical": c.critical,
                "line": c.line,
                "check": describe_check(c.check),
            }
            for c in spec.criteria
        ],
        "worker_command": list(first.worker.command(_first_call(spec, first, folder)).argv),
        "mounts": [
            {"source": str(m.source), "target": str(m.target), "read_only": m.read_only}
            for m in (*sandbox.mounts(), *_cache_mounts(order))
        ],
        "network": resolved.network,
        "reach": reach_of_all(spec, resolved.members),
        "missing": [error.as_dict() for error in missing],
    }


def _cache_mounts(order: SandboxOrder) -> list[Mount]:
    """Return the mounts of the package caches, below the sandbox's home."""
    return [Mount(cache.source, Path("~") / cache.place) for cache in order.caches.folders]


def _first_call(spec: TaskSpec, member: Member, folder: RunFolder) -> WorkerRequest:
    """Return the call of the first worker run, except for the prompt, which is not written yet."""
    return WorkerRequest(
        worker_run_id="1-001",
        prompt="<the planner's prompt>",
        workdir=Path(spec.repo),
        home=folder.sandbox_dir,
        prompt_file=folder.sandbox_dir / "prompts" / "1-001.md",
        model=member.spec.runner.worker.model,
        base_url=f"http://127.0.0.1:{GATEWAY_PORT}" if member.has_gateway else None,
        sandboxed=spec.runner.sandbox.isolates,
    )
