"""Answers and other terminals: one is left for the process that drives the run, and a prompt ends
where another terminal has answered.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from agentrunner import api
from agentrunner.commands.console import Console, Output, columns_of, show, tell
from agentrunner.screens.layout import sentence_lines
from agentrunner.storage.locks import is_driven

if TYPE_CHECKING:
    from agentrunner.state.people import Answer
    from agentrunner.storage.run_folder import RunFolder

LOOK_SEC = 0.1
PATIENCE_SEC = 3.0
"""Seconds after which the reason for the wait is shown."""


def settled_elsewhere(folder: RunFolder, question: str, offset: int) -> Callable[[], None]:
    """Return a poll that raises NotAskedAnyMore once another process has answered this question or
    ended the run.

    `offset` is how far the run's events were read when the question was found open.
    """
    from agentrunner.commands.question_prompt import NotAskedAnyMore
    from agentrunner.state.lifecycle import END_STATES
    from agentrunner.storage.events import read_from

    def look() -> None:
        nonlocal offset
        events, offset = read_from(folder.events_file, offset)
        for event in events:
            if event.get("event") == "answer" and event.get("id") == question:
                raise NotAskedAnyMore("Answered in another terminal.")
            if event.get("event") == "result" and event.get("state") in END_STATES:
                state = str(event["state"]).replace("_", " ")
                raise NotAskedAnyMore(f"The run was ended in another terminal: {state}.")

    return look


def hand_over(run_id: str, answer: Answer, output: Output, text: str = "") -> int | None:
    """Offer an answer to the process that drives the run; return the exit code once it is taken.

    `text` is the message then; by default it names the next command.

    Return None if no process drives the run any more: then the caller can answer itself. Raises
    UsageError for an answer that does not fit, and if nothing is asked.
    """
    from agentrunner.storage import offered_answers
    from agentrunner.storage.run_folder import RunFolder

    folder = RunFolder.open(output.state, run_id)
    checked = _checked(folder, answer)
    offered_answers.offer(folder, checked.model_dump(mode="json"))
    began, patient = time.monotonic(), True
    try:
        while offered_answers.is_offered(folder):
            if not is_driven(output.state, run_id):
                if offered_answers.withdraw(folder):
                    return None
                break
            if patient and time.monotonic() - began > PATIENCE_SEC:
                patient = False
                tell(
                    "The other terminal is busy, perhaps with an editor; it takes the answer after "
                    "that. Ctrl-C takes it back.",
                    sys.stderr,
                )
            time.sleep(LOOK_SEC)
    except BaseException:
        offered_answers.withdraw(folder)
        raise
    _say_taken(run_id, output, text)
    return 0


def _checked(folder: RunFolder, answer: Answer) -> Answer:
    """The answer checked against the pending question, without secrets; raises UsageError."""
    from agentrunner.engine.attempt_run import checked_answer
    from agentrunner.engine.attempts import read_sync
    from agentrunner.engine.commits import load_task_of
    from agentrunner.execution.credentials import secrets_in
    from agentrunner.money.counters import granted
    from agentrunner.storage.run_log import RunLog
    from agentrunner.text.redaction import Redactor

    redact = Redactor(secrets_in(os.environ)).redact
    clean = answer.model_copy(update={"text": redact(answer.text), "edit": redact(answer.edit)})
    _, question = read_sync(folder)
    grants = granted(RunLog(folder.log_file))
    return checked_answer(folder.run_id, question, clean, load_task_of(folder), grants)


def _say_taken(run_id: str, output: Output, text: str) -> None:
    if output.json:
        standing = api.look_sync(run_id, state_dir=output.state)
        Console(output).finish(standing.model_copy(update={"waiting": None, "exit_code": 0}))
        return
    answered = f"Answered. {run_id} continues in the other terminal."
    message = text or f"{answered}\nNext:  agentrunner watch {run_id}  see it work"
    show("\n".join(sentence_lines(message, columns_of(sys.stdout))))
