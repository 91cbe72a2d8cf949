"""Where a task says what a policy does not allow, for people who look there. Pure."""

from __future__ import annotations

from pathlib import Path

from agentrunner.config.spec import TaskSpec
from agentrunner.config.yaml_text import Place
from agentrunner.text.lazy_regex import lazy_regex

_SECRET = lazy_regex(r"runner\.workers?(\[\d+\])?\.env\.")


def place_of(spec: TaskSpec, key: str) -> Place:
    """Return the place of a setting, or of the nearest one around it; its name if left out."""
    if "." not in key:  # a variable of this machine
        return Place(key)
    places, name = spec.places, key
    while name not in places:
        # `runner.worker` says nothing about a setting that is not in it.
        name = name[: max(name.rfind("."), name.rfind("["))]
        if name.count(".") < 2:
            return Place(f"{key} (left out)")
    where = places[name]
    secret = any(place == where and _SECRET.match(key) for key, place in places.items())
    return Place(where, "" if secret else _line(spec, where))


def _line(spec: TaskSpec, where: str) -> str:
    """Return the text of a line of the task file."""
    file, _, number = where.rpartition(":")
    if not file or not number.isdigit() or spec.task_file is None:
        return ""
    # A configuration file is named by its absolute path; its text is not kept.
    if Path(file).is_absolute() and file != spec.task_file.path:
        return ""
    lines = spec.task_file.text.split("\n")
    return lines[int(number) - 1].strip() if int(number) <= len(lines) else ""
