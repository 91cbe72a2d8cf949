"""Why tests are red: each with name, place and message."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from agentrunner.screens.layout import WIDTH, flat, wrap
from agentrunner.state.red_tests import MOST, title_of
from agentrunner.text.terminal import shorten

Red = Mapping[str, Any]
"""`name`, `file`, `line`, `message`."""

_INDENT = 11
_MESSAGE_LINES = 4
"""Most lines of one message, if there is room."""


def red_lines(
    reds: Sequence[Red],
    total: int,
    width: int = WIDTH,
    *,
    most: int = MOST,
    whole: bool = False,
    rest: str = "agentrunner logs --tests",
    known: Container[str] = (),
) -> list[str]:
    """Return the first `most` red tests of `total`, then a count of the rest; [] if none is known.

    Each takes a line: name, place, and the first line of its message. With `whole` the message is
    below, in up to four lines. `rest` is the command that shows everything. Names in `known` were
    red before and need not turn: they come last, under a label of their own.
    """
    shown = sorted(reds, key=lambda red: red["name"] in known)[:most]
    lines: list[str] = []
    label = ""
    for red in shown:
        was, label = label, "known" if red["name"] in known else "red"
        lines += _entry(red, "" if label == was else label, width, whole)
    left = max(total, len(reds)) - len(shown)
    if shown and left > 0:
        lines.append(shorten(f"{' ' * _INDENT}and {left} more: {rest}", width))
    return lines


def red_entry(red: Red) -> str:
    """Return a red test in one line: name, place, the first line of its message."""
    message = _message(red)[:1]
    return ": ".join([title_of(red), *message])


def _entry(red: Red, label: str, width: int, whole: bool) -> list[str]:
    lead = f"  {label:<7}  "
    if not whole:
        return [shorten(lead + flat(red_entry(red)), width)]
    lines = [shorten(lead + flat(title_of(red)), width)]
    indent = " " * (_INDENT + 2)
    for text in _message(red)[:_MESSAGE_LINES]:
        lines += wrap(text, width, indent)[:2]
    return lines


def _message(red: Red) -> list[str]:
    """Return the lines of the message that are not blank."""
    return [line.strip() for line in str(red.get("message") or "").splitlines() if line.strip()]
