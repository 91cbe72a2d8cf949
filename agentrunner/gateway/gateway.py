"""The gateway: sends a sandbox's model calls to their provider with the real key, and counts them.

Only the credential is changed: bodies pass byte for byte, streams as they come. The gateway's own
messages look like errors of the provider, so that CLIs can show them.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from aiohttp import web
from msgspec import Struct
from multidict import CIMultiDict
from yarl import URL

from agentrunner.gateway.cassette import Player, RecordedProvider, Recorder, ReplayedProvider
from agentrunner.gateway.exchange import Incoming, Mismatch, Outgoing, Provider, UpstreamUnreachable
from agentrunner.gateway.metering import Meter, decoded, decoder
from agentrunner.gateway.order import Allowance, GatewayOrder, Upstream
from agentrunner.gateway.prices import Prices, load_prices
from agentrunner.gateway.provider import LiveProvider, SessionFactory, end_to_end, new_session
from agentrunner.gateway.upstream_errors import UpstreamError, classify
from agentrunner.gateway.usage import ErrorClass, ModelCall, UsageLog, read_log
from agentrunner.gateway.wires import CREDENTIAL_HEADERS, CREDENTIAL_QUERY, WIRES, parse
from agentrunner.text.redaction import Redactor
from agentrunner.text.times import stamp


class OpenCall(Struct):
    """What is known so far of one call that was let through."""

    request: Outgoing
    started: float
    """By the monotonic clock."""
    number: int | None = None
    """Its number in the usage log, once it is sent on."""
    status: int = 0
    meter: Meter | None = None
    error: UpstreamError | None = None


class UsageRecorder:
    """Writes the usage log of one worker run, and continues where an earlier process stopped."""

    def __init__(self, order: GatewayOrder, prices: Prices, redactor: Redactor) -> None:
        """Open the log. Calls of the same label in it count against the allowance.

        Raises OSError if it cannot be opened.
        """
        self._allowance: Allowance = order.allowance
        self._label = order.label
        self._prices = prices
        self._redactor = redactor
        ended, lost = read_log(order.usage_log)
        earlier = [call for call in ended if call.label == order.label]
        self._log = UsageLog(order.usage_log)
        known = (call.n for call in (*earlier, *lost) if call.label == order.label)
        self._calls = max(known, default=0)
        self.answered = sum(call.metered and call.sent for call in earlier)
        """Calls that an earlier process had sent on."""
        self._tokens = sum((c.input_tokens or 0) + (c.output_tokens or 0) for c in earlier)
        self._usd = sum(call.usd or 0 for call in earlier)

    def refusal(self) -> str:
        """Return why no further call may be made, as a sentence; "" if one may."""
        tokens, usd = self._allowance.tokens, self._allowance.usd
        if tokens is not None and self._tokens >= tokens:
            return (
                "the token budget of this run is used up "
                f"({self._tokens} of {tokens} tokens that were left for this worker)."
            )
        if usd is not None and self._usd >= usd:
            return (
                "the cost budget of this run is used up "
                f"({self._usd:.2f} of {usd:.2f} US dollars that were left for this worker)."
            )
        return ""

    def begin(self, call: OpenCall, started: datetime) -> None:
        """Record that a call is sent on, and give it its number."""
        self._calls += 1
        call.number = self._calls
        line = replace(self._line(call, started), detail="nobody saw the end of this call")
        with contextlib.suppress(OSError):
            self._log.append(line, begins=True)

    def book(self, call: OpenCall, ended: datetime) -> None:
        """Record how a call ended; one without a number was not sent on, or costs nothing."""
        tokens = call.meter.tokens() if call.meter is not None else None
        error = call.error
        # A refused call costs nothing; one that breaks off may.
        free = not call.request.metered or call.status >= 400
        usd = 0.0 if free else self._prices.cost(call.request.model, tokens)
        if call.number is None:
            self._calls = call.number = self._calls + 1
        self._usd += usd or 0
        line = replace(
            self._line(call, ended),
            status=call.status,
            duration_ms=round((time.monotonic() - call.started) * 1000),
            usd=usd,
            metered=call.request.metered,
        )
        if tokens is not None:
            self._tokens += tokens.input + tokens.output
            line = replace(
                line,
                input_tokens=tokens.input,
                cached_tokens=tokens.cached,
                output_tokens=tokens.output,
            )
        if error is not None:
            line = replace(
                line,
                error=error.kind,
                reset_at=stamp(error.reset_at) if error.reset_at else None,
                detail=self._redactor.redact(error.detail),
            )
        # On a full disk the worker continues; the totals here still apply to its allowance.
        with contextlib.suppress(OSError):
            self._log.append(line)

    def _line(self, call: OpenCall, at: datetime) -> ModelCall:
        """Return a call of which nothing is known but that it was made."""
        assert call.number is not None
        return ModelCall(
            ts=stamp(at), label=self._label, n=call.number, path=call.request.path,
            model=self._redactor.redact(call.request.model[:200]), status=0, duration_ms=0,
            input_tokens=None, cached_tokens=None, output_tokens=None, usd=None,
        )  # fmt: skip

    def close(self) -> None:
        self._log.close()


MAX_REQUEST = 64 << 20
MAX_HELD = 512 << 20
"""Bytes of all requests at a time. They are held in our memory, outside the sandbox's limits."""
MAX_REPLY = 512 << 20
MAX_ERROR = 1 << 20
"""Bytes of a provider's error that are passed on."""
MAX_HEADER = 65_536
FINAL = 400
"""The status of an error that must not be retried. Codex repeats a 402, 403, 422 and 5xx, and
has its own text for a 429; a 400 ends it at once, with our sentence, and the other CLIs too."""

