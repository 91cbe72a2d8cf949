"""A person decides in the planner's place, where the planner gives no usable answer."""

from __future__ import annotations

import json

from langgraph.types import Command, interrupt

from agentrunner.errors import UsageError
from agentrunner.execution.check_faults import about_check
from agentrunner.execution.decisions import record_answer
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.silence import PlannerOrder, read_order
from agentrunner.nodes.ask_human import AnswerText
from agentrunner.state.people import Answer, PersonOrder, Question
from agentrunner.state.run_state import TaskContext, Verdict, updated

CHANGED = "planner"
"""Kind of the record that another planner answers from here on. Its key is the question's id where
a person answered that question with a model."""


async def planner(state: TaskContext, deps: Deps) -> Command[str]:
    """Wait for a person's answer. Nothing before it: after an interrupt it runs from its top."""
    asked = state["question"]
    assert asked is not None
    reply = interrupt(asked.model_dump(mode="json"), response_schema=AnswerText)
    subject: dict[str, object] = json.loads(asked.subject)
    try:
        chosen = read_order(reply.text, str(subject["asked_for"]))
    except UsageError:
        return Command(goto="planner")
    unknown = chosen.what == "model" and not _is_changed(deps, asked)
    if reply.id not in ("", asked.id) or unknown:
        return Command(goto="planner")  # another question's answer, or a model that is not set up
    answer = Answer(id=asked.id, kind="planner", decision="answer", text=reply.text, by=reply.by)
    answer, kept = record_answer(state, deps, asked, answer)
    before = Question.model_validate(subject["asked"]) if subject["asked"] else None
    # A person has looked after it: planners that were cooling down are asked again.
    cooling = {
        key: at for key, at in state.get("cooling", {}).items() if not key.startswith("meta:")
    }
    update: Update = {**kept, "question": before, "cooling": cooling}
    if "criterion" in subject and chosen.what != "end":
        answered = updated(state, kept)
        at = deps.clock.stamp()
        update |= about_check(answered, subject, chosen, at=at, by=answer.by)
        return Command(update=update, goto=str(subject["back_to"]))
    match chosen.what:
        case "end":
            who = "" if "criterion" in subject else "The planner could not answer: "
            text = f"{who}{subject['fault']}. A person ended the run."
            verdict = Verdict(state="FAILED", reason=str(subject["code"]), text=text[:2000])
            return Command(update={**update, "verdict": verdict}, goto="note")
        case "again" | "model":
            return Command(update=update, goto=str(subject["back_to"]))
    update["person_order"] = _order(
        chosen, deps, f"{asked.id}-{state['counters'].calls}", answer.by
    )
    if subject["back_to"] == "validate":
        update["answer"] = None  # an answer about the old tree does not cover the new one
    return Command(update=update, goto="plan" if subject["back_to"] == "plan" else "decide")


def _is_changed(deps: Deps, asked: Question) -> bool:
    return any(record.key == asked.id for record in deps.log.records(CHANGED))


def _order(chosen: PlannerOrder, deps: Deps, name: str, by: str) -> PersonOrder:
    if chosen.what == "complete":
        return PersonOrder(id=name, action="mark_complete", by=by)
    prompt = deps.folder.write(f"prompts/person-{name}.md", chosen.text)
    return PersonOrder(id=name, action="run_worker", prompt=prompt, by=by)
