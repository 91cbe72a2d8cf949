import pytest

from agentrunner.verification.results.counts import Counts, disbelief, read_counts

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
    "unittest expects": (
        "Ran 5 tests in 0.001s\n\nOK (skipped=1, expected failures=2)\n",
        (2, 0, 1),
    ),
    "unittest is surprised": (
        "Ran 4 tests in 0.001s\n\nFAILED (failures=1, expected failures=1, "
        "unexpected successes=1)\n",
        (1, 2, 0),
    ),
    "pytest expects": ("== 1 passed, 2 xfailed, 1 xpassed in 0.02s ==\n", (1, 0, 0)),
    "pytest is surprised": ("== 1 failed, 1 passed, 1 xfailed in 0.02s ==\n", (1, 1, 0)),
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
    "pytest sections": (
        "=== short test summary info ===\nFAILED t.py::test_a\n"
        "============ 1 failed, 2 passed, 1 warning in 65.32s (0:01:05) ============\n",
        (2, 1, 0),
    ),
    "pytest -x": (
        "!!!!! stopping after 1 failures !!!!!\n==== 1 failed, 1 passed in 0.02s ====\n",
        (1, 1, 0),
    ),
    "pytest xdist": (
        "bringing up nodes...\n.F..  [100%]\n[gw0] linux -- Python 3.12.1 /usr/bin/python\n"
        "1 failed, 3 passed in 1.20s\n",
        (3, 1, 0),
    ),
    "pytest subtests": (
        "SUBFAIL t.py::test_a - assert\n1 failed, 1 passed, 3 subtests passed in 0.03s\n",
        (1, 1, 0),
    ),
    "pytest collects only": ("t.py: 2\n\n2 tests collected in 0.01s\n", (0, 0, 0)),
    "unittest breaks in a class": ("Ran 0 tests in 0.001s\n\nFAILED (errors=1)\n", (0, 1, 0)),
    "unittest without tests": ("Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", (0, 0, 0)),
    "jest in two packages": (
        "Tests:       1 failed, 2 passed, 3 total\nTests:       4 passed, 4 total\n",
        (6, 1, 0),
    ),
    "bun": (
        "(pass) adds [0.10ms]\n(fail) subtracts [0.20ms]\n\n 1 pass\n 1 fail\n"
        " 2 expect() calls\nRan 2 tests across 1 files. [12.00ms]\n",
        (1, 1, 0),
    ),
    "deno": (
        "adds ... ok (1ms)\nsubtracts ... FAILED (2ms)\n\n"
        "FAILED | 1 passed | 1 failed | 1 ignored (15ms)\n",
        (1, 1, 1),
    ),
    "nextest": (
        "        PASS [   0.005s] shop tests::adds\n        FAIL [   0.006s] shop tests::subs\n"
        "     Summary [   0.007s] 2 tests run: 1 passed, 1 failed, 3 skipped\n",
        (1, 1, 3),
    ),
    "go finds no such test": ("ok  \tshop\t0.003s [no tests to run]\n", (0, 0, 0)),
    "go cannot build": ("FAIL\tshop [build failed]\nFAIL\n", (0, 1, 0)),
    "maven": (
        "[INFO] Running shop.CartTest\n"
        "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.05 s <<< "
        "FAILURE! -- in shop.CartTest\n"
        "[ERROR]   CartTest.sums:12 expected: <5> but was: <4>\n[INFO]\n"
        "[ERROR] Tests run: 5, Failures: 1, Errors: 1, Skipped: 1\n[INFO] BUILD FAILURE\n",
        (2, 2, 1),
    ),
    "dotnet": (
        "  Failed Shop.CartTests.Sums [3 ms]\n"
        "Failed!  - Failed:     1, Passed:     4, Skipped:     2, Total:     7, Duration: 20 ms\n",
        (4, 1, 2),
    ),
    "dotnet 9": (
        "Test summary: total: 7, failed: 1, succeeded: 4, skipped: 2, duration: 1.1s\n",
        (4, 1, 2),
    ),
    "rspec": (
        "Finished in 0.01 seconds\n7 examples, 1 failure, 2 pending\n\n"
        "rspec ./spec/cart_spec.rb:3 # Cart sums\n",
        (4, 1, 2),
    ),
    "phpunit": (
        "1) CartTest::testSum\n\nFAILURES!\nTests: 7, Assertions: 9, Failures: 1, Skipped: 2.\n",
        (4, 1, 2),
    ),
    "phpunit ok": ("OK (4 tests, 9 assertions)\n", (4, 0, 0)),
    "ctest": (
        "75% tests passed, 1 tests failed out of 4\n\nThe following tests FAILED:\n"
        "\t  3 - cart (Failed)\n",
        (3, 1, 0),
    ),
    "node with tap": (
        "TAP version 13\nok 1 - a\nnot ok 2 - b\n1..2\n# tests 2\n# pass 1\n# fail 1\n",
        (1, 1, 0),
    ),
    "windows line ends": ("==== 2 passed in 0.01s ====\r\n", (2, 0, 0)),
    "tap": ("1..3\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP later\n", (1, 1, 1)),
}

