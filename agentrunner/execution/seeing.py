"""What the planner is shown: the rounds so far, the change, and the answers to its looks."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from agentrunner.config.agents import See, seen_by
from agentrunner.config.kinds import planner_kind
from agentrunner.config.spec import TaskSpec
from agentrunner.discovery.seeing.diffs import BUDGET, Diff, diff_of
from agentrunner.discovery.seeing.looks import Looker
from agentrunner.discovery.seeing.reds import sources_of
from agentrunner.execution.context_length import context_budget
from agentrunner.execution.deps import Deps
from agentrunner.execution.saved_rounds import SavedRound
from agentrunner.planners.asking import LOOKS
from agentrunner.planners.panel import role_candidates
from agentrunner.prompts import ContextBudget, Round, Seen
from agentrunner.prompts.as_yaml import to_yaml
from agentrunner.prompts.context_budget import NOW, fitted
from agentrunner.prompts.rounds import STAY, folded_until, not_reported
from agentrunner.protocol import Look
from agentrunner.protocol.message import MessageType
from agentrunner.state.round_reports import (
    digests,
    in_lines,
    line_of,
    report,
    sections,
    state_of_now,
    without_diffed,
)
from agentrunner.state.run_state import RedTest, TaskContext
from agentrunner.state.short_names import further, shortened, used
from agentrunner.state.state_model import FileRef
from agentrunner.state.summary import without_host
from agentrunner.storage.failpoints import reach
from agentrunner.text.cut import beginning, tokens
from agentrunner.text.lazy_regex import lazy_regex


class Looking(ABC):
    """Answers looks; what was looked at is forgotten when another candidate is asked."""

    looker: Looker | None = None
    answers: tuple[str, ...] = ()
    """What it was shown so far."""

    @abstractmethod
    def make_looker(self) -> Looker:
        """Return what answers the looks, made at the first look. Blocks; may raise GitFailed."""

    def begin(self) -> None:
        """Forget earlier looks: another candidate is asked, and it has seen none of them."""
        self.looker, self.answers = None, ()

    async def answer(self, looks: Sequence[Look]) -> str:
        """Return what the planner wants to see; raise what `make_looker` raises."""
        found = await asyncio.to_thread(self._answer, looks)
        reach("after_look")
        return found

    def _answer(self, looks: Sequence[Look]) -> str:
        if self.looker is None:
            self.looker = self.make_looker()
        found = self.looker.answer(looks)
        self.answers = (*self.answers, found)
        return found


LEAST_QUOTE = 4
"""Characters of a line that is worth something as a quote."""
_MARK = lazy_regex(r"^(?:\s*>)?\s*(?:[+-](?![+-])|\d+:)?\s*")
"""What may stand before a quoted line: the marks of a diff, or the number of a look."""
CONTEXT_FILE = "repository.json"
"""File name in the run's folder: what the planner was shown of the repository, and of which
tree."""


@dataclass
class Seeing(Looking):
    """What the planner sees in one question, beside the facts."""

    state: TaskContext
    deps: Deps
    see: See = "repo"
    change: Diff = field(default_factory=Diff)
    """The whole change as it is shown."""
    names: dict[str, str] = field(default_factory=dict)
    """Long names of tests by the ids that the prompt has for them."""
    whole_change: str = ""
    """The whole change as a diff, wherever the prompt shows it."""

    @cached_property
    def budget(self) -> ContextBudget:
        """What the prompt may tell. Blocks."""
        return context_budget(self.state, self.deps)

    @property
    def looks(self) -> bool:
        return self.see == "repo"

    @property
    def blind(self) -> bool:
        """Whether nothing of the change is shown to a planner that would read it."""
        return self.see == "nothing" and not reads_nothing(self.deps.spec)

    @property
    def quotes(self) -> bool:
        """Whether a judge is asked for a quote of what meets a criterion that only it decides.

        It has to be a model behind an API that is shown code. Weak models are such; a CLI starts a
        process for each question, and what a program answers is written once and for all.
        """
        candidates = role_candidates(self.deps.spec, "assess")[1]
        models = all(planner_kind(one.kind).is_chat_model for one in candidates)
        return models and self.see != "nothing"

    def shows(self, quote: str) -> bool:
        """Whether a text stands in what the judge was shown of the code.

        Of several lines the longest has to be there; marks of a diff at its beginning do not count.
        """
        lines = [_MARK.sub("", line).strip() for line in quote.splitlines()]
        longest = max(lines, key=len, default="")
        if len(longest) < LEAST_QUOTE:
            return False
        return any(longest in text for text in (self.whole_change, *self.answers))

    @property
    def missing(self) -> list[str]:
        """Return files whose change was not shown whole, by diffs or by looks of this call."""
        seen = self.looker.seen if self.looker is not None else set()
        return [path for path in self.change.paths if path not in seen]

    @property
    def to_look_at(self) -> list[str]:
        """Files whose change is cut, that it could look at, and of which it has seen nothing yet.

        Empty where it may not look. Once its looks are spent on some of them, the others are
        excused: a change may have more files than looks can show.
        """
        if not self.looks:
            return []
        looked_at = self.looker.looked_at if self.looker is not None else set()
        left = [path for path in self.change.to_look_at if path not in looked_at]
        has_begun = len(left) < len(self.change.to_look_at)
        return [] if has_begun and self._looks_are_spent else left

    @property
    def _looks_are_spent(self) -> bool:
        """Whether it can look no more before this answer."""
        return len(self.answers) >= LOOKS or (self.looker is not None and self.looker.spent)

    def make_looker(self) -> Looker:
        """Return what answers the looks; raise GitFailed."""
        deps = self.deps
        before, now = _trees(self.state)
        now = now or before or deps.snapshots.take().tree
        most = self.budget.looks if self.budget.known else None
        return Looker(deps.snapshots, before or now, now, deps.redactor.redact, self._output, most)

    def _output(self, name: str) -> str | None:
        """Return the output of a worker run, or of the last test run; None where there is none."""
        ref: FileRef | None = None
        if name == "test":
            evidence, baseline = self.state.get("evidence"), self.state.get("baseline")
            test = (evidence.test if evidence else None) or (baseline.test if baseline else None)
            ref = test.output if test else None
        else:
            run = next((r for r in self.deps.log.records("worker_run") if r.key == name), None)
            output = run.data.get("output") if run else None
            ref = FileRef.model_validate(output) if output else None
        if ref is None:
            return None
        text = self.deps.folder.read(ref).decode("utf-8", "replace")
        return str(without_host(text, self.deps.spec.repo))

    def fields(self, type_: MessageType, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a prompt has beside the facts, as fields of PromptInput. Blocks.

        Raises GitFailed and OSError.
        """
        if reads_nothing(self.deps.spec):
            return {}
        kept = self.deps.rounds.all()
        repository = known_repository(self.deps) if self.see != "nothing" else None
        if repository and self.budget.known:  # it may have been saved before that was known
            repository = fitted(repository, self.budget.repository)
        listed = ids_in(repository)
        if type_ == "next_action":
            kept = _with_ended_round(
                kept, self.state, self.deps, facts, self.see, listed, self.budget
            )
        shown = _still_shown(kept, self.budget)
        self.names = {
            **listed,
            **{one: name for round_ in kept for one, name in round_.tests.items()},
        }
        whole = Diff()
        if type_ != "plan_task" and self.see != "nothing":
            whole = self._whole_change(kept)
        self.change = whole
        self.whole_change = whole.text or self._reported_whole(kept)
        return {
            "rounds": tuple(one.round for one in kept),
            "now": self._now(type_, facts, shown, kept, listed),
            "seen": Seen(
                self._shown_change(type_, whole, kept), whole.left_out, bool(whole.to_look_at)
            ),
            "looks": self.looks,
            "see": self.see,
            "repository": repository,
            "budget": self.budget,
        }

    def _now(
        self,
        type_: MessageType,
        facts: Mapping[str, Any],
        shown: Mapping[str, str],
        kept: Sequence[SavedRound],
        listed: Mapping[str, str],
    ) -> dict[str, Any]:
        """Return the present state, with names of tests that stood only in folded rounds."""
        view = state_of_now(facts, shown, described=type_ == "completion_assessment")
        by_name = {name: one for one, name in self.names.items()}
        view = shortened(view, by_name)
        if self.budget.known:
            view = fitted(view, NOW)
        whole = kept[folded_until([one.round for one in kept], self.budget) :]
        known = {*listed, *(one for round_ in whole for one in round_.tests)}
        in_use = used(view).union(*(round_.test_ids for round_ in whole))
        again = {one: self.names[one] for one in sorted(in_use - known) if one in self.names}
        return {**in_lines(view), **({"test_ids": again} if again else {})}

    def _shown_change(self, type_: MessageType, whole: Diff, kept: Sequence[SavedRound]) -> str:
        """Return the whole change as a decision reads it, without what reports show; a judge gets
        all of it in one place.
        """
        if type_ != "next_action":
            return whole.text
        return not_reported(whole.files, [one.round for one in kept], self.budget)

    def _whole_change(self, kept: Sequence[SavedRound]) -> Diff:
        """Return the whole change; empty where a round that is still shown has just that."""
        before, now = _trees(self.state)
        if not before or not now or before == now:
            return Diff()
        if self._reported_whole(kept):
            return Diff()
        return _diff(self.deps, before, now, self.budget.change, self.budget)

    def _reported_whole(self, kept: Sequence[SavedRound]) -> str:
        """Return the diff of a round that is still shown and was all that changed; else ""."""
        ends = _trees(self.state)
        rounds = (one for one in kept[-STAY:] if (one.before, one.after) == ends)
        return next((one.round.change for one in rounds if not one.round.cut), "")


