"""Load a task file, a PRD or a goal as a TaskSpec: read, combine, validate as a whole.

Every mistake of a caller is a UsageError with its place. Nothing is written and no process is
started.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentrunner.config.agents import AUTO, PlannerSpec, WorkerSpec
from agentrunner.config.config_files import lay_under, read_layers
from agentrunner.config.document import Document, body, read_document
from agentrunner.config.document import TaskSource as TaskSource
from agentrunner.config.document import read_stdin as read_stdin
from agentrunner.config.kinds import planner_kind
from agentrunner.config.layers import (
    apply_options,
    apply_overrides,
    given_options,
    leave_other_kinds,
)
from agentrunner.config.markdown import detect_language
from agentrunner.config.mistakes import from_validation
from agentrunner.config.naming import task_id_from
from agentrunner.config.prd import read_criteria, title_in
from agentrunner.config.repo import bare_root, checked_repo, git_root
from agentrunner.config.rules import (
    canonical_kinds,
    check_rules,
    env_missing,
    env_reference,
    leave_kinds_open,
    refuse_both,
    shape,
)
from agentrunner.config.spec import (
    NOTE_TEMPLATES,
    CriterionSpec,
    Reading,
    RunnerSection,
    Source,
    TaskFile,
    TaskSection,
    TaskSpec,
    TestSpec,
)
from agentrunner.config.text_files import read_text
from agentrunner.config.yaml_text import Place, YamlTree, dotted
from agentrunner.errors import UsageError
from agentrunner.errors.task_files import BadCheck, BadValue, EmptyPrd, FileOutside, NoTestCommand

DetectTest = Callable[[Path], str | None]


def load_task(
    source: TaskSource,
    *,
    overrides: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str],
    cwd: Path,
    detect_test: DetectTest | None = None,
    today: date | None = None,
    auto: bool = False,
) -> TaskSpec:
    """Read a task and everything it names.

    `overrides` are `--set key.path=VALUE` texts, `options` the named options (test, repo, meta,
    worker, model, planner_model, base_url, sandbox, max_loops, approve, strict), which win.
    `detect_test` finds the command of `test: auto` in a repository. `today` becomes part of the id
    if the title yields none. With `auto`, an unspecified planner or worker is of kind `auto`.
    Raises UsageError with place and remedy, and InfraError (`repo-owner`) for somebody else's
    repository.
    """
    cwd = cwd.absolute()
    reading = Reading(
        kind=source.kind,
        value=source.value,
        cwd=str(cwd),
        overrides=list(overrides),
        options=given_options(options or {}),
        today=today,
        auto=auto,
    )
    document = read_document(source, cwd)
    tree = document.tree
    shape(tree, document.name)
    leave_other_kinds(tree, overrides, options or {})
    apply_overrides(tree, overrides)
    apply_options(tree, options or {}, cwd)
    refuse_both(tree)
    repo = _repo(_validated(tree), document, environ, cwd)
    complete(tree, repo, environ, auto=auto)
    file = _validated(tree)
    check_rules(file, tree, repo, environ)
    spec = _assemble(file, document, repo, environ, detect_test, today)
    return spec.model_copy(update={"reading": reading})


def load_settings(
    repo: Path, environ: Mapping[str, str], *, auto: bool = False
) -> tuple[RunnerSection, dict[str, str]]:
    """Return the settings without a task (files, environment, defaults), and their places.

    Raises UsageError as `load_task` does.
    """
    tree = YamlTree({"version": "1", "task": {"prd": {"text": "-"}}})
    complete(tree, repo, environ, auto=auto)
    file = _validated(tree)
    check_rules(file, tree, repo, environ)
    planner = with_environment(file.runner.meta, environ)
    return file.runner.model_copy(update={"meta": planner}), _places(tree)


def complete(tree: YamlTree, repo: Path, environ: Mapping[str, str], *, auto: bool) -> None:
    """Fill in what options and task leave out from configuration files, then kind `auto`."""
    lay_under(tree, read_layers(repo, environ))
    canonical_kinds(tree)
    if auto:
        leave_kinds_open(tree)


def _validated(tree: YamlTree) -> TaskFile:
    try:
        return TaskFile.model_validate(tree.value)
    except ValidationError as error:
        raise from_validation(error, tree) from error


def _repo(file: TaskFile, document: Document, environ: Mapping[str, str], cwd: Path) -> Path:
    base = document.base_dir
    if file.task.repo is not None:
        named = base / Path(file.task.repo)
    else:
        named = _repo_around(base, cwd) if document.is_prd else git_root(base) or base
    return checked_repo(named, document.tree.place(("task", "repo")), environ)


def _repo_around(base: Path, cwd: Path) -> Path:
    """Return the repository that a PRD in the folder `base` is about.

    If the PRD lies outside of the repository around `cwd`, it is about that one; else about its
    own. Without any repository it is `base`, or `cwd` if the PRD lies outside of that. A bare
    repository around `cwd` counts as one, so that it is refused and no other one is taken for it.
    """
    here, there = git_root(cwd) or bare_root(cwd), git_root(base)
    if here is not None and not base.resolve().is_relative_to(here.resolve()):
        return here
    if there is not None:
        return there
    return base if base.resolve().is_relative_to(cwd.resolve()) else cwd


def _assemble(
    file: TaskFile,
    document: Document,
    repo: Path,
    environ: Mapping[str, str],
    detect_test: DetectTest | None,
    today: date | None,
) -> TaskSpec:
    within = (repo, document.base_dir)
    prd_text, first_line, prd_file = _prd(file, document, within)
    prd_name = document.name if document.is_prd else file.task.prd.path or document.name
    criteria = read_criteria(prd_text, prd_name, first_line, written=file.task.acceptance_criteria)
    task = _with_test(file.task, document.tree, repo, detect_test)
    _refuse_tests_without_command(criteria, task.test, prd_name)
    heading = document.title or title_in(prd_text)
    task_id = task.id or task_id_from(document.stem, task.title or heading, today, prd_text)
    for worker in (file.runner.worker, *file.runner.workers):
        _name_outside_files_in_full(worker, repo)
    runner = file.runner.model_copy(update={"meta": with_environment(file.runner.meta, environ)})
    return TaskSpec(
        task_id=task_id,
        title=" ".join((task.title or heading or task_id).split()),
        repo=str(repo),
        prd_text=prd_text,
        criteria=criteria,
        task=task,
        runner=runner,
        base_dir=str(document.base_dir),
        task_file=_source(document.path, document.text) if document.name != "--goal" else None,
        prd_file=prd_file,
        language=_language(runner.meta.language, prd_text),
        note_language=_language(runner.note.language, prd_text),
        places=_places(document.tree) | _places_of(criteria, document, prd_name, file),
        **_named_texts(runner, document, within),
    )


def _name_outside_files_in_full(worker: WorkerSpec, repo: Path) -> None:
    """Make the words of its command absolute that lead to files outside of the repository.

    `../agent.sh` would lead elsewhere in a work tree of its own, where `--worktree` and plans work.
    """
    if isinstance(worker.command, list):
        for at, word in enumerate(worker.command):
            if word.startswith("../") and (repo / word).exists():
                worker.command[at] = os.path.normpath(repo / word)


def _refuse_tests_without_command(
    criteria: Sequence[CriterionSpec], test: TestSpec | None, name: str
) -> None:
    """Raise UsageError (`bad-check`) if a check names a test that no command would run."""
    for criterion in criteria:
        check = criterion.check
        if test is None and check is not None and check.kind == "test" and check.name:
            raise BadCheck(
                f"the check of {criterion.id} names the test {check.name}, and no command runs it.",
                path=f"{name}:{criterion.line}" if criterion.line else name,
                remedy="--test COMMAND, or task.test in the task file; or check: `COMMAND`, with"
                " a command that runs this test",
            )


def _prd(
    file: TaskFile, document: Document, within: tuple[Path, ...]
) -> tuple[str, int, Source | None]:
    """Return the requirements, the number of their first line, and their source file."""
    prd = file.task.prd
    key = ("task", "prd", "text" if prd.path is None else "path")
    place = document.tree.place(key)
    if prd.path is None:
        text, first_line, source = prd.text or "", 1, None
        name = "the PRD"
    else:
        path, name = document.base_dir / Path(prd.path).expanduser(), prd.path
        named_by_caller = document.is_prd and path == document.path
        other = ", or name it with --prd"
        raw = document.text if named_by_caller else _named_text(place, path, name, within, other)
        text, first_line = body(raw, name)
        source = _source(path, raw)
    if not text.strip():
        raise document.tree.error(EmptyPrd, key, f"{name} is empty.", "write what is wanted")
    return text, first_line, source


def _source(path: Path | None, text: str) -> Source:
    return Source(
        path=str(path) if path else None,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        text=text,
    )


def _with_test(
    task: TaskSection, tree: YamlTree, repo: Path, detect_test: DetectTest | None
) -> TaskSection:
    """Replace `test: auto` by the command that was found."""
    if task.test is None or task.test.command != "auto":
        return task
    command = detect_test(repo / task.test.cwd) if detect_test else None
    if not command:
        raise tree.error(
            NoTestCommand,
            ("task", "test", "command"),
            "no test command was found in the repository.",
            "test: COMMAND",
        )
    return task.model_copy(update={"test": task.test.model_copy(update={"command": command})})


def with_environment(planner: PlannerSpec, environ: Mapping[str, str]) -> PlannerSpec:
    """Return the planner's settings with gaps filled from the environment, then from defaults.

    META_TIMEOUT_SEC is for chat models: a CLI starts and reads for longer than one call of a model
    takes. Without either, the time limit stays open. Raises UsageError for a META_TIMEOUT_SEC that
    is no number.
    """
    update: dict[str, Any] = {}
    if planner.timeout_sec is None and environ.get("META_TIMEOUT_SEC"):
        # A value that is no number is an error in any case
        seconds = _timeout(environ["META_TIMEOUT_SEC"])
        if planner_kind(planner.kind).is_chat_model:
            update["timeout_sec"] = seconds
    if planner.kind != AUTO and not planner.model:
        update["model"] = planner_kind(planner.kind).usual_model(environ) or planner.model
    return planner.model_copy(update=update)


def _timeout(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise BadValue(
            f'META_TIMEOUT_SEC is "{text}", which is no number of seconds.',
            path="META_TIMEOUT_SEC",
        )
    return seconds


def _places(tree: YamlTree) -> dict[str, str]:
    """Return the places that a policy or an error may refer to; criteria have their own lines."""
    parts = (("runner",), ("task", "setup"), ("task", "test"))
    return {
        dotted(path): place.where
        for path, place in tree.places.items()
        if path[:1] in parts or path[:2] in parts
    }


def _places_of(
    criteria: Sequence[CriterionSpec], document: Document, prd_name: str, file: TaskFile
) -> dict[str, str]:
    """Return where each criterion was written, by its id: in the task file, else in the PRD."""
    own = len(file.task.acceptance_criteria)
    names = [document.name] * own + [prd_name] * (len(criteria) - own)
    return {
        one.id: f"{name}:{one.line}" for one, name in zip(criteria, names, strict=True) if one.line
    }


def _language(wanted: str, prd_text: str) -> str:
    return detect_language(prd_text) if wanted == "auto" else wanted


def _named_files(runner: RunnerSection) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield the TaskSpec field, place in the task file and path of each file that settings name."""
    if runner.meta.kind == "script" and runner.meta.script:
        yield "script_text", ("runner", "meta", "script"), runner.meta.script
    if runner.patterns:
        yield "patterns_text", ("runner", "patterns"), runner.patterns
    if runner.note.template not in NOTE_TEMPLATES:
        yield "template_text", ("runner", "note", "template"), runner.note.template


