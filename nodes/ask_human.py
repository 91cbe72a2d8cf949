"""A question in words to a person: of the planner, or about a spent budget."""

from __future__ import annotations

from langgraph.types import Command, interrupt
from pydantic import BaseModel, ConfigDict, Field

from agentrunner.execution.budget_questions import decided
from agentrunner.execution.decisions import record_answer
from agentrunner.execution.deps import Deps
from agentrunner.execution.questions import MAX_ANSWER
from agentrunner.state.people import Answer
from agentrunner.state.run_state import TaskContext


class AnswerText(BaseModel):
    """What the interrupt takes: free text, and the id of the question it answers."""

    model_config = ConfigDict(extra="forbid")

    id: str = ""
    text: str = Field(min_length=1, max_length=MAX_ANSWER)
    by: str = Field("", max_length=200)


async def ask_human(state: TaskContext, deps: Deps) -> Command[str]:
    """Wait for an answer. Nothing else: a node with an interrupt runs again from its top."""
    asked = state["question"]
    assert asked is not None
    reply = interrupt(asked.model_dump(mode="json"), response_schema=AnswerText)
    if reply.id not in ("", asked.id):
        return Command(goto="ask_human")  # an answer to another question: this one stays
    answer = Answer(id=asked.id, kind=asked.kind, decision="answer", text=reply.text, by=reply.by)
    if asked.kind == "budget":
        return decided(state, deps, answer)
    answer, update = record_answer(state, deps, asked, answer)
    return Command(update={**update, "answer": answer}, goto="decide")
