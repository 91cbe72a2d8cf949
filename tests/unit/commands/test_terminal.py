"""The command line in a real terminal: what is drawn there, and what is asked there."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from agentrunner.commands import question_prompt
from agentrunner.commands.console import Console, Output, ring, show
from agentrunner.commands.question_prompt import _edit_prompt
from agentrunner.screens.paused import letters, paused_screen
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import Question
from agentrunner.storage.run_folder import RunFolder
from tests.kit.files import write
from tests.kit.screen_samples import result
from tests.kit.terminals import Terminal
from tests.unit.commands.fake_engine import TASK

ROOT = Path(__file__).parents[3]
FOREIGN = re.compile(
    rb"\x1b(?!\[[0-9;]*m)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]|\xc2[\x80-\x9f]"
)
SCRIPT = """
import json, sys
from agentrunner import cli
from agentrunner.state.run_state import Question
from tests.unit.commands.fake_engine import FakeEngine
from tests.kit.screen_samples import EVIL, result, story_events

kind, answers = sys.argv[1], sys.argv[2]
hostile = {"ts": "", "seq": 99, "event": "worker_event", "kind": "text", "text": EVIL}
fake = FakeEngine(answer=result(title=EVIL), events=[*story_events(EVIL), hostile])
if kind != "none":
    check = {"kind": "command", "run": EVIL}
    one = {"id": "AC-1", "description": "It greets", "check": check}
    subject = json.dumps({"criteria": [one]})
    fake.question = Question(id="abc", kind=kind, text=EVIL, options=["one", "two"],
                             subject=subject, state="PLANNING")
