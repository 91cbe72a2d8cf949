"""Checks and tests run code of the model and the worker: what they write is not taken for given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.kit.metas import Item, assess, finish, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run

FORGE = "echo true > tests/run.sh"


def by_test(**more: Any) -> dict[str, Any]:
    return {"id": "AC-1", "description": "It adds.", "check": {"kind": "test"}, **more}


def writing(command: str) -> dict[str, Any]:
    check = {"kind": "command", "run": command}
    return {"id": "AC-2", "description": "Nice.", "critical": False, "check": check}


ROUNDS: list[Item] = [work("1"), work("2"), finish(), finish(), assess(passed=("AC-1", "AC-2"))]


def test_a_check_of_the_plan_changes_nothing_when_it_is_tried(run: Run) -> None:
    script = [plan(by_test(), writing(f"{FORGE}; touch made")), work("1"), finish()]
    run.start(script, "cat tests/run.sh > seen; ls > there", test=TEST)
    assert run.project.read("seen") == SMALL["tests/run.sh"]
    assert "made" not in run.project.read("there")
    assert "edited" not in [code for code, _ in run.warnings()]


def test_a_check_that_rewrites_the_tests_does_not_make_them_pass(run: Run) -> None:
    run.start([plan(by_test(), writing(FORGE)), *ROUNDS], "date >> log", test=TEST)
    assert run.ending == ("FAILED", "loop_limit", 1)
    assert f"`{TEST}` exits 1" in run.result["missing"]
    assert run.project.read("tests/run.sh") == SMALL["tests/run.sh"]
    assert (run.log("human_edit"), run.result["changed_files"]) == ([], ["log"])


def test_code_that_rewrites_the_tests_while_they_run_does_not_make_them_pass(
    tmp_path: Path,
) -> None:
    files = {"calc.sh": "echo 1\n", "tests/run.sh": "test $(sh calc.sh) = 2\n"}
    run = Run(Project.make(tmp_path, files))
    forge = "printf 'echo true > tests/run.sh; echo 1\\n' > calc.sh; date >> log"
    run.start([plan(by_test()), *ROUNDS], forge, test=TEST)
    assert run.ending == ("FAILED", "loop_limit", 1)
    assert f"`{TEST}` exits 1" in run.result["missing"]
    assert run.project.read("tests/run.sh") == files["tests/run.sh"]


def test_tests_that_are_made_to_pass_while_they_run_are_asked_about(tmp_path: Path) -> None:
    """A test that is run after the product can be rewritten by it, in the very same room."""
    files = {
        "calc.sh": "echo 1\n",
        "tests/run.sh": "sum=$(sh calc.sh)\nsh tests/sum.sh $sum\n",
        "tests/sum.sh": "test $1 = 2\n",
    }
    run = Run(Project.make(tmp_path, files))
    forge = "printf 'echo true > tests/sum.sh; echo 1\\n' > calc.sh; date >> log"
    run.start([plan(by_test()), *ROUNDS], forge, test=TEST)
    assert run.ending == ("VALIDATING", None, 4)
    assert run.kind == "tests_changed"
    assert (run.subject["code"], run.subject["paths"]) == ("inputs_written", ["tests/sum.sh"])
    assert run.project.read("tests/sum.sh") == files["tests/sum.sh"]


def test_what_tests_always_write_stands_in_nobodys_way(tmp_path: Path) -> None:
    files = {**SMALL, "tests/run.sh": "date +%N > report; date +%N > tests/last; grep -q + calc.py"}
    files = {**files, "report": "", "tests/last": ""}
    run = Run(Project.make(tmp_path, files))
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert (run.project.read("report"), run.project.read("tests/last")) == ("", "")
    assert run.log("human_edit") == []
