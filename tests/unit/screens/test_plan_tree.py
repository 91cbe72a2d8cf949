from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from agentrunner.plans.patch import PlanEdit, SiblingPlace, apply
from agentrunner.plans.plan import (
    AT_WORK,
    BEGUN,
    Hint,
    Plan,
    PlanTaskStatus,
    PotentialConflict,
    status_word,
)
from agentrunner.plans.store import OpenQuestion, StoredTask
from agentrunner.screens.layout import Paint
from agentrunner.screens.plan_diff import ANEW, AT_WORK_ANEW, STAYS, diff_lines
from agentrunner.screens.plan_tree import MOST_TASKS, plan_screen, task_screen
from agentrunner.state.lifecycle import state_word
from agentrunner.text.terminal import cell_width
from tests.kit.screen_samples import EVIL

Golden = Callable[[str, str], None]


def create(name: str, title: str, parent: str | None = None, **given: object) -> PlanEdit:
    return PlanEdit(
        "create", name, {"title": title, **given}, parent_id=parent, phase=parent is None
    )


def planned(edits: Sequence[PlanEdit], plan: Plan | None = None) -> Plan:
    return apply(plan or Plan(), edits, goal="商品一覧ページを作って。\nできれば今週中に。")


BASE = planned(
    [
        create("p1", "設計"),
        create("t1", "商品カードの部品を設計する", "p1"),
        create("p2", "Build"),
        *(create(f"t{n}", f"Step {n} of the list", "p2") for n in range(2, 9)),
        create("t9", "とても長い題名のタスク、" * 6, "p2", dependencies=("t1", "t2", "t3", "t4")),
    ]
)
STANDING = {
    "TASK-0001": PlanTaskStatus.COMPLETE,
    "TASK-0002": PlanTaskStatus.RUNNING,
    "TASK-0003": PlanTaskStatus.FAILED,
}


def standing(plan: Plan) -> Plan:
    tasks = {
        task_id: replace(task, status=STANDING.get(task_id, task.status))
        for task_id, task in plan.tasks.items()
    }
    return replace(plan, tasks=tasks)


def test_a_tree_with_how_each_task_stands(golden: Golden) -> None:
    asked = [
        OpenQuestion(1, "", "何件ずつ表示しますか？"),
        OpenQuestion(3, "", "Why?", "TASK-0003"),
    ]
    conflict = PotentialConflict(
        "src/list.ts", ("TASK-0002", "TASK-0003"), "同じページを変更する。"
    )
    plan = replace(standing(BASE), conflicts=(conflict,))
    golden("screens/plan-standing.txt", plan_screen(plan, asked, driven=True, width=80) + "\n")


def test_a_change_of_every_kind(golden: Golden) -> None:
    after = planned(
        [
            PlanEdit("delete", "node-0003", cascade=False),
            PlanEdit("move", "TASK-0007", parent_id="node-0001", place=SiblingPlace(index=0)),
            PlanEdit("delete", "TASK-0004"),
            PlanEdit("update", "TASK-0001",
                     {"title": "商品カード", "acceptance_criteria": ("a", "b")}),
            create("n1", "検索欄", "node-0001", dependencies=("TASK-0001",),
                   suggested_impl=Hint("ts", ("src/search.ts",), ("no new dependency",))),
        ],
        BASE,
    )  # fmt: skip
    golden("screens/plan-change.txt", "\n".join(diff_lines(BASE, after, width=80)) + "\n")


def test_what_becomes_of_a_task_that_was_begun_and_is_changed_is_said() -> None:
    before = standing(BASE)
    stopped = replace(before.tasks["TASK-0004"], status=PlanTaskStatus.STOPPED)
    before = replace(before, tasks={**before.tasks, "TASK-0004": stopped})
    for task_id, given, told in [
        ("TASK-0001", {"description": "Else."}, ANEW[PlanTaskStatus.COMPLETE]),
        ("TASK-0001", {"milestone": "M2"}, ""),
        ("TASK-0002", {"description": "Else."}, AT_WORK_ANEW),
        ("TASK-0003", {"description": "Else."}, ""),
        ("TASK-0004", {"description": "Else."}, ANEW[PlanTaskStatus.STOPPED]),
        ("TASK-0004", {"milestone": "M2"}, ""),
    ]:
        lines = diff_lines(before, planned([PlanEdit("update", task_id, given)], before), width=80)
        found = [line for line in lines if "again" in line or "anew" in line]
        assert [told] * bool(told) == [line.lstrip("~ │├└─") for line in found]
    for task_id, told in [("TASK-0001", STAYS), ("TASK-0003", "")]:
        gone = planned([PlanEdit("delete", task_id)], before)
        text = "\n".join(diff_lines(before, gone, width=80))
        assert (STAYS in text) == (told == STAYS), text
    with_phase = planned([PlanEdit("update", "node-0001", {"title": "Else"})], before)
    assert "worked on again" not in "\n".join(diff_lines(before, with_phase, width=80))


