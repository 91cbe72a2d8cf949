from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

from agentrunner.screens.layout import PLAIN, Paint
from agentrunner.screens.live import LiveView, header_lines
from agentrunner.screens.log import LogView
from agentrunner.screens.plain import PlainView
from agentrunner.screens.story import Story, warnings_in
from agentrunner.text.terminal import cell_width
from tests.kit.screen_samples import EVIL, story_events

Golden = Callable[[str, str], None]
JST = timezone(timedelta(hours=9))
FOREIGN = re.compile(r"\x1b(?!\[[0-9;]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e]")


def told_live(**options: object) -> tuple[LiveView, list[str]]:
    view = LiveView(home="/home/hana", timezone=JST, **options)  # type: ignore[arg-type]
    lines = [line for number, event in enumerate(story_events())
             for line in view.feed(event, float(number))]  # fmt: skip
    return view, lines + view.flush(100.0)


def test_live_view_tells_the_story(golden: Golden) -> None:
    view, lines = told_live()
    status = [view.status(20.0), view.status(20.0 + 312)]
    golden("screens/live.txt", "\n".join([*lines, "", *status]) + "\n")


def test_live_lines_fit_narrow_and_wide_terminals() -> None:
    for width in (60, 80, 100, 200):
        _, lines = told_live(width=width)
        assert max(map(cell_width, lines)) <= min(width, 100)


def test_all_texts_hang_alike_in_44_columns(golden: Golden) -> None:
    """What goes on below a line of its own, a worker's words, and why a check is red."""
    _, lines = told_live(width=44, words=True)
    assert max(map(cell_width, lines)) <= 44
    told = lines[lines.index("") + 1 :]
    told = told[told.index("") + 1 :]
    assert all(re.match(r"\d\d:\d\d:\d\d  \S|  \S| {30,}\S", line) for line in told)
    golden("screens/live-44.txt", "\n".join(lines) + "\n")


def test_a_title_is_whole_above_the_name_of_its_run_where_both_do_not_fit() -> None:
    story = Story()
    for event in story_events("Fix the failing test, and the one beside it"):
        story.feed(event)
    lines = header_lines(story, 44, PLAIN, "")
    assert lines[1:3] == ["Fix the failing test, and the one beside it", "run users-api-7f3a"]


def test_status_line_leaves_the_last_cell_free() -> None:
    view, _ = told_live(width=50)
    assert cell_width(view.status(20.0)) <= 49


def test_status_names_the_round_people_count_from_one() -> None:
    view, _ = told_live()
    assert "round 2 of at most 6" in view.status(20.0)
    assert "codex-cli, 3 s ago: uv run pytest -q" in view.status(20.0)


def test_nothing_is_shown_before_the_first_event() -> None:
    assert LiveView().status(5.0) == ""


def test_plain_view_is_one_stamped_line_per_event(golden: Golden) -> None:
    view = PlainView(timezone=JST)
    lines = [line for number, event in enumerate(story_events())
             for line in view.feed(event, float(number))]  # fmt: skip
    wall = datetime(2026, 11, 21, 14, 12, 41, tzinfo=JST)
    lines += view.tick(30.0, wall)
    lines += view.tick(30.0 + 60, wall)
    golden("screens/plain.txt", "\n".join([*lines, *view.flush(90.0)]) + "\n")
    assert all(line.startswith("2026-11-21T14:") for line in lines)


def test_plain_heartbeat_comes_once_a_minute_and_only_in_silence() -> None:
    view = PlainView(timezone=JST)
    wall = datetime(2026, 11, 21, tzinfo=JST)
    assert view.tick(1000.0, wall) == []
    view.feed(story_events()[0], 0.0)
    assert view.tick(59.0, wall) == []
    assert len(view.tick(60.0, wall)) == 1
    assert view.tick(61.0, wall) == []


def test_log_view_adds_what_workers_did(golden: Golden) -> None:
    view = LogView(timezone=JST)
    lines = [line for event in story_events() for line in view.feed(event)]
    golden("screens/log.txt", "\n".join([*lines, *view.flush()]) + "\n")


def test_log_of_one_round_holds_that_round_only() -> None:
    view = LogView(timezone=JST, only_round=2)
    lines = [line for event in story_events() for line in view.feed(event)] + view.flush()
    assert any("todo.md" in line for line in lines)
    assert not any("plan " in line or "Add POST" in line for line in lines)


