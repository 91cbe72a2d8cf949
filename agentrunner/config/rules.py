"""Rules beyond the models: short forms, existing kinds, references that must lead somewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentrunner import registry
from agentrunner.config.agents import AUTO, WorkerSpec, named_workers
from agentrunner.config.kinds import planner_kind
from agentrunner.config.mistakes import suggestion
from agentrunner.config.prd import read_item, read_words
from agentrunner.config.spec import Check, CriterionSpec, RunnerSection, TaskFile, TestSpec
from agentrunner.config.yaml_text import Path as KeyPath
from agentrunner.config.yaml_text import YamlTree, dotted
from agentrunner.errors import UsageError
from agentrunner.errors.command_line import BadOption, UnknownKind
from agentrunner.errors.task_files import (
    BadCheck,
    BadValue,
    DuplicateId,
    FileOutside,
    MissingKey,
    UnknownCandidate,
    UnknownKey,
    VariableMissing,
)
from agentrunner.registry import canonical_worker_type

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
"""By kind of check, the fields of which at least one must be given."""
_CHECK_KINDS = ("command", "test", *(kind for kind in _NEEDS if kind != "command"))
"""What a person may write; of a model's kinds, unknown ones are kept and not executed."""
COMMAND_CHECK = "{kind: command, run: COMMAND} runs a command in a shell"


_IMPLY_KIND = {
    "meta": ("kind", "model", "base_url", "script"),
    "worker": ("kind", "model", "models", "base_url", "command", "docker_image", "flags"),
}
"""Settings that imply one kind of planner or worker: the usual kind if none is named."""


def shape(tree: YamlTree, name: str) -> None:
    """Expand short forms in place: `test: CMD`, and criteria written as text."""
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


def _criterion(item: Any, path: KeyPath, tree: YamlTree, name: str) -> Any:
    place = tree.place(path)
    if isinstance(item, str):
        criterion = read_item(item, name, place.line or 0)
        return {field: getattr(criterion, field) for field in criterion.model_fields_set}
    if isinstance(item, dict):
        if "line" in item:
            raise tree.error(
                UnknownKey, (*path, "line"), f"{dotted((*path, 'line'))} is not a setting."
            )
        found = {**item, "line": place.line}
        if isinstance(check := item.get("check"), str):
            about = str(item.get("id") or f"criterion {path[-1]}")
            if words := read_words(check, name, place.line or 0, about):
                found["check"] = {field: getattr(words, field) for field in words.model_fields_set}
        return found
    return item


def check_rules(file: TaskFile, tree: YamlTree, repo: Path, environ: Mapping[str, str]) -> None:
    """Raise UsageError for a task that is valid in shape but cannot be run."""
    _check_kinds(file, tree)
    _check_planner_options(file.runner, tree)
    _check_names(file, tree)
    _check_env(file, tree, environ)
    _check_task_env(file, tree, environ)
    _check_criteria(file.task.acceptance_criteria, tree)
    task, note = file.task, file.runner.note
    if task.test:
        _require_inside(repo, task.test.cwd, tree, ("task", "test", "cwd"))
        _check_globs(task.test, tree)
    _require_inside(repo, note.dir, tree, ("runner", "note", "dir"))
    for index, criterion in enumerate(task.acceptance_criteria):
        for field in ("cwd", "path"):
            value = getattr(criterion.check, field, "") or "."
            _require_inside(repo, value, tree, (*_CRITERIA, index, "check", field))


def _check_planner_options(runner: RunnerSection, tree: YamlTree) -> None:
    """Raise BadOption for an option about the model of a planner that asks none."""
    if planner_kind(runner.meta.kind).calls_model or runner.profiles.meta.candidates:
        return
    for key in ("model", "base_url"):
        place = tree.place(("runner", "meta", key))
        if place.where in ("--planner-model", "--base-url"):
            raise BadOption(
                f"The planner is {runner.meta.kind}, which asks no model.",
                path=place.where,
                remedy="name one that does, as --planner openai-chat, or leave this option out",
            )


def refuse_both(tree: YamlTree) -> None:
    """Raise UsageError if both one worker and a list of workers are given."""
    runner = tree.value.get("runner")
    if isinstance(runner, dict) and runner.get("workers") and "worker" in runner:
        raise tree.error(
            BadValue,
            ("runner", "worker"),
            "runner.worker and runner.workers are both given.",
            "write it into the list, or leave the list out",
        )


