"""Requests to a planner and replies of it. `asking.py` does the asking; clients only complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from agentrunner.errors.planners import NoPlannerAnswer, NoUsableAnswer
from agentrunner.gateway.order import Allowance

if TYPE_CHECKING:
    from agentrunner.gateway.usage import ErrorClass
    from agentrunner.money.amount import Known
    from agentrunner.planners.workplace import Workplace
    from agentrunner.protocol.message import MessageType
    from agentrunner.workers.base import FailureKind


class ChatMessage(Struct, frozen=True):
    """One message of the conversation with the model."""

    role: Literal["system", "user", "assistant"]
    content: str


def in_turns(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Merge adjacent messages of one role, because chat templates want roles to alternate.

    The beginning of each message stays the same, so that the provider still finds it in its cache.
    """
    return [
        ChatMessage(role, "\n\n".join(message.content for message in of_one))
        for role, of_one in groupby(messages, key=lambda message: message.role)
    ]


class PartialAnswer(Struct, frozen=True):
    """A partial answer, from a planner that streams."""

    text: str
    """The answer so far; none of it may be used before it is complete."""
    thoughts: int = 0
    """Characters of reasoning, which are not part of the answer."""
    seconds: float = 0
    """Seconds since the server began to answer."""
    reading: int = 0
    """Approximate prompt size in tokens while the server still reads it and has written nothing."""


@dataclass(frozen=True)
class PlannerRequest:
    """One attempt on the wire."""

    type: MessageType
    messages: tuple[ChatMessage, ...]
    schema: Mapping[str, Any]
    """JSON Schema of the wrapped message."""
    facts: Mapping[str, Any]
    """The summary that the prompt was rendered from, for clients that are not models."""
    call_number: int
    """Number of this attempt, counted from 0 over the whole run; kept in the state."""
    max_output_tokens: int | None = None
    allowance: Allowance = field(default_factory=Allowance)
    """What the run may still spend, for clients whose calls pass through a gateway."""
    simpler: Mapping[str, Any] | None = None
    """A schema that is not specific to the task, for servers that refuse `schema`."""
    alike: Mapping[str, Any] | None = None
    """One schema for all messages of the run, for providers that cache the schema with the prompt.
    None unless the answer is one of those messages and was not asked for before.
    """
    progress: Callable[[PartialAnswer], None] | None = None
    """Called with the partial answer by clients that stream."""
    stable: int = 0
    """How many of the first messages the next request begins with, too."""


@dataclass(frozen=True)
class Reply:
    """The text that came back and how it ended; never a parsed message."""

    text: str
    finish_reason: str = "stop"
    """`stop`, `length`, `content_filter`, `refusal`."""
    input_tokens: int = 0
    """Everything that was read, cached or not."""
    output_tokens: int = 0
    model: str = ""
    cached_tokens: int = 0
    """The part of `input_tokens` that came from a cache."""
    usd: float | None = None
    """The cost as the answering side reports it; None leaves it to the price table."""
    known: Known = "unknown"
    """Whether the figures are counted from the provider's reply, or reported by a CLI."""
    subscription: bool = False
    """Whether the call is covered by a subscription, so that no price is paid for it."""
    candidate: str = ""
    """The name of who answered, among those of the role."""
    near: bool = False
    """Whether a server of this machine or of its network answered, which has no list price."""


class PlannerClient(Protocol):
    """A client that can answer planner requests."""

    kind: str

    def describe(self) -> str:
        """Return a text for the header: "openai-chat gpt-5.5 at api.example"."""

    async def complete(self, request: PlannerRequest) -> Reply:
        """Make one attempt; raises PlannerUnavailable, or InfraError where a key is missing."""

    async def close(self) -> None:
        """Release connections."""


@runtime_checkable
class NeedsWorkplace(Protocol):
    """A client that runs programs of its own and therefore needs a place in the run."""

    async def open(self, workplace: Workplace) -> None:
        """Keep `workplace`; called before the first `complete`. Starts and spends nothing."""


class PlannerUnavailable(NoPlannerAnswer):
    """The model's API did not answer. `retryable` says whether another attempt makes sense."""

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
        """`kind` is the reason, as far as known. `retry_after` is the server's requested wait in
        seconds. `reset_at` is when a quota is available again (UTC, ISO 8601). `spent` is what the
        attempt has used nevertheless; `candidate` is who failed. `reason` is finer than `kind`,
        derived from the answer with the HTTP status `status`. With `other_form` the next attempt
        asks in another form, so it is no repetition.
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
    """The model answered, but none of its answers can be used."""

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
        """`fault` is what is wrong with the last `answer`, `finish_reason` how that ended."""
        super().__init__(message, remedy=remedy, details=details)
        self.fault = fault
        self.answer = answer
        self.finish_reason = finish_reason


def answers_by_code(client: object) -> bool:
    """Whether a program answers: then neither waiting nor a person will change its answer."""
    return bool(getattr(client, "by_code", False))


def answers_from_facts(client: object) -> bool:
    """Whether the facts alone decide an answer: then asking again about the same ones is idle."""
    return bool(getattr(client, "from_facts", False))


def costs_nothing(client: object, is_free: Callable[[str], bool]) -> bool:
    """Whether no call of this client has a price: a program answers, a subscription covers it, or
    a server nearby has the model, which `is_free` then knows by its name."""
    near = getattr(client, "near_model", "")
    covered = bool(getattr(client, "subscribed", False))
    return answers_by_code(client) or covered or bool(near and is_free(near))


@dataclass(frozen=True, kw_only=True)
class PlannerCall(Reply):
    """The record of one attempt on the wire, for the run log and the note."""

    number: int
    type: MessageType
    messages: tuple[ChatMessage, ...]
    error: str
    """Why its text is not used; "" where it is."""
    duration_sec: float
    looks: tuple[str, ...] = ()
    """Descriptions of what it looked at instead of answering."""

    @property
    def name(self) -> str:
        """Return how the names of its files begin, in the folder of the run or the conversation."""
        return f"meta/{self.number:04d}-{self.type}"

    @property
    def request(self) -> str:
        """Return what was sent, as JSON."""
        return msgspec.json.encode(self.messages).decode()

    def as_record(self, at: str, cost: Mapping[str, Any]) -> dict[str, Any]:
        """Return its line of the log; `at` is now, and `cost` comes from `cost_of`."""
        return {
            "number": self.number,
            "type": self.type,
            "at": at,
            "duration_sec": round(self.duration_sec, 3),
            **cost,
            "error": self.error,
            "model": self.model,
            "looks": list(self.looks),
        }