SILENT = {
    "gradle": "CartTest > sums() FAILED\n\n5 tests completed, 1 failed\n\n> Task :test FAILED\n",
    "mvn -q": "[ERROR] Tests run: 5, Failures: 1, Errors: 0, Skipped: 0\n",
    "pytest -qq": "F.  [100%]\nFAILED t.py::test_a - assert 1 == 2\n",
    "a script": "all good, trust me\n3 passed\n",
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


def test_the_summaries_of_one_command_add_up() -> None:
    text = "5 passed in 0.1s\n1 failed, 4 passed in 0.2s\n"
    assert read_counts(text, "Ran 3 tests in 0.001s\n\nOK\n") == Counts(12, 1, 0, [])


def test_a_fixture_that_breaks_after_its_test_is_no_test_of_its_own() -> None:
    before = read_counts("ERROR t.py::test_a - boom\n1 passed, 1 error in 0.01s\n")
    assert before is not None
    assert (before.ran, before.sure) == (2, 1)
    assert disbelief(0, Counts(1), before) == ""


def test_a_collection_that_broke_still_means_that_tests_are_counted() -> None:
    before = read_counts("ERROR t.py\n1 error in 0.01s\n")
    assert disbelief(0, None, before)
    assert disbelief(0, Counts(0, 0, 3), before)
    assert disbelief(0, Counts(1), before) == ""


@pytest.mark.parametrize("output", SILENT.values(), ids=SILENT)
def test_what_has_no_counts_where_it_passes_has_none_where_it_fails(output: str) -> None:
    assert read_counts(output) is None


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
        (0, Counts(0, 0, 7), Counts(0, 0, 7), "no test ran"),
        (0, None, None, ""),
    ],
)
def test_exit_zero_is_believed_only_with_its_tests(
    exit_code: int, now: Counts | None, before: Counts | None, why: str
) -> None:
    found = disbelief(exit_code, now, before)
    assert (why in found) if why else found == ""


def test_fewer_tests_are_believed_where_the_task_wants_them_but_not_none() -> None:
    assert disbelief(0, Counts(30, 0), BEFORE, fewer_is_wanted=True) == ""
    assert disbelief(0, Counts(0, 0), BEFORE, fewer_is_wanted=True)


def test_counting_a_megabyte_of_noise_is_quick() -> None:
    assert read_counts("1 " * 500_000 + "\n" + "=" * 100_000) is None


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("FAIL: test_sum (tests.test_cart.CartTest.test_sum)", "tests.test_cart.CartTest.test_sum"),
        ("FAIL: test_sum (t.CartTest.test_sum) (pieces=3)", "t.CartTest.test_sum"),
        ("FAIL: test_sum (t.CartTest)", "test_sum (t.CartTest)"),  # before Python 3.11
        ("ERROR: setUpClass (t.CartTest)", "setUpClass (t.CartTest)"),
        ("ERROR: t.gone (unittest.loader._FailedTest.t.gone)", "t.gone"),
        ("ERROR: tests.test_gone", "tests.test_gone"),
    ],
)
def test_a_red_test_of_unittest_has_the_name_that_its_run_gives_it(line: str, name: str) -> None:
    counts = read_counts(f"{line}\n-----\nRan 1 test in 0.001s\n\nFAILED (failures=1)\n")
    assert counts is not None and counts.failing == [name]
