"""TAP among what a program prints: is it a report, or does a script only say "ok"?"""

import pytest

from agentrunner.verification.results.tap import read_tap


@pytest.mark.parametrize("text", ["ok\n", "all good\nok\n", "ok - everything fine\n", "not ok\n"])
def test_a_script_that_says_ok_reports_no_tests(text: str) -> None:
    assert read_tap(text, "node", 0) is None


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("ok 1 - adds\n1..1\n", True),
        ("TAP version 13\nok - adds\n1..1\n", True),
        ("ok 1 - adds\n", False),  # it ended before its plan
    ],
)
def test_a_report_is_read(text: str, complete: bool) -> None:
    results = read_tap(text, "node", 0)
    assert results is not None
    assert (len(results.tests), results.complete) == (1, complete)