Clock = Callable[[], datetime]


def make_app(
    order: GatewayOrder,
    *,
    session_factory: SessionFactory = new_session,
    clock: Clock = lambda: datetime.now(UTC),
) -> web.Application:
    """Return the gateway for `order.upstream` as an application.

    Raises ValueError for an order without upstream or placeholder; when it starts, UsageError for
    an unusable file of prices or cassette, and OSError.
    """
    upstream = order.upstream
    if upstream is None or not upstream.placeholder:
        raise ValueError("a gateway needs an upstream and a placeholder")

    async def serving(app: web.Application) -> AsyncIterator[None]:
        redactor = Redactor({**order.secrets, "worker key": upstream.credential})
        prices = load_prices(order.prices)
        async with session_factory() as session:
            with closing(UsageRecorder(order, prices, redactor)) as recorder:
                live = LiveProvider(upstream, session)
                provider = _with_cassette(live, order, redactor, recorder.answered)
                app[_STATE] = Gateway(upstream, provider, recorder, clock)
                yield

    app = web.Application(
        client_max_size=MAX_REQUEST,
        handler_args={
            "access_log": None,
            "handler_cancellation": True,  # a client that goes away ends the work done for it
            "auto_decompress": False,  # bodies are passed on unchanged
            "max_line_size": MAX_HEADER,
            "max_field_size": MAX_HEADER,
        },
    )
    app.cleanup_ctx.append(serving)
    app.router.add_route("*", "/{path:.*}", _handle)
    return app


def _with_cassette(
    live: Provider, order: GatewayOrder, redactor: Redactor, answered: int
) -> Provider:
    """Return what answers the calls: the provider, recorded or not, or a recording."""
    channel = order.label or "worker"
    if order.replay is not None:
        played = Player(order.replay, channel, redactor, order.workdir, played=answered)
        return ReplayedProvider(played)
    if order.record is not None:
        return RecordedProvider(live, Recorder(order.record, channel, redactor, order.workdir))
    return live


