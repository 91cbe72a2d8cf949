"""What a kind of planner, worker or sandbox is, as its class says it; outside ones say it too.

Classes are asked by name through the registry, so that no list of kinds has to be kept elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from agentrunner.config.agents import AUTO, PlannerSpec
from agentrunner.registry import PLANNERS, SANDBOXES, WORKERS, Kinds, load

_Traits = TypeVar("_Traits")


@dataclass(frozen=True)
class PlannerKind:
    """Class attributes of a planner, by their names; one that is left out is as here."""

    calls_model: bool = True
    """Whether a model answers. One that is a program alone is shown no repository, and a policy's
    models and endpoints mean nothing to it."""
    reads_prompts: bool = True
    """Whether it reads `request.messages`; else none is made, and `request.facts` is all it has."""
    is_chat_model: bool = False
    """Whether one answer is one call of a chat model, over HTTP and by AgentRunner itself."""
    is_program: bool = False
    """Whether it starts a CLI, in a sandbox, which may have a login of its own."""
    by_code: bool = False
    """Whether asking again gives the same answer."""
    takes_schema: str | None = None
    """How a schema holds its answers, as the end of "a schema …"; "" for not at all."""
    url_variable: str = ""
    """The variable of this machine that names its endpoint."""


@dataclass(frozen=True)
class WorkerKind:
    """Class attributes of a worker, by their names."""

    needs_model: bool = True
    """Whether it calls a model; one that does not is told no model and no endpoint."""


@dataclass(frozen=True)
class SandboxKind:
    """Class attributes of a sandbox, by their names; one that is left out is as here."""

    has_image: bool = False
    """Whether it is made of an image, which may bring a program that this machine has not."""


def planner_kind(kind: str) -> PlannerKind:
    """What the planners of a kind are; `auto` is anything, with the endpoint of the usual kind.

    Raises UsageError for an unknown kind, and for one that cannot be imported.
    """
    if kind == AUTO:
        usual = planner_kind(PlannerSpec.model_fields["kind"].default)
        return PlannerKind(url_variable=usual.url_variable)
    return _of_class(PlannerKind, PLANNERS, kind, "the planner")


def worker_kind(kind: str) -> WorkerKind:
    """What the workers of a kind are; `auto` is one with a model.

    Raises UsageError for an unknown kind, and for one that cannot be imported.
    """
    return WorkerKind() if kind == AUTO else _of_class(WorkerKind, WORKERS, kind, "worker")


def sandbox_kind(kind: str) -> SandboxKind:
    """What the sandboxes of a kind are; `auto` may be one with an image.

    Raises UsageError for an unknown kind, and for one that cannot be imported.
    """
    if kind == AUTO:
        return SandboxKind(has_image=True)
    return _of_class(SandboxKind, SANDBOXES, kind, "sandbox")


def _of_class(traits: type[_Traits], table: Kinds, kind: str, what: str) -> _Traits:
    cls: Any = load(table, kind, what)
    names = [field.name for field in fields(traits)]  # type: ignore[arg-type]
    return traits(**{name: getattr(cls, name) for name in names if hasattr(cls, name)})
