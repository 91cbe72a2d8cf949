"""`init` and `doctor` with a real box: what is proposed is what was seen to run."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agentrunner import cli
from agentrunner.commands.init import asked_yes
from agentrunner.commands.trying import SandboxTrial
from agentrunner.discovery.found import FoundCommand
from tests.kit.bwrap import require_bwrap
from tests.kit.files import write

TESTS = "def test_a(): pass\ndef test_b(): assert 1 == 2, 'a message'\n"
FILES = {
    "Makefile": "test:\n\t@echo no such thing here >&2; exit 3\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-rxXs'\n",
    "tests/test_a.py": TESTS,
}

PYTEST = """\
#!{python}
import os, sys
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
from pytest import console_main
sys.exit(console_main())
"""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    require_bwrap()
    place = write(tmp_path / "shop", FILES)
    monkeypatch.chdir(place)
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    # The interpreter of these tests has pytest; its own plug-ins take two seconds to load.
    bin_folder = write(tmp_path / "tools/bin", {"pytest": PYTEST.format(python=sys.executable)})
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    return place


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.call(cli.app, list(arguments), "agentrunner")
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_that_ran_tests_is_written(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(capsys, "init", "a")
    assert code == 0
    assert "Trying 2 test commands on a copy of the files, without network. Ctrl-C" in err
    for command in ("make test", "pytest -q"):
        assert f"  running `{command}` in the sandbox (at most 60 s) ...\n" in err
    written = (repo / "a.md").read_text().splitlines()[1]
    assert written.startswith('test: "pytest -q"    # pyproject.toml, line 1; 1 passed, 1 failed,')
    first, second = (line for line in out.splitlines() if " pytest -q " in line or " make " in line)
    assert first.split()[0] == "tests" and "1 passed, 1 failed" in first
    assert second.split()[0] == "or" and "exit 3, no test was" in second
    assert "tests/test_a.py::test_b" in out  # red before anything was changed
    assert "the tests start" not in out


def test_nothing_of_the_repository_is_changed_by_trying(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "pyproject.toml").unlink()
    (repo / ".gitignore").write_text("build/\n")
    (repo / "build").mkdir()
    (repo / "build" / "made").write_text("before")
    (repo / "Makefile").write_text(
        "test:\n\tcat build/made; touch here build/ran; rm tests/test_a.py; echo > build/made\n"
    )
    before = {path: path.read_text() for path in repo.rglob("*") if path.is_file()}
    code, out, _ = call(capsys, "init", "a")
    assert code == 0 and "make test" in out
    (repo / "a.md").unlink()
    assert {path: path.read_text() for path in repo.rglob("*") if path.is_file()} == before


def test_the_language_and_time_zone_of_ci_are_tried_and_written(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ci = repo / ".github/workflows/ci.yml"
    ci.parent.mkdir(parents=True)
    ci.write_text(
        "env:\n  TZ: Asia/Tokyo\n  SECRET: x\njobs:\n  a:\n    steps:\n      - run: pytest -q\n"
    )
    (repo / "tests/test_a.py").write_text(
        "import os\ndef test_a(): assert os.environ['TZ'] == 'Asia/Tokyo'\n"
    )
    code, out, _ = call(capsys, "init", "a")
    assert code == 0 and "1 passed, 0 failed" in out
    written = (repo / "a.md").read_text()
    assert 'env: {TZ: "Asia/Tokyo"}    # .github/workflows/ci.yml sets it for the tests' in written
    assert "SECRET" not in written + out


def test_nothing_is_run_where_that_is_not_wanted(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "Makefile").write_text("test:\n\ttouch ran\n")
    code, out, err = call(capsys, "init", "a", "--no-try")
    assert code == 0 and "Trying" not in err
    assert not (repo / "ran").exists()
    assert "not tried: --no-try" in out
    assert "# Makefile, line 1; not tried: --no-try" in (repo / "a.md").read_text()


def test_a_file_that_is_there_is_left_and_nothing_is_run(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "a.md").write_text("mine")
    (repo / "Makefile").write_text("test:\n\ttouch ran\n")
    code, _, err = call(capsys, "init", "a")
    assert code == 2 and "a.md is there already" in err
    assert (repo / "a.md").read_text() == "mine" and not (repo / "ran").exists()


def test_in_the_middle_of_a_merge_nothing_is_run_or_written(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / ".git").mkdir()
    (repo / ".git" / "MERGE_HEAD").write_text("")
    code, _, err = call(capsys, "init", "a")
    assert code == 5 and "error[merge-in-progress]" in err and "running" not in err
    assert not (repo / "a.md").exists()


@pytest.mark.parametrize(
    ("lines", "meant"),
    [("\n", True), ("maybe\nyes\n", True), ("はい\n", True), ("x\nNo\n", False), ("", None)],
)
def test_yes_or_no_is_asked_until_it_is_one_of_them(
    lines: str, meant: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    assert asked_yes("Add it? [Y/n] ") is meant


def test_doctor_says_only_what_was_seen(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / "pyproject.toml").unlink()
    (repo / "tests/test_a.py").unlink()
    _, out, _ = call(capsys, "doctor")
    said = " ".join(out.split())
    assert "FAIL tests make test: exit 3, no test was seen to run: no such thing here" in said
    assert "starts in the sandbox" not in said


def test_doctor_is_not_ready_where_no_run_could_begin(
    repo: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    code, out, _ = call(capsys, "doctor", "--no-try", "--state-dir", str(tmp_path / "file" / "x"))
    assert code == 5 and "Not ready: state folder: " in " ".join(out.split())
    (repo / ".git").mkdir()
    (repo / ".git" / "MERGE_HEAD").write_text("")
    code, out, _ = call(capsys, "doctor", "--no-try")
    assert code == 5 and "A merge is in progress" in out


def test_options_of_plug_ins_that_are_not_installed_are_left_out(
    repo: Path, tmp_path: Path
) -> None:
    found = FoundCommand("pytest --no-such-plug-in auto -q", "ci.yml, line 3")
    trial = SandboxTrial(repo, [found], tmp_path / "state").run()
    assert trial.best is not None
    assert trial.best.found.command == "pytest -q"
    assert trial.best.summary.startswith("1 passed, 1 failed")


def test_at_most_three_are_tried_and_none_that_must_install_first(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [FoundCommand("false", "w", needs="it runs `npm ci` first")]
    commands += [FoundCommand(f"exit {number}", "w") for number in range(3, 9)]
    trial = SandboxTrial(repo, commands, tmp_path / "state").run()
    assert re.findall("running `(.*?)`", capsys.readouterr().err) == ["exit 3", "exit 4", "exit 5"]
    said = {seen.found.command: seen.summary for seen in trial.seen}
    assert said["false"] == "not tried: it runs `npm ci` first"
    assert said["exit 3"].startswith("exit 3, no test was seen to run")


def test_ctrl_c_goes_on_with_what_the_table_says(repo: Path, tmp_path: Path) -> None:
    """The first candidate is through; the second, which never ends, is interrupted."""
    script = (
        "import pathlib; from agentrunner.commands.trying import SandboxTrial;"
        "from agentrunner.discovery.found import FoundCommand;"
        f"t = SandboxTrial(pathlib.Path({str(repo)!r}),"
        " [FoundCommand(c, 'w') for c in ('pytest -q', 'sleep 600', 'exit 9')],"
        f" pathlib.Path({str(tmp_path / 'state')!r})).run();"
        "print([(s.found.command, s.summary.split(',')[0]) for s in t.seen], t.stopped)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    stop = threading.Timer(150, process.kill)
    stop.start()
    assert process.stdout is not None
    lines = iter(process.stdout.readline, "")
    for line in lines:
        if "running `sleep" in line:
            process.send_signal(signal.SIGINT)
            break
    rest = "".join(lines)
    process.wait()
    process.stdout.close()
    stop.cancel()
    assert "('pytest -q', '1 passed'), ('sleep 600', 'not tried: Ctrl-C')" in rest
    assert rest.strip().endswith("True")


def test_in_a_part_of_a_repository_it_is_about_that_part(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = repo / "services" / "api"
    (part / "tests").mkdir(parents=True)
    (part / "calc.py").write_text("def one(): return 2\n")
    (part / "tests" / "__init__.py").write_text("")
    (part / "tests" / "test_calc.py").write_text(
        "import unittest\nfrom calc import one\n"
        "class CalcTest(unittest.TestCase):\n"
        "    def test_one(self): self.assertEqual(one(), 1)\n"
    )
    (repo / ".git").mkdir()
    (repo / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    monkeypatch.chdir(part)
    code, out, err = call(capsys, "init", "a", "--no-gitignore")
    assert code == 0 and "in services/api in the sandbox" in err
    assert "part" in out and "0 passed, 1 failed" in out
    written = (part / "a.md").read_text()
    assert 'test: {command: "python3 -m unittest", cwd: "services/api"}' in written
    assert "(check: `cd services/api && a command" in written
    assert "file services/api/README.md contains" in written
    said = " ".join(call(capsys, "doctor")[1].split())
    assert "part services/api: the tests run there" in said, said[:900]


@pytest.mark.parametrize("by", ["nobody", "settings", "policy", "option", "mistake"])
def test_a_trial_is_shown_the_caches_that_a_run_would_be_shown(
    repo: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    by: str,
) -> None:
    home = tmp_path / "home"
    write(home, {"go/pkg/mod/example.test/x@v1.0.0/x.go": "package x\n"})
    write(repo, {"go.mod": "module m\n"})
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nsandbox: {caches: [cargo]}\n")
    monkeypatch.setenv("HOME", str(home))
    options = ["--policy", str(policy)] if by == "option" else []
    if by == "policy":
        monkeypatch.setenv("AGENTRUNNER_POLICY", str(policy))
    if by in ("settings", "mistake"):
        text = "none" if by == "settings" else "nothing-known"
        mine = {"config.yaml": f"version: 1\nrunner: {{sandbox: {{caches: {text}}}}}\n"}
        write(home / ".config/agentrunner", mine)
    said = " ".join(call(capsys, "doctor", "--no-try", *options)[1].split())
    assert ("caches go: what is downloaded is seen" in said) == (by == "nobody"), said
    if by != "option":
        found = [FoundCommand("test -e ~/go/pkg/mod/example.test; exit $?", "w")]
        best = SandboxTrial(repo, found, tmp_path / "state").run().best
        assert best is not None
        assert best.exit_code == (0 if by == "nobody" else 1)
