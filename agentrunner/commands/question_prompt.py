"""Ask a run's question in the terminal that drives the run."""

from __future__ import annotations

import contextlib
import json
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Literal, TextIO

from agentrunner import api
from agentrunner.commands.command_line import is_no, is_yes
from agentrunner.commands.console import Console, columns_of, height_of, show, tell, width_of
from agentrunner.environment import user_name
from agentrunner.errors import AgentRunnerError, UsageError
from agentrunner.errors.command_line import NoEditor
from agentrunner.results import InboxItem, Result
from agentrunner.screens.approval import verbatim
from agentrunner.screens.layout import breakable, flat, wrap
from agentrunner.screens.paused import (
    QUESTION_PROMPT,
    QUESTION_PROMPT_OF_CUT,
    approval_prompt,
    approval_screen,
    asked_screen,
    is_cut,
    letters,
    whole_question,
)
from agentrunner.state.people import IN_WORDS, Answer, Question, option_meant

POLL_SEC = 0.25
"""Seconds between checks whether a question was answered elsewhere."""
_polls: list[Callable[[], None]] = []
"""Functions to call while waiting for a line."""


class AnsweredElsewhere(Exception):
    """The answer came from another terminal while this one waited for a line."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.id)
        self.answer = answer


class NotAskedAnyMore(Exception):
    """The question was settled elsewhere while this terminal waited for a line; says how."""


@contextlib.contextmanager
def polling(poll: Callable[[], None]) -> Iterator[None]:
    """Call `poll` repeatedly while waiting for a line; an exception of it ends the prompt."""
    _polls.append(poll)
    try:
        yield
    finally:
        _polls.remove(poll)


def ask_inline(question: Question, console: Console, folder: Path) -> Answer | None:
    """Return the person's answer, or None: then the run pauses and can be answered later.

    `folder` is the run's folder, which holds a prompt to be approved. An answer given in another
    terminal meanwhile counts as well.
    """
    from agentrunner.storage.offered_answers import take
    from agentrunner.storage.run_folder import RunFolder

    def look_elsewhere() -> None:
        console.poll()
        if found := take(RunFolder(folder), question.id):
            raise AnsweredElsewhere(Answer.model_validate(found))

    with console.silence(), polling(look_elsewhere):
        try:
            return asked(question, folder)
        except AnsweredElsewhere as found:
            by = found.answer.by
            tell(f"\nAnswered in another terminal{f', by {flat(by)}' if by else ''}.", sys.stderr)
            return found.answer


def asked(
    question: Question, folder: Path, *, reject: bool = False, ends: bool = False
) -> Answer | None:
    """Show the question in the terminal and read the answer; None leaves it waiting.

    With `reject` only the reason is asked for. With `ends` Ctrl-C raises KeyboardInterrupt, where
    it ends more than the question.
    """
    with interruptible(), left_cleanly(ends=ends):
        discard_typed()
        if question.kind in IN_WORDS:
            return _answer(question)
        return _approve(question, folder, reject=reject)
    return None


def confirmed(
    question: Question, folder: Path, decision: Literal["approve", "reject"], reason: str
) -> Answer | None:
    """Show what waits and ask once whether the decision with its reason is meant; None leaves it
    waiting.
    """
    with interruptible(), left_cleanly():
        discard_typed()
        _show_subject(question, folder, whole=True)
        if is_yes(read_line(f'{decision} this, "{flat(reason)}"? [y/N] ')):
            return _decision_answer(question, decision, reason)
    return None


@contextlib.contextmanager
def left_cleanly(*, ends: bool = False) -> Iterator[None]:
    """Let Ctrl-C and Ctrl-D leave a question; typed text, or ^C, keeps its line.

    With `ends` Ctrl-C goes on upwards.
    """
    try:
        yield
    except (EOFError, KeyboardInterrupt) as left:
        sys.stderr.write("\n")
        sys.stderr.flush()
        if ends and isinstance(left, KeyboardInterrupt):
            raise


def ask_line(prompt: str, *, ends: bool = False) -> str:
    """Return what the person types, without blanks around it; "" if they leave.

    With `ends` Ctrl-C raises KeyboardInterrupt, where it ends more than the question.
    """
    with interruptible(), left_cleanly(ends=ends):
        return read_line(prompt).strip()
    return ""


def ask_yes(text: str, console: Console) -> bool:
    """Whether the person types yes to this question; anything else is no."""
    with console.silence(), interruptible(), contextlib.suppress(EOFError, KeyboardInterrupt):
        discard_typed()
        return is_yes(read_line(f"{text} [y/N] "))
    return False


def ask_which(text: str, choices: Mapping[str, str], console: Console) -> str:
    """Return the letter that the person chooses; the last one if they leave.

    `choices` says by letter what each of them does.
    """
    lines = "".join(f"  [{letter}] {what}\n" for letter, what in choices.items())
    prompt = f"{text}\n{lines}> "
    with console.silence(), interruptible(), contextlib.suppress(EOFError, KeyboardInterrupt):
        discard_typed()
        while (letter := read_line(prompt).strip().lower()) not in choices:
            prompt = f"One of {', '.join(choices)} > "
        return letter
    return list(choices)[-1]


def _answer(question: Question) -> Answer | None:
    width, height, item = width_of(sys.stderr), height_of(sys.stderr), InboxItem.of(question)
    show(asked_screen(item, width, height), sys.stderr)
    cut = is_cut(item, width, height)
    while text := read_line(QUESTION_PROMPT_OF_CUT if cut else QUESTION_PROMPT).strip():
        if cut and text == "p":
            _show_whole(whole_question(item, width))
            continue
        try:
            option_meant(question, text)
        except ValueError as error:
            tell(f"{error} Other answers are words.", sys.stderr)
            continue
        return Answer(id=question.id, kind=question.kind, text=text, by=user_name())
    return None


WORDS = {
    "approve": "y", "edit": "e", "diff": "d", "prompt": "p",
    "reject": "n", "quit": "q", "leave": "q", "exit": "q",
}  # fmt: skip
"""What people type instead of the letters, besides yes and no."""


def _approve(question: Question, folder: Path, *, reject: bool) -> Answer | None:
    """Ask until one of the letters is typed. The subject itself is shown."""
    kind, prompt = question.kind, _show_subject(question, folder, whole=reject)
    if reject:
        reason = read_line("what is wrong (empty leaves it waiting) > ").strip()
        return _decision_answer(question, "reject", reason) if reason else None
    known = letters(kind)
    while True:
        typed = read_line(approval_prompt(kind)).strip()
        letter = _letter(typed)
        if letter not in known:
            show(f'"{flat(typed)}" is none of {", ".join(known)}.', sys.stderr)
        elif letter == "y":
            return _decision_answer(question, "approve")
        elif letter == "e":
            changed = _edit_prompt(prompt) if kind == "worker" else _edit(question.subject)
            if changed:
                return _decision_answer(question, "approve", edit=changed)
        elif letter == "d":
            _show_diff(folder)
        elif letter == "p":
            _show_whole("\n".join(verbatim(prompt, width_of(sys.stderr), "")))
        elif letter == "n":
            if reason := read_line("what is wrong (empty goes back) > ").strip():
                return _decision_answer(question, "reject", reason)
        elif letter == "q":
            return None


def _show_subject(question: Question, folder: Path, *, whole: bool) -> str:
    """Show what is to be approved; return a worker's prompt, which is cut unless `whole`."""
    prompt, width = prompt_of(question.subject, folder), width_of(sys.stderr)
    result = _run_state(folder) if question.kind == "complete" else None
    height = 0 if whole else height_of(sys.stderr)
    show(approval_screen(InboxItem.of(question), prompt, width, result, height), sys.stderr)
    return prompt


