"""What may be told of a run where the planner's context is known: shares in tokens. Pure.

At most half of the context is used for them: rules, task and requirements are never shortened, and
the answer needs room as well. What does not fit is shortened in a fixed order: older rounds become
one line each, then looks are shorter, then what is told of the repository, and diffs come last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agentrunner.prompts.as_yaml import to_yaml
from agentrunner.text.cut import tokens

ROUNDS = 60_000
LOOKS = 10_000
REPOSITORY = 12_000
CHANGE = 3_000
"""Full shares, for a long context or one that is not known."""
ANSWER = 1_024
NOW = 1_024
"""Tokens of a short context that are kept free for the answer, and used for the present state."""
LEAST = 1_024
"""Tokens of all shares together, however short the context is."""
WHOLE = ("acceptance_criteria", "test_ids", "tests")
"""Parts that are never shortened: criteria, and the names that ids stand for."""
TEXT_CHARS = (4_000, 2_000, 1_000, 500, 250, 120, 60)
"""Limits for single texts, tried in this order until the whole fits."""


class ContextBudget(Struct, frozen=True):
    """The shares of one run; by default those for a context that is not known."""

    rounds: int = ROUNDS
    """All rounds together; beyond it, the older ones become one line each."""
    looks: int = LOOKS
    """All looks before one answer."""
    repository: int = REPOSITORY
    """What is told of the repository before the work, outline included."""
    change: int = CHANGE
    """A diff."""
    known: bool = False
    """Whether the planner's context is known."""

    @property
    def report(self) -> int:
        """The report of one round, without its diff."""
        return self.rounds * 3 // 8

    @property
    def round_change(self) -> int:
        """The diff of one round."""
        return min(self.change, self.rounds // 4)

    @property
    def sources(self) -> int:
        """The sources of a round's red tests."""
        return self.rounds // 8

    @property
    def past(self) -> int:
        """All rounds that are told in one line each."""
        return self.rounds // 4


UNKNOWN = ContextBudget()
"""For a planner whose context is not known."""


def budget_for(context: int | None, fixed: int) -> ContextBudget:
    """Return the shares for a planner with a context of so many tokens; None where not known.

    `fixed` are the tokens that every prompt has: rules, task and requirements.
    """
    if context is None:
        return UNKNOWN
    whole = max(LEAST, min(context // 2, context - fixed - ANSWER - NOW))
    shares = {"rounds": ROUNDS, "looks": LOOKS, "repository": REPOSITORY, "change": CHANGE}
    least = {"rounds": 3, "looks": 1, "repository": 2, "change": 2}  # eighths
    for name, eighths in least.items():
        too_much = sum(shares.values()) - whole
        if too_much > 0:
            shares[name] = max(shares[name] - too_much, min(shares[name], whole * eighths // 8))
    return ContextBudget(**shares, known=True)


def fitted(view: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return a view that takes `most` tokens as YAML, as far as shorter texts and lists allow."""
    found = dict(view)
    for chars in TEXT_CHARS:
        if tokens(to_yaml(found)) <= most:
            break
        found = {
            name: part if name in WHOLE else _shorter({name: part}, chars)[name]
            for name, part in view.items()
        }
    return found


def _shorter(value: Any, chars: int) -> Any:
    """Return a value whose texts have at most `chars` characters; of lists, a part as well.

    Of an output, the end says what went wrong; of other texts the beginning says more.
    """
    if isinstance(value, Mapping):
        return {
            key: f"…{one[-chars:]}"
            if isinstance(one, str) and str(key).endswith("tail") and len(one) > chars
            else _shorter(one, chars)
            for key, one in value.items()
        }
    if isinstance(value, list):
        most = max(2, chars // 30) if all(isinstance(one, str) for one in value) else len(value)
        if len(value) <= most + 1:  # so that doing it twice changes nothing
            return [_shorter(one, chars) for one in value]
        return [*(_shorter(one, chars) for one in value[:most]), f"… and {len(value) - most} more"]
    if isinstance(value, str) and len(value) > chars:
        return f"{value[:chars]}…"
    return value
