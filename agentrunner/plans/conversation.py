"""A conversation about a plan: a message in, a proposal out, and the plan that is accepted.

It needs no terminal and no server: `planner` asks a model, `store` keeps the messages. A message
without an answer is not kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct, field

from agentrunner.config.agents import See
from agentrunner.config.markdown import Language, detect_language
from agentrunner.config.spec import TaskSpec
from agentrunner.errors.planners import ConversationTimeout, EmptyMessage, MessageTooLong
from agentrunner.execution.failover import AllAway
from agentrunner.planners.base import PlannerUnavailable
from agentrunner.planners.factory import reply_format
from agentrunner.plans import proposal as proposals
from agentrunner.plans import remarks
from agentrunner.plans.outages import PlannerWaits
from agentrunner.plans.plan import Plan
from agentrunner.plans.planner_view import (
    MAX_MESSAGE_CHARS,
    ConversationMessage,
    View,
    plan_facts,
    plan_ids,
)
from agentrunner.plans.proposal import Proposal
from agentrunner.plans.store import OpenQuestion, PlanStore
from agentrunner.prompts import PromptInput
from agentrunner.protocol import Choices, Decompose, Message, PlanPatch
from agentrunner.protocol.known_ids import with_plan_ids
from agentrunner.text.cut import cut

TIMEOUT_SEC = 15 * 60.0
"""For one message with all its re-asks. A single call of a CLI has a limit of 10 minutes."""
MAX_MESSAGE_BYTES = 64 << 10
"""Of one message, in UTF-8. A longer text is a document, and belongs into a file."""
MAX_QUESTIONS = 20
"""How many of the latest questions the planner sees."""
MAX_ANSWER_CHARS = 1000

Check = Callable[[Message], None]


class Planner(Protocol):
    """A client that answers prompts about a plan."""

    async def ask(self, prompt: PromptInput, check: Check) -> Message:
        """Return the answer, asked for again where `check` raises ProtocolError.

        The planner sets the prompt's `call_number`. Raises TaskFailed where there is no usable
        answer, and InfraError where no planner can be asked.
        """


class Conversation(Struct):
    """A conversation between people and a planner about one plan."""

    store: PlanStore
    planner: Planner
    spec: TaskSpec
    """Only for its settings: language, format and system prompt of the planner."""
    salt: str
    """Key of the markers in prompts; drawn once per plan."""
    stamp: Callable[[], str]
    """Returns the time now: UTC, ISO 8601."""
    author: str
    redact: Callable[[str], str] = str
    """Removes secrets from messages before they are kept or sent."""
    look: Callable[[str], View | None] = lambda _: None
    """Returns what is known of the repository now, JSON-native, for what is asked. Blocks."""
    see: See = "change"
    """What the planner may see of the code; with `repo` it may look."""
    timeout_sec: float = field(default=TIMEOUT_SEC)
    note: Callable[[str, str], None] = lambda *_: None
    """Records code and sentence where a reply was not taken literally."""
    waits: PlannerWaits | None = None
    """Waits for a planner that is away; without it, that ends the message."""

    async def propose(self, text: str, *, in_place_of: Proposal | None = None) -> Proposal:
        """Return the planner's proposal for a message; the plan stays as it is.

        `in_place_of` is an earlier proposal, and `text` says what should be different. It stays
        waiting until there is a new one; a new plan keeps the goal it was made for. Message and
        answer are kept in the conversation, and the planner's questions as open questions. Raises
        UsageError (`message-too-long`, `message-empty`), TaskFailed (`chat-timeout`,
        `meta-garbage`, …) and InfraError (`planner-refused`, `planner-away`, …).
        """
        check_message(text)
        text = self.redact(text)
        plan = self.store.load()
        seen = await asyncio.to_thread(self.look, f"{plan.goal}\n{text}")
        prompt = self.prompt(plan, text, seen, in_place_of)

        known = {*plan.tasks, *plan.nodes}

        def check(message: Message) -> None:
            proposals.check(plan, with_plan_ids(message, known)[0])

        message = await self._asked(prompt, check)
        message, adapted = with_plan_ids(message, known)
        for sentence in adapted:
            self.note("reply-taken", f"{message.type}: {sentence}")
        for odd in message.warnings:
            self.note(f"reply-{odd.code}", f"{message.type} {odd.path}: {odd.message}")
        reply = message.payload
        assert isinstance(reply, Decompose | PlanPatch)
        proposal = proposals.propose(plan, text, reply, in_place_of.goal if in_place_of else "")
        self._keep(proposal, in_place_of)
        return proposal

    async def _asked(self, prompt: PromptInput, check: Check) -> Message:
        """Return the planner's answer; waits for one that is away do not count to the time-out."""
        if self.waits is not None:
            self.waits.begin()
        while True:
            try:
                async with asyncio.timeout(self.timeout_sec):
                    return await self.planner.ask(prompt, check)
            except TimeoutError as error:
                raise ConversationTimeout(
                    f"The planner gave no answer within {self.timeout_sec / 60:g} minutes.",
                    remedy="say it again, in smaller steps",
                ) from error
            except AllAway as away:
                if self.waits is None:
                    raise away.failure from away
                await self.waits.wait(away, prompt.type)
            except PlannerUnavailable as failure:
                if self.waits is None:
                    raise
                raise self.waits.refusal(failure, prompt.type) from failure

    def _not_applied(self, plan: Plan, former: Proposal | None) -> list[str]:
        """Return remarks on a proposal that was shown and not accepted."""
        if former is not None:
            return [remarks.refused(former.message, plan.goal)]
        waiting = proposals.waiting(self.store.path.parent)
        return [] if waiting is None else [remarks.undecided(waiting, plan.goal)]

    def prompt(
        self,
        plan: Plan,
        text: str,
        repository: View | None = None,
        in_place_of: Proposal | None = None,
    ) -> PromptInput:
        """Return the prompt: the same for the same plan, conversation and message."""
        not_applied = self._not_applied(plan, in_place_of)
        remarks = [ConversationMessage("user", remark) for remark in not_applied]
        facts = plan_facts(plan, [*self.store.conversation(), *remarks])
        facts["questions"] = question_facts(self.store.questions())
        planner = self.spec.runner.meta
        return PromptInput(
            type="decompose" if proposals.is_empty(plan) else "plan_patch",
            facts=facts,
            task={},
            prd_text=text,
            salt=self.salt,
            call_number=0,
            language=self._language(plan, text),
            format=reply_format(self.spec),
            system_prompt=planner.system_prompt,
            system_prompt_mode=planner.system_prompt_mode,
            repository=repository,
            see=self.see,
            looks=self.see == "repo",
            choices=Choices(plan=plan_ids(plan)),
        )

    def _language(self, plan: Plan, text: str) -> Language:
        """Return the language of the settings, else that of the goal and the message."""
        wanted = self.spec.runner.meta.language
        return detect_language(f"{plan.goal}\n{text}") if wanted == "auto" else wanted

    def _keep(self, proposal: Proposal, former: Proposal | None) -> None:
        at = self.stamp()
        if not proposal.empty:  # it replaces one that waits
            for remark in self._not_applied(proposal.before, former):
                self.store.say("user", remark, at)
            proposals.forget(self.store.path.parent)
        self.store.say("user", proposal.message, at)
        self.store.say("planner", proposal.understanding, at)
        known = {asked.text for asked in self.store.questions() if asked.answer is None}
        for text in proposal.questions:
            if text not in known:
                self.store.ask(text, at)

    # -- what a person decides --------------------------------------------------------------------

    def accept(self, proposal: Proposal) -> Plan:
        """Apply a proposal; return the plan after it.

        Raises PlanConflict where somebody else changed the plan since, and PatchRejected where a
        task that it deletes is being worked on by now. Then nothing is changed.
        """
        return accept(self.store, proposal, at=self.stamp(), author=self.author)

    def refuse(self, proposal: Proposal) -> None:
        """Refuse a proposal, and let the planner know that it was not applied."""
        refused = remarks.refused(proposal.message, proposal.before.goal)
        self.store.say("user", refused, self.stamp())
        folder = self.store.path.parent
        if proposals.waiting(folder) == proposal.message:
            proposals.forget(folder)


