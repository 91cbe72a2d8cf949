"""The planner behind any chat model that LangChain supports: `model: provider:name`.

LangChain and the provider's package are extras; this code knows no provider. The library's own
retries are switched off as far as it allows: `asking.py` counts and records each attempt.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentrunner.config.spec import TaskSpec
from agentrunner.environment import how_to_add, quiet_libraries
from agentrunner.errors import InfraError, UsageError
from agentrunner.errors.planners import BadChatModel, ChatPackagesMissing, NoPlannerKey
from agentrunner.launching.route import NO_CASSETTE, Cassette
from agentrunner.planners.base import (
    PartialAnswer,
    PlannerRequest,
    PlannerUnavailable,
    Reply,
    in_turns,
)
from agentrunner.planners.constraint import AskedSchema, Constraint, schema_of
from agentrunner.planners.endpoint import checked_url
from agentrunner.planners.factory import reply_format
from agentrunner.planners.faults import OUTAGES
from agentrunner.planners.retry import capped, http_failure, network_failure, parse_retry_after
from agentrunner.planners.streaming import Progress, reply_of, silent, tell_reading
from agentrunner.planners.timeouts import is_near, limits_of
from agentrunner.planners.workplace import Workplace
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.redaction import Redactor
from agentrunner.text.server_errors import in_words
from agentrunner.workers.failures import failure_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk

METHOD = "json_schema"
"""The provider holds the answer's text to the schema; the other methods use a tool call."""

MARK = {"type": "ephemeral"}
Block = dict[str, Any]

Messages = Sequence[tuple[str, Any]]

_SECRET_WORDS = ("KEY", "TOKEN", "SECRET")
_INSTALL = lazy_regex(r"pip install (?:-U )?`?([\w.-]+)")


