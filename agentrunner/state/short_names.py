"""Ids for long names of tests: a prompt has each name once, and its id from then on. Pure.

Ids are given in the order in which names are shown, and stay for the whole run. In what a planner
writes for workers and people, the names are put beside the ids again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentrunner.protocol.known_ids import TEST_ID as ID

LONG = 24
"""Names of at least so many characters get an id."""
MOST = 400
"""At most so many ids in one run."""
LISTS = frozenset(
    {
        "failing", "known_red", "turned_green", "red_before_and_still", "red_only_now",
        "new_and_passing",
        "red_now", "passing_now",
    }
)  # fmt: skip
"""Keys of a view whose values are names of tests."""


def further(view: Any, known: Mapping[str, str], least: int = LONG) -> dict[str, str]:
    """Return ids for names in a view that have none yet, by id; `known` is by name.

    Only names of at least `least` characters get one.
    """
    names = dict.fromkeys(name for name in _names(view) if len(name) >= least and name not in known)
    room = max(0, MOST - len(known))
    return {f"T{len(known) + at}": name for at, name in enumerate(list(names)[:room], 1)}


def shortened(view: Any, known: Mapping[str, str]) -> Any:
    """Return the view with ids in place of names that have one."""
    if not known:
        return view
    if isinstance(view, dict):
        return {key: _under(key, value, known) for key, value in view.items()}
    if isinstance(view, list):
        return [shortened(item, known) for item in view]
    return view


def used(view: Any) -> set[str]:
    """Return the ids that a view has in place of names."""
    return {name for name in _names(view) if ID.fullmatch(name)}


def _under(key: str, value: Any, known: Mapping[str, str]) -> Any:
    if key in LISTS and isinstance(value, list):
        return [known.get(item, item) if isinstance(item, str) else item for item in value]
    if key == "red" and isinstance(value, list):
        return [_red(item, known) for item in value]
    return shortened(value, known)


def _red(test: Any, known: Mapping[str, str]) -> Any:
    return {**test, "name": known.get(test["name"], test["name"])} if _is_red(test) else test


def _is_red(test: Any) -> bool:
    return isinstance(test, dict) and isinstance(test.get("name"), str)


def _names(view: Any) -> Iterator[str]:
    """Yield the names of tests in a view, in its order."""
    if isinstance(view, list):
        for item in view:
            yield from _names(item)
    if not isinstance(view, dict):
        return
    for key, value in view.items():
        if key in LISTS and isinstance(value, list):
            yield from (item for item in value if isinstance(item, str))
        elif key == "red" and isinstance(value, list):
            yield from (item["name"] for item in value if _is_red(item))
        else:
            yield from _names(value)
