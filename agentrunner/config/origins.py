"""Which settings are in force and where each comes from, for display. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agentrunner.config.agents import AUTO, DEFAULT_PLANNER_MODEL
from agentrunner.config.kinds import planner_kind
from agentrunner.config.spec import RunnerSection

DEFAULT = "default"
Setting = tuple[str, str, str]
"""Name as in a task file, value as text, and where it was written."""


def settings_of(
    runner: RunnerSection,
    places: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    everything: bool = False,
) -> list[Setting]:
    """Return every setting that was written or comes from the environment; or all, with
    `everything`.

    `places` are those of the `TaskSpec`. Literal values of a worker's variables are not shown.
    """
    values = runner.model_dump(exclude={"worker"} if runner.workers else None)
    defaults = dict(_leaves(RunnerSection().model_dump(), "runner"))
    given = _from_environment(runner, environ)
    found = []
    for name, value in _leaves(values, "runner"):
        where = places.get(name, "")
        if not where and name in given:
            variable, text = given[name]
            found.append((name, text, variable))
            continue
        # In a list of sections, everything that is not written is a default.
        is_default = "[" in name or (name in defaults and value == defaults[name])
        if not (where or is_default or _is_filled_in(name, value)):
            where = _enclosing_place(name, places)
        if where or everything:
            found.append((name, _shown(name, value), where or DEFAULT))
    return found


def origin_of(
    name: str, runner: RunnerSection, places: Mapping[str, str], environ: Mapping[str, str]
) -> str:
    """Return the place or variable that a setting in force comes from; "" for a default."""
    if name in places:
        return places[name]
    variable, text = _from_environment(runner, environ).get(name, ("", ""))
    # A model that an answer or `resume` named took the place of the variable's.
    return "" if name == "runner.meta.model" and text != runner.meta.model else variable


def _from_environment(
    runner: RunnerSection, environ: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """Return what the environment sets if nothing is written: variable and value, by setting."""
    kind = runner.meta.kind
    variables = {"runner.meta.timeout_sec": "META_TIMEOUT_SEC"}
    traits = planner_kind(kind)
    if variable := traits.model_variable(environ):
        variables["runner.meta.model"] = variable
    if variable := traits.url_variable:
        variables["runner.meta.base_url"] = variable
    return {
        name: (variable, environ[variable])
        for name, variable in variables.items()
        if environ.get(variable)
    }


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}")
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{name}[{index}]")
    else:
        yield name, value


def _is_filled_in(name: str, value: Any) -> bool:
    """Whether this is a value that reading a task fills in by itself."""
    kind = name in ("runner.meta.kind", "runner.worker.kind") and value == AUTO
    return kind or (name == "runner.meta.model" and value == DEFAULT_PLANNER_MODEL)


def _enclosing_place(name: str, places: Mapping[str, str]) -> str:
    """Return the place of a short form: `network: none` is the place of `network.policy`."""
    while name.count(".") > 1 and name not in places:
        name = name[: max(name.rfind("."), name.rfind("["))]
    return places.get(name, "")


def _shown(name: str, value: Any) -> str:
    if ".env." in name and not str(value).startswith("env:"):
        return "(a text, not shown)"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
