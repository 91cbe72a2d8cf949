"""What the live view says of whom it waits for, what was spent and what the worker does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from agentrunner.screens.layout import breakable
from agentrunner.screens.live import LiveView
from agentrunner.screens.plain import PlainView
from agentrunner.screens.status_line import doing_words, minutes
from agentrunner.screens.story import Event, Story
from agentrunner.text.terminal import cell_width
from tests.kit.screen_samples import story_events

JST = timezone(timedelta(hours=9))
NOON = datetime(2026, 11, 21, 5, 12, tzinfo=UTC)
AT = {"ts": "2026-11-21T05:00:00.000Z"}
THINKS = {**AT, "event": "awaiting", "who": "planner", "what": "next_action"}
TESTS = {**AT, "event": "awaiting", "who": "tests", "what": "make test", "at_most_sec": 600.0}


def fed(*more: Event, width: int = 88, words: bool = True) -> tuple[LiveView, list[str]]:
    view = LiveView(width=width, timezone=JST, words=words)
    lines: list[str] = []
    for at, event in enumerate((*story_events(), *more)):
        lines += view.feed(event, float(at))
    return view, lines


def test_who_is_awaited_and_since_when() -> None:
    view, _ = fed(THINKS)
    at = float(len(story_events()))
    assert "planner: thinking, 12 s" in view.status(at + 12)
    assert "planner: thinking, 2 m 00 s" in view.status(at + 120), "a long thought is no silence"
    view.feed(TESTS, at)
    assert "your tests, 18 s of at most 10 min" in view.status(at + 18)


def test_a_command_of_the_proof_says_on_what_and_begins_anew_each_time() -> None:
    view, _ = fed(TESTS, width=120)
    again = {**TESTS, "ts": "2026-11-21T05:01:15.000Z", "why": "on the code before the run"}
    at = float(len(story_events()))
    view.feed(again, at + 75)
    status = view.status(at + 80)
    assert "your tests, 5 s of at most 10 min, on the" in status


def test_a_planner_that_gave_no_answer_is_asked_again() -> None:
    call = {**AT, "event": "meta_call", "type": "next_action", "duration_ms": 2900}
    failed = {**call, "error": {"message": "It cannot be reached."}}
    view, _ = fed(THINKS, failed)
    at = float(len(story_events()))
    assert "planner: 1 try without an answer, 8 s" in view.status(at + 8)
    view.feed(failed, at + 9)
    assert "planner: 2 tries without an answer, " in view.status(at + 12)
    view.feed(call, at + 13)
    assert "without an answer" not in view.status(at + 14)


def test_what_has_come_is_awaited_no_more() -> None:
    view, _ = fed(THINKS, {**AT, "event": "decision", "action": "abort", "reason": "r"})
    assert "thinking" not in view.status(40.0)


def test_what_a_person_is_asked_is_awaited_until_it_is_answered() -> None:
    question = {**AT, "event": "question", "id": "q", "kind": "plan", "text": "Approve the plan?"}
    view, _ = fed(question)
    assert "waits for you: Approve the plan?" in view.status(400.0)
    view.fit(40)
    assert cell_width(view.status(400.0)) < 40, "the window was made narrower"
    view.feed({**AT, "event": "answer", "id": "q"}, 401.0)
    assert "waits for you" not in view.status(402.0)


def test_a_worker_that_failed_is_told_of_with_its_reason() -> None:
    ended = {**AT, "event": "worker_finished", "outcome": "failed", "exit_code": 2}
    _, lines = fed({**ended, "error": "exit code 2: sh: cannot open fix.sh"}, width=120)
    assert "worker failed: exit code 2: sh: cannot open fix.sh; " in " ".join(
        " ".join(lines).split()
    )


def test_to_wait_for_something_parts_no_line_of_checks() -> None:
    check = {**AT, "event": "check", "outcome": "passed", "exit_code": 0}
    story = Story()
    for event in ({**check, "target": "AC-1"}, TESTS, {**check, "target": "AC-2"}):
        assert story.feed(event) == []
    (line,) = story.flush()
    assert breakable(line.text) == "AC-1 pass   AC-2 pass"


def test_tokens_and_cost_so_far_count_each_token_once() -> None:
    story = Story()
    call = {**AT, "event": "meta_call", "type": "plan_task", "usd": 0.25,
            "usage": {"input_tokens": 1000, "output_tokens": 200}}  # fmt: skip
    usage = {**AT, "event": "worker_event", "kind": "usage", "output_tokens": 0}
    story.feed(call)
    story.feed({**usage, "input_tokens": 5000})
    story.feed({**usage, "input_tokens": 8000})
    assert story.tokens == 9200
    done = {**AT, "event": "worker_finished", "outcome": "completed", "exit_code": 0}
    story.feed({**done, "tokens": 9000, "usd": 1.0})
    assert (story.tokens, story.usd) == (10_200, 1.25)


def test_what_the_gateway_counts_shows_while_the_worker_works() -> None:
    story = Story()
    counted = {**AT, "event": "worker_usage", "worker_run_id": "1-001"}
    story.feed({**counted, "tokens": 1000, "usd": 0.5})
    story.feed({**counted, "tokens": 3000, "usd": 0.75})
    assert (story.tokens, story.usd) == (3000, 0.75)
    said = {**AT, "event": "worker_event", "kind": "usage", "input_tokens": 90_000}
    story.feed(said)  # of a whole session, perhaps
    assert story.tokens == 3000
    done = {**AT, "event": "worker_finished", "outcome": "completed", "exit_code": 0}
    story.feed({**done, "tokens": 3500, "usd": 0.8})
    assert (story.tokens, story.usd) == (3500, 0.8)
    story.feed({**counted, "tokens": 100, "usd": 0.1})
    story.feed({**done, "tokens": 0, "usd": None})  # nobody can tell what it was in the end
    assert (story.tokens, round(story.usd, 3)) == (3600, 0.9)


def test_how_long_it_takes_stays_on_a_narrow_terminal() -> None:
    view, _ = fed(width=44)
    assert "-- 0:50 --" in view.status(50.0)


@pytest.mark.parametrize("width", [40, 44, 60, 80, 120])
def test_where_it_is_and_what_is_done_stay_on_a_narrow_terminal(width: int) -> None:
    view, _ = fed(width=width)
    status = view.status(20.0)
    assert cell_width(status) <= min(width, 100) - 1
    assert status.startswith("-- round 2") and "codex-cli, 3 s" in status


def test_the_workers_words_and_finished_commands_stand_above_the_line() -> None:
    said = {**AT, "event": "worker_event", "kind": "text", "text": "I add the \x1b[2Jindex first."}
    done = {**AT, "event": "worker_event", "kind": "command_finished", "command": "pytest -q"}
    _, before = fed()
    _, lines = fed(said, {**done, "exit_code": 1}, {**done, "exit_code": 0})
    assert [line.strip() for line in lines[len(before) :]] == [
        "I add the index first.", "$ pytest -q  -> exit 1", "$ pytest -q",
    ]  # fmt: skip
    _, quiet = fed(said, {**done, "exit_code": 1}, words=False)
    assert len(quiet) < len(lines)


def test_a_long_speech_is_cut_and_says_where_the_rest_is() -> None:
    said = {**AT, "event": "worker_event", "kind": "text", "text": "word " * 500}
    _, before = fed(width=60)
    _, lines = fed(said, width=60)
    assert len(lines) - len(before) == 7 and lines[-1].endswith("more: agentrunner logs")
    assert max(map(cell_width, lines)) <= 60


def test_a_log_of_a_job_says_only_in_its_heartbeat_what_is_awaited() -> None:
    view = PlainView(timezone=JST)
    assert view.feed(THINKS, 0.0) == []
    assert view.feed({**TESTS, "why": "once more"}, 1.0) == []
    (alive,) = view.tick(62.0, NOON)
    assert alive.endswith('last=1m01s awaits=tests what="make test" why="once more"')


def test_an_answer_that_is_streamed_is_seen_to_grow() -> None:
    view, _ = fed(THINKS)
    at = float(len(story_events()))
    view.feed({**THINKS, "prompt_tokens": 2900}, at)
    assert "planner: reading 3k tokens, 5 s" in view.status(at + 5)
    thoughts = {**THINKS, "written_tokens": 300, "text": ""}
    view.feed(thoughts, at + 4)
    assert "planner: thinking, 300 tokens, 6 s" in view.status(at + 6), "it began to think before"
    view.feed({**THINKS, "written_tokens": 1520, "text": '"reason": "red\x1b[31m"'}, at + 9)
    status = view.status(at + 10)
    assert 'planner: writing, 2k tokens, 10 s: "r' in status and "\x1b" not in status
    view, _ = fed({**THINKS, "written_tokens": 90, "text": "a" * 200}, width=44)
    assert cell_width(view.status(at)) <= 44


STARTS = {**AT, "event": "worker_started", "worker": "codex-cli", "loop": 1}


@pytest.mark.parametrize("width", [100, 80, 44])
def test_a_silent_worker_is_named_from_its_start_on(width: int) -> None:
    view, _ = fed(STARTS, width=width)
    at = float(len(story_events()))
    assert "codex-cli, silent" + " 6 s" * (width > 44) in view.status(at + 6)
    assert "codex-cli: silent" in view.status(at + 120)
    view.feed({**AT, "event": "worker_finished", "outcome": "completed"}, at + 121)
    assert "codex-cli" not in view.status(at + 126)
    assert "AgentRunner, " in view.status(at + 126)


def test_a_silent_worker_is_named_in_a_plan_s_tree() -> None:
    story = Story()
    story.feed(STARTS)
    assert doing_words(story, 6, 6) == "codex-cli, silent 6 s"


def test_a_question_stands_where_it_is_asked_and_not_above_it_too() -> None:
    question = {**AT, "event": "question", "id": "abc", "kind": "plan", "text": "Approve it?"}
    view, lines = fed(question)
    assert not any("Approve it?" in line for line in lines)
    assert "waits for you: Approve it?" in view.status(60.0)
    assert any("Approve it?" in line for line in LiveView().replay(question, 1.0, NOON))


def test_rounds_are_numbered_over_all_attempts_and_limits_are_of_one() -> None:
    view = LiveView(width=120)
    view.feed({**STARTS, "round": 4, "rounds_at_most": 4}, 0.0)
    limits = {"header": {"limits": {"rounds_at_most": 6}}}
    view.feed({**AT, "event": "run_resumed", "run_id": "a-1", "attempt": 2, **limits}, 0.0)
    assert "round 4 of at most 6" in view.status(0.5)
    (line,) = view.feed({**STARTS, "round": 5, "rounds_at_most": 6}, 1.0)
    assert "round 5" in line
    assert "round 5 of at most 6" in view.status(2.0)
    view.feed({**STARTS, "round": 6, "rounds_at_most": 6}, 3.0)
    assert "round 6 of at most 6" in view.status(4.0)


def test_a_worker_of_a_killed_process_ends_in_its_own_round() -> None:
    story = Story()
    story.feed({**AT, "event": "run_resumed", "run_id": "a-1", "attempt": 1})
    ended = {"event": "worker_finished", "worker_run_id": "1-004w1", "round": 2}
    (line,) = story.feed({**AT, **ended, "outcome": "completed"})
    assert (story.round, line.fields["round"]) == (2, 2)


@pytest.mark.parametrize(
    ("limit", "told"),
    [(32.55, "33 s"), (600.0, "10 min"), (90.0, "1.5 min"), (100.0, "100 s"), (2.44, "2.4 s")],
)
def test_a_limit_is_told_as_precisely_as_anybody_waits(limit: float, told: str) -> None:
    assert minutes(limit) == told
