"""A question of the run, asked in the terminal that drives it."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from agentrunner.commands.console import Console, show, who, width_of
from agentrunner.screens.paused import (
    QUESTION_PROMPT,
    approval_prompt,
    approval_screen,
    asked_screen,
)
from agentrunner.state.run_state import IN_WORDS

if TYPE_CHECKING:
    from agentrunner.state.run_state import Answer, Question


def ask_inline(question: Question, console: Console, folder: Path) -> Answer | None:
    """The person's answer, or None: the run pauses and can be answered later.

    `folder` is the run's, where a prompt to be approved stands.
    """
    with console.silence(), interruptible(), contextlib.suppress(EOFError, KeyboardInterrupt):
        if question.kind in IN_WORDS:
            return _answer(question)
        return _approve(question, prompt_of(question.subject, folder))
    return None


def ask_yes(text: str, console: Console) -> bool:
    """Whether the person types yes to this one; anything else is no."""
    with console.silence(), interruptible(), contextlib.suppress(EOFError, KeyboardInterrupt):
        return read_line(f"{text} [y/N] ").strip().lower() in ("y", "yes")
    return False


def ask_which(text: str, choices: Mapping[str, str], console: Console) -> str:
    """The letter of what the person chooses, asked until it is one; the last one where they leave.

    `choices` says by letter what each of them does.
    """
    lines = "".join(f"  [{letter}] {what}\n" for letter, what in choices.items())
    prompt = f"{text}\n{lines}> "
    with console.silence(), interruptible(), contextlib.suppress(EOFError, KeyboardInterrupt):
        while (letter := read_line(prompt).strip().lower()) not in choices:
            prompt = f"One of {', '.join(choices)} > "
        return letter
    return list(choices)[-1]


def _answer(question: Question) -> Answer | None:
    from agentrunner.state.run_state import Answer

    width = width_of(sys.stderr)
    show(asked_screen(question.text, question.options, width, question.kind), sys.stderr)
    text = read_line(QUESTION_PROMPT).strip()
    return Answer(id=question.id, kind=question.kind, text=text, by=who()) if text else None


def _approve(question: Question, prompt: str) -> Answer | None:
    """Asks until one of the letters is typed. What is shown is the subject itself."""
    from agentrunner.state.run_state import Answer

    waiting = question.model_dump(mode="json")
    yes = Answer(id=question.id, kind=question.kind, decision="approve", by=who())
    show(approval_screen(question.kind, waiting, prompt, width_of(sys.stderr)), sys.stderr)
    while True:
        letter = read_line(approval_prompt(question.kind)).strip().lower()
        if letter == "y":
            return yes
        if letter == "e" and question.kind == "plan":
            changed = edited(question.subject)
            return Answer(
                id=question.id, kind=question.kind, decision="approve", edit=changed, by=who()
            )
        if letter == "n" and (reason := read_line("reason > ").strip()):
            return Answer(
                id=question.id, kind=question.kind, decision="reject", text=reason, by=who()
            )
        if letter == "q":
            return None


def prompt_of(subject: str, folder: Path) -> str:
    """The prompt that an approval of a worker names, byte for byte what will be given."""
    from agentrunner.state.run_state import FileRef
    from agentrunner.storage.run_folder import RunFolder

    prompt = json.loads(subject).get("order", {}).get("prompt")
    if not prompt:
        return ""
    return RunFolder(folder).read(FileRef.model_validate(prompt)).decode("utf-8", "replace")


def edited(subject: str) -> str:
    """The subject after the person's editor; raises EOFError where it was left as it was."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    text = json.dumps(json.loads(subject), indent=2, ensure_ascii=False)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "subject.json"
        file.write_text(text, encoding="utf-8")
        subprocess.run([*shlex.split(command), str(file)], check=False)
        changed = file.read_text(encoding="utf-8")
    if changed.strip() == text:
        raise EOFError
    return changed


def read_line(prompt: str) -> str:
    """The line that was typed; raises EOFError or KeyboardInterrupt."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the question.

    Under asyncio the signal handlers in place do nothing but wake the loop, which is not running
    while we read; it sees the signal as soon as we return.
    """

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers, and only it is interrupted
        return

    def leave(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
