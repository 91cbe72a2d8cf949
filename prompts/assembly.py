"""Assemble the messages that a model reads from the facts of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Literal, Self

from msgspec import Struct

from agentrunner.config.agents import See, seen_by
from agentrunner.config.markdown import Language
from agentrunner.config.spec import TaskSpec
from agentrunner.prompts.as_yaml import to_yaml
from agentrunner.prompts.context_budget import UNKNOWN, ContextBudget
from agentrunner.prompts.marking import marked
from agentrunner.prompts.patterns import Pattern
from agentrunner.prompts.rounds import Block, Round, messages_of
from agentrunner.prompts.templates import render, render_part
from agentrunner.protocol.message import MessageType
from agentrunner.protocol.schema import KINDS, Choices
from agentrunner.text.cut import tokens

OF_A_RUN: tuple[MessageType, ...] = ("plan_task", "next_action", "completion_assessment")
ABOUT_PLANS = frozenset({"decompose", "plan_patch"})
"""Messages of a conversation about a plan: the person's message, and the plan."""

PREVIOUS_ANSWER_CHARS = 6000
"""Most characters shown of a refused answer; more costs tokens and adds nothing."""


class PromptMessage(Struct, frozen=True):
    """One message of the conversation."""

    role: Literal["system", "user"]
    content: str


class Repair(Struct, frozen=True):
    """Why an answer was refused."""

    error: str
    answer: str
    cut: bool = False
    """Whether it ended at the output limit."""


class Looked(Struct, frozen=True):
    """What the planner looked at before it answers."""

    text: str
    left: int
    """How many more times it may look."""


@dataclass(frozen=True)
class Seen:
    """What is shown of the code besides the present state."""

    change: str = ""
    """The whole change as a diff; empty if a report shows exactly that."""
    unseen: tuple[str, ...] = ()
    """Parts of the change that are not shown, each with the reason."""
    to_look_at: bool = False
    """Whether a look shows more of it."""


class Quotes(Struct, frozen=True):
    """What a judge that passed criteria is asked to quote from."""

    criteria: tuple[Mapping[str, Any], ...]
    """The criteria that it passed and that nothing else decides; JSON-native."""
    change: str
    """The whole change as a diff."""
    looked: str = ""
    """What it looked at before it judged."""


