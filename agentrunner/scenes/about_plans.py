"""Ask a scene about a plan as a conversation would, with the scene's plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec import Struct, field

from agentrunner.errors.replies import ReplyQuestioned
from agentrunner.execution.failover import Chosen
from agentrunner.execution.seeing import seeing
from agentrunner.money.counters import cost_of
from agentrunner.planners.asking import Asker
from agentrunner.planners.base import PlannerCall
from agentrunner.plans.conversation import Check, Conversation
from agentrunner.plans.plan import Plan
from agentrunner.plans.proposal import propose
from agentrunner.plans.store import PlanStore
from agentrunner.prompts import PromptInput
from agentrunner.protocol import Decompose, Message
from agentrunner.scenes.rules import Given
from agentrunner.scenes.scene import Named
from agentrunner.scenes.staging import Stage


class Calls(Struct):
    """The cost of asking about one scene."""

    looks: int = 0
    calls: int = 0
    faults: list[str] = field(default_factory=list)
    """Why answers could not be used."""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    seconds: float = 0.0
    cut: str = ""

    def add(self, call: Mapping[str, Any], *, answered: bool) -> None:
        """Add one attempt on the wire, as a run's log has it."""
        usage = call["usage"]
        self.calls += 1
        questioned = str(call["error"]).startswith(ReplyQuestioned.fault)
        if call["error"] and answered and not questioned:
            self.faults.append(str(call["error"]))
        self.input_tokens += usage["input_tokens"]
        self.cached_tokens += usage["cached_tokens"]
        self.output_tokens += usage["output_tokens"]
        self.seconds += call["duration_sec"]
        usd = call["usd"]
        self.usd = None if usd is None or self.usd is None else self.usd + usd


class _Planner:
    """Asks the candidate for plans, as a conversation does, and keeps the cost."""

    def __init__(self, stage: Stage, calls: Calls) -> None:
        self._stage = stage
        self._calls = calls
        self._view = seeing(stage.state, stage.deps)

    async def ask(self, prompt: PromptInput, check: Check) -> Message:
        """See `conversation.Planner`."""
        deps = self._stage.deps
        first = self._stage.state["counters"].meta_calls

        async def record(call: PlannerCall) -> None:
            values = {"error": call.error, "duration_sec": call.duration_sec}
            answered = bool(call.text or call.output_tokens)
            self._calls.add({**values, **cost_of(call, deps.prices)}, answered=answered)

        asker = Asker(
            Chosen(deps.panel, deps.panel.role_candidates("plan").candidates[0]),
            record=record,
            before_attempt=lambda: None,
            sleep=deps.clock.sleep,
            redact=deps.redactor.redact,
            look=self._view.answer if self._view.looks else None,
        )
        return await asker.ask(replace(prompt, call_number=first), check)


async def about_plan(named: Named, stage: Stage, calls: Calls) -> Given:
    """Return the answer to one message of a conversation with the scene's plan."""
    deps, scene = stage.deps, named.scene
    store = PlanStore(deps.folder.root / "plan" / "plan.sqlite")
    store.path.parent.mkdir(mode=0o700)
    if scene.plan:
        known = propose(Plan(), "", Decompose.model_validate(scene.plan))
        at = deps.clock.stamp()
        store.save(
            replace(known.after, goal=named.scene.plan["understanding"]), at=at, kind="decompose",
            author="", message="", operations=known.operations,
        )  # fmt: skip
    talk = Conversation(
        store=store,
        planner=_Planner(stage, calls),
        spec=deps.spec,
        salt=named.digest,
        stamp=deps.clock.stamp,
        author="",
        redact=deps.redactor.redact,
        look=lambda _: stage.repository,
        see=seeing(stage.state, deps).see,
    )
    return Given(proposal=await talk.propose(scene.message))
