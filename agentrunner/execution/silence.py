"""A planner without a usable answer: the question to a person, and what they may answer."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct
from pydantic import ValidationError

from agentrunner.config.spec import Check
from agentrunner.errors import ProtocolError, UsageError
from agentrunner.errors.runs import WrongAnswer
from agentrunner.execution.deps import Deps
from agentrunner.execution.outages import ASKED_FOR, remedy_of
from agentrunner.execution.questions import question
from agentrunner.planners.base import PlannerUnavailable, PlannerUnusable
from agentrunner.planners.faults import reason_of, words_of_failure
from agentrunner.planners.panel import RoleCandidates, role_of
from agentrunner.protocol import WorkerCall
from agentrunner.protocol.message import MessageType
from agentrunner.state.people import CHECK, CHECK_AFTER, Question
from agentrunner.state.run_state import TaskContext
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import sanitize
from agentrunner.workers.policy import check_prompt

MOST_ANSWER = 2000
"""Characters of a planner's last answer that a person is shown."""
MOST_FAULT = 500
AGAIN, COMPLETE, END = "again", "complete", "end"
DROP, ACCEPT = "drop", "accept"
ABOUT_CHECK = lazy_regex(r"(check|accept)\s*[:\uff1a]\s*(.*)", re.IGNORECASE | re.DOTALL)
FOR_CHECK = 'one of: again, "check: COMMAND", drop, end; after work also "accept: REASON"'
ORDER = lazy_regex(r"(worker|model)\s*[:\uff1a]\s*(.*)", re.IGNORECASE | re.DOTALL)
HOW = 'one of: again, "worker: PROMPT", "model: NAME", end'
HOW_BEFORE_COMPLETION = HOW.replace(", end", ", complete, end")
NAME = lazy_regex(r"[!-~]{1,200}")
"""Pattern of a model's name."""


class Silence(Struct, frozen=True):
    """What was asked, who did not answer it, and why."""

    asked_for: MessageType
    candidate: str
    who: str
    """The planner, as the header describes it."""
    code: str
    reason: str
    """A key of `faults.WORDS`."""
    fault: str
    """What is wrong: a sentence without its full stop."""
    cure: str
    answer: str = ""
    """The planner's last answer, cut."""


class PlannerOrder(Struct, frozen=True):
    """A person's answer in the planner's place."""

    what: Literal["again", "worker", "complete", "model", "end", "check", "drop", "accept"]
    text: str = ""
    """The worker's prompt, the model's name, the command of a check, or a reason."""


def silence_of(
    error: PlannerUnavailable | PlannerUnusable,
    asked_for: MessageType,
    role_candidates: RoleCandidates,
    deps: Deps,
) -> Silence:
    """Return what a person is shown about this failure, in no provider's own form."""
    candidate = role_candidates.named(getattr(error, "candidate", ""))
    fault = words_of_failure(error)
    if isinstance(error, PlannerUnusable) and reason_of(error) == "unusable":
        fault = f"no answer can be used; of the last one: {_bounded(error.fault, MOST_FAULT)}"
    answer = error.answer if isinstance(error, PlannerUnusable) else ""
    remedy = remedy_of(
        reason_of(error),
        candidate,
        deps.spec,
        deps.environ,
        verb="answer",
        model='"model: NAME"',
        again="answer `again`",
        role=role_of(asked_for),
    )
    return Silence(
        asked_for=asked_for,
        candidate=candidate.name,
        who=candidate.client.describe(),
        code=error.code,
        reason=reason_of(error),
        fault=fault.rstrip("."),
        cure=remedy[:1].upper() + remedy[1:],
        answer=_bounded(deps.redactor.redact(answer), MOST_ANSWER),
    )


def _bounded(text: str, most: int) -> str:
    shown = sanitize(text)
    return shown if len(shown) <= most else f"{shown[:most]} … ({len(shown)} characters)"


def planner_question(silence: Silence, state: TaskContext, back_to: str) -> Question:
    """Return the question of kind `planner`; `back_to` is the node that asked."""
    before = state.get("question")
    answered = before is not None and before.kind == "planner"
    subject: dict[str, object] = {
        "asked_for": silence.asked_for,
        "candidate": silence.candidate,
        "planner": silence.who,
        "code": silence.code,
        "reason": silence.reason,
        "fault": silence.fault,
        "last_answer": silence.answer,
        "back_to": back_to,
        "call": state["counters"].calls,  # the same trouble at a later call is another question
        # An earlier question whose answer the node has not used yet.
        "asked": None if before is None or answered else before.model_dump(mode="json"),
    }
    text = (
        f"The planner ({silence.who}) was asked for {ASKED_FOR[silence.asked_for]}, and "
        f"{silence.fault}. {silence.cure}. Or answer in its place."
    )
    options = [AGAIN, END] if silence.asked_for == "completion_assessment" else [
        AGAIN, COMPLETE, END
    ]  # fmt: skip
    return question("planner", text, subject, state, options=options)


def read_order(text: str, asked_for: str) -> PlannerOrder:
    """Return a person's answer, parsed; raise UsageError (`wrong-answer`) where it is not valid."""
    if asked_for in (CHECK, CHECK_AFTER):
        return _about_check(text, asked_for)
    plain = text.strip().rstrip(".").lower()
    if plain in (AGAIN, COMPLETE, END):
        if plain == COMPLETE and asked_for == "completion_assessment":
            raise _wrong(
                "Completion is asked for already; what is missing is a judge's word.",
                'end, then agentrunner accept RUN --reason "…"',
            )
        return PlannerOrder(plain)  # type: ignore[arg-type]
    found = ORDER.fullmatch(text.strip())
    if found is None:
        judged = asked_for == "completion_assessment"
        how = HOW if judged else HOW_BEFORE_COMPLETION
        raise _wrong("This is no answer in the planner's place.", how)
    what, words = found[1].lower(), found[2].strip()
    if what == "model":
        if not NAME.fullmatch(words):
            raise _wrong("A model's name is one word.", '"model: NAME"')
        return PlannerOrder("model", words)
    try:
        check_prompt(words)
        WorkerCall(worker_type="worker", mode="exec", prompt=words)
    except ValidationError as problem:
        raise _wrong("The worker's prompt says nothing.", '"worker: PROMPT"') from problem
    except ProtocolError as problem:
        raise _wrong(f"The worker's prompt: {problem.message}.", '"worker: PROMPT"') from problem
    return PlannerOrder("worker", words)


def _about_check(text: str, asked_for: str) -> PlannerOrder:
    """Return a person's answer about a check that cannot run, parsed."""
    plain = text.strip().rstrip(".").lower()
    if plain in (AGAIN, DROP, END):
        return PlannerOrder(plain)  # type: ignore[arg-type]
    found = ABOUT_CHECK.fullmatch(text.strip())
    if found is None:
        raise _wrong("This is no answer about a check that cannot run.", FOR_CHECK)
    what, words = found[1].lower(), found[2].strip()
    if not words:
        raise _wrong(f"What stands after `{what}:` is empty.", FOR_CHECK)
    if what == ACCEPT and asked_for != CHECK_AFTER:
        raise _wrong("There is no work yet that could be accepted.", FOR_CHECK)
    if what == CHECK:
        try:
            Check(kind="command", run=words)
        except ValidationError as problem:
            raise _wrong("The command cannot be read.", '"check: COMMAND"') from problem
    return PlannerOrder(what, words)  # type: ignore[arg-type]


def _wrong(message: str, remedy: str) -> UsageError:
    return WrongAnswer(message, remedy=remedy)