def accept(store: PlanStore, proposal: Proposal, *, at: str, author: str) -> Plan:
    """Save the plan that a proposal makes; see `Conversation.accept`."""
    now = store.load()
    # A task may have started since. If the version differs, the store reports who changed what.
    renewed = proposal.on(now) if now.version == proposal.before.version else proposal
    store.save(
        renewed.after,
        at=at,
        kind=proposal.kind,
        author=author,
        message=proposal.message,
        operations=proposal.operations,
    )
    proposals.forget(store.path.parent)
    return renewed.after


def check_message(text: str) -> None:
    """Raise UsageError for a message that is empty or too long."""
    if not text.strip():
        raise EmptyMessage("There is nothing in the message.")
    size = len(text.encode("utf-8", "backslashreplace"))
    if size > MAX_MESSAGE_BYTES:
        raise MessageTooLong(
            f"The message has {size:,} bytes; at most {MAX_MESSAGE_BYTES:,} are passed on at once.",
            remedy="put it into a file of the repository, and say what of it to plan",
        )


def question_facts(questions: Sequence[OpenQuestion]) -> View:
    """Return the planner's own questions and people's answers, the latest ones."""
    own = [question for question in questions if not question.task_id]
    kept = own[-MAX_QUESTIONS:]
    items: list[dict[str, object]] = [
        {
            "id": question.id,
            "question": cut(question.text, MAX_MESSAGE_CHARS),
            "answer": None if question.answer is None else cut(question.answer, MAX_ANSWER_CHARS),
        }
        for question in kept
    ]
    return {"total": len(own), "truncated": len(kept) < len(own), "items": items}