def _diff(deps: Deps, before: str, now: str, most: int, budget: ContextBudget) -> Diff:
    """Return a diff; where the context is known, with `most` tokens at most."""
    room = min(BUDGET, 4 * most)
    while True:
        found = diff_of(deps.snapshots, before, now, deps.redactor.redact, budget=room)
        size = tokens(found.text) + sum(map(tokens, found.left_out))
        if not budget.known or size <= most or room < most // 8:
            return found
        room = room * most // (size + 1)


def reads_nothing(spec: TaskSpec) -> bool:
    """Whether no planner that decides or judges reads a prompt."""
    return not any(planner_kind(kind).reads_prompts for kind in _kinds(spec))


def no_provider(spec: TaskSpec) -> bool:
    """Whether no planner calls a model, so that nothing is sent to a provider."""
    return not any(planner_kind(kind).calls_model for kind in _kinds(spec))


def _kinds(spec: TaskSpec) -> set[str]:
    """Return the kinds of all who plan, decide or judge."""
    runner = spec.runner
    kinds = {runner.meta.kind, *(runner.assess.kind or "" for _ in (1,) if runner.assess)}
    for profile in (runner.profiles.meta, runner.profiles.plan, runner.profiles.assess):
        kinds |= {one.kind for one in profile.candidates} if profile is not None else set()
    return kinds - {""}


