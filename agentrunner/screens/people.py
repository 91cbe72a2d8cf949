"""What people decided in a run, for `show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentrunner.screens.layout import WIDTH, flat, wrap

if TYPE_CHECKING:
    from agentrunner.results import PeopleSummary

_LINES = 6
"""Most lines per decision; the note and `--json` have more."""


def people_screen(people: PeopleSummary, *, width: int = WIDTH) -> str:
    """Format people's decisions, a paragraph each, oldest first; "" if there are none."""
    if not people.decisions:
        return ""
    lines = ["Decisions of people:"]
    left_out = people.omitted + len(people.older)
    if left_out:
        lines.append(f"  and {left_out} before these, in the note and the log")
    for decision in people.decisions:
        who = f" by {decision.by}" if decision.by else ""
        asked = f"“{decision.asked}”: " if decision.asked else ""
        words = f": {decision.text}" if decision.text.strip() else ""
        text = f"{asked}{_DONE[decision.decision]}{who}{words}"
        shown = wrap(flat(text), width, "    ")
        lines += [f"  - {shown[0].strip()}", *shown[1:_LINES]]
        if len(shown) > _LINES:
            lines.append("    …")
    return "\n".join(lines)


_DONE = {
    "answer": "answered",
    "approve": "approved",
    "reject": "rejected",
    "message": "message",
    "accept": "accepted",
}
