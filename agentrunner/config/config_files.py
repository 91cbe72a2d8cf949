"""Settings outside of a task: the person's own file, and one in the repository.

Both hold the section `runner` of a task file, or part of it. They supply what options and task
leave out. A repository is not trusted: its file may only set what makes a run ask more, prove more,
or speak another language (`PROJECT_MAY`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, ValidationError

from agentrunner.config.agents import OF_ONE_KIND, SEES, See, is_other_kind
from agentrunner.config.config_model import ConfigModel
from agentrunner.config.mistakes import from_validation
from agentrunner.config.spec import NOTE_TEMPLATES, RunnerSection, number_from_text
from agentrunner.config.text_files import read_text
from agentrunner.config.yaml_text import Path as KeyPath
from agentrunner.config.yaml_text import YamlTree, dotted, read_yaml
from agentrunner.environment import user_file as user_file
from agentrunner.errors.task_files import BadValue, ProjectSetting
from agentrunner.registry import PLACE

PROJECT_FILE = "agentrunner.yaml"
"""In the repository's root, not beside the notes, so that every diff shows a change of it."""
PROJECT_MAY: Mapping[str, tuple[str, ...]] = {
    "runner.completion": ("strict",),
    "runner.approve.plan": ("always",),
    "runner.approve.worker": ("always",),
    "runner.approve.complete": ("always",),
    "runner.meta.language": (),
    "runner.meta.format": (),
    "runner.note.language": (),
    "runner.note.detail": (),
    "runner.note.template": NOTE_TEMPLATES,
}
"""Settings that a repository may make, with the allowed values; () allows any valid value."""
_ONLY_YOURS: Mapping[str, str] = {
    "extensions": "add workers, planners or sandboxes: they are code",
    "notify": "set notify: it is a command that runs outside of the sandbox",
}
_RELATIVE_TO_TASK: tuple[KeyPath, ...] = (
    ("runner", "patterns"),
    ("runner", "meta", "script"),
    ("runner", "sandbox", "image_from"),
)
"""Settings that hold paths relative to a task file."""


def _place(text: str) -> str:
    if not PLACE.fullmatch(text):
        raise ValueError(f'"{text}" is not of the form package.module:Class or /path/file.py:Class')
    return text


Places = dict[str, Annotated[str, AfterValidator(_place)]]


class Extensions(ConfigModel):
    """Kinds that are not part of AgentRunner, by their names, as `package.module:Class` or
    `/path/file.py:Class`."""

    workers: Places = {}
    planners: Places = {}
    sandboxes: Places = {}


class ConfigFile(ConfigModel):
    """A configuration file of AgentRunner, version 1."""

    version: Annotated[Literal[1], BeforeValidator(number_from_text)] = 1
    """The version of this format."""
    runner: RunnerSection = RunnerSection.model_construct()
    """As in a task file."""
    extensions: Extensions = Extensions()
    """In your own file only: workers, planners and sandboxes of others."""
    notify: str = ""
    """In your own file only: a command that is run when a run needs you or has ended."""


def notify_command(environ: Mapping[str, str]) -> str:
    """Return the command of `notify` in the person's own file; "" for none. Raises UsageError."""
    tree = _own_file(environ)
    return str(tree.value.get("notify") or "") if tree else ""


