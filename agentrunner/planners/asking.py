"""Ask the planner one question until it gives a usable answer.

There are two nested loops. A server that does not answer is tried again (`retry.py`). An answer
that cannot be used is requested again, with its fault named. Each attempt on the wire is checked
against the budget before it is made and recorded after it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields, replace

from msgspec import Struct, field

from agentrunner.errors import ProtocolError, TaskFailed
from agentrunner.errors.replies import ReplyEmpty, ReplyInvalid, ReplyQuestioned, ReplySyntax
from agentrunner.gateway.order import Allowance
from agentrunner.planners.base import (
    ChatMessage,
    PartialAnswer,
    PlannerCall,
    PlannerClient,
    PlannerRequest,
    PlannerUnavailable,
    PlannerUnusable,
    Reply,
)
from agentrunner.planners.retry import capped, wait_before_retry
from agentrunner.prompts import Looked, PromptInput, Repair, assemble
from agentrunner.prompts.marking import without_numbers
from agentrunner.protocol import Choices, Look, Looks, Message, message_schema, take_reply
from agentrunner.protocol.looks import AT_ONCE
from agentrunner.protocol.message import says_done
from agentrunner.protocol.schema import MESSAGES, run_schema
from agentrunner.protocol.schema_parts import Schema
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import clean

ANSWERS = 4
"""The first answer and three repeated requests."""
LEAST_LIMIT = 8192
"""Output tokens requested after an answer was cut off; doubled when the next one is cut off too."""
LOOKS = 3
"""How many times the planner may look before it answers."""

_ABOUT_A_LOOK = lazy_regex(r"=== \d+\. |\(.*\)$")
"""A line of an answer to looks that is not of a file: which look it is, which lines these are."""
_LINE_NUMBER = lazy_regex(r"(?:(?<![^\s:])[^\s:]++:\d+|(?<!\d)\d++):(?: |$)")

Look_ = Callable[[Sequence[Look]], Awaitable[str]]
"""Returns what the planner's looks found."""


class _Progress(Struct):
    """How far one question has come."""

    call_number: int
    """That of the next attempt on the wire."""
    limit: int | None = None
    finish_reason: str = "stop"
    looked: int = 0
    seen: set[str] = field(default_factory=set)
    """Everything looked at so far; a planner that asks only for this again may look no more."""
    after: list[Repair | Looked] = field(default_factory=list)
    questioned: Message | None = None
    """A usable answer that the planner was asked about once; it holds where no other comes."""


