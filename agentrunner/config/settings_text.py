"""Write a setting into a settings file as text, so that comments and order are preserved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentrunner.config.spec import whole_path
from agentrunner.config.yaml_text import Path as KeyPath
from agentrunner.config.yaml_text import YamlTree, read_yaml, value_at
from agentrunner.errors import UsageError
from agentrunner.errors.command_line import BadOption

STEP = 2
"""Indentation of a section if the file itself shows none."""


def key_path(name: str) -> KeyPath:
    """Parse `worker.kind` or `runner.worker.kind` as a path; raises UsageError otherwise."""
    parts = tuple(part.strip() for part in name.split("."))
    if not all(parts) or parts == ("runner",):
        raise BadOption(
            f'"{name}" names no setting.',
            remedy="agentrunner config set runner.worker.kind codex-cli",
        )
    return whole_path(parts)


def with_setting(text: str, path: KeyPath, value: str, name: str) -> str:
    """Return a settings file's text with one setting changed to `value` (YAML), the rest untouched.

    Raises UsageError if text or value are not YAML, or if the path leads through a non-section.
    """
    wanted = read_yaml(value, f"the value of {'.'.join(map(str, path))}").value
    tree = read_yaml(text, name)
    if tree.value is None:
        tree.value = {}
    expected = _put(json.loads(json.dumps(tree.value)), path, wanted)
    for changed in (
        _replace_line(text, tree, path, wanted),
        _insert_lines(text, tree, path, wanted),
    ):
        if changed is not None and _reads_as(changed, expected, name):
            return changed
    import yaml

    # A layout into which no line can be inserted, such as {worker: {kind: x}}.
    return str(yaml.safe_dump(expected, sort_keys=False, allow_unicode=True))


def without_setting(text: str, path: KeyPath, name: str) -> str:
    """Return a settings file's text without one setting and the sections that hold nothing then;
    the same text where it does not set it.

    Lines are taken out one by one, so that comments stay where the layout allows that.
    """
    tree = read_yaml(text, name)
    if tree.at(*path) is None:
        return text
    expected = json.loads(json.dumps(tree.value))
    kept, gone = path, path
    while kept:
        gone, kept = kept, kept[:-1]
        del value_at(expected, kept)[gone[-1]]
        if value_at(expected, kept):
            break
    changed = _without_lines(text, tree, gone)
    if changed is not None and _reads_as(changed, expected or None, name):
        return changed
    import yaml

    return str(yaml.safe_dump(expected, sort_keys=False, allow_unicode=True)) if expected else ""


def _without_lines(text: str, tree: YamlTree, path: KeyPath) -> str | None:
    """Return the text without the lines of a key and of what stands deeper below it; or None."""
    place = tree.places.get(path)
    if place is None or place.line is None:
        return None
    lines = text.split("\n")
    first = place.line - 1
    depth = len(lines[first]) - len(lines[first].lstrip())
    end = first + 1
    while end < len(lines) and lines[end].strip():
        if len(lines[end]) - len(lines[end].lstrip()) <= depth:
            break
        end += 1
    return "\n".join([*lines[:first], *lines[end:]])


def _put(value: Any, path: KeyPath, wanted: Any) -> Any:
    here = value
    for depth, part in enumerate(path[:-1], start=1):
        if here.get(part) is None:
            here[part] = {}
        here = here[part]
        if not isinstance(here, dict):
            raise BadOption(
                f"{'.'.join(map(str, path[:depth]))} holds no settings by name.",
                remedy="agentrunner config edit",
            )
    here[path[-1]] = wanted
    return value


def _reads_as(text: str, expected: Any, name: str) -> bool:
    try:
        return bool(read_yaml(text, name).value == expected)
    except UsageError:
        return False


def _inline(value: Any) -> str:
    """Format a value on one line as YAML; JSON is valid YAML."""
    if isinstance(value, str) and read_plain(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def read_plain(text: str) -> Any:
    """Return what YAML reads a plain scalar as; None if it is not one."""
    try:
        found = read_yaml(f"key: {text}\n", "").value
    except UsageError:
        return None
    return found.get("key") if isinstance(found, Mapping) else None


def _replace_line(text: str, tree: YamlTree, path: KeyPath, wanted: Any) -> str | None:
    """The text with an existing scalar replaced in its line, keeping the comment; or None."""
    place, before = tree.places.get(path), tree.at(*path)
    if place is None or place.line is None or not isinstance(before, str):
        return None
    lines = text.split("\n")
    line = lines[place.line - 1]
    head, colon, rest = line.partition(":")
    remark = rest.find(" #")
    tail = rest[len(rest[:remark].rstrip()) :] if remark >= 0 else ""
    lines[place.line - 1] = f"{head}{colon} {_inline(wanted)}{tail}"
    return "\n".join(lines)


def _insert_lines(text: str, tree: YamlTree, path: KeyPath, wanted: Any) -> str | None:
    """Return the text with new lines at the start of the deepest existing section; or None."""
    depth = max(n for n in range(len(path)) if isinstance(tree.at(*path[:n]), dict))
    lines = text.split("\n") if text.strip() else []
    if depth == 0:
        while lines and not lines[-1].strip():
            lines.pop()
        return "\n".join([*lines, *_block(path, wanted, 0), ""])
    place = tree.places.get(path[:depth])
    line = place.line if place is not None else None
    if line is None or not lines[line - 1].split(" #")[0].rstrip().endswith(":"):
        return None
    outer = len(lines[line - 1]) - len(lines[line - 1].lstrip())
    below = [one for one in lines[line:] if one.strip() and not one.lstrip().startswith("#")]
    inner = len(below[0]) - len(below[0].lstrip()) if below else 0
    indent = inner if inner > outer else outer + STEP
    return "\n".join([*lines[:line], *_block(path[depth:], wanted, indent), *lines[line:]])


def _block(path: KeyPath, wanted: Any, indent: int) -> list[str]:
    *sections, last = path
    lines = [f"{'':{indent + STEP * n}}{part}:" for n, part in enumerate(sections)]
    return [*lines, f"{'':{indent + STEP * len(sections)}}{last}: {_inline(wanted)}"]
