import pytest

from agentrunner.evidence.counts import Counts, disbelief, read_counts

OUTPUTS = {
    "pytest": ("...F\n=== 1 failed, 3 passed, 2 skipped in 0.12s ===\n", (3, 1, 2)),
    "pytest quiet": (
        "..F\nFAILED t/test_a.py::test_x - assert\n1 failed, 2 passed in 0.05s\n",
        (2, 1, 0),
    ),
    "pytest colours": ("\x1b[32m.\x1b[0m\n\x1b[32m\x1b[1m1 passed\x1b[0m in 0.01s\n", None),
    "pytest collection": ("ERROR t/test_a.py\n1 error in 0.10s\n", (0, 1, 0)),
    "pytest nothing": ("\nno tests ran in 0.00s\n", (0, 0, 0)),
    "unittest": ("..\n-----\nRan 4 tests in 0.001s\n\nFAILED (failures=1, skipped=1)\n", (2, 1, 1)),
    "unittest ok": ("Ran 3 tests in 0.001s\n\nOK\n", (3, 0, 0)),
    "jest": ("Tests:       1 failed, 1 skipped, 3 passed, 5 total\nTime: 1 s\n", (3, 1, 1)),
    "vitest": (" Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)\n", (2, 1, 0)),
    "mocha": ("\n  5 passing (12ms)\n  1 pending\n  2 failing\n", (5, 2, 1)),
    "node": ("# tests 3\n# pass 2\n# fail 1\n# skipped 0\n", (2, 1, 0)),
    "cargo": (
        (
            "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured\n"
            "test a::b ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\n"
        ),
        (3, 1, 1),
    ),
    "go": ("ok  \tshop\t0.012s\nFAIL\tshop/cart\t0.010s\n", (1, 1, 0)),
    "go -v": ("--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\tshop\t0.010s\n", (1, 1, 0)),
    "tap": ("1..3\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP later\n", (1, 1, 1)),
}


@pytest.mark.parametrize(("output", "expected"), OUTPUTS.values(), ids=OUTPUTS)
def test_counts_are_read_off_each_runner(
    output: str, expected: tuple[int, int, int] | None
) -> None:
    counts = read_counts(output)
    assert counts is not None
    if expected is not None:
        assert (counts.passed, counts.failed, counts.skipped) == expected
    else:
        assert counts.passed == 1


def test_unknown_output_has_no_counts() -> None:
    assert read_counts("all good, trust me\n3 passed") is None


def test_the_last_summary_counts() -> None:
    text = "5 passed in 0.1s\nrerun\n1 failed, 4 passed in 0.2s\n"
    assert read_counts(text) == Counts(4, 1, 0, [])


def test_failing_tests_are_named() -> None:
    counts = read_counts("FAILED tests/test_a.py::test_x - boom\n1 failed in 0.1s\n")
    assert counts is not None
    assert counts.failing == ["tests/test_a.py::test_x"]


BEFORE = Counts(41, 1)


@pytest.mark.parametrize(
    ("exit_code", "now", "before", "why"),
    [
        (0, Counts(42, 0), BEFORE, ""),
        (1, Counts(40, 2), BEFORE, ""),
        (0, Counts(40, 2), BEFORE, "2 failed"),
        (0, None, BEFORE, "without a count"),
        (0, Counts(41, 0, 1), BEFORE, "only 41 tests"),
        (0, Counts(0, 0), None, "no test ran"),
        (0, None, None, ""),
    ],
)
def test_exit_zero_is_believed_only_with_its_tests(
    exit_code: int, now: Counts | None, before: Counts | None, why: str
) -> None:
    found = disbelief(exit_code, now, before)
    assert (why in found) if why else found == ""


def test_fewer_tests_are_believed_where_the_task_wants_them() -> None:
    assert disbelief(0, Counts(30, 0), BEFORE, fewer_is_wanted=True) == ""


def test_counting_a_megabyte_of_noise_is_quick() -> None:
    assert read_counts("1 " * 500_000 + "\n" + "=" * 100_000) is None
