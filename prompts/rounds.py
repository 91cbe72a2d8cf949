"""The past of a run, as messages that are appended and never rewritten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from agentrunner.config.markdown import Language
from agentrunner.prompts.context_budget import ContextBudget
from agentrunner.prompts.templates import render
from agentrunner.text.cut import tokens

Block = Callable[..., str]
"""Puts text between markers: kind of block, text, id."""

STAY = 3
"""Rounds that stay whole when older ones are folded, as far as they fit; the last one always."""


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
        """Return the message. It is rendered once for each pair of language and `block`."""
        which = (language, block)
        if which not in self._texts:
            self._texts[which] = self._rendered(language, block)
        return self._texts[which]

    @cached_property
    def _texts(self) -> dict[tuple[Language, Block], str]:
        return {}

    def _rendered(self, language: Language, block: Block) -> str:
        return render(
            "round",
            language,
            number=self.key,
            report=block("report", self.report, self.key),
            change=block("change", self.change, self.key) if self.change else "",
            sources=block("sources", self.sources, self.key) if self.sources else "",
            cut=bool(self.cut),
        )


def folded_until(rounds: Sequence[Round], budget: ContextBudget) -> int:
    """Return how many of the first rounds are told in one line each.

    A folded round stays folded. When the rest exceeds the budget again, nearly all whole rounds are
    folded at once, so that few prompts get a new beginning.
    """
    first = size = past = 0
    for number, round_ in enumerate(rounds):
        size += round_.tokens
        while size + past > budget.rounds and first < number:
            first = max(first + 1, number + 1 - STAY)
            size = sum(one.tokens for one in rounds[first : number + 1])
            past = tokens(_lines(rounds[:first], budget)) if budget.known else 0
    return first


def messages_of(
    rounds: Sequence[Round], block: Block, language: Language, budget: ContextBudget
) -> list[str]:
    """The messages of all rounds. If they exceed the budget, older ones are one line each."""
    first = folded_until(rounds, budget)
    texts = [one.text(language, block) for one in rounds[first:]]
    if not first:
        return texts
    return [render("past", language, lines=block("past", _lines(rounds[:first], budget))), *texts]


def not_reported(files: Sequence[str], rounds: Sequence[Round], budget: ContextBudget) -> str:
    """Return a diff of these files, with a line for each whose diff a report shows that is still
    whole.
    """
    whole = rounds[folded_until(rounds, budget) :]
    texts = []
    for text in files:
        report = next((one.key for one in whole if text in one.change), "")
        head = text.partition("\n")[0]
        texts.append(f"{head}: as in report {report}\n" if report else f"{text}\n")
    return "".join(texts).removesuffix("\n")


def _lines(rounds: Sequence[Round], budget: ContextBudget) -> str:
    """Return a line for each round; of a short context's oldest ones, one for all."""
    lines: list[str] = []
    left = budget.past
    for one in reversed(rounds):
        left -= tokens(one.line) + 1
        if left < 0:
            lines.append(f"… {len(rounds) - len(lines)} earlier rounds")
            break
        lines.append(one.line)
    return "\n".join(reversed(lines))
