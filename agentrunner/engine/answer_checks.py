"""Checks an answer to a waiting run: of the right kind, to the present question, and readable."""

from __future__ import annotations

import json
from collections.abc import Mapping

from agentrunner.config.spec import TaskSpec
from agentrunner.errors.replies import ProtocolError
from agentrunner.errors.runs import NotWaiting, StaleAnswer, WrongAnswer
from agentrunner.execution.budget_questions import read_answer
from agentrunner.execution.criteria import edited_criteria
from agentrunner.execution.questions import MAX_ANSWER
from agentrunner.execution.silence import read_order
from agentrunner.state.people import EDITABLE, IN_WORDS, Answer, Question, option_meant
from agentrunner.workers.policy import check_prompt


def checked_answer(
    run_id: str,
    question: Question | None,
    answer: Answer,
    spec: TaskSpec,
    grants: Mapping[str, float],
) -> Answer:
    """Return the answer with the id of the present question; raise UsageError where it does not
    fit.

    After an error the question stays. `grants` are what people added to limits of the budget
    before.
    """
    if question is None:
        raise NotWaiting(f"{run_id} is not waiting for anyone.")
    if answer.id and answer.id != question.id:
        raise StaleAnswer(
            f"{run_id} is not waiting for {answer.id}; its question is {question.id}.",
            remedy=f"agentrunner show {run_id}",
        )
    free = question.kind in IN_WORDS
    if free != (answer.decision == "answer"):
        verb = "answer" if free else "approve or reject"
        raise WrongAnswer(
            f"The question of {run_id} is of kind {question.kind}: {verb} it.",
            remedy=f"agentrunner {verb.split()[0]} {run_id} --id {question.id}",
        )
    if len(answer.text) > MAX_ANSWER or (free and not answer.text.strip()):
        raise WrongAnswer(f"An answer has 1 to {MAX_ANSWER:,} characters.")
    if any("\ud800" <= char <= "\udfff" for char in answer.text + answer.edit):
        raise WrongAnswer("An answer is text; this one has bytes that are none.")
    if answer.edit:
        _check_edit(question, answer.edit)
    try:
        text = option_meant(question, answer.text)
    except ValueError as error:
        remedy = f"to say the number itself, put it in words: agentrunner answer {run_id} …"
        raise WrongAnswer(str(error), remedy=remedy) from error
    if question.kind == "budget":
        try:
            read_answer(text, question, spec, grants)
        except WrongAnswer as error:
            error.path = ""  # it was no option
            raise
    if question.kind == "planner":
        read_order(text, str(json.loads(question.subject)["asked_for"]))
    return answer.model_copy(update={"id": question.id, "kind": question.kind, "text": text})


def _check_edit(question: Question, edit: str) -> None:
    """Raise UsageError for what cannot be edited, or an edited plan that cannot be read."""
    if question.kind not in EDITABLE:
        raise WrongAnswer("Only a plan or a worker's prompt can be edited.", path="--edit")
    if question.kind == "worker":
        try:
            check_prompt(edit)
        except ProtocolError as problem:
            message = f"The edited prompt: {problem.message}."
            raise WrongAnswer(message, path="--edit") from problem
        return
    try:
        edited_criteria(edit)
    except ValueError as error:
        raise WrongAnswer(f"The edited plan cannot be read: {error}", path="--edit") from error
