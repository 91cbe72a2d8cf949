"""What a task permits its CLIs: limits of processor, memory and disk, and readable folders."""

from __future__ import annotations

import os
from pathlib import Path

from agentrunner.config.sandbox import SandboxSpec
from agentrunner.config.spec import TaskSpec
from agentrunner.sandboxes.base import ResourceLimit
from agentrunner.sandboxes.limits import DISK, memory_bytes


def resource_limits(settings: SandboxSpec) -> ResourceLimit:
    """Return the limits for commands in a sandbox."""
    return ResourceLimit(
        cpus=settings.cpus,
        memory=settings.memory,
        pids=settings.pids,
        disk=settings.disk or DISK,
    )


def disk_bytes(settings: SandboxSpec) -> int:
    """Return by how many bytes the folders of a sandbox may grow together."""
    return memory_bytes(settings.disk or DISK, "disk")


def read_paths(spec: TaskSpec) -> tuple[Path, ...]:
    """Return the folders of this machine that the sandbox may read."""
    written = spec.runner.sandbox.read_paths
    return tuple(Path(os.path.normpath(Path(spec.base_dir) / path)) for path in written)
