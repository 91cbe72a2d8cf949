"""The paused screen of a run whose budget is spent."""

from __future__ import annotations

import json

import pytest

from agentrunner.errors.runs import WrongAnswer
from agentrunner.execution.silence import read_order
from agentrunner.results import InboxItem, Result
from agentrunner.screens.paused import asked_screen, paused_screen

WAITING = InboxItem(
    id="0123456789ab",
    kind="budget",
    text="The budget runner.budget.usd is spent: 5.02 of 5.00 US dollars.",
    options=["usd=+5", "stop"],
)


def test_it_says_what_is_spent_and_how_to_raise_it() -> None:
    result = Result(run_id="probe-0000", title="Add.", waiting=WAITING, worker_runs=1, exit_code=4)
    screen = paused_screen(result, where="hana@devbox")
    assert "WAITING FOR YOU  probe-0000 · a budget is spent" in screen
    assert "5.02 of 5.00 US dollars" in screen
    assert "from the planner" not in screen
    assert 'agentrunner answer "usd=+5"' in screen
    assert "agentrunner answer stop" in screen
    assert "approve" not in screen


def test_inline_it_is_no_word_of_the_planner() -> None:
    asked = asked_screen(WAITING)
    assert "planner" not in asked
    assert "1  usd=+5" in asked


CHECK = InboxItem(
    id="0123456789ab",
    kind="planner",
    text="The check of AC-1, `tool -q`, cannot run, here: tool: not found. Put right what it"
    " lacks, give another check, or drop it.",
    options=["again", "drop", "end"],
    subject=json.dumps({"asked_for": "check", "criterion": "AC-1", "check": "tool -q"}),
)


def test_a_check_that_cannot_run_is_no_silence_of_the_planner() -> None:
    result = Result(run_id="probe-0000", title="Add.", waiting=CHECK, worker_runs=0, exit_code=4)
    screen = paused_screen(result, where="hana@devbox")
    assert "WAITING FOR YOU  probe-0000 · a check cannot run" in screen
    assert 'answer "check: COMMAND"' in screen and "answer drop" in screen
    assert "model: NAME" not in screen and "accept" not in screen
    subject = json.dumps({"asked_for": "check_after_work", "criterion": "AC-1"})
    later = result.model_copy(update={"waiting": CHECK.model_copy(update={"subject": subject})})
    assert "accept: REASON" in paused_screen(later, where="hana@devbox")


REFUSED = InboxItem(
    id="0123456789ab",
    kind="planner",
    text="The planner (x) was asked for the plan, and its key or login is refused. Set KEY to a"
    " key that is good, and answer `again` from a shell that has it. Or answer in its place.",
    options=["again", "complete", "end"],
    subject=json.dumps({"asked_for": "plan_task", "last_answer": ""}),
)


AFTER_WORK = CHECK.model_copy(
    update={"subject": json.dumps({**json.loads(CHECK.subject), "asked_for": "check_after_work"})}
)


JUDGED = REFUSED.model_copy(
    update={
        "options": ["again", "end"],
        "subject": json.dumps({"asked_for": "completion_assessment", "last_answer": ""}),
    }
)


@pytest.mark.parametrize(
    ("waiting", "taken"),
    [
        (JUDGED, ["again", "end", "model: NAME", "worker: PROMPT"]),
        (REFUSED, ["again", "complete", "end", "model: NAME", "worker: PROMPT"]),
        (CHECK, ["again", "drop", "end", "check: COMMAND"]),
        (AFTER_WORK, ["again", "drop", "end", "check: COMMAND", "accept: REASON"]),
    ],
)
def test_inline_every_answer_that_is_taken_is_in_the_menu(
    waiting: InboxItem, taken: list[str]
) -> None:
    menu = asked_screen(waiting).splitlines()[-len(taken) :]
    for number, (words, line) in enumerate(zip(taken, menu, strict=True), start=1):
        assert line.startswith(f"      {number if words in waiting.options else ' '}  {words}  ")
        read_order(words, json.loads(waiting.subject)["asked_for"])


@pytest.mark.parametrize("waiting", [REFUSED, JUDGED])
def test_a_wrong_answer_is_told_the_answers_of_the_menu(waiting: InboxItem) -> None:
    with pytest.raises(WrongAnswer) as raised:
        read_order("well", json.loads(waiting.subject)["asked_for"])
    listed = raised.value.remedy.removeprefix("one of: ").replace('"', "").split(", ")
    taken = [*waiting.options, "model: NAME", "worker: PROMPT"]
    assert sorted(listed) == sorted(taken)
