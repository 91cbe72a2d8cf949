"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest

import agentrunner
from agentrunner.text.lazy_regex import lazy_regex


def test_it_is_what_compile_would_have_made() -> None:
    word = lazy_regex(r"(?P<first>\w)\w*", re.ASCII)
    assert word.sub("<>", "two words") == "<> <>"
    assert word.flags & re.ASCII
    found = lazy_regex(rb"\d+").search(b"no 42")
    assert found is not None and found[0] == b"42"


def test_a_mistake_shows_at_the_first_use() -> None:
    broken = lazy_regex("(")
    with pytest.raises(re.error):
        broken.search("")


def test_all_of_ours_can_be_compiled() -> None:
    found = [one.pattern for one in _all()]
    assert len(found) > 500


def _all() -> Iterator[re.Pattern[str]]:
    for module in pkgutil.walk_packages(agentrunner.__path__, "agentrunner."):
        if "reporters" in module.name or module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            yield from (one for one in _within(value) if type(one) is type(lazy_regex("")))


def _within(value: object) -> Iterator[re.Pattern[str]]:
    """The value itself, or what a table of patterns holds, at any depth."""
    if isinstance(value, dict):
        for one in value.values():
            yield from _within(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _within(one)
    else:
        yield value  # type: ignore[misc]
