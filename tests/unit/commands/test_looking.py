"""`list` with filters, `-o`, and the overview; reading nothing but what they need."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentrunner import api
from agentrunner.commands import look
from tests.unit.commands.shell import Shell

DONE = {"finished_at": "2026-11-21T06:00:00Z"}


@pytest.fixture
def runs(shell: Shell) -> Shell:
    shell.add_run("old-1111", state="COMPLETE", **DONE)
    shell.add_run("red-2222", state="FAILED", **DONE)
    shell.add_run("look-3333", state="NEEDS_REVIEW", **DONE)
    shell.add_run("asks-4444", state="PLANNING", waiting="plan")
    shell.add_run("gone-5555", state="RUNNING")
    return shell


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["gone", "asks", "look", "red", "old"]),
        (["-n", "2"], ["gone", "asks"]),
        (["--state", "waiting"], ["asks"]),
        (["--state", "stopped"], ["gone"]),
        (["--state", "needs review"], ["look"]),
        (["--state", "NEEDS_REVIEW"], ["look"]),
        (["--state", "fail"], ["red"]),
        (["--state", "complete", "-n", "5"], ["old"]),
        (["--state", "running"], []),
    ],
)
def test_list_is_filtered(options: list[str], expected: list[str], runs: Shell) -> None:
    assert runs("list", *options, "--json") == 0
    assert [line["run_id"][:-5] for line in runs.lines] == expected
    words = {"gone": "stopped", "asks": "waiting for you", "look": "needs review"}
    words |= {"red": "failed", "old": "complete"}
    assert [line["stands"] for line in runs.lines] == [words[name] for name in expected]
    assert runs("list", *options) == 0
    assert all(name in runs.out for name in expected)


def test_what_was_put_back_is_listed_by_the_word_of_the_list(runs: Shell) -> None:
    runs.add_run("back-6666", state="COMPLETE", undone=True, **DONE)
    for word in ("undone", "undo"):
        assert runs("list", "--state", word, "--json") == 0
        assert [(line["run_id"], line["stands"]) for line in runs.lines] == [
            ("back-6666", "undone")
        ]
    assert runs("list", "--state", "complete") == 0 and "back-6666" not in runs.out


def test_what_no_run_can_be_is_an_error(runs: Shell) -> None:
    assert runs("list", "--state", "faild") == 2
    assert "did you mean failed?" in runs.err


def test_what_is_left_out_is_said(runs: Shell) -> None:
    runs("list", "-n", "1")
    assert "4 older runs not shown: list -n N" in runs.out
    runs("list", "--state", "running")
    assert runs.out.splitlines() == [
        "No runs are running in this repository.",
        "other repositories:  agentrunner list --all",
    ]


def test_output_goes_to_a_file_whole(runs: Shell) -> None:
    place = runs.repo.parent / "runs.jsonl"
    assert runs("list", "--json", "-o", str(place)) == 0
    assert runs.out == "" and len(place.read_text().splitlines()) == 5
    before = place.read_text()
    assert runs("show", "nothing", "-o", str(place)) == 2
    assert place.read_text() == before  # an error writes nothing
    assert runs("list", "-o", "/nowhere/x") == 2 and "cannot be written" in runs.err


def test_explain_and_config_are_told_as_json(runs: Shell) -> None:
    runs("explain", "busy", "--json")
    assert runs.lines[0]["code"] == "busy" and runs.lines[0]["text"].startswith("# busy")
    runs("explain", "--json")
    assert "busy" in runs.lines[0]["codes"]
    runs("config", "show", "--all", "--json")
    keys = {one["key"]: one for one in runs.lines[0]["settings"]}
    assert keys["runner.worker.kind"]["from"] == "default"


def test_gc_tells_what_it_deleted_as_json(runs: Shell) -> None:
    from agentrunner.storage.index import RunIndex

    assert RunIndex(runs.repo.parent / "state").runs()
    assert runs("logs", "old-1111", "--json") in (0, 1)


@pytest.mark.parametrize("arguments", [["list"], ["show", "--help"], ["diff", "--help"]])
def test_looking_waits_for_no_engine(arguments: list[str], runs: Shell) -> None:
    script = (
        "import sys; from agentrunner import cli; cli.call(cli.app, sys.argv[1:], 'agentrunner');"
        "import agentrunner.engine.queries, agentrunner.screens.summary;"
        "names = {'langgraph', 'jinja2', 'openai', 'agentrunner.state.run_state'};"
        "print(*sorted(names & set(sys.modules)), file=sys.stderr)"
    )
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.split() == []


@pytest.mark.parametrize("shut", ["list >&-", "list --json >&-", "help >&-", "list 2>&-"])
def test_a_closed_pipe_is_no_error(shut: str, runs: Shell) -> None:
    program = Path(sys.executable).with_name("agentrunner")
    done = subprocess.run(
        ["sh", "-c", f"{program} {shut}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_away_is_no_error(runs: Shell) -> None:
    program = Path(sys.executable).with_name("agentrunner")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [program, "schema", "task"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_s_report_is_json(runs: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentrunner.commands import setup
    from agentrunner.screens.doctor import DoctorItem, DoctorReport

    report = DoctorReport(
        "here", [("Sandboxes", [DoctorItem("ok", "bwrap", "0.9")])], "Ready", ready=True
    )
    monkeypatch.setattr(setup, "examine", lambda *_, **__: report)
    assert runs("doctor", "--json") == 0
    told = json.loads(runs.out)
    assert told["ready"] is True and told["sections"][0][1][0]["name"] == "bwrap"


def test_a_terminal_without_utf_8_is_written_to(runs: Shell) -> None:
    runs.add_run("japanese-6666", state="COMPLETE", title="合計 – 個数", **DONE)
    program = Path(sys.executable).with_name("agentrunner")
    environ = {**os.environ, "PYTHONIOENCODING": "latin-1", "COLUMNS": "80"}
    done = subprocess.run([program, "list"], capture_output=True, env=environ, check=False)
    assert done.returncode == 0 and b"japanese-6666" in done.stdout and b"?" in done.stdout


def test_gc_says_of_which_repositories_it_deleted(runs: Shell) -> None:
    runs.add_run("else-6666", state="COMPLETE", repo="/srv/other", **DONE)
    assert runs("gc", "--older-than", "0") == 0
    assert runs.out.splitlines() == ["4 runs deleted.", "  1 of /srv/other", f"  3 of {runs.repo}"]


@pytest.mark.parametrize(
    ("options", "typed", "deleted"),
    [([], "n\n", False), ([], "", False), ([], "y\n", True), (["--yes"], "", True)],
)
def test_gc_asks_in_a_terminal(
    options: list[str], typed: str, deleted: bool, runs: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "interactive", lambda output: not output.json)
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert runs("gc", "--older-than", "0", "--max-size", "1g", *options) == 0
    assert ("3 runs deleted." in runs.out) is deleted
    assert (f"  old-1111   {runs.repo}\n" in runs.err) is (not options)
    runs("list", "--json")
    assert len(runs.lines) == (2 if deleted else 5)


def test_ctrl_c_while_a_run_is_only_starting_is_a_sentence(
    runs: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "resume", interrupted)
    assert runs("resume", "gone-5555") == 130
    assert "Interrupted. It was only starting" in runs.err
    assert runs("resume", "gone-5555", "--json") == 130
    assert [(one["event"], one["reason"]) for one in runs.lines] == [("result", "interrupted")]
