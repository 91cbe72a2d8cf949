"""The person's command: it gets the facts, and whatever it does, the run does not notice."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from agentrunner.commands.notify import KEPT, WHERE_SETTINGS, Notifier, kept_notifier, notifier_of
from agentrunner.errors import UsageError
from tests.kit.files import write
from tests.unit.commands.shell import Shell


def keeping(place: Path) -> str:
    """A command that writes what it gets into files of a folder."""
    code = (
        "import os, pathlib, sys; p = pathlib.Path(sys.argv[1]);"
        "open(p / 'told', 'a').write(sys.stdin.read() + '\\n');"
        "known = os.environ['AGENTRUNNER_EVENT'] + os.environ['AGENTRUNNER_TEXT'];"
        "open(p / 'env', 'a').write(known)"
    )
    return shlex.join([sys.executable, "-c", code, str(place)])


def test_it_gets_the_facts_as_json_and_in_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notifier = notifier_of(keeping(tmp_path), {"PATH": ""})
    assert notifier is not None
    notifier.send("needs_you", {"run_id": "a-1", "text": "which?\x1b[2J\nnow\0", "n": 1})
    assert notifier.close() == ""
    told = json.loads((tmp_path / "told").read_text())
    assert told == {"event": "needs_you", "run_id": "a-1", "text": "which?\x1b[2J\nnow\0", "n": 1}
    assert (tmp_path / "env").read_text() == "needs_youwhich? now"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["sh", "-c", "echo no bus >&2; exit 3"], "exits 3: no bus"),
        (["sh", "-c", "trap '' TERM; while :; do read -r line; done"], "was ended after 0.2 s"),
        (["/nowhere/at-all"], "cannot be started"),
        (["sh", "-c", "exec <&-; exit 1"], "exits 1"),
    ],
)
def test_what_goes_wrong_is_said_once(argv: list[str], said: str) -> None:
    notifier = Notifier(argv, WHERE_SETTINGS, limit_sec=0.2)
    for _ in range(2):
        notifier.send("ended", {"text": "x" * 100_000})
    problem = notifier.close()
    assert problem.startswith(WHERE_SETTINGS) and said in problem
    notifier.send("ended", {})
    assert notifier.close() == ""


@pytest.mark.parametrize("option", ["say 'x", "no-such-program-here x"])
def test_an_option_that_is_no_command_is_refused_at_once(option: str, shell: Shell) -> None:
    assert shell("run", "t.yaml", "--notify", option) == 2
    assert "error[bad-option]: --notify" in shell.err and shell.engine.asked == []
    with pytest.raises(UsageError):
        notifier_of(option)


def test_settings_of_the_person_name_it_and_those_of_a_repository_may_not(
    shell: Shell, tmp_path: Path
) -> None:
    assert shell("config", "set", "notify", keeping(tmp_path)) == 0
    assert shell("run", "t.yaml") == 0
    told = json.loads((tmp_path / "told").read_text())
    assert (told["event"], told["state"], told["next"]) == (
        "ended", "COMPLETE", f"agentrunner show {told['run_id']}",
    )  # fmt: skip
    assert shell("run", "t.yaml", "--notify", "") == 0
    assert (tmp_path / "told").read_text().count("ended") == 1, "an empty option is none"
    (shell.repo / "agentrunner.yaml").write_text("notify: touch /tmp/x\n")
    assert shell("run", "t.yaml") == 2
    assert "A repository may not set notify" in " ".join(shell.err.split())


def test_it_stays_with_the_run_for_who_answers(shell: Shell, tmp_path: Path) -> None:
    run_id = str(shell.engine.events[0]["run_id"])
    shell.add_run(run_id, state="RUNNING", waiting="plan")

    def told() -> int:
        place = tmp_path / "told"
        return place.read_text().count('"ended"') if place.exists() else 0

    assert shell("run", "t.yaml", "--notify", keeping(tmp_path)) == 0
    assert told() == 1
    assert shell("answer", run_id, "1") == 0
    assert told() == 2
    assert shell("resume", run_id, "--notify", "true") == 0
    assert shell("answer", run_id, "1") == 0
    assert told() == 2, "the new one took its place"
    assert shell("config", "set", "notify", keeping(tmp_path)) == 0
    assert shell("resume", run_id, "--notify", "") == 0
    assert shell("answer", run_id, "1") == 0
    assert told() == 2, "an empty one ends it, also that of the settings"


def test_what_cannot_be_kept_or_read_changes_nothing(tmp_path: Path) -> None:
    usual = Notifier(["true"])
    assert kept_notifier(tmp_path / "none", "true", usual) is usual
    (tmp_path / KEPT).write_text("{")
    assert kept_notifier(tmp_path, None, usual) is usual
    assert kept_notifier(tmp_path / "none", None, None) is None


def test_a_failure_changes_neither_result_nor_exit_code(shell: Shell) -> None:
    assert shell("run", "t.yaml", "--notify", "false") == 0
    assert shell.err.count("warning: --notify: `") == 1 and "false` exits 1" in shell.err
    assert "does not depend on it" in shell.err


def test_no_program_of_the_repository_is_run(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shell.repo, {"tell": f"#!/bin/sh\ntouch {shell.repo.parent}/ran\n"})
    monkeypatch.setenv("PATH", f".:{shell.repo}")
    assert shell("run", "t.yaml", "--notify", "tell") == 2
    assert shell("config", "set", "notify", "tell") == 0
    assert shell("run", "t.yaml") == 0
    assert "no program tell outside of the repository" in shell.err
    assert not (shell.repo.parent / "ran").exists()
