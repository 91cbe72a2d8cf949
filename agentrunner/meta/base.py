"""What a meta-agent is asked and answers. `asking.py` does the asking; clients only complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agentrunner.errors import TaskFailed

MessageType = Literal[
    "plan_task", "next_action", "completion_assessment", "decompose", "plan_patch"
]


@dataclass(frozen=True)
class ChatMessage:
    """One message of the conversation with the model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class MetaRequest:
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


@dataclass(frozen=True)
class Reply:
    """What came back: text and how it ended, never a parsed message."""

    text: str
    finish_reason: str = "stop"
    """`stop`, `length`, `content_filter`, `refusal`."""
    input_tokens: int = 0
    output_tokens: int = 0
    model: str = ""


class MetaClient(Protocol):
    """Someone who can answer a request."""

    kind: str

    def describe(self) -> str:
        """For the header: "openai-chat gpt-5.5 at api.example"."""

    async def complete(self, request: MetaRequest) -> Reply:
        """One attempt; raises MetaUnavailable, or Surroundings where a key is missing."""

    async def close(self) -> None:
        """Release connections."""


class MetaUnavailable(TaskFailed):
    """The model's API did not answer. `retryable` with an optional server wish in seconds."""

    default_code = "meta-unavailable"

    def __init__(self, message: str, *, retryable: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after


@dataclass(frozen=True)
class MetaCall:
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
    extra: Mapping[str, Any] = field(default_factory=dict)
