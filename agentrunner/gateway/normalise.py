"""A request as it can be compared with one of another day, in another folder.

What differs from run to run is replaced by a word for it: ids, dates, times, durations, addresses,
places. Long texts are cut to their beginning and a digest of all of them. What is left is what a
request *asks*.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from agentrunner.gateway.wires import parse

WORKDIR = "<workdir>"
SHOWN = 80
LONG = 200
"""Characters from which on a text is kept as its beginning and a digest."""

_ABOUT_THE_CLIENT = frozenset(
    "client_metadata metadata prompt_cache_key safety_identifier user id".split()
)
"""Fields of a request that say who asks, not what is asked."""

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sep(?:tember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_IN_PATH = r"[^\s\"'`<>=:,;()]"
_TIME = r"\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?(?![\d:])(?:Z\b|[+-]\d\d:?\d\d)?"
_RULES = [
    (re.compile(pattern), word)
    for pattern, word in (
        # Only where a path begins: long words without a blank must not be tried at each letter.
        (rf"(?<!{_IN_PATH})/{_IN_PATH}*/runs/[\w.-]+/(?:box|sock)\b", "<run>"),
        (r"(?:/var)?/tmp(?![\w.-])(?:/[^\s\"'`<>,:;()\\]*)?", "<tmp>"),
        (r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", "<id>"),
        (r"0x[0-9a-f]{6,}", "<id>"),
        (r"(?<![0-9A-Za-z])[0-9a-f]{16,}(?![0-9A-Za-z])", "<id>"),
        (r"(?<=Chunk ID: )[0-9a-f]+|(?<=\"chunk_id\":\")[0-9a-f]+", "<id>"),
        # How long an output is depends on the places in it.
        (r"(?<=Original token count: )\d+|(?<=\"original_token_count\":)\d+", "<n>"),
        (r"(?<=127\.0\.0\.1:)\d+|(?<=localhost:)\d+", "<port>"),
        (rf"\b{_DAY},? +(?:{_MONTH} +\d+|\d+ {_MONTH})(?:,? +\d{{4}}(?!:))?", "<date>"),
        (rf"\b{_MONTH} +\d{{1,2}}\b(?:, \d{{4}})?|\b\d{{1,2}} {_MONTH} \d{{4}}\b", "<date>"),
        (rf"\b\d{{4}}[-/]\d\d[-/]\d\d(?:[T ]{_TIME})?", "<date>"),
        (rf"(?<![\w:.]){_TIME}(?: ?[AP]M\b)?(?: UTC)?(?: \d{{4}}\b)?", "<time>"),
        (r"(?<=[Ww]all time[: ])[: ]*[\d.]+|(?<=\"wall_time_seconds\":)[\d.e-]+", "<n>"),
        (r"\b\d+\.\d+ ?(?:ms|s|sec|secs|seconds?)\b|\b\d+ ?(?:ms|µs|us|ns)\b", "<duration>"),
        (r"\b1[6-9]\d{8}(?:\d{3})?\b", "<moment>"),
    )
]


def normalise(body: bytes, workdir: str = "") -> Any:
    """What can be compared, as JSON; a body that is no JSON is one text."""
    data = parse(body)
    if data is None and body.strip() not in (b"", b"null"):
        data = body.decode("utf-8", "replace")
    if isinstance(data, dict):
        data = {name: value for name, value in data.items() if name not in _ABOUT_THE_CLIENT}
    return _walk(data, workdir)


def fingerprint(normal: Any) -> str:
    """Equal for equal requests."""
    return _hash(json.dumps(normal, sort_keys=True))


def digest(normal: Any) -> str:
    """A few words by which a person knows a request: its last text."""
    texts = list(_texts(_conversation(normal)))
    return texts[-1][:SHOWN] if texts else ""


def first_difference(recorded: Any, now: Any, path: str = "") -> tuple[str, str, str] | None:
    """Where two normalised requests first differ, and what stands there; None where nowhere."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name in [*recorded, *(name for name in now if name not in recorded)]:
            place = f"{path}.{name}" if path else name
            if name not in recorded or name not in now:
                return place, _short(recorded.get(name, ...)), _short(now.get(name, ...))
            if found := first_difference(recorded[name], now[name], place):
                return found
        return None
    if isinstance(recorded, list) and isinstance(now, list):
        for index, (one, other) in enumerate(zip(recorded, now, strict=False)):
            if found := first_difference(one, other, f"{path}[{index}]"):
                return found
        if len(recorded) != len(now):
            return path, f"{len(recorded)} items", f"{len(now)} items"
        return None
    return None if recorded == now else (path, _short(recorded), _short(now))


def _walk(value: Any, workdir: str) -> Any:
    if isinstance(value, dict):
        return {_text(name, workdir): _walk(inner, workdir) for name, inner in value.items()}
    if isinstance(value, list):
        return [_walk(inner, workdir) for inner in value]
    return _text(value, workdir) if isinstance(value, str) else value


def _text(text: str, workdir: str) -> str:
    if workdir:
        # Claude Code names folders of its own after it.
        text = text.replace(workdir, WORKDIR).replace(
            re.sub(r"[^A-Za-z0-9]", "-", workdir), WORKDIR
        )
    for pattern, word in _RULES:
        text = pattern.sub(word, text)
    if len(text) <= LONG:
        return text
    return f"{text[:SHOWN]}… ({len(text)} characters, {_hash(text)})"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _conversation(normal: Any) -> Any:
    if not isinstance(normal, dict):
        return normal
    return next((normal[n] for n in ("input", "messages", "contents") if n in normal), None)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for name in ("content", "parts", "text", "output"):
            yield from _texts(value.get(name))


def _short(value: Any) -> str:
    if value is ...:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONG else text[:LONG] + "…"
