"""Which files two tasks may both change."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrunner.plans.schedule import is_pattern, meet, normal
from tests.kit.examples import examples


@pytest.mark.parametrize(
    ("path", "same"),
    [
        ("src/a.py", "./src//a.py"),
        ("src/a.py", "/src/b/../a.py "),
        ("src/a.py", "src\\A.py"),
        ("src", "src/"),
        (".", "/"),
        ("src/*.py", "src/{a,b}.py"),
        ("", "  "),
    ],
)
def test_each_place_has_one_spelling(path: str, same: str) -> None:
    assert normal(same) == path


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/a/b/c.py", True),
        ("src/**/*.py", "src/a/b", True),
        ("src/**/*.py", "src", True),
        ("src/**/*.py", "src/a.md", False),
        ("src/**/*.py", "lib/a.py", False),
        ("**/*.py", "README.md", False),
        ("src/*", "src/a/b.py", True),
        ("src/*.py", "src/*.md", False),
        ("src/*.py", "src/test_*", True),
        ("src/test_*.py", "src/app_*.py", False),
        ("**/models.py", "app/**", True),
        ("*", "a/b", True),
        (".", "**/x", True),
        ("app/[id]/page.tsx", "app/[id]/page.tsx", True),
        ("app/[ab].py", "app/a.py", True),
        ("app/[ab].py", "app/c.py", False),
        ("v1.2", "v1.2/a.py", True),
        ("src/a?.py", "src/ab.py", True),
    ],
)
def test_patterns_and_paths_meet(one: str, other: str, expected: bool) -> None:
    assert meet(normal(one), normal(other)) is meet(normal(other), normal(one)) is expected


def test_a_hostile_pattern_takes_no_time() -> None:
    assert not meet(
        "/".join(["**", "*a*a*a*a*b"] * 60), "/".join(["aaaaaaaaaaaaaaaaaaaaaaaa.c"] * 60)
    )


names = st.sampled_from(["a", "b", "a.py", "b.py", "test_a.py", "c.md", ".ci"])
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
parts = st.one_of(names, st.sampled_from(["*", "**", "*.py", "a*", "?", "[ab]", "{a,b}.py"]))
patterns = st.lists(parts, min_size=1, max_size=4).map("/".join)


@settings(max_examples=examples(300), deadline=None)
@given(patterns, patterns)
def test_it_is_the_same_from_both_sides_and_with_itself(one: str, other: str) -> None:
    one, other = normal(one), normal(other)
    assert meet(one, one) and meet(one, other) == meet(other, one)


@settings(max_examples=examples(300), deadline=None)
@given(patterns, paths)
def test_a_pattern_meets_what_it_matches_and_what_it_is_in(pattern: str, path: str) -> None:
    pattern, path = normal(pattern), normal(path)
    for place in (PurePosixPath(path), *PurePosixPath(path).parents):
        if matches(pattern.split("/"), str(place).split("/")):
            assert meet(pattern, path)
    if not is_pattern(pattern):
        nest = f"{path}/".startswith(f"{pattern}/") or f"{pattern}/".startswith(f"{path}/")
        assert meet(pattern, path) == nest


def matches(pattern: list[str], path: list[str]) -> bool:
    """As a shell has it, `**` for any number of folders."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return matches(pattern[1:], path) or bool(path and matches(pattern, path[1:]))
    return (
        bool(path) and PurePosixPath(path[0]).match(pattern[0]) and matches(pattern[1:], path[1:])
    )
