"""Questions to a person: saved in the state before they are asked, with an id of their subject."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from agentrunner.execution.deps import Deps
from agentrunner.state.people import Answer, Question, QuestionKind
from agentrunner.state.run_state import TaskContext
from agentrunner.text.terminal import shorten
from agentrunner.text.unicode import to_bytes

WORDS = 4000
"""Characters of one remark that a prompt carries."""
SHOWN = 200
"""Cells of an answer in its event."""
MAX_ANSWER = 1024 * 1024
"""Characters of an answer. The run log keeps them all, the state and prompts only the beginning."""


def question(
    kind: QuestionKind,
    text: str,
    subject: Mapping[str, object],
    state: TaskContext,
    *,
    options: list[str] | None = None,
) -> Question:
    """Return a question whose id is the first 12 hex digits of its subject's sha256.

    What is approved is the subject, byte for byte: another subject is another question.
    """
    canonical = json.dumps(subject, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(to_bytes(f"{state['run'].run_id}\n{kind}\n{canonical}")).hexdigest()
    return Question(
        id=digest[:12],
        kind=kind,
        text=text,
        options=options or [],
        subject=canonical,
        state=state["state"],
    )


def answered(state: TaskContext, *kinds: QuestionKind) -> Answer | None:
    """Return the answer that is waiting to be used, if it is of one of these kinds."""
    answer = state.get("answer")
    return answer if answer is not None and answer.kind in kinds else None


def subject_of(state: TaskContext) -> dict[str, Any]:
    """Return the subject of the latest question."""
    asked = state.get("question")
    return dict(json.loads(asked.subject)) if asked is not None else {}


def record_answer(state: TaskContext, deps: Deps, answer: Answer) -> None:
    """Report and record a person's answer; the run log keeps its text whole."""
    deps.emit(
        "answer",
        id=answer.id,
        decision=answer.decision,
        text=shorten(" ".join(answer.text.split()), SHOWN),
        edited=bool(answer.edit),
        by=answer.by,
    )
    deps.record(state, "answer", answer.id, answer)


def remark(state: TaskContext, text: str) -> list[str]:
    """Return the last five remarks for the next decision, this one among them."""
    return [*state.get("remarks", []), text[:WORDS]][-5:]
