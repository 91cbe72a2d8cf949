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


TAPE = """TAP version 13
# adds
ok 1 should be strictly equal
ok 2 should be strictly equal
# SKIP divides
# takes away
ok 3 should be strictly equal
not ok 4 should be strictly equal
  ---
    operator: equal
    expected: 1
    actual:   2
  ...
# waits
ok 5 for nothing # SKIP

1..5
# tests 5
# pass  4
# fail  1
"""


def test_assertions_below_a_title_are_the_test_of_that_title() -> None:
    results = read_tap(TAPE, "tap", 1)
    assert results is not None
    assert [(test.name, test.outcome) for test in results.tests] == [
        ("adds", "passed"),
        ("takes away", "failed"),
        ("waits", "skipped"),
    ]
    assert results.complete
    cut = read_tap(TAPE.partition("1..5")[0], "tap", 1)
    assert cut is not None
    assert (len(cut.tests), cut.complete) == (3, False)


def test_comments_of_other_tap_are_no_titles() -> None:
    results = read_tap("TAP version 13\n1..1\n# so far so good\nok 1 - adds\n", "tap", 0)
    assert results is not None
    assert [test.name for test in results.tests] == ["adds"]
