"""A cassette: every exchange with a model in one file, to be replayed without a network.

The file is JSON lines, appended to by several writers: the planner's client in the channel "meta",
a gateway process per worker run in a channel named after that worker run. A line contains the
request as `normalise` leaves it, and the reply as it came; both without secrets, and with a
placeholder for the working folder.

In a replay the n-th request of a channel must match the n-th recorded one. Requests that overlapped
when they were recorded may come in another order, and free ones in any order.
"""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import json
import os
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentrunner.errors import UsageError
from agentrunner.errors.command_line import BadRecording
from agentrunner.gateway.exchange import Incoming, Mismatch, Outgoing, Provider, UpstreamUnreachable
from agentrunner.gateway.metering import decoded
from agentrunner.gateway.wires import parse
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.redaction import Redactor

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
    """A normalised request.

    What differs from run to run is replaced by a placeholder: ids, dates, times, durations,
    addresses, paths. The rest is what a request *asks*. Long texts, which recur in every request of
    a conversation, are kept separately, each under a name derived from it.
    """

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


VERSION = 1
META = "meta"
"""The planner's channel."""

_KEPT = frozenset({"content-type", "retry-after", "retry-after-ms", "x-should-retry"})
_KEPT_BEGINNINGS = ("x-ratelimit-", "anthropic-ratelimit-")
"""Headers of a reply that affect what a client or we do."""


@dataclass
class Exchange:
    """One request and its reply, as a line of the file."""

    channel: str
    number: int
    """The position of its begin among the requests of the channel, from 1."""
    after: int
    """How many requests of the channel had ended when this one began."""
    method: str
    path: str
    model: str
    metered: bool
    fingerprint: str
    digest: str
    request: Any
    """The normalised request, see `normalise`."""
    texts: Mapping[str, str]
    """Its long texts, except those that an earlier line of the channel has."""
    status: int = 0
    """0: there was no reply."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)
    """As it came, piece by piece; bytes that are not UTF-8 as lone surrogates."""
    broken: str = ""
    """Why the reply ended too early, or that there was none; "" for a complete one."""
    v: int = VERSION


def read_cassette(path: Path) -> list[Exchange]:
    """Return every exchange in the order of their ends, without a last line cut by a crash.

    Raises UsageError (`cassette-invalid`) for a file that cannot be read or is not a cassette.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise _invalid(path, error.strerror or str(error)) from None
    exchanges = []
    for number, line in enumerate(lines, 1):
        try:
            fields: dict[str, Any] = json.loads(line)
            if fields.get("v") != VERSION:
                raise _invalid(path, f"line {number} is of version {fields.get('v')!r}")
            exchanges.append(Exchange(**fields))
        except (ValueError, TypeError, AttributeError):
            if number < len(lines):
                raise _invalid(path, f"line {number} is no exchange") from None
    return exchanges


def _invalid(path: Path, why: str) -> UsageError:
    return BadRecording(
        f"The recording {path} cannot be played: {why}.",
        path=str(path),
        remedy="agentrunner run … --record FILE makes a new one",
    )


# -- recording ------------------------------------------------------------------------------------


