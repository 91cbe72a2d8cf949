"""Where a task's commands run, and what they may reach, as a person writes it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from agentrunner.registry import ECOSYSTEMS
from agentrunner.task.hosts import checked_host
from agentrunner.task.written import Written

Hosts = list[Annotated[str, AfterValidator(checked_host)]]
NetworkPolicy = Literal["none", "allowlist", "full"]


class NetworkSpec(Written):
    """What a worker may reach beside its model."""

    policy: NetworkPolicy = "allowlist"
    """`none`: nothing, not even its model. `full`: the host's network."""
    allow: Hosts = []
    """`host:port`, `*.domain:port`, or `host:port@address`, the only way to a private address."""

    @model_validator(mode="after")
    def _allow_needs_list(self) -> NetworkSpec:
        if self.allow and self.policy != "allowlist":
            raise ValueError(f"allow has no meaning with the policy {self.policy}")
        return self


def _known_ecosystem(name: str) -> str:
    if name not in ECOSYSTEMS:
        raise ValueError(f'"{name}" is not known: auto, none, or of {", ".join(ECOSYSTEMS)}')
    return name


Ecosystems = list[Annotated[str, AfterValidator(_known_ecosystem)]]


def _caches_from_text(value: Any) -> Any:
    """One ecosystem may stand by itself."""
    return [value] if isinstance(value, str) and value not in ("auto", "none") else value


def _network_from_text(value: Any) -> Any:
    return {"policy": value} if isinstance(value, str) else value


class SandboxSpec(Written):
    """Where workers, tests and checks run."""

    kind: str = "auto"
    """`auto` (the first that works here), `docker`, `bwrap`, or `none` (no isolation)."""
    network: Annotated[
        NetworkSpec | None,
        BeforeValidator(
            _network_from_text, json_schema_input_type=NetworkSpec | NetworkPolicy | None
        ),
    ] = None
    """For workers. Left out, `allowlist` with no host for one that calls a model, else `none`."""
    pull: Literal["never", "missing", "always"] | None = None
    """Whether an image is fetched. Left out, a missing one is asked for in a terminal."""
    image_from: str | None = None
    """A Dockerfile or devcontainer.json of the repository to build the image from."""
    cpus: float | None = Field(None, gt=0)
    """At most this many processors."""
    memory: str | None = Field(None, pattern=r"^\d+(\.\d+)?[kKmMgG]?$")
    """At most this much, as in `512m` or `4g`."""
    pids: int | None = Field(None, gt=0)
    """At most this many processes."""
    disk: str | None = Field(None, pattern=r"^\d+(\.\d+)?[kKmMgG]?$")
    """The work tree may grow by at most this much. Left out, `10g`."""
    caches: Annotated[
        Literal["auto", "none"] | Ecosystems,
        BeforeValidator(
            _caches_from_text, json_schema_input_type=Literal["auto", "none"] | Ecosystems | str
        ),
    ] = "auto"
    """Package caches of yours that the box is shown, read-only: `auto` (of the ecosystems whose
    manifests are in the repository), `none`, or a list as `[go, npm]`."""
    read_paths: list[str] = []
    """Folders of this machine that the box may read."""
