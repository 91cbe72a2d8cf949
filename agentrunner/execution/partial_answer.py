"""Progress of a planner's answer while it is streamed, as facts for the live view. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentrunner.planners.base import PartialAnswer
from agentrunner.text.cut import tokens

SHOWN_CHARS = 160
"""Characters shown of the end of what is written."""


def facts_of(so_far: PartialAnswer, redact: Callable[[str], str]) -> dict[str, Any] | None:
    """Return the progress of reading the prompt or writing the answer; None for a sign of life."""
    if so_far.reading:
        return {"prompt_tokens": so_far.reading}
    if not (so_far.text or so_far.thoughts):
        return None
    # Redacted before it is cut: half a secret would not be recognised.
    end = redact(so_far.text)[-SHOWN_CHARS:]
    written = tokens(so_far.text) + so_far.thoughts // 4
    return {"written_tokens": written, "text": " ".join(end.split())}