fake.replace_api()
code = cli.call(cli.app, ["run", "t.yaml"], "agentrunner")
said = [said and said.model_dump(mode="json") for verb, said in fake.asked if verb == "inline"]
open(answers, "w").write(json.dumps(said))
sys.exit(code)
"""


def in_terminal(folder: Path, kind: str, keys: str = "", **environ: str) -> tuple[bytes, Any, int]:
    """Run the command in a pty, typing `keys` at the first prompt."""
    repo = folder / "shop"
    (repo / ".git").mkdir(parents=True)
    (repo / "t.yaml").write_text(TASK)
    answers = folder / "answers.json"
    unset = ("CI", "NO_COLOR")
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    own = {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "HOME": str(folder),
           "AGENTRUNNER_STATE_DIR": str(folder / "state")}  # fmt: skip
    argv = [sys.executable, "-c", SCRIPT, kind, str(answers)]
    with Terminal(argv, repo, {**inherited, **own, **environ}) as terminal:
        terminal.answer([keys] if keys else [], ("> ",))
        code = terminal.end()
    return terminal.seen, json.loads(answers.read_text()) if answers.exists() else None, code


def test_a_terminal_gets_colours_and_no_other_sequence(tmp_path: Path) -> None:
    seen, _, code = in_terminal(tmp_path, "none")
    assert code == 0
    assert b"-- round 2 of at most 6 --" in seen and b"\x1b[1;32mCOMPLETE\x1b[0m" in seen
    assert FOREIGN.findall(seen) == []
    assert "\u202e".encode() not in seen


def test_no_color_means_no_escape_at_all(tmp_path: Path) -> None:
    seen, _, _ = in_terminal(tmp_path, "none", NO_COLOR="1")
    assert b"\x1b" not in seen and b"COMPLETE" in seen


@pytest.mark.parametrize(
    ("kind", "keys", "decision", "text"),
    [
        ("plan", "y\n", "approve", ""),
        ("plan", "x\ny\n", "approve", ""),
        ("complete", "n\nnot yet\n", "reject", "not yet"),
        ("ask_human", "in my own words\n", "answer", "in my own words"),
    ],
)
def test_answers_are_typed_inline(
    kind: str, keys: str, decision: str, text: str, tmp_path: Path
) -> None:
    seen, (answer,), _ = in_terminal(tmp_path, kind, keys)
    assert (answer["id"], answer["decision"], answer["text"]) == ("abc", decision, text)
    assert FOREIGN.findall(seen) == []
    if kind != "ask_human":
        # what is approved is shown with nothing left out
        assert rb"a\x1b]52;c;aGk=\x07b\x1b[2J" in seen.replace(b"\r\n", b"")


@pytest.mark.parametrize("keys", ["q\n", "\x04", "\x03"])
def test_leaving_a_question_open_is_no_answer(keys: str, tmp_path: Path) -> None:
    _, said, code = in_terminal(tmp_path, "plan", keys)
    assert said == [None] and code == 0


def test_a_plan_is_edited_in_the_person_s_editor(tmp_path: Path) -> None:
    editor = write(tmp_path, {"editor": '#!/bin/sh\nsed -i s/AC-1/AC-9/ "$1"\n'}) / "editor"
    _, (answer,), _ = in_terminal(tmp_path, "plan", "e\n", VISUAL=str(editor))
    assert answer["decision"] == "approve"
    assert json.loads(answer["edit"])["criteria"][0]["id"] == "AC-9"


@pytest.mark.parametrize(
    ("edit", "prompt"), [('sed -i s/sum/total/ "$1"', "Mend the total."), ("true", "")]
)
def test_a_worker_s_prompt_is_edited_as_text(
    edit: str, prompt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = write(tmp_path, {"editor": f"#!/bin/sh\n{edit}\n"}) / "editor"
    monkeypatch.setenv("VISUAL", str(editor))
    assert _edit_prompt("Mend the sum.") == prompt
    assert "e" in letters("worker") and "e" not in letters("complete")


def test_a_worker_s_prompt_that_was_cut_is_shown_whole_and_then_decided_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder.create(tmp_path, "t-0000")
    prompt = folder.write("prompts/1-001.md", "Do this.\n" * 100 + "The \x1b[2J last line.")
    subject = json.dumps({"order": {"worker": "codex-cli", "prompt": prompt.model_dump()}})
    question = Question(
        id="abc", kind="worker", text="Start it?", subject=subject, state=TaskState.RUNNING
    )
    monkeypatch.setattr(question_prompt, "height_of", lambda _: 24)
    monkeypatch.setattr("sys.stdin", io.StringIO("p\ny\n"))
    monkeypatch.setenv("PAGER", "cat")
    answer = question_prompt.asked(question, folder.root)
    assert answer is not None and answer.decision == "approve"
    first, whole = capsys.readouterr().err.split("[p] whole prompt", 1)
    assert "last line" not in first and first.count("\n") < 24
    assert whole.count("Do this.") == 100 and "The \\x1b[2J last line." in whole


def test_a_question_that_was_cut_is_shown_whole_and_then_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    long = f"{'It could be done in this way or in that. ' * 60}Which \x1b[2Jone?"
    question = Question(id="abc", kind="ask_human", text=long, options=["This", "That"],
                        subject="", state=TaskState.RUNNING)  # fmt: skip
    monkeypatch.setattr(question_prompt, "height_of", lambda _: 24)
    monkeypatch.setattr("sys.stdin", io.StringIO("p\n2\n"))
    monkeypatch.setenv("PAGER", "cat")
    answer = question_prompt.asked(question, tmp_path)
    assert answer is not None and answer.text == "2"
    first, whole = capsys.readouterr().err.split("p shows it whole, empty", 1)
    assert first.count("\n") < 24 and "one?" not in first and "2  That" in first
    assert "one?" in whole and "\x1b" not in whole


def test_p_answers_a_question_that_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = Question(
        id="abc", kind="ask_human", text="p or q?", subject="", state=TaskState.RUNNING
    )
    monkeypatch.setattr(question_prompt, "height_of", lambda _: 24)
    monkeypatch.setattr("sys.stdin", io.StringIO("p\n"))
    answer = question_prompt.asked(question, tmp_path)
    assert answer is not None and answer.text == "p"


def test_what_was_left_waiting_is_not_shown_again() -> None:
    asked = {"exit_code": 4, "state": "PLANNING", "waiting": {
        "id": "abc", "kind": "plan", "text": "Approve the plan: 1 criterion.", "options": [],
        "subject": json.dumps({"criteria": [{"id": "AC-1", "description": "It greets"}]}),
    }}  # fmt: skip
    waits = result(**asked)
    whole, brief = (
        paused_screen(waits, where="hana@devbox", brief=brief) for brief in (False, True)
    )
    assert "It greets" in whole and "It greets" not in brief and "  id abc" not in brief
    assert "WAITING FOR YOU" in brief and "--id abc" in brief


@pytest.mark.parametrize("name", ["CI", "AGENTRUNNER_TEST_NOTHING"])
def test_ci_is_never_asked(name: str, tmp_path: Path) -> None:
    _, said, _ = in_terminal(tmp_path, "plan", "q\n", **{name: "true"})
    assert said == ([] if name == "CI" else [None])


def test_a_terminal_that_was_closed_is_nobody_who_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = pty.openpty()
    stream = os.fdopen(far, "w")
    monkeypatch.setattr(sys, "stderr", stream)
    console = Console(Output())
    os.close(near)
    try:
        console.write(["a line"])
        show("The run is kept.", stream)
        ring(stream, "needs you", {"TERM": "xterm"})
    finally:
        with contextlib.suppress(OSError):  # what nobody read is still in the buffer
            stream.close()
