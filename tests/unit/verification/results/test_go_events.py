"""What `go test -json` reports where the code under test ends the program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentrunner.verification.results.model import Ran
from agentrunner.verification.results.tools.go import Go


def _events(*outputs: str) -> list[dict[str, str]]:
    package = {"Package": "example.org/count"}
    first = [{**package, "Action": "run", "Test": "TestInc"}]
    first += [{**package, "Action": "pass", "Test": "TestInc"}]
    second = [{**package, "Action": "run", "Test": "TestUse"}]
    second += [{**package, "Action": "output", "Test": "TestUse", "Output": one} for one in outputs]
    return [*first, *second, {**package, "Action": "fail"}]


@pytest.mark.parametrize(
    ("outputs", "outcome"),
    [
        (
            (
                "=== RUN   TestUse\n",
                "fatal error: concurrent map writes\n",
                "goroutine 7 [running]:\n",
            ),
            "failed",
        ),
        (("panic: nil map\n", "\n", "goroutine 6 [running]:\n"), "failed"),
        (("panic: only words\n",), "error"),
        (("no panic: all is well\n",), "error"),
        ((), "error"),
    ],
    ids=["a race", "a panic", "no trace", "words in a line", "nothing is said"],
)
def test_a_test_in_which_the_program_ended(
    outputs: tuple[str, ...], outcome: str, tmp_path: Path
) -> None:
    lines = "\n".join(map(json.dumps, _events(*outputs)))
    (tmp_path / "go-1.jsonl").write_text(lines + "\n")
    results = Go().read(Ran(tmp_path, "", "", 2), 0)
    assert results is not None
    assert not results.complete
    (seen,) = results.named("example.org/count.TestUse")
    assert seen.outcome == outcome
    if outcome == "failed":
        assert outputs[-1].strip() in seen.message