def _named_texts(
    runner: RunnerSection, document: Document, within: tuple[Path, ...]
) -> dict[str, str]:
    return {
        field: _named_text(document.tree.place(path), document.base_dir / name, name, within)
        for field, path, name in _named_files(runner)
    }


def _named_text(
    place: Place, path: Path, name: str, within: tuple[Path, ...], other: str = ""
) -> str:
    """Return the text of a file that a setting names; an error shows both places.

    `other` is a further remedy if the file is outside of the allowed folders.
    """
    try:
        return read_text(path, name=name, within=within)
    except UsageError as error:
        if isinstance(error, FileOutside):
            error.remedy += other
        elif not os.path.lexists(path):
            error.details += (("looked for", str(path)),)
            error.remedy = error.remedy or "correct it; it is relative to the task file's folder"
        error.details += (("named by", f"{place.where} {place.source_line[:200]}"),)
        raise


def resolve_env(
    env: Mapping[str, str], environ: Mapping[str, str], key: str = "runner.worker.env"
) -> dict[str, str]:
    """Return a task's variables with `env:NAME` looked up and `literal:` removed.

    Raises UsageError (`env-missing`) for a variable that is not set or empty.
    """
    resolved: dict[str, str] = {}
    for variable, value in env.items():
        name = env_reference(value)
        if name is None:
            resolved[variable] = value.removeprefix("literal:")
        elif environ.get(name):
            resolved[variable] = environ[name]
        else:
            raise env_missing(f"{key}.{variable}", name)
    return resolved


def changed_sources(spec: TaskSpec) -> list[tuple[str, str]]:
    """Return path and unified diff of each file of the run that has changed since.

    A file that is gone or unreadable counts as changed; its diff says so.
    """
    texts: dict[str, str] = {}
    for source in (spec.task_file, spec.prd_file):
        if source is not None and source.path is not None:
            texts[source.path] = source.text
    for field, _, name in _named_files(spec.runner):
        texts[str(Path(spec.base_dir) / name)] = getattr(spec, field) or ""
    changed = []
    for path, before in texts.items():
        try:
            now, label = read_text(Path(path), name=path), path
        except UsageError as error:
            now, label = "", f"{path} ({error.message})"
        if now != before:
            changed.append((path, _diff(before, now, path, label)))
    return changed


def _diff(before: str, now: str, path: str, label: str) -> str:
    lines = difflib.unified_diff(
        before.split("\n"), now.split("\n"), f"{path} (as the run knows it)", label, lineterm=""
    )
    return "\n".join(lines)


def task_schema() -> dict[str, Any]:
    """Return the JSON Schema of the task file, for editors."""
    schema = TaskFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
