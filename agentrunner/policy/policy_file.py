"""The policy file as models: limits that no task on this machine may exceed.

A task file is code that a pull request can change. A policy file is outside the repository, and can
only make a task narrower. Field names are those of the task file where they mean the same. What a
policy leaves out is not limited; an empty list allows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from agentrunner import registry
from agentrunner.config.agents import See
from agentrunner.config.budget import Limits
from agentrunner.config.config_model import ConfigModel
from agentrunner.config.mistakes import suggestion
from agentrunner.config.sandbox import Ecosystems, Hosts, NetworkPolicy, file_size
from agentrunner.config.spec import number_from_text
from agentrunner.config.yaml_text import Place, YamlTree


def _one_of(known: Iterable[str]) -> AfterValidator:
    def check(kind: str) -> str:
        names = list(known)
        if kind not in names:
            near = suggestion(kind, names)
            raise ValueError(f'"{kind}" is not known: {near or ", ".join(names)}')
        return kind

    return AfterValidator(check)


def _web_address(url: str) -> str:
    parts = urlsplit(url)  # a ValueError of its own for what is no URL at all
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise ValueError(f'"{url}" is no address like https://api.openai.com/v1')
    return url


def _absolute(path: str) -> str:
    if not Path(path).is_absolute():
        raise ValueError(f'"{path}" is not absolute')
    return path


class SandboxCaps(ConfigModel):
    """Where work, tests and checks may run."""

    kinds: list[Annotated[str, _one_of(registry.SANDBOXES)]] | None = None
    """Sandboxes that may be used; `auto` then chooses among them."""
    network: NetworkPolicy | None = None
    """The most that a worker may be given. Left out, `allowlist` where there are `hosts`. Below
    `full`, no task may have an image built from its repository: a build reaches every host."""
    hosts: Hosts | None = None
    """Hosts that tasks, set-up and tests may name, as `host:port`, `*.domain:port` or pinned."""
    images: list[str] | None = None
    """Images of sandboxes, `*` for any text, as in `team/worker@sha256:*`; the first without `*` is
    taken where a task names none. Images built from the repository are then refused."""
    read_paths: list[Annotated[str, AfterValidator(_absolute)]] | None = None
    """Folders of which a task may have any part read."""

    caches: Literal["none"] | Ecosystems | None = None
    """Ecosystems whose package caches a sandbox may be shown; `none` for no cache at all."""
    keep_files_up_to: Annotated[str, AfterValidator(file_size)] | None = None
    """The most that `runner.sandbox.keep_files_up_to` may be: each run keeps files of that size."""


class WorkerCaps(ConfigModel):
    """Who may work."""

    kinds: list[Annotated[str, _one_of(registry.WORKERS)]] | None = None
    """Workers that may be used."""
    models: list[str] | None = None
    """Models, `*` for any text; the first without `*` is taken where a task names none."""
    base_urls: list[Annotated[str, AfterValidator(_web_address)]] | None = None
    """Endpoints, each with all that is below it; the first is taken where a task names none."""
    commands: list[str] | None = None
    """First words of `runner.worker.command`, `*` for any text. A command as one text is `sh`."""
    flags: list[str] | None = None
    """Words that `runner.worker.flags` may hold, `*` for any text. Left out, none where `models`
    or `base_urls` are limited, since flags can set both."""
    env: list[str] | None = None
    """Variables of this machine that `env:NAME` may read, `*` for any text."""
    login: bool | None = None
    """`false`: no `auth: login`."""


class PlannerCaps(ConfigModel):
    """Who may plan and decide."""

    kinds: list[Annotated[str, _one_of(registry.PLANNERS)]] | None = None
    """Planners that may be used."""
    models: list[str] | None = None
    """Models, `*` for any text; the first without `*` is taken where a task names none."""
    base_urls: list[Annotated[str, AfterValidator(_web_address)]] | None = None
    """Endpoints, each with all that is below it; the first is taken where nothing names one."""
    login: bool | None = None
    """`false`: no CLI plans with the login of this machine."""
    max_loops: int | None = Field(None, ge=0, le=1000)
    """The most rounds after the first."""
    see: See | None = None
    """The most that leaves for a planner's provider: `nothing`, `change`, `repo`, in this order."""


class BudgetCaps(Limits):
    """The most that a run may use; a task that sets no limit gets this one."""


class PolicyFile(ConfigModel):
    """A policy file of AgentRunner, version 1."""

    version: Annotated[Literal[1], BeforeValidator(number_from_text)]
    """The version of this format."""
    sandbox: SandboxCaps = SandboxCaps.model_construct()
    """Where work, tests and checks may run."""
    worker: WorkerCaps = WorkerCaps.model_construct()
    """Who may work."""
    meta: PlannerCaps = PlannerCaps.model_construct()
    """Who may plan and decide."""
    budget: BudgetCaps = BudgetCaps.model_construct()
    """The most that a run may use."""
    completion: Literal["judged", "evidence", "strict"] | None = None
    """The least that COMPLETE asks for: `judged`, `evidence`, `strict`, in this order."""


@dataclass(frozen=True)
class Policy:
    """A policy file that was read."""

    caps: PolicyFile
    path: Path
    """Absolute."""
    sha256: str
    """Of the file's bytes."""
    tree: YamlTree = field(default_factory=lambda: YamlTree({}), repr=False)

    def place(self, key: str) -> Place:
        """Return where a setting such as "sandbox.kinds" is; the file if it is not there."""
        found = self.tree.place(tuple(key.split(".")))
        return found if found.where else Place(str(self.path))


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of the policy file, for editors."""
    schema = PolicyFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
