"""What has passed in a run, as messages that are appended and never rewritten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from agentrunner.prompts.templates import Language, render
from agentrunner.text.tokens import tokens

Block = Callable[..., str]
"""Puts text between markers: kind of block, text, id."""

MOST_TOKENS = 60_000
"""Of all rounds together; beyond, the older ones become one line each."""
STAY = 3
"""Rounds that stay whole where older ones are folded."""


@dataclass(frozen=True)
class Round:
    """What happened between two decisions; the same whenever it is told."""

    key: str
    """Tells it from the others of the run."""
    report: str
    """What was ordered, how it ended, and the evidence that changed, as YAML."""
    line: str
    """The same in a line, for when it is long past."""
    change: str = ""
    """What changed in it, as a diff."""
    sources: str = ""
    """The tests that are red, as they are written."""
    cut: tuple[str, ...] = ()
    """What the diff leaves out."""

    @cached_property
    def tokens(self) -> int:
        """About how many it takes."""
        return tokens(self.report) + tokens(self.change) + tokens(self.sources)

    def text(self, language: Language, block: Block) -> str:
        """The message."""
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
    """How many of the first rounds are told in a line each.

    What is folded once stays so, until the rest passes the budget again: then nearly all that is
    whole is folded at once, for few prompts are to begin anew.
    """
    first = size = 0
    for number, round_ in enumerate(rounds):
        size += round_.tokens
        if size > MOST_TOKENS and number + 1 - STAY > first:
            first = number + 1 - STAY
            size = sum(one.tokens for one in rounds[first : number + 1])
    return first


def messages_of(rounds: Sequence[Round], block: Block, language: Language) -> list[str]:
    """The messages of all rounds. Where they pass the budget, older ones are a line each."""
    first = folded_until(rounds)
    texts = [one.text(language, block) for one in rounds[first:]]
    if not first:
        return texts
    lines = "\n".join(one.line for one in rounds[:first])
    return [render("past", language, lines=block("past", lines)), *texts]