def _letter(typed: str) -> str:
    if is_yes(typed):
        return "y"
    return "n" if is_no(typed) else WORDS.get(typed.lower(), typed.lower())


def _decision_answer(
    question: Question, decision: Literal["approve", "reject"], text: str = "", edit: str = ""
) -> Answer:
    kind = question.kind
    return Answer(
        id=question.id, kind=kind, decision=decision, text=text, edit=edit, by=user_name()
    )


def _run_state(folder: Path) -> Result | None:
    """Return the present state of the run if it is readable; uses an event loop of its own."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as aside, contextlib.suppress(AgentRunnerError, OSError):
        return aside.submit(api.look_sync, folder.name, state_dir=folder.parents[1]).result()
    return None


def _show_diff(folder: Path) -> None:
    from agentrunner.commands.paging import show_diff

    try:
        show_diff(api.diff_sync(folder.name, state_dir=folder.parents[1]), sys.stderr)
    except (AgentRunnerError, OSError) as error:
        tell(f"The diff can't be shown: {error}", sys.stderr)


def _show_whole(text: str) -> None:
    from agentrunner.commands.paging import page

    page(text, sys.stderr)


def _edit(subject: str) -> str:
    """Return the plan edited by the person, as JSON; "" if it is unchanged.

    An unreadable edit is reported and can be fixed in the editor.
    """
    from agentrunner.commands.editing import as_yaml, edited, from_yaml

    before = text = as_yaml(json.loads(subject))
    while (text := _edited(text, edited)).strip() != before.strip():
        try:
            return from_yaml(text)
        except UsageError as error:
            tell(f"{error.message} {error.source_line}".rstrip(), sys.stderr)
            if read_line("[Enter] edit it again, [q] leave it as it was > ").strip().lower() == "q":
                break
    tell("Nothing was changed.", sys.stderr)
    return ""


def _edit_prompt(prompt: str) -> str:
    """Return the worker's prompt as the person edited it; "" if it is unchanged or empty."""
    from agentrunner.commands.editing import edited

    text = _edited(prompt, edited, ".md")
    if text.strip() and text.strip() != prompt.strip():
        return text
    tell("Nothing was changed.", sys.stderr)
    return ""


