"""Approvals: what is asked, what a yes and a no lead to, and that a yes covers no more than it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import CheckpointCorrupt, UsageError
from agentrunner.execution.questions import MAX_ANSWER
from agentrunner.results import Result
from agentrunner.screens.paused import paused_screen
from agentrunner.state.people import Answer
from agentrunner.workers.policy import MAX_PROMPT_BYTES
from tests.kit.metas import assess, consult, finish, give_up, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, NO_FIX, SMALL, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")

HAPPY = [plan(), work(), finish(), assess()]
TAMPER = "echo true > tests/run.sh"


def approve(**what: str) -> dict[str, Any]:
    return {"approve": what}


# -- the plan -----------------------------------------------------------------------------------


def test_an_approved_plan_goes_on(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST, runner=approve(plan="always"))
    assert run.ending == ("PLANNING", None, 4)
    assert run.kind == "plan"
    assert [item["id"] for item in run.subject["criteria"]] == ["AC-1"]
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)


def test_a_plan_that_nobody_approved_is_asked_about_after_a_cancel_too(run: Run) -> None:
    script = [plan(), plan(), work(), finish(), assess()]
    run.start(script, FIX, test=TEST, runner=approve(plan="always"))
    run.cancel()
    assert run.ending == ("FAILED", "cancelled", 1)
    run.resume()
    assert run.ending == ("PLANNING", None, 4) and run.kind == "plan"
    assert not run.result["worker_runs"]
    run.approve()
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.whole
def test_a_plan_that_was_approved_is_not_asked_about_again(run: Run) -> None:
    script = [plan(), consult("Which?"), work(), finish(), assess()]
    run.start(script, FIX, test=TEST, runner=approve(plan="always"))
    run.approve()
    run.cancel()
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0)


def test_a_rejected_plan_is_made_again_with_the_reason(run: Run) -> None:
    script = [plan(), plan({"id": "AC-1", "description": "All sums."}), give_up()]
    run.start(script, test=TEST, runner=approve(plan="always"))
    first = run.question
    run.reject("Too vague for me.")
    assert run.ending == ("PLANNING", None, 4)
    assert "Too vague for me." in run.prompt()
    assert "- It adds." in run.prompt()
    assert run.question != first
    with pytest.raises(UsageError):
        run.approve(first)
    run.approve()
    assert [c["description"] for c in run.result["acceptance_criteria"]] == ["All sums."]


@pytest.mark.whole
def test_a_plan_made_again_does_not_set_up_again_where_nothing_is_measured(run: Run) -> None:
    """Without a test command and without checks there is a baseline all the same."""
    setup = {"command": "true"}
    run.start([plan(), plan(), give_up()], setup=setup, runner=approve(plan="always"))
    run.reject("Another one.")
    assert run.kind == "plan"
    told = [event for event in run.project.told("awaiting") if event["who"] == "setup"]
    assert len(told) == 1


def test_an_edited_plan_is_the_persons_own(run: Run) -> None:
    run.start(HAPPY, "touch done", runner=approve(plan="always"))
    criterion = {**run.subject["criteria"][0], "description": "It is done."}
    criterion["check"] = {"kind": "command", "run": "test -e done"}
    run.approve(edit=json.dumps({"criteria": [criterion]}))
    assert run.ending == ("COMPLETE", "complete", 0)
    (mine,) = run.result["acceptance_criteria"]
    assert (mine["description"], mine["origin"]) == ("It is done.", "human")
    assert (mine["evidence"], mine["status"]) == ("checked", "passed")
    assert run.result["proof"] == ["AC-1: `test -e done` failed before and passes now"]
    assert "It is done." in run.prompt(1)


@pytest.mark.whole
def test_a_check_that_a_person_wrote_after_the_fact_is_tried_on_the_tree_before(run: Run) -> None:
    run.start([plan(), finish(), assess(), give_up()], runner=approve(plan="always"))
    run.project.write({"done": ""})
    criterion = {**run.subject["criteria"][0], "check": {"kind": "command", "run": "test -e done"}}
    run.approve(edit=json.dumps({"criteria": [criterion]}))
    told = [e for e in run.project.told("baseline") if e["target"] == "AC-1"]
    assert told[-1]["outcome"] == "failed"


BAD_EDITS = {
    "no JSON": "criteria:",
    "none": '{"criteria": []}',
    "a list of texts": '["It works."]',
    "an unknown key": '{"criteria": [{"id": "AC-1", "description": "x", "colour": "red"}]}',
    "the same id twice": json.dumps({"criteria": [{"id": "AC-1", "description": "x"}] * 2}),
    "more than fifty": json.dumps(
        {"criteria": [{"id": f"AC-{n}", "description": "x"} for n in range(51)]}
    ),
}


def test_an_edit_that_cannot_be_read_is_refused_and_the_question_stays(run: Run) -> None:
    run.start([plan(), give_up()], test=TEST, runner=approve(plan="always"))
    asked = run.question
    for name, edit in BAD_EDITS.items():
        with pytest.raises(UsageError) as raised:
            run.approve(edit=edit)
        assert (name, raised.value.path) == (name, "--edit")
    assert run.question == asked
    run.approve(asked)
    assert run.ending == ("FAILED", "aborted", 1)


# -- the worker ---------------------------------------------------------------------------------


def test_an_approved_worker_runs_what_was_shown(run: Run) -> None:
    run.start([plan(), work("Mend it."), give_up()], "cat > got", runner=approve(worker="always"))
    assert run.ending == ("RUNNING", None, 4)
    shown = run.folder.root / run.subject["order"]["prompt"]["path"]
    text = shown.read_text("utf-8")
    assert "Mend it." in text
    assert not (run.project.repo / "got").exists()
    run.approve(run.question)
    assert run.project.read("got") == text


def test_a_prompt_that_changed_after_it_was_shown_is_not_run(run: Run) -> None:
    run.start([plan(), work(), give_up()], "touch ran", runner=approve(worker="always"))
    shown = run.folder.root / run.subject["order"]["prompt"]["path"]
    shown.write_text("Delete everything.", "utf-8")
    with pytest.raises(CheckpointCorrupt):
        run.approve(run.question)
    assert not (run.project.repo / "ran").exists()


def test_a_rejected_worker_run_is_decided_anew_with_the_reason(run: Run) -> None:
    script = [plan(), work("Rewrite all."), work("Mend one line."), give_up()]
    run.start(script, "cat > got", runner=approve(worker="always"))
    run.reject("Far too much.")
    assert run.ending == ("RUNNING", None, 4)
    assert "Far too much." in run.prompt()
    assert run.result["worker_runs"] == 0
    run.approve()
    assert "Mend one line." in run.project.read("got")
    assert run.result["worker_runs"] == 1
    assert run.result["loops"] == 0


# -- completion ---------------------------------------------------------------------------------


def test_an_approved_completion_is_complete(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST, runner=approve(complete="always"))
    assert run.ending == ("VALIDATING", None, 4)
    calls = run.calls()
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.calls() == calls


def test_a_rejected_completion_is_mended(run: Run) -> None:
    script = [*HAPPY, work("Tidy up."), finish(), assess()]
    run.start(script, FIX + "; date >> log", test=TEST, runner=approve(complete="always"))
    first = run.question
    run.reject("The log is missing.")
    assert run.kind == "complete"
    assert run.question != first
    shown = paused_screen(Result.model_validate(run.result), where="me@here")
    assert "rejected this in round 1: The log is missing." in shown
    assert "The log is missing." in run.prompt(4)
    assert run.path()[3:] == ["VALIDATING", "FIXING", "VALIDATING"]
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)


def test_a_no_at_the_loop_limit_is_what_is_missing(run: Run) -> None:
    limit = {**approve(complete="always"), "meta": {"max_loops": 0}}
    run.start(HAPPY, FIX, test=TEST, runner=limit)
    run.reject("Not like this.")
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    assert run.result["missing"] == ["A person said no: Not like this."]


def test_a_tree_that_changed_after_the_yes_was_asked_for_is_asked_anew(run: Run) -> None:
    run.start([*HAPPY, assess()], FIX, test=TEST, runner=approve(complete="always"))
    first = run.question
    run.project.write({"README.md": "Mine.\n"})
    run.approve(first)
    assert run.ending == ("VALIDATING", None, 4)
    assert run.question != first
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.whole
def test_a_tree_that_was_broken_after_the_yes_was_asked_for_is_not_complete(run: Run) -> None:
    run.start([*HAPPY, give_up()], FIX, test=TEST, runner=approve(complete="always"))
    run.project.write({"calc.py": "broken\n"})
    run.approve(run.question)
    assert run.ending == ("FAILED", "aborted", 1)


# -- changed tests and protected paths ------------------------------------------------------------


def tampered(
    run: Run, *more: dict[str, Any], worker: str = TAMPER, command: str = TEST, **task: Any
) -> None:
    """Told once, asked to complete again: now a person is asked."""
    script = [plan(), work(), finish(), finish(), assess(), *more]
    run.start(script, worker, test=command, **task)


def test_changed_tests_are_told_once_and_then_asked_about(run: Run) -> None:
    tampered(run)
    assert run.ending == ("VALIDATING", None, 4)
    assert run.kind == "tests_changed"
    assert run.path()[3:] == ["VALIDATING", "FIXING", "VALIDATING"]
    assert "tests/run.sh" in run.prompt(3)
    assert run.subject["paths"] == ["tests/run.sh"]
    assert "completion_assessment" not in run.calls()


def test_changed_tests_that_a_person_wants_are_complete(run: Run) -> None:
    tampered(run)
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["proof"] == ["test passes by a change of tests/run.sh that a person allowed"]
    (criterion,) = run.result["acceptance_criteria"]
    assert (criterion["grade"], criterion["author"]) == ("accepted", "person")


@pytest.mark.series(2)
@pytest.mark.parametrize("completion", ["evidence", "strict"])
def test_a_weakened_test_that_a_person_wants_is_accepted_by_name(
    tmp_path: Path, completion: str
) -> None:
    suite = (
        "import unittest\nfrom calc import add\n\n\nclass Calc(unittest.TestCase):\n"
        "    def test_sum(self):\n        self.assertEqual(add(1, 2), 3)\n"
    )
    files = {"calc.py": SMALL["calc.py"], "test_calc.py": suite}
    run = Run(Project.make(tmp_path, files))
    tampered(
        run,
        worker="sed -i 's/, 3)/, -1)/' test_calc.py",
        command="python3 -m unittest -q test_calc",
        runner={"completion": completion},
    )
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)
    (criterion,) = run.result["acceptance_criteria"]
    assert (criterion["grade"], criterion["author"]) == ("accepted", "person")
    assert "test_calc.py that a person allowed" in run.result["proof"][0]


@pytest.mark.whole
def test_changed_tests_that_a_person_does_not_want_are_mended(run: Run) -> None:
    worker = f"test -e once && {{ {FIX}; git show HEAD:tests/run.sh > tests/run.sh; exit; }}; "
    script = [plan(), work(), finish(), finish(), work("Put it back."), finish(), assess()]
    run.start(script, worker + f"touch once; {TAMPER}", test=TEST)
    run.reject("Put the test back.")
    assert "Put the test back." in run.prompt(4)
    assert run.path()[-3:] == ["FIXING", "VALIDATING", "COMPLETE"]
    assert run.project.read("tests/run.sh") == SMALL["tests/run.sh"]


def test_a_yes_to_changed_tests_is_no_yes_to_further_changes(run: Run) -> None:
    worker = f"{TAMPER}; date +#%N >> tests/run.sh"
    again = [work("More."), finish()]
    script = [plan(), work(), finish(), finish(), assess(passed=(), failed=("AC-1",)), *again]
    run.start(script, worker, test=TEST)
    first = run.question
    run.approve(first)
    assert run.ending == ("VALIDATING", None, 4)
    assert (run.kind, run.question == first) == ("tests_changed", False)


@pytest.mark.series(2)
@pytest.mark.parametrize(
    ("worker", "task", "path"),
    [
        (f"{FIX}; echo x >> golden.txt", {"protect": ["golden.txt"]}, "golden.txt"),
        (
            f"{FIX}; mkdir -p .github/workflows; echo x > .github/workflows/x.yml",
            {},
            ".github/workflows/x.yml",
        ),
        (
            f"{FIX}; mkdir .vscode; echo {{}} > .vscode/tasks.json",
            {"protect": [".vscode/**"], "allow_changes": [".vscode/**"]},
            ".vscode/tasks.json",
        ),
    ],
    ids=["task.protect", "executable config", "allowed but protected"],
)
def test_protected_paths_are_told_once_and_then_asked_about(
    run: Run, worker: str, task: dict[str, Any], path: str
) -> None:
    run.project.write({"golden.txt": "1\n"})
    tampered(run, worker=worker, **task)
    assert (run.kind, run.subject["paths"]) == ("protected_path", [path])
    assert path in run.prompt(3)
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.whole
def test_a_no_to_a_protected_path_goes_back_to_the_planner(run: Run) -> None:
    run.project.write({"golden.txt": "1\n"})
    script = [plan(), work(), finish(), finish(), give_up()]
    run.start(script, f"{FIX}; echo x >> golden.txt", test=TEST, protect=["golden.txt"])
    run.reject("Hands off.")
    assert run.ending == ("FAILED", "aborted", 1)
    assert "Hands off." in run.prompt()


def test_paths_allowed_in_advance_are_not_asked_about(run: Run) -> None:
    worker = f"{FIX}; mkdir -p .github/workflows; echo x > .github/workflows/x.yml"
    run.start(HAPPY, worker, test=TEST, allow_changes=[".github/workflows/**"])
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.whole
def test_open_findings_at_the_limit_are_for_a_person(run: Run) -> None:
    run.start([plan(), work(), finish()], TAMPER, test=TEST, runner={"meta": {"max_loops": 0}})
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    assert "tests/run.sh" in " ".join(run.result["missing"])


def test_several_approvals_inline(run: Run) -> None:
    yes = Answer(id="", kind="plan", decision="approve")
    always = {"plan": "always", "worker": "always", "complete": "always"}
    run.start(HAPPY, FIX, test=TEST, runner={"approve": always}, answers=[yes, yes, yes])
    assert run.ending == ("COMPLETE", "complete", 0)
    kinds = [event["kind"] for event in run.project.told("question")]
    assert kinds == ["plan", "worker", "complete"]


def test_wrong_answers_to_an_approval_are_refused(run: Run) -> None:
    run.start([plan(), work()], NO_FIX, runner=approve(worker="always"))
    asked = run.question
    bad = [
        Answer(id="", kind="worker", decision="answer", text="yes"),
        Answer(id="f" * 12, kind="worker", decision="approve"),
        Answer(id="", kind="worker", decision="approve", edit=" "),
        Answer(id="", kind="worker", decision="approve", edit="Add\0them."),
        Answer(id="", kind="worker", decision="approve", edit="x" * (MAX_PROMPT_BYTES + 1)),
        Answer(id="", kind="worker", decision="reject", text="x" * (MAX_ANSWER + 1)),
    ]
    for answer in bad:
        with pytest.raises(UsageError):
            run.respond(answer)
    assert run.question == asked
    assert run.log("worker_run") == []


def test_an_edited_prompt_is_what_the_worker_gets(run: Run) -> None:
    script = [plan(), work(), finish(), assess()]
    run.start(script, f"cat > got.txt; {FIX}", test=TEST, runner=approve(worker="always"))
    run.approve(edit="Add them as integers.\n")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert (run.project.repo / "got.txt").read_text().strip() == "Add them as integers."
    assert run.project.told("answer")[-1]["edited"]


@pytest.mark.whole
def test_who_accepted_the_run_is_not_asked_to_approve_it_too(run: Run) -> None:
    always = {**approve(complete="always"), "completion": "strict", "meta": {"max_loops": 0}}
    script = [plan({"id": "AC-1", "description": "It reads well."}), work(), finish(), assess()]
    run.start(script, FIX, test=TEST, runner=always)
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    run.accept("AC-1")
    assert run.ending == ("COMPLETE", "complete", 0)
