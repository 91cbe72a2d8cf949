"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Iterator
from types import ModuleType

import pytest

import agentrunner
from agentrunner.text.lazy_regex import lazy_regex

# Words of which a line of a hostile file may be made: any of them, as often as its writer likes.
WORDS = (
    *"aA0_é \t\n\"'`()[]{}<>\\-.,/:;=*#$@|&+~!?%^",
    *("f0", "a_", "a.", "a-", "0.", "a ", "a,", "a=", "a;", "a\n", "a\n\n", "--a ", "<a"),
    *('"a" ', "`a` ", "\r\n", "\n ", "- ", ": ", ". ", ", ", "()", "{}", "/*", "//", "->", "${"),
)
WAYS = "search|match|fullmatch|finditer|findall|sub|subn|split"


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


@pytest.mark.timeout(900)  # seconds of its own CPU, which it may have to wait for
def test_none_of_ours_takes_sixteen_times_as_long_for_a_line_four_times_as_long() -> None:
    found = {(name, one.pattern, one.flags): one for name, one in _all()}
    assert len(found) > 800
    ways = {name: _ways(name) for name, _, _ in found}
    slow = [
        f"{name}.{way} of {word!r}"
        for (name, _, _), pattern in found.items()
        for way in ways[name]
        for word in WORDS
        if _grows_faster_than_its_text(pattern, way, word)
    ]
    assert not slow


def _grows_faster_than_its_text(pattern: re.Pattern[str], way: str, word: str) -> bool:
    """Whether its CPU time tells; what takes a thousandth of a second is not looked at closer."""
    if _seconds(pattern, way, word, 2000) < 0.001:
        return False
    few, many = (min(_seconds(pattern, way, word, n) for _ in range(3)) for n in (500, 2000))
    return many > 0.001 and many > 9 * few


def _seconds(pattern: re.Pattern[str], way: str, word: str, times: int) -> float:
    text = word * times + "\x01"
    given = text.encode() if isinstance(pattern.pattern, bytes) else text
    before = time.thread_time()
    found = getattr(pattern, way)(given)
    if way == "finditer":
        for _ in found:
            pass
    return time.thread_time() - before


def _all() -> Iterator[tuple[str, re.Pattern[str]]]:
    """All of our modules' regular expressions, each with the module and the name that hold it."""
    for module in _modules():
        for name, value in vars(module).items():
            for one in _within(value):
                if type(one) is type(lazy_regex("")) or isinstance(one, re.Pattern):
                    yield f"{module.__name__}:{name}", one


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(agentrunner.__path__, "agentrunner."):
        if "reporters" not in module.name and not module.name.endswith("__main__"):
            yield importlib.import_module(module.name)


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


def _ways(of: str) -> list[str]:
    """The methods of a regular expression that its module calls by its name, or by any other."""
    module, _, name = of.partition(":")
    source = inspect.getsource(importlib.import_module(module))
    called = rf"\b{name}(?:\[\w+\])?\.({WAYS})\b"
    found = re.findall(called, source) or re.findall(rf"\b(?!re\b)[a-z]\w*\.({WAYS})\(", source)
    ways = {one if one in ("search", "match", "fullmatch") else "finditer" for one in found}
    return sorted(ways - {"search"} if "finditer" in ways else ways)
