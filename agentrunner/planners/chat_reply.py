"""Convert answers of LangChain's chat models into our `Reply`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentrunner.planners.base import Reply

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTERED = frozenset({"content_filter", "safety", "blocklist", "prohibited_content"})


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
