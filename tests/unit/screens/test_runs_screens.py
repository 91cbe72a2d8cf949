"""The runs at every width, what needs somebody, a diff in colours."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agentrunner.screens.diff import coloured, stat_screen
from agentrunner.screens.layout import PLAIN, Paint
from agentrunner.screens.run_table import facts_of, overview_screen, plans_table, runs_table
from agentrunner.text.terminal import cell_width
from tests.kit.screen_samples import EVIL, NOW, ROWS, row

Golden = Callable[[str, str], None]
STOPPED = {**row("half-done-1234", "Half done", "RUNNING", 90, None), "running": False}
FAILED_TO_START = {**row("set-up-77aa", "Add a cart", "PLANNING", 45, None), "running": False,
                   "start_error": "The set-up command fails in the sandbox."}  # fmt: skip
QUOTA = {**row("quota-9999", "Waits for a quota", "RUNNING", 30, None),
         "waiting_until": (NOW + timedelta(minutes=5)).isoformat()}  # fmt: skip
ALL: list[dict[str, Any]] = [*ROWS, STOPPED, QUOTA, FAILED_TO_START]


@pytest.mark.parametrize("width", [88, 60, 40])
def test_run_and_task_are_seen_at_any_width(width: int, golden: Golden) -> None:
    table = runs_table(ALL, NOW, width=width)
    golden(f"screens/list-{width}.txt", table + "\n")
    for one in ALL:
        assert one["run_id"] in table and str(one["title"])[:9] in table


@pytest.mark.parametrize("width", [110, 80, 40])
def test_runs_of_all_repositories_name_theirs(width: int, golden: Golden) -> None:
    places = ("/home/hana/src/shop", "/srv/b/api", "/srv/c/api")
    rows = [{**one, "repo": place} for one, place in zip(ALL, places, strict=False)]
    table = runs_table(rows, NOW, width=width, all_repositories=True)
    golden(f"screens/list-all-{width}.txt", table + "\n")
    for name in ("shop", "b/api", "c/api"):
        assert re.search(rf"\s{name}\b", table)


@pytest.mark.parametrize("width", [88, 60, 40])
def test_what_needs_you_comes_first_and_each_has_its_command(width: int, golden: Golden) -> None:
    screen = overview_screen(ALL, NOW, width=width, plan="2 of 5 tasks complete: a shop")
    golden(f"screens/overview-{width}.txt", screen + "\n")
    for one in ALL:
        assert re.search(rf"agentrunner [a-z -]+ {one['run_id']}", screen)
    assert max(map(cell_width, screen.split("\n"))) <= width
    assert screen.index("Needs you") < screen.index("At work") < screen.index("Ended")


@pytest.mark.parametrize("width", [100, 80, 44])
def test_what_a_plan_asks_needs_you(width: int, golden: Golden) -> None:
    """A failed task with an open question has not ended: the plan waits for its answer."""
    task = {**row("TASK-0002-9x1k", "Search", "FAILED", 90, 30), "part_of": "plan"}
    rows = [
        {**task, "question": 3},
        {**task, "run_id": "TASK-0003-9x1k"},
        {**STOPPED, "run_id": "TASK-0004-9x1k", "part_of": "plan"},
    ]
    asked = [(1, "How many on a page?")]
    screen = overview_screen(rows, NOW, width=width, plan="0 of 3 tasks", asked=asked)
    golden(f"screens/overview-plan-{width}.txt", screen + "\n")
    needs, ended = screen.split("Ended")
    assert "agentrunner plan answer 3" in needs and "agentrunner plan answer 1" in needs
    assert "TASK-0003-9x1k" in ended and "agentrunner plan status" in ended
    assert "agentrunner resume" not in screen
    assert max(map(cell_width, screen.split("\n"))) <= width


def test_a_long_name_has_its_state_on_a_line_of_its_own() -> None:
    row = {**ROWS[0], "run_id": "spaces-in-a-title-become-dashes-mxt3"}
    lines = overview_screen([row], NOW, width=44).split("\n")
    assert f"  {row['run_id']}" in lines
    assert any(line.startswith(("    running", "    waiting for you")) for line in lines)


def test_where_nothing_was_done_the_first_steps_are_shown(golden: Golden) -> None:
    golden("screens/overview-none.txt", overview_screen([], NOW) + "\n")


def test_where_only_plans_that_were_put_away_have_runs_none_is_denied() -> None:
    first = overview_screen([], NOW, left_out=7).split("\n")[0]
    assert first == "Nothing but 7 runs of plans that were put away: agentrunner list"


def test_the_overview_is_harmless() -> None:
    hostile = [{**ROWS[0], "run_id": EVIL, "title": EVIL}]
    screen = overview_screen(hostile, NOW, plan=EVIL)
    assert not any(character in screen for character in "\x1b\x9b\r\u202e")


def test_only_work_counts_as_worked() -> None:
    waited = {**ROWS[0], "worked_sec": 61, "driven_at": None}
    assert " 1:01 " in runs_table([waited], NOW)


DIFF = """\
diff --git a/a.sql b/a.sql
index 106bf8a491f7d548d70131409d797404043f3f0a..a19f433e23d18455356fe368833072c6eff6ca93 100644
--- a/a.sql
+++ b/a.sql
@@ -1,3 +1,2 @@ begin
 select 1;
