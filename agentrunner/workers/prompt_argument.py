"""The prompt as one argument of a command line, for CLIs that accept it in no other way."""

from __future__ import annotations

from agentrunner.workers.base import WorkerRequest

_MAX_BYTES = 100 * 1024
"""Linux refuses an argument of 128 KiB (MAX_ARG_STRLEN)."""


def prompt_argument(call: WorkerRequest) -> str:
    """Return the prompt, or, if it is too long for an argument, a text that says where to read it.

    It begins with a word of ours, so that no prompt is parsed as an option.
    """
    if len(call.prompt.encode("utf-8", "replace")) <= _MAX_BYTES:
        return f"The task:\n\n{call.prompt}"
    return f"The task is written in the file {call.prompt_file}. Read all of it, then do it."
