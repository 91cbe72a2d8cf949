"""Going on: the next attempt, changed inputs, a person's yes after the end, edits of people."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner import cli
from agentrunner.engine.attempt_run import Options
from agentrunner.engine.queries import listed_runs, show
from agentrunner.engine.retention import collect_garbage
from agentrunner.errors import EnvironmentNotReady, InfraError, UsageError
from agentrunner.execution.deps import Clock
from agentrunner.execution.launch import script_lost
from agentrunner.screens.summary import missing_sentences, summary_screen
from agentrunner.state.people import Answer
from agentrunner.storage.index import RunIndex
from tests.kit.files import write
from tests.kit.metas import Item, assess, consult, finish, give_up, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, NO_FIX, SMALL, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")

JUDGED = {"id": "AC-1", "description": "It reads well."}


def strict(**more: Any) -> dict[str, Any]:
    return {"completion": "strict", "meta": {"max_loops": 0}, **more}


# -- the next attempt ---------------------------------------------------------------------------


def test_a_failed_run_goes_on_in_its_next_attempt(run: Run) -> None:
    worker = "test -e once && sed -i 's/a - b/a + b/' calc.py; touch once"
    script = [plan(), work(), give_up(), work("Try the sign."), finish(), assess()]
    run.start(script, worker, test=TEST)
    assert run.ending == ("FAILED", "aborted", 1)
    first, note = run.id, run.result["note"]
    run.resume(max_loops=7, message="It is the sign.")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert (run.id, run.result["attempt"]) == (first, 2)
    assert (run.result["max_loops"], run.result["loops"]) == (7, 1)
    assert "words: It is the sign." in run.prompt(3)
    assert run.calls().count("plan_task") == 1
    assert (run.result["worker_runs"], run.result["meta_calls"]) == (2, 6)  # over all attempts
    assert run.result["usage"]["meta"]["input_tokens"] == 600
    assert run.result["note"] == note
    assert len(list((run.project.repo / ".agent-runner").iterdir())) == 1
    assert run.ids() == [first]


@pytest.mark.whole
def test_who_works_and_the_limits_are_told_again(run: Run) -> None:
    run.start([plan(), give_up(), consult("Which?"), give_up()], test=TEST)
    run.resume(max_loops=7)
    run.answer("None.")
    (first,) = [event["header"] for event in run.project.told("run_started")]
    later = [event["header"] for event in run.project.told("run_resumed")]
    assert first["limits"]["max_loops"] == 2
    assert [header["limits"]["max_loops"] for header in later] == [7, 7]
    assert {header["worker"] for header in later} == {first["worker"]}


def test_loops_start_at_zero_in_every_attempt(run: Run) -> None:
    rounds = [work(f"Try {number}.") for number in range(6)]
    run.start([plan(), *rounds], NO_FIX, test=TEST, runner={"meta": {"max_loops": 1}})
    assert run.ending == ("FAILED", "loop_limit", 1)
    run.resume()
    assert run.ending == ("FAILED", "loop_limit", 1)
    assert (run.result["attempt"], run.result["loops"], run.result["worker_runs"]) == (2, 1, 3)
    run.resume(max_loops=0)
    assert (run.result["attempt"], run.result["loops"], run.result["worker_runs"]) == (3, 0, 3)


def test_a_planning_that_failed_is_planned_again(run: Run) -> None:
    bad: list[Item] = [{"reply": f"No, {number}."} for number in range(4)]
    run.start([*bad, plan(), work(), finish(), assess()], FIX, test=TEST)
    assert run.ending == ("FAILED", "meta-garbage", 1)
    run.resume(message="Answer in JSON, please.")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert "words: Answer in JSON, please." in run.prompt(4)
    assert run.path() == [
        "PENDING", "PLANNING", "FAILED", "PLANNING", "RUNNING", "VALIDATING", "COMPLETE",
    ]  # fmt: skip


@pytest.mark.whole
def test_words_that_no_prompt_took_are_not_lost(run: Run) -> None:
    dead: list[Item] = [{"error": {"status": 401}}]
    run.start([plan(), give_up(), *dead, give_up()], test=TEST)
    run.resume(message="Mind the sign.")
    assert run.result["state"] == "FAILED"
    run.resume()
    assert "words: Mind the sign." in run.prompt()


def test_a_complete_run_stays_complete(run: Run) -> None:
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    before, calls = run.result, run.calls()
    run.resume()
    assert run.result == before
    assert run.calls() == calls


def test_fixing_by_hand_and_asking_again_is_not_the_workers_work(run: Run) -> None:
    run.start([plan(), work(), give_up(), finish(), assess()], NO_FIX, test=TEST)
    run.project.write({"calc.py": "def add(a, b):\n    return a + b\n"})
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0)
    (edit,) = run.log("human_edit")
    assert edit.data["paths"] == ["calc.py"]
    assert ("edited", "edited while running, not by the worker: calc.py") in run.warnings()
    assert "calc.py" in run.note()


# -- accept -------------------------------------------------------------------------------------


def judged(run: Run, worker: str = FIX, **more: Any) -> None:
    """A run in strict mode with one criterion that only a person can decide."""
    script = [plan(JUDGED), work(), finish(), assess()]
    run.start(script, worker, test=TEST, runner=strict(**more))


def test_strict_leaves_judged_to_a_person_who_accepts_it(run: Run) -> None:
    judged(run)
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    assert "AC-1 rests on tests that no person mapped to it" in run.result["missing"][0]
    calls = run.calls()
    run.accept("AC-1", reason="Read it twice.")
    assert run.ending == ("COMPLETE", "complete", 0)
    (criterion,) = run.result["acceptance_criteria"]
    assert (criterion["evidence"], criterion["detail"]) == ("accepted", "hana: Read it twice.")
    assert run.result["attempt"] == 2
    assert run.calls() == calls
    assert "Read it twice." in run.note()
    (yes,) = run.log("acceptance")
    assert yes.data["tree"] == run.result["tree"]


def test_a_red_run_is_not_complete_whoever_accepts_it(run: Run) -> None:
    judged(run, worker=NO_FIX)
    assert run.ending == ("FAILED", "loop_limit", 1)
    run.accept(reason="I want it.")
    assert run.ending == ("FAILED", "loop_limit", 1)
    assert run.result["attempt"] == 2
    assert run.result["missing"][0] == f"The acceptance was refused: `{TEST}` exits 1"
    assert "The acceptance was refused" in run.note()
    run.resume()
    assert "The acceptance was refused" not in run.note()


@pytest.mark.whole
def test_a_refused_acceptance_leaves_the_end_as_it_was(run: Run) -> None:
    run.start([plan(JUDGED), work(), give_up()], NO_FIX, test=TEST)
    for attempt in (2, 3):
        run.accept("AC-1")
        assert run.ending == ("FAILED", "aborted", 1)
        assert (run.result["attempt"], run.result["max_loops"]) == (attempt, 2)


def test_a_tree_that_changed_is_checked_again_before_it_is_accepted(run: Run) -> None:
    judged(run)
    run.project.write({"calc.py": "broken\n"})
    run.accept("AC-1")
    assert run.ending == ("FAILED", "loop_limit", 1)
    assert run.result["test"]["exit_code"] == 1
    run.project.write({"calc.py": "def add(a, b):\n    return a + b\n"})
    run.accept("AC-1")
    assert run.ending == ("COMPLETE", "complete", 0)


def test_an_acceptance_stands_in_for_missing_proof(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, {**SMALL, "calc.py": "a + b\n"}))
    script = [plan(), work(), finish(), assess()]
    run.start(script, NO_FIX, test=TEST, runner={"meta": {"max_loops": 0}})
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    run.accept(reason="A comment was all I wanted.")
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.whole
def test_criteria_are_accepted_one_by_one(run: Run) -> None:
    both = [JUDGED, {"id": "AC-2", "description": "It looks well."}]
    script = [plan(*both), work(), finish(), assess(passed=("AC-1", "AC-2"))]
    run.start(script, FIX, test=TEST, runner=strict())
    run.accept("AC-2")
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    why = "AC-1 rests on the planner's word alone: It reads well."
    (refused,) = run.result["missing"]
    assert refused.startswith(f"The acceptance was refused: {why.rstrip('.')}. To settle it: agent")
    run.accept("AC-1")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["attempt"] == 3


def test_one_question_covers_all_that_an_acceptance_has_to(run: Run) -> None:
    """Nothing of it is for the planner to hear first: the person who accepts is there."""
    run.project.write({"golden.txt": "1\n"})
    both = [JUDGED, {"id": "AC-2", "description": "It looks well."}]
    runner = {"meta": {"max_loops": 0}}
    worker = "echo true > tests/run.sh; echo x >> golden.txt"
    script = [plan(*both), work(), finish(), assess()]
    run.start(script, worker, test=TEST, protect=["golden.txt"], runner=runner)
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    run.accept("AC-1")
    assert run.ending == ("VALIDATING", None, 4)
    assert sorted(run.subject["paths"]) == ["golden.txt", "tests/run.sh"]
    text = run.result["waiting"]["text"]
    assert "golden.txt" in text and "tests/run.sh" in text and "this is still missing: AC-2" in text
    run.approve(run.question)
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    run.accept("AC-2")
    assert run.ending == ("COMPLETE", "complete", 0)


def test_what_cannot_be_accepted_is_refused(run: Run) -> None:
    judged(run)
    for criteria, reason, code in [
        (["AC-7"], "Good.", "unknown-criterion"),
        (["AC-1"], " ", "usage"),
    ]:
        with pytest.raises(UsageError) as raised:
            run.accept(*criteria, reason=reason)
        assert raised.value.code == code
    run.accept("AC-1")
    with pytest.raises(UsageError) as raised:
        run.accept("AC-1")
    assert raised.value.code == "not-acceptable"


def test_a_run_without_a_plan_cannot_be_accepted(run: Run) -> None:
    run.start([{"reply": f"No, {number}."} for number in range(4)], test=TEST)
    with pytest.raises(UsageError) as raised:
        run.accept(reason="Fine.")
    assert raised.value.code == "not-acceptable"


# -- changed inputs -----------------------------------------------------------------------------


def failed_with_a_prd(run: Run, *more: Item) -> Path:
    prd = run.project.repo.parent / "prd.md"
    prd.write_text("# Sums\n\n## Acceptance criteria\n\n- AC-1: It adds. check: test `sum`\n")
    prd.write_text("Make it add.\n\n## Acceptance criteria\n\n- AC-1: It adds.\n", "utf-8")
    script = [plan(), work(), give_up(), *more]
    run.start(script, NO_FIX, test=TEST, prd={"path": str(prd)})
    return prd


def test_a_changed_prd_is_refused_with_the_diff(run: Run) -> None:
    prd = failed_with_a_prd(run)
    prd.write_text("Make it multiply.\n\n## Acceptance criteria\n\n- AC-1: It adds.\n", "utf-8")
    calls = run.calls()
    with pytest.raises(UsageError) as raised:
        run.resume()
    assert (raised.value.code, raised.value.exit_code) == ("inputs-changed", 2)
    diff = raised.value.details[0][1]
    assert "-Make it add." in diff
    assert "+Make it multiply." in diff
    assert run.calls() == calls


@pytest.mark.whole
def test_continue_keeps_the_inputs_of_the_start(run: Run) -> None:
    prd = failed_with_a_prd(run, give_up())
    prd.write_text("Make it multiply.\n", "utf-8")
    run.resume(on_change="continue")
    assert run.result["attempt"] == 2
    assert "Make it add." in run.prompt()
    assert "Make it multiply." not in run.prompt()


def test_an_answer_and_an_acceptance_keep_the_inputs_and_say_so(run: Run) -> None:
    prd = run.project.repo.parent / "prd.md"
    prd.write_text("Make it add.\n", "utf-8")
    script = [plan(), consult("Which?"), give_up()]
    run.start(script, test=TEST, prd={"path": str(prd)})
    said = f"changed meanwhile; the run continues with what it was made from: {prd}"
    prd.write_text("Make it multiply.\n", "utf-8")
    run.answer("Any.")
    assert "Make it add." in run.prompt() and said in run.note()
    run.accept(reason="It will do.")
    assert run.warnings().count(("inputs-changed", said)) == 2
    prd.write_text("Make it add.\n", "utf-8")
    run.resume()
    assert run.warnings().count(("inputs-changed", said)) == 2


def test_replan_takes_the_new_inputs_and_plans_again(run: Run) -> None:
    two = {"id": "AC-2", "description": "It says how."}
    prd = failed_with_a_prd(run, plan(two), give_up())
    prd.write_text("Make it add.\n\n## Acceptance criteria\n\n- AC-9: It sums.\n", "utf-8")
    run.resume(on_change="replan")
    assert (run.result["attempt"], run.result["reason"]) == (2, "aborted")
    assert [c["id"] for c in run.result["acceptance_criteria"]] == ["AC-9", "AC-2"]
    assert run.calls().count("plan_task") == 2


def test_a_run_that_was_planned_anew_is_proven_against_the_tree_before_it_all(run: Run) -> None:
    """Old outcomes are not those of a new test command; nor is the present tree the old one."""
    run.start([plan(), work(), give_up(), plan(), finish(), assess()], FIX, test="sh tests/run.sh")
    run.project.write({"tests/all.sh": "sh tests/run.sh\n"})
    task = run.project.state_dir.parent / "task.yaml"
    task.write_text(task.read_text().replace("tests/run.sh", "tests/run.sh && true"), "utf-8")
    run.resume(on_change="replan")
    told = [e for e in run.project.told("baseline") if e["target"] == "test"]
    assert [(e["command"], e["exit_code"]) for e in told] == [
        ("sh tests/run.sh", 1),
        ("sh tests/run.sh && true", 1),
    ]
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.whole
def test_a_set_up_that_came_later_runs_when_it_is_planned_anew(run: Run) -> None:
    setup = {"command": "echo once >> set-up"}
    run.start([plan(), give_up(), plan(), give_up()], test=TEST, setup=setup)
    assert run.project.read("set-up") == "once\n"
    task = run.project.state_dir.parent / "task.yaml"
    task.write_text(task.read_text().replace("echo once", "echo again"), "utf-8")
    run.resume(on_change="replan")
    assert run.project.read("set-up") == "once\nagain\n"


def test_a_set_up_after_workers_runs_none_of_their_code_with_secrets(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = run.project.repo
    (repo / "setup.sh").write_text("mkdir -p made; echo $TOKEN > made/own\n", "utf-8")
    with (repo / ".gitignore").open("a", encoding="utf-8") as ignore:
        ignore.write("made/\n")
    monkeypatch.setenv("OURS", "s3cret")
    steals = "echo 'echo stolen $TOKEN > made/stolen; echo evil > ~/evil' >> setup.sh"
    setup = {"command": "sh setup.sh", "env": {"TOKEN": "env:OURS"}}
    script = [plan(), work(), give_up(), plan(), work(), finish(), assess()]
    run.start(script, f"test -e made/stolen && {FIX} || {steals}", test=TEST, setup=setup)
    task = run.project.state_dir.parent / "task.yaml"
    task.write_text(task.read_text().replace("sh setup.sh", "sh setup.sh; touch made/2"), "utf-8")
    run.resume(on_change="replan")
    assert (repo / "made" / "stolen").read_text() == "stolen\n"
    folder = run.folder.root
    assert not list(folder.glob("set-up-home*/evil"))
    sealed = {file.name: file.read_text() for file in folder.glob("sealed/*/*")}
    assert sealed == {"own": "s3cret\n", "2": ""}  # from the tree before the worker
    assert not (folder / "sealed.new").exists()


@pytest.mark.whole
def test_a_set_up_begins_with_an_empty_home(run: Run) -> None:
    setup = {"command": "test ! -e ~/half && touch ~/half && test -e ready"}
    script = [plan(), work(), finish(), assess()]
    with pytest.raises(EnvironmentNotReady):
        run.start(script, FIX, test=TEST, setup=setup)
    (run.project.repo / "ready").write_text("", "utf-8")
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.whole
def test_a_run_that_failed_before_anything_was_spent_is_shown_as_not_started(run: Run) -> None:
    state = run.project.state_dir
    script = [plan(), work(), finish(), assess()]
    with pytest.raises(EnvironmentNotReady):
        run.start(script, FIX, test=TEST, setup={"command": "sh gone.sh"})
    (listed,) = listed_runs(state)
    why = "The set-up command fails in the sandbox."
    assert (listed.stands, listed.start_error) == ("not started", why)
    found = show(state, run.id)
    assert (found.reason, found.text) == ("not_started", why)
    assert summary_screen(found).startswith("NOT STARTED")
    # Nothing was made of its task file: it goes on with that as it is now.
    task = run.project.state_dir.parent / "task.yaml"
    task.write_text(task.read_text().replace("sh gone.sh", "true"), "utf-8")
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0)
    (listed,) = listed_runs(state)
    assert (listed.stands, listed.start_error) == ("complete", "")


def test_a_run_that_did_not_start_is_deleted_like_one_that_ended(run: Run) -> None:
    with pytest.raises(EnvironmentNotReady):
        run.start([plan()], FIX, test=TEST, setup={"command": "sh gone.sh"})
    now, ids = Clock().now(), run.ids()
    assert collect_garbage(run.project.state_dir, now)["removed"] == []
    assert collect_garbage(run.project.state_dir, now, 0)["removed"] == ids


def test_a_command_that_is_green_on_the_old_tree_proves_nothing_after_a_replan(run: Run) -> None:
    run.start([plan(), work(), give_up(), plan(), finish(), assess(), give_up()], NO_FIX, test=TEST)
    task = run.project.state_dir.parent / "task.yaml"
    task.write_text(task.read_text().replace(TEST, "true"), "utf-8")
    run.resume(on_change="replan")
    assert run.result["proof"] == []
    assert run.result["state"] == "FAILED"


def test_a_check_proposed_after_work_was_done_proves_nothing(run: Run) -> None:
    adds = "python3 -c 'from calc import add; assert add(2, 3) == 5'"
    check = {"id": "AC-1", "description": "It adds.", "check": {"kind": "command", "run": adds}}
    script = [plan(JUDGED), work(), give_up(), plan(check), finish(), assess()]
    run.start(script, FIX)
    task = run.project.state_dir.parent / "task.yaml"
    task.write_text(task.read_text().replace("Make it work.", "Make it so."), "utf-8")
    run.resume(on_change="replan")
    assert run.result["state"] != "COMPLETE"
    assert run.result["proofs"] == []
    (criterion,) = run.result["acceptance_criteria"]
    assert criterion["grade"] not in ("proven", "shown")


def test_a_worker_that_closes_the_repository_costs_nothing(run: Run) -> None:
    with pytest.raises(InfraError) as raised:
        run.start([plan(), work(), finish(), assess()], f"{FIX}; chmod 000 .", test=TEST)
    repo = run.project.repo
    for _ in range(2):
        assert raised.value.code == "repository-closed"
        assert raised.value.remedy.startswith(f"chmod u+rwx {repo}")
        with pytest.raises(InfraError) as raised:
            run.resume()
    (worker,) = run.log("worker_run")
    assert worker.data["outcome"] == "completed"
    repo.chmod(0o755)
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["worker_runs"] == 1


# -- edits of people ----------------------------------------------------------------------------


def test_edits_while_paused_are_the_persons(run: Run) -> None:
    run.start([plan(), consult("May I?"), work(), finish(), assess()], FIX, test=TEST)
    run.project.write({"tests/run.sh": "# mine\n" + SMALL["tests/run.sh"], "README.md": "Mine.\n"})
    run.answer("Yes.")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["findings"] == []  # a person may change tests
    (edit,) = run.log("human_edit")
    assert edit.data["paths"] == ["README.md", "tests/run.sh"]
    (worker,) = run.log("worker_run")
    assert [change["path"] for change in worker.data["changes"]] == ["calc.py"]


@pytest.mark.whole
def test_edits_between_worker_and_checks_are_not_the_workers(run: Run) -> None:
    def edit(event: dict[str, Any]) -> None:
        run.project.events.append(event)
        if event["event"] == "worker_finished":
            run.project.write({"tests/run.sh": "# mine\n" + SMALL["tests/run.sh"]})

    def watched(options: Options) -> Options:
        return replace(options, on_event=edit)

    run.adjust = watched
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.log("human_edit")[0].data["paths"] == ["tests/run.sh"]
    assert [code for code, _ in run.warnings()] == ["edited"]
    assert run.result["findings"] == []


# -- the environment ----------------------------------------------------------------------------


def test_a_test_command_that_cannot_start_costs_nothing_and_can_be_mended(run: Run) -> None:
    with pytest.raises(EnvironmentNotReady) as raised:
        run.start([plan(), work(), finish(), assess()], FIX, test="no-such-runner -q")
    assert (raised.value.exit_code, raised.value.nothing_spent) == (5, True)
    assert "no-such-runner" in str(raised.value.details)
    (run_id,) = run.ids()
    run.result = show(run.project.state_dir, run_id).as_dict()
    assert run.calls() == []
    assert (run.result["state"], run.result["meta_calls"]) == ("PLANNING", 0)
    task = run.project.state_dir.parent / "task.yaml"
    task.write_text(task.read_text().replace("no-such-runner -q", TEST), "utf-8")
    run.resume(on_change="replan")
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.whole
def test_a_set_up_that_fails_costs_nothing(run: Run) -> None:
    with pytest.raises(EnvironmentNotReady) as raised:
        run.start([plan()], setup={"command": "echo no network >&2; exit 7"}, test=TEST)
    assert "no network" in str(raised.value.details)
    assert run.calls() == []


@pytest.mark.whole
def test_a_set_up_runs_before_the_tests(run: Run) -> None:
    worker = "sed -i 's/a - b/a + b/' calc.py"
    test = "test -e .tool && sh tests/run.sh"
    run.start(
        [plan(), work(), finish(), assess()], worker, setup={"command": "touch .tool"}, test=test
    )
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["changed_files"] == ["calc.py"]


def test_a_check_whose_program_is_missing_costs_nothing(run: Run) -> None:
    criterion = {"id": "AC-1", "description": "x", "check": "no-such-tool --all"}
    with pytest.raises(EnvironmentNotReady):
        run.start([plan()], acceptance_criteria=[criterion])
    assert run.calls() == []


WRITES = "printf '#!/bin/sh\\n{}\\n' > done.sh; chmod +x done.sh"


def test_a_script_that_is_still_to_be_written_is_red(run: Run) -> None:
    criterion = {"id": "AC-1", "description": "x", "check": "./done.sh"}
    worker = FIX + "; " + WRITES.format('grep -q "a + b" calc.py')
    script = [plan(criterion), work(), finish(), assess()]
    run.start(script, worker, acceptance_criteria=[criterion])
    assert run.ending == ("COMPLETE", "complete", 0)
    said = "AC-1: `./done.sh`, the worker's own, failed before and passes now"
    assert (run.result["proof"], run.result["grade"]) == ([said], "shown")


def test_a_script_of_the_workers_that_is_green_on_the_old_code_proves_nothing(run: Run) -> None:
    criterion = {"id": "AC-1", "description": "x", "check": "./done.sh"}
    limit = {"meta": {"max_loops": 0}}
    script = [plan(criterion), work(), finish(), assess()]
    worker = f"{FIX}; {WRITES.format('true')}"
    run.start(script, worker, acceptance_criteria=[criterion], runner=limit)
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    assert "green on the old code as soon as what the worker wrote" in run.result["missing"][0]


def test_a_missing_worker_is_named_before_anything_is_made(run: Run) -> None:
    with pytest.raises(InfraError) as raised:
        run.start([plan()], runner={"worker": {"command": ["no-such-worker"]}})
    assert (raised.value.code, raised.value.nothing_spent) == ("worker-missing", True)
    assert re.fullmatch(r"\S*task\.yaml:\d+", raised.value.path)
    assert not (run.project.state_dir / "runs").exists()


def test_a_script_that_the_sandbox_does_not_have_is_named_before_a_round(
    in_a_box: None, run: Run
) -> None:
    script = run.project.state_dir.parent / "agent.sh"
    script.write_text("true\n")
    worker = {"worker": {"command": ["sh", str(script)]}}
    with pytest.raises(InfraError, match="is on this machine, and not in") as raised:
        run.start([plan(), give_up()], runner=worker)
    assert (raised.value.code, raised.value.nothing_spent) == ("worker-missing", True)
    assert raised.value.remedy.startswith(f"runner.sandbox.read_paths: [{script}]")
    shown = {**worker, "sandbox": {"read_paths": [str(script)]}}
    run.start([plan(), work(), give_up()], runner=shown)
    assert run.result["worker_runs"] == 1


@pytest.mark.series(2)
@pytest.mark.parametrize("mends", ["shown", "another"])
def test_the_task_file_mends_a_worker_that_was_not_there(
    in_a_box: None, run: Run, mends: str
) -> None:
    script = run.project.state_dir.parent / "agent.sh"
    script.write_text(FIX)
    with pytest.raises(InfraError, match="is on this machine, and not in"):
        run.start(
            [plan(), work(), finish(), assess()],
            test=TEST,
            runner={"worker": {"command": ["sh", str(script)]}},
        )
    if mends == "shown":
        run.project.rewrite(sandbox={"read_paths": ["agent.sh"]})
    else:
        run.project.rewrite(worker={"command": ["sh", "-c", FIX]})
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.whole
def test_a_new_attempt_has_the_settings_of_the_changed_file(run: Run) -> None:
    script = [plan(), work(), give_up(), plan(), work(), finish(), assess()]
    run.start(script, NO_FIX, test=TEST)
    assert run.ending == ("FAILED", "aborted", 1)
    run.project.rewrite(worker={"command": ["sh", "-c", FIX]})
    run.resume(on_change="continue")
    assert run.ending != ("COMPLETE", "complete", 0)
    run.resume(on_change="replan")
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.parametrize("kind", ["none", "bwrap"])
@pytest.mark.parametrize("place", ["agent.sh", "{outside}/agent.sh"])
def test_a_script_that_is_nowhere_is_named_before_anything_is_made(
    run: Run, place: str, kind: str
) -> None:
    place = place.format(outside=run.project.state_dir.parent)
    script = run.project.repo / place
    worker = {"worker": {"command": ["sh", place]}}
    runner = {**worker, "sandbox": {"kind": kind, "read_paths": [str(script)]}}
    with pytest.raises(InfraError, match="is not there, and the worker is to run it") as raised:
        run.start([plan(), work(), finish(), assess()], test=TEST, runner=runner)
    assert (raised.value.code, raised.value.nothing_spent) == ("worker-missing", True)
    assert str(script) in raised.value.message + raised.value.remedy
    assert not (run.project.state_dir / "runs").exists()


def test_a_script_that_lies_beside_the_task_file_is_named_as_the_repository_sees_it(
    run: Run,
) -> None:
    spec = run.project.spec(runner={"worker": {"command": ["sh", "agent.sh"]}})
    beside = write(run.project.repo / "tasks", {"agent.sh": FIX})
    lost = script_lost(
        spec.model_copy(update={"base_dir": str(beside)}), "sh", run.project.repo / "agent.sh"
    )
    assert lost.remedy.startswith("name it tasks/agent.sh: the command runs in the repository")


@pytest.mark.series(2)
@pytest.mark.parametrize("place", ["agent.sh", "{outside}/agent.sh"])
def test_a_script_that_a_set_up_might_make_stops_the_run_before_a_round(
    run: Run, place: str
) -> None:
    place = place.format(outside=run.project.state_dir.parent)
    script = run.project.repo / place
    worker = {"worker": {"command": ["sh", place]}, "sandbox": {"kind": "none"}}
    setup = {"command": "true"}
    with pytest.raises(InfraError, match="is not there, and the worker is to run it") as raised:
        run.start([plan(), work(), finish(), assess()], test=TEST, runner=worker, setup=setup)
    assert (raised.value.code, raised.value.exit_code) == ("worker-missing", 5)
    assert str(script) in raised.value.message + raised.value.remedy
    found = show(run.project.state_dir, run.ids()[0])
    assert (found.worker_runs, found.state) == (0, "RUNNING")
    assert missing_sentences(found)[0] == raised.value.message
    script.write_text(FIX)
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["worker_runs"] == 1
    assert show(run.project.state_dir, run.id).text == run.result["text"]


def test_a_test_folder_that_nothing_can_have_made_is_a_mistake_of_the_task(run: Run) -> None:
    test = {"command": "true", "cwd": "nope"}
    with pytest.raises(UsageError, match="nope is no folder of") as raised:
        run.start([plan()], test=test)
    assert re.fullmatch(r"\S*task\.yaml:\d+", raised.value.path)
    assert not (run.project.state_dir / "runs").exists()


def test_a_dry_run_tells_all_it_knows_and_everything_that_is_missing(
    in_a_box: None, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    kinds = {"worker": {"command": ["no-such-worker"]}, "meta": {"kind": "openai-chat"}}
    run.project.spec(acceptance_criteria=["It reads well."], test=TEST, runner=kinds)
    state, task = run.project.state_dir, run.project.state_dir.parent / "task.yaml"
    arguments = ["run", str(task), "--dry-run", "--state-dir", str(state)]
    assert cli.call(cli.app, arguments, "agentrunner") == 5
    screen = capsys.readouterr().out
    known = ["openai-chat, not ready", "AC-1  critical", "no-such-worker", "(writable)", "Reach"]
    assert all(part in screen for part in [*known, "OPENAI_API_KEY is not set", "not found"])
    assert screen.endswith("Nothing was started.\n")
    assert not state.exists()


@pytest.mark.whole
def test_answers_of_old_questions_mean_nothing_in_a_new_attempt(run: Run) -> None:
    run.start([plan(), consult("May I?"), give_up(), give_up()], test=TEST)
    old = run.question
    run.answer("No.")
    run.resume()
    with pytest.raises(UsageError) as raised:
        run.respond(Answer(id=old, kind="ask_human", text="Yes."))
    assert raised.value.code == "not-waiting"


@pytest.mark.series(2)
@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_what_a_person_mended_after_the_end_is_not_the_runs_proof(tmp_path: Path, how: str) -> None:
    """The worker changed nothing: the yes counts, with its reason, and nothing else does."""
    run = Run(Project.make(tmp_path, SMALL))
    if how == "cancelled":
        run.start([plan(), consult("What now?")], test=TEST)
        run.cancel()
    else:
        run.start([plan(), work(), give_up()], "true", test=TEST)
    assert run.result["state"] == "FAILED" and run.result["changed_files"] == []
    run.project.write({"calc.py": SMALL["calc.py"].replace("-", "+")})
    run.accept(reason="I mended it.")
    assert run.ending[0] == "COMPLETE"
    assert run.result["grade"] == "accepted", run.result["text"]
    assert all(one["grade"] != "proven" for one in run.result["acceptance_criteria"])
    said = "changed since the run ended, not by the worker: calc.py"
    assert said in [one["message"] for one in run.result["findings"]]
    shown = show(run.project.state_dir, run.id)
    assert said in summary_screen(shown, all_rows=True)
    note = Path(run.result["note"]).read_text()
    assert "Changed since the run had ended" in note and "while the run was paused" not in note


@pytest.mark.whole
def test_rounds_are_counted_over_all_attempts(run: Run) -> None:
    """Limits are per attempt; what people read goes on: rounds 1, 2, then 3."""
    again = [work(), work(), work(), work("Once more."), give_up()]
    run.start(
        [plan(), *again], "date +%N >> seen.txt", test=TEST, runner={"meta": {"max_loops": 1}}
    )
    assert (run.ending[1], run.result["rounds"]) == ("loop_limit", 2)
    listed: list[tuple[int, int | None]] = []

    def look(event: dict[str, Any]) -> None:
        run.project.events.append(event)
        if event["event"] == "run_resumed":
            (row,) = RunIndex(run.project.state_dir).runs()
            listed.append((row.rounds, row.rounds_at_most))

    run.adjust = lambda options: replace(options, on_event=look)
    run.resume()
    assert listed == [(2, 3)]
    started = run.project.told("worker_started")
    assert [event["round"] for event in started] == [1, 2, 3]
    assert [event["rounds_at_most"] for event in started] == [2, 2, 3]
    assert started[-1]["loop"] == 1
    assert run.result["rounds"] == 3
    row = RunIndex(run.project.state_dir).runs()[0]
    assert (row.rounds, row.rounds_at_most) == (3, 3)


@pytest.mark.whole
def test_what_an_open_finding_is_about_is_told_and_the_state_stays_as_it_was(run: Run) -> None:
    run.project.write({"own.txt": "mine\n"})
    run.project.git("add", "own.txt")
    run.project.git("commit", "-qm", "own")
    work_on_it = f"{FIX}; echo theirs >> own.txt"
    limit = {"meta": {"max_loops": 0}}
    script = [plan(), work(), finish(), assess()]
    run.start(script, work_on_it, test=TEST, protect=["own.txt"], runner=limit)
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    (finding,) = run.result["findings"]
    assert "+theirs" in finding["diff"]
    assert show(run.project.state_dir, run.id).findings[0].diff == finding["diff"]
    evidence = run.state()["evidence"]
    assert evidence is not None and [one.diff for one in evidence.findings] == [""]
