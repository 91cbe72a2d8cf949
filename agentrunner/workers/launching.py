"""What a CLI is started with in a sandbox, whether it works or plans: credential and limits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agentrunner.config.sandbox import SandboxSpec
from agentrunner.config.spec import TaskSpec
from agentrunner.gateway.order import Upstream, new_placeholder
from agentrunner.sandboxes.base import ResourceLimit
from agentrunner.sandboxes.limits import DISK
from agentrunner.workers.base import Worker
from agentrunner.workers.login import Access


@dataclass(frozen=True)
class CliCredential:
    """What a CLI shows, and where its model calls go."""

    upstream: Upstream | None = None
    """For the gateway; None where there is none."""
    base_url: str = ""
    """What the CLI is told without a gateway; "" leaves it to the adapter."""
    key: str = field(default="", repr=False)
    """A placeholder where there is a gateway, else the real one."""
    token_env: str = ""
    """The variable for a login's token; "" leaves it to the CLI's usual one."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further variables of the sandbox. They win over those of the task."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the redactor must learn before the CLI starts."""
    fingerprint: str = ""
    """Of a login's token, to say later that it was refused. May be stored."""

    @property
    def bare_login(self) -> bool:
        """Whether the CLI sees the token of a login itself."""
        return bool(self.fingerprint) and self.upstream is None


def by_key(worker: Worker, key: str, base_url: str, *, gateway: bool) -> CliCredential:
    """A key, which stays with the gateway where there is one."""
    if not gateway:
        return CliCredential(key=key)
    upstream = _upstream(worker, base_url, key, "key")
    return CliCredential(upstream, key=upstream.placeholder)


def by_login(worker: Worker, access: Access, *, gateway: bool) -> CliCredential:
    """The access token of a login, which stays with the gateway where there is one."""
    upstream = _upstream(worker, access.base_url, access.token, "bearer") if gateway else None
    return CliCredential(
        upstream=upstream,
        base_url="" if upstream else access.base_url,
        key=upstream.placeholder if upstream else access.token,
        token_env=access.token_env,
        env=access.env,
        secrets={f"{worker.kind} login": access.token},
        fingerprint=access.fingerprint,
    )


def _upstream(
    worker: Worker, base_url: str, real: str, scheme: Literal["key", "bearer"]
) -> Upstream:
    assert worker.wire, "only calls of a known wire pass the gateway"
    return Upstream(
        wire=worker.wire,
        base_url=base_url,
        credential=real,
        placeholder=new_placeholder(),
        scheme=scheme,
    )


def resource_limits(settings: SandboxSpec) -> ResourceLimit:
    """What commands of a sandbox may use at most."""
    return ResourceLimit(
        cpus=settings.cpus,
        memory=settings.memory,
        pids=settings.pids,
        disk=settings.disk or DISK,
    )


def read_paths(spec: TaskSpec) -> tuple[Path, ...]:
    """Folders of this machine that the sandbox may read."""
    written = spec.runner.sandbox.read_paths
    return tuple(Path(os.path.normpath(Path(spec.base_dir) / path)) for path in written)
