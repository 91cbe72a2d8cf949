"""Remarks for the planner about changes that were refused, undone or left undecided.

Without them the planner would assume that every change ever proposed is in the plan.
"""

from __future__ import annotations

from agentrunner.config.markdown import detect_language
from agentrunner.text.cut import cut

MAX_QUOTED_CHARS = 200
"""Characters of the message that the change was made for."""

_TAKEN_BACK = {"en": 'Taken back: "{}"', "ja": "取り消しました：「{}」"}
_REFUSED = {"en": 'Not accepted: "{}"', "ja": "採用しませんでした：「{}」"}
_UNDECIDED = {"en": 'Not applied so far: "{}"', "ja": "まだ適用していません：「{}」"}


def taken_back(message: str, goal: str) -> str:
    """Return the remark that a change is undone. `goal` decides the language."""
    return _remark(_TAKEN_BACK, message, goal)


def refused(message: str, goal: str) -> str:
    """Return the remark that the person refused the proposal for `message`."""
    return _remark(_REFUSED, message, goal)


def undecided(message: str, goal: str) -> str:
    """Return the remark that the proposal for `message` is neither accepted nor refused."""
    return _remark(_UNDECIDED, message, goal)


def _remark(words: dict[str, str], message: str, goal: str) -> str:
    language = detect_language(f"{goal}\n{message}")
    return words[language].format(cut(" ".join(message.split()), MAX_QUOTED_CHARS))
