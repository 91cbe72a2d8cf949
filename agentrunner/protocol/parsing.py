"""`parse_reply`: parse a planner's reply into a valid message, or raise ProtocolError."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace
from typing import Any

from msgspec import Struct
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agentrunner.errors import ProtocolError
from agentrunner.errors.replies import (
    ReplyAmbiguous,
    ReplyEmpty,
    ReplyIncomplete,
    ReplyInvalid,
    ReplyMissing,
    ReplyNotFound,
    ReplyRefusal,
    ReplySyntax,
    ReplyTooLarge,
    ReplyUnsupportedVersion,
    ReplyWrongType,
    reply_error,
)
from agentrunner.protocol.loading import load_document
from agentrunner.protocol.message import (
    PAYLOADS,
    VERSION,
    Message,
    MessageType,
    ReplyType,
    says_done,
)
from agentrunner.protocol.taking import taken
from agentrunner.protocol.wire import MAX_PATH, Warnings, shown, tidy
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
    """The part of a reply that may hold an answer.

    Every pattern here matches in one pass, so a reply of nothing but back-ticks costs no more than
    prose.
    """

    text: str
    last_wins: bool = False
    """True after a CLI's header: an example in the echoed prompt is not the answer."""


MAX_REPLY_BYTES = 2 * 1024 * 1024
"""Limit of the whole reply (characters of a str): a CLI may echo a long prompt first."""

MAX_FAULTS = 20
"""Faults that one ProtocolError names; fixing those usually fixes the others."""

_UNSTORABLE = lazy_regex("[\ud800-\udfff\0]")
_REFUSALS = lazy_regex(
    r"(?:I['’]?m (?:very |really )?sorry|sorry|I (?:can['’]?t|cannot|am unable|won['’]?t)\b"
    r"|as an AI|申し訳|恐れ入りますが)",
    re.IGNORECASE,
)
_NO_DOCUMENT = ("syntax", "incomplete", "not_found")
# Which fault to report if no candidate is a message: the one that came nearest to it.
_TELLING = (
    "placeholder", "invalid", "missing", "unsupported_version", "duplicate_key",
    "forbidden_yaml", "too_large", "wrong_type", "incomplete", "syntax", "not_found",
)  # fmt: skip


def parse_reply(
    text: str | bytes, expected: MessageType, *, finish_reason: str = "stop"
) -> Message:
    """Parse a planner's reply as the message that was requested.

    The message may be JSON or YAML, flat or wrapped, bare, fenced, in back-ticks, after a thought
    or a CLI's header, and have prose around it where its begin and end are certain. Prose after it
    may deny it: a message that calls something done is not read then. Nothing is repaired or
    guessed: what cannot be read for certain raises ProtocolError, and no other exception.
    `finish_reason` is how the reply ended according to the model API.
    """
    message = _parse(text, expected, finish_reason, lenient=False)
    # The other spellings of a worker are read here as well; who takes a reply is told of them.
    return replace(message, warnings=tuple(w for w in message.warnings if w.code != "taken"))


def take_reply(
    text: str | bytes, expected: MessageType, *, finish_reason: str = "stop", looks: bool = False
) -> Message:
    """Parse like `parse_reply`; if that fails, correct the obvious slips of `taking.TAKEN`.

    With `looks` the reply may also be a message of type `look`. Raises the ProtocolError of
    `parse_reply` where nothing helps.
    """
    if looks and (found := _looks(text, finish_reason)) is not None:
        return found
    try:
        return _parse(text, expected, finish_reason, lenient=False)
    except ProtocolError:
        with contextlib.suppress(ProtocolError):
            return _parse(text, expected, finish_reason, lenient=True)
        raise


def _looks(text: str | bytes, finish_reason: str) -> Message | None:
    """Return the reply's looks: a `look` message, or any other message with non-empty `looks`.

    None for a reply without looks. Raises ProtocolError if they cannot be read.
    """
    if "look" not in (text if isinstance(text, str) else text.decode("utf-8", "replace")):
        return None
    try:
        return _parse(text, "look", finish_reason, lenient=False)
    except ProtocolError as fault:
        if not isinstance(fault, ReplyInvalid) or "looks" not in fault.path:
            return None
        with contextlib.suppress(ProtocolError):
            return _parse(text, "look", finish_reason, lenient=True)
        raise