@pytest.mark.parametrize(
    ("criteria", "told"),
    [
        ((), []),
        (("One", "Two\nlines"), ["• One", "• Two lines"]),
        (("1", "2", "3", "4"), ["• 1", "• 2", "• 3", "… 1 more criterion"]),
        (tuple("123456"), ["• 1", "• 2", "• 3", "… 3 more criteria"]),
    ],
)
def test_of_a_new_task_it_is_told_what_must_be_true_of_it(
    criteria: tuple[str, ...], told: list[str]
) -> None:
    after = planned([create("n1", "Search", "node-0001", acceptance_criteria=criteria)], BASE)
    lines = diff_lines(BASE, after, width=80)
    at = next(place for place, line in enumerate(lines) if "Search" in line)
    below = [line for line in lines[at + 1 :] if line.startswith("+")]
    assert [line.lstrip("+ │") for line in below] == told


def test_of_what_is_unchanged_only_the_nearest_is_shown() -> None:
    many = planned([create("p", "Phase"), *(create(f"t{n}", f"T{n}", "p") for n in range(150))])
    after = planned([PlanEdit("update", "TASK-0100", {"title": "other"})], many)
    lines = diff_lines(many, after, width=80)
    assert [line.strip() for line in lines[2:6]] == [
        "└─ Phase", "├─ … 98 unchanged", "├─ TASK-0099 T98", "~    ├─ TASK-0100 other",
    ]  # fmt: skip
    assert lines[-1].strip() == "└─ … 49 unchanged"


def test_no_change() -> None:
    assert diff_lines(BASE, replace(BASE, version=9), width=80) == ["Nothing in the tree changes."]


@pytest.mark.parametrize("width", [40, 80])
def test_nothing_is_wider_than_the_screen_and_nothing_is_hidden_or_moved(width: int) -> None:
    evil = planned(
        [
            create("p", EVIL * 3),
            create("t", EVIL * 9, "p", description=EVIL, acceptance_criteria=(EVIL, EVIL),
                   suggested_impl=Hint(EVIL, (EVIL,), (EVIL,)), phase_name=EVIL, milestone=EVIL),
        ]
    )  # fmt: skip
    evil = replace(evil, goal=EVIL, conflicts=(PotentialConflict(EVIL, ("TASK-0001",), EVIL),))
    after = planned(
        [PlanEdit("update", "TASK-0001", {"title": "T" + EVIL, "description": "x"})], evil
    )
    asked = [OpenQuestion(1, "", EVIL, answer=EVIL)]
    known = {"TASK-0001": StoredTask("TASK-0001", PlanTaskStatus.FAILED, EVIL, detail=EVIL)}
    text = "\n".join(
        [
            plan_screen(evil, asked, driven=True, width=width),
            *diff_lines(Plan(), evil, width=width),
            *diff_lines(evil, after, width=width),
            task_screen(evil, "TASK-0001", known, asked, driven=True, width=width),
        ]
    )
    assert not any(character in text for character in "\x1b\x9b\r\x07\u202e")
    assert max(map(cell_width, text.split("\n"))) <= width


def test_a_task_shows_what_people_answered() -> None:
    answered = [OpenQuestion(1, "", "Are prices net?", answer="no VAT, prices are net")]
    shown = task_screen(BASE, "TASK-0001", {}, answered, driven=True, width=80)
    assert shown.endswith(
        "Decisions of people:\n  - “Are prices net?” answered: no VAT, prices are net"
    )
    assert "Decisions" not in task_screen(BASE, "TASK-0001", {}, driven=True, width=80)


def test_colours_change_no_width() -> None:
    plain = plan_screen(standing(BASE), driven=True, width=80)
    painted = plan_screen(standing(BASE), driven=True, width=80, paint=Paint(enabled=True))
    assert "\x1b[1;32mcomplete\x1b[0m" in painted
    for code in ("1;32", "1;31", "1;33", "1", "2", "0"):
        painted = painted.replace(f"\x1b[{code}m", "")
    assert painted == plain


def test_a_huge_plan_is_cut() -> None:
    plan = Plan()
    for start in range(0, 600, 200):
        edits = [create(f"t{n}", f"T{n}", "node-root") for n in range(start, start + 200)]
        plan = planned(edits, plan)
    lines = plan_screen(plan, driven=True, width=80).split("\n")
    assert lines[-1].startswith(f"… {600 - MOST_TASKS} more;")
    assert len(lines) == MOST_TASKS + 4


def test_no_screen_of_a_plan_shows_a_stored_state() -> None:
    """One word per state: what `list` and the overview call a run, the tree calls its task."""
    for status in PlanTaskStatus:
        word = status_word(status, driven=True)
        assert word == word.lower() and "_" not in word
    at_work = {status_word(status, driven=True) for status in AT_WORK}
    assert at_work == {state_word({"state": "RUNNING"})}
    assert {status_word(status, driven=False) for status in BEGUN} == {"stopped"}
    assert status_word("STOPPED", driven=True) == "stopped"  # until the plan takes it up
    assert status_word("BLOCKED", "", driven=True) == "waiting for you"
    assert status_word("BLOCKED", "TASK-0001", driven=True) == "behind TASK-0001"
