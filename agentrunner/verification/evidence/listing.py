"""The inputs of a task's proof, and how they are listed for people and programs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.verification.evidence.checks import commands_of
from agentrunner.verification.inputs.finder import find_inputs
from agentrunner.verification.inputs.globs import matches
from agentrunner.verification.inputs.model import Input, Inputs
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.registry import readers_of

ORDER = ("test", "fixture", "runner", "recipe", "config")
"""The order of kinds in a list: what people look for first."""
MOST_LISTED = 50
"""Entries of each list in a header; `validate --json` prints all of them."""


def inputs_of_task(spec: TaskSpec, paths: Collection[str], read: ReadFile) -> Inputs:
    """The inputs of a task's proof on a tree, before any command ran."""
    test = spec.task.test
    return find_inputs(
        commands_of(spec, read),
        paths,
        read,
        declared_tests=test.paths if test else (),
        declared_product=test.product if test else (),
        wanted=spec.wanted,
    )


def listed(inputs: Inputs, most: int | None = None) -> dict[str, Any]:
    """The lists as plain data: `tests`, `product` and `unsure`, each with `path` and `why`.

    `most` bounds each list; the number left out follows as `tests_more` and so on.
    """
    ordered = sorted(inputs.deciding, key=lambda entry: (entry.region, ORDER.index(entry.kind)))
    lists: Mapping[str, Sequence[Input]] = {
        "tests": [entry for entry in ordered if entry.exists],
        "product": inputs.product,
        "unsure": inputs.unsure,
    }
    lists_as_data: dict[str, Any] = {}
    for name, entries in lists.items():
        lists_as_data[name] = [_entry(entry) for entry in entries[:most]]
        if most is not None and len(entries) > most:
            lists_as_data[f"{name}_more"] = len(entries) - most
    return lists_as_data


def _entry(entry: Input) -> dict[str, Any]:
    data: dict[str, Any] = {"path": entry.path, "why": entry.why, "kind": entry.kind}
    if entry.parts:
        data["parts"] = list(entry.parts)
    if entry.region:
        data["region"] = True
    return data


def nameless_command(spec: TaskSpec, read: ReadFile) -> str:
    """The test command, where no known test tool reports its tests by name; else ""."""
    test = spec.task.test
    return test.command if test and not readers_of(test.command, test.cwd, read) else ""


def problems(spec: TaskSpec, paths: Collection[str]) -> list[tuple[str, str]]:
    """Mistakes in the globs of a task on a tree: the setting's place, and a sentence."""
    test = spec.task.test
    if test is None:
        return []
    found = []
    for key, globs in (("paths", test.paths), ("product", test.product)):
        for index, glob in enumerate(globs):
            if not any(matches(path, [glob]) for path in paths):
                key_path = f"task.test.{key}[{index}]"
                where = spec.places.get(key_path) or spec.places.get(f"task.test.{key}") or key_path
                found.append((where, f'task.test.{key}: "{glob}" matches no file'))
    if test.paths and test.product:
        both = [p for p in paths if matches(p, test.paths) and matches(p, test.product)]
        if both:
            where = spec.places.get("task.test.product", "task.test.product")
            names = ", ".join(sorted(both)[:3]) + ", …" * (len(both) > 3)
            found.append((where, f"task.test.paths and task.test.product both match {names}"))
    return found
