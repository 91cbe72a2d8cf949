"""A worker's texts and commands as lines: in the log, and above the status line of a run."""

from __future__ import annotations

from agentrunner.screens.layout import Paint, wrap
from agentrunner.screens.story import Event

INDENT = " " * 20
MOST_LINES = 6
"""Most lines of one text or command in the live view; `agentrunner logs` has everything."""


def below_indent(width: int) -> str:
    """Return the indent of lines below an event's own: narrow where little room would be left."""
    return INDENT if width >= 60 else "  "


def log_lines(event: Event, width: int, paint: Paint) -> list[str]:
    """Return everything in a `worker_event`, each command when it begins."""
    kind, indent = event.get("kind"), below_indent(width)
    if kind == "command_started":
        lines = wrap(f"$ {event.get('command')}", width, indent)
    elif kind == "command_finished" and event.get("exit_code"):
        lines = [f"{indent}-> exit {event['exit_code']}"]
    elif kind == "file_changed":
        lines = wrap(f"{event.get('change')} {event.get('path')}", width, indent)
    elif kind == "text":
        lines = wrap(str(event.get("text")), width, indent)
    else:
        lines = []
    return [paint.dim(line) for line in lines]


def live_lines(event: Event, width: int, paint: Paint) -> list[str]:
    """Return the worker's texts and finished commands; a running one is in the status line."""
    kind = event.get("kind")
    indent = below_indent(width)
    if kind == "command_finished":
        ending = f"  -> exit {event['exit_code']}" if event.get("exit_code") else ""
        lines = _few(wrap(f"$ {event.get('command')}", width - len(ending), indent), indent)
        lines[-1] += ending
    elif kind == "text":
        lines = _few(wrap(str(event.get("text")), width, indent), indent)
    else:
        lines = []
    return [paint.dim(line) for line in lines]


def _few(lines: list[str], indent: str) -> list[str]:
    """Return the first lines, and how many more there are."""
    left = len(lines) - MOST_LINES
    return lines if left <= 0 else [*lines[:MOST_LINES], f"{indent}… {left} more: agentrunner logs"]
