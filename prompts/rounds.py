"""The past of a run, as messages that are appended and never rewritten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from agentrunner.prompts.templates import Language, render
from agentrunner.text.tokens import tokens

Block = Callable[..., str]
"""Puts text between markers: kind of block, text, id."""

MOST_TOKENS = 60_000
"""Limit for all rounds together; beyond it, the older ones become one line each."""
STAY = 3
"""Rounds that stay whole when older ones are folded."""


@dataclass(frozen=True)
class Round:
    """What happened between two decisions; the same every time it is told."""

    key: str
    """Identifies it among the rounds of the run."""
    report: str
    """The order, its outcome, and the evidence that changed, as YAML."""
    line: str
    """The same in one line, for when it is long past."""
    change: str = ""
    """What changed in it, as a diff."""
    sources: str = ""
    """The source of the red tests."""
    cut: tuple[str, ...] = ()
    """What the diff leaves out."""

    @cached_property
    def tokens(self) -> int:
        """Its approximate size in tokens."""
        return tokens(self.report) + tokens(self.change) + tokens(self.sources)

    def text(self, language: Language, block: Block) -> str:
        """Return the message."""
        return render(
            "round",
            language,
            number=self.key,
            report=block("report", self.report, self.key),
            change=block("change", self.change, self.key) if self.change else "",
            sources=block("sources", self.sources, self.key) if self.sources else "",
            cut=bool(self.cut),
        )


def folded_until(rounds: Sequence[Round]) -> int:
    """Return how many of the first rounds are told in one line each.

    A folded round stays folded. When the rest exceeds the budget again, nearly all whole rounds are
    folded at once, so that few prompts get a new beginning.
    """
    first = size = 0
    for number, round_ in enumerate(rounds):
        size += round_.tokens
        if size > MOST_TOKENS and number + 1 - STAY > first:
            first = number + 1 - STAY
            size = sum(one.tokens for one in rounds[first : number + 1])
    return first


def messages_of(rounds: Sequence[Round], block: Block, language: Language) -> list[str]:
    """The messages of all rounds. If they exceed the budget, older ones are one line each."""
    first = folded_until(rounds)
    texts = [one.text(language, block) for one in rounds[first:]]
    if not first:
        return texts
    lines = "\n".join(one.line for one in rounds[:first])
    return [render("past", language, lines=block("past", lines)), *texts]
