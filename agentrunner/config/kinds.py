"""The traits of a kind of planner, worker or sandbox, read from its class; also of outside kinds.

Classes are looked up by name in the registry, so that no other list of kinds is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from agentrunner.config.agents import AUTO, PlannerSpec
from agentrunner.registry import PLANNERS, SANDBOXES, WORKERS, Kinds, load

_Traits = TypeVar("_Traits")


@dataclass(frozen=True)
class PlannerKind:
    """Class attributes of a planner by name, with the defaults for omitted ones."""

    calls_model: bool = True
    """Whether a model answers. A planner that is only a program is shown no repository, and a
    policy's models and endpoints do not apply to it.
    """
    reads_prompts: bool = True
    """Whether it reads `request.messages`; else none are made, and it gets only `request.facts`."""
    is_chat_model: bool = False
    """Whether an answer is one call of a chat model over HTTP, made by AgentRunner itself."""
    is_program: bool = False
    """Whether it starts a CLI, in a sandbox, which may have a login of its own."""
    by_code: bool = False
    """Whether asking again gives the same answer."""
    takes_schema: str | None = None
    """How a schema constrains its answers, as the end of "a schema …"; "" for not at all."""
    url_variable: str = ""
    """The environment variable that names its endpoint."""
    default_url: str = ""
    """The endpoint where no setting and no variable names one."""
    model_variables: tuple[str, ...] = ()
    """Environment variables that name its model; the first that is set does."""
    default_model: str = ""
    """The model where no setting and no variable names one."""

    def model_variable(self, environ: Mapping[str, str]) -> str:
        """Return the variable that names its model; "" if there is none."""
        return next((name for name in self.model_variables if environ.get(name)), "")

    def usual_model(self, environ: Mapping[str, str]) -> str:
        """Return its model where no setting names one; "" leaves it to the planner."""
        name = self.model_variable(environ)
        return environ[name] if name else self.default_model


@dataclass(frozen=True)
class WorkerKind:
    """Class attributes of a worker by name."""

    needs_model: bool = True
    """Whether it calls a model; if not, it gets no model and no endpoint."""


@dataclass(frozen=True)
class SandboxKind:
    """Class attributes of a sandbox by name, with the defaults for omitted ones."""

    has_image: bool = False
    """Whether it is made from an image, which may contain programs that this machine lacks."""
    isolates: bool = True
    """Whether commands in it are kept from the rest of this machine."""


def planner_kind(kind: str) -> PlannerKind:
    """Return the traits of a planner kind; `auto` can be any, with the usual kind's variables.

    Raises UsageError for an unknown kind, and for one that cannot be imported.
    """
    if kind == AUTO:
        usual = planner_kind(PlannerSpec.model_fields["kind"].default)
        return PlannerKind(url_variable=usual.url_variable, model_variables=usual.model_variables)
    return _read_traits(PlannerKind, PLANNERS, kind, "the planner")


def worker_kind(kind: str) -> WorkerKind:
    """Return the traits of a worker kind; `auto` is one with a model.

    Raises UsageError for an unknown kind, and for one that cannot be imported.
    """
    return WorkerKind() if kind == AUTO else _read_traits(WorkerKind, WORKERS, kind, "worker")


def sandbox_kind(kind: str) -> SandboxKind:
    """Return the traits of a sandbox kind; `auto` may be one with an image.

    Raises UsageError for an unknown kind, and for one that cannot be imported.
    """
    if kind == AUTO:
        return SandboxKind(has_image=True)
    return _read_traits(SandboxKind, SANDBOXES, kind, "sandbox")


def _read_traits(traits: type[_Traits], table: Kinds, kind: str, what: str) -> _Traits:
    cls: Any = load(table, kind, what)
    names = [field.name for field in fields(traits)]  # type: ignore[arg-type]
    return traits(**{name: getattr(cls, name) for name in names if hasattr(cls, name)})
