"""Large files and large trees: seen in the clean room, named where one changed, said beforehand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentrunner import cli
from agentrunner.engine.queries import show
from agentrunner.git import snapshots
from agentrunner.git.process import Git
from agentrunner.screens.summary import summary_screen
from tests.kit.metas import assess, finish, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, Run

DATA = "x" * (2 << 20)
TEST = "grep -q 'a + b' calc.py && test $(wc -c < data.bin) -eq 2097152"
LIMITED = {"sandbox": {"keep_files_up_to": "1m"}, "meta": {"max_loops": 0}}
SCRIPT: list[Any] = [plan(), work(), finish(), assess()]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """With a large file that git does not know: no commit has its content."""
    project = Project.make(tmp_path, SMALL)
    project.write({"data.bin": DATA})
    return Run(project)


def warned(run: Run) -> dict[str, str]:
    return {one["code"]: one["message"] for one in run.project.told("warning")}


def test_an_unchanged_one_is_in_the_clean_room_without_being_copied(run: Run) -> None:
    untouched = "test ! -w data.bin && grep -q 'a + b' calc.py && test -s data.bin"
    run.start(SCRIPT, FIX, test=untouched, runner=LIMITED)
    assert run.result["findings"] == []
    assert run.result["state"] == "COMPLETE", run.result["missing"]
    assert "data.bin is a file of more than 1m" in warned(run)["large-files"]
    events = [one["event"] for one in run.project.events]
    assert events.index("warning") < events.index("worker_started")


def test_a_changed_one_is_for_a_person(run: Run) -> None:
    run.start(SCRIPT, f"{FIX}; printf y >> data.bin; truncate -s 2097152 data.bin",
              test=TEST, runner=LIMITED)  # fmt: skip
    assert run.result["state"] == "NEEDS_REVIEW"
    (finding,) = [one for one in run.result["findings"] if one["code"] == "unkept"]
    assert finding["paths"] == ["data.bin"]
    (missing,) = [text for text in run.result["missing"] if "data.bin" in text]
    assert "agentrunner accept" in missing
    assert run.accept()["state"] == "COMPLETE"


def test_one_that_the_worker_made_is_verified_like_any_other(run: Run) -> None:
    hidden = f"{FIX}; head -c 3000000 /dev/zero > made.bin"
    run.start(SCRIPT, hidden, test=f"{TEST}; test ! -e made.bin", runner=LIMITED)
    assert run.result["state"] == "FAILED"
    assert not any(one["code"] == "unkept" for one in run.result["findings"])


@pytest.mark.whole
def test_all_of_it_is_kept_up_to_the_size_that_a_person_says(run: Run) -> None:
    kept = {**LIMITED, "sandbox": {"keep_files_up_to": "4m"}}
    run.start(SCRIPT, f"{FIX}; printf y >> data.bin", test="grep -q 'a + b' calc.py", runner=kept)
    assert run.result["state"] == "COMPLETE", run.result["missing"]
    assert "large-files" not in warned(run)


NEEDS = "grep -q 'a + b' calc.py && (test -s model.dat || (echo model.dat is missing; false))"


def test_an_ignored_one_that_the_red_tests_name_is_told_of(run: Run) -> None:
    run.project.write({".gitignore": "*.dat\n*.log\n"})
    makes = f"{FIX}; head -c 3000000 /dev/zero | tee model.dat > other.log; mkfifo queue"
    run.start(SCRIPT, makes, test=NEEDS)
    assert run.result["state"] == "FAILED"
    (finding,) = [one for one in run.result["findings"] if one["code"] == "checkout_lacks"]
    assert finding["paths"] == ["model.dat"]
    (finding,) = [one for one in run.result["findings"] if one["code"] == "not_held"]
    assert finding["paths"] == ["queue"] and not finding["blocks"]
    assert "left-out" not in warned(run)


def test_an_ignored_one_that_the_tests_lack_from_the_start_is_told_at_once(run: Run) -> None:
    run.project.write({".gitignore": "*.dat\n", "model.dat": DATA})
    needs = "test -s model.dat || (echo no model.dat; exit 1)"
    run.start([plan(), work(), finish()], FIX, test=needs, runner={"meta": {"max_loops": 0}})
    assert "name model.dat" in warned(run)["left-out"]
    codes = [one.get("code") for one in run.project.events if one["event"] != "check"]
    begun = [one["event"] for one in run.project.events].index("worker_started")
    assert "left-out" in codes[:begun]


@pytest.mark.whole
def test_an_ignored_one_that_is_deleted_or_changed_is_told_of_and_asks_nothing(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run.project.write({".gitignore": "*.iso\n*.log\n"} | dict.fromkeys(
        ("gone.iso", "more.iso", "same.iso", "tests.log"), DATA))  # fmt: skip
    worker = f"{FIX}; rm gone.iso; echo >> more.iso; echo >> tests.log; cp same.iso new.iso"
    writes = "head -c 2000000 /dev/zero > tests.log; grep -q 'a + b' calc.py"
    run.start(SCRIPT, worker, test=writes)
    assert run.result["state"] == "COMPLETE", run.result["missing"]
    (finding,) = run.result["findings"]
    assert (finding["code"], finding["blocks"]) == ("ignored_lost", False)
    assert finding["paths"] == ["gone.iso", "more.iso"]
    assert "gone.iso, more.iso" in run.note()
    assert "gone.iso, more.iso" in " ".join(
        summary_screen(show(run.project.state_dir, run.id)).split()
    )
    line = ["undo", run.id, "--no-input", "--state-dir", str(run.project.state_dir)]
    assert cli.call(cli.app, line, "agentrunner") == 0
    out = capsys.readouterr().out
    for name in ("gone.iso", "more.iso", "tests.log"):
        assert f"cannot be put back, what was in it is not kept: {name}" in out
    assert "same.iso" not in out and "new.iso" not in out


@pytest.mark.whole
def test_force_is_not_proposed_after_force(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run.start(SCRIPT, f"{FIX}; echo >> data.bin", test="grep -q 'a + b' calc.py", runner=LIMITED)
    line = ["undo", run.id, "--no-input", "--state-dir", str(run.project.state_dir)]
    assert cli.call(cli.app, line, "agentrunner") == 2
    assert "--force   the others" in capsys.readouterr().out
    assert cli.call(cli.app, [*line, "--force"], "agentrunner") == 2
    out = capsys.readouterr().out
    assert "Next" not in out and "is not kept: data.bin" in out
    assert run.project.read("calc.py") == SMALL["calc.py"]


def test_a_large_tree_is_listed_once_in_a_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MOST_LISTED", 100)
    project = Project.make(tmp_path, {f"src/{number}.txt": "x\n" for number in range(600)})
    asked: Counter[str] = Counter()
    ask = Git.run

    def counting(git: Git, *command: str, **options: Any) -> bytes:
        asked[command[0]] += 1
        return ask(git, *command, **options)

    monkeypatch.setattr(Git, "run", counting)
    run = Run(project)
    run.start(SCRIPT, "echo y > src/1.txt", title="Change it.")
    assert run.result["changed_files"]
    assert asked["ls-tree"] == 1, asked
    # No command decides, so no trees are made for one: that takes git's index each time.
    assert asked["read-tree"] == 0, asked