@pytest.mark.parametrize(
    "event",
    [
        {"event": "decision", "action": "mark_complete", "reason": EVIL},
        {"event": "warning", "code": EVIL, "message": EVIL},
        {"event": "worker_event", "kind": "error", "message": EVIL},
        {"event": "worker_event", "kind": "command_started", "command": EVIL},
        {"event": "worker_event", "kind": "text", "text": EVIL},
        {"event": "worker_event", "kind": "file_changed", "path": EVIL, "change": "added"},
        {"event": "check", "target": EVIL, "outcome": "failed", "detail": EVIL, "exit_code": 1},
        {"event": "question", "id": EVIL, "kind": "ask_human", "text": EVIL, "options": [EVIL]},
        {"event": "run_started", "run_id": EVIL, "title": EVIL, "header": {"planner": EVIL}},
        {"event": "meta_call", "type": EVIL, "attempt": 1, "error": {"message": EVIL}},
        {"event": "meta_call", "type": EVIL, "attempt": 2, "looks": [EVIL]},
        {"event": "worker_started", "worker": EVIL, "loop": 0},
        {"event": "assessment", "satisfied": True, "summary": EVIL},
        {"event": EVIL, "ts": EVIL},
    ],
)
def test_no_view_lets_a_control_character_through(event: dict[str, object]) -> None:
    live, plain, log = LiveView(paint=Paint(True)), PlainView(), LogView(paint=Paint(True))
    started = {**story_events()[0]}
    shown: list[str] = []
    for one in (started, {"ts": "2026-11-21T05:00:00Z", **event}):
        shown += live.feed(one, 1.0) + plain.feed(one, 1.0) + log.feed(one)
    shown += live.flush(2.0) + plain.flush(2.0) + log.flush() + [live.status(2.0)]
    shown += plain.tick(500.0, datetime(2026, 11, 21, tzinfo=JST))
    assert [line for line in shown if FOREIGN.search(line)] == []


def test_unknown_events_and_missing_fields_are_survived() -> None:
    story = Story()
    for name in ("run_started", "plan", "check", "worker_finished", "surprise", "decision"):
        story.feed({"event": name, "ts": ""})
    assert story.flush() == []


def test_colours_mark_words_and_never_parts_of_words() -> None:
    view = LiveView(paint=Paint(True), timezone=JST)
    lines = [line for event in story_events() for line in view.feed(event, 0.0)]
    (check,) = [line for line in lines if "43 passed" in line]
    assert "43 passed, 1 failed" in check and "\x1b[1;31mFAIL\x1b[0m" in check


def test_a_fault_is_told_whole_once() -> None:
    story = Story()
    warning = {
        "event": "warning",
        "message": "AC-1 is not proven yet: the planner's word",
    }
    waiting = {"event": "waiting", "until": "2026-01-01T00:00:00Z", "reason": "down: no route"}
    texts = [story.feed(event)[0].text for event in (warning, waiting, warning, waiting)]
    fault = 'API error: 503 {"error": {"message": "overloaded", "code": "server_error"}}'
    call = {"event": "meta_call", "type": "plan_task", "attempt": 1, "error": {"message": fault}}
    first, second = (story.feed(call)[0] for _ in range(2))
    assert first.text == "plan_task, try 1: API error: 503 overloaded"
    words = "API error: 503 overloaded"
    assert (first.quiet, second.quiet, second.fields["error"]) == (False, True, words)
    assert texts[:2] == [warning["message"], waiting["reason"]]
    assert texts[2:] == ["as before: AC-1 is not proven yet", "as before: down"]


@pytest.mark.parametrize(
    ("told", "shown", "logged"),
    [
        ({"decision": "answer", "text": "The euro."}, "The euro.", 'text="The euro."'),
        ({"decision": "reject", "text": "No: too wide"}, "rejected: No: too wide", "=reject "),
        ({"decision": "approve", "edited": True}, "approved, edited", "decision=approve"),
        ({"decision": "approve", "by": "Hana"}, "approved (by Hana)", "by=Hana"),
        ({}, "answered", "decision=answer"),  # of an earlier version
    ],
)
def test_an_answer_is_shown_as_it_was_given(
    told: dict[str, object], shown: str, logged: str
) -> None:
    event = {"event": "answer", "ts": "2026-11-25T08:00:00Z", "id": "0123456789ab", **told}
    assert LiveView().feed(event, 0.0)[0].endswith(f"answer    {shown}")
    assert logged in PlainView().feed(event, 0.0)[0]


