"""A person in the planner's place, where no usable answer of it is to be had."""

from __future__ import annotations

import json
from typing import cast

from langgraph.types import Command, interrupt

from agentrunner.errors import UsageError
from agentrunner.execution.check_faults import about_check
from agentrunner.execution.decisions import record_answer
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.silence import PlannerOrder, read_order
from agentrunner.nodes.ask_human import AnswerText
from agentrunner.state.people import Answer, PersonOrder, Question
from agentrunner.state.run_state import TaskContext, Verdict

CHANGED = "planner"
"""Of the record that another planner answers from here on; under the question's id where a person
answered it with a model."""


async def planner(state: TaskContext, deps: Deps) -> Command[str]:
    """Wait for a person's word. Nothing before it: a node with an interrupt runs from its top."""
    asked = state["question"]
    assert asked is not None
    reply = interrupt(asked.model_dump(mode="json"), response_schema=AnswerText)
    subject: dict[str, object] = json.loads(asked.subject)
    try:
        word = read_order(reply.text, str(subject["asked_for"]))
    except UsageError:
        return Command(goto="planner")
    unknown = word.what == "model" and not _is_changed(deps, asked)
    if reply.id not in ("", asked.id) or unknown:
        return Command(goto="planner")  # another's answer, or a model that nobody has put in place
    answer = Answer(id=asked.id, kind="planner", decision="answer", text=reply.text, by=reply.by)
    answer, kept = record_answer(state, deps, asked, answer)
    before = Question.model_validate(subject["asked"]) if subject["asked"] else None
    # A person has seen to it: whoever was left alone is asked again.
    left = {key: at for key, at in state.get("cooling", {}).items() if not key.startswith("meta:")}
    update: Update = {**kept, "question": before, "cooling": left}
    if "criterion" in subject and word.what != "end":
        now = cast("TaskContext", {**state, **kept})
        at = deps.clock.stamp()
        update |= about_check(now, subject, word, at=at, by=answer.by)
        return Command(update=update, goto=str(subject["back_to"]))
    match word.what:
        case "end":
            who = "" if "criterion" in subject else "The planner could not answer: "
            text = f"{who}{subject['fault']}. A person ended the run."
            verdict = Verdict(state="FAILED", reason=str(subject["code"]), text=text[:2000])
            return Command(update={**update, "verdict": verdict}, goto="note")
        case "again" | "model":
            return Command(update=update, goto=str(subject["back_to"]))
    update["person_order"] = _order(word, deps, f"{asked.id}-{state['counters'].calls}", answer.by)
    if subject["back_to"] == "validate":
        update["answer"] = None  # what was said of the tree before is not about what comes now
    return Command(update=update, goto="plan" if subject["back_to"] == "plan" else "decide")


def _is_changed(deps: Deps, asked: Question) -> bool:
    return any(record.key == asked.id for record in deps.log.records(CHANGED))


def _order(word: PlannerOrder, deps: Deps, name: str, by: str) -> PersonOrder:
    if word.what == "complete":
        return PersonOrder(id=name, action="mark_complete", by=by)
    prompt = deps.folder.write(f"prompts/person-{name}.md", word.text)
    return PersonOrder(id=name, action="run_worker", prompt=prompt, by=by)