def _edited(text: str, edit: Callable[[str, str], str], suffix: str = ".yaml") -> str:
    """Return the text as the person's editor left it; unchanged where it cannot be started."""
    try:
        return edit(text, suffix)
    except NoEditor as error:
        tell(f"{error.message} {error.remedy}".rstrip(), sys.stderr)
        return text


def discard_typed() -> None:
    """Discard input from before a question was shown: it is no answer to it."""
    with contextlib.suppress(termios.error, OSError, ValueError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def prompt_of(subject: str, folder: Path) -> str:
    """Return the prompt named in a worker approval, byte for byte as it will be given."""
    from agentrunner.state.state_model import FileRef
    from agentrunner.storage.run_folder import RunFolder

    value = json.loads(subject)
    prompt = value.get("order", {}).get("prompt") if isinstance(value, dict) else None
    if not prompt:
        return ""
    return RunFolder(folder).read(FileRef.model_validate(prompt)).decode("utf-8", "replace")


def read_line(prompt: str) -> str:
    """Return the typed line; raises EOFError or KeyboardInterrupt."""
    sys.stderr.write(at_words(prompt, sys.stderr))
    sys.stderr.flush()
    # A signal just before the system's read would be noticed only after the next line, so select
    # first. A terminal delivers one line at a time: none waits in a buffer that select can't see.
    while (_polls or sys.stdin.isatty()) and not select.select([sys.stdin], [], [], POLL_SEC)[0]:
        for poll in _polls:
            poll()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


def at_words(prompt: str, stream: TextIO) -> str:
    """Return a prompt that breaks at words, with room for a letter behind it."""
    columns = columns_of(stream)
    if not columns:
        return breakable(prompt)
    lines = prompt.split("\n")
    broken = [part for line in lines for part in wrap(line.rstrip(), columns - 4)]
    return "\n".join(broken) + " " * (len(prompt) - len(prompt.rstrip(" ")))


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the question.

    Under asyncio the installed signal handlers only wake the loop, which does not run while we
    read; it sees the signal as soon as we return.
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
