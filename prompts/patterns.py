"""The library of command patterns: forms of work that the planner combines by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from agentrunner.config.markdown import Language
from agentrunner.config.yaml_text import read_yaml
from agentrunner.errors.task_files import BadPatterns
from agentrunner.prompts.templates import render
from agentrunner.state.run_state import Criterion

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


class Pattern(BaseModel):
    """One form of work."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    summary: Text
    """One line, by which the planner chooses."""
    instructions: Text
    """Instructions for the worker."""


class Catalog(BaseModel):
    """A pattern file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Annotated[int, Field(ge=1, le=1)]
    patterns: dict[Name, Pattern]


def load_patterns(text: str | None, language: Language) -> dict[str, Pattern]:
    """Return the built-in patterns, with those of the file's `text` added or replacing them.

    Raises UsageError for a file that is no catalog: `patterns-invalid`, or errors of `read_yaml`.
    """
    catalog = dict(_built_in(language).patterns)
    if text is not None:
        catalog.update(_parse(text).patterns)
    return catalog


@cache
def _built_in(language: Language) -> Catalog:
    return _parse((Path(__file__).parent / language / "patterns.yaml").read_text("utf-8"))


def _parse(text: str) -> Catalog:
    tree = read_yaml(text, "patterns file")
    try:
        return Catalog.model_validate(tree.value)
    except ValidationError as problem:
        error = problem.errors()[0]
        place = tree.place(error["loc"])
        raise BadPatterns(
            f"{'.'.join(map(str, error['loc'])) or 'The patterns file'}: {error['msg']}.",
            path=place.where,
            source_line=place.source_line,
            remedy="its form: {version: 1, patterns: {NAME: {summary: TEXT, instructions: TEXT}}}",
        ) from problem


def choose(
    library: Mapping[str, Pattern], names: Sequence[str]
) -> tuple[dict[str, Pattern], list[str]]:
    """Return the named patterns in the given order, each once, and the unknown names."""
    chosen = {name: library[name] for name in names if name in library}
    return chosen, sorted({name for name in names if name not in library})


def own_part(prompt: str, patterns: Mapping[str, Pattern], language: Language) -> tuple[int, int]:
    """Return the characters of a worker's prompt that are about its order: from, up to.

    The others frame every order with these patterns.
    """
    frame = worker_prompt("", [], patterns, language)
    begins = _alike(prompt, frame)
    return begins, len(prompt) - _alike(prompt[begins:][::-1], frame[begins:][::-1])


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def worker_prompt(
    body: str,
    criteria: Sequence[Criterion],
    patterns: Mapping[str, Pattern],
    language: Language,
    people: Mapping[str, Any] | None = None,
) -> str:
    """Frame the planner's prompt for one worker run: role, patterns, task, criteria.

    `people` are people's decisions about what is wanted (`task.people.shown`).

    Only the given `patterns` are added. In particular `summarize_work_as_json` is not forced on
    every run: a worker's report is a witness, and evidence never rests on it.
    """
    return (
        render(
            "worker",
            language,
            body=body.strip(),
            criteria=list(criteria),
            patterns=dict(patterns),
            people=people or {},
        )
        + "\n"
    )
