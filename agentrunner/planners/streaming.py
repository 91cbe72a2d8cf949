"""Assemble a streamed chat completion into an ordinary one.

Reading the stream ourselves shows when the first token comes and when the next one does not, so
that we wait for a slow server but not for a dead one. Every fault of a stream is reported as such:
a stream that stops in the middle is never taken for an answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentrunner.planners.base import PartialAnswer, PlannerRequest, PlannerUnavailable, Reply
from agentrunner.planners.retry import http_failure, network_failure
from agentrunner.planners.timeouts import TimeLimits
from agentrunner.text.cut import tokens

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTERED = frozenset({"content_filter", "safety", "blocklist", "prohibited_content"})

MAX_STREAM_BYTES = 64 * 1024 * 1024
"""Bytes of events, which are some hundred per token."""
MAX_TEXT = 8 * 1024 * 1024
BLANKS = 2000
"""Consecutive blanks after which a constrained model counts as stuck in them."""
END_SEC = 1.0
"""Seconds to wait for the end of a body after its last event, to reuse the connection."""
MOST_TOKENS = 100_000_000
"""More than any model reads or writes at once; a larger figure is not a real count."""
REASONING = ("reasoning_content", "reasoning")
"""Keys of a delta that hold reasoning, as far as seen."""

Progress = Callable[[PartialAnswer], None]


class CompletionStream:
    """Takes bytes in pieces of any size; raises PlannerUnavailable for a bad stream."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._text: list[str] = []
        self._length = 0
        self._blanks = 0
        self._head: dict[str, Any] = {}
        self._usage: Any = None
        self._refusal = ""
        self._size = 0
        self.finish_reason = ""
        self.done = False
        self.thoughts = 0
        """Characters of reasoning, which are not part of the answer."""

    @property
    def characters(self) -> int:
        """Length of the answer so far."""
        return self._length

    @property
    def text(self) -> str:
        """The answer so far."""
        if len(self._text) > 1:
            self._text = ["".join(self._text)]
        return self._text[0] if self._text else ""

    @property
    def caught(self) -> bool:
        """Whether the model is stuck: so many blanks in a row that nothing else will come."""
        return self._blanks > BLANKS

    def feed(self, data: bytes) -> None:
        """Take the next piece of the body."""
        self._size += len(data)
        if self._size > MAX_STREAM_BYTES or self._length > MAX_TEXT:
            raise PlannerUnavailable(
                "The planner's server sent more than an answer can have.",
                retryable=False,
                kind="protocol",
            )
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line.removesuffix(b"\r"))

    def end(self) -> dict[str, Any]:
        """The body of an ordinary completion; raises PlannerUnavailable if the stream broke off."""
        if self._rest.strip():
            self._line(self._rest)
        self._event()
        if not (self.done or self.finish_reason or self.caught):
            raise broken(self.characters)
        reason = self.finish_reason or "stop"
        if self.caught:  # its limit would have ended it; what is cut is requested again
            reason = "length" if self.text.strip() else "stop"
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self._refusal:
            message["refusal"] = self._refusal
        body = {
            "id": str(self._head.get("id") or "stream"),
            "object": "chat.completion",
            "created": 0,
            "model": str(self._head.get("model") or ""),
            "choices": [{"index": 0, "finish_reason": reason, "message": message}],
            "usage": self._usage,
        }
        return with_sane_usage(body)

    def _line(self, line: bytes) -> None:
        if not line:
            self._event()
            return
        name, _, value = line.partition(b":")
        if name in (b"data", b"error"):  # older llama.cpp servers name a fault so
            self._data.append(value)

    def _event(self) -> None:
        """Process the event that the lines so far make up."""
        if not self._data:
            return
        data, self._data = b"\n".join(self._data).strip(), []
        if not data:
            return
        if data == b"[DONE]":
            self.done = True
            return
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise network_failure(
                "The planner's server sent an event that is no UTF-8: the stream is damaged."
            ) from None
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            raise PlannerUnavailable(
                f"The planner's server sent an event that is no JSON: {text[:200]}",
                retryable=True,
                kind="protocol",
            ) from None
        if not isinstance(event, dict) or event.get("error") or "code" in event:
            raise http_failure(200, text)
        self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        self._head = self._head or event
        if event.get("usage") is not None:
            self._usage = event["usage"]
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        if not isinstance(choice, dict):
            return
        delta = choice.get("delta") or choice.get("message") or {}
        if isinstance(delta, dict):
            self._add(delta.get("content"))
            self._refusal += _text(delta.get("refusal"))
            self.thoughts += sum(len(_text(delta.get(name))) for name in REASONING)
        self.finish_reason = _text(choice.get("finish_reason")) or self.finish_reason

    def _add(self, content: object) -> None:
        piece = _text(content)
        if not piece:
            return
        self._text.append(piece)
        self._length += len(piece)
        end = len(piece) - len(piece.rstrip())
        self._blanks = self._blanks + end if end == len(piece) else end