class Recorder:
    """Appends the exchanges of one channel; continues where an earlier process stopped."""

    def __init__(self, path: Path, channel: str, redactor: Redactor, workdir: str = "") -> None:
        """Read what is there; opens nothing yet. Raises UsageError for any other file."""
        self._path = path
        self._channel = channel
        self._redactor = redactor
        self._workdir = workdir
        there = read_cassette(path) if path.exists() else []
        mine = [exchange for exchange in there if exchange.channel == channel]
        self._begun = max((exchange.number for exchange in mine), default=0)
        self._ended = len(mine)
        self._known = {name for exchange in mine for name in exchange.texts}

    def begin(self, method: str, path: str, model: str, body: bytes, *, metered: bool) -> Exchange:
        """Begin an exchange when a request is sent; pass the result to `end`."""
        self._begun += 1
        normal = normalise(self._redactor.redact_bytes(body), self._workdir)
        texts = {name: text for name, text in normal.texts.items() if name not in self._known}
        self._known |= texts.keys()
        return Exchange(
            channel=self._channel,
            number=self._begun,
            after=self._ended,
            method=method,
            path=path,
            model=self._redactor.redact(model),
            metered=metered,
            fingerprint=normal.fingerprint,
            digest=normal.digest,
            request=normal.asked,
            texts=texts,
        )

    def end(
        self,
        exchange: Exchange,
        status: int,
        headers: Mapping[str, str],
        chunks: Sequence[bytes],
        broken: str = "",
    ) -> None:
        """Record the reply, complete or `broken`. `headers` have lower-case names."""
        encoding = headers.get("content-encoding", "")
        if encoding:
            chunks = [decoded(b"".join(chunks), encoding)]
        exchange.status = status
        exchange.headers = {
            name: self._redactor.redact(value)
            for name, value in headers.items()
            if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
        }
        exchange.body = self._safe_pieces(chunks)
        exchange.broken = self._redactor.redact(broken)
        self._ended += 1
        line = json.dumps(asdict(exchange)).encode() + b"\n"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, line)
        finally:
            os.close(file)

    def _safe_pieces(self, chunks: Iterable[bytes]) -> list[str]:
        """Return the pieces as text, without secrets and without the folder of this run."""
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        pieces = [decoder.decode(chunk) for chunk in chunks] + [decoder.decode(b"", final=True)]
        whole = "".join(pieces)
        safe = self._redactor.redact(whole)
        if safe != whole:
            pieces = [safe]  # where the secret was, and over how many pieces, no longer matters
        if self._workdir:
            pieces = _replaced(pieces, _escaped(self._workdir), WORKDIR)
        return [piece for piece in pieces if piece]


# -- playing --------------------------------------------------------------------------------------


class Player:
    """Answers the requests of one channel with what was recorded for them."""

    def __init__(
        self, path: Path, channel: str, redactor: Redactor, workdir: str = "", *, played: int = 0
    ) -> None:
        """`played` is how many metered requests an earlier process has already answered.

        Raises UsageError for a file that cannot be read or is not a cassette.
        """
        there = read_cassette(path)
        mine = [exchange for exchange in there if exchange.channel == channel]
        self._channel = channel
        self._others = sorted({exchange.channel for exchange in there} - {channel})
        self._redactor = redactor
        self._workdir = workdir
        self._texts = {name: text for exchange in mine for name, text in exchange.texts.items()}
        self._free = [exchange for exchange in mine if not exchange.metered]
        self._ends = {exchange.number: end for end, exchange in enumerate(mine)}
        metered = sorted((e for e in mine if e.metered), key=lambda exchange: exchange.number)
        self._left = metered[played:]
        self._count = len(metered)
        self._failure = ""
        """How the replay went wrong; after that nothing is answered."""

    def answer(self, method: str, path: str, body: bytes, *, metered: bool) -> Exchange:
        """Return the exchange recorded for this request; raises Mismatch."""
        normal = normalise(self._redactor.redact_bytes(body), self._workdir)
        if not metered:
            return self._answer_free(method, path, normal)
        if self._failure:
            raise Mismatch(self._failure)
        for exchange in self._next():
            if (exchange.method, exchange.path) == (method, path) and (
                exchange.fingerprint == normal.fingerprint
            ):
                self._left.remove(exchange)
                return exchange
        self._failure = self._difference(method, path, normal)
        raise Mismatch(self._failure)

    def chunks(self, exchange: Exchange) -> list[bytes]:
        """Return the pieces of its reply, with this run's folder in them."""
        pieces = _replaced(exchange.body, WORKDIR, _escaped(self._workdir) or WORKDIR)
        return [piece.encode("utf-8", "surrogateescape") for piece in pieces]

    def _next(self) -> list[Exchange]:
        """Return the next recorded request, and those that had begun before it ended."""
        if not self._left:
            return []
        end = self._ends[self._left[0].number]
        return [e for e in self._left if e is self._left[0] or e.after <= end]

    def _answer_free(self, method: str, path: str, normal: Normal) -> Exchange:
        for exchange in self._free:
            if (exchange.method, exchange.path) == (method, path) and (
                exchange.fingerprint == normal.fingerprint
            ):
                return exchange
        raise Mismatch(f"the recording has no answer to {method} {path}.")

    def _difference(self, method: str, path: str, normal: Normal) -> str:
        asked = f"request {self._count - len(self._left) + 1} of {self._channel!r}"
        words = f" ({normal.digest!r})" if normal.digest else ""
        if not self._count:
            others = ", ".join(map(repr, self._others)) or "nothing"
            return f"the recording has nothing for {self._channel!r}, but for {others}."
        if not self._left:
            return f"{asked}{words} is one more than were recorded."
        expected = self._left[0]
        if (expected.method, expected.path) != (method, path):
            where, then, now = "address", f"{expected.method} {expected.path}", f"{method} {path}"
        else:
            texts = {**self._texts, **normal.texts}
            found = difference(expected.request, normal.asked, texts)
            where, then, now = found or ("body", "", "")
        return f"{asked}{words} differs from the recorded one at {where}: {then} then, {now} now."


