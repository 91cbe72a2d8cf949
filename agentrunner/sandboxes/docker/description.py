"""Describes sandbox and engine in words."""

from __future__ import annotations

from agentrunner.sandboxes.base import SandboxOrder
from agentrunner.sandboxes.docker.config import MEMORY, PIDS
from agentrunner.sandboxes.docker.engine import Engine, Traits
from agentrunner.sandboxes.homes import shared
from agentrunner.sandboxes.limits import UNLIMITED


def describe(spec: SandboxOrder, traits: Traits | None, image: str) -> str:
    """Return one line for the header; `traits` and `image` are unknown before it is open."""
    name = f"{traits.product} {traits.version}".strip() if traits else "Docker"
    network = "no route out" if spec.network == "none" else "the whole network on demand"
    parts = [f"image {image}"] if image else []
    parts += [f"{network}, system read-only, .git read-only"]
    limits = {
        "memory": f"memory {spec.limits.memory or MEMORY}",
        "cpus": f"cpus {spec.limits.cpus:g}" if spec.limits.cpus else "",
        "pids": f"pids {spec.limits.pids or PIDS}",
    }
    held = [text for key, text in limits.items() if text and not (traits and key in traits.lacks)]
    parts += filter(None, [shared(spec.caches)])
    return f"{name}; " + "; ".join([*parts, ", ".join(held)])


def isolation(spec: SandboxOrder, traits: Traits | None) -> dict[str, str]:
    """Return what the sandbox isolates and by what means."""
    known = traits or Traits()
    limits = spec.limits
    group = f"cgroup v{known.cgroup}"
    full = "a network of its own, with everything" if known.bridge else "the host's"
    held = {
        "memory": f"{limits.memory or MEMORY}, no swap, {group}",
        "cpus": f"{limits.cpus:g}, {group}" if limits.cpus else UNLIMITED,
        "pids": f"{limits.pids or PIDS}, {group}",
        "system calls": "the engine's default seccomp filter",
    }
    lacking = {"seccomp": "system calls"}
    for name in known.lacks:
        held[lacking.get(name, name)] = "not held: the engine cannot here"
    on_demand = f"; {full} for commands that ask for it" if spec.network == "full" else ""
    user = (
        "the engine's user, as uid 0 of the sandbox" if known.rootless else "the repository's owner"
    )
    return {
        "processes": "a container for one command at a time; nothing outlives it",
        "files": "repository and run folder writable, .git and the system read-only, no HOME",
        "network": f"its own loopback, and a door in it where there is one{on_demand}",
        "privileges": "no capabilities, no new privileges",
        "user": user,
        **held,
        "disk": f"{limits.disk}, watched" if limits.disk else UNLIMITED,
    }


async def describe_engine(engine: Engine) -> str:
    """Return "Docker 28.2.2; API 1.50, cgroup v2, …; unix:///…". Raises EngineError."""
    info = await engine.call("ask what it is", lambda api: api.info())
    traits = engine.traits
    parts = [
        f"API {traits.api[0]}.{traits.api[1]}",
        f"cgroup v{traits.cgroup}",
        str(info.get("Driver") or "no storage driver"),
        "rootless" if traits.rootless else "",
        "" if traits.bridge else "no network of its own",
        f"cannot limit {', '.join(sorted(traits.lacks))}" if traits.lacks else "",
    ]
    description = ", ".join(filter(None, parts))
    return f"{traits.product} {traits.version}; {description}; {engine.host}"