def broken(characters: int) -> PlannerUnavailable:
    """Return the failure for a stream that ended before its answer did."""
    return network_failure(f"The planner's answer broke off after {characters} characters.")


def with_sane_usage(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with an impossible usage replaced by None, which means unknown."""
    usage = body.get("usage")
    names = ("prompt_tokens", "completion_tokens")
    if "output" in body:  # the Responses API
        names = ("input_tokens", "output_tokens")
    sane = isinstance(usage, dict) and all(_is_count(usage.get(name)) for name in names)
    if sane and isinstance(usage, dict):
        total = usage.get("total_tokens")
        if _is_count(total):
            return body
        return {**body, "usage": {**usage, "total_tokens": sum(usage[name] for name in names)}}
    return {**body, "usage": None}


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


async def read_stream(
    chunks: AsyncIterator[bytes],
    limits: TimeLimits,
    host: str,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return the completion in a stream as the body of an ordinary answer.

    Raises PlannerUnavailable where nothing comes for too long, and for what is not an answer.
    """
    import asyncio  # not for who only asks what kind of planner this is

    stream, begun = CompletionStream(), time.monotonic()
    wait = max(limits.first, limits.between)
    try:
        async with asyncio.timeout(wait) as limit:
            async for piece in chunks:
                stream.feed(piece)
                if progress is not None:
                    progress(PartialAnswer(stream.text, stream.thoughts, time.monotonic() - begun))
                if stream.caught:
                    break
                if stream.done:
                    wait = END_SEC
                # Before, it may load the model and read the prompt; keep-alives show that.
                elif stream.characters or stream.thoughts:
                    wait = limits.between
                until = asyncio.get_running_loop().time() + wait
                # To move it costs as much as to read a token.
                if abs(until - (limit.when() or 0)) > wait / 100:
                    limit.reschedule(until)
    except TimeoutError:
        if not stream.done:
            raise silent(host, wait, stream.characters) from None
    return stream.end()


def tell_reading(request: PlannerRequest) -> None:
    """Report that the server first has a prompt to read before it writes anything."""
    if request.progress is not None:
        size = sum(tokens(message.content) for message in request.messages)
        request.progress(PartialAnswer("", reading=size))


def silent(host: str, seconds: float, characters: int) -> PlannerUnavailable:
    """Return the failure for a server that is connected but sends nothing for too long."""
    progress = f"stopped after {characters} characters" if characters else "wrote nothing"
    return network_failure(f"The planner at {host} {progress}: no sign of life for {seconds:g} s.")


def reply_of(answer: AIMessage) -> Reply:
    """Return text, finish reason and usage of an answer, whatever the provider calls them."""
    usage = answer.usage_metadata
    meta = answer.response_metadata
    refusal = answer.additional_kwargs.get("refusal")
    details: Mapping[str, Any] = (usage.get("input_token_details") or {}) if usage else {}
    return Reply(
        # .text joins the blocks of the Responses API and leaves out thinking.
        text=str(refusal or answer.text),
        finish_reason="refusal" if refusal else _finish_reason(meta),
        input_tokens=usage["input_tokens"] if usage else 0,
        output_tokens=usage["output_tokens"] if usage else 0,
        model=str(meta.get("model_name") or meta.get("model") or ""),
        cached_tokens=details.get("cache_read") or 0,
        known="counted" if usage else "unknown",
    )


def _finish_reason(meta: Mapping[str, Any]) -> str:
    """Map the server's finish reason to ours; servers have many words for a normal end."""
    incomplete = meta.get("incomplete_details") or {}
    words = (incomplete.get("reason"), meta.get("finish_reason"), meta.get("stop_reason"))
    word = str(next(filter(None, words), "stop")).lower()
    if word in _CUT:
        return "length"
    if word in _FILTERED:
        return "content_filter"
    return "refusal" if word == "refusal" else "stop"
