"""The planner behind an OpenAI-compatible API.

The library retries, parses and follows redirects on its own; all three are switched off here.
`asking.py` counts and records retries. Our parser reads replies, since it accepts what the
library's would discard. A redirect must not carry the key to another host.

Answers are streamed unless they are recorded or replayed, and `streaming.py` reads the stream.
Servers that answer in one piece work as well.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from agentrunner.config.agents import DEFAULT_PLANNER_MODEL, MODEL_VARIABLES
from agentrunner.config.spec import TaskSpec
from agentrunner.environment import quiet_libraries
from agentrunner.errors.planners import NoPlannerKey
from agentrunner.gateway.exchange import Mismatch
from agentrunner.launching.route import NO_CASSETTE, Cassette
from agentrunner.planners.base import PlannerRequest, PlannerUnavailable, Reply, in_turns
from agentrunner.planners.constraint import AskedSchema, Constraint, schema_of
from agentrunner.planners.endpoint import DEFAULT_BASE_URL, endpoint
from agentrunner.planners.factory import reply_format
from agentrunner.planners.retry import capped, http_failure, network_failure, parse_retry_after
from agentrunner.planners.streaming import (
    CompletionStream,
    read_stream,
    reply_of,
    silent,
    tell_reading,
    with_sane_usage,
)
from agentrunner.text.redaction import Redactor
from agentrunner.text.server_errors import in_words

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI
    from openai import Timeout

    from agentrunner.gateway.cassette import Player
    from agentrunner.planners.recorded import Recording

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Large enough for any reply; a server that sends more is refused."""

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
_ASKED: ContextVar[PlannerRequest | None] = ContextVar("asked", default=None)
"""The request that the current asyncio task sends."""


class OpenAIChatPlanner:
    """Completes messages with a chat model."""

    kind = "openai-chat"
    is_chat_model = True
    url_variable = "OPENAI_BASE_URL"
    default_url = DEFAULT_BASE_URL
    model_variables = MODEL_VARIABLES
    default_model = DEFAULT_PLANNER_MODEL
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
        # On a cassette an answer is one piece.
        self._streams: Streaming = "no" if cassette.used else "counted"
        self._chat: ChatOpenAI | None = None

    @property
    def near_model(self) -> str:
        """The model, if a server of this machine or of its network has it; "" otherwise."""
        return self._endpoint.model if self._endpoint.near else ""

    def describe(self) -> str:
        return f"{self.kind} {self._endpoint.model} at {self._endpoint.host}"

    async def complete(self, request: PlannerRequest) -> Reply:
        import asyncio  # not for who only asks what kind of planner this is

        chat = self._chat
        if chat is None:
            chat = await asyncio.to_thread(self._client)
        constrained = self._schema.of(request)
        options = _constraint(chat, request, constrained)
        streams: Streaming = "no" if chat.use_responses_api else self._streams
        _add_streaming(options, streams)
        if request.max_output_tokens is not None:
            options["max_tokens"] = request.max_output_tokens
        messages = [(message.role, message.content) for message in in_turns(request.messages)]
        if streams != "no":
            tell_reading(request)
        asked = _ASKED.set(request)
        try:
            async with asyncio.timeout(self._endpoint.limits.whole):
                answer = await chat.ainvoke(messages, **options)
        except PlannerUnavailable:
            raise
        except TimeoutError:
            raise self._too_slow() from None
        except Mismatch as problem:
            raise PlannerUnavailable(f"Replay: {problem}", retryable=False) from None
        except Exception as problem:  # noqa: BLE001  (a server's answer can break the library anywhere)
            self._raise_failure(problem, constrained=constrained, streams=streams)
        finally:
            _ASKED.reset(asked)
            if self._recording is not None:
                self._recording.give_up("the planner gave no answer.")
        return replace(reply_of(answer), near=self._endpoint.near)

    def _simplify_if_refused(self, body: str, constrained: Constraint, streams: Streaming) -> bool:
        """Whether the server refused something optional; then it is left out from now on.

        Servers refuse such things only when they are sent.
        """
        word, less = _STREAM_REFUSALS.get(streams, ("", "no"))
        if word and re.search(word, body.lower()):
            self._streams = less
            return True
        return self._schema.is_refused(constrained, body)

    async def close(self) -> None:
        chat, self._chat = self._chat, None
        if chat is not None:
            await chat.root_async_client.close()

    def _client(self) -> ChatOpenAI:
        if self._chat is None:
            quiet_libraries()
            _silence_comments()
            # takes 1 s and 60 MiB, so only when there is a request
            from langchain_openai import ChatOpenAI
            from openai import DefaultAsyncHttpxClient
            from pydantic import SecretStr

            from agentrunner.planners.recorded import replay_transport

            where = self._endpoint
            recording = self._recording
            self._chat = ChatOpenAI(
                model=where.model,
                base_url=where.base_url,
                api_key=SecretStr(self._key or "none"),  # a replay needs no key
                max_retries=0,
                timeout=self._timeout(),
                openai_proxy=None,
                http_async_client=DefaultAsyncHttpxClient(
                    timeout=self._timeout(),
                    follow_redirects=False,
                    # a proxy to the internet must not see what stays in this network
                    trust_env=not (where.loopback or where.plain),
                    transport=replay_transport(self._player) if self._player else None,
                    event_hooks={
                        "request": [recording.begin] if recording else [],
                        "response": [self._take_body],
                    },
                ),
            )
        return self._chat

    def _timeout(self) -> Timeout:
        """Return the HTTP client's time-outs: how long the server may be silent."""
        from openai import Timeout

        first = self._endpoint.limits.first
        return Timeout(self._endpoint.limits.whole, connect=min(first, CONNECT_SEC), read=first)

    async def _take_body(self, response: Any) -> None:
        """Read the body before the library does: within the size limit, and only a completion."""
        kind = str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
        if response.status_code == 200 and kind == EVENTS:
            asked, where = _ASKED.get(), self._endpoint
            progress = asked.progress if asked is not None else None
            try:
                body = await read_stream(response.aiter_bytes(), where.limits, where.host, progress)
            finally:
                await response.aclose()
            # What aread() would set: no public way exists to pass on a body that was already read.
            response._content = json.dumps(body).encode()
            response.headers["content-type"] = "application/json"
            return
        chunks = await whole_body(response)
        response._content = b"".join(chunks)
        if self._recording is not None:
            self._recording.end(response, chunks)
        if response.status_code == 200:
            whole = response._content
            if whole.lstrip().startswith(b"data:"):  # a stream with the wrong content type
                stream = CompletionStream()
                stream.feed(whole)
                body = stream.end()
            else:
                body = checked_completion(response.text)
            response._content = json.dumps(body).encode()

    def _too_slow(self, problem: Exception | None = None) -> PlannerUnavailable:
        behind = causes(problem)
        if "ReadTimeout" in behind:
            return silent(self._endpoint.host, self._endpoint.limits.first, 0)
        who, limit = f"The planner at {self._endpoint.host}", self._endpoint.limits.whole
        if "ConnectTimeout" in behind:
            return network_failure(f"{who} cannot be reached: it takes no connection.")
        return network_failure(f"{who} gave no answer within {limit:g} s.")

    def _raise_failure(
        self, problem: Exception, *, constrained: Constraint, streams: Streaming
    ) -> NoReturn:
        """Raise PlannerUnavailable for an exception of the library."""
        import openai

        if isinstance(problem, openai.APIStatusError):
            self._status_failure(problem, constrained=constrained, streams=streams)
        if isinstance(problem, openai.APITimeoutError):
            raise self._too_slow(problem) from None
        if isinstance(problem, openai.APIConnectionError):
            why = f"cannot be reached: {problem.__cause__ or problem}"
            raise network_failure(f"The planner at {self._endpoint.host} {why}") from None
        raise PlannerUnavailable(
            f"OpenAI API error: 200 {type(problem).__name__}: {capped(str(problem))}",
            retryable=False,
            kind="protocol",
        ) from None

    def _status_failure(
        self, problem: Any, *, constrained: Constraint, streams: Streaming
    ) -> NoReturn:
        response = problem.response
        body = response.text
        if response.status_code in (400, 422) and self._simplify_if_refused(
            body, constrained, streams
        ):
            raise PlannerUnavailable(
                f"OpenAI API error: {response.status_code} {capped(in_words(body))}",
                retryable=True,
                retry_after=0,
                kind="protocol",
                other_form=True,
            ) from None
        now = datetime.now(UTC)
        wish = parse_retry_after(response.headers.get("retry-after"), now.timestamp())
        raise http_failure(
            response.status_code, body, wish, headers=response.headers, now=now
        ) from None


