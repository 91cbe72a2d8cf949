"""A run that waits for a quota, as each screen tells it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import jsonschema

from agentrunner import events
from agentrunner.screens.live import LiveView
from agentrunner.screens.log import LogView
from agentrunner.screens.plain import PlainView
from agentrunner.screens.run_table import runs_table
from agentrunner.screens.story import Story
from agentrunner.screens.summary import headline, summary_screen
from agentrunner.state.lifecycle import state_word
from agentrunner.text.terminal import cell_width
from tests.kit.screen_samples import EVIL, changed, result, story_events

JST = timezone(timedelta(hours=9))
REASON = "codex-cli could not work, its quota is spent"
WAITING: dict[str, Any] = {
    "ts": "2026-11-21T05:12:00.000Z", "seq": 99, "run_id": "users-api-7f3a", "event": "waiting",
    "until": "2026-11-21T05:16:50.000Z", "reason": REASON, "role": "worker",
    "candidate": "codex-cli", "told": True,
}  # fmt: skip
NEXT = {"ts": "2026-11-21T05:16:50.000Z", "event": "worker_started", "worker": "codex-cli",
        "loop": 1}  # fmt: skip
NOON = datetime(2026, 11, 21, 5, 12, tzinfo=UTC)


def test_the_event_is_as_promised() -> None:
    jsonschema.validate(WAITING, events.event_schema())


def test_the_live_view_counts_down() -> None:
    view = LiveView(timezone=JST)
    for event in story_events():
        view.feed(event, 0.0)
    (line,) = view.feed(WAITING, 10.0)
    assert line.startswith("14:12:00  waiting") and REASON in line and line.endswith("4 m 50 s")
    assert "continues at 14:16:50, in 4:50" in view.status(10.0)
    assert "in 4:20" in view.status(40.0)
    assert "in 0:00" in view.status(999.0)
    view.tick(50.0, NOON + timedelta(seconds=280))  # it was asleep meanwhile
    assert "in 0:10" in view.status(50.0)
    view.feed(NEXT, 60.0)
    assert "goes on at" not in view.status(60.0)


def test_a_status_line_fits_whatever_the_reason() -> None:
    view = LiveView(width=60)
    view.feed(story_events()[0], 0.0)
    view.feed({**WAITING, "reason": EVIL * 20}, 1.0)
    assert cell_width(view.status(1.0)) <= 59 and "\x1b" not in view.status(1.0)


def test_a_log_has_one_line_and_its_heartbeat_says_until_when() -> None:
    view = PlainView(timezone=JST)
    view.feed(story_events()[0], 0.0)
    (line,) = view.feed(WAITING, 10.0)
    assert line == (
        "2026-11-21T14:12:00+09:00 waiting  until=2026-11-21T05:16:50.000Z "
        f'reason="{REASON}" role=worker candidate=codex-cli'
    )
    (alive,) = view.tick(80.0, NOON)
    assert "until=2026-11-21T05:16:50+00:00" in alive
    view.feed(NEXT, 90.0)
    assert "until=" not in view.tick(300.0, NOON)[0]


def test_logs_tell_it_too() -> None:
    assert any(REASON in line for line in LogView(timezone=JST).feed(WAITING))


def test_a_time_that_is_none_is_survived() -> None:
    story = Story()
    (line,) = story.feed({**WAITING, "until": "soon"})
    assert story.waits_until is None and line.aside == ""


def row(**more: Any) -> dict[str, Any]:
    until = (NOON + timedelta(minutes=5)).isoformat()
    return {
        "run_id": "users-api-7f3a", "title": "t", "state": "RUNNING", "waiting": None,
        "waiting_until": until, "started_at": (NOON - timedelta(minutes=9)).isoformat(),
        "finished_at": None, "rounds": 2, "rounds_at_most": 6, "running": True, **more,
    }  # fmt: skip


def test_the_list_says_until_when() -> None:
    table = runs_table([row()], NOON.astimezone(JST))
    assert "  waiting  " in table and "2 of 6" in table
    assert "users-api-7f3a is waiting until 14:17:00 and then continues by itself" in table
    later = row(waiting_until="2026-11-22T01:00:00Z")
    assert "until 2026-11-22 10:00:00" in runs_table([later], NOON.astimezone(JST))


def test_a_run_that_nobody_drives_waits_for_nothing() -> None:
    assert state_word(row(running=False)) == "stopped"
    assert state_word(row(waiting="plan")) == "waiting for you"
    assert state_word(row(waiting_until=None)) == "running"


def test_show_says_until_when() -> None:
    waits = result(state="RUNNING", reason=None, waiting_until="2026-11-21T05:16:50.000Z")
    assert headline(waits, driven=True) == "WAITING"
    screen = summary_screen(waits, driven=True, timezone=JST)
    assert "until 2026-11-21 14:16:50" in screen
    assert "then it continues by itself" in " ".join(screen.split())
    assert "agentrunner resume" not in screen and "agentrunner watch" in screen


def test_a_run_that_was_killed_while_it_waited_has_to_be_resumed() -> None:
    """It was said to continue by itself."""
    waits = result(state="RUNNING", reason=None, waiting_until="2026-11-21T05:16:50.000Z")
    for stopped, word in ((waits, "STOPPED"), (changed(waits, reason="interrupted"), "STOPPED")):
        assert headline(stopped) == word
        screen = summary_screen(stopped, timezone=JST)
        assert "agentrunner resume waits for what is left" in screen
        assert "by itself" not in " ".join(screen.split())


def test_a_run_that_is_worked_on_is_not_called_stopped() -> None:
    running = result(state="RUNNING", reason=None)
    assert (headline(running, driven=True), headline(running)) == ("RUNNING", "STOPPED")