def canonical_kinds(tree: YamlTree) -> None:
    """Give the kinds of workers and planners their canonical spelling (`codex`, `Claude_Code`)."""
    runner = tree.value.get("runner")
    if not isinstance(runner, dict):
        return
    profiles = runner.get("profiles")
    roles = profiles.values() if isinstance(profiles, dict) else ()
    lists = [runner.get("workers"), *(r.get("candidates") for r in roles if isinstance(r, dict))]
    sections = [runner.get("worker"), runner.get("meta"), runner.get("assess")]
    sections += [one for found in lists if isinstance(found, list) for one in found]
    for section in sections:
        if isinstance(section, dict) and isinstance(section.get("kind"), str):
            kind = canonical_worker_type(section["kind"])
            if kind in registry.WORKERS or kind in registry.PLANNERS:
                section["kind"] = kind


def leave_kinds_open(tree: YamlTree) -> None:
    """Set kind `auto` for a planner and a worker without any setting that implies a kind.

    A model without a kind, for instance, implies the kind that was always the default. A model that
    an option names does not: it belongs to whichever kind is chosen.
    """
    runner = tree.value.setdefault("runner", {})
    for section, telling in _IMPLY_KIND.items():
        if section == "worker" and runner.get("workers"):
            continue
        own = runner.setdefault(section, {})
        if not any(own.get(name) and _implies_kind(tree, section, name) for name in telling):
            own["kind"] = AUTO


def _implies_kind(tree: YamlTree, section: str, name: str) -> bool:
    return tree.place(("runner", section, name)).where not in ("--model", "--planner-model")


def _check_kinds(file: TaskFile, tree: YamlTree) -> None:
    runner = file.runner
    metas, workers = list(registry.PLANNERS), list(registry.WORKERS)
    _check_kind(runner.meta.kind, [AUTO, *metas], tree, ("runner", "meta", "kind"))
    _check_kind(
        runner.sandbox.kind, ["auto", *registry.SANDBOXES], tree, ("runner", "sandbox", "kind")
    )
    for path, kind in planner_candidates(runner):
        _check_kind(kind, metas, tree, (*path, "kind"))
    for path, worker in written_workers(runner):
        alone = [AUTO] if path == ("runner", "worker") else []
        _check_kind(worker.kind, [*alone, *workers], tree, (*path, "kind"))
        if worker.kind == "command" and not worker.command:
            remedy = f"--set '{dotted(path)}.command=[my-agent, \"{{prompt_file}}\"]'"
            _refuse_incomplete(tree, path, "command", "command", remedy)
        if worker.kind == AUTO and worker.command:
            raise tree.error(
                BadValue,
                (*path, "command"),
                "runner.worker.command has no meaning with the kind auto.",
                "--worker command, or the kind of the CLI whose path it is",
            )
    if runner.meta.kind == "script" and not runner.meta.script:
        remedy = "--set runner.meta.script=replies.yaml"
        _refuse_incomplete(tree, ("runner", "meta"), "script", "script", remedy)


def _check_kind(
    kind: str, known: Sequence[str], tree: YamlTree, path: KeyPath, otherwise: str = ""
) -> None:
    if kind not in known:
        raise tree.error(
            UnknownKind,
            path,
            f'{dotted(path)} "{kind}" is not known. Known: {", ".join(known)}.',
            suggestion(kind, known) or otherwise or _who_can(path),
        )


def _who_can(path: KeyPath) -> str:
    """Return the command that shows what can be used in this section of a task file."""
    if "sandbox" in path:
        return "agentrunner doctor   shows which sandboxes work here"
    if "worker" in path or "workers" in path:
        return "agentrunner workers   shows who can work here"
    return "agentrunner planners   shows who can plan here"


def _refuse_incomplete(tree: YamlTree, path: KeyPath, kind: str, needed: str, remedy: str) -> None:
    raise tree.error(
        MissingKey,
        (*path, "kind"),
        f"{dotted((*path, 'kind'))} {kind} needs {dotted((*path, needed))}.",
        remedy,
    )


def written_workers(runner: RunnerSection) -> list[tuple[KeyPath, WorkerSpec]]:
    """Return each worker candidate and its path: `runner.worker`, or its place in the list."""
    if not runner.workers:
        return [(("runner", "worker"), runner.worker)]
    return [(("runner", "workers", i), worker) for i, worker in enumerate(runner.workers)]


def planner_candidates(runner: RunnerSection) -> Iterator[tuple[KeyPath, str]]:
    """Yield path and kind of every other planner candidate beside `runner.meta`."""
    if runner.assess is not None and runner.assess.kind is not None:
        yield ("runner", "assess"), runner.assess.kind
    profiles = runner.profiles
    for role, profile in (
        ("meta", profiles.meta), ("plan", profiles.plan), ("assess", profiles.assess),
    ):  # fmt: skip
        for index, one in enumerate(profile.candidates if profile else ()):
            yield ("runner", "profiles", role, "candidates", index), one.kind


