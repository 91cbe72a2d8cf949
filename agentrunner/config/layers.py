"""Apply options to a task file: `--set` first, then the named options, which win."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from agentrunner.config.agents import OF_ONE_KIND, WorkerSpec, is_other_kind
from agentrunner.config.mistakes import suggestion
from agentrunner.config.spec import ApproveSpec, Moment, whole_path
from agentrunner.config.yaml_text import Path as KeyPath
from agentrunner.config.yaml_text import Place, YamlTree, read_yaml
from agentrunner.errors.command_line import BadOption
from agentrunner.registry import canonical_worker_type

_NAMED: dict[str, KeyPath] = {
    "test": ("task", "test", "command"),
    "repo": ("task", "repo"),
    "meta": ("runner", "meta", "kind"),
    "worker": ("runner", "worker", "kind"),
    "sandbox": ("runner", "sandbox", "kind"),
    "max_loops": ("runner", "meta", "max_loops"),
    "model": ("runner", "worker", "model"),
    "planner_model": ("runner", "meta", "model"),
    "base_url": ("runner", "meta", "base_url"),
}

KINDS = {"worker": "model", "meta": "planner_model"}
"""By option that names a kind, which is also its section of a task file: the option for its
model."""
NO_TEST = "none"
"""The test command that stands for none, whatever a file says."""


def apply_overrides(tree: YamlTree, overrides: Sequence[str]) -> None:
    """Apply `key.path=VALUE` texts, VALUE in YAML; raises UsageError (`bad-option`)."""
    for text in overrides:
        key, equals, value = text.partition("=")
        place = Place(f"--set {key}")
        parts = tuple(part.strip() for part in key.split("."))
        if not equals or not all(parts):
            raise BadOption(
                f'--set "{text}" is not of the form key.path=VALUE.',
                path="--set",
                remedy="--set runner.meta.max_loops=3",
            )
        _put(tree, whole_path(parts), read_yaml(value, place.where).value, place)


def kind_named(section: str, overrides: Iterable[str], options: Mapping[str, Any]) -> str | None:
    """Return the kind of planner or worker that options name, of which the named one wins."""
    key = f"runner.{section}.kind"
    found = [text.partition("=")[2].strip() for text in overrides if key_of(text) == key]
    return options.get(section) or (found[-1] if found else None)


def leave_other_kinds(tree: YamlTree, overrides: Sequence[str], options: Mapping[str, Any]) -> None:
    """Drop what a file sets for one kind of planner or worker, where an option names another."""
    for section in KINDS:
        own = tree.at("runner", section)
        wanted = kind_named(section, overrides, options)
        if isinstance(own, dict) and is_other_kind(own.get("kind"), wanted):
            for name in OF_ONE_KIND[section]:
                own.pop(name, None)
                tree.move_places(("runner", section, name), None)


def key_of(override: str) -> str:
    """Return the whole name of the setting that a `--set` text is about."""
    name = override.partition("=")[0]
    return ".".join(whole_path(tuple(part.strip() for part in name.split("."))))


def apply_options(tree: YamlTree, options: Mapping[str, Any], cwd: Path) -> None:
    """Apply the named options of `run`; None and False are skipped. `repo` is relative to `cwd`.

    Raises UsageError (`bad-option`) for one that has no such name.
    """
    check_names(options)
    if _choose_from_list(tree, options.get("worker")):
        options = {**options, "worker": None}
    if options.get("test") == NO_TEST:
        _put(tree, ("task", "test"), None, Place(option_name("test")))
        options = {**options, "test": None}
    for name, path in _NAMED.items():
        value = options.get(name)
        if value is not None:
            text = str(cwd / Path(value).expanduser()) if name == "repo" else str(value)
            _put(tree, path, text, Place(option_name(name)))
    if options.get("strict"):
        _put(tree, ("runner", "completion"), "strict", Place("--strict"))
    for moment in _moments(options.get("approve")):
        _put(tree, ("runner", "approve", moment), get_args(Moment)[1], Place("--approve"))


def check_names(options: Iterable[str]) -> None:
    """Raises UsageError (`bad-option`) for the name of an option that `run` does not have."""
    known = (*_NAMED, "strict", "approve")
    for name in options:
        if name not in known:
            raise BadOption(
                f"There is no option `{name}`.",
                remedy=suggestion(name, known) or f"known: {', '.join(known)}",
            )


def given_options(options: Mapping[str, Any]) -> dict[str, bool | str | list[str]]:
    """Return the named options that were given, as they are kept for `apply_options`."""
    given = {k: v for k, v in options.items() if v is not None and v is not False}
    return {name: _kept(value) for name, value in given.items()}


def _kept(value: Any) -> bool | str | list[str]:
    if isinstance(value, list | tuple):
        return [str(word) for word in value]
    return value if isinstance(value, bool) else str(value)


def option_name(name: str) -> str:
    """Return how a named option is typed."""
    # Saved plans keep the planner's option under its first name.
    return f"--{'planner' if name == 'meta' else name.replace('_', '-')}"


def _choose_from_list(tree: YamlTree, wanted: Any) -> bool:
    """Whether `--worker` names a candidate (by name or kind), which then works alone.

    If it does not, the whole list of candidates is dropped in favour of that kind.
    """
    runner = tree.value.get("runner")
    if wanted is None or not isinstance(runner, dict):
        return False
    workers = runner.pop("workers", None)
    for index, worker in enumerate(workers if isinstance(workers, list) else ()):
        if isinstance(worker, dict) and _is_meant(worker, str(wanted)):
            runner["worker"] = worker
            tree.move_places(("runner", "workers", index), ("runner", "worker"))
            return True
    return False


def _is_meant(worker: Mapping[str, Any], wanted: str) -> bool:
    if name := worker.get("name"):
        return bool(name == wanted)
    kind = str(worker.get("kind") or WorkerSpec().kind)
    return canonical_worker_type(kind) == canonical_worker_type(wanted)


def _moments(value: str | Sequence[str] | None) -> list[str]:
    words = value.split(",") if isinstance(value, str) else list(value or ())
    moments = [word.strip() for word in words if word.strip()]
    for moment in moments:
        if moment not in ApproveSpec.model_fields:
            raise BadOption(
                f'--approve "{moment}" is not known. Known: {", ".join(ApproveSpec.model_fields)}.',
                path="--approve",
                remedy=suggestion(moment, ApproveSpec.model_fields)
                or f"--approve {','.join(ApproveSpec.model_fields)}, or some of them",
            )
    return moments


def _put(tree: YamlTree, path: KeyPath, value: Any, place: Place) -> None:
    """Set a value and create the mappings around it; places of what it replaces are removed."""
    here = tree.value
    for depth, part in enumerate(path[:-1], 1):
        if here.get(part) is None:
            here[part] = {}
            tree.places[path[:depth]] = place
        here = here[part]
        if not isinstance(here, dict):
            raise BadOption(
                f"{'.'.join(map(str, path[:depth]))} holds no settings, so "
                f"{'.'.join(map(str, path))} cannot be set.",
                path=place.where,
                remedy="agentrunner explain reference/task-file.md has all settings",
            )
    here[path[-1]] = value
    tree.move_places(path, None)
    tree.places[path] = place
