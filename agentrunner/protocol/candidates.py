"""Find where a reply may hold its message: all of it, a code fence, after a header, at the end.

Every pattern here matches in one pass, so a reply of nothing but back-ticks costs no more than
prose.
"""

from __future__ import annotations

import json
import re

from msgspec import Struct

from agentrunner.errors import ProtocolError
from agentrunner.errors.replies import ReplyAmbiguous, ReplyIncomplete
from agentrunner.text.lazy_regex import lazy_regex

MAX_FENCES = 8
MIN_FENCE = 3
"""Minimum number of back-ticks of a fence."""
_FENCE = lazy_regex(r"^(`{3,}|~{3,})([^\n]*)\n?", re.MULTILINE)
_TICKS = lazy_regex("`+")
MAX_TICKS = 100
"""Most runs of back-ticks in which inline code is looked for."""
_DECODER = json.JSONDecoder()
_TAGS = ("", "yaml", "yml", "json")
_TICKED_TAG = lazy_regex(r"(?:ya?ml|json)(?=[\s{])", re.IGNORECASE)
_DOCUMENT_STARTS = lazy_regex(r"^(?:type:(?=\s)|\{)", re.MULTILINE)
_THOUGHT_OPENS = lazy_regex(r"^<think>", re.MULTILINE)


class AnswerRegion(Struct, frozen=True):
    """The part of a reply that may hold an answer."""

    text: str
    last_wins: bool = False
    """True after a CLI's header: an example in the echoed prompt is not the answer."""


def without_thought(text: str) -> str:
    """The reply after a leading `<think>…</think>`; raises ProtocolError if it never closes."""
    if not text.startswith("<think>"):
        return text
    _, closed, rest = text.partition("</think>")
    if not closed:
        raise _endless_thought()
    return trim(rest)


def region(text: str) -> AnswerRegion:
    """Return the reply without thoughts and a CLI's echo, neither of which is an answer."""
    text = trim(text.rpartition("</think>")[2])
    if _THOUGHT_OPENS.search(text):
        raise _endless_thought()
    _, codex, after = ("\n" + text + "\n").rpartition("\ncodex\n")
    return AnswerRegion(trim(after), last_wins=True) if codex else AnswerRegion(text)


def _endless_thought() -> ProtocolError:
    return ReplyIncomplete("", "the reply ends inside <think>")


def trim(text: str) -> str:
    """Remove blank lines before and white space after; keep indentation, which YAML needs."""
    blank = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, blank) + 1 :].rstrip()


def fenced(text: str) -> tuple[list[str], bool]:
    """Return the bodies of closed YAML, JSON and untagged fences, and whether there is any fence.

    Raises ProtocolError: incomplete for a fence that never closes, ambiguous for too many.
    """
    bodies: list[str] = []
    opening: re.Match[str] | None = None
    has_fence = False
    for line in _FENCE.finditer(text):
        if line[1][0] == "`" and "`" in line[2]:
            continue  # inline code that happens to start a line
        if opening is None:
            has_fence, opening = True, line
        elif line[1].startswith(opening[1]) and not line[2].strip():
            if (opening[2].lower().split() or [""])[0] in _TAGS:
                bodies.append(trim(text[opening.end() : line.start()]))
            opening = None
        if len(bodies) > MAX_FENCES:
            raise ReplyAmbiguous("", f"more than {MAX_FENCES} code fences")
    if opening is not None:
        raise ReplyIncomplete("", "a code fence is never closed")
    return bodies, has_fence


def without_ticks(text: str) -> str | None:
    """Return the text inside back-ticks that surround the whole text; None for any other text.

    That is inline code (`` `{…}` ``), a fence that is only closed, or one that is only opened. The
    last may be a reply that was cut, so its content must be JSON: truncated JSON is never JSON, but
    truncated YAML often is YAML.
    """
    fences = list(_FENCE.finditer(text))
    if len(fences) == 1 and text[fences[0].start() : fences[0].end()].strip("`~ \n") in _TAGS:
        only = fences[0]
        rest = text[only.end() :].strip()
        if only.start() == 0 and rest[:1] == "{" and rest[-1:] == "}":
            return rest
        if only.start() and not rest and not only[2].strip():
            return trim(text[: only.start()])
    ticks = len(text) - len(text.lstrip("`"))
    inside = text[ticks : len(text) - ticks]
    if not ticks or len(text) - len(text.rstrip("`")) != ticks or "`" * ticks in inside:
        return None
    tag = _TICKED_TAG.match(inside) if ticks >= MIN_FENCE else None
    return trim(inside[tag.end() :] if tag else inside) or None


def inline(text: str) -> str | None:
    """Return the only inline code of a text that is an object, `` It is `{…}` ``; None for any
    other number of them.
    """
    runs = list(_TICKS.finditer(text))
    if len(runs) > MAX_TICKS:
        return None
    found: list[str] = []
    opening: re.Match[str] | None = None
    for number, run in enumerate(runs):
        if opening is None:
            closes = any(len(other[0]) == len(run[0]) for other in runs[number + 1 :])
            opening = run if closes else None
        elif len(run[0]) == len(opening[0]):
            inside = text[opening.end() : run.start()].strip()
            found += [inside] if inside[:1] == "{" and inside[-1:] == "}" else []
            opening = None
    return found[0] if len(found) == 1 else None


def without_outro(text: str) -> str | None:
    """Return the JSON object that a text begins with, where only prose is on the lines after it.

    None where nothing follows, and where what follows may be another answer. A cut object is never
    JSON, so an object with an end is whole.
    """
    if not text.startswith("{"):
        return None
    try:
        _, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    outro = text[end:].lstrip(" \t")
    if outro[:1] != "\n" or "{" in outro or _DOCUMENT_STARTS.search(outro):
        return None
    return text[:end]


def tail(text: str) -> str | None:
    """Return the text from the first line that starts a message; None if there is no such line."""
    start = _DOCUMENT_STARTS.search(text)
    return text[start.start() :] if start else None


def stands_alone(answer: str, text: str) -> bool:
    """Whether a text holds nothing but this answer, and the marks of a fence around it."""
    if not answer:
        return False
    before, found, after = text.partition(answer)
    rest = _FENCE.sub("", before) + _FENCE.sub("", after)
    return bool(found) and not rest.strip("`~ \n")