class Asker:
    """Sends requests to `client` and reads its answers."""

    def __init__(
        self,
        client: PlannerClient,
        *,
        record: Callable[[PlannerCall], Awaitable[None]],
        before_attempt: Callable[[], None],
        sleep: Callable[[float], Awaitable[None]],
        redact: Callable[[str], str],
        allowance: Callable[[], Allowance] = Allowance,
        look: Look_ | None = None,
        progress: Callable[[PartialAnswer], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set up the asker; nothing is sent.

        `before_attempt` raises when the budget allows no further call; `allowance` returns what is
        left of it. `redact` removes secrets from everything that is sent, recorded or passed on.
        `look` runs the planner's looks; without it the planner cannot look. `progress` receives the
        partial answer from clients that stream; its text is not redacted.
        """
        self._client = client
        self._record = record
        self._before_attempt = before_attempt
        self._sleep = sleep
        self._redact = redact
        self._allowance = allowance
        self._look = look
        self._progress = progress
        self._clock = clock

    async def ask(
        self, prompt: PromptInput, check: Callable[[Message], None] | None = None
    ) -> Message:
        """Return the answer to `prompt`, whose `call_number` is that of the first attempt.

        `check` raises ProtocolError for an answer that is well formed but not allowed; it is then
        requested again like any bad answer. One that it questions is no bad answer, and is
        returned where no usable one follows. Raises PlannerUnusable (`meta-garbage`) after four bad
        answers, PlannerUnavailable when the server gives none, and whatever `before_attempt`
        raises.
        """
        progress = _Progress(call_number=prompt.call_number)
        fault: ProtocolError = ReplyEmpty("", "no answer")
        answer = ""
        tries = 0
        while tries < ANSWERS:
            try:
                outcome = await self._answer(prompt, progress, check)
            except TaskFailed as error:
                if progress.questioned is not None:
                    return progress.questioned
                if progress.after:  # why there is no further answer says nothing of the last one
                    error.details = (*error.details, ("refused", str(fault)))
                raise
            if isinstance(outcome, Message):
                return outcome
            fault, answer = outcome
            tries += not isinstance(fault, ReplyQuestioned)
        if progress.questioned is not None:
            return progress.questioned
        raise PlannerUnusable(
            f"The planner gave no usable answer in {ANSWERS} tries ({prompt.type}). The last one: "
            f"{fault}",
            fault=str(fault),
            answer=answer,
            finish_reason=progress.finish_reason,
            remedy="try a stronger model in runner.meta.model",
            details=(("last answer", capped(answer)),),
        )

    async def _answer(
        self,
        prompt: PromptInput,
        progress: _Progress,
        check: Callable[[Message], None] | None,
    ) -> Message | tuple[ProtocolError, str]:
        """Return one answer of the server after any retries, or why it is unusable and its text."""
        retries = 0
        while True:
            self._before_attempt()
            request = self._request(prompt, progress)
            progress.call_number += 1
            started = self._clock()
            try:
                reply = await self._client.complete(request)
            except PlannerUnavailable as failure:
                clean = self._clean(failure)
                await self._note(request, started, _spent(failure), error=str(clean))
                if failure.other_form:
                    continue
                wait = wait_before_retry(failure, retries)
                if wait is None:
                    raise clean from None  # the original's text and causes may hold secrets
                retries += 1
                await self._sleep(wait)
                continue
            outcome = await self._read(request, started, reply, progress, check)
            if not isinstance(outcome, Message) or not isinstance(outcome.payload, Looks):
                return outcome
            assert self._look is not None
            progress.looked += 1
            asked_for = {repr(look) for look in outcome.payload.looks}
            found = await self._look(outcome.payload.looks)
            # A judge has to look at what is cut, whatever else it looks at.
            is_idle = prompt.type != "completion_assessment" and _is_shown(found, request)
            if asked_for <= progress.seen or is_idle:
                progress.looked = LOOKS
            progress.seen |= asked_for
            progress.after.append(Looked(found, LOOKS - progress.looked))
            retries = 0

    def _request(self, prompt: PromptInput, progress: _Progress) -> PlannerRequest:
        number = progress.call_number
        assembled = assemble(replace(prompt, call_number=number, after=tuple(progress.after)))
        looks = prompt.looks and progress.looked < LOOKS
        return PlannerRequest(
            type=prompt.type,
            messages=tuple(
                ChatMessage(role=message.role, content=clean(self._redact(message.content)))
                for message in assembled
            ),
            schema=message_schema(prompt.type, prompt.choices, looks=looks),
            simpler=message_schema(prompt.type, _plain(prompt), looks=looks)
            if prompt.choices
            else None,
            alike=_alike(prompt, progress),
            facts=prompt.facts,
            call_number=number,
            max_output_tokens=progress.limit,
            allowance=self._allowance(),
            progress=self._progress,
            stable=len(assembled) - 1 - len(progress.after),
        )

    async def _read(
        self,
        request: PlannerRequest,
        started: float,
        reply: Reply,
        progress: _Progress,
        check: Callable[[Message], None] | None,
    ) -> Message | tuple[ProtocolError, str]:
        progress.finish_reason = reply.finish_reason
        # Redact before parsing: what the model copied from anywhere must not reach worker or state.
        prompts = (message.content for message in request.messages)
        reply = replace(reply, text=without_numbers(self._redact(reply.text), prompts))
        try:
            message = take_reply(
                reply.text,
                request.type,
                finish_reason=reply.finish_reason,
                looks=self._look is not None,
            )
            if isinstance(message.payload, Looks):
                if progress.looked >= LOOKS:
                    raise ReplyInvalid("looks", f"no more than {LOOKS} times; answer")
            else:
                looked = [one.text for one in progress.after if isinstance(one, Looked)]
                _refuse_quoted(message, request, looked)
                if check is not None:
                    check(message)
        except ProtocolError as fault:
            await self._note(request, started, reply, error=str(fault))
            cut = reply.finish_reason == "length"
            if cut:
                # Where we set no limit, the server's own limit cut it off: ask for twice the tokens
                # that came.
                was = request.max_output_tokens or reply.output_tokens
                progress.limit = max(2 * was, LEAST_LIMIT)
            # Small models copy an answer that they are shown, and this one is to be thought over.
            is_questioned = isinstance(fault, ReplyQuestioned)
            progress.questioned = message if is_questioned else progress.questioned
            shown = "" if is_questioned else reply.text
            progress.after.append(Repair(error=str(fault), answer=shown, cut=cut))
            return fault, reply.text
        looks = message.payload.looks if isinstance(message.payload, Looks) else ()
        await self._note(request, started, reply, looks=looks[:AT_ONCE])
        return message

    async def _note(
        self,
        request: PlannerRequest,
        started: float,
        reply: Reply,
        *,
        error: str = "",
        looks: Sequence[Look] = (),
    ) -> None:
        await self._record(
            PlannerCall(
                **{one.name: getattr(reply, one.name) for one in fields(Reply)},
                number=request.call_number,
                type=request.type,
                messages=request.messages,
                error=error,
                duration_sec=self._clock() - started,
                looks=tuple(look.in_words for look in looks),
            )
        )

    def _clean(self, failure: PlannerUnavailable) -> PlannerUnavailable:
        return PlannerUnavailable(
            self._redact(failure.message),
            retryable=failure.retryable,
            retry_after=failure.retry_after,
            kind=failure.kind,
            reset_at=failure.reset_at,
            candidate=failure.candidate,
            reason=failure.reason,
            status=failure.status,
        )


def _plain(prompt: PromptInput) -> Choices | None:
    """Return what a simpler schema has to keep: which keys a judge's second question asks for."""
    return Choices(quotes=True) if prompt.quotes is not None else None


def _alike(prompt: PromptInput, progress: _Progress) -> Schema | None:
    """Return the run's schema; None where the schema of this one message is the better guide.

    That is the case after an unusable answer, and when the planner may look no more.
    """
    refused = any(isinstance(one, Repair) for one in progress.after)
    own = prompt.type not in MESSAGES or prompt.quotes is not None
    if own or refused or progress.looked >= LOOKS:
        return None
    return run_schema(prompt.choices, looks=prompt.looks)


def _is_shown(found: str, request: PlannerRequest) -> bool:
    """Whether each line that looks have found stands in the request already: small models look at
    the tests that they were just shown.
    """
    of_files = [line for line in found.splitlines() if not _ABOUT_A_LOOK.match(line)]
    lines = [line for one in of_files if (line := _LINE_NUMBER.sub("", one).strip())]
    shown = "\n".join(message.content for message in request.messages)
    return bool(lines) and all(line in shown for line in lines)


def _refuse_quoted(message: Message, request: PlannerRequest, looked: Sequence[str]) -> None:
    """Raise ReplySyntax where what calls something done was copied from the prompt and spoken of.

    A worker's output, or a file of the repository that was `looked` at, may hold such an answer.
    """
    shown = [one.content for one in request.messages[: request.stable + 1]]
    if says_done(message.payload) and message.is_quoted_from("\n".join([*shown, *looked])):
        raise ReplySyntax(
            "", "an answer that stands word for word in the material; give your own one alone"
        )


def _spent(failure: PlannerUnavailable) -> Reply:
    """The usage of a failed attempt, without any text."""
    spent = failure.spent or Reply("")
    return replace(spent, text="", candidate=failure.candidate or spent.candidate)
