"""A person's yes or no to a plan, a worker run, another try of one, a completion or a change."""

from __future__ import annotations

from typing import Literal

from langgraph.types import Command, interrupt
from pydantic import BaseModel, ConfigDict, Field

from agentrunner.execution.decisions import record_answer
from agentrunner.execution.deps import Deps
from agentrunner.execution.questions import MAX_ANSWER
from agentrunner.state.people import Answer
from agentrunner.state.run_state import TaskContext

AFTER = {
    ("plan", "approve"): "decide",
    ("plan", "reject"): "plan",
    ("worker", "approve"): "run_worker",
    ("worker", "reject"): "decide",
    ("worker_failed", "approve"): "run_worker",
    ("worker_failed", "reject"): "run_worker",
    ("network", "approve"): "validate",
    ("network", "reject"): "validate",
    ("complete", "approve"): "validate",
    ("complete", "reject"): "validate",
    ("tests_changed", "approve"): "validate",
    ("tests_changed", "reject"): "validate",
    ("protected_path", "approve"): "validate",
    ("protected_path", "reject"): "validate",
    ("tests_could_not_run", "approve"): "plan",
    ("tests_could_not_run", "reject"): "plan",
}
"""The next node for each answer. That node consumes the answer."""


class Approval(BaseModel):
    """What the interrupt takes."""

    model_config = ConfigDict(extra="forbid")

    id: str = ""
    decision: Literal["approve", "reject"]
    text: str = Field("", max_length=MAX_ANSWER)
    edit: str = Field("", max_length=262_144)
    """The subject as edited: a plan as JSON, or a worker's prompt."""
    by: str = Field("", max_length=200)


async def approve(state: TaskContext, deps: Deps) -> Command[str]:
    """Wait for a decision. Nothing else: a node with an interrupt runs again from its top."""
    asked = state["question"]
    assert asked is not None
    reply = interrupt(asked.model_dump(mode="json"), response_schema=Approval)
    if reply.id not in ("", asked.id):
        return Command(goto="approve")  # an answer to another question: this one stays
    answer = Answer(
        id=asked.id, kind=asked.kind, decision=reply.decision, text=reply.text, edit=reply.edit,
        by=reply.by,
    )  # fmt: skip
    answer, update = record_answer(state, deps, asked, answer)
    return Command(update={**update, "answer": answer}, goto=AFTER[asked.kind, reply.decision])
