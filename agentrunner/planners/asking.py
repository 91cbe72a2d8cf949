"""One question to the planner, asked until there is an answer that can be used.

Two loops, one inside the other: a server that does not answer is tried again (`retry.py`), an
answer that cannot be used is asked for again, with the fault named. Every attempt on the wire is
checked against the budget before it is made and recorded after it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from agentrunner.errors import ProtocolError
from agentrunner.errors.replies import ReplyEmpty, ReplyInvalid
from agentrunner.gateway.order import Allowance
from agentrunner.planners.base import (
    ChatMessage,
    PlannerCall,
    PlannerClient,
    PlannerRequest,
    PlannerUnavailable,
    PlannerUnusable,
    Reply,
    Written,
)
from agentrunner.planners.retry import capped, wait_before_retry
from agentrunner.prompts import Looked, PromptInput, Repair, assemble
from agentrunner.prompts.marking import numbers_in, without_numbers
from agentrunner.protocol import Look, Looks, Message, message_schema, take_reply
from agentrunner.protocol.looks import AT_ONCE
from agentrunner.protocol.run_schema import MESSAGES, run_schema
from agentrunner.protocol.schema_parts import Schema

ANSWERS = 4
"""The first answer and three re-asks."""
LEAST_LIMIT = 8192
"""Output tokens asked for after an answer was cut; doubled when that one is cut too."""
LOOKS = 3
"""How often may be looked before an answer."""

Look_ = Callable[[Sequence[Look]], Awaitable[str]]
"""What is found where the planner looks."""


@dataclass(frozen=True)
class PlannerAnswer:
    """An answer that can be used, and what it took. Failed attempts are in the record only."""

    message: Message
    attempts: int
    """On the wire; the next question starts at `call_number` plus this."""
    input_tokens: int
    output_tokens: int


@dataclass
class _Progress:
    """What one question has cost so far."""

    call_number: int
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    limit: int | None = None
    finish_reason: str = "stop"
    looked: int = 0
    seen: set[str] = field(default_factory=set)
    """What was looked at; who asks for nothing else may look no more."""
    after: list[Repair | Looked] = field(default_factory=list)

    def spend(self, reply: Reply | None) -> None:
        """Count what an attempt has used, answered or not."""
        if reply is not None:
            self.input_tokens += reply.input_tokens
            self.output_tokens += reply.output_tokens


class Asker:
    """Asks `client` and reads its answers."""

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
        progress: Callable[[Written], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`before_attempt` raises where the budget allows no further call, `allowance` tells what
        is left of it; `redact` takes secrets out of everything that is sent, recorded or handed
        on. `look` finds what the planner looks at; without it, it cannot. `progress` is told what
        has come of an answer, of clients that stream it; its text is not redacted.
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
    ) -> PlannerAnswer:
        """The answer to `prompt`, whose `call_number` is that of the first attempt.

        `check` raises ProtocolError for an answer that is well formed but not allowed, which is
        then asked for again like any bad one. Raises PlannerUnusable (`meta-garbage`) after four
        bad answers, PlannerUnavailable when the server gives none, and whatever
        `before_attempt` raises.
        """
        progress = _Progress(call_number=prompt.call_number)
        fault: ProtocolError = ReplyEmpty("", "no answer")
        answer = ""
        for _ in range(ANSWERS):
            outcome = await self._answer(prompt, progress, check)
            if isinstance(outcome, Message):
                return PlannerAnswer(
                    message=outcome,
                    attempts=progress.attempts,
                    input_tokens=progress.input_tokens,
                    output_tokens=progress.output_tokens,
                )
            fault, answer = outcome
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
        """One answer of the server, however often it has to be tried, or why it cannot be used."""
        retries = 0
        while True:
            self._before_attempt()
            request = self._request(prompt, progress)
            progress.attempts += 1
            started = self._clock()
            try:
                reply = await self._client.complete(request)
            except PlannerUnavailable as failure:
                clean = self._clean(failure)
                progress.spend(failure.spent)
                await self._note(request, started, reply=_spent(failure), error=str(clean))
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
            if asked_for <= progress.seen:
                progress.looked = LOOKS
            progress.seen |= asked_for
            found = await self._look(outcome.payload.looks)
            progress.after.append(Looked(found, LOOKS - progress.looked))
            retries = 0

    def _request(self, prompt: PromptInput, progress: _Progress) -> PlannerRequest:
        number = progress.call_number + progress.attempts
        assembled = assemble(replace(prompt, call_number=number, after=tuple(progress.after)))
        looks = prompt.looks and progress.looked < LOOKS
        return PlannerRequest(
            type=prompt.type,
            messages=tuple(
                ChatMessage(role=message.role, content=self._redact(message.content))
                for message in assembled
            ),
            schema=message_schema(prompt.type, prompt.choices, looks=looks),
            simpler=message_schema(prompt.type, looks=looks) if prompt.choices else None,
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
        progress.spend(reply)
        progress.finish_reason = reply.finish_reason
        # Before parsing: what the model copied out of somewhere must not reach worker or state.
        reply = replace(reply, text=_without_markers(self._redact(reply.text), request))
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
            elif check is not None:
                check(message)
        except ProtocolError as fault:
            await self._note(request, started, reply=reply, error=str(fault))
            cut = reply.finish_reason == "length"
            if cut:
                # Without a limit of ours the server's own cut it: then twice what came is asked.
                was = request.max_output_tokens or reply.output_tokens
                progress.limit = max(2 * was, LEAST_LIMIT)
            progress.after.append(Repair(error=str(fault), answer=reply.text, cut=cut))
            return fault, reply.text
        looks = message.payload.looks if isinstance(message.payload, Looks) else ()
        await self._note(request, started, reply=reply, looks=looks[:AT_ONCE])
        return message

    async def _note(
        self,
        request: PlannerRequest,
        started: float,
        *,
        reply: Reply | None = None,
        error: str = "",
        looks: Sequence[Look] = (),
    ) -> None:
        reply = reply or Reply(text="")
        await self._record(
            PlannerCall(
                number=request.call_number,
                type=request.type,
                messages=request.messages,
                response=reply.text,
                error=error,
                duration_sec=self._clock() - started,
                input_tokens=reply.input_tokens,
                output_tokens=reply.output_tokens,
                model=reply.model,
                cached_tokens=reply.cached_tokens,
                usd=reply.usd,
                known=reply.known,
                subscription=reply.subscription,
                candidate=reply.candidate,
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


def _alike(prompt: PromptInput, progress: _Progress) -> Schema | None:
    """The run's schema; None where that of the message alone keeps the answer in form.

    That is after an answer that could not be used, and where it may look no more.
    """
    refused = any(isinstance(one, Repair) for one in progress.after)
    if prompt.type not in MESSAGES or refused or progress.looked >= LOOKS:
        return None
    return run_schema(prompt.choices, looks=prompt.looks)


def _without_markers(text: str, request: PlannerRequest) -> str:
    """A reply without the numbers of our markers, which nobody else is to know."""
    numbers = set().union(*(numbers_in(message.content) for message in request.messages))
    return without_numbers(text, numbers)


def _spent(failure: PlannerUnavailable) -> Reply:
    """What a failed attempt has used, without any text."""
    spent = failure.spent or Reply("")
    return replace(spent, text="", candidate=failure.candidate or spent.candidate)
