"""Rules for a right answer to a scene, as typed data that code decides. Pure.

A rule holds if it finds no fault. Words are matched regardless of case and width. One of a list of
words is enough, and every list must be met.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Annotated

from pydantic import Field

from agentrunner.config.config_model import ConfigModel
from agentrunner.engine.resources import first_words
from agentrunner.plans.plan import Plan
from agentrunner.plans.proposal import Proposal
from agentrunner.plans.schedule import with_dependencies
from agentrunner.protocol import NextAction
from agentrunner.protocol.messages import Action
from agentrunner.state.run_state import Assessment, Criterion

Words = list[Annotated[list[str], Field(min_length=1)]]
"""One word of each list must occur."""
TOO_ALIKE = 0.9
"""Similarity (0 to 1) from which two orders count as the same."""
SHOWN = 60
"""Most characters of a text in a fault."""


@dataclass(frozen=True)
class Given:
    """A usable answer, as a run would use it."""

    looks: int = 0
    """How many times the planner looked before it answered."""
    action: NextAction | None = None
    criteria: Sequence[Criterion] = ()
    """The criteria that resulted from a plan."""
    assessment: Assessment | None = None
    proposal: Proposal | None = None
    orders: Sequence[str] = ()
    """Prompts of the workers that ran before."""


class SceneRule(ConfigModel):
    """The common part of all rules."""

    looked: bool = False
    """Whether the planner must look before it answers."""

    def faults(self, given: Given) -> Iterator[str]:
        """Yield why the rule does not hold, as ends of sentences; nothing if it holds."""
        if self.looked and not given.looks:
            yield "it did not look at what it was not shown"
        yield from self._own_faults(given)

    def _own_faults(self, given: Given) -> Iterator[str]:
        raise NotImplementedError


class ActionRule(SceneRule):
    """A rule for `next_action`."""

    action: Annotated[list[Action], Field(min_length=1)]
    """The allowed actions."""
    says: Words = []
    """In the worker's prompt, in the question, or in the reason if there is neither."""
    avoids: list[str] = []
    """Words that must not occur there."""
    anew: bool = False
    """Whether the worker's prompt must differ from those before."""

    def _own_faults(self, given: Given) -> Iterator[str]:
        chosen = given.action
        if chosen is None:
            yield "it is no decision"
            return
        if chosen.decision.action not in self.action:
            yield f"it chose {chosen.decision.action}, not {' or '.join(self.action)}"
            return
        text = _text_of(chosen)
        yield from _words(self.says, [text], "nothing it says")
        yield from _avoided(self.avoids, [text])
        if self.anew and any(_are_alike(text, order) for order in given.orders):
            yield "it gives the same order again"


class PlanRule(SceneRule):
    """A rule for `plan_task`: about the resulting criteria, including a person's own."""

    least: int = Field(1, ge=0)
    most: int = Field(50, ge=1)
    covers: Words = []
    """One criterion must meet each list."""
    avoids: list[str] = []
    executable: int = Field(0, ge=0)
    """Least number of criteria that have a check or name tests."""
    optional: Words = []
    """A criterion with one of the words must not be critical."""
    programs: list[str] = []
    """If given, the only programs that commands may start."""
    keeps: list[str] = []
    """Ids of criteria that people wrote, with a check or without: no other may repeat them."""

    def _own_faults(self, given: Given) -> Iterator[str]:
        criteria = given.criteria
        texts = [_criterion_text(one) for one in criteria]
        if not self.least <= len(criteria) <= self.most:
            yield f"it has {len(criteria)} criteria, not {self.least} to {self.most}"
        yield from _words(self.covers, texts, "no criterion")
        yield from _avoided(self.avoids, texts)
        able = sum(one.check is not None or bool(one.tests) for one in criteria)
        if able < self.executable:
            yield f"{able} criteria can be executed, not {self.executable}"
        for one, text in zip(criteria, texts, strict=True):
            if one.critical and any(_has(text, words) for words in self.optional):
                yield f"{one.id} is critical, and was only wished for"
            yield from self._missing_programs(one)
        yield from self._lost_criteria(criteria)

    def _missing_programs(self, one: Criterion) -> Iterator[str]:
        """Yield programs that a check starts but that do not exist."""
        shell = str(getattr(one.check, "run", None) or "")
        for word in first_words(shell) if self.programs and shell else ():
            if word not in self.programs:
                yield f"the check of {one.id} starts {word}, which is not there"

    def _lost_criteria(self, criteria: Sequence[Criterion]) -> Iterator[str]:
        by_id = {one.id: one for one in criteria}
        for name in self.keeps:
            mine = by_id.get(name)
            if mine is None or mine.origin != "task":
                yield f"{name} is not kept as it was written"
                continue
            for other in criteria:
                if other.origin != "task" and _are_alike(other.description, mine.description):
                    yield f"{other.id} says the same as {name}"


