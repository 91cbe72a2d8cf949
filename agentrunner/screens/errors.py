"""The common form of error messages: what, where, and one thing to try."""

from __future__ import annotations

from agentrunner.errors import AgentRunnerError
from agentrunner.screens.layout import PLAIN, WIDTH, Paint, flat, wrap


def error_screen(error: AgentRunnerError, width: int = WIDTH, paint: Paint = PLAIN) -> str:
    """Format `error[CODE]: sentence`, then place, details and remedy, each on its own line."""
    head = f"error[{flat(error.code)}]:"
    first, *rest = wrap(f"{head} {error.message}", width - 2)
    if error.nothing_spent and "nothing was spent" not in error.message.lower():
        rest.append("Nothing was spent.")
    lines = [first.replace(head, paint.bad(head), 1), *(f"  {line}" for line in rest)]
    if error.path:
        lines.append(f"  at {flat(error.path)}" + _source(error.source_line))
    for label, text in error.details:
        lines += _hanging(flat(label), text, width)
    return "\n".join([*lines, *_remedy(error, width)])


def _source(line: str) -> str:
    return f"     {flat(line.strip())}" if line.strip() else ""


def _remedy(error: AgentRunnerError, width: int) -> list[str]:
    remedy = error.remedy or f"agentrunner explain {error.code.partition(':')[0]}"
    if remedy.lower().startswith("did you mean"):
        return wrap(remedy, width, "  ")
    return _hanging("try", remedy, width)


def _hanging(label: str, text: str, width: int) -> list[str]:
    """Format `  label: text`; commands are not wrapped, so that they can be copied."""
    lead = f"  {label}: "
    if "\n" not in text:
        return [lead + flat(text)]
    lines = wrap(text, width, " " * len(lead))
    return [lead + lines[0].lstrip(), *lines[1:]]