@dataclass(frozen=True)
class PromptInput:
    """All inputs of a prompt; the same input gives the same bytes."""

    type: MessageType
    facts: Mapping[str, Any]
    """The summary of the run, or the facts of a plan; JSON-native."""
    task: Mapping[str, Any]
    """The content of the task file, without anything about the host."""
    prd_text: str
    """The requirements; in a conversation, the person's present message."""
    salt: str
    """Keys the markers; drawn once per run."""
    call_number: int
    """Number of this attempt on the wire. No text depends on it."""
    language: Language = "en"
    format: Literal["json", "yaml"] = "json"
    """The requested format of the reply; both are accepted."""
    system_prompt: str | Mapping[str, str] | None = None
    """The user's own text for role and policy: for all messages, or by message type."""
    system_prompt_mode: Literal["extend", "replace"] = "extend"
    patterns: Mapping[str, Pattern] = field(default_factory=dict)
    repository: Mapping[str, Any] | None = None
    """What is known of the repository before the work; JSON-native."""
    rounds: Sequence[Round] = ()
    """Past rounds in order; each is told once and never changes."""
    now: Mapping[str, Any] | None = None
    """The present state besides what the rounds tell; without it, all of `facts`."""
    seen: Seen = Seen()
    see: See = "repo"
    """What the planner may see of the code."""
    looks: bool = False
    """Whether it may look."""
    quotes: Quotes | None = None
    """Where set, a judge's second question: a short conversation of its own."""
    choices: Choices | None = None
    """What the task allows, for the schema of the reply."""
    after: Sequence[Repair | Looked] = ()
    """What followed the first request, in order."""
    budget: ContextBudget = UNKNOWN
    """What may be told, in tokens."""

    @classmethod
    def of(
        cls,
        spec: TaskSpec,
        type: MessageType,  # noqa: A002  (the protocol's word)
        *,
        facts: Mapping[str, Any],
        salt: str,
        call_number: int,
        format: Literal["json", "yaml"],  # noqa: A002
        patterns: Mapping[str, Pattern],
        repository: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return the input for a message about this task."""
        meta = spec.runner.meta
        return cls(
            type=type,
            facts=facts,
            task=task_view(spec),
            prd_text=spec.prd_text,
            salt=salt,
            call_number=call_number,
            language=spec.language,
            format=format,
            system_prompt=meta.system_prompt,
            system_prompt_mode=meta.system_prompt_mode,
            patterns=patterns,
            repository=repository,
            see=seen_by(meta),
        )


def task_view(spec: TaskSpec) -> dict[str, object]:
    """Return what a planner may know of the task file: no host paths, environment or settings."""
    task = spec.task
    criteria = [
        criterion.model_dump(exclude_defaults=True, exclude={"line"}) for criterion in spec.criteria
    ]
    view = {
        "id": spec.task_id,
        "title": spec.title,
        "test": task.test.model_dump(include={"command", "cwd"}) if task.test else None,
        "acceptance_criteria": criteria,
        "protect": task.protect,
        "allow_changes": task.allow_changes,
    }
    return {key: value for key, value in view.items() if value not in (None, [])}


def assemble(prompt: PromptInput) -> tuple[PromptMessage, ...]:
    """Return the conversation for one attempt.

    For a run: one system message for all types, the task, each round, the present state with the
    request, and what followed. All but the last parts are the same in the next call.
    """
    if prompt.quotes is not None:
        return (*_about_quotes(prompt, prompt.quotes), *_after(prompt))
    if prompt.type in ABOUT_PLANS:
        return (*_about_plan(prompt), *_after(prompt))
    system, contract = _system(prompt)
    opening = _opening(prompt)
    rounds = messages_of(prompt.rounds, _marker_of(prompt), prompt.language, prompt.budget)
    texts = [
        f"{contract}\n\n{opening}" if contract else opening,
        *rounds,
        _request(prompt),
    ]
    return (
        PromptMessage("system", system),
        *(PromptMessage("user", text) for text in texts),
        *_after(prompt),
    )


def fixed_tokens(spec: TaskSpec) -> int:
    """Return the tokens that every prompt of a run has: rules, task and requirements."""
    prompt = PromptInput.of(
        spec, "next_action", facts={}, salt="", call_number=0, format="json", patterns={}
    )
    system, contract = _system(replace(prompt, looks=prompt.see == "repo"))
    return sum(map(tokens, (system, contract, _opening(prompt))))


def _system(prompt: PromptInput) -> tuple[str, str]:
    """Return the system message, and text of ours to put before the first message."""
    own = prompt.system_prompt
    mine = own.get(prompt.type) if isinstance(own, Mapping) else own
    if mine and prompt.system_prompt_mode == "replace":
        # The system message is entirely the user's. What our parser and the markers need is still
        # said, in the first message.
        return mine.strip(), _built_system(prompt, (), whole=False)
    roles = tuple(sorted(own.items())) if isinstance(own, Mapping) else ()
    if isinstance(own, str) and own.strip():
        return f"{own.strip()}\n\n{_built_system(prompt, (), whole=False)}", ""
    return _built_system(prompt, roles, whole=True), ""


def _built_system(prompt: PromptInput, roles: tuple[tuple[str, str], ...], *, whole: bool) -> str:
    kinds = prompt.choices.kinds if prompt.choices is not None else ()
    return _system_text(
        prompt.language, prompt.format, prompt.see, prompt.looks, roles, kinds or KINDS, whole
    )


@lru_cache(maxsize=32)
def _system_text(
    language: Language, format_: str, see: str, looks: bool, roles: tuple[tuple[str, str], ...],
    kinds: tuple[str, ...], whole: bool,
) -> str:  # fmt: skip
    """Return our system message; without our roles if not `whole`."""
    own, parts = dict(roles), []
    if whole:
        parts.append(render_part("system", "intro", language))
    parts.append(render("rules", language, format=format_))
    parts.append(render_part("system", "seeing", language, see=see))
    if looks:
        parts.append(render_part("system", "looking", language, run=True))
    for type_ in OF_A_RUN:
        role = (own.get(type_) or render_part(type_, "role", language)).strip() if whole else ""
        contract = render_part(
            type_, "contract", language, format=format_, looks=looks, kinds=kinds
        )
        parts.append(render_part("system", type_, language, role=role, contract=contract))
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(parts))


def _about_plan(prompt: PromptInput) -> tuple[PromptMessage, ...]:
    """Return the two messages of a conversation about a plan."""
    own = prompt.system_prompt
    mine = own.get(prompt.type) if isinstance(own, Mapping) else own
    role = (mine or _fixed_part(prompt.type, "role", prompt.language)).strip()
    contract = _fixed_part(
        prompt.type, "contract", prompt.language, format=prompt.format, looks=prompt.looks
    ).strip()
    if prompt.looks:
        looking = _fixed_part("system", "looking", prompt.language, run=False)
        contract = f"{contract}\n\n{looking.strip()}"
    request = _request(prompt)
    if mine and prompt.system_prompt_mode == "replace":
        return (PromptMessage("system", role), PromptMessage("user", f"{contract}\n\n{request}"))
    return (PromptMessage("system", f"{role}\n\n{contract}"), PromptMessage("user", request))


def _about_quotes(prompt: PromptInput, quotes: Quotes) -> tuple[PromptMessage, ...]:
    """Return the two messages of a judge's second question.

    They are short and of their own: a small model that quotes from a few lines does it well, and
    what it said before does not lead it.
    """
    block = _marker_of(prompt)
    people = prompt.facts.get("people")
    rules = render("rules", prompt.language, format=prompt.format)
    request = render_part(
        "quotes",
        "request",
        prompt.language,
        criteria=block("criteria", to_yaml({"criteria": list(quotes.criteria)}), "quotes"),
        people=block("people", to_yaml(people)) if people else "",
        change=block("change", quotes.change, "whole"),
        looked=block("looked", quotes.looked, "quotes") if quotes.looked else "",
    )
    return (
        PromptMessage("system", render_part("quotes", "system", prompt.language, rules=rules)),
        PromptMessage("user", re.sub(r"\n{3,}", "\n\n", request)),
    )


_fixed_part = lru_cache(maxsize=32)(render_part)
"""The parts that are the same in every call."""


def _marker_of(prompt: PromptInput) -> Block:
    return _marker(prompt.salt)


@lru_cache(maxsize=128)
def _marker(salt: str) -> Block:
    """Return the same object for one run, by which its rounds know their texts again."""
    return partial(marked, salt)


def _opening(prompt: PromptInput) -> str:
    """Return the task as it is in every call."""
    block = _marker_of(prompt)
    summaries = {name: pattern.summary for name, pattern in prompt.patterns.items()}
    workers = [
        {
            key: one[key]
            for key in ("worker_type", "kind", "model", "further_models")
            if one.get(key)
        }
        for one in prompt.facts.get("workers", [])
    ]
    choices = {"workers": workers, "patterns": summaries} if workers or summaries else {}
    return render(
        "opening",
        prompt.language,
        task=block("task", to_yaml(prompt.task)),
        prd=block("prd", prompt.prd_text),
        repository=_repository(prompt, block),
        workers=block("workers", to_yaml(choices)) if choices else "",
    )


def _repository(prompt: PromptInput, block: Block) -> str:
    """Return what is known of the repository; what it has none of is left out."""
    parts = (prompt.repository or {}).items()
    known = {key: part for key, part in parts if part not in (None, "", [], {})}
    return block("repository", to_yaml(known)) if known else ""


def _request(prompt: PromptInput) -> str:
    """Return the present state, and the request."""
    block = _marker_of(prompt)
    parts = _plan_parts if prompt.type in ABOUT_PLANS else _run_parts
    return render_part(
        prompt.type,
        "request",
        prompt.language,
        **parts(prompt, block),
        format=prompt.format,
        looks=prompt.looks,
    )


def _after(prompt: PromptInput) -> Iterator[PromptMessage]:
    """Yield what followed the first request, each as its own message."""
    block = _marker_of(prompt)
    for number, one in enumerate(prompt.after):
        if isinstance(one, Looked):
            text = render(
                "looked",
                prompt.language,
                type=prompt.type,
                format=prompt.format,
                looked=block("looked", one.text, str(number)),
                left=one.left,
            )
        else:
            shown = one.answer[: min(PREVIOUS_ANSWER_CHARS, 2 * prompt.budget.looks)]
            text = render(
                "repair",
                prompt.language,
                type=prompt.type,
                format=prompt.format,
                cut=one.cut,
                shortened=len(one.answer) > len(shown),
                error=block("error", one.error, str(number)),
                answer=block("previous_answer", shown, str(number)) if shown.strip() else "",
            )
        yield PromptMessage("user", text)


def _run_parts(prompt: PromptInput, block: Block) -> dict[str, object]:
    """Return what is new in a message about a run."""
    notes = {"notes": list(prompt.facts.get("notes", []))}
    people = prompt.facts.get("people")
    now = prompt.now if prompt.now is not None else _context(prompt.facts)
    seen = prompt.seen
    return {
        "context": block("context", to_yaml(now)),
        "notes": block("notes", to_yaml(notes)) if notes["notes"] else "",
        "people": block("people", to_yaml(people)) if people else "",
        "change": block("change", seen.change, "whole") if seen.change else "",
        "unseen": block("unseen", "\n".join(seen.unseen)) if seen.unseen else "",
        "to_look_at": seen.to_look_at,
        "green": _green(prompt.facts),
        "statuses": {one.get("status") for one in prompt.facts.get("acceptance_criteria", ())},
    }


def _green(facts: Mapping[str, Any]) -> Literal["", "turned", "added"]:
    """Return what there is to show where all that is executed passes and nothing speaks against it.

    That is checks and tests that did not pass before, or else tests that were not there before.
    Small models ask a person there, or repeat the order, unless the request says so.
    """
    evidence, refused = facts.get("evidence") or {}, facts.get("refused") or {}
    if (
        not evidence.get("exists")
        or evidence.get("red")
        or evidence.get("findings")
        or any(check["outcome"] != "passed" for check in evidence.get("checks", ()))
        or refused.get("completion")
    ):
        return ""
    if evidence.get("proof"):
        return "turned"
    test = facts.get("test_result") or {}
    return "added" if test.get("green") and test.get("new_and_passing") else ""


def _plan_parts(prompt: PromptInput, block: Block) -> dict[str, object]:
    """Return the parts of a message about a plan."""
    return {
        "plan": block("plan", to_yaml(prompt.facts)),
        "repository": _repository(prompt, block),
        "message": block("message", prompt.prd_text),
    }


def _context(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the facts without those that have their own block: the PRD, and people's decisions."""
    facts = {name: value for name, value in facts.items() if name != "people"}
    task = facts.get("task")
    if not isinstance(task, Mapping):
        return facts
    return {**facts, "task": {key: task[key] for key in task if key != "prd_summary"}}