def own_settings(environ: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return what the person's own file sets besides `runner`: name, value, place.

    Raises UsageError.
    """
    tree = _own_file(environ)
    return [
        (dotted(path), str(value), tree.place(path).where)
        for name in ConfigFile.model_fields
        if tree and name not in ("runner", "version") and (section := tree.value.get(name))
        for path, value in _leaves(section, (name,))
    ]


def _own_file(environ: Mapping[str, str]) -> YamlTree | None:
    own = user_file(environ)
    if own is None or not _exists(own):
        return None
    return _validated(read_yaml(read_text(own, name=str(own)), str(own)))


def read_layers(repo: Path, environ: Mapping[str, str]) -> list[YamlTree]:
    """Return the settings of the repository's file and of the person's, as far as these exist.

    Raises UsageError with the place of a setting that they may not make.
    """
    layers = []
    project = repo / PROJECT_FILE
    if _exists(project):
        tree = read_yaml(read_text(project, name=str(project), within=(repo,)), str(project))
        # A task file may have this name, too.
        if not (isinstance(tree.value, dict) and "task" in tree.value):
            layers.append(_validated(tree))
            _refuse_all_but_harmless(tree)
    if own := _own_file(environ):
        layers.append(own)
        _refuse_relative(own)
    return layers


def _exists(path: Path) -> bool:
    """Whether `path` exists, also as a dangling link, which then fails instead of being skipped."""
    return path.is_symlink() or path.exists()


def _validated(tree: YamlTree) -> YamlTree:
    if tree.value is None:
        tree.value = {}
    try:
        ConfigFile.model_validate(tree.value)
    except ValidationError as error:
        raise from_validation(error, tree, ConfigFile) from error
    return tree


def _refuse_all_but_harmless(tree: YamlTree) -> None:
    for name, why in _ONLY_YOURS.items():
        if tree.value.get(name):
            remedy = "write it into your own config.yaml"
            message = f"A repository may not {why}."
            raise tree.error(ProjectSetting, (name,), message, remedy)
    for path, value in _leaves(tree.value.get("runner") or {}, ("runner",)):
        allowed = PROJECT_MAY.get(dotted(path))
        if allowed is None or (allowed and value not in allowed):
            what = dotted(path) if allowed is None else f"{dotted(path)}: {value}"
            only = f" It may say {' or '.join(allowed)}." if allowed else ""
            raise tree.error(
                ProjectSetting,
                path,
                f"A repository may not set {what}.{only}",
                "write it into the task file, or into your own config.yaml"
                " (agentrunner config set)",
            )


def _leaves(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    else:
        yield path, value


def _refuse_relative(tree: YamlTree) -> None:
    """Refuse relative paths, which would mean another file for every task."""
    settings = dict(_leaves(tree.value.get("runner") or {}, ("runner",)))
    template = settings.get(("runner", "note", "template"), NOTE_TEMPLATES[0])
    own = [path for path in _RELATIVE_TO_TASK if settings.get(path)]
    own += [("runner", "note", "template")] * (template not in NOTE_TEMPLATES)
    for path in own:
        raise tree.error(
            BadValue,
            path,
            f"{dotted(path)} is relative to a task file, so it can stand only there.",
        )
    for index, folder in enumerate(settings.get(("runner", "sandbox", "read_paths")) or ()):
        if not Path(folder).is_absolute():
            path = ("runner", "sandbox", "read_paths", index)
            raise tree.error(BadValue, path, f"{dotted(path)} is not absolute.")


def lay_under(tree: YamlTree, layers: Sequence[YamlTree]) -> None:
    """Fill in what `tree` leaves out from these layers, the first one first.

    What a planner may see of the code is the least that `tree` and the layers allow, unless an
    option sets it: a task file is code that a pull request can change.
    """
    _refuse_plain_http(tree)
    for layer in layers:
        _lower_sight(tree, layer)
        runner = copy.deepcopy(layer.value.get("runner") or {})
        own = tree.value.get("runner")
        if isinstance(own, dict):
            _drop_foreign(runner, own)
        _fill(tree, YamlTree({"runner": runner}, layer.places), ())


def _refuse_plain_http(tree: YamlTree) -> None:
    """Refuse a task file that lets the person's key cross their network in the clear."""
    path: KeyPath = ("runner", "meta", "allow_plain_http")
    if tree.at(*path) in (None, False, "false") or tree.place(path).where.startswith("--"):
        return
    raise tree.error(
        BadValue,
        path,
        "A task file may not set runner.meta.allow_plain_http: it lets your key cross the network"
        " in the clear.",
        "--set runner.meta.allow_plain_http=true, or write it into your own config.yaml",
    )


def _lower_sight(tree: YamlTree, layer: YamlTree) -> None:
    """Let the layer's `see` replace a wider one of the task."""
    path: KeyPath = ("runner", "meta", "see")
    mine, theirs = (_sight(one) for one in (tree, layer))
    if mine is None or theirs is None:
        return
    if SEES.index(mine) <= SEES.index(theirs):
        tree.value["runner"]["meta"].setdefault("see", mine)  # what `see_repo: none` means
        return
    if tree.place(path).where.startswith("--"):  # an option of the person who starts the run
        return
    tree.value["runner"]["meta"]["see"] = theirs
    tree.take_places(layer, path)


def _sight(tree: YamlTree) -> See | None:
    """Return a file's `runner.meta.see`; None if it is missing or no valid word."""
    planner = tree.at("runner", "meta")
    if not isinstance(planner, dict):
        return None
    if planner.get("see") in SEES:
        return cast("See", planner["see"])
    return "change" if planner.get("see") is None and planner.get("see_repo") == "none" else None


def _drop_foreign(runner: dict[str, Any], own: Mapping[str, Any]) -> None:
    """Drop settings that would be mixed with those of another worker or planner."""
    if "worker" in own or "workers" in own:
        runner.pop("workers", None)
    if "workers" in own:
        runner.pop("worker", None)
    for section, names in OF_ONE_KIND.items():
        theirs, ours = runner.get(section), own.get(section)
        wanted = ours.get("kind") if isinstance(ours, dict) else None
        if isinstance(theirs, dict) and is_other_kind(theirs.get("kind"), wanted):
            for name in names:
                theirs.pop(name, None)


def _fill(tree: YamlTree, layer: YamlTree, path: KeyPath) -> None:
    mine, theirs = tree.value, layer.value
    for part in path:
        mine, theirs = mine[part], theirs[part]
    for key, value in theirs.items():
        here = (*path, key)
        if key not in mine or (mine[key] is None and isinstance(value, dict)):
            mine[key] = value
            tree.take_places(layer, here)
        elif isinstance(mine[key], dict) and isinstance(value, dict):
            _fill(tree, layer, here)