class JudgeRule(SceneRule):
    """A rule for `completion_assessment`, after the more negative word has won."""

    passes: list[str] = []
    fails: list[str] = []

    def _own_faults(self, given: Given) -> Iterator[str]:
        judged = given.assessment
        if judged is None:
            yield "it is no judgement"
            return
        passed, failed = wrongly_passed(self, judged), wrongly_failed(self, judged)
        for name in self.fails:
            if name in passed:
                yield f"it lets {name} pass, which is not met"
            elif name not in judged.failed:
                yield f"it says nothing of {name}, which is not met"
        for name in self.passes:
            if name in failed:
                yield f"it fails {name}, which is met"
            elif name not in judged.passed:
                yield f"it says nothing of {name}, which is met"


def wrongly_passed(rule: JudgeRule, judged: Assessment) -> list[str]:
    """Return criteria that are not met but were passed, by name or as part of all."""
    by_all = judged.satisfied
    return [
        name
        for name in rule.fails
        if name in judged.passed or (by_all and name not in judged.failed)
    ]


def wrongly_failed(rule: JudgeRule, judged: Assessment) -> list[str]:
    """Return criteria that are met but were failed."""
    return [name for name in rule.passes if name in judged.failed]


class ProposalRule(SceneRule):
    """A rule for `decompose` and `plan_patch`: about the plan that a proposal would make."""

    least: int = Field(0, ge=0)
    """Least number of tasks that it adds."""
    most: int = Field(200, ge=0)
    adds: Words = []
    """One added task must meet each list."""
    avoids: list[str] = []
    before: list[tuple[list[str], list[str]]] = []
    """Of tasks with such words, the first must be done before the second."""
    removes: list[str] | None = None
    """Exactly these tasks must be removed; without it, any may be."""
    keeps: list[str] = []
    """Ids of tasks whose request must not change."""
    changes: dict[str, Words] = {}
    """By task id, the words that it must have afterwards."""
    asks: bool | None = None
    """Whether it must ask a question; without it, both are allowed."""

    def _own_faults(self, given: Given) -> Iterator[str]:
        proposal = given.proposal
        if proposal is None:
            yield "it is no change of a plan"
            return
        old, new = proposal.before, proposal.after
        added = [name for name in new.task_order() if name not in old.tasks]
        texts = {name: _task_text(new, name) for name in new.task_order()}
        if not self.least <= len(added) <= self.most:
            yield f"it adds {len(added)} tasks, not {self.least} to {self.most}"
        yield from _words(self.adds, [texts[name] for name in added], "no new task")
        yield from _avoided(self.avoids, [texts[name] for name in added])
        gone = sorted(set(old.tasks) - set(new.tasks))
        if self.removes is not None and gone != sorted(self.removes):
            yield f"it takes away {', '.join(gone) or 'nothing'}"
        yield from (f"it changes {name}" for name in self.keeps if not new.asks_as(old, name))
        for name, words in self.changes.items():
            yield from _words(words, [texts.get(name, "")], f"nothing in {name}")
        yield from self._order(new, texts)
        if self.asks is not None and bool(proposal.questions) is not self.asks:
            yield "it asks nothing" if self.asks else "it asks what need not be asked"

    def _order(self, plan: Plan, texts: Mapping[str, str]) -> Iterator[str]:
        for first, second in self.before:
            firsts = {name for name, text in texts.items() if _has(text, first)}
            later = [name for name, text in texts.items() if _has(text, second)]
            apart = [name for name in later if name not in firsts]
            behind = (plan.design_of(name).dependencies for name in apart or later)
            if not any(firsts & with_dependencies(plan, names) for names in behind):
                yield f"nothing with {second[0]} waits for what has {first[0]}"


def plain(text: str) -> str:
    """Normalize a text for matching words."""
    return unicodedata.normalize("NFKC", text).casefold()


def _has(text: str, words: Iterable[str]) -> bool:
    found = plain(text)
    return any(plain(word) in found for word in words)


def _words(wanted: Words, texts: Collection[str], where: str) -> Iterator[str]:
    for words in wanted:
        if not any(_has(text, words) for text in texts):
            yield f'{where} has "{" or ".join(words)[:SHOWN]}"'


def _avoided(words: Iterable[str], texts: Collection[str]) -> Iterator[str]:
    for word in words:
        if any(_has(text, [word]) for text in texts):
            yield f'it says "{word}"'


def _are_alike(one: str, other: str) -> bool:
    first, second = (" ".join(plain(text).split()) for text in (one, other))
    return SequenceMatcher(None, first, second, autojunk=False).ratio() >= TOO_ALIKE


def _text_of(chosen: NextAction) -> str:
    if chosen.worker_call is not None:
        return chosen.worker_call.prompt
    return "\n".join([chosen.question or chosen.decision.reason, *chosen.options])


def _criterion_text(one: Criterion) -> str:
    parts = [one.description, one.detail, *one.tests]
    if one.check is not None:
        parts += [str(value) for value in one.check.model_dump(exclude_none=True).values()]
    return "\n".join(parts)


def _task_text(plan: Plan, name: str) -> str:
    design = plan.design_of(name)
    return "\n".join([design.title, design.description, *design.acceptance_criteria])