class Gateway:
    """Answers requests, many at once."""

    def __init__(
        self, upstream: Upstream, provider: Provider, recorder: UsageRecorder, clock: Clock
    ) -> None:
        self._wire = WIRES[upstream.wire]
        self._placeholder = upstream.placeholder.encode()
        self._host = URL(upstream.base_url).host
        self._key = Redactor({"worker key": upstream.credential})
        self._provider = provider
        self._recorder = recorder
        self._clock = clock
        self._held = 0
        """Bytes of requests that are held, or may become held."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request; each one that is let through is recorded once, however it ends."""
        path, _, query = request.raw_path.partition("?")
        if not self._shows_placeholder(request):
            return self._error(401, "auth", "the key of this call is not the one of this run.")
        route = self._wire.route(request.method, path)
        if route is None:
            return self._error(404, "request", f"{request.method} {path[:200]} is not let through.")
        size = _most_bytes(request)
        if self._held + size > MAX_HELD:
            return self._error(503, "overload", "too many large requests are made at a time.")
        self._held += size
        try:
            return await self._let_through(request, path, query, metered=route.metered)
        finally:
            self._held -= size

    async def _let_through(
        self, request: web.Request, path: str, query: str, *, metered: bool
    ) -> web.StreamResponse:
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._error(413, "request", f"a request may have {MAX_REQUEST >> 20} MiB.")
        plain = decoded(body, request.headers.get("Content-Encoding", ""))
        outgoing = Outgoing(
            method=request.method,
            path=path,
            query=_without_key(query),
            headers=tuple(request.headers.items()),
            body=body,
            model=self._wire.model(path, parse(plain)),
            metered=metered,
        )
        call = OpenCall(outgoing, time.monotonic())
        try:
            return await self._answer(request, call)
        finally:
            self._recorder.book(call, self._clock())

    async def _answer(self, request: web.Request, call: OpenCall) -> web.StreamResponse:
        refusal = self._recorder.refusal() if call.request.metered else ""
        if refusal:
            return self._fail(call, FINAL, "budget", refusal)
        if call.request.metered:
            self._recorder.begin(call, self._clock())
        try:
            async with self._provider.ask(call.request) as reply:
                call.status = reply.status
                if reply.status >= 400:
                    return await self._pass_error(reply, call)
                if reply.status >= 300:
                    return self._fail(call, 502, "server", self._redirected(reply))
                return await self._pass_on(request, reply, call)
        except UpstreamUnreachable as problem:
            return self._fail(call, 502, "network", str(problem))
        except Mismatch as problem:
            return self._fail(call, FINAL, "replay", str(problem))

    async def _pass_on(
        self, request: web.Request, reply: Incoming, call: OpenCall
    ) -> web.StreamResponse:
        headers = reply.lower
        kind, encoding = headers.get("content-type", ""), headers.get("content-encoding", "")
        call.meter = meter = Meter(self._wire, kind, encoding)
        response = web.StreamResponse(status=reply.status)
        response.headers.extend(end_to_end(reply.headers))
        size = 0
        try:
            await response.prepare(request)
            async for chunk in reply.chunks:
                size += len(chunk)
                if size > MAX_REPLY:
                    raise UpstreamUnreachable(f"the reply has more than {MAX_REPLY >> 20} MiB.")
                meter.feed(chunk)
                await response.write(chunk)
            await response.write_eof()
        except UpstreamUnreachable as problem:
            call.error = UpstreamError("network", detail=str(problem))
            # Breaking off is the only way left to report it; a normal end would look complete.
            if request.transport is not None:
                request.transport.abort()
        except ConnectionResetError:
            pass  # the client has gone away
        if meter.error is not None:
            body = json.dumps(meter.error).encode()
            call.error = classify(reply.status, reply.lower, body, self._clock())
        return response

    async def _pass_error(self, reply: Incoming, call: OpenCall) -> web.Response:
        body = b""
        async for chunk in reply.chunks:
            body += chunk
            if len(body) > MAX_ERROR:
                break
        encoding = reply.lower.get("content-encoding", "")
        if decoder(encoding) is None:
            body, encoding = b"an error that cannot be decompressed", ""
        # Some providers repeat the key that they refuse: it must not reach the sandbox this way.
        body = self._key.redact_bytes(decoded(body, encoding))
        call.error = classify(reply.status, reply.lower, body, self._clock())
        headers = CIMultiDict(
            (name, value)
            for name, value in end_to_end(reply.headers)
            if name.lower() not in _DROPPED_FROM_ERRORS
        )
        return web.Response(status=reply.status, body=body, headers=headers)

    def _fail(self, call: OpenCall, status: int, kind: ErrorClass, sentence: str) -> web.Response:
        call.status, call.error = status, UpstreamError(kind, detail=sentence)
        return self._error(status, kind, sentence)

    def _error(self, status: int, kind: ErrorClass, sentence: str) -> web.Response:
        body = self._wire.error_body(status, kind, f"AgentRunner: {sentence}")
        return web.json_response(body, status=status)

    def _redirected(self, reply: Incoming) -> str:
        target = URL(reply.lower.get("location", "")).host or "another address"
        return f"{self._host} redirects to {target}, where the key does not go."

    def _shows_placeholder(self, request: web.Request) -> bool:
        """Whether any place for a key holds the placeholder; all are compared, in constant time."""
        shown = [request.headers.get(name, "") for name in CREDENTIAL_HEADERS]
        shown.append(request.query.get(CREDENTIAL_QUERY, ""))
        keys = [text.removeprefix("Bearer ").strip() for text in shown]
        # aiohttp gives bytes that are not UTF-8 as lone surrogates.
        raw = [key.encode("utf-8", "surrogateescape") for key in keys]
        return any(hmac.compare_digest(key, self._placeholder) for key in raw)


_DROPPED_FROM_ERRORS = ("content-length", "content-encoding", "retry-after", "retry-after-ms")
"""A CLI that learns when its quota is back sleeps until then in its sandbox, however long that
takes, and nobody knows. Without that information it ends, and the run waits, which is visible
and can be handed to another."""

_STATE: web.AppKey[Gateway] = web.AppKey("gateway", Gateway)


async def _handle(request: web.Request) -> web.StreamResponse:
    return await request.app[_STATE].handle(request)


def _most_bytes(request: web.Request) -> int:
    """Return how many bytes reading may take; a request of unknown length may have any."""
    if not request.can_read_body:
        return 0
    return min(request.content_length or MAX_REQUEST, MAX_REQUEST)


def _without_key(query: str) -> str:
    parts = query.split("&") if query else []
    return "&".join(part for part in parts if part.partition("=")[0] != CREDENTIAL_QUERY)
