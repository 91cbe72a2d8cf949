"""Interpret a command line before any command is imported."""

from __future__ import annotations

import os
import shlex
import unicodedata
from contextvars import ContextVar

COMPLETE_VARIABLE = "_AGENTRUNNER_COMPLETE"
"""Set by the scripts of `agentrunner completion` to the name of the shell."""
TASK_FILES = (".md", ".yaml", ".yml")
TYPED: ContextVar[tuple[str, ...]] = ContextVar("TYPED", default=())
"""The words of the command line that is carried out."""
GIVEN_AT: ContextVar[float | None] = ContextVar("GIVEN_AT", default=None)
"""When the process of a command began, which is when a person gave it, in seconds since 1970; None
where the process serves more than one."""


def with_run(verb: str, run_id: str) -> str:
    """Return the command that was typed, with the run's name put in behind its verb."""
    words = TYPED.get()
    at = words.index(verb) + 1 if verb in words else 0
    before, after = (words[:at], words[at:]) if at else ((verb,), ())
    return shlex.join(["agentrunner", *before, run_id, *after])


def is_goal(word: str) -> bool:
    """Whether a word is a goal: it has a space, or wide letters, with which a sentence needs none;
    and it is no file name and cannot be one.
    """
    sentence = len(word.split()) > 1 or any(map(_is_wide, word))
    if word.startswith("-") or not sentence or word.endswith(TASK_FILES):
        return False
    return not os.path.lexists(word[:4096])


def _is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF"


def is_yes(line: str) -> bool:
    """Whether a typed line means yes, in English or Japanese."""
    return _folded(line) in ("y", "yes", "ok", "はい", "うん", "ええ")


def is_no(line: str) -> bool:
    """Whether a typed line means no."""
    return _folded(line) in ("n", "no", "いいえ", "いや", "やめて")


def _folded(line: str) -> str:
    return unicodedata.normalize("NFKC", line).strip().casefold()
