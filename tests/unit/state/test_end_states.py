"""What has to know of every end of a run does: whoever adds one learns here what is left to do."""

from __future__ import annotations

from typing import get_args

import pytest

from agentrunner.commands.manual import EXIT_CODES
from agentrunner.config.markdown import Language
from agentrunner.notes.render import _phrases
from agentrunner.plans.plan import FELL_SHORT, PlanTaskStatus
from agentrunner.plans.planner_view import _RANKS
from agentrunner.results import Result
from agentrunner.screens.summary import headline
from agentrunner.state.lifecycle import (
    END_STATES,
    KEPT_EXIT,
    MOVES,
    TERMINAL,
    WAITING_EXIT,
    EndName,
    TaskState,
    end_of,
    state_word,
)


def test_the_names_are_those_of_the_table() -> None:
    assert set(get_args(EndName)) == {str(state) for state in END_STATES}
    assert {state for state in TaskState if not MOVES[state]} == TERMINAL == set(END_STATES)


def test_exit_codes_differ_and_only_complete_is_0() -> None:
    codes = [end.exit_code for end in END_STATES.values()]
    assert len({*codes, 2, WAITING_EXIT, KEPT_EXIT}) == len(codes) + 3
    assert [state for state, end in END_STATES.items() if not end.exit_code] == ["COMPLETE"]
    assert set(codes) < set(EXIT_CODES)


def test_the_best_end_comes_first() -> None:
    assert next(iter(END_STATES)) == TaskState.COMPLETE
    assert [end.next_step for end in END_STATES.values()].count("use") == 1


def test_every_state_of_a_run_is_one_of_a_task_of_a_plan() -> None:
    assert {str(state) for state in TaskState} <= {str(status) for status in PlanTaskStatus}
    assert FELL_SHORT | {PlanTaskStatus.COMPLETE} <= set(_RANKS)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_notes_have_a_word_for_it(language: Language) -> None:
    assert {f"label_{state}" for state in END_STATES} <= set(_phrases(language))


def test_screens_have_a_word_for_it() -> None:
    for state, end in END_STATES.items():
        assert state_word({"state": str(state)}) == end.word
        assert headline(Result(exit_code=0, state=state)) == end.word.upper()
    assert (
        end_of("RUNNING") is None
        and headline(Result(exit_code=0, state=TaskState.RUNNING)) == "STOPPED"
    )
