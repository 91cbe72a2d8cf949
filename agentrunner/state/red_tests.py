"""Red tests as they are shown everywhere: name, place and message of a few, then a count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agentrunner.text.lazy_regex import lazy_regex

if TYPE_CHECKING:
    from agentrunner.state.run_state import RedTest, TestOutcome
    from agentrunner.state.state_model import FileRef

PLACE_ALONE = lazy_regex(r"\S+:\d+(?::\d+)?:?")
"""A file with its line, and nothing else."""
MOST = 10
"""Red tests that are shown by name; the rest is a count."""


def shown_red(outcome: TestOutcome | None) -> list[RedTest]:
    """Return the first red tests of an outcome: with messages if known, else by name."""
    if outcome is None:
        return []
    from agentrunner.state.run_state import RedTest

    known = {red.name for red in outcome.red}
    named = [RedTest(name=name) for name in outcome.failing if name not in known]
    return [*outcome.red, *named][:MOST]


def how_many(outcome: TestOutcome | None) -> int:
    """Return how many tests are red, as far as is known."""
    if outcome is None:
        return 0
    return max(outcome.failed or 0, len(outcome.failing), len(outcome.red))


def place_of(red: Mapping[str, Any]) -> str:
    """Return `tests/test_a.py:12`; `line 12` if the name begins with the file; "" if unknown."""
    file, number = str(red.get("file") or ""), red.get("line")
    if file and str(red.get("name") or "").startswith(file):
        return f"line {number}" if number is not None else ""
    return f"{file}:{number}" if file and number is not None else file


def title_of(red: Mapping[str, Any]) -> str:
    """Return name and place of a red test: `tests/test_a.py::test_x (line 12)`."""
    name, place = str(red.get("name") or "?"), place_of(red)
    return f"{name} ({place})" if place else name


def first_line(message: str) -> str:
    """Return the first line of a message that says something, after the place it may begin with.

    In Go a message that begins with a line break leaves `a_test.go:12:` alone on its line.
    """
    lines = [line for line in map(str.strip, message.splitlines()) if line]
    first = next((at for at, line in enumerate(lines) if not PLACE_ALONE.fullmatch(line)), 0)
    return " ".join(lines[: first + 1])


def as_values(reds: Iterable[RedTest]) -> list[dict[str, object]]:
    """Return red tests as JSON-native values."""
    return [red.model_dump() for red in reds]


def path_of(output: FileRef | None) -> str:
    """Return the path of kept output in the run's folder, "" for none."""
    return output.path if output else ""
