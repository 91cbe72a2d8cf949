"""Red tests as they are shown everywhere: each by name, place and message, a few, then a count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentrunner.state.run_state import RedTest, TestOutcome
    from agentrunner.state.state_model import FileRef

MOST = 10
"""Red tests that are shown by name before the rest is a count."""


def shown_red(outcome: TestOutcome | None, most: int = MOST) -> list[RedTest]:
    """The first red tests of an outcome: with messages where these are known, else by name."""
    if outcome is None:
        return []
    from agentrunner.state.run_state import RedTest

    known = {one.name for one in outcome.red}
    named = [RedTest(name=name) for name in outcome.failing if name not in known]
    return [*outcome.red, *named][:most]


def how_many(outcome: TestOutcome | None) -> int:
    """How many tests are red, as far as is told."""
    if outcome is None:
        return 0
    return max(outcome.failed or 0, len(outcome.failing), len(outcome.red))


def place_of(red: Mapping[str, Any]) -> str:
    """`tests/test_a.py:12`; only `line 12` where the name begins with the file; "" if unknown."""
    file, number = str(red.get("file") or ""), red.get("line")
    if file and str(red.get("name") or "").startswith(file):
        return f"line {number}" if number is not None else ""
    return f"{file}:{number}" if file and number is not None else file


def title_of(red: Mapping[str, Any]) -> str:
    """Name and place of a red test: `tests/test_a.py::test_x (line 12)`."""
    name, place = str(red.get("name") or "?"), place_of(red)
    return f"{name} ({place})" if place else name


def first_line(message: str) -> str:
    """The first line of a message that says something."""
    return next((line for line in map(str.strip, message.splitlines()) if line), "")


def as_values(reds: Iterable[RedTest]) -> list[dict[str, object]]:
    """Red tests as JSON-native values."""
    return [one.model_dump() for one in reds]


def path_of(output: FileRef | None) -> str:
    """Where kept output lies in the run's folder, "" for none."""
    return output.path if output else ""
