"""What the models cannot say: short forms, kinds that exist, references that lead somewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentrunner import registry
from agentrunner.errors import UsageError
from agentrunner.task.mistakes import dotted, mistake, suggestion
from agentrunner.task.prd import read_item
from agentrunner.task.spec import Check, CriterionSpec, TaskFile
from agentrunner.task.yaml_text import Path as KeyPath
from agentrunner.task.yaml_text import Tree

_CRITERIA: KeyPath = ("task", "acceptance_criteria")
_NEEDS: dict[str, tuple[str, ...]] = {
    "command": ("run",),
    "file": ("contains", "matches", "exists"),
    "pytest": ("file", "test_name"),
    "playwright": ("file", "test_name"),
    "go-test": ("file", "test_name"),
    "npm-script": ("file", "test_name"),
    "diff": ("must_change", "must_not_change"),
}
"""By kind of check, the fields of which one must be given."""


def shape(tree: Tree, name: str) -> None:
    """Bring short forms into the long one, in place: `test: CMD`, and criteria written as text."""
    task = tree.value.get("task")
    if not isinstance(task, dict):
        return
    if isinstance(task.get("test"), str):
        tree.places["task", "test", "command"] = tree.place(("task", "test"))
        task["test"] = {"command": task["test"]}
    criteria = task.get("acceptance_criteria")
    if isinstance(criteria, list):
        task["acceptance_criteria"] = [
            _criterion(item, (*_CRITERIA, index), tree, name) for index, item in enumerate(criteria)
        ]


def _criterion(item: Any, path: KeyPath, tree: Tree, name: str) -> Any:
    place = tree.place(path)
    if isinstance(item, str):
        criterion = read_item(item, name, place.line or 0)
        return {field: getattr(criterion, field) for field in criterion.model_fields_set}
    if isinstance(item, dict):
        if "line" in item:
            raise mistake(
                tree,
                (*path, "line"),
                f"{dotted((*path, 'line'))} is not a setting.",
                code="unknown-key",
            )
        return {**item, "line": place.line}
    return item


def check_rules(file: TaskFile, tree: Tree, repo: Path, environ: Mapping[str, str]) -> None:
    """Raises UsageError for a valid shape that cannot be carried out."""
    _check_kinds(file, tree)
    _check_env(file, tree, environ)
    _check_criteria(file.task.acceptance_criteria, tree)
    task, note = file.task, file.runner.note
    if task.test:
        _inside(repo, task.test.cwd, tree, ("task", "test", "cwd"))
    _inside(repo, note.dir, tree, ("runner", "note", "dir"))
    for index, criterion in enumerate(task.acceptance_criteria):
        for field in ("cwd", "path"):
            value = getattr(criterion.check, field, "") or "."
            _inside(repo, value, tree, (*_CRITERIA, index, "check", field))


def _check_kinds(file: TaskFile, tree: Tree) -> None:
    runner = file.runner
    for section, kind, known in (
        ("meta", runner.meta.kind, list(registry.METAS)),
        ("worker", runner.worker.kind, list(registry.WORKERS)),
        ("sandbox", runner.sandbox.kind, ["auto", *registry.SANDBOXES]),
    ):
        if kind not in known:
            raise mistake(
                tree,
                ("runner", section, "kind"),
                f'runner.{section}.kind "{kind}" is not known. Known: {", ".join(known)}.',
                code="unknown-kind",
                remedy=suggestion(kind, known),
            )
    command = "--set 'runner.worker.command=[my-agent, \"{prompt_file}\"]'"
    for section, kind, needed, given, remedy in (
        ("worker", "command", "command", runner.worker.command, command),
        ("meta", "script", "script", runner.meta.script, "--set runner.meta.script=replies.yaml"),
    ):
        if getattr(runner, section).kind == kind and not given:
            raise mistake(
                tree,
                ("runner", section, "kind"),
                f"runner.{section}.kind {kind} needs runner.{section}.{needed}.",
                code="missing-key",
                remedy=remedy,
            )


def _check_env(file: TaskFile, tree: Tree, environ: Mapping[str, str]) -> None:
    for key, value in file.runner.worker.env.items():
        name = env_reference(value)
        if name is not None and not environ.get(name):
            path: KeyPath = ("runner", "worker", "env", key)
            raise env_missing(dotted(path), name, tree.place(path).where)


def env_reference(value: str) -> str | None:
    """The variable that `env:NAME` names, None for a literal."""
    prefix, colon, name = value.partition(":")
    return name if colon and prefix == "env" else None


def env_missing(key: str, name: str, where: str = "") -> UsageError:
    """The error for a reference to a variable that is not set; an empty one counts as not set."""
    return UsageError(
        f"{key} takes the environment variable {name}, which is not set."
        if name
        else f"{key} names no variable after env:.",
        code="env-missing",
        path=where or key,
        remedy=f"export {name}=…" if name else "env:NAME, or literal:TEXT",
    )


def _check_criteria(criteria: Iterable[CriterionSpec], tree: Tree) -> None:
    seen: set[str] = set()
    for index, criterion in enumerate(criteria):
        path = (*_CRITERIA, index)
        if criterion.id and criterion.id.casefold() in seen:
            raise mistake(
                tree,
                (*path, "id"),
                f"the id {criterion.id} is used twice.",
                code="duplicate-id",
                remedy="give it another id, or none",
            )
        seen.add(criterion.id.casefold())
        if criterion.check is not None and (problem := _check_problem(criterion.check)):
            raise mistake(
                tree,
                (*path, "check"),
                f"the check of {criterion.id or 'this criterion'} {problem}.",
                code="bad-check",
            )


def _check_problem(check: Check) -> str:
    needed = _NEEDS.get(check.kind, ())
    if needed and all(getattr(check, name) in (None, "", []) for name in needed):
        return f"needs {' or '.join(needed)}"
    if check.kind == "file" and not check.path:
        return "needs path"
    try:
        re.compile(check.matches)
    except re.error as error:
        return f"has a regular expression that cannot be read: {error}"
    return ""


def _inside(repo: Path, value: str, tree: Tree, path: KeyPath) -> None:
    """A folder or file that must be in the repository, with links followed."""
    try:
        real = Path(os.path.realpath(repo / value))
    except ValueError:
        real = Path("/")
    if Path(value).is_absolute() or not real.is_relative_to(repo):
        raise mistake(tree, path, f"{dotted(path)} leads out of the repository.", code="outside")
