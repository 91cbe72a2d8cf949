"""From the facts of a run to the messages that a model reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Self

import yaml
from yaml.representer import SafeRepresenter

from agentrunner.config.spec import TaskSpec
from agentrunner.prompts.marking import marked
from agentrunner.prompts.patterns import Pattern
from agentrunner.prompts.templates import Language, render, render_part

try:
    from yaml import CSafeDumper as CDumper
except ImportError:  # PyYAML without libyaml
    from yaml import SafeDumper as CDumper  # type: ignore[assignment]

PromptType = Literal["plan_task", "next_action", "completion_assessment", "decompose", "plan_patch"]
ABOUT_PLANS = frozenset({"decompose", "plan_patch"})
"""Messages of a conversation: what a person says, and the plan that it is about."""

PREVIOUS_ANSWER_CHARS = 6000
"""How much of a refused answer is shown again; more costs tokens and tells nothing new."""


@dataclass(frozen=True)
class PromptMessage:
    """One message of the conversation."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True)
class Repair:
    """Why the previous answer was refused."""

    error: str
    answer: str
    cut: bool = False
    """It ended at the output limit."""


@dataclass(frozen=True)
class PromptInput:
    """Everything a prompt is made of; the same input gives the same bytes."""

    type: PromptType
    facts: Mapping[str, Any]
    """The summary of the run, or the facts of a plan; JSON-native."""
    task: Mapping[str, Any]
    """What the task file says, without anything of the host."""
    prd_text: str
    """The requirements; in a conversation, what the person says now."""
    salt: str
    """Keys the markers; drawn once per run."""
    call_number: int
    """Number of this attempt on the wire."""
    language: Language = "en"
    format: Literal["json", "yaml"] = "json"
    """What the reply is asked for in; both are read."""
    system_prompt: str | Mapping[str, str] | None = None
    """The user's own words for the role and policy: for all messages, or by message type."""
    system_prompt_mode: Literal["extend", "replace"] = "extend"
    patterns: Mapping[str, Pattern] = field(default_factory=dict)
    repository: Mapping[str, Any] | None = None
    """What is known of the repository before the work, for a plan; JSON-native."""
    repair: Repair | None = None

    @classmethod
    def of(
        cls,
        spec: TaskSpec,
        type: PromptType,  # noqa: A002  (the protocol's word)
        *,
        facts: Mapping[str, Any],
        salt: str,
        call_number: int,
        format: Literal["json", "yaml"],  # noqa: A002
        patterns: Mapping[str, Pattern],
        repository: Mapping[str, Any] | None = None,
    ) -> Self:
        """The input for a message about this task."""
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
        )


def task_view(spec: TaskSpec) -> dict[str, Any]:
    """What a planner may know of the task file: no host paths, no environment, no settings."""
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
    """The system message and the user message for one attempt."""
    role, own = _role(prompt)
    contract = _fixed_part(prompt.type, "contract", prompt.language, format=prompt.format)
    request = _request(prompt)
    if own and prompt.system_prompt_mode == "replace":
        # The system message is the user's to the last word. What our parser and the markers
        # need is told all the same, in the user message.
        return (PromptMessage("system", role), PromptMessage("user", f"{contract}\n\n{request}"))
    return (PromptMessage("system", f"{role}\n\n{contract}"), PromptMessage("user", request))


def _role(prompt: PromptInput) -> tuple[str, bool]:
    """The role and policy, and whether they are the user's own."""
    own = prompt.system_prompt
    if isinstance(own, Mapping):
        own = own.get(prompt.type)
    if own:
        return own.strip(), True
    return _fixed_part(prompt.type, "role", prompt.language), False


_fixed_part = lru_cache(maxsize=32)(render_part)
"""What is the same in every call."""


def _request(prompt: PromptInput) -> str:
    def block(name: str, text: str) -> str:
        return marked(prompt.salt, prompt.call_number, prompt.type, name, text)

    parts = _plan_parts if prompt.type in ABOUT_PLANS else _run_parts
    request = render_part(
        prompt.type,
        "request",
        prompt.language,
        **parts(prompt, block),
        repository=block("repository", to_yaml(prompt.repository)) if prompt.repository else "",
        format=prompt.format,
    )
    if prompt.repair is None:
        return request
    answer = prompt.repair.answer
    shown = answer[:PREVIOUS_ANSWER_CHARS]
    again = render(
        "repair",
        prompt.language,
        type=prompt.type,
        format=prompt.format,
        cut=prompt.repair.cut,
        shortened=len(answer) > len(shown),
        error=block("error", prompt.repair.error),
        answer=block("previous_answer", shown) if shown.strip() else "",
    )
    return f"{request}\n\n{again}"


def _run_parts(prompt: PromptInput, block: Callable[[str, str], str]) -> dict[str, str]:
    """What a message about a run is made of."""
    summaries = {name: pattern.summary for name, pattern in prompt.patterns.items()}
    notes = {"notes": list(prompt.facts.get("notes", []))}
    people = prompt.facts.get("people")
    return {
        "task": block("task", to_yaml(prompt.task)),
        "prd": block("prd", prompt.prd_text),
        "context": block("context", to_yaml(_context(prompt.facts))),
        "patterns": block("patterns", to_yaml(summaries)) if summaries else "",
        "notes": block("notes", to_yaml(notes)) if notes["notes"] else "",
        "people": block("people", to_yaml(people)) if people else "",
    }


def _plan_parts(prompt: PromptInput, block: Callable[[str, str], str]) -> dict[str, str]:
    """What a message about a plan is made of."""
    return {
        "plan": block("plan", to_yaml(prompt.facts)),
        "message": block("message", prompt.prd_text),
    }


def _context(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The facts without what has a block of its own: the PRD, and what people decided."""
    facts = {name: value for name, value in facts.items() if name != "people"}
    task = facts.get("task")
    if not isinstance(task, Mapping):
        return facts
    return {**facts, "task": {key: task[key] for key in task if key != "prd_summary"}}


class _ForReading(SafeRepresenter):
    """YAML for reading: several lines stay several lines, repeated values are written out."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(representer: SafeRepresenter, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return representer.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_ForReading.add_representer(str, _text)


class _Dumper(_ForReading, yaml.SafeDumper):
    """Writes every printable character as it is."""


class _FastDumper(_ForReading, CDumper):
    """The same by libyaml, in a tenth of the time; but it escapes what is beyond U+FFFF."""


def to_yaml(value: Mapping[str, Any]) -> str:
    """Plain data as YAML, in the order given.

    An entry of a block mapping is written the same whatever stands beside it, and most entries
    are the same in every call of a run: each is written once.
    """
    return "".join(_block(name, item) for name, item in value.items()) or "{}\n"


def _block(name: str, value: Any) -> str:
    """An entry; of a list of mappings each is one of its own, as its neighbours are in it again."""
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return "".join([_entry(json.dumps({name: []})).removesuffix(" []\n") + "\n",
                        *(_entry(json.dumps([item])) for item in value)])  # fmt: skip
    return _entry(json.dumps({name: value}))


@lru_cache(maxsize=128)
def _entry(entry: str) -> str:
    """A value given as JSON, as YAML."""
    value = json.loads(entry)
    text = _dumped(value, _FastDumper)
    return _dumped(value, _Dumper) if "\\U" in text else text


def _dumped(value: Any, dumper: type[_Dumper | _FastDumper]) -> str:
    return str(yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=10**6))