def seeing(state: TaskContext, deps: Deps) -> Seeing:
    """Return what the planner sees in one question."""
    return Seeing(state, deps, seen_by(deps.spec.runner.meta))


def known_repository(deps: Deps) -> dict[str, Any] | None:
    """Return what the planner was shown of the repository while planning, or None."""
    kept = deps.folder.root / CONTEXT_FILE
    if not kept.exists():
        return None
    fields = json.loads(kept.read_bytes()).get(
        "told"
    )  # older versions showed it while planning only
    return dict(fields) if fields else None


def ids_in(repository: Mapping[str, Any] | None) -> dict[str, str]:
    """Return ids of tests that the planner was shown with the repository, with their names."""
    tests = (repository or {}).get("tests")
    return dict(tests.get("ids") or {}) if isinstance(tests, dict) else {}


def red_ids_in(repository: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the ids of tests that were red before the work, in the order in which they are shown.

    Only such a test can show a criterion: one that passes already shows nothing, and small models
    take it where it is offered.
    """
    known = ids_in(repository)
    tests = (repository or {}).get("tests") or {}
    return tuple(name for name in tests.get("red_now") or () if name in known)


def _trees(state: TaskContext) -> tuple[str, str]:
    """Return the tree before the task, and the one that is judged or worked on."""
    baseline, evidence = state.get("baseline"), state.get("evidence")
    before = baseline.tree if baseline else ""
    now = evidence.tree if evidence else state.get("tree") or before
    return before, now


def _still_shown(kept: Sequence[SavedRound], budget: ContextBudget) -> dict[str, str]:
    """Return digests of what the conversation still shows, so without folded rounds."""
    first = folded_until([one.round for one in kept], budget)
    before = kept[first - 1].shown if first else {}
    still: dict[str, str] = {}
    for one in kept[first:]:
        still |= {name: digest for name, digest in one.shown.items() if before.get(name) != digest}
        before = one.shown
    return still


def _with_ended_round(
    kept: list[SavedRound],
    state: TaskContext,
    deps: Deps,
    facts: Mapping[str, Any],
    see: See,
    listed: Mapping[str, str],
    budget: ContextBudget,
) -> list[SavedRound]:
    """Return the rounds up to the one that ends here, which is described once and saved.

    A question that is asked again after a pause or a crash finds it, so that it stays in the same
    bytes.
    """
    key = f"{state['run'].attempt}-{state['counters'].decisions}"
    for number, one in enumerate(kept):
        if one.round.key == key:
            return kept[: number + 1]
    deps.record(
        state, "round", key, asdict(_new_round(key, kept, state, deps, facts, see, listed, budget))
    )
    return deps.rounds.all()


def _new_round(
    key: str, kept: Sequence[SavedRound], state: TaskContext, deps: Deps, facts: Mapping[str, Any],
    see: See, listed: Mapping[str, str], budget: ContextBudget,
) -> SavedRound:  # fmt: skip
    last = kept[-1] if kept else None
    number = str(state["counters"].decisions)
    decision = next((r.data for r in deps.log.records("decision")[::-1] if r.key == number), None)
    if any(one.round.key.endswith(f"-{number}") for one in kept):
        decision = None  # shown in an earlier attempt
    view = report(facts, decision, last.shown if last else {}, last.runs if last else ())
    known = {name: one for one, name in listed.items()}
    known |= {name: one for round_ in kept for one, name in round_.tests.items()}
    new = further(view, known)
    known |= {name: one for one, name in new.items()}
    view = {**({"test_ids": new} if new else {}), **shortened(view, known)}
    first, now = _trees(state)
    before = last.after if last else first
    change, sources = Diff(), ""
    redact = deps.redactor.redact
    if see != "nothing" and now:
        if before and before != now:
            change = _diff(deps, before, now, budget.round_change, budget)
        whole = kept[folded_until([one.round for one in kept], budget) :]
        view = without_diffed(view, change.text, [one.round.change for one in whole])
        # Only what stays in sight for as long as this report does, should older ones be folded.
        earlier = [] if budget.known else [one.round.sources for one in whole[1 - STAY :]]
        sources = sources_of(deps.snapshots, now, _reds(state), redact, known, earlier)
    if budget.known:
        view = fitted(view, budget.report)
        sources = beginning(sources, budget.sources)
    runs = [str(one["worker_run_id"]) for one in facts.get("recent_worker_runs", [])]
    shown_round = Round(
        key=key,
        report=redact(to_yaml(in_lines(view))),
        line=redact(line_of(view, key)),
        change=change.text,
        sources=sources,
        cut=change.left_out,
    )
    return SavedRound(shown_round, digests(sections(facts)), runs, before, now, new)


def _reds(state: TaskContext) -> list[RedTest]:
    """Return tests that are red now, by the suite and by checks."""
    evidence, baseline = state.get("evidence"), state.get("baseline")
    if evidence is None:
        return list(baseline.test.red) if baseline and baseline.test else []
    found = list(evidence.test.red) if evidence.test else []
    return [*found, *(red for check in evidence.checks for red in check.red)]
