"""What counts as tests in a checkout now: for validate, --dry-run and the header."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentrunner.config.spec import TaskSpec
from agentrunner.discovery.git import MOST_FILES, files_of, reader_of
from agentrunner.verification.evidence.checks import commands_of
from agentrunner.verification.inputs.finder import find_inputs
from agentrunner.verification.inputs.globs import is_executable_config, matches
from agentrunner.verification.inputs.model import Input, Inputs
from agentrunner.verification.inputs.wanted_changes import named_new
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.registry import readers_of

FREE = ".gitattributes"
"""Only matters if it will name a driver, which nobody knows yet."""

ORDER = ("test", "fixture", "runner", "recipe", "config")
"""The order of kinds in a list: what people look for first."""
MOST_LISTED = 50
"""Entries of each list in a header; `validate --json` prints all of them."""

MOST_FILES_AT_START = 20_000
"""Largest repository for which a run's header shows it; `validate` accepts larger ones."""


class ProofInputs(Struct, frozen=True):
    """The lists `tests`, `product` and `unsure`, and problems of the task's globs.

    `nameless` is the test command, where no known test tool is in it that reports names.
    """

    lists: dict[str, object] | None = None
    """None if nothing is executed, or there are too many files."""
    problems: list[str] = field(default_factory=list)
    """Sentences with the place in the task file."""


def proof_inputs(
    spec: TaskSpec, *, most_files: int = MOST_FILES, most_listed: int | None = None
) -> ProofInputs:
    """The inputs of the proof, judged by the files that exist now. Blocks; runs nothing."""
    repo = Path(spec.repo)
    read = reader_of(repo)
    if not commands_of(spec, read):
        return ProofInputs()
    paths = files_of(repo, most_files)
    if paths is None:
        return ProofInputs()

    found_problems = [f"{where}: {text}" for where, text in problems(spec, paths)]
    lists = listed(inputs_of_task(spec, paths, read), most_listed)
    if nameless := nameless_command(spec, read):
        lists["nameless"] = nameless
    return ProofInputs(lists, found_problems)


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


def asked_protected(spec: TaskSpec) -> list[str]:
    """Return a sentence for each requested path whose change a person would have to approve."""
    named = named_new(spec.wanted)
    for criterion in spec.criteria:
        check = criterion.check
        if check is not None and check.kind == "file" and check.exists is not False:
            named.append(posixpath.normpath(check.path))
    found = []
    for path in dict.fromkeys(named):
        if matches(path, spec.task.protect):
            found.append(f"{path} is asked for, and task.protect says that no worker may change it")
        elif (
            is_executable_config(path)
            and path != FREE
            and not matches(path, spec.task.allow_changes)
        ):
            found.append(
                f"{path} is asked for, and tools run what it says without asking: a person"
                f" has to approve it, or task.allow_changes: [{path}] allows it now"
            )
    return found
