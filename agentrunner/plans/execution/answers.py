"""Questions of tasks in the plan's store: their texts, and the meaning of answers."""

from __future__ import annotations

import re

from agentrunner.errors import AgentRunnerError
from agentrunner.errors.plans import UnknownQuestion
from agentrunner.plans.execution.waiting_questions import waiting_questions
from agentrunner.plans.store import OpenQuestion, PlanStore, unknown_question
from agentrunner.results import InboxItem, Result
from agentrunner.state.lifecycle import TaskState, end_of
from agentrunner.state.people import IN_WORDS, Answer, Question
from agentrunner.text.lazy_regex import lazy_regex

SETTLED, ASKED_AGAIN, TRIED_AGAIN, RAISED = "settled", "asked again", "tried again", "raised"
BY_ITSELF = (SETTLED, ASKED_AGAIN, TRIED_AGAIN, RAISED)
"""In place of an answer: why a question no longer needs one."""
_YES = frozenset({"yes", "y", "approve", "ok", "はい", "承認"})
_SENTENCE_ENDS = ("", ".", "!", "?", ":", "…", "。", "！", "？", "：")
_NO = lazy_regex(r"(?:no|n|reject|いいえ|却下)\b[\s:,.、。：]*", re.IGNORECASE)


def asked_text(waiting: InboxItem) -> str:
    """Return a run's question as the plan saves it, its options numbered."""
    options = [f"{number}. {text}" for number, text in enumerate(waiting.options, start=1)]
    how = [] if waiting.kind in IN_WORDS else ["Answer yes, or no and why."]
    text = waiting.text.rstrip()
    if how and not options and text[-1:] not in _SENTENCE_ENDS:
        text += "."  # these lines are also shown as one
    return "\n".join([text, *options, *how])


def head_of(state: object) -> str:
    """Return how a question about a run that ended begins: `Needs review: `, "" for no end."""
    end = end_of(state)
    return f"{end.word.capitalize()}: " if end else ""


def ended_text(result: Result, *, behind: bool = False) -> str:
    """Return the question about a run that ended, but not COMPLETE.

    `behind` is whether the plan's branch has commits that the run does not have.
    """
    text = result.text or result.reason or ""
    lines = [line for line in result.missing if line != text.rstrip(".")]
    missing = "".join(f"\n- {line}" for line in lines)
    ways = "What should the next attempt know?"
    if result.state == TaskState.NEEDS_REVIEW and not result.red:
        unchanged = "" if result.changed_files else " --unchanged"
        accept = f'`agentrunner accept {result.run_id}{unchanged} --reason "..."`'
        ways = f"{ways} Or, if it is good as it is: {accept}"
    gone_on = f"\n{_BEHIND.format(run=result.run_id)}" * behind
    return f"{head_of(result.state)}{text}{missing}\n{ways}{gone_on}"


_BEHIND = (
    "Commits that were made since are not in its work tree, nor in that of a next attempt. The"
    " answer `afresh`, or `afresh: WORDS`, begins from them; what it made stays in"
    " `agentrunner diff {run}`."
)
_AFRESH = lazy_regex(r"\s*afresh\s*(?:[:：](?P<words>.*))?", re.IGNORECASE | re.DOTALL)


def afresh(text: str) -> str | None:
    """Return what a person says beside that a task is to begin afresh; None where they do not.

    A sentence that only begins with the word says something else: "afresh is not what I want".
    """
    found = _AFRESH.fullmatch(text)
    return (found["words"] or "").strip() if found else None


def apart_text(rounds: int, evidence: str) -> str:
    """Return the question about work that could not be merged."""
    text = f"it does not go together with the rest, after {rounds} more rounds: {evidence}"
    return f"{head_of(TaskState.NEEDS_REVIEW)}{text}\nWhat should the next round know?"


def allowance_text(evidence: str) -> str:
    """Return the question about work that changes what proves other tasks."""
    how = "Answer yes if that is meant, or say what the next round should do."
    return f"{head_of(TaskState.NEEDS_REVIEW)}{evidence.strip()}\n{how}"


def is_yes(text: str) -> bool:
    """Whether a person's answer is a plain yes."""
    return text.strip().strip(".!。").casefold() in _YES


def unfit_text(error: AgentRunnerError) -> str:
    """Return the question about a task that cannot start."""
    lines = [f"It cannot run: {error.message}"]
    lines += [f"{label}: {text}" for label, text in error.details]
    lines += [f"try: {error.remedy}"] * bool(error.remedy)
    return "\n".join([*lines, "The next `plan run` tries it again, once that is put right."])


def answer_of(question: Question, text: str) -> Answer:
    """Return a person's text as the answer to a run's question: yes, or no with the reason."""
    if question.kind in IN_WORDS:
        return Answer(id=question.id, kind=question.kind, text=text)
    if is_yes(text):
        return Answer(id=question.id, kind=question.kind, decision="approve")
    reason = _NO.sub("", text.strip(), count=1) or text
    return Answer(id=question.id, kind=question.kind, decision="reject", text=reason)


def answered_questions(store: PlanStore, *tasks: str) -> list[OpenQuestion]:
    """Return the questions that a person has answered about the whole plan, or about `tasks`."""
    return [
        q
        for q in store.questions()
        if q.task_id in ("", *tasks) and q.answer and q.answer not in BY_ITSELF
    ]


def asked_by(store: PlanStore, name: str) -> OpenQuestion:
    """Return the open question of a number, or the latest one of a task or of the budget, by its
    name.

    Raises UsageError (`unknown-question`).
    """
    asked = waiting_questions(store)
    if name.isdigit():
        found = [q for q in asked if q.id == int(name)]
        if not found:
            raise unknown_question(int(name))
        return found[0]
    found = [q for q in asked if q.task_id and q.task_id.casefold() == name.casefold()]
    if not found:
        raise UnknownQuestion(
            f"{name} has no open question.",
            remedy="agentrunner plan status",
        )
    return found[-1]
