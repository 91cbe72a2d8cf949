"""`parse_reply`: the text of a planner's reply to a valid message, or one ProtocolError."""

from __future__ import annotations

import contextlib
import re
from typing import Any

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
    ReplyTooLarge,
    ReplyUnsupportedVersion,
    ReplyWrongType,
    reply_error,
)
from agentrunner.protocol.candidates import (
    fenced,
    region,
    tail,
    trim,
    without_thought,
    without_ticks,
)
from agentrunner.protocol.loading import load_document
from agentrunner.protocol.message import PAYLOADS, VERSION, Message, MessageType, ReplyType
from agentrunner.protocol.taking import taken
from agentrunner.protocol.wire import MAX_PATH, Warnings, shown, tidy

MAX_REPLY_BYTES = 2 * 1024 * 1024
"""Of the whole reply, characters of a str: a CLI may echo a long prompt before the message."""

MAX_FAULTS = 20
"""That one ProtocolError names; fixing those usually fixes the others."""

_UNSTORABLE = re.compile("[\ud800-\udfff\0]")
_REFUSALS = re.compile(
    r"(?:I['’]?m (?:very |really )?sorry|sorry|I (?:can['’]?t|cannot|am unable|won['’]?t)\b"
    r"|as an AI|申し訳|恐れ入りますが)",
    re.IGNORECASE,
)
_NO_DOCUMENT = ("syntax", "incomplete", "not_found")
# What is reported when no candidate is a message: what came nearest to one.
_TELLING = (
    "placeholder", "invalid", "missing", "unsupported_version", "duplicate_key",
    "forbidden_yaml", "too_large", "wrong_type", "incomplete", "syntax", "not_found",
)  # fmt: skip


def parse_reply(
    text: str | bytes, expected: MessageType, *, finish_reason: str = "stop"
) -> Message:
    """Read a reply of a planner as the message that was asked for.

    JSON or YAML, flat or wrapped, bare, fenced, in back-ticks, after a thought or a CLI's header.
    Nothing is repaired and nothing guessed: what cannot be read for certain raises ProtocolError,
    and no other exception. `finish_reason` is the model API's word on how the reply ended.
    """
    return _parsed(text, expected, finish_reason, takes=False)


def take_reply(
    text: str | bytes, expected: MessageType, *, finish_reason: str = "stop", looks: bool = False
) -> Message:
    """The same; where that fails, with what is clear taken as it is meant (`taking.TAKEN`).

    With `looks` it may be a message of type `look` as well. Raises the ProtocolError of
    `parse_reply` where nothing helps.
    """
    if looks and (found := _looks(text, finish_reason)) is not None:
        return found
    try:
        return parse_reply(text, expected, finish_reason=finish_reason)
    except ProtocolError:
        with contextlib.suppress(ProtocolError):
            return _parsed(text, expected, finish_reason, takes=True)
        raise


def _looks(text: str | bytes, finish_reason: str) -> Message | None:
    """The reply as looks: a message of that type, or any other whose `looks` is filled.

    None for a reply that has none. Raises ProtocolError where they cannot be read.
    """
    if "look" not in (text if isinstance(text, str) else text.decode("utf-8", "replace")):
        return None
    try:
        return _parsed(text, "look", finish_reason, takes=False)
    except ProtocolError as fault:
        if not isinstance(fault, ReplyInvalid) or "looks" not in fault.path:
            return None
        with contextlib.suppress(ProtocolError):
            return _parsed(text, "look", finish_reason, takes=True)
        raise


def _parsed(text: str | bytes, expected: ReplyType, finish_reason: str, *, takes: bool) -> Message:
    _check_complete(finish_reason)
    if len(text) > MAX_REPLY_BYTES:
        raise ReplyTooLarge("", f"a reply has at most {MAX_REPLY_BYTES} bytes")
    body = without_thought(_cleaned(text))
    if not body:
        raise ReplyEmpty("", "the reply holds nothing")
    errors: list[ProtocolError] = []
    # The whole first: a fence or a tag inside one of its texts must not win.
    if not body.endswith("</think>") and (whole := _try(body, expected, errors, takes)):
        return whole
    where = region(body)
    if where.text != body and (whole := _try(where.text, expected, errors, takes)):
        return whole
    bare = without_ticks(where.text)
    if bare is not None and (whole := _try(bare, expected, errors, takes)):
        return whole
    candidates, any_fence = fenced(where.text)
    rest = tail(where.text)
    # What was a document and refused as one isn't read again from its middle.
    if rest not in (None, where.text) and not any_fence and errors[-1].fault in _NO_DOCUMENT:
        candidates = [rest]
    found = [m for candidate in candidates if (m := _try(candidate, expected, errors, takes))]
    if not found:
        looked_like_one = bool(candidates) if any_fence else rest is not None
        raise _most_telling(errors, body, looked_like_one)
    if not where.last_wins and any(message.payload != found[0].payload for message in found):
        raise ReplyAmbiguous("", f"{len(found)} different answers; give exactly one")
    return found[-1]


