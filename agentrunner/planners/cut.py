"""Prompts that a server cut in silence, found by what it says that it has read. Pure.

Ollama and others read what fits into their window and answer as if that were all; llama.cpp can
be started so. The planner then answers a question of which it never saw the beginning: its role,
the rules and the task. A count of tokens that is far below the least a text can have shows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

WORTH_A_LOOK = 1200
"""Estimated tokens from which on a prompt is compared."""
LETTERS = 7.0
"""More ASCII characters to a token than any tokenizer reaches on prompts like ours."""
OTHERS = 3.0
"""The same of any other characters."""
WINDOW = 1024
"""Windows of servers are multiples of it."""
USUAL = 0.75
"""Of the usual estimate: below it a count that is just a window is taken for one."""
ROOM = 2
"""A window in which the prompt fits and the run can grow: so many times what was sent."""


@dataclass(frozen=True)
class Cut:
    """A prompt of which the server has read a part only."""

    read: int
    """Tokens that the server says it has read."""
    sent: int
    """About how many it was sent."""

    @property
    def wanted(self) -> int:
        """A window that would do, in tokens: a power of two."""
        size = WINDOW
        while size < ROOM * self.sent:
            size *= 2
        return size

    def sentence(self) -> str:
        """What is wrong, and the setting that fixes it with each server."""
        return (
            f"The planner's server read {self.read:,} of about {self.sent:,} tokens: it cut the "
            f"prompt in silence, since its context is too small. Give it {self.wanted:,}: "
            f"OLLAMA_CONTEXT_LENGTH={self.wanted} ollama serve; llama-server -c {self.wanted}; "
            f"vllm serve --max-model-len {self.wanted}; LM Studio: context length of the model."
        )


def cut_of(texts: Iterable[str], read: int) -> Cut | None:
    """Whether a server that `read` so many tokens can have read these texts; None where it can.

    0 means that it does not say.
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