def _add_streaming(options: dict[str, Any], streams: Streaming) -> None:
    """Ask the server for a stream without the library knowing, since we read it ourselves."""
    if streams == "no":
        return
    extra = options.setdefault("extra_body", {})
    extra["stream"] = True
    if streams == "counted":
        extra["stream_options"] = {"include_usage": True}


def _constraint(chat: ChatOpenAI, request: PlannerRequest, how: Constraint) -> dict[str, Any]:
    """Return the options that request a reply of the message's schema, if any."""
    found = schema_of(request, how)
    if found is None:
        return {}
    name, schema = found
    form = {
        "type": "json_schema",
        "json_schema": {"name": name, "schema": dict(schema), "strict": True},
    }
    if chat.use_responses_api:  # there the option has another name, which the library knows
        return {"response_format": form}
    # Passed raw: the library would walk through the schema and parse the reply, as we do ourselves.
    return {"extra_body": {"response_format": form}}


def _silence_comments() -> None:
    # Silence langchain-openai's comments on refused formats; `_status_failure` handles them.
    warnings.filterwarnings("ignore", "Invalid schema for OpenAI's structured", UserWarning)
    warnings.filterwarnings("ignore", "This model does not support OpenAI's struct", UserWarning)


def causes(problem: BaseException | None) -> set[str]:
    """Return the class names of an exception and its causes, since libraries wrap each other's."""
    found: set[str] = set()
    while problem is not None and type(problem).__name__ not in found:
        found.add(type(problem).__name__)
        problem = problem.__cause__
    return found


async def whole_body(response: Any) -> list[bytes]:
    """Return the body of an answer in one piece; raises PlannerUnavailable if it is too big."""
    size = 0
    chunks: list[bytes] = []
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise PlannerUnavailable(
                f"The planner's server sent more than {MAX_BODY_BYTES >> 20} MiB.",
                retryable=False,
                kind="protocol",
            )
        chunks.append(chunk)
    return chunks


def checked_completion(body: str) -> dict[str, object]:
    """Parse and return the completion; raises PlannerUnavailable if the library would choke."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or data.get("error"):
        raise http_failure(200, body)
    if not data.get("choices") and "output" not in data:  # `output`: the Responses API
        raise PlannerUnavailable("no choices returned from LLM", retryable=False, kind="protocol")
    return with_sane_usage(data)
