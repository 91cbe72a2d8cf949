"""Detect prompts that a server truncated silently, by the token count it reports. Pure.

Ollama and others read what fits into their window and answer as if that were all; llama.cpp can be
started so. The planner then answers a question without its beginning: role, rules and task. A count
far below the least number of tokens that the text can have reveals it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from agentrunner.config.kinds import planner_kind
from agentrunner.planners.base import PlannerCall

CODE = "prompt-cut"
"""Code of the warning that a server reads only a part of what it is sent."""
WORTH_A_LOOK = 1200
"""Estimated tokens from which a prompt is compared."""
LETTERS = 7.0
"""Most ASCII characters per token; no tokenizer reaches it on prompts like ours."""
OTHERS = 3.0
"""The same for all other characters."""
WINDOW = 1024
"""Context windows of servers are multiples of it."""
USUAL = 0.75
"""Share of the usual estimate; a count below it that equals a window size is taken for a window."""
ROOM = 2
"""Suggested window as a multiple of what was sent: the prompt fits and the run can grow."""


class Cut(Struct, frozen=True):
    """A prompt of which the server has read only a part."""

    read: int
    """Tokens that the server reports as read."""
    sent: int
    """Tokens that it was sent, approximately."""

    @property
    def wanted(self) -> int:
        """A sufficient window in tokens: a power of two."""
        size = WINDOW
        while size < ROOM * self.sent:
            size *= 2
        return size

    def sentence(self) -> str:
        """Return what is wrong, and the setting that fixes it with each server."""
        return (
            f"The planner's server read {self.read:,} of about {self.sent:,} tokens: it cut the "
            f"prompt in silence, since its context is too small. Give it {self.wanted:,}: "
            f"OLLAMA_CONTEXT_LENGTH={self.wanted} ollama serve; llama-server -c {self.wanted}; "
            f"vllm serve --max-model-len {self.wanted}; LM Studio: context length of the model."
        )


def cut_of(texts: Iterable[str], read: int) -> Cut | None:
    """Return the cut if `read` tokens are too few for these texts; None if the count is plausible.

    A `read` of 0 means that the server reports no count.
    """
    if read <= 0:
        return None
    letters = others = 0
    for text in texts:
        ascii_ = len(text.encode("ascii", "ignore"))
        letters += ascii_
        others += len(text) - ascii_
    usual = letters // 4 + others
    if usual < WORTH_A_LOOK:
        return None
    least = letters / LETTERS + others / OTHERS
    at_window = any((read + off) % WINDOW == 0 for off in (0, 1, 2))
    if read < least or (at_window and read < USUAL * usual):
        return Cut(read, usual)
    return None


def cut_in_call(call: PlannerCall) -> Cut | None:
    """Return the cut of a call to a chat model that counts its tokens; else None."""
    kind = call.candidate.partition(":")[0]
    if call.known != "counted" or not kind or not planner_kind(kind).is_chat_model:
        return None
    return cut_of((message.content for message in call.messages), call.input_tokens)