def _parse(text: str | bytes, expected: ReplyType, finish_reason: str, *, lenient: bool) -> Message:
    _check_complete(finish_reason)
    if len(text) > MAX_REPLY_BYTES:
        raise ReplyTooLarge("", f"a reply has at most {MAX_REPLY_BYTES} bytes")
    body = without_thought(_clean(text))
    if not body:
        raise ReplyEmpty("", "the reply holds nothing")
    errors: list[ProtocolError] = []
    # Try the whole text first: a fence or a tag inside one of its texts must not win.
    if not body.endswith("</think>") and (whole := _try(body, expected, errors, lenient)):
        return whole
    answer_region = region(body)
    if answer_region.text != body and (
        whole := _try(answer_region.text, expected, errors, lenient)
    ):
        return whole
    bare = without_ticks(answer_region.text)
    if bare is not None and (whole := _try(bare, expected, errors, lenient)):
        return whole
    candidates, has_fence = fenced(answer_region.text)
    rest = tail(answer_region.text)
    between = None if has_fence else _between_prose(answer_region.text, rest)
    rest = between or rest
    # A document that was already refused as such isn't parsed again from its middle.
    if (
        rest not in (None, answer_region.text)
        and not has_fence
        and errors[-1].fault in _NO_DOCUMENT
    ):
        candidates = [rest]
    found = [
        m if stands_alone(candidate, answer_region.text) else replace(m, part=candidate)
        for candidate in candidates
        if (m := _try(candidate, expected, errors, lenient))
    ]
    if not found:
        looked_like_one = bool(candidates) if has_fence else rest is not None
        raise _most_telling(errors, body, looked_like_one)
    if not answer_region.last_wins and any(
        message.payload != found[0].payload for message in found
    ):
        raise ReplyAmbiguous("", f"{len(found)} different answers; give exactly one")
    if between is not None and says_done(found[-1].payload):
        raise ReplySyntax("", "text around an answer that calls something done; give it alone")
    return found[-1]


def _between_prose(text: str, rest: str | None) -> str | None:
    """Return the only object of a text that goes on after it; None where there is no such.

    Whoever quotes a worker's words writes so, too: it says nothing that is for the worker's good.
    """
    return without_outro(rest) if rest is not None else inline(text)


def _check_complete(finish_reason: str) -> None:
    if finish_reason in ("refusal", "content_filter"):
        raise ReplyRefusal("", f"the model did not answer ({finish_reason})")
    if finish_reason != "stop":
        raise ReplyIncomplete("", f"the reply was cut ({shown(finish_reason)})")


