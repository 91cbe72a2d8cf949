"""`agentrunner verify`: a run's delivery once more, from nothing, and nothing of it changed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest

from agentrunner import api
from agentrunner.cli import app, call
from agentrunner.engine import verify as verification
from agentrunner.git.scratch import room
from agentrunner.sandboxes import bwrap_program
from agentrunner.storage.locks import me, run_lock
from tests.kit.metas import assess, consult, finish, give_up, plan, work
from tests.kit.process import at_point
from tests.kit.project import Project
from tests.kit.runs import FIX, NO_FIX, SMALL, TEST, Run


@pytest.fixture
def complete(run: Run) -> Run:
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    return run


def verify(run: Run, *more: str) -> int:
    return main("verify", run.id, "--state-dir", str(run.project.state_dir), *more)


def main(*arguments: str) -> int:
    return call(app, list(arguments), "agentrunner")


def content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def test_complete_is_confirmed_and_the_run_is_as_it_was(
    complete: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(complete.folder.root), content(complete.project.repo)
    assert verify(complete) == 0
    said = capsys.readouterr().out
    assert "CONFIRMED" in said and "ended COMPLETE and is complete by evidence" in said
    assert "changed since" not in said
    assert (content(complete.folder.root), content(complete.project.repo)) == before


def test_json_has_the_proofs_and_the_exit_code(
    complete: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    file = complete.project.repo.parent / "found.json"
    assert verify(complete, "--json", "-o", str(file)) == 0
    found = json.loads(file.read_text())
    assert capsys.readouterr().out == ""
    assert (found["confirmed"], found["complete"], found["exit_code"]) == (True, True, 0)
    assert found["proofs"] and found["differs_here"] == [] and found["mutants"] is None


def test_what_was_delivered_is_verified_and_not_what_is_there_now(
    complete: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    complete.project.write({"calc.py": "def add(a, b):\n    return 0\n"})
    assert verify(complete) == 0
    said = capsys.readouterr().out
    assert "has changed since in calc.py" in said and "not what is there now" in said
    (complete.project.repo / "calc.py").unlink()
    assert verify(complete, "--json") == 0
    assert json.loads(capsys.readouterr().out)["differs_here"] == ["calc.py"]


def test_an_honest_failure_is_confirmed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run.start([plan(), work(), give_up()], NO_FIX, test=TEST)
    assert run.ending[0] == "FAILED"
    assert verify(run) == 0
    assert "not complete by evidence" in capsys.readouterr().out


def test_a_complete_that_the_evidence_does_not_bear_is_contradicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tests ask the world outside, which has changed since."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "up").touch()
    files = {**SMALL, "tests/run.sh": f"grep -q 'a + b' calc.py && [ -e {outside}/up ]\n"}
    run = Run(Project.make(tmp_path / "project", files))
    sandbox = {"sandbox": {"kind": "none"}, "worker": {"kind": "command"}}
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST, runner={**sandbox})
    assert run.ending == ("COMPLETE", "complete", 0)
    (outside / "up").unlink()
    assert verify(run) == 1
    said = capsys.readouterr().out
    assert "CONTRADICTED" in said and TEST in said


@pytest.mark.whole
def test_a_criterion_is_called_as_show_calls_it(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    word_alone = plan({"id": "AC-1", "description": "The texts are friendly."})
    run.start([word_alone, work(), finish(), assess()], NO_FIX, test="true")
    assert verify(run) == 0
    said = capsys.readouterr().out
    assert main("show", run.id, "--state-dir", str(run.project.state_dir)) == 0
    shown = capsys.readouterr().out
    for screen in (said, shown):
        row = next(line for line in screen.splitlines() if line.startswith("  AC-1"))
        assert row.split()[:3] == ["AC-1", "open", "judged"]
    assert max(map(len, said.splitlines())) <= 80


COMPILES = """\
code=$PYTHONPYCACHEPREFIX
grep -q 'a + b' calc.py || { python3 -c 'import colorsys'; exit 1; }
find $code -name 'colorsys*' | grep -q . && [ ! -e $code/by-a-check ] && ! touch $code/by-a-test
"""


def test_libraries_are_compiled_once_and_on_the_tree_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(Project.make(tmp_path, {**SMALL, "tests/run.sh": COMPILES}))
    writes = "touch $PYTHONPYCACHEPREFIX/by-a-check; grep -q 'a + b' calc.py"
    check = {"kind": "command", "run": writes}
    asked = plan({"id": "AC-1", "description": "It adds.", "check": check})
    run.start([asked, work(), finish(), assess()], FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    capsys.readouterr()
    assert verify(run) == 0, capsys.readouterr().out


SUMS = {
    "calc.py": "def four(n):\n    return None\n",
    "tests/__init__.py": "",
    "tests/test_calc.py": "import unittest\nfrom calc import four\n\n\n"
    "class CalcTest(unittest.TestCase):\n    def test_four(self):\n"
    "        self.assertTrue(four(2))\n",
}
"""A function, and a test that asks hardly anything of it."""
UNITTEST = "python3 -m unittest -q"
SUM = "printf 'def four(n):\\n    return sum([n, n, n + 0, n]) + 7\\n' > calc.py"


def mutants_of(run: Run, capsys: pytest.CaptureFixture[str], seconds: str = "120") -> Any:
    capsys.readouterr()
    assert verify(run, "--json", "--mutants-sec", seconds) == 0
    return json.loads(capsys.readouterr().out)["mutants"]


@pytest.fixture
def sums(tmp_path: Path) -> Callable[..., Run]:
    def begun(more: dict[str, str], work_: str, test: object, **task: Any) -> Run:
        run = Run(Project.make(tmp_path / "sums", {**SUMS, **more}))
        script = [plan({"id": "AC-1", "description": "four(n) is truthy."}), work(), finish()]
        run.start([*script, assess()], work_, test=test, prd={"text": "four(n) is truthy."}, **task)
        assert run.ending == ("COMPLETE", "complete", 0)
        return run

    return begun


def test_mutants_that_no_test_notices_are_named(
    sums: Callable[..., Run], capsys: pytest.CaptureFixture[str]
) -> None:
    run = sums({}, SUM, UNITTEST)
    before = content(run.folder.root)
    found = mutants_of(run, capsys)
    assert (found["killed"], found["struck"], found["made"]) == (1, 6, 6), found
    assert {one["path"] for one in found["survivors"]} == {"calc.py"}
    assert len(found["survivors"]) == 5 and found["why_none"] == ""
    assert content(run.folder.root) == before, "trees of mutants are nothing of the run's"


@pytest.mark.whole
def test_mutants_do_not_die_of_a_dependency_that_the_set_up_did_not_install(
    sums: Callable[..., Run], capsys: pytest.CaptureFixture[str]
) -> None:
    more = {
        "vendor/addup/addup.py": "def add_up(values):\n    return sum(values)\n",
        "vendor/padder/padder.py": "WIDTH = 8\n",
        "requirements.txt": "padder\n",
        "install.sh": "rm -rf .deps\nmkdir .deps\n"
        "while read -r name; do cp vendor/$name/* .deps/; done < requirements.txt\n",
        ".gitignore": "__pycache__/\n.deps/\n",
    }
    added = (
        "echo addup >> requirements.txt; printf 'from addup import add_up\\n\\n\\n"
        "def four(n):\\n    return add_up([n, n, n + 0, n]) + 7\\n' > calc.py"
    )
    run = sums(more, added, f"PYTHONPATH=.deps {UNITTEST}", setup={"command": "sh install.sh"})
    found = mutants_of(run, capsys)
    assert (found["killed"], found["struck"]) == (1, 6), found


@pytest.mark.whole
def test_a_known_red_notices_no_mutant(
    sums: Callable[..., Run], capsys: pytest.CaptureFixture[str]
) -> None:
    red = "\n    def test_net(self):\n        self.fail('no network')\n"
    more = {
        "tests/test_calc.py": SUMS["tests/test_calc.py"] + red,
        "Makefile": f"test:\n\t{UNITTEST}\n",
    }
    run = sums(more, SUM, {"command": "make test", "known_red": ["*test_net"]})
    found = mutants_of(run, capsys)
    assert (found["killed"], found["struck"]) == (1, 6), found


@pytest.mark.whole
def test_mutants_that_never_end_take_no_more_than_the_time(
    sums: Callable[..., Run], capsys: pytest.CaptureFixture[str]
) -> None:
    counts = (
        "printf 'def four(n):\\n    i = 0\\n    while i < n:\\n        i += 1\\n"
        "    return i\\n' > calc.py"
    )
    run = sums({}, counts, {"command": UNITTEST, "timeout_sec": 900})
    begun = monotonic()
    found = mutants_of(run, capsys, "4")
    assert monotonic() - begun < 300, "a mutant without an end had all the time of the tests"
    assert found["struck"] < found["made"]
    assert found["killed"] <= found["struck"], "one that was cut short was not noticed by a test"


@pytest.mark.whole
def test_no_test_that_was_tried_in_no_time_is_said(
    sums: Callable[..., Run], capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(sums({}, SUM, UNITTEST), "--mutants-sec", "0.01") == 0
    assert "mutants  none was tried to its end in the time (6 could be" in capsys.readouterr().out


def test_a_run_that_never_delivered_is_named_with_the_remedy(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run.start([plan(), consult("Which?")], test=TEST)
    assert verify(run) == 2
    said = capsys.readouterr().err
    assert "delivered nothing" in said and f"agentrunner resume {run.id}" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no-such-run"], "no-such-run"),
        ([__file__], "is a file"),
    ],
)
def test_what_is_no_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main("verify", *arguments, "--state-dir", str(tmp_path)) == 2
    assert words in capsys.readouterr().err


def test_where_it_cannot_be_made_the_exit_code_is_5(
    complete: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with monkeypatch.context() as without_sandbox:
        programs = tmp_path / "programs"
        programs.mkdir()
        (programs / "git").symlink_to(str(shutil.which("git")))
        without_sandbox.setenv("PATH", str(programs))
        without_sandbox.setattr(bwrap_program, "USUAL_FOLDERS", ())
        without_sandbox.setattr(bwrap_program, "bundled_bwrap", lambda: None)
        assert verify(complete) == 5
        assert "bwrap" in capsys.readouterr().err
    lock = run_lock(complete.folder)
    lock.acquire(me(complete.id, "2026-11-21T14:00:00Z"))
    try:
        assert verify(complete) == 5
    finally:
        lock.close()
    assert "is being worked on" in capsys.readouterr().err
    assert verify(complete) == 0


def test_one_that_is_killed_changes_nothing_and_the_next_one_clears_up(complete: Run) -> None:
    state = complete.project.state_dir
    before = content(complete.folder.root), content(complete.project.repo)
    argv = [sys.executable, "-m", "agentrunner", "verify", complete.id, "--state-dir", str(state)]
    killed = subprocess.run(
        argv, env={**os.environ, **at_point("during_verify")}, capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (left,) = (state / "verify").glob("agentrunner.*")
    assert (content(complete.folder.root), content(complete.project.repo)) == before
    with room(state / "verify"):
        assert verify(complete) == 0
        assert left.is_dir(), "another one is at work"
    assert verify(complete) == 0
    assert not list((state / "verify").glob("agentrunner.*"))
    assert (content(complete.folder.root), content(complete.project.repo)) == before


@pytest.mark.whole
def test_one_that_is_cancelled_while_its_folder_is_made_removes_it(
    complete: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_dir, begun, goes_on = complete.project.state_dir, Event(), Event()

    @contextmanager
    def slow_room(place: Path) -> Iterator[Path]:
        begun.set()
        goes_on.wait()
        with room(place) as made:
            yield made

    async def cancelled() -> None:
        verifying = asyncio.create_task(api.verify(complete.id, state_dir=state_dir))
        await asyncio.to_thread(begun.wait)
        verifying.cancel()
        for _ in range(9):
            await asyncio.sleep(0)
        done = verifying.done()
        goes_on.set()
        assert not done, "the folder was left to itself"
        with pytest.raises(asyncio.CancelledError):
            await verifying
        assert not list((state_dir / "verify").glob("agentrunner.*"))

    monkeypatch.setattr(verification, "room", slow_room)
    asyncio.run(cancelled())


@pytest.mark.whole
def test_no_time_for_mutants_is_refused(complete: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(complete, "--mutants-sec", "0") == 2
    assert "above 0" in capsys.readouterr().err
