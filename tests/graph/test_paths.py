"""Every path of the state diagram that needs no person, driven with the shipped parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.metas import assess, consult, finish, give_up, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, NO_FIX, SMALL, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")

MOCKS = {"meta": {"kind": "mock"}, "worker": {"kind": "mock", "command": None}}


def test_mock_and_mock_worker_end_complete_but_unproven(run: Run) -> None:
    run.start(None, runner=MOCKS)
    assert run.ending == ("COMPLETE", "unproven", 0)
    assert run.calls().count("next_action") == 2
    assert (run.result["worker_runs"], run.result["loops"]) == (1, 0)
    assert run.path() == ["PENDING", "PLANNING", "RUNNING", "VALIDATING", "COMPLETE"]
    assert Path(run.result["note"]).is_file()


def test_mock_and_mock_worker_do_not_pass_a_red_test(run: Run) -> None:
    run.start(None, runner=MOCKS, test=TEST)
    assert run.ending == ("FAILED", "loop_limit", 1)


def test_work_that_is_done_is_complete(run: Run) -> None:
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.calls() == ["plan_task", "next_action", "next_action", "completion_assessment"]
    assert run.path() == ["PENDING", "PLANNING", "RUNNING", "VALIDATING", "COMPLETE"]
    assert run.result["proof"] == [f"`{TEST}` failed before and passes now"]
    assert run.result["changed_files"] == ["calc.py"]
    assert (run.result["missing"], run.result["loops"]) == ([], 0)


def test_a_new_file_that_git_ignores_is_not_listed_as_changed(run: Run) -> None:
    """What is listed is handed to `git add`, which fails where one of its paths is ignored."""
    run.project.write({".gitignore": ".ran\n"})
    run.project.git("add", ".gitignore")
    run.project.git("commit", "-qm", "ignored")
    run.start([plan(), work(), finish(), assess()], f"{FIX}; echo > .ran", test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["changed_files"] == ["calc.py"]


@pytest.mark.whole
def test_a_worker_that_failed_is_named_first_among_what_is_missing(run: Run) -> None:
    limit = {"meta": {"max_loops": 0}}
    run.start([plan(), work(), work()], "echo no model here >&2; exit 7", test=TEST, runner=limit)
    assert run.ending == ("FAILED", "loop_limit", 1)
    first, *others = run.result["missing"]
    assert first == "The last worker run did not succeed: exit code 7: no model here"
    assert f"`{TEST}` exits 1" in others
    assert first in run.note()


def test_no_assessment_is_asked_for_while_the_test_is_red(run: Run) -> None:
    run.start([plan(), work(), finish(), give_up()], NO_FIX, test=TEST)
    assert "completion_assessment" not in run.calls()


def test_a_refused_completion_is_mended_and_asked_for_again(run: Run) -> None:
    worker = "test -e once && sed -i 's/a - b/a + b/' calc.py; touch once"
    script = [plan(), work(), finish(), work("Now the bug."), finish(), assess()]
    run.start(script, worker, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.path() == [
        "PENDING", "PLANNING", "RUNNING", "VALIDATING", "FIXING", "VALIDATING", "COMPLETE",
    ]  # fmt: skip
    assert run.result["loops"] == 1
    assert "Completion was refused" in run.prompt(3)


@pytest.mark.whole
def test_completion_asked_for_again_at_once_goes_back_to_validating(run: Run) -> None:
    script = [plan(), work(), finish(), finish(), give_up()]
    run.start(script, NO_FIX, test=TEST)
    moves = run.path()[3:]
    assert moves == ["VALIDATING", "FIXING", "VALIDATING", "FIXING", "FAILED"]
    assert run.ending == ("FAILED", "aborted", 1)
    assert run.result["loops"] == 2


@pytest.mark.whole
def test_each_request_is_assessed_once_even_of_the_same_tree(run: Run) -> None:
    script = [plan(), work(), finish(), assess(passed=(), failed=("AC-1",)), finish(), assess()]
    run.start(script, FIX, test=TEST)
    assert run.calls().count("completion_assessment") == 2
    assert run.ending == ("COMPLETE", "complete", 0)


def test_the_models_no_outweighs_a_green_test(run: Run) -> None:
    script = [plan(), work(), finish(), assess(passed=(), failed=("AC-1",)), give_up()]
    run.start(script, FIX, test=TEST)
    assert run.ending == ("FAILED", "aborted", 1)
    assert run.result["acceptance_criteria"][0]["status"] == "failed"


def test_completion_before_any_worker_run_is_judged_by_evidence(run: Run) -> None:
    run.start([plan(), finish(), work(), finish(), assess()], FIX, test=TEST)
    assert run.path()[2:5] == ["RUNNING", "VALIDATING", "FIXING"]
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["worker_runs"] == 1


def test_what_was_done_before_the_run_is_not_its_work(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, {**SMALL, "calc.py": "a + b\n"}))
    run.start([plan(), finish(), assess(), give_up("Nothing to do.")], test=TEST)
    assert run.path()[2:] == ["RUNNING", "VALIDATING", "FIXING", "FAILED"]
    assert run.result["worker_runs"] == 0


def test_abort_ends_failed_with_the_reason(run: Run) -> None:
    run.start([plan(), give_up("The API is gone.")], test=TEST)
    assert run.ending == ("FAILED", "aborted", 1)
    assert "The API is gone." in run.result["text"]
    assert run.path() == ["PENDING", "PLANNING", "RUNNING", "FAILED"]
    assert "The API is gone." in run.note()


def test_a_planner_that_talks_rubbish_ends_the_planning_failed(run: Run) -> None:
    run.start([{"reply": f"I would rather not, {n}."} for n in range(4)], test=TEST)
    assert run.ending == ("FAILED", "meta-garbage", 1)
    assert run.path() == ["PENDING", "PLANNING", "FAILED"]
    assert run.result["meta_calls"] == 4
    assert Path(run.result["note"]).is_file()


def test_a_script_that_runs_out_ends_failed(run: Run) -> None:
    run.start([plan(), work()], test=TEST)
    assert run.ending == ("FAILED", "script-ended", 1)
    assert "item 3" in run.result["text"]


def test_a_worker_that_fails_makes_the_next_round_a_fix(run: Run) -> None:
    worker = "test -e once && exit 0; touch once; exit 3"
    run.start([plan(), work(), work("Again."), give_up()], worker)
    assert run.path()[3:] == ["VALIDATING", "FIXING", "VALIDATING", "FAILED"]
    outcomes = [event["outcome"] for event in run.project.told("worker_finished")]
    assert outcomes == ["failed", "completed"]


@pytest.mark.whole
def test_more_work_while_nothing_is_red_is_running(run: Run) -> None:
    run.start([plan(), work(), work("More."), finish(), assess()], FIX, test=TEST)
    assert run.path()[3:] == ["VALIDATING", "RUNNING", "VALIDATING", "COMPLETE"]
    assert run.result["loops"] == 1


def test_checklist_needs_no_model_and_ends_complete(run: Run) -> None:
    run.start(None, FIX, test=TEST, runner={"meta": {"kind": "checklist"}})
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["worker_runs"] == 1


@pytest.mark.whole
def test_checklist_goes_to_its_limit_with_a_worker_that_does_nothing(run: Run) -> None:
    run.start(None, NO_FIX, test=TEST, runner={"meta": {"kind": "checklist", "max_loops": 2}})
    assert run.ending == ("FAILED", "loop_limit", 1)
    assert run.result["worker_runs"] == 3


def test_checklist_starts_no_worker_for_what_only_a_person_decides(run: Run) -> None:
    criteria = ["It is friendly.", {"description": "It adds.", "check": TEST}]
    runner = {"meta": {"kind": "checklist", "max_loops": 3}}
    run.start(None, FIX, acceptance_criteria=criteria, runner=runner)
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    assert run.result["worker_runs"] == 1
    run.resume(message="Friendlier, please.")
    assert run.result["worker_runs"] == 2
    (prompt,) = run.folder.prompts_dir.glob("2-*")
    assert "Friendlier, please." in prompt.read_text("utf-8")


@pytest.mark.whole
def test_checklist_goes_on_after_a_yes_that_does_not_complete_the_run(run: Run) -> None:
    runner = {"meta": {"kind": "checklist", "max_loops": 3}}
    run.project.write({"calc.py": "def add(a, b):\n    return a + b\n", "own.txt": "mine\n"})
    run.project.git("commit", "-qam", "mended")
    run.start(None, "echo x >> own.txt", test=TEST, runner=runner, protect=["own.txt"])
    assert (run.kind, run.result["worker_runs"]) == ("protected_path", 2)
    run.approve(run.question)  # nothing was proven by that: the next worker is told so
    assert run.result["worker_runs"] == 3


def test_a_criterion_of_the_task_is_kept_whatever_the_plan_says(run: Run) -> None:
    mine = {"id": "AC-1", "description": "There is a readme.", "check": "test -e README.md"}
    model = {"id": "AC-1", "description": "There is no readme.", "check": {"kind": "test"}}
    script = [plan(model), work(), finish(), assess()]
    run.start(script, "touch README.md", acceptance_criteria=[mine])
    assert run.ending == ("COMPLETE", "complete", 0)
    criterion = run.result["acceptance_criteria"][0]
    assert criterion["description"] == "There is a readme."
    assert (criterion["origin"], criterion["evidence"]) == ("task", "checked")


def test_unknown_patterns_are_told_and_left_out(run: Run) -> None:
    script = [plan(), work(used_patterns=["no-such", "run_all_checks"]), give_up()]
    run.start(script, test=TEST)
    assert ("unknown-pattern", "No such pattern: no-such") in run.warnings()
    assert run.log("decision")[0].data["used_patterns"] == ["no-such", "run_all_checks"]


def test_the_worker_gets_the_prompt_and_the_criteria(run: Run) -> None:
    run.start([plan(), work("Mend the sum."), give_up()], "cat > got.txt")
    assert "Mend the sum." in run.project.read("got.txt")
    assert "It adds." in run.project.read("got.txt")


@pytest.mark.whole
def test_abort_while_validating(run: Run) -> None:
    run.start([plan(), work(), give_up()], NO_FIX, test=TEST)
    assert run.path()[-2:] == ["VALIDATING", "FAILED"]
    assert run.result["test"]["exit_code"] == 1


@pytest.mark.whole
def test_a_question_counts_no_loop(run: Run) -> None:
    run.start([plan(), consult("Which?", "this", "that"), give_up()], test=TEST)
    assert run.ending == ("RUNNING", None, 4)
    run.answer("1")
    assert run.result["loops"] == 0
    assert "words: this" in run.prompt()