def _clean(text: str | bytes) -> str:
    """Remove BOM and CRs; replace what no file or process can take by U+FFFD."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    return trim(_UNSTORABLE.sub("\ufffd", text))


def _try(
    text: str, expected: ReplyType, errors: list[ProtocolError], lenient: bool
) -> Message | None:
    try:
        return _read(text, expected, lenient)
    except ProtocolError as error:
        errors.append(error)
        return None


def _most_telling(errors: list[ProtocolError], text: str, looked_like_one: bool) -> ProtocolError:
    best = min(errors, key=lambda error: _TELLING.index(error.fault), default=None)
    if best and (looked_like_one or best.fault not in _NO_DOCUMENT):
        return best
    if _REFUSALS.match(text):
        return ReplyRefusal("", f"the model declined: {shown(text, 200)}")
    return ReplyNotFound("", f"no message in the reply: {shown(text, 200)}")


def _read(text: str, expected: ReplyType, lenient: bool) -> Message:
    """Parse one candidate as a message."""
    document = load_document(text)
    if not isinstance(document, dict):
        kind = "a list" if isinstance(document, list) else "plain text"
        raise ReplyNotFound("", f"{kind} where a mapping with a type is expected")
    _check_envelope(document, expected)
    if expected == "look":
        document = _only_looks(document)
    warnings = Warnings()
    document, replaced = _make_storable(document)
    if replaced or "\ufffd" in text:
        warnings.add("replaced_characters", "", "some characters could not be read")
    model = PAYLOADS[expected]
    inner, prefix = _unwrap(document, set(model.model_fields), warnings)
    if expected != "look" and not inner.get("looks"):
        inner.pop("looks", None)  # the planner looks at nothing
    if lenient:
        taken(inner, expected, prefix, warnings)
    fields = tidy(model, inner, prefix, warnings)
    try:
        payload = model.model_validate(fields)
    except ValidationError as error:
        raise _protocol_error(error, prefix) from error
    return Message(expected, payload, tuple(warnings.items))


def _check_envelope(document: dict[str, Any], expected: ReplyType) -> None:
    kind = document.get("type")
    if expected == "look" and kind in PAYLOADS:
        kind = expected  # any message may hold looks
    if kind is None:
        raise ReplyMissing("type", f"type is missing; {expected} is expected")
    if kind != expected:
        raise ReplyWrongType("type", f"{expected} is expected, not {shown(kind)}")
    version = document.get("version")
    if version is not None and (isinstance(version, bool) or str(version) != str(VERSION)):
        raise ReplyUnsupportedVersion("version", f"{shown(version)} is not 1")


def _only_looks(document: dict[str, Any]) -> dict[str, Any]:
    """Return only the looks of a message; its other keys are ignored."""
    payload = document.get("payload")
    inside = payload.get("looks") if isinstance(payload, dict) else None
    looks = inside or document.get("looks")
    if not looks:
        raise ReplyMissing("looks", "nothing is looked at")
    return {"payload": {"looks": looks if isinstance(looks, list) else [looks]}}


def _make_storable(value: Any) -> tuple[Any, bool]:
    """Replace characters from JSON escapes by U+FFFD; return whether there were any."""
    if isinstance(value, str):
        clean = _UNSTORABLE.sub("\ufffd", value)
        return clean, clean != value
    if isinstance(value, list):
        items = [_make_storable(item) for item in value]
        return [item for item, _ in items], any(changed for _, changed in items)
    if isinstance(value, dict):
        pairs = [(_make_storable(key), _make_storable(item)) for key, item in value.items()]
        changed = any(key[1] or item[1] for key, item in pairs)
        return {key[0]: item[0] for key, item in pairs}, changed
    return value, False


def _unwrap(
    document: dict[str, Any], known: set[str], warnings: Warnings
) -> tuple[dict[str, Any], str]:
    """Return the payload and its path. Fields beside the payload count only if it lacks them."""
    extras = {key: value for key, value in document.items() if key not in ("type", "version")}
    payload = extras.pop("payload", None)
    if not isinstance(payload, dict):
        return extras if payload is None else {**extras, "payload": payload}, ""
    merged = dict(payload)
    for key, value in extras.items():
        if key not in known:
            warnings.add("unknown_field", key, f"{shown(key)} is not a field here; ignored")
        elif key in payload:
            warnings.add("outside_payload", key, f"{key} beside the payload is ignored")
        else:
            warnings.add("outside_payload", key, f"{key} belongs into the payload; taken")
            merged[key] = value
    return merged, "payload."


def _protocol_error(error: ValidationError, prefix: str) -> ProtocolError:
    """Return the first fault as the error, with the others in its message, to be fixed at once."""
    found = [_describe(one, prefix) for one in error.errors(include_url=False)[:MAX_FAULTS]]
    code, path, message = found[0]
    more = "".join(f"; {other_path}: {text}" for _, other_path, text in found[1:])
    remaining = error.error_count() - len(found)
    return reply_error(
        code, path, message + more + (f"; and {remaining} more" if remaining else "")
    )


def _describe(one: ErrorDetails, prefix: str) -> tuple[str, str, str]:
    at = one.get("ctx", {}).get("at", "")
    path = prefix + ".".join(str(part) for part in (*one["loc"], at) if part != "")
    path = path.rstrip(".")[:MAX_PATH]
    code = one["type"] if one["type"] in ("missing", "placeholder") else "invalid"
    given = one["input"]
    if "at" in one.get("ctx", {}) or code == "missing" or isinstance(given, dict | list):
        return code, path, one["msg"]
    return code, path, f"{one['msg']}, not {shown(given)}"


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
