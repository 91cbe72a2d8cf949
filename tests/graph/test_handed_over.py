"""What a worker's folder has and a checkout lacks is named: empty folders, links out, ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentrunner.engine.queries import show
from agentrunner.screens.summary import summary_screen
from tests.kit.metas import assess, finish, give_up, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")

SCRIPT: list[Any] = [plan(), work(), finish(), assess()]
REFUSED: list[Any] = [plan(), work(), finish(), give_up()]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Project.make(tmp_path, SMALL))


def finding(run: Run, code: str) -> dict[str, Any]:
    (found,) = [one for one in run.result["findings"] if one["code"] == code]
    return dict(found)


def screen(run: Run) -> str:
    return summary_screen(show(run.project.state_dir, run.id), width=120)


def test_an_empty_folder_that_red_tests_need_is_named(run: Run) -> None:
    needs = f"{TEST} && test -d spool"
    run.start(REFUSED, f"{FIX}; mkdir -p spool", test=needs)
    assert run.result["state"] == "FAILED"
    found = finding(run, "empty_folders")
    assert found["paths"] == ["spool"] and "the empty folder spool" in found["message"]
    assert "spool/.gitkeep" in found["remedy"]
    assert "A checkout lacks the empty folder spool" in screen(run)
    assert "the empty folder spool" in run.note()


@pytest.mark.whole
def test_one_that_nothing_needs_is_named_and_asks_nothing(run: Run) -> None:
    run.project.write({"old/a.txt": "a\n"})
    (run.project.repo / "users").mkdir()
    run.start(SCRIPT, f"{FIX}; mkdir -p spool/in; rm old/a.txt", test=TEST)
    assert run.result["state"] == "COMPLETE", run.result["missing"]
    found = finding(run, "empty_folders")
    assert found["paths"] == ["spool/in"], "neither a person's nor one that was emptied"
    assert not found["blocks"] and "A checkout lacks" in screen(run)


def test_an_empty_folder_that_the_tests_need_from_the_start_is_said_before_a_worker(
    run: Run,
) -> None:
    (run.project.repo / "spool").mkdir()
    needs = f"{TEST} && touch spool/x"
    run.start([plan(), work(), finish()], FIX, test=needs, runner={"meta": {"max_loops": 0}})
    warned = dict(run.warnings())
    assert "left-out" not in warned, "nothing is red because of it yet"
    other = Run(Project.make(run.project.repo.parent / "other", SMALL))
    (other.project.repo / "spool").mkdir()
    other.start([plan(), work(), finish()], FIX, test="touch spool/x",
                runner={"meta": {"max_loops": 0}})  # fmt: skip
    assert "name spool: an empty folder" in dict(other.warnings())["left-out"]


@pytest.mark.series(2)
@pytest.mark.parametrize(
    ("target", "out"), [("/etc/debian_version", True), ("../x", True), ("./calc.py", False)]
)
def test_a_link_that_leads_out_of_the_tree_is_named(run: Run, target: str, out: bool) -> None:
    run.start(SCRIPT, f"{FIX}; ln -s {target} sub.txt", test=TEST)
    assert run.result["state"] == "COMPLETE", run.result["missing"]
    named = [one for one in run.result["findings"] if one["code"] == "links_out"]
    assert [one["paths"] for one in named] == [["sub.txt"]] * out
    assert (f"A link leads out of what is handed over: sub.txt to {target}" in screen(run)) == out


def test_code_behind_a_link_out_of_the_tree_is_asked_about(tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere" / "calc.py"
    outside.parent.mkdir()
    run = Run(Project.make(tmp_path / "project", SMALL))
    moves = f"{FIX}; mv calc.py {outside}; ln -s {outside} calc.py"
    run.start(SCRIPT, moves, test=TEST, runner={"sandbox": {"kind": "none"}})
    assert run.result["state"] != "COMPLETE"
    assert finding(run, "links_out")["blocks"], run.result


@pytest.mark.whole
def test_an_ignored_file_that_is_asked_for_is_said_to_be_in_no_commit(run: Run) -> None:
    run.project.write({".gitignore": "*.local\n"})
    asked = "Write `five.local`: it holds 5. And mend add."
    needs = f"{TEST} && grep -q 5 five.local"
    run.start(SCRIPT, f"{FIX}; echo 5 > five.local", test=needs, prd={"text": asked})
    assert run.result["state"] == "COMPLETE", run.result["missing"]
    found = finding(run, "not_in_git")
    assert found["paths"] == ["five.local"] and not found["blocks"]
    assert "git add -f five.local" in found["remedy"]
    shown = screen(run)
    assert "git ignores five.local" in shown and "git ignores five.local" in run.note()
    assert "git add calc.py && git commit" in shown and "add calc.py five.local" not in shown
    assert "git add calc.py && git commit" in run.note()


def test_lines_of_what_git_ignores_are_not_counted(run: Run) -> None:
    run.project.write({".gitignore": "*.log\n"})
    run.start(SCRIPT, f"{FIX}; echo started >> run.log", test=TEST)
    assert run.result["changed_files"] == ["calc.py"]
    assert (run.result["lines_added"], run.result["lines_removed"]) == (1, 1)
    assert "+1 -1" in screen(run)
