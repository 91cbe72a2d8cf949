"""Commands whose output something else in a shell text reads: pipes, substitutions. Pure.

`! report | grep -v EUR`, `test -z "$(report)"` and `diff <(report) <(report --sorted)` pass if the
report prints nothing at all. It covers common checks and is not a full shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.shell import ALSO_LOOK, COMPARES, LOOKS, PASSES_ON

SHELL = lazy_regex(r"\s*(?:ba|da|z|k)?sh\s+(?:-\w+\s+)*-\w*c\s+'([^']*)'\s*$")
"""A shell that gets its text in plain quotes."""
BEFORE = lazy_regex(r"\s*(?:(?:!|if|elif|while|until|then|do|else|time|\{|\w+=[^\s$(]*)\s+)*")
"""What can precede the program of a simple command."""
READERS = LOOKS | ALSO_LOOK | PASSES_ON | COMPARES | {"git", "cd", "read", "sed", "awk", "jq"}
Span = tuple[int, int]
MOST = 12


def piped_commands(shell: str) -> list[Span]:
    """Return the spans of such commands, each including what is piped into it, in order."""
    whole = SHELL.match(shell)
    start, end = whole.span(1) if whole else (0, len(shell))
    return sorted(set(_in_commands(shell, start, end, asked=False)))[:MOST]


def _in_commands(text: str, start: int, end: int, *, asked: bool) -> Iterator[Span]:
    """Yield the spans in a command list; `asked`: something reads the list's own output."""
    for stages in _pipelines(text, start, end):
        makers = [
            index
            for index, (left, right) in enumerate(stages[: None if asked else -1])
            if _program(text[left:right]) not in READERS
        ]
        if makers:
            left = stages[0][0]
            left += len(BEFORE.match(text[left:])[0])  # type: ignore[index]
            yield left, stages[makers[-1]][1]
        else:
            for left, right in stages:
                for inner in _substitutions(text, left, right):
                    yield from _in_commands(text, *inner, asked=True)


def _program(command: str) -> str:
    bare = command[len(BEFORE.match(command)[0]) :]  # type: ignore[index]
    word = re.match(r"[^\s;|&()<>\"'$]+", bare)
    return word[0].rpartition("/")[2] if word else "" if bare.strip() else "true"


def _pipelines(text: str, start: int, end: int) -> Iterator[list[Span]]:
    """Yield each pipeline as the spans of its stages."""
    stages: list[Span] = []
    left = at = start
    while at < end:
        char = text[at]
        if char == "\\":
            at += 2
        elif char in "'\"(" or text.startswith("$(", at):
            at = _past(text, at, end)
        elif char == "|" and text[at : at + 2] != "||" and text[at - 1 : at] != ">":
            stages.append((left, at))
            left = at = at + (2 if text[at : at + 2] == "|&" else 1)
        elif char in ";\n" or text[at : at + 2] in ("&&", "||"):
            yield [*stages, _trimmed(text, left, at)]
            stages = []
            left = at = at + (2 if text[at : at + 2] in ("&&", "||") else 1)
        else:
            at += 1
    if text[left:end].strip():
        yield [*stages, _trimmed(text, left, end)]


def _substitutions(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the spans in `$(…)` and `<(…)`, also within double quotes."""
    at = start
    while at < end:
        if text[at] == "\\":
            at += 2
        elif text[at] == "'":
            at = _past(text, at, end)
        elif text[at : at + 2] in ("$(", "<(") and text[at : at + 3] != "$((":
            past = _past(text, at + 1, end)
            yield at + 2, past - 1
            at = past
        else:
            at += 1


def _past(text: str, at: int, end: int) -> int:
    """Return the offset after the quoted or bracketed text that begins here."""
    if text[at] == "$":
        at += 1
    if text[at] == "'":
        found = text.find("'", at + 1, end)
        return end if found < 0 else found + 1
    closing = {'"': '"', "(": ")"}[text[at]]
    at += 1
    while at < end:
        if text[at] == "\\":
            at += 2
        elif text[at] == closing:
            return at + 1
        elif text.startswith("$(", at) or (closing == ")" and text[at] in "'\"("):
            at = _past(text, at, end)
        else:
            at += 1
    return end


def _trimmed(text: str, left: int, right: int) -> Span:
    return left, left + len(text[left:right].rstrip())