# -- between the gateway and a provider -----------------------------------------------------------


WENT_AWAY = "the client went away."
HANG_UP_SEC = 5.0
"""A client may hang up as soon as it has read the last event, before the reply has ended."""


async def _ends_now(pieces: AsyncIterator[bytes], chunks: list[bytes]) -> bool:
    """Whether a reply whose client has hung up ends at once; what still came is kept."""
    try:
        async with asyncio.timeout(HANG_UP_SEC):
            async for piece in pieces:
                chunks += [piece]  # each by itself: the time may end
    except (TimeoutError, UpstreamUnreachable):
        return False
    return True


class RecordedProvider:
    """Passes requests on to another provider and records the replies."""

    def __init__(self, inner: Provider, recorder: Recorder) -> None:
        self._inner = inner
        self._recorder = recorder

    @asynccontextmanager
    async def ask(self, request: Outgoing) -> AsyncIterator[Incoming]:
        """Pass on to the other provider, and record the exchange."""
        exchange = self._recorder.begin(
            request.method, request.path, request.model, request.body, metered=request.metered
        )
        status, headers = 0, {}
        chunks: list[bytes] = []
        broken = WENT_AWAY

        async def kept(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            nonlocal broken
            try:
                async for piece in pieces:
                    chunks.append(piece)
                    yield piece
            except UpstreamUnreachable as problem:
                broken = str(problem)
                raise
            broken = ""

        try:
            async with self._inner.ask(request) as reply:
                status, headers = reply.status, dict(reply.lower)
                yield Incoming(reply.status, reply.headers, kept(reply.chunks))
                if broken == WENT_AWAY and await _ends_now(reply.chunks, chunks):
                    broken = ""
        except UpstreamUnreachable as problem:
            broken = str(problem)
            raise
        finally:
            self._recorder.end(exchange, status, headers, chunks, broken)


class ReplayedProvider:
    """Answers from a cassette."""

    def __init__(self, player: Player) -> None:
        self._player = player

    @asynccontextmanager
    async def ask(self, request: Outgoing) -> AsyncIterator[Incoming]:
        """Yield the recorded reply; raises Mismatch, or UpstreamUnreachable if there was none."""
        exchange = self._player.answer(
            request.method, request.path, request.body, metered=request.metered
        )
        if not exchange.status:
            raise UpstreamUnreachable(exchange.broken)
        headers = list(exchange.headers.items())
        yield Incoming(exchange.status, headers, self._chunks(exchange))

    async def _chunks(self, exchange: Exchange) -> AsyncIterator[bytes]:
        for piece in self._player.chunks(exchange):
            yield piece
        if exchange.broken:
            raise UpstreamUnreachable(exchange.broken)


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1]


def _replaced(pieces: Sequence[str], old: str, new: str) -> list[str]:
    """Replace each `old`, even across the border of two pieces; the result then belongs to the
    piece in which `old` begins."""
    if not old or old not in (whole := "".join(pieces)):
        return list(pieces)
    borders: list[int] = []
    for piece in pieces:
        borders.append((borders[-1] if borders else 0) + len(piece))
    out: list[str] = []
    start = 0
    for border in borders:
        if border <= start:
            continue
        inside = whole.find(old, max(start, border - len(old) + 1), border + len(old) - 1)
        end = inside + len(old) if 0 <= inside < border else border
        out.append(whole[start:end].replace(old, new))
        start = end
    return out


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