def _check_complete(finish_reason: str) -> None:
    if finish_reason in ("refusal", "content_filter"):
        raise ReplyRefusal("", f"the model did not answer ({finish_reason})")
    if finish_reason != "stop":
        raise ReplyIncomplete("", f"the reply was cut ({shown(finish_reason)})")


def _cleaned(text: str | bytes) -> str:
    """Without BOM and CRLF, and with U+FFFD for what no file or process can take."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    return trim(_UNSTORABLE.sub("\ufffd", text))


def _try(
    text: str, expected: ReplyType, errors: list[ProtocolError], takes: bool
) -> Message | None:
    try:
        return _read(text, expected, takes)
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


def _read(text: str, expected: ReplyType, takes: bool) -> Message:
    """One candidate as a message."""
    document = load_document(text)
    if not isinstance(document, dict):
        kind = "a list" if isinstance(document, list) else "plain text"
        raise ReplyNotFound("", f"{kind} where a mapping with a type is expected")
    _check_envelope(document, expected)
    if expected == "look":
        document = _only_looks(document)
    warnings = Warnings()
    document, replaced = _storable(document)
    if replaced or "\ufffd" in text:
        warnings.add("replaced_characters", "", "some characters could not be read")
    model = PAYLOADS[expected]
    inner, prefix = _unwrapped(document, set(model.model_fields), warnings)
    if expected != "look" and not inner.get("looks"):
        inner.pop("looks", None)  # there is nothing to look at
    if takes:
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
        kind = expected  # the looks of any message
    if kind is None:
        raise ReplyMissing("type", f"type is missing; {expected} is expected")
    if kind != expected:
        raise ReplyWrongType("type", f"{expected} is expected, not {shown(kind)}")
    version = document.get("version")
    if version is not None and (isinstance(version, bool) or str(version) != str(VERSION)):
        raise ReplyUnsupportedVersion("version", f"{shown(version)} is not 1")


def _only_looks(document: dict[str, Any]) -> dict[str, Any]:
    """A message as what it looks at: the other keys are not read."""
    payload = document.get("payload")
    inside = payload.get("looks") if isinstance(payload, dict) else None
    looks = inside or document.get("looks")
    if not looks:
        raise ReplyMissing("looks", "nothing is looked at")
    return {"payload": {"looks": looks if isinstance(looks, list) else [looks]}}


def _storable(value: Any) -> tuple[Any, bool]:
    """The value with U+FFFD for what JSON escapes can smuggle in, and whether there was any."""
    if isinstance(value, str):
        clean = _UNSTORABLE.sub("\ufffd", value)
        return clean, clean != value
    if isinstance(value, list):
        items = [_storable(item) for item in value]
        return [item for item, _ in items], any(changed for _, changed in items)
    if isinstance(value, dict):
        pairs = [(_storable(key), _storable(item)) for key, item in value.items()]
        changed = any(key[1] or item[1] for key, item in pairs)
        return {key[0]: item[0] for key, item in pairs}, changed
    return value, False


def _unwrapped(
    document: dict[str, Any], known: set[str], warnings: Warnings
) -> tuple[dict[str, Any], str]:
    """The payload and its path. Fields beside it count only where it lacks them."""
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
    """The first thing wrong as the error, the others in its message, to be fixed at once."""
    found = [_described(one, prefix) for one in error.errors(include_url=False)[:MAX_FAULTS]]
    code, path, message = found[0]
    more = "".join(f"; {other_path}: {text}" for _, other_path, text in found[1:])
    left = error.error_count() - len(found)
    return reply_error(code, path, message + more + (f"; and {left} more" if left else ""))


def _described(one: ErrorDetails, prefix: str) -> tuple[str, str, str]:
    at = one.get("ctx", {}).get("at", "")
    path = prefix + ".".join(str(part) for part in (*one["loc"], at) if part != "")
    path = path.rstrip(".")[:MAX_PATH]
    code = one["type"] if one["type"] in ("missing", "placeholder") else "invalid"
    given = one["input"]
    if "at" in one.get("ctx", {}) or code == "missing" or isinstance(given, dict | list):
        return code, path, one["msg"]
    return code, path, f"{one['msg']}, not {shown(given)}"
