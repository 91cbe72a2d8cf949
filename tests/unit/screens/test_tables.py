from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from agentrunner.screens.doctor import DoctorItem, DoctorReport, doctor_screen, init_screen
from agentrunner.screens.run_table import criteria_table, dry_run_screen, runs_table
from agentrunner.screens.states import ago
from agentrunner.text.terminal import cell_width
from tests.kit.screen_samples import EVIL, NOW, ROWS

Golden = Callable[[str, str], None]


def test_runs_table(golden: Golden) -> None:
    golden("screens/list.txt", runs_table(ROWS, NOW) + "\n")


def test_runs_table_fits_and_is_harmless() -> None:
    hostile = [{**ROWS[0], "run_id": EVIL * 9, "title": EVIL}]
    table = runs_table([*ROWS, *hostile], NOW, all_repositories=True)
    assert max(map(cell_width, table.split("\n")[:-1])) <= 80
    assert not any(character in table for character in "\x1b\x9b\r\u202e")


def test_a_long_id_is_shown_whole_in_place_of_the_title() -> None:
    long = {**ROWS[0], "run_id": "charge-for-every-piece-2q7x"}
    table = runs_table([long], NOW)
    assert "  charge-for-every-piece-2q7x  waiting" in table and "Register users" in table
    assert max(map(cell_width, table.split("\n"))) <= 80


def test_no_runs() -> None:
    none = runs_table([], NOW)
    assert none.startswith("No runs yet in this repository.\nNext:  agentrunner init, then")
    assert none.endswith("other repositories:  agentrunner list --all")


@pytest.mark.parametrize(
    ("hours", "text"),
    [(0.0, "now"), (0.1, "6 min ago"), (3, "11:30"), (20, "yesterday"), (72, "Wed 14:30"),
     (24 * 30, "2026-10-22")],
)  # fmt: skip
def test_ago(hours: float, text: str) -> None:
    assert ago(NOW - timedelta(hours=hours), NOW) == text


CRITERIA = [
    {"id": "AC-1", "critical": True, "line": 9, "runs": "pytest -q tests/test_users.py::test_a"},
    {"id": "AC-2", "critical": True, "line": 10, "runs": 'README.md contains "## Users"'},
    {"id": "AC-3", "critical": True, "line": 12, "runs": ""},
    {"id": "受入-4", "critical": False, "line": None, "runs": ""},
]


@pytest.mark.parametrize("strict", [False, True])
def test_validate(strict: bool, golden: Golden) -> None:
    table = criteria_table("users-api.md", CRITERIA, strict=strict, has_test=False)
    golden(f"screens/validate{'-strict' * strict}.txt", table + "\n")


def test_validate_in_44_columns(golden: Golden) -> None:
    table = criteria_table("users-api.md", CRITERIA, strict=False, has_test=True, width=44)
    assert max(map(cell_width, table.split("\n"))) <= 44
    golden("screens/validate-44.txt", table + "\n")


def test_dry_run(golden: Golden) -> None:
    criteria = criteria_table("Users API", CRITERIA, strict=False, has_test=True)
    screen = dry_run_screen(
        [("repo", "~/src/shop, branch main"), ("planner", "checklist (no model)")],
        criteria,
        ["codex", "exec", "--json", f"-c={EVIL}"],
        ["/home/hana/src/shop (writable)", "/usr (read-only)"],
        {"worker": "its model, docs.example.org:443", "tests": "nothing"},
        [
            {"message": "The Codex CLI is not found.", "remedy": "npm install -g @openai/codex"},
            {"message": EVIL, "remedy": ""},
        ],
    )
    golden("screens/dry-run.txt", screen + "\n")


def test_doctor(golden: Golden) -> None:
    report = DoctorReport(
        "agentrunner 0.3.0, Python 3.12.3, Ubuntu 24.04, x86_64",
        [
            ("This repository: ~/src/shop", [
                DoctorItem("ok", "git", "branch main"),
                DoctorItem("ok", "tests", "uv run pytest -q: 42 passed, 0 failed, 3.8 s"),
            ]),
            ("Sandboxes", [
                DoctorItem("FAIL", "bwrap", "cannot make a user namespace: AppArmor forbids it "
                           "here, and something long follows", "sudo sysctl kernel.x=0"),
            ]),
        ],
        "Not ready: no sandbox works. Nothing was started, nothing was spent.",
    )  # fmt: skip
    golden("screens/doctor.txt", doctor_screen(report) + "\n")
    report.sections[0][1].append(
        DoctorItem("ok", "toolchain", "~/.pyenv/versions/3.11.7, ~/.rustup")
    )
    golden("screens/doctor-44.txt", doctor_screen(report, 44, columns=44) + "\n")


@pytest.mark.parametrize("width", [80, 44])
def test_init(width: int, golden: Golden) -> None:
    facts = [
        ("repository", "~/src/shop", "git root"),
        ("tests", "uv run pytest -q", "41 passed, 1 failed, 3.8 s"),
        ("or", "make test", "exit 127, no test was seen to run: sh: 1: golangci-lint: not found"),
        ("red now", "", "tests/test_users.py::test_duplicate"),
    ]
    screen = init_screen(facts, "users-api.md", width)
    assert max(map(cell_width, screen.split("\n"))) <= width
    golden(f"screens/init{'-44' if width == 44 else ''}.txt", screen + "\n")


def test_a_task_without_criteria_is_never_just_valid(golden: Callable[[str, str], None]) -> None:
    screens = [
        criteria_table("t.md", [], strict=False, has_test=has_test, width=width)
        for has_test, width in ((True, 80), (False, 40))
    ]
    assert not any("is valid" in screen for screen in screens)
    golden("screens/validate-none.txt", "\n\n".join(screens) + "\n")


def test_where_the_planner_is_still_to_be_chosen_it_may_be_a_person_who_decides() -> None:
    table = criteria_table("a.md", CRITERIA, strict=False, has_test=True, by_code=None)
    assert "(--strict, or no model plans: a person must accept)" in " ".join(table.split())
    alone = criteria_table("a.md", [], strict=False, has_test=False, by_code=None)
    assert "The planner's word, or without a model a person, alone decides." in " ".join(
        alone.split()
    )
