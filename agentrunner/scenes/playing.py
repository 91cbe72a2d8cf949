"""Play a scene: the code of a run asks it, and the scene's rules grade the answer."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import asdict

from agentrunner.config.spec import TaskSpec
from agentrunner.errors import InfraError, UsageError
from agentrunner.errors.replies import ReplyQuestioned
from agentrunner.execution.asking import AskFailed, NeedsPerson, ask
from agentrunner.execution.assessing import (
    as_seen,
    assessment_of,
    clear_verdict,
    quoted,
    without_doubt,
)
from agentrunner.execution.criteria import criteria_of, merged
from agentrunner.execution.deps import Deps
from agentrunner.execution.failover import Chosen
from agentrunner.execution.quota import MustWait
from agentrunner.execution.seeing import seeing
from agentrunner.money.counters import cost_of
from agentrunner.nodes.decide import allowed
from agentrunner.planners.asking import Asker
from agentrunner.planners.base import (
    PlannerCall,
    PlannerUnavailable,
    PlannerUnusable,
    answers_by_code,
)
from agentrunner.planners.cut import CODE as PROMPT_CUT
from agentrunner.planners.faults import reason_of, words_of_failure
from agentrunner.planners.panel import ROLES, Panel, make_panel
from agentrunner.plans.conversation import Check, Conversation
from agentrunner.plans.plan import Plan
from agentrunner.plans.proposal import Proposal, propose
from agentrunner.plans.store import PlanStore
from agentrunner.prompts import PromptInput
from agentrunner.protocol import Decompose, Message, NextAction, PlanTask
from agentrunner.scenes.rules import Given, JudgeRule, wrongly_failed, wrongly_passed
from agentrunner.scenes.scene import Named
from agentrunner.scenes.staging import Stage, staged


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


SHOWN = 300
"""Most characters of an answer that are kept."""

Grade = Literal["right", "acceptable", "wrong", "unusable"]
OF_ONE_SCENE = frozenset({"context", "filter", "cut", "unusable", "protocol", "request"})
"""Reasons that say something about the planner; any other means that it is out of reach."""


class OutOfReach(InfraError):
    """The planner cannot be asked at all, so there is nothing to grade."""


@dataclass(frozen=True)
class Played:
    """A scene that was played."""

    id: str
    group: str
    language: str
    asks: str
    grade: Grade
    why: str
    """Why the answer is not right; the end of a sentence."""
    answer: str
    """The answer in one line."""
    first: bool
    """Whether the first answer could be used."""
    looks: int
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    usd: float | None
    """None if the cost is unknown, or covered by a subscription."""
    seconds: float
    passed_wrongly: tuple[str, ...] = ()
    """Criteria that are not met but were passed by the judge."""
    failed_wrongly: tuple[str, ...] = ()
    cut: str = ""
    """What is wrong if the planner's server cut the prompt, in a sentence."""
    refused: tuple[str, ...] = ()
    """Why answers could not be used before this one, or instead of it."""


class Company:
    """The planner for all scenes: made once, or per scene if code answers for its own task."""

    def __init__(self, settled: TaskSpec, environ: Mapping[str, str]) -> None:
        """Make the planner; raises as `make_panel`, before anything is spent."""
        self._environ = environ
        self._panel = make_panel(settled, environ)
        clients = [self._panel.role_candidates(role).candidates[0].client for role in ROLES]
        self._by_code = any(answers_by_code(one) for one in clients)
        self.needs_sandbox = any(getattr(one, "is_program", False) for one in clients)
        """Whether it is a program, which works in a sandbox of its own."""
        self.pays = not self._by_code
        self.notices = self._panel.notices

    def describe(self) -> str:
        """Return a text for people."""
        return self._panel.describe()

    def panel_of(self, spec: TaskSpec) -> Panel:
        """Return the planner for this scene."""
        return make_panel(spec, self._environ) if self._by_code else self._panel


async def play_all(
    scenes: Sequence[Named],
    settled: TaskSpec,
    environ: Mapping[str, str],
    *,
    company: Company | None = None,
) -> AsyncIterator[Played]:
    """Yield each scene as it was played, one after the other.

    Raises OutOfReach if the planner cannot be asked, and the errors of making it.
    """
    company = company or Company(settled, environ)
    if not company.needs_sandbox:
        settled = settled.with_sandbox(kind="none")
    number = 0
    for one in scenes:
        place = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="agentrunner-scene-"))
        try:
            async with staged(
                one, settled, company.panel_of, place, environ, call_number=number
            ) as stage:
                played = await play(one, stage)
        finally:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        number += played.calls
        yield played


async def play(named: Named, stage: Stage) -> Played:
    """Ask the scene's question and grade the answer; raises OutOfReach."""
    calls = Calls()
    plans = named.scene.asks in ("decompose", "plan_patch")
    try:
        if plans:
            given = await about_plan(named, stage, calls)
        else:
            given = await _about_run(named, stage)
    except (
        NeedsPerson,
        AskFailed,
        MustWait,
        PlannerUnavailable,
        PlannerUnusable,
        UsageError,
    ) as error:
        why = _why_unusable(error)
        given = None
    if plans:
        calls.looks = max(0, calls.calls - len(calls.faults) - 1) if given is not None else 0
    else:
        _count(stage.deps, calls)
    if given is None:
        return _to_played(named, calls, "unusable", why, "")
    given = replace(given, looks=calls.looks)
    grade, why = graded(named, given)
    return _to_played(named, calls, grade, why, in_a_line(given), given)


