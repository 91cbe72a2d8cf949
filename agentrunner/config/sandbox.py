"""Where a task's commands run, and what they may reach, as a person writes it."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from agentrunner.config.config_model import ConfigModel, from_text
from agentrunner.config.hosts import checked_host
from agentrunner.config.kinds import sandbox_kind
from agentrunner.registry import ECOSYSTEMS, SANDBOXES
from agentrunner.text.lazy_regex import lazy_regex

Hosts = list[Annotated[str, AfterValidator(checked_host)]]
NetworkPolicy = Literal["none", "allowlist", "full"]


class NetworkSpec(ConfigModel):
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


SIZE = lazy_regex(r"(\d+(?:\.\d+)?)([kmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
KEPT = "50m"
"""The size up to which files are kept if nothing else is set."""
SMALLEST_KEPT = 1 << 20
"""Files up to this size are always kept: sources, and what tests compare with."""


def size_of(text: str) -> int:
    """Parse "50m" or "1.5g" as bytes; raises ValueError."""
    match = SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'"{text}" is no size: a number and a unit, as in "50m" or "2g"')
    return int(float(match[1]) * _UNITS[match[2].lower()])


def file_size(text: str) -> str:
    """Return a valid size limit for kept files unchanged; raises ValueError for any other text."""
    if size_of(text) < SMALLEST_KEPT:
        raise ValueError(f'"{text}" is below 1m: files up to there are always kept')
    return text


def _known_ecosystem(name: str) -> str:
    if name not in ECOSYSTEMS:
        raise ValueError(f'"{name}" is not known: auto, none, or of {", ".join(ECOSYSTEMS)}')
    return name


Ecosystems = list[Annotated[str, AfterValidator(_known_ecosystem)]]


def _caches_from_text(value: Any) -> Any:
    """Allow a single ecosystem without a list."""
    return [value] if isinstance(value, str) and value not in ("auto", "none") else value


class SandboxSpec(ConfigModel):
    """Where workers, tests and checks run."""

    kind: str = Field(
        "auto",
        description=f"`auto` (the first that works here), or {SANDBOXES.named()} (no isolation).",
    )
    network: Annotated[
        NetworkSpec | None, from_text(NetworkSpec | NetworkPolicy | None, "policy")
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
    keep_files_up_to: Annotated[str, AfterValidator(file_size)] | None = None
    """Files up to this size are kept as they are before the first worker, so that `undo` can bring
    them back; of larger ones size and times. Left out, `50m`; at least `1m`."""
    caches: Annotated[
        Literal["auto", "none"] | Ecosystems,
        BeforeValidator(
            _caches_from_text, json_schema_input_type=Literal["auto", "none"] | Ecosystems | str
        ),
    ] = "auto"
    """Package caches of yours that the sandbox is shown, read-only: `auto` (of the ecosystems whose
    manifests are in the repository), `none`, or a list as `[go, npm]`."""
    read_paths: list[str] = []
    """Folders of this machine that the sandbox may read."""

    @property
    def isolates(self) -> bool:
        """Whether commands are isolated from this machine. Raises UsageError as `sandbox_kind`."""
        return sandbox_kind(self.kind).isolates

    @property
    def has_image(self) -> bool:
        """Whether an image may provide a program that this machine lacks."""
        return sandbox_kind(self.kind).has_image

    @property
    def kept_bytes(self) -> int | None:
        """`keep_files_up_to` in bytes; None if it is not set."""
        return size_of(self.keep_files_up_to) if self.keep_files_up_to else None
