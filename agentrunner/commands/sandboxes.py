"""Which sandboxes this machine can make, and what each enforces: for doctor."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from agentrunner.environment import home_of
from agentrunner.errors import AgentRunnerError
from agentrunner.screens.doctor import DoctorItem

if TYPE_CHECKING:
    from agentrunner.sandboxes.base import SandboxOrder

LIMITED = ("cpus", "memory", "pids")
ISOLATION = (
    "processes", "files", "network", "system calls", "privileges", "user", *LIMITED, "disk",
)  # fmt: skip
"""Aspects reported for every kind of sandbox, see `Sandbox.isolation`."""


class SandboxProbe(Struct):
    """One kind of sandbox, opened and examined."""

    kind: str
    description: str = ""
    problem: AgentRunnerError | None = None
    held: dict[str, str] = field(default_factory=dict)
    """Its isolation, with an example of every limit."""
    more: list[DoctorItem] = field(default_factory=list)
    """Further findings about it."""

    def findings(self) -> list[DoctorItem]:
        """Return the findings for the list of sandboxes."""
        if self.problem is None:
            return [DoctorItem("ok", self.kind, self.description), *self.more]
        return [DoctorItem("--", self.kind, self.problem.message, self.problem.remedy), *self.more]

    def isolation(self) -> tuple[str, list[DoctorItem]]:
        """Return a section of its own, with its title."""
        facts = [DoctorItem("", name, self.held[name]) for name in ISOLATION if name in self.held]
        return f"What {self.kind} holds here, with a limit of each kind as an example", facts


async def probe_sandboxes(
    repo: Path, environ: Mapping[str, str], state_dir: Path, worker_kind: str
) -> list[SandboxProbe]:
    """Probe every kind that `auto` may choose, in its order."""
    from agentrunner.config.kinds import sandbox_kind
    from agentrunner.registry import AUTO_SANDBOXES
    from agentrunner.sandboxes.base import ResourceLimit, SandboxOrder

    looks = []
    with tempfile.TemporaryDirectory(prefix="agentrunner-") as root:
        home = Path(root) / "box"
        home.mkdir()
        limits = ResourceLimit(cpus=1, memory="2g", pids=512, disk="10g")
        spec = SandboxOrder(repo=repo, home=home, limits=limits, worker_kind=worker_kind)
        for kind in AUTO_SANDBOXES:
            look = SandboxProbe(kind)
            if sandbox_kind(kind).has_image:
                spec = await _engine(look, spec, environ)
            if look.problem is None:
                await _open(look, spec, environ, state_dir)
            looks.append(look)
    return looks


async def _engine(
    look: SandboxProbe, spec: SandboxOrder, environ: Mapping[str, str]
) -> SandboxOrder:
    """Look for an engine and its images; return the sandbox order to try on it."""
    from agentrunner.sandboxes.docker.description import describe_engine
    from agentrunner.sandboxes.docker.engine import Engine
    from agentrunner.sandboxes.docker.images import image_to_try, our_images

    try:
        engine = await Engine.connect(environ)
        with contextlib.closing(engine):
            look.more.append(DoctorItem("ok", "engine", await describe_engine(engine)))
            there = await our_images(engine)
    except AgentRunnerError as error:
        look.problem = error
        return spec
    cure = "" if there else f"agentrunner image build {spec.worker_kind}"
    kinds = ", ".join(there) or "none of ours"
    look.more.append(DoctorItem("ok" if there else "--", "images", kinds, cure))
    image, read_paths = image_to_try(there, spec.worker_kind)
    return replace(spec, image=image, read_paths=read_paths)


async def _open(
    look: SandboxProbe, spec: SandboxOrder, environ: Mapping[str, str], state_dir: Path
) -> None:
    """Open the sandbox with as many of the limits as it can enforce."""
    from agentrunner.sandboxes.choose import open_sandbox

    home = home_of(environ)
    refused: dict[str, str] = {}
    while True:
        try:
            sandbox = await open_sandbox(look.kind, spec, environ, home, state_root=state_dir)
        except AgentRunnerError as error:
            name = error.path.removeprefix("runner.sandbox.")
            if name not in LIMITED or name in refused:
                look.problem = error
                return
            refused[name] = error.message
            spec = replace(spec, limits=replace(spec.limits, **{name: None}))
            continue
        look.description = sandbox.describe()
        look.held = {**sandbox.isolation(), **refused}
        await asyncio.shield(sandbox.close())
        return