def graded(named: Named, given: Given) -> tuple[Grade, str]:
    """Return the grade of an answer by the scene's rules, and what is wrong with it."""
    first = ""
    grades: tuple[Literal["right", "acceptable"], ...] = ("right", "acceptable")
    for grade in grades:
        for rule in named.scene.rules_of(grade):
            faults = list(rule.faults(given))
            if not faults:
                return grade, first
            first = first or "; ".join(faults)
    return "wrong", first


async def _about_run(named: Named, stage: Stage) -> Given:
    """Ask as the nodes of a run do, and return what they make of the answer."""
    state, deps, scene = stage.state, stage.deps, named.scene
    counters = state["counters"]
    orders = [one.order.prompt for one in scene.rounds]
    if scene.asks == "plan_task":
        message, _ = await ask(
            state, deps, "plan_task", counters, repository=stage.repository,
            at_fault=tuple(one.id for one in scene.planned),
        )  # fmt: skip
        assert isinstance(message.payload, PlanTask)
        own = criteria_of(deps.spec.criteria)
        return Given(criteria=merged(own, message.payload, stage.names))
    if scene.asks == "next_action":
        message, _ = await ask(state, deps, "next_action", counters, check=allowed(state, deps))
        assert isinstance(message.payload, NextAction)
        return Given(action=message.payload, orders=orders)
    view, criteria = seeing(state, deps), state["criteria"]
    message, counters = await ask(
        state,
        deps,
        "completion_assessment",
        counters,
        view=view,
        check=clear_verdict(criteria, view, deps.panel.role_candidates("assess").by_code),
    )
    vote = without_doubt(assessment_of(message, criteria, state["tree"]), message, criteria)
    vote, _ = await quoted(state, deps, as_seen(vote, criteria, view), view, counters, 0)
    return Given(assessment=vote)


# -- results --------------------------------------------------------------------------------------


def _count(deps: Deps, calls: Calls) -> None:
    for record in deps.log.records("warning"):
        if record.data.get("code") == PROMPT_CUT:
            calls.cut = str(record.data["message"])
    for record in deps.log.records("meta_call"):
        used = record.data["usage"]["output_tokens"]
        calls.looks += bool(record.data["looks"])
        calls.add(record.data, answered=bool(record.data["response"]["size"] or used))


def _why_unusable(error: BaseException) -> str:
    """Return why there is no answer, as the end of a sentence; raises OutOfReach if unknown."""
    cause = error if isinstance(error, PlannerUnavailable | PlannerUnusable) else error.__cause__
    if isinstance(error, UsageError):
        return f"it does not answer this: {error.message}"
    if isinstance(error, MustWait):
        raise OutOfReach(f"The planner cannot be asked: {error.wait.reason}.") from error
    if not isinstance(cause, PlannerUnavailable | PlannerUnusable):
        raise cause or error
    if isinstance(cause, PlannerUnusable):
        return cause.fault
    if reason_of(cause) in OF_ONE_SCENE:
        return cause.message
    raise OutOfReach(
        f"The planner cannot be asked, {words_of_failure(cause)}: {cause.message}",
        remedy="agentrunner doctor --planner tells what is wrong",
    ) from error


def _to_played(
    named: Named, calls: Calls, grade: Grade, why: str, answer: str, given: Given | None = None
) -> Played:
    wrong, cost = _wrong_verdicts(named, given), asdict(calls)
    faults, cost["seconds"] = cost.pop("faults"), round(calls.seconds, 3)
    return Played(
        id=named.id,
        group=named.scene.group,
        language=named.language,
        asks=named.scene.asks,
        grade=grade,
        why=why,
        answer=answer,
        first=given is not None and not faults,
        passed_wrongly=wrong[0],
        failed_wrongly=wrong[1],
        refused=tuple(faults),
        **cost,
    )


def _wrong_verdicts(named: Named, given: Given | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    rule = named.scene.rules_of("right")[0]
    judged = given.assessment if given is not None else None
    if not isinstance(rule, JudgeRule) or judged is None:
        return (), ()
    return tuple(wrongly_passed(rule, judged)), tuple(wrongly_failed(rule, judged))


def reference_script(scenes: Sequence[Named]) -> str:
    """Return the scenes' own answers as a script, one item per call, in the order of the scenes."""
    items = [
        {"expect": one.scene.asks, "reply": _reply(one.scene.asks, payload)}
        for one in scenes
        for payload in one.scene.answer
    ]
    return json.dumps(items, ensure_ascii=False)


def _reply(asks: str, payload: Mapping[str, Any]) -> dict[str, object]:
    """Return a payload as a message; one that has only looks becomes a look."""
    type_ = "look" if payload.keys() == {"looks"} else asks
    return {"type": type_, "version": 1, "payload": dict(payload)}


def in_a_line(given: Given) -> str:
    """Return the answer in one line, cut if it is long."""
    text = " ".join(_in_words(given).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _in_words(given: Given) -> str:
    if given.action is not None:
        chosen = given.action
        prompt = chosen.worker_call.prompt if chosen.worker_call else chosen.question
        return f"{chosen.decision.action}: {prompt or chosen.decision.reason}"
    if given.assessment is not None:
        judged = given.assessment
        passed, failed = ", ".join(judged.passed) or "none", ", ".join(judged.failed) or "none"
        return f"passed: {passed}; failed: {failed}; {judged.summary}"
    if given.proposal is not None:
        return _plan_in_words(given.proposal)
    return "; ".join(f"{one.id} {one.description}" for one in given.criteria)


def _plan_in_words(proposal: Proposal) -> str:
    plan = proposal.after
    titles = "; ".join(f"{name} {plan.design_of(name).title}" for name in plan.task_order())
    asked = f"; asks: {' / '.join(proposal.questions)}" if proposal.questions else ""
    return f"{titles or 'no task'}{asked}"


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