class ChatPlanner:
    """Completes messages with a chat model of any provider."""

    kind = "chat"
    is_chat_model = True
    recordable = True
    takes_schema = "that its provider holds answers to, where its package can ask for that"

    def __init__(
        self,
        spec: TaskSpec,
        environ: Mapping[str, str],
        cassette: Cassette = NO_CASSETTE,
    ) -> None:
        """Make the provider's client; opens no connection.

        Raises UsageError for a model without a known provider and for a recording. Raises
        InfraError (`chat-missing`) where a package is missing and (`no-planner-key`) where the
        provider needs a key.
        """
        if cassette.used:
            raise UsageError(
                "A planner of kind chat is neither recorded nor replayed: its provider's library "
                "goes its own way.",
                path="--record" if cassette.record else "--replay",
                remedy="runner.meta.kind: openai-chat, codex-cli or claude-code",
            )
        meta = spec.runner.meta
        self._provider, _, self._model = (meta.model or "").partition(":")
        if not self._provider or not self._model:
            raise _no_model(f"{meta.model!r} names no provider" if meta.model else "none is given")
        if meta.base_url:
            plain = meta.allow_plain_http
            checked_url(meta.base_url, "runner.meta.base_url", from_file=True, plain=plain)
        bare = urlsplit(meta.base_url).hostname if meta.base_url else ""
        self._limits = limits_of(meta, environ, bare or "")
        self._near = is_near(bare or "")
        self._schema = AskedSchema(near=self._near, form=reply_format(spec))
        self._streams = True
        """True until the provider turns out to have no stream."""
        self._secrets = _secrets_of(self._provider, environ)
        self._redactor = Redactor(self._secrets)
        self._chat = self._client(meta.base_url)

    @property
    def near_model(self) -> str:
        """The model, if a server of this machine or of its network has it; "" otherwise."""
        return self._model if self._near else ""

    def describe(self) -> str:
        return f"{self.kind} {self._model} of {self._provider}"

    async def open(self, workplace: Workplace) -> None:
        """Tell the run's redactor which secrets the provider may use."""
        workplace.redactor.learn(self._secrets)

    async def complete(self, request: PlannerRequest) -> Reply:
        constrained = self._schema.of(request)
        options = self._form(request, constrained)
        if request.max_output_tokens is not None:
            options["max_tokens"] = request.max_output_tokens
        marks = "anthropic" in self._provider
        messages = (
            marked_turns(request)
            if marks
            else [(message.role, message.content) for message in in_turns(request.messages)]
        )
        if self._streams:
            tell_reading(request)
        try:
            async with asyncio.timeout(self._limits.whole):
                answer = await self._answer(messages, options, request.progress)
        except PlannerUnavailable:
            raise
        except TimeoutError:
            raise network_failure(
                f"The planner ({self.describe()}) gave no answer within {self._limits.whole:g} s."
            ) from None
        except Exception as problem:  # noqa: BLE001  (every provider's library has its own)
            raise self._failure(problem, constrained) from None
        return replace(reply_of(answer), near=self._near)

    def _form(self, request: PlannerRequest, constrained: Constraint) -> dict[str, Any]:
        """Return the options that request an answer of the message's schema, if any."""
        if (found := schema_of(request, constrained)) is None:
            return {}
        options = schema_options(self._chat, *found)
        if options is None:
            self._schema.constraint = "none"
        return options or {}

    async def _answer(
        self, messages: Messages, options: Mapping[str, Any], progress: Progress | None
    ) -> AIMessage:
        """Return one answer, streamed where possible; without a stream it comes in one piece."""
        if self._streams:
            pieces = [piece async for piece in self._pieces(messages, options, progress)]
            if pieces:
                return _joined(pieces)
            self._streams = False  # it accepted the request but has nothing to stream
        return await self._chat.ainvoke(list(messages), **options)

    async def _pieces(
        self, messages: Messages, options: Mapping[str, Any], progress: Progress | None
    ) -> AsyncIterator[AIMessageChunk]:
        source = aiter(self._chat.astream(list(messages), **options))
        text, begun, wait = "", time.monotonic(), self._limits.first
        while True:
            try:
                async with asyncio.timeout(wait):
                    piece = await anext(source, None)
            except TimeoutError:
                raise silent(self.describe(), wait, len(text)) from None
            except ValueError as problem:
                if "No generation" not in str(problem):
                    raise
                return
            if piece is None:
                return
            yield piece
            text, wait = text + str(piece.text), self._limits.between
            if progress is not None:
                progress(PartialAnswer(text, 0, time.monotonic() - begun))

    async def close(self) -> None:
        """LangChain's models have nothing to close."""

    def _client(self, base_url: str | None) -> BaseChatModel:
        quiet_libraries()
        try:
            from langchain.chat_models import init_chat_model
        except ImportError:
            raise _no_package("langchain", how_to_add("chat")) from None
        options: dict[str, Any] = {"max_retries": 0, "timeout": self._limits.whole}
        if base_url:
            options["base_url"] = base_url
        try:
            chat: BaseChatModel = init_chat_model(
                self._model, model_provider=self._provider, **options
            )
        except ImportError as problem:
            found = _INSTALL.search(str(problem))
            package = found[1] if found else f"langchain-{self._provider.replace('_', '-')}"
            raise _no_package(package, f"pip install {package}") from None
        except Exception as problem:  # noqa: BLE001  (every provider's library has its own)
            words = capped(self._redactor.redact(" ".join(str(problem).split())), 300)
            if type(problem) is ValueError and "provider" in words:
                raise _no_model(f'LangChain knows no provider "{self._provider}"') from None
            raise NoPlannerKey(
                f"The planner's model {self._provider}:{self._model} cannot be used: {words}",
                remedy=f"export {self._provider.upper()}_API_KEY=…",
                nothing_spent=True,
            ) from None
        if "stream_usage" in type(chat).model_fields:  # else some count no tokens of a stream
            chat = chat.model_copy(update={"stream_usage": True})
        return chat

    def _failure(self, problem: Exception, constrained: Constraint) -> PlannerUnavailable:
        """Translate an exception; a refused schema makes later requests use a simpler one."""
        failure = self._translate(problem)
        refused = failure.kind == "protocol" and not failure.retryable
        if not refused or not self._schema.is_refused(constrained, failure.message):
            return failure
        return PlannerUnavailable(
            failure.message, retryable=True, retry_after=0, kind="protocol", other_form=True
        )

    def _translate(self, problem: Exception) -> PlannerUnavailable:
        """Translate a library's exception by its HTTP answer, else by its message."""
        response = getattr(problem, "response", None)
        status = getattr(problem, "status_code", None) or getattr(problem, "code", None)
        now = datetime.now(UTC)
        if isinstance(status, int) and 300 <= status < 600:
            headers = dict(getattr(response, "headers", None) or {})
            wish = parse_retry_after(headers.get("retry-after"), now.timestamp())
            refused = http_failure(status, str(problem), wish, headers=headers, now=now)
            body = getattr(problem, "body", None)
            words = in_words(json.dumps(body)) if isinstance(body, Mapping) else str(problem)
            refused.message = f"The planner's provider {self._provider} says {status}: {words}"
            return refused
        words = f"{type(problem).__name__}: {problem.__cause__ or problem}"
        failure = failure_of(words, now)
        kind = failure.kind if failure else "protocol"
        return PlannerUnavailable(
            f"The planner's provider {self._provider} gave no answer: {capped(words)}",
            retryable=kind in OUTAGES,
            kind=kind,
            reset_at=failure.reset_at if failure else "",
        )


