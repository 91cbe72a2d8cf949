"""Ids for long names of tests: a prompt says each name once, and its id from then on. Pure.

Ids are given in the order in which names are told, and stay for the whole run. What a planner
writes for workers and people has the names beside them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentrunner.protocol.known_names import TEST_ID as ID

LONG = 24
"""Characters from which on a name is given an id."""
MOST = 400
"""Ids of one run."""
LISTS = frozenset(
    {
        "failing", "known_red", "turned_green", "red_before_and_still", "red_only_now",
        "red_now", "passing_now",
    }
)  # fmt: skip
"""Keys of a view whose values are names of tests."""


def further(view: Any, known: Mapping[str, str], least: int = LONG) -> dict[str, str]:
    """Ids for names in a view that have none yet, by id; `known` is by name.

    Only for names of `least` characters.
    """
    names = dict.fromkeys(name for name in _names(view) if len(name) >= least and name not in known)
    room = max(0, MOST - len(known))
    return {f"T{len(known) + at}": name for at, name in enumerate(list(names)[:room], 1)}


def shortened(view: Any, known: Mapping[str, str]) -> Any:
    """The view with ids where names stand that have one."""
    if not known:
        return view
    if isinstance(view, dict):
        return {key: _under(key, value, known) for key, value in view.items()}
    if isinstance(view, list):
        return [shortened(one, known) for one in view]
    return view


def used(view: Any) -> set[str]:
    """The ids that stand in a view in the place of names."""
    return {name for name in _names(view) if ID.fullmatch(name)}


def _under(key: str, value: Any, known: Mapping[str, str]) -> Any:
    if key in LISTS and isinstance(value, list):
        return [known.get(one, one) if isinstance(one, str) else one for one in value]
    if key == "red" and isinstance(value, list):
        return [_red(one, known) for one in value]
    return shortened(value, known)


def _red(one: Any, known: Mapping[str, str]) -> Any:
    return {**one, "name": known.get(one["name"], one["name"])} if _is_red(one) else one


def _is_red(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("name"), str)


def _names(view: Any) -> Iterator[str]:
    """The names of tests in a view, in its order."""
    if isinstance(view, list):
        for one in view:
            yield from _names(one)
    if not isinstance(view, dict):
        return
    for key, value in view.items():
        if key in LISTS and isinstance(value, list):
            yield from (one for one in value if isinstance(one, str))
        elif key == "red" and isinstance(value, list):
            yield from (one["name"] for one in value if _is_red(one))
        else:
            yield from _names(value)
