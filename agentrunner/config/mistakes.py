"""Messages about mistakes in a task file, with the place and a remedy."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from agentrunner.config.spec import TaskFile
from agentrunner.config.yaml_text import Path, YamlTree, dotted
from agentrunner.errors import UsageError
from agentrunner.errors.task_files import BadValue, MissingKey, UnknownKey
from agentrunner.text.likeness import likest

_WORDS = {
    "int_parsing": "no whole number",
    "int_from_float": "no whole number",
    "float_parsing": "no number",
    "finite_number": "no number",
    "bool_parsing": "neither true nor false",
    "string_type": "no text",
}
_RIGHT = {
    "int_parsing": "write a number such as 3",
    "int_from_float": "write a number such as 3",
    "float_parsing": "write a number alone, such as 600: no unit",
    "finite_number": "write a number alone, such as 600: no unit",
    "bool_parsing": "write true or false",
    "string_type": "put the text in double quotes",
}
_WRITTEN: Mapping[Path, str] = {
    ("version",): "write version: 1 in the first line",
    ("task",): 'task: {prd: {path: FILE.md}}, or task: {prd: {text: "what you want"}}',
    ("task", "prd"): 'prd: {path: FILE.md}, or prd: {text: "what you want"}',
}
"""How what is missing is written."""
_SHOWN = 4
"""Number of further mistakes that are listed below the first."""


def from_validation(
    error: ValidationError, tree: YamlTree, model: type[BaseModel] = TaskFile
) -> UsageError:
    """Return the first of pydantic's errors as a sentence, with the next few as details, each with
    its own suggestion."""
    complaints = [_complaint(details, tree, model) for details in error.errors(include_url=False)]
    # Unknown keys first: they explain what is missing.
    complaints.sort(key=lambda found: not isinstance(found, UnknownKey))
    first, others = complaints[0], complaints[1 : 1 + _SHOWN]
    first.details = tuple(("also", _in_a_line(other)) for other in others)
    if (more := len(complaints) - 1 - _SHOWN) > 0:
        first.details += (("and", f"{more} more"),)
    return first


def _in_a_line(complaint: UsageError) -> str:
    remedy = complaint.remedy
    tip = f" {remedy[:1].upper()}{remedy[1:]}" if remedy.endswith("?") else ""
    return f"{complaint.path}: {complaint.message}{tip}"


def _complaint(details: ErrorDetails, tree: YamlTree, model: type[BaseModel]) -> UsageError:
    path = _path_in_file(details["loc"], tree, model)
    whole = "the task file" if model is TaskFile else "the file"
    name, kind = dotted(path) or whole, details["type"]
    if kind == "extra_forbidden":
        if nested := _nested(path, model):
            return tree.error(
                UnknownKey,
                path,
                f"{path[-1]} is written as a path; in a file each part is a key of its own.",
                f"write {nested}",
            )
        return tree.error(UnknownKey, path, f"{name} is not a setting.", _did_you_mean(path, model))
    if kind == "missing":
        remedy = _WRITTEN.get(path, f"write {path[-1]}: …")
        return tree.error(MissingKey, path, f"{name} is missing.", remedy)
    text, remedy = wrong_value(name, details)
    if kind in ("model_type", "dict_type") and (known := _known_keys(path, model)):
        remedy = remedy or f"its keys: {', '.join(known)}"
    return tree.error(BadValue, path, text, remedy)


def wrong_value(name: str, details: ErrorDetails) -> tuple[str, str]:
    """Return why pydantic refuses the value of `name`, as a sentence, and a remedy if any."""
    value, kind = details["input"], details["type"]
    if value is None:
        text, remedy = f"{name} is empty.", "give it a value or remove it"
    elif kind == "literal_error":
        text = f'{name} is "{value}"; it can be {details["ctx"]["expected"]}.'
        remedy = suggestion(str(value), str(details["ctx"]["expected"]).split("'")[1::2])
    elif kind in _WORDS:
        text, remedy = f'{name} is "{value}", which is {_WORDS[kind]}.', _RIGHT[kind]
    elif kind in ("model_type", "dict_type"):
        text, remedy = f"{name} must hold settings, one `key: value` a line.", ""
        if name == "task.test":  # most people write it so, and `config/load.py` takes it
            text = f"{name} must be a text, such as `test: pytest -q`, or settings."
        if name == "task.prd" and isinstance(value, str):
            is_file = re.fullmatch(r"\S+\.\w+", value)
            remedy = f"prd: {{path: {value}}}" if is_file else 'prd: {text: "…"}'
    elif kind == "list_type":
        text, remedy = f"{name} must be a list.", "[a, b], or one `- item` a line"
    else:
        words = details["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        separator = ": " if kind == "value_error" else " "
        text, remedy = f"{name}{separator}{words[:1].lower()}{words[1:].rstrip('.')}.", ""
    return text, remedy


def _path_in_file(loc: Sequence[str | int], tree: YamlTree, model: type[BaseModel]) -> Path:
    """The part of pydantic's location that exists in the file; it also names union members."""
    path: Path = ()
    value = tree.value
    for part in loc:
        if isinstance(value, Mapping) and isinstance(part, str):
            if part not in value and path and part not in _known_keys(path, model):
                break
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            break
        path = (*path, part)
    return path


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `did you mean X?`, or "" if nothing is similar."""
    near = likest(word, known)
    return f"did you mean {near}?" if near else ""


def _nested(path: Path, root: type[BaseModel]) -> str:
    """Return a key as messages name it, `task.test.known_red`, as a file has it; "" if it is none.

    The front matter of a PRD holds the keys of `task` without that word.
    """
    key, above = str(path[-1]), path[:-1]
    if "." not in key:
        return ""
    parts = key.split(".")
    if parts[0] == "task" and above == ("task",):
        parts = parts[1:]
    if dotted((*above, *parts)) not in all_keys(root) and ".".join(parts) not in all_keys(root):
        return ""
    *outer, last = parts
    return "".join(f"{one}: {{" for one in outer) + f"{last}: …" + "}" * len(outer)


def _did_you_mean(path: Path, root: type[BaseModel]) -> str:
    key = str(path[-1])
    if near := suggestion(key, _known_keys(path[:-1], root)):
        return near
    elsewhere = [name for name in all_keys(root) if name.rsplit(".", 1)[-1] == key]
    if elsewhere and not any(
        isinstance(part, int) for part in path
    ):  # an item of a list has its own
        return f"did you mean {elsewhere[0]}?"
    # The front matter of a PRD holds keys of the task beside those that stand beside `task`.
    if near := suggestion(key, _field_names(root)):
        return near
    return f"known here: {', '.join(_known_keys(path[:-1], root))}"


def _known_keys(path: Path, root: type[BaseModel]) -> list[str]:
    """Return the keys that are allowed in the mapping at `path`."""
    model: type[BaseModel] | None = root
    for part in path:
        if isinstance(part, str) and model is not None:
            info = model.model_fields.get(part)
            model = next(_models(info.annotation), None) if info else None
    return [] if model is None else _field_names(model)


def _field_names(model: type[BaseModel]) -> list[str]:
    # `line` is internal: it is filled in while reading.
    return [name for name in model.model_fields if name != "line"]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation such as `list[CriterionSpec]` or `TestSpec | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (list, Union, types.UnionType, Annotated):
        for argument in get_args(annotation):
            yield from _models(argument)


def all_keys(model: type[BaseModel] = TaskFile, prefix: str = "") -> list[str]:
    """Return every setting as a dotted name."""
    names: list[str] = []
    for name in _field_names(model):
        names.append(prefix + name)
        for inner in _models(model.model_fields[name].annotation):
            names += all_keys(inner, f"{prefix}{name}.")
    return names
