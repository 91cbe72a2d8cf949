"""The planner behind an OpenAI-compatible API.

It speaks to the server itself: OpenAI's own library takes a third of a start to import and a
quarter of a round's CPU, and its retries, redirects and parser would have to be switched off.
`asking.py` counts and records retries. A redirect must not carry the key to another host.

Answers are streamed unless they are recorded or replayed, and `streaming.py` reads the stream.
Servers that answer in one piece work as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from agentrunner import __version__
from agentrunner.config.spec import TaskSpec
from agentrunner.errors.planners import NoPlannerKey
from agentrunner.gateway.exchange import Mismatch
from agentrunner.launching.route import NO_CASSETTE, Cassette
from agentrunner.planners.base import PlannerRequest, PlannerUnavailable, Reply
from agentrunner.planners.completions import (
    Api,
    asked_body,
    causes,
    checked_completion,
    reply_in,
    whole_body,
)
from agentrunner.planners.constraint import AskedSchema, Constraint, schema_of
from agentrunner.planners.endpoint import endpoint
from agentrunner.planners.factory import reply_format
from agentrunner.planners.retry import capped, http_failure, parse_retry_after
from agentrunner.planners.streaming import CompletionStream, read_stream, silent, tell_reading
from agentrunner.text.redaction import Redactor
from agentrunner.text.server_errors import in_words

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

    from agentrunner.gateway.cassette import Player
    from agentrunner.planners.recorded import Recording

KEY_NAME = "OPENAI_API_KEY"
CONNECT_SEC = 30.0
EVENTS = "text/event-stream"
Streaming = Literal["counted", "plain", "no"]
"""How answers are streamed: with a token count at the end, without one, or not at all."""
_STREAM_REFUSALS: Mapping[Streaming, tuple[str, Streaming]] = {
    "counted": (r"\bstream_options\b|\binclude_usage\b", "plain"),
    "plain": (r"\bstream(ing)?\b", "no"),
}
"""Words in a 400 about streaming, and the mode to use after it."""
_OTHER_API = r"\bmodel\b.*/chat/completions\b"
"""Words in a 400 or 404 about a model that is only behind the Responses API."""


class _Form(Struct, frozen=True):
    """How an answer is asked for: all of it that a server may refuse."""

    api: Api
    streams: Streaming
    constraint: Constraint


class OpenAIChatPlanner:
    """Completes messages with a chat model."""

    kind = "openai-chat"
    is_chat_model = True
    url_variable = "OPENAI_BASE_URL"
    recordable = True
    takes_schema = "that its server holds answers to, where it can"
    key_name = KEY_NAME

    def __init__(
        self,
        spec: TaskSpec,
        environ: Mapping[str, str],
        cassette: Cassette = NO_CASSETTE,
    ) -> None:
        """Read the settings; opens no connection.

        A cassette that is replayed answers in place of the server, without a key. Raises InfraError
        (`no-planner-key`, …) or UsageError for settings that cannot work, and for a cassette that
        cannot be used.
        """
        self._endpoint = endpoint(spec.runner.meta, environ)
        self._key = environ.get(KEY_NAME, "").strip()
        self._account = {
            "openai-organization": environ.get("OPENAI_ORG_ID", "").strip(),
            "openai-project": environ.get("OPENAI_PROJECT_ID", "").strip(),
        }
        self._player: Player | None = None
        self._recording: Recording | None = None
        if cassette.used:
            from agentrunner.gateway.cassette import META, Player, Recorder
            from agentrunner.planners.recorded import Recording

            redactor = Redactor({KEY_NAME: self._key})
            part = f"{META}:{cassette.channel}" if cassette.channel else META
            if replay := cassette.replay:
                self._player = Player(replay, part, redactor, spec.repo)
            if record := cassette.record:
                self._recording = Recording(Recorder(record, part, redactor, spec.repo))
        if not self._key and self._player is None:
            raise NoPlannerKey(
                f"The planner needs an API key: {KEY_NAME} is not set.",
                remedy=f"export {KEY_NAME}=… (any text for a local server), or use "
                "--planner checklist, which needs no model",
                nothing_spent=True,
            )
        self._schema = AskedSchema(near=self._endpoint.near, form=reply_format(spec))
        self._api: Api = "chat/completions"
        # On a cassette an answer is one piece.
        self._streams: Streaming = "no" if cassette.used else "counted"
        self._http: AsyncClient | None = None

    @property
    def near_model(self) -> str:
        """The model, if a server of this machine or of its network has it; "" otherwise."""
        return self._endpoint.model if self._endpoint.near else ""

    def describe(self) -> str:
        return f"{self.kind} {self._endpoint.model} at {self._endpoint.host}"

    async def complete(self, request: PlannerRequest) -> Reply:
        import asyncio  # not for who only asks what kind of planner this is

        where = self._endpoint
        streams = self._streams if self._api == "chat/completions" else "no"
        form = _Form(self._api, streams, self._schema.of(request))
        if form.streams != "no":
            tell_reading(request)
        try:
            async with asyncio.timeout(where.limits.whole):
                body = await self._exchange(request, form)
            return replace(reply_in(body), near=where.near)
        except PlannerUnavailable:
            raise
        except TimeoutError:
            raise self._too_slow() from None
        except Mismatch as problem:
            raise PlannerUnavailable(f"Replay: {problem}", retryable=False) from None
        except Exception as problem:  # noqa: BLE001  (a server's answer can break the client anywhere)
            raise self._failure(problem) from None
        finally:
            if self._recording is not None:
                self._recording.give_up("the planner gave no answer.")

    async def _exchange(self, request: PlannerRequest, form: _Form) -> dict[str, Any]:
        """Send the request and return the body of the answer, which is a completion."""
        import asyncio

        http = self._http
        if http is None:
            http = self._http = await asyncio.to_thread(self._client)
        where = self._endpoint
        options: dict[str, Any] = {"stream": form.streams != "no"}
        if form.streams == "counted":
            options["stream_options"] = {"include_usage": True}
        schema = schema_of(request, form.constraint)
        asked = http.build_request(
            "POST",
            form.api,
            content=msgspec.json.encode(
                {
                    "model": where.model,
                    **options,
                    **asked_body(request, form.api, where.model, schema),
                }
            ),
            headers={
                "authorization": f"Bearer {self._key or 'none'}",  # a replay needs no key
                "content-type": "application/json",
                "user-agent": f"agentrunner/{__version__}",
                **{name: value for name, value in self._account.items() if value},
            },
        )
        if self._recording is not None:
            await self._recording.begin(asked)
        response = await http.send(asked, stream=True)
        try:
            return await self._body(response, request, form)
        finally:
            await response.aclose()

    async def _body(
        self, response: Response, request: PlannerRequest, form: _Form
    ) -> dict[str, Any]:
        """Return the body of an answer: within the size limit, and only a completion."""
        where = self._endpoint
        kind = str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
        if response.status_code == 200 and kind == EVENTS:
            pieces = response.aiter_bytes()
            return await read_stream(pieces, where.limits, where.host, request.progress)
        chunks = await whole_body(response)
        if self._recording is not None:
            self._recording.end(response, chunks)
        whole = b"".join(chunks)
        if response.status_code != 200:
            raise self._refusal(response, whole.decode("utf-8", "replace"), form)
        if whole.lstrip().startswith(b"data:"):  # a stream with the wrong content type
            stream = CompletionStream()
            stream.feed(whole)
            return stream.end()
        return checked_completion(whole.decode("utf-8", "replace"))

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    def _client(self) -> AsyncClient:
        import httpx2  # only when there is a request

        from agentrunner.planners.recorded import replay_transport

        where = self._endpoint
        first = where.limits.first
        return httpx2.AsyncClient(
            base_url=where.base_url,
            # how long the server may be silent
            timeout=httpx2.Timeout(where.limits.whole, connect=min(first, CONNECT_SEC), read=first),
            follow_redirects=False,
            # a proxy to the internet must not see what stays in this network
            trust_env=not (where.loopback or where.plain),
            transport=replay_transport(self._player) if self._player else None,
        )

    # -- why there is no answer -----------------------------------------------------------------

    def _refusal(self, response: Response, body: str, form: _Form) -> PlannerUnavailable:
        """Return the failure for a status that is not 200."""
        status = response.status_code
        if status in (400, 404, 422) and self._asks_otherwise(status, body, form):
            return PlannerUnavailable(
                f"OpenAI API error: {status} {capped(in_words(body))}",
                retryable=True,
                retry_after=0,
                kind="protocol",
                other_form=True,
            )
        now = datetime.now(UTC)
        wish = parse_retry_after(response.headers.get("retry-after"), now.timestamp())
        return http_failure(status, body, wish, headers=response.headers, now=now)

    def _asks_otherwise(self, status: int, body: str, form: _Form) -> bool:
        """Whether the server refused the form of the request; another is used from now on.

        Servers refuse such things only when they are sent. Several requests may be refused at once
        for the same.
        """
        words = body.lower()
        if form.api == "chat/completions" and re.search(_OTHER_API, words):
            self._api = "responses"
            return True
        if status == 404:
            return False
        word, less = _STREAM_REFUSALS.get(form.streams, ("", "no"))
        if word and re.search(word, words):
            self._streams = less
            return True
        return self._schema.is_refused(form.constraint, body)

    def _failure(self, problem: Exception) -> PlannerUnavailable:
        """Return the failure for an exception of the HTTP client, or of reading an odd answer."""
        import httpx2

        if isinstance(problem, httpx2.TimeoutException):
            return self._too_slow(problem)
        if isinstance(problem, httpx2.HTTPError):
            return PlannerUnavailable(
                f"The planner at {self._endpoint.host} cannot be reached: {problem}",
                retryable=True,
                kind="network",
            )
        return PlannerUnavailable(
            f"OpenAI API error: 200 {type(problem).__name__}: {capped(str(problem))}",
            retryable=False,
            kind="protocol",
        )

    def _too_slow(self, problem: Exception | None = None) -> PlannerUnavailable:
        behind = causes(problem)
        if "ReadTimeout" in behind:
            return silent(self._endpoint.host, self._endpoint.limits.first, 0)
        if "ConnectTimeout" in behind:
            return PlannerUnavailable(
                f"The planner at {self._endpoint.host} cannot be reached: it takes no connection.",
                retryable=True,
                kind="network",
            )
        return PlannerUnavailable(
            f"The planner at {self._endpoint.host} gave no answer within "
            f"{self._endpoint.limits.whole:g} s.",
            retryable=True,
            kind="network",
        )
