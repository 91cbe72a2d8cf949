"""Normalises requests, to compare them with those of another day, in another folder.

What differs from run to run is replaced by a placeholder: ids, dates, times, durations, addresses,
paths. The rest is what a request *asks*. Long texts, which recur in every request of a
conversation, are kept separately, each under a name derived from it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from msgspec import Struct

from agentrunner.gateway.wires import parse
from agentrunner.text.lazy_regex import lazy_regex

WORKDIR = "<workdir>"
SHOWN = 80
LONG = 200
"""Texts of more characters than this are kept separately."""

_ABOUT_THE_CLIENT = frozenset(
    "client_metadata metadata prompt_cache_key safety_identifier user id".split()
)
"""Fields of a request that say who asks, not what is asked."""

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sep(?:tember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_NAMED = lazy_regex(r"… \(\d+ characters, text ([0-9a-f]{16})\)$")
_IN_PATH = r"[^\s\"'`<>=:,;()]"
_TIME = r"\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?(?![\d:])(?:Z\b|[+-]\d\d:?\d\d)?"
_RULES = [
    (lazy_regex(pattern), word)
    for pattern, word in (
        # Match only where a path begins: long words must not be tried at each letter.
        (rf"(?<!{_IN_PATH})/{_IN_PATH}*/runs/[\w.-]+/(?:box|sock)\b", "<run>"),
        (r"(?:/var)?/tmp(?![\w.-])(?:/[^\s\"'`<>,:;()\\]*)?", "<tmp>"),
        (r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", "<id>"),
        (r"0x[0-9a-f]{6,}", "<id>"),
        (r"(?<![0-9A-Za-z])[0-9a-f]{16,}(?![0-9A-Za-z])", "<id>"),
        (r"(?<=Chunk ID: )[0-9a-f]+|(?<=\"chunk_id\":\")[0-9a-f]+", "<id>"),
        # The length of an output depends on the paths in it.
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


class Normal(Struct, frozen=True):
    """A normalised request."""

    asked: Any
    """The request as JSON; of a long text its beginning and name. Any other body is one text."""
    texts: Mapping[str, str]
    """The long texts, by their names."""

    @property
    def fingerprint(self) -> str:
        """Equal for equal requests."""
        return _hash(json.dumps(self.asked, sort_keys=True))

    @property
    def digest(self) -> str:
        """A short text by which a person recognises the request: the beginning of its last text."""
        texts = list(_texts(_conversation(self.asked)))
        return texts[-1][:SHOWN] if texts else ""


def normalise(body: bytes, workdir: str = "") -> Normal:
    """Return the comparable part of a request."""
    data = parse(body)
    if data is None and body.strip() not in (b"", b"null"):
        data = body.decode("utf-8", "replace")
    if isinstance(data, dict):
        data = {name: value for name, value in data.items() if name not in _ABOUT_THE_CLIENT}
    texts: dict[str, str] = {}
    return Normal(_walk(data, workdir, texts), texts)


def difference(recorded: Any, now: Any, texts: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Return the first place of difference, and what is there in the recording and now.

    None if there is no difference. `texts` contains the long texts of both.
    """
    found = _first_difference(recorded, now, "")
    if found is None:
        return None
    place, one, other = found
    if isinstance(one, str) and isinstance(other, str):
        one, other = _full(one, texts), _full(other, texts)
        pairs = enumerate(zip_longest(one, other))
        same = next((at for at, (left, right) in pairs if left != right), 0)
        if same > SHOWN:
            one, other = (
                f"…{one[same - SHOWN // 2 :]}",
                f"…{other[same - SHOWN // 2 :]}",
            )
    return place, _short(one), _short(other)


def _full(text: str, texts: Mapping[str, str]) -> str:
    named = _NAMED.search(text)
    return texts.get(named[1], text) if named else text


def _first_difference(recorded: Any, now: Any, path: str) -> tuple[str, Any, Any] | None:
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name in [*recorded, *(name for name in now if name not in recorded)]:
            place = f"{path}.{name}" if path else name
            if name not in recorded or name not in now:
                return place, recorded.get(name, ...), now.get(name, ...)
            if found := _first_difference(recorded[name], now[name], place):
                return found
        return None
    if isinstance(recorded, list) and isinstance(now, list):
        for index, (one, other) in enumerate(zip_longest(recorded, now, fillvalue=...)):
            if found := _first_difference(one, other, f"{path}[{index}]"):
                return found
        return None
    return None if recorded == now else (path, recorded, now)


def _walk(value: Any, workdir: str, texts: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {_text(name, workdir): _walk(inner, workdir, texts) for name, inner in value.items()}
    if isinstance(value, list):
        return [_walk(inner, workdir, texts) for inner in value]
    if not isinstance(value, str):
        return value
    text = _text(value, workdir)
    if len(text) <= LONG:
        return text
    name = _hash(text)
    texts[name] = text
    return f"{text[:SHOWN]}… ({len(text)} characters, text {name})"


def _text(text: str, workdir: str) -> str:
    if workdir:
        # Claude Code names folders of its own after it.
        text = text.replace(workdir, WORKDIR).replace(
            re.sub(r"[^A-Za-z0-9]", "-", workdir), WORKDIR
        )
    for pattern, word in _RULES:
        text = pattern.sub(word, text)
    return text


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
