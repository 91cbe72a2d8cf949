"""The inputs of a task's proof, and how they are listed for people and programs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.verification.checks import commands_of
from agentrunner.verification.inputs.find import find_inputs
from agentrunner.verification.inputs.model import Input, Inputs
from agentrunner.verification.inputs.steering import matches
from agentrunner.verification.inputs.tree import ReadFile

ORDER = ("test", "fixture", "runner", "recipe", "config")
"""What people look for first."""
MOST_LISTED = 50
"""Of each list that goes into a header; all of them are in what `validate --json` prints."""


def inputs_of_task(spec: TaskSpec, paths: Collection[str], read: ReadFile) -> Inputs:
    """What decides about a task on a tree, before any command ran."""
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

    `most` bounds each list; how many were left out stands beside it as `tests_more` and so on.
    """
    ordered = sorted(inputs.tests, key=lambda one: (one.region, ORDER.index(one.kind)))
    lists: Mapping[str, Sequence[Input]] = {
        "tests": [one for one in ordered if one.exists],
        "product": inputs.product,
        "unsure": inputs.unsure,
    }
    out: dict[str, Any] = {}
    for name, entries in lists.items():
        out[name] = [_entry(one) for one in entries[:most]]
        if most is not None and len(entries) > most:
            out[f"{name}_more"] = len(entries) - most
    return out


def _entry(one: Input) -> dict[str, Any]:
    entry: dict[str, Any] = {"path": one.path, "why": one.why, "kind": one.kind}
    if one.parts:
        entry["parts"] = list(one.parts)
    if one.region:
        entry["region"] = True
    return entry


def problems(spec: TaskSpec, paths: Collection[str]) -> list[tuple[str, str]]:
    """What is wrong with the globs of a task on a tree: the setting's place, and a sentence."""
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
