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
ok 4 should be strictly equal
# waits
ok 5 for nothing # SKIP

1..5
# tests 5
# pass  5

# ok
"""


def test_assertions_below_a_title_are_the_test_of_that_title() -> None:
    results = read_tap(TAPE, "tap", 0)
    assert results is not None
    assert [(test.name, test.outcome) for test in results.tests] == [
        ("adds", "passed"),
        ("divides", "skipped"),
        ("takes away", "passed"),
        ("waits", "skipped"),
    ]
    assert results.complete
    cut = read_tap(TAPE.partition("1..5")[0], "tap", 0)
    assert cut is not None
    assert (len(cut.tests), cut.complete) == (4, False)


def test_comments_of_other_tap_are_no_titles() -> None:
    results = read_tap("TAP version 13\n1..1\n# so far so good\nok 1 - adds\n", "tap", 0)
    assert results is not None
    assert [test.name for test in results.tests] == ["adds"]


NESTED = """TAP version 13
# listening
# Subtest: shop
    # Subtest: adds
    ok 1 - adds
    # Subtest: divides
    ok 2 - divides # SKIP
    1..2
ok 1 - shop
1..1
"""


@pytest.mark.parametrize("text", [NESTED, NESTED.replace("    # Subtest", "    # titled")])
def test_what_is_printed_before_subtests_is_no_title(text: str) -> None:
    results = read_tap(text, "node", 0)
    assert results is not None
    assert [(test.name, test.outcome) for test in results.tests] == [
        ("shop > adds", "passed"),
        ("shop > divides", "skipped"),
    ]


def tape(*lines: str) -> tuple[dict[str, str], bool]:
    """What is read of tape's lines, and whether it is complete."""
    asserted = sum(line.startswith(("ok", "not ok")) for line in lines)
    text = "\n".join(["TAP version 13", *lines, f"1..{asserted}", "# ok", ""])
    results = read_tap(text, "tap", 0)
    assert results is not None
    assert len(results.tests) == len(results.names)
    return {test.name: test.outcome for test in results.tests}, results.complete


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        (("ok 1", "not ok 2 real one # TODO"), "xfailed"),
        (("ok 1", "ok 2 # SKIP"), "skipped"),
        (("ok 1", "ok 2 # TODO"), "xpassed"),
        (("ok 1", "not ok 2 # TODO", "not ok 3"), "failed"),
    ],
)
def test_an_assertion_that_need_not_hold_is_not_hidden_by_others(
    lines: tuple[str, ...], outcome: str
) -> None:
    assert tape("# minus", *lines)[0] == {"minus": outcome}


def test_a_title_keeps_that_it_is_skipped_or_to_do() -> None:
    found = tape("# TODO later", "ok 1", "# SKIP never", "# adds", "ok 2", "# TODO empty")
    assert found == (
        {"later": "xfailed", "never": "skipped", "adds": "passed", "empty": "xfailed"},
        True,
    )


def test_of_comments_in_a_row_the_first_is_the_title() -> None:
    printed = ("# adds", "# took 12 ms", "# SKIP nothing", "ok 1")
    assert tape(*printed)[0] == {"adds": "passed", "nothing": "skipped"}
    assert tape("# adds", "ok 1", "1..1", "# tests 1", "TAP version 13", "# divides", "ok 1")[
        0
    ] == {"adds": "passed", "divides": "passed"}


@pytest.mark.parametrize(
    "lines",
    [
        ("# adds", "ok 1", "# legacy", "not ok 2", "# legacy", "not ok 3"),
        ("# legacy", "not ok 1", "# adds", "ok 2", "# noise", "not ok 3"),
        ("# adds", "ok 1", "# SKIP legacy", "# legacy", "not ok 2"),
    ],
)
def test_what_the_product_prints_takes_no_failure_off_a_test(lines: tuple[str, ...]) -> None:
    """It prints the title of a test that was red before the failure of another one."""
    found, complete = tape(*lines)
    assert "failed" in found.values()
    assert not complete