def _joined(pieces: Sequence[AIMessageChunk]) -> AIMessage:
    """Join the pieces of a stream into one answer; of each metadata entry the last value counts."""
    whole = pieces[0]
    for piece in pieces[1:]:
        whole = whole + piece
    facts: dict[str, Any] = {}
    for piece in pieces:  # LangChain's own addition would repeat equal words
        facts.update({name: value for name, value in piece.response_metadata.items() if value})
    whole.response_metadata = facts
    return whole


def _secrets_of(provider: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Environment variables that may hold a key for the provider's library, judged by name."""
    beginnings = {provider.upper().partition("_")[0], "AWS", "AZURE", "GOOGLE", "GEMINI"}
    return {
        name: value
        for name, value in environ.items()
        if any(name.startswith(f"{beginning}_") for beginning in beginnings)
        and any(word in name for word in _SECRET_WORDS)
    }


def _no_package(package: str, cure: str) -> InfraError:
    return ChatPackagesMissing(
        f"The planner of kind chat needs the package {package}, which is not installed.",
        path="runner.meta.kind",
        remedy=cure,
        nothing_spent=True,
    )


def _no_model(why: str) -> UsageError:
    return BadChatModel(
        f"The planner of kind chat needs a model as provider:name, and {why}.",
        path="runner.meta.model",
        remedy="for instance runner.meta.model: anthropic:claude-sonnet-4-5",
    )


def marked_turns(request: PlannerRequest) -> list[tuple[str, list[Block]]]:
    """Return the messages by role, one block each, with marks where later requests will differ.

    Marks end the system message and the task (both fixed for the run) and the last of the
    `request.stable` messages, with which the next request begins as well. The last message is
    marked too when something was appended to the stable ones, since more may follow.

    Anthropic's API caches a prefix only up to a block that carries a mark, four marks at most.
    """
    first = [role.role for role in request.messages].count("system")
    last = len(request.messages) - 1
    ends = {one for one in (first - 1, first, request.stable - 1) if 0 <= one < request.stable}
    if last > request.stable:  # unusable answers and the results of looks
        ends.add(last)
    turns: list[tuple[str, list[Block]]] = []
    for number, message in enumerate(request.messages):
        block: Block = {"type": "text", "text": message.content}
        if number in ends:
            block["cache_control"] = MARK
        if turns and turns[-1][0] == message.role:
            turns[-1][1].append(block)
        else:
            turns.append((message.role, [block]))
    return turns


def schema_options(
    chat: BaseChatModel, name: str, schema: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return call options that request the schema; None where the provider's package has none.

    Each provider's package knows how its API wants that and binds it as call options. Only these
    options are taken from it: our own code reads the raw answer.
    """
    from langchain_core.runnables import RunnableBinding

    titled = {"title": name, "description": "The reply.", **schema}
    try:
        reader = chat.with_structured_output(titled, method=METHOD)
    except Exception:  # noqa: BLE001  (each package refuses differently, and the prompt's words are enough)
        return None
    asked = getattr(reader, "first", None)
    if not isinstance(asked, RunnableBinding) or asked.bound is not chat:
        return None
    options = {key: value for key, value in asked.kwargs.items() if not key.startswith("ls_")}
    if not options or "tools" in options:
        return None
    return _bypass_client(chat, name, schema, options)


def _bypass_client(
    chat: BaseChatModel, name: str, schema: Mapping[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Hide the schema from OpenAI's client, which would parse the answer and raise if it is cut."""
    form = options.get("response_format")
    if not isinstance(form, Mapping) or "extra_body" not in type(chat).model_fields:
        return options
    exact = {"name": name, "schema": dict(schema), "strict": True}
    form = {"type": METHOD, METHOD: exact}
    if getattr(chat, "use_responses_api", False):  # this API's name for it is known
        return {**options, "response_format": form}
    rest = {key: value for key, value in options.items() if key != "response_format"}
    return {**rest, "extra_body": {"response_format": form}}