def _check_names(file: TaskFile, tree: YamlTree) -> None:
    """Check that candidates have different names, and that the forced one exists."""
    runner = file.runner
    seen: set[str] = set()
    for (path, worker), (name, _) in zip(
        written_workers(runner),
        named_workers(runner.workers or [runner.worker]),
        strict=True,
    ):
        # A kind that occurs twice gets a number; a name that somebody gave must be unique.
        if (worker.name or name) in seen:
            raise tree.error(
                DuplicateId,
                (*path, "name"),
                f"the name {worker.name or name} is used by two workers.",
                "give it another name, or none",
            )
        seen.add(name)
    force = runner.profiles.worker.force
    if force and force not in seen:
        raise tree.error(
            UnknownCandidate,
            ("runner", "profiles", "worker", "force"),
            f'runner.profiles.worker.force is "{force}", and no worker has that name. '
            f"There is {', '.join(sorted(seen))}.",
            suggestion(force, seen),
        )


def _check_env(file: TaskFile, tree: YamlTree, environ: Mapping[str, str]) -> None:
    for place, worker in written_workers(file.runner):
        for key, value in worker.env.items():
            name = env_reference(value)
            if name is not None and not environ.get(name):
                path = (*place, "env", key)
                raise env_missing(dotted(path), name, tree.place(path).where)


def _check_task_env(file: TaskFile, tree: YamlTree, environ: Mapping[str, str]) -> None:
    """Refuse secrets outside of the set-up: tests and checks run what workers wrote."""
    for key, value in file.task.env.items():
        if env_reference(value) is not None:
            raise tree.error(
                BadValue,
                ("task", "env", key),
                f"task.env.{key} refers to a variable of ours, which only a set-up may be given.",
                "task.setup.env, or literal:TEXT for the text itself",
            )
    for key, value in (file.task.setup.env if file.task.setup else {}).items():
        name = env_reference(value)
        if name is not None and not environ.get(name):
            path = ("task", "setup", "env", key)
            raise env_missing(dotted(path), name, tree.place(path).where)


def env_reference(value: str) -> str | None:
    """Return the variable that `env:NAME` names, None for a literal."""
    prefix, colon, name = value.partition(":")
    return name if colon and prefix == "env" else None


def env_missing(key: str, name: str, where: str = "") -> UsageError:
    """Return the error for a reference to a variable that is not set; empty counts as not set."""
    return VariableMissing(
        f"{key} takes the environment variable {name}, which is not set."
        if name
        else f"{key} names no variable after env:.",
        path=where or key,
        remedy=f"export {name}=…" if name else "env:NAME, or literal:TEXT",
    )


def _check_criteria(criteria: Iterable[CriterionSpec], tree: YamlTree) -> None:
    seen: set[str] = set()
    for index, criterion in enumerate(criteria):
        path = (*_CRITERIA, index)
        if criterion.id and criterion.id.casefold() in seen:
            raise tree.error(
                DuplicateId,
                (*path, "id"),
                f"the id {criterion.id} is used twice.",
                "give it another id, or none",
            )
        seen.add(criterion.id.casefold())
        if criterion.check is not None:
            where = (*path, "check", "kind")
            _check_kind(criterion.check.kind, _CHECK_KINDS, tree, where, COMMAND_CHECK)
        if criterion.check is not None and (problem := _check_problem(criterion.check)):
            raise tree.error(
                BadCheck,
                (*path, "check"),
                f"the check of {criterion.id or 'this criterion'} {problem}.",
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


def _check_globs(test: TestSpec, tree: YamlTree) -> None:
    """Check that the globs of tests and product lie in the repository, and that none is in both."""
    product = {glob.strip("/") for glob in test.product}
    for key, globs in (("paths", test.paths), ("product", test.product)):
        for index, glob in enumerate(globs):
            path = ("task", "test", key, index)
            if glob.startswith("/") or ".." in glob.split("/") or not glob.strip("/"):
                raise tree.error(
                    FileOutside,
                    path,
                    f'{dotted(path)} "{glob}" names nothing in the repository.',
                    "write it relative to the repository, as tests/** or check_*.c",
                )
            if key == "paths" and glob.strip("/") in product:
                raise tree.error(
                    BadValue,
                    path,
                    f'"{glob}" is in task.test.paths and in task.test.product.',
                    "a file is a test or the product: take it out of one of them",
                )


def _require_inside(repo: Path, value: str, tree: YamlTree, path: KeyPath) -> None:
    """Refuse a folder or file outside of the repository, with links followed."""
    try:
        real = Path(os.path.realpath(repo / value))
    except ValueError:
        real = Path("/")
    if Path(value).is_absolute() or not real.is_relative_to(repo):
        raise tree.error(FileOutside, path, f"{dotted(path)} leads out of the repository.")