def test_names_of_red_tests_stay_whole_in_a_narrow_terminal() -> None:
    name = "tests.test_cart.CartTest.test_total"
    red = [{"name": name, "message": "AssertionError: 450 != 1350"}]
    view = LiveView(width=44)
    facts = {"target": "test", "outcome": "red", "passed": 3, "failed": 1, "red": red}
    view.feed({"event": "baseline", "ts": "2026-11-25T08:00:00Z", **facts}, 0.0)
    lines = view.flush(0.0)
    assert any(name in line for line in lines), lines
    assert max(map(cell_width, lines)) <= 44


def test_what_is_red_as_the_time_before_is_not_shown_again() -> None:
    view, plain = LiveView(width=80), PlainView()

    def checks(name: str) -> list[str]:
        red = [{"name": name, "message": "AssertionError: 450 != 1350"}]
        facts = {"target": "test", "outcome": "red", "passed": 3, "failed": 1, "red": red}
        event = {"event": "check", "ts": "2026-11-25T08:00:00Z", **facts}
        view.feed(event, 0.0)
        plain.feed(event, 0.0)
        return [*view.flush(0.0), *plain.flush(0.0)]

    first, again, other, back = (
        checks("test_a"),
        checks("test_a"),
        checks("test_b"),
        checks("test_a"),
    )
    assert len(first) == len(other) == len(back) == 4 and "test_a" in first[1] and first[3:]
    assert [line.endswith("red as before") for line in again] == [True, False]
    assert again[1].endswith('red="as before"') and "test_b" in other[1] and "test_a" in back[1]


def test_a_repeated_fault_is_cut_at_the_end_of_a_sentence() -> None:
    view = LiveView(width=100)
    refused = "'7 euros' is no amount: it has no number. Try: 7, or empty"
    for message in (refused, refused, "It is away: 503", "It is away: 503"):
        event = {"event": "warning", "ts": "2026-11-25T08:00:00Z", "code": "x", "message": message}
        lines = view.feed(event, 0.0)
        shown = lines[0].partition("warning")[2].strip()
        assert shown in (message, "as before: '7 euros' is no amount: it has no number.",
                         "as before: It is away")  # fmt: skip
    assert shown == "as before: It is away"


def test_a_providers_json_is_no_message_in_a_log_either() -> None:
    error = {"message": 'OpenAI API error: 503 {"error": {"message": "Busy now", "code": null}}'}
    event = {
        "event": "meta_call",
        "ts": "2026-11-25T08:00:00Z",
        "type": "plan_task",
        "error": error,
    }
    (line,) = PlainView().feed(event, 0.0)
    assert 'error="OpenAI API error: 503 Busy now"' in line and "{" not in line


def test_where_the_head_is_too_narrow_the_title_stands_and_not_the_id_twice() -> None:
    story = Story(task_id="spaces-become-dashes", run_id="spaces-become-dashes-mxt3")
    story.title = "Spaces become dashes"
    head = header_lines(story, 70, PLAIN, "")[1]
    assert head.startswith("Spaces become dashes ")
    assert head.endswith("run spaces-become-dashes-mxt3")
    assert header_lines(story, 100, PLAIN, "")[1].startswith("spaces-become-dashes · Spaces")


def test_what_a_last_screen_warns_of_is_of_its_attempt_and_no_refusal() -> None:
    def warning(code: str, message: str) -> dict[str, object]:
        return {"event": "warning", "code": code, "message": message}

    events = [
        warning("edited", "one"),
        {"event": "run_resumed", "attempt": 1},
        warning("completion-refused", "A person said no: also handle days"),
        warning("edited", "two"),
    ]
    assert warnings_in(events) == ["one", "two"]
    again = [*events, {"event": "run_resumed", "attempt": 2}, warning("edited", "three")]
    assert warnings_in(again) == ["three"]
