"""From a sandbox's name in the task file to an open sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from agentrunner.errors import SandboxUnavailable
from agentrunner.registry import SANDBOXES, load
from agentrunner.sandboxes.auto import AutoSandbox
from agentrunner.sandboxes.base import Sandbox, SandboxOrder
from agentrunner.sandboxes.deny import check_read_paths, check_repo

AUTO = tuple(name for name in SANDBOXES.own if name != "none")
"""What `auto` tries, in this order. `none` isolates nothing and is only used when named."""


def make_sandbox(
    kind: str,
    spec: SandboxOrder,
    environ: Mapping[str, str],
    host_home: Path,
    *,
    state_root: Path,
) -> Sandbox:
    """Return a sandbox that is not open yet; "auto" stands for the first of AUTO that works here.

    Raises UsageError for an unknown kind, a repository that no sandbox may hold, or a read path
    that is on the deny list.
    """
    check_repo(spec.repo, host_home=host_home, state_root=state_root)
    check_read_paths(spec.read_paths, host_home=host_home, state_root=state_root)

    def make(name: str) -> Sandbox:
        cls = load(SANDBOXES, name, "sandbox")
        sandbox: Sandbox = cls(spec, environ=environ, host_home=host_home)
        return sandbox

    return AutoSandbox(AUTO, make, spec.image) if kind == "auto" else make(kind)


async def open_sandbox(
    kind: str,
    spec: SandboxOrder,
    environ: Mapping[str, str],
    host_home: Path,
    *,
    state_root: Path,
) -> Sandbox:
    """Return an open sandbox of this kind, or for "auto" the first that opens.

    Raises SandboxUnavailable with every reason, and UsageError like `make_sandbox`.
    """
    sandbox = await asyncio.to_thread(
        make_sandbox, kind, spec, environ, host_home, state_root=state_root
    )
    await sandbox.open()
    return sandbox


async def missing_image(
    kind: str, spec: SandboxOrder, environ: Mapping[str, str]
) -> SandboxUnavailable | None:
    """Return why a sandbox of this kind has no image, if its class can say so. Downloads nothing.

    Raises SandboxUnavailable if there is no engine to ask, or if the image is unusable.
    """
    ask = getattr(load(SANDBOXES, kind, "sandbox"), "missing_image", None)
    missing: SandboxUnavailable | None = await ask(spec, environ) if ask else None
    return missing


async def image_to_try(kind: str, environ: Mapping[str, str]) -> tuple[str, tuple[Path, ...]]:
    """Return an image to try a sandbox of this kind with, and the host paths that it must read.

    The image is "" where the class offers none. Raises SandboxUnavailable and EngineError.
    """
    ask = getattr(load(SANDBOXES, kind, "sandbox"), "image_to_try", None)
    found: tuple[str, tuple[Path, ...]] = await ask(environ) if ask else ("", ())
    return found