--- a remark
+++ another
-select 2;
diff --git a/b b/b
"""


def test_lines_of_a_diff_are_judged_by_where_they_stand() -> None:
    lines = coloured(DIFF, Paint(True)).split("\n")
    assert lines[1] == "\x1b[1mindex 106bf8a4..a19f433e 100644\x1b[0m"
    assert lines[2].startswith("\x1b[1m---") and lines[4].startswith("\x1b[2m@@")
    assert lines[6] == "\x1b[31m--- a remark\x1b[0m" and lines[7] == "\x1b[32m+++ another\x1b[0m"
    assert lines[9].startswith("\x1b[1mdiff")
    assert "\x1b" not in coloured(DIFF, PLAIN)


def test_stat_fits(golden: Golden) -> None:
    files: list[dict[str, Any]] = [
        {"path": "src/users.py", "kind": "modified", "added": 120, "removed": 30},
        {"path": "docs/登録.md", "kind": "added", "added": 1, "removed": 0},
        {"path": "logo.png", "kind": "modified", "added": None, "removed": None},
        {"path": "x/" * 60, "kind": "deleted", "added": 0, "removed": 9},
    ]
    screens = [stat_screen(files, width, PLAIN) for width in (80, 44)]
    for screen, width in zip(screens, (80, 44), strict=True):
        assert max(map(cell_width, screen.split("\n"))) <= width
    golden("screens/diff-stat.txt", "\n\n".join(screens) + "\n")


@pytest.mark.parametrize("width", [80, 43])
def test_no_plan_s_name_and_no_count_of_it_is_cut(width: int) -> None:
    goal = "A shop that lists its products and sells them to whoever has an account"
    name = "a-shop-that-lists-its-products-and-3"
    plans = [
        {"name": one, "current": one == "current", "archived": False, "tasks": 12, "done": 3,
         "goal": goal} for one in ("current", name)
    ]  # fmt: skip
    table = plans_table(plans, width=width)
    assert name in table and table.count("3 of 12 done") == 2 and table.count("A shop that") == 2
    assert max(map(cell_width, table.split("\n"))) <= width
    screen = overview_screen(
        ALL, NOW, width=width, plan=f"3 of 12 tasks complete, 11 questions to answer: {goal}"
    )
    assert "11 questions to answer" in " ".join(screen.split())
    assert max(map(cell_width, screen.split("\n"))) <= width


def test_the_last_thing_of_a_waiting_run_is_its_question_and_not_its_start() -> None:
    begun = (NOW - timedelta(hours=9)).isoformat()
    asked = (NOW - timedelta(minutes=2)).isoformat()
    one = {**row("users-api-7f3a", "Users", "PLANNING", 9, None), "waiting": "plan"}
    facts = facts_of({**one, "started_at": begun, "driven_at": begun, "latest_at": asked}, NOW)
    assert facts["LAST"].startswith("2 min")
