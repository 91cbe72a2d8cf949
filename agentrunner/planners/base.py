"""What a planner is asked and answers. `asking.py` does the asking; clients only complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from agentrunner.errors.planners import NoPlannerAnswer, NoUsableAnswer
from agentrunner.gateway.order import Allowance

if TYPE_CHECKING:
    from agentrunner.gateway.usage import ErrorClass
    from agentrunner.planners.workplace import Workplace
    from agentrunner.workers.base import FailureKind

Known = Literal["counted", "reported", "unknown"]
"""How a figure is known: from the provider's own reply, as a CLI says it, or not at all."""

MessageType = Literal[
    "plan_task", "next_action", "completion_assessment", "decompose", "plan_patch"
]


@dataclass(frozen=True)
class ChatMessage:
    """One message of the conversation with the model."""

    role: Literal["system", "user", "assistant"]
    content: str


def in_turns(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The messages with neighbours of one role as one: chat templates want roles to take turns.

    What they begin with stays what it was, so that a provider finds it in its cache.
    """
    turns: list[ChatMessage] = []
    for message in messages:
        if turns and turns[-1].role == message.role:
            turns[-1] = ChatMessage(message.role, f"{turns[-1].content}\n\n{message.content}")
        else:
            turns.append(message)
    return turns


@dataclass(frozen=True)
class Written:
    """What has come of an answer so far, of a planner that streams."""

    text: str
    """The answer; nothing of it may be used before it is whole."""
    thoughts: int = 0
    """Characters of reasoning, which is no part of the answer."""
    seconds: float = 0
    """Since its server began to answer."""
    reading: int = 0
    """About how many tokens its server reads first; then nothing is written yet."""


@dataclass(frozen=True)
class PlannerRequest:
    """One attempt on the wire."""

    type: MessageType
    messages: tuple[ChatMessage, ...]
    schema: Mapping[str, Any]
    """JSON Schema of the wrapped message."""
    facts: Mapping[str, Any]
    """The summary that the prompt was rendered from, for clients that are no model."""
    call_number: int
    """Counts attempts over the whole run, from 0; kept in the state."""
    max_output_tokens: int | None = None
    allowance: Allowance = field(default_factory=Allowance)
    """What the run may still spend, for clients whose calls pass a gateway."""
    simpler: Mapping[str, Any] | None = None
    """A schema that is not made for the task, where a server does not take the other."""
    alike: Mapping[str, Any] | None = None
    """One schema for all messages of the run, where the answer is one of those and was not asked
    for before; for whoever has the schema in what it caches."""
    progress: Callable[[Written], None] | None = None
    """Is called as the answer comes, by clients that stream it."""
    stable: int = 0
    """How many of the first messages the next request begins with, too."""


@dataclass(frozen=True)
class Reply:
    """What came back: text and how it ended, never a parsed message."""

    text: str
    finish_reason: str = "stop"
    """`stop`, `length`, `content_filter`, `refusal`."""
    input_tokens: int = 0
    """All that was read, cached or not."""
    output_tokens: int = 0
    model: str = ""
    cached_tokens: int = 0
    """The part of `input_tokens` that came from a cache."""
    usd: float | None = None
    """What it cost, where whoever answered tells; None leaves it to the table of prices."""
    known: Known = "unknown"
    """How the figures are known."""
    subscription: bool = False
    """Whether it is part of a subscription, so that no price is paid for it."""
    candidate: str = ""
    """The name of who answered, among those of the role."""


class PlannerClient(Protocol):
    """Someone who can answer a request."""

    kind: str

    def describe(self) -> str:
        """For the header: "openai-chat gpt-5.5 at api.example"."""

    async def complete(self, request: PlannerRequest) -> Reply:
        """One attempt; raises PlannerUnavailable, or InfraError where a key is missing."""

    async def close(self) -> None:
        """Release connections."""


@runtime_checkable
class NeedsWorkplace(Protocol):
    """A client that works with programs of its own, and so wants a place in the run."""

    async def open(self, workplace: Workplace) -> None:
        """Keep the place; starts nothing and spends nothing. Before the first `complete`."""


class PlannerUnavailable(NoPlannerAnswer):
    """The model's API did not answer. `retryable` with an optional server wish in seconds."""

    def __init__(
        self,
        message: str,
        *,
        retryable: bool,
        retry_after: float | None = None,
        kind: FailureKind | Literal[""] = "",
        reset_at: str = "",
        spent: Reply | None = None,
        candidate: str = "",
        reason: ErrorClass | Literal[""] = "",
        status: int | None = None,
        other_form: bool = False,
    ) -> None:
        """`kind` says why, as far as known; `reset_at` when a quota is there again, in UTC and
        ISO 8601; `spent` what the attempt has used all the same; `candidate` whose word it is.
        `reason` is finer than `kind`, as the answer with the HTTP status `status` told it. With
        `other_form` the next attempt asks otherwise, so that it is no repetition.
        """
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after
        self.kind: FailureKind | Literal[""] = kind
        self.reset_at = reset_at
        self.spent = spent
        self.candidate = candidate
        self.reason: ErrorClass | Literal[""] = reason
        self.status = status
        self.other_form = other_form


class PlannerUnusable(NoUsableAnswer):
    """The model answered, and no answer was one that can be used."""

    def __init__(
        self,
        message: str,
        *,
        fault: str,
        answer: str,
        finish_reason: str = "stop",
        remedy: str = "",
        details: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """`fault` says what is wrong with the last `answer`, `finish_reason` how that ended."""
        super().__init__(message, remedy=remedy, details=details)
        self.fault = fault
        self.answer = answer
        self.finish_reason = finish_reason


def answers_by_code(client: object) -> bool:
    """Whether a program answers, so that neither time nor a person makes it answer otherwise."""
    return bool(getattr(client, "by_code", False))


@dataclass(frozen=True)
class PlannerCall:
    """The record of one attempt on the wire, for the run log and the note."""

    number: int
    type: MessageType
    messages: tuple[ChatMessage, ...]
    response: str
    error: str
    duration_sec: float
    input_tokens: int = 0
    output_tokens: int = 0
    model: str = ""
    cached_tokens: int = 0
    usd: float | None = None
    """See `Reply`, as for the next three."""
    known: Known = "unknown"
    subscription: bool = False
    candidate: str = ""
    looks: tuple[str, ...] = ()
    """What it looked at in place of an answer, in words."""
    extra: Mapping[str, Any] = field(default_factory=dict)
