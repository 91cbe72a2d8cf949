"""Looking at what a run did, and taking it back."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentrunner import cli
from agentrunner.engine.queries import diff, show, undo
from agentrunner.engine.retention import collect_garbage
from agentrunner.errors import LockHeld, UsageError
from agentrunner.screens.summary import summary_screen
from agentrunner.storage.index import RunIndex
from tests.kit.metas import assess, consult, finish, give_up, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, NO_FIX, SMALL, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")

TWO_ROUNDS = "if test -e new; then sed -i 's/a - b/a + b/' calc.py; else echo one > new; fi"
FIXED = SMALL["calc.py"].replace("-", "+")


@pytest.fixture
def done(tmp_path: Path) -> Run:
    """Round 1 made `new`, round 2 mended the bug."""
    run = Run(Project.make(tmp_path, SMALL))
    run.start([plan(), work(), work("Now."), finish(), assess()], TWO_ROUNDS, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    return run


def test_undo_puts_everything_back_and_once_more_takes_that_back(done: Run) -> None:
    project = done.project
    restored = undo(project.state_dir, done.id)
    assert restored.model_dump() == {
        "files": ["calc.py", "new"],
        "refused": [],
        "not_kept": [],
        "undo_taken_back": False,
    }
    assert project.read("calc.py") == SMALL["calc.py"]
    assert not (project.repo / "new").exists()
    assert project.git("status", "--porcelain").split() == ["??", ".agent-runner/"]
    assert undo(project.state_dir, done.id).undo_taken_back
    after = project.read("calc.py")
    assert not undo(project.state_dir, done.id).undo_taken_back
    assert undo(project.state_dir, done.id).undo_taken_back and project.read("calc.py") == after
    assert project.read("calc.py") == FIXED
    assert project.read("new") == "one\n"
    undo(project.state_dir, done.id)
    assert project.read("calc.py") == SMALL["calc.py"]


@pytest.mark.whole
def test_a_run_whose_files_were_put_back_is_called_undone(
    done: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(*words: str) -> str:
        line = [*words, "--state-dir", str(done.project.state_dir)]
        assert cli.call(cli.app, line, "agentrunner") == 0
        return capsys.readouterr().out

    before = shown("show", done.id)
    said = shown("undo", done.id)
    assert "2 files put back" in said and "calc.py, new" in said and "brings them again" in said
    screen = shown("show", done.id)
    assert screen.startswith("COMPLETE, UNDONE") and "git " not in screen.partition("Next:")[2]
    assert "undone" in shown("list", "--all")
    assert json.loads(shown("show", done.id, "--json"))["undone"] is True
    shown("undo", done.id)
    assert shown("show", done.id) == before  # also how long it worked and waited
    assert "undone" not in shown("list", "--all")


def test_undo_for_a_program(done: Run, capsys: pytest.CaptureFixture[str]) -> None:
    done.project.write({"calc.py": "# mine\n"})
    line = ["undo", done.id, "--json", "--state-dir", str(done.project.state_dir)]
    expected = {"run_id": done.id, "files": [], "refused": ["calc.py"], "not_kept": []}
    assert cli.call(cli.app, line, "agentrunner") == 2
    assert json.loads(capsys.readouterr().out) == {
        **expected,
        "not_kept": [],
        "undo_taken_back": False,
    }


def test_files_that_were_edited_since_are_refused_by_name(done: Run) -> None:
    done.project.write({"calc.py": "# mine\n"})
    assert undo(done.project.state_dir, done.id).refused == ["calc.py"]
    assert done.project.read("calc.py") == "# mine\n"
    assert done.project.read("new") == "one\n"
    forced = undo(done.project.state_dir, done.id, force=True)
    assert forced.files == ["calc.py", "new"]
    assert done.project.read("calc.py") == SMALL["calc.py"]
    undo(done.project.state_dir, done.id)
    assert done.project.read("calc.py") == "# mine\n"


def test_files_that_only_a_person_wrote_between_two_attempts_stay(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    limit = {"meta": {"max_loops": 0}}
    run.start([plan(), *[work()] * 4], NO_FIX, test=TEST, runner=limit)
    run.project.write({"mine.md": "a note of mine\n"})
    run.resume(message="again")
    shown = diff(run.project.state_dir, run.id)
    assert run.result["changed_files"] == ["calc.py"]
    assert "calc.py" in shown and "mine.md" not in shown
    undone = undo(run.project.state_dir, run.id)
    assert (undone.files, undone.refused) == (["calc.py"], [])
    assert run.project.read("mine.md") == "a note of mine\n"
    assert run.project.read("calc.py") == SMALL["calc.py"]


@pytest.mark.whole
def test_files_the_run_had_nothing_to_do_with_are_left_alone(done: Run) -> None:
    done.project.write({"README.md": "mine\n"})
    undo(done.project.state_dir, done.id)
    assert done.project.read("README.md") == "mine\n"


def test_undo_of_a_waiting_run_and_then_going_on(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    run.start([plan(), work(), consult("Well?"), work(), finish(), assess()], FIX, test=TEST)
    undo(run.project.state_dir, run.id)
    assert run.project.read("calc.py") == SMALL["calc.py"]
    run.answer("Again, please.")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.log("human_edit")[0].data["paths"] == ["calc.py"]


def test_a_repository_that_is_worked_in_is_not_touched(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    refused: list[LockHeld] = []

    def try_it(event: dict[str, Any]) -> None:
        if event["event"] == "worker_started":
            with pytest.raises(LockHeld) as raised:
                undo(run.project.state_dir, event["run_id"])
            refused.append(raised.value)

    run.adjust = lambda options: replace(options, on_event=try_it)
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    assert [error.exit_code for error in refused] == [5]
    assert run.ending == ("COMPLETE", "complete", 0)


def test_what_set_up_made_is_taken_back_too(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    setup = {"command": "echo made > made.txt"}
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST, setup=setup)
    undo(run.project.state_dir, run.id)
    assert not (run.project.repo / "made.txt").exists()


def test_the_diff_of_each_round_and_of_all(done: Run) -> None:
    state_dir = done.project.state_dir
    first, second = (diff(state_dir, done.id, number) for number in (1, 2))
    assert "+one" in first
    assert "calc.py" not in first
    assert "-    return a - b\n+    return a + b\n" in second
    assert "new" not in second.replace("new file", "")
    whole = diff(state_dir, done.id)
    assert "+one" in whole
    assert "+    return a + b" in whole
    stat = diff(state_dir, done.id, stat=True)
    assert "modified  +1 -1  calc.py" in stat
    assert "added     +1 -0  new" in stat
    with pytest.raises(UsageError) as raised:
        diff(state_dir, done.id, 3)
    assert raised.value.code == "unknown-round"
    assert "has 2 rounds; there is no round 3." in str(raised.value)


@pytest.mark.whole
def test_nothing_to_show_before_the_repository_was_looked_at(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    run.start([{"reply": f"No, {number}."} for number in range(4)], test=TEST)
    with pytest.raises(UsageError) as raised:
        diff(run.project.state_dir, run.id)
    assert raised.value.code == "nothing-to-show"


@pytest.mark.whole
def test_a_run_that_changed_nothing_says_so_beside_the_patch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    run.start([plan(), work(), give_up()], "true", test=TEST)
    place = ["--state-dir", str(run.project.state_dir)]
    capsys.readouterr()
    for more, where in (([], ""), (["--round", "1"], " in round 1")):
        assert cli.call(cli.app, ["diff", run.id, *more, *place], "agentrunner") == 0
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err == f"{run.id} has changed no file{where}.\n"
    with pytest.raises(UsageError, match=r"has 1 round; there is no round 2\."):
        diff(run.project.state_dir, run.id, 2)


def test_a_run_of_no_retention_leaves_the_note_and_nothing_else(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    runner = {"retention_days": 0}
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST, runner=runner)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert Path(run.result["note"]).is_file()
    assert list((run.project.state_dir / "runs").iterdir()) == []
    assert RunIndex(run.project.state_dir).runs() == []
    with pytest.raises(UsageError):
        show(run.project.state_dir, run.id)


def test_a_run_of_no_retention_is_kept_while_it_waits(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    script = [plan(), consult("Well?"), give_up()]
    run.start(script, test=TEST, runner={"retention_days": 0})
    assert show(run.project.state_dir, run.id).as_dict()["waiting"]["kind"] == "ask_human"
    run.answer("No.")
    assert list((run.project.state_dir / "runs").iterdir()) == []


def test_ended_runs_are_kept_for_their_days(done: Run, tmp_path: Path) -> None:
    waiting = Run(done.project)
    waiting.start([plan(), consult("Well?")], test=TEST)
    state_dir = done.project.state_dir
    assert show(state_dir, done.id).state == "COMPLETE"
    now = datetime.now(UTC)
    assert collect_garbage(state_dir, now + timedelta(days=13.9))["removed"] == []
    assert collect_garbage(state_dir, now + timedelta(days=14.1)) == {
        "removed": [done.id],
        "kept": [waiting.id],
    }
    with pytest.raises(UsageError):
        show(state_dir, done.id)
    assert show(state_dir, waiting.id).waiting


@pytest.mark.whole
def test_rounds_are_in_the_index(done: Run, tmp_path: Path) -> None:
    (ended,) = RunIndex(done.project.state_dir).runs()
    assert (ended.rounds, ended.rounds_at_most) == (2, 3)
    seen: list[int] = []
    project = Project.make(tmp_path / "other", SMALL)

    def look(event: dict[str, Any]) -> None:
        if event["event"] == "worker_finished":
            seen.extend(row.rounds for row in RunIndex(project.state_dir).runs())

    again = Run(project)
    again.adjust = lambda options: replace(options, on_event=look)
    again.start([plan(), work(), work("Now."), give_up()], TWO_ROUNDS, test=TEST)
    assert seen == [1, 2]


@pytest.mark.series(2)
@pytest.mark.parametrize(("look", "lost"), [("list", ""), ("show", ""), ("show", "log.jsonl")])
def test_an_end_that_a_kill_left_unnoted_is_noted(
    done: Run,
    look: str,
    lost: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if lost:
        (done.folder.root / lost).unlink()
    index = RunIndex(done.project.state_dir)
    (ended,) = index.runs()
    index.record(replace(ended, state="VALIDATING", finished_at=None))
    monkeypatch.chdir(done.project.repo)
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(done.project.state_dir))
    assert cli.call(cli.app, [look], "agentrunner") == 0
    assert "complete" in capsys.readouterr().out.lower()
    (mended,) = index.runs()
    assert mended.state == "COMPLETE" and mended.finished_at
    assert ended.finished_at and mended.finished_at <= ended.finished_at


def test_checkpoints_are_pruned_when_a_run_ends(done: Run) -> None:
    with closing(sqlite3.connect(done.folder.checkpoints)) as database:
        (count,) = database.execute("select count(*) from checkpoints").fetchone()
    assert count == 1
    assert done.state()["state"] == "COMPLETE"


OPEN = plan({"id": "AC-1", "description": "It reads well."})


@pytest.fixture
def to_review(tmp_path: Path) -> Run:
    """A run that mended the bug, and whose one criterion only a person can decide."""
    run = Run(Project.make(tmp_path, SMALL))
    strict = {"completion": "strict", "meta": {"max_loops": 0}}
    run.start([OPEN, work(), finish(), assess()], FIX, test=TEST, runner=strict)
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    return run


def test_what_was_put_back_is_not_accepted_until_it_is_there_again(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, {**SMALL, "tests/run.sh": "true\n"}))
    run.start([OPEN, work(), finish(), assess()], FIX, test=TEST, runner={"meta": {"max_loops": 0}})
    assert run.result["state"] == "NEEDS_REVIEW"
    undo(run.project.state_dir, run.id)
    run.accept("AC-1")
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    (sentence, *_) = run.result["missing"]
    assert sentence.startswith("The acceptance was refused: The run's work is no longer there")
    assert f"agentrunner undo {run.id}. " in sentence
    assert undo(run.project.state_dir, run.id).undo_taken_back
    run.accept("AC-1")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["changed_files"] == ["calc.py"]


@pytest.mark.whole
def test_what_was_put_back_by_hand_comes_back_from_the_run(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, {**SMALL, "tests/run.sh": "true\n"}))
    run.start([OPEN, work(), finish(), assess()], FIX, test=TEST, runner={"meta": {"max_loops": 0}})
    run.project.git("checkout", "--", "calc.py")
    run.accept("AC-1")
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    assert f"agentrunner diff {run.id} --round 1 | git apply" in run.result["missing"][0]
    patch = tmp_path / "patch"
    patch.write_text(diff(run.project.state_dir, run.id, 1))
    run.project.git("apply", str(patch))
    run.accept("AC-1")
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.whole
def test_that_nothing_had_to_change_is_accepted_where_a_person_says_so(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, {**SMALL, "tests/run.sh": "true\n"}))
    run.start([OPEN, work(), finish(), assess()], "true", test=TEST,
              runner={"meta": {"max_loops": 0}})  # fmt: skip
    assert "agentrunner accept --unchanged --reason TEXT" in run.result["missing"][-1]
    said = [one for one in run.result["missing"] if "othing was changed" in one]
    assert len(said) <= 1, said
    run.accept("AC-1", reason="It was right already.")
    assert run.ending == ("NEEDS_REVIEW", "loop_limit", 3)
    assert "--unchanged" in run.result["missing"][0]
    (row,) = run.result["acceptance_criteria"]
    assert (row["status"], row["evidence"]) != ("passed", "accepted")
    run.accept("AC-1", reason="It was right already.", unchanged=True)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert "nothing had to change" in run.result["people"]["decisions"][-1]["asked"]


def test_a_change_that_is_there_is_accepted_as_before(to_review: Run) -> None:
    to_review.accept("AC-1")
    assert to_review.ending == ("COMPLETE", "complete", 0)


@pytest.mark.whole
def test_a_run_that_was_stopped_before_its_first_step_says_so(tmp_path: Path) -> None:
    """As an event handler leaves it that cannot write."""
    run = Run(Project.make(tmp_path, SMALL))

    def fail(event: Any) -> None:
        raise PermissionError(13, "Permission denied", "/root/x")

    run.adjust = lambda options: replace(options, on_event=fail)
    with pytest.raises(PermissionError):
        run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    state_dir = run.project.state_dir
    run_id = RunIndex(state_dir).runs()[0].run_id
    found = show(state_dir, run_id)
    assert (found.state, found.worker_runs, found.changed_files) == ("PENDING", 0, [])
    assert found.text and "before its first step" in found.text
    screen = " ".join(summary_screen(found).split())
    assert "nothing was changed" in screen and "agentrunner resume" in screen
    assert "agentrunner show" not in screen and "undo" not in screen
    with pytest.raises(UsageError) as refused:
        diff(state_dir, run_id)
    assert refused.value.remedy == f"agentrunner resume {run_id}"
