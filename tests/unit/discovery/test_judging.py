"""What a trial shows: judged by the runner's own table, and never more than was seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.discovery.found import FoundCommand
from agentrunner.discovery.judging import (
    Kind,
    TriedCommand,
    from_the_root,
    judge,
    not_tried,
    ranked,
    without_missing_plugins,
)
from agentrunner.state.state_model import FileRef
from agentrunner.verification.results.counts import read_counts
from agentrunner.verification.rooms.decision_sandbox import CommandOutcome


def ran(
    output: str, exit_code: int, seconds: float = 2.0, timed_out: bool = False
) -> CommandOutcome:
    counts = None if timed_out else read_counts(output)
    return CommandOutcome(exit_code, FileRef(path="x"), output[-4096:], counts, seconds, timed_out)


def seen(
    command: str, output: str, exit_code: int, behind: tuple[str, ...] = (), timed_out: bool = False
) -> TriedCommand:
    one = ran(output, exit_code, timed_out=timed_out)
    return judge(FoundCommand(command, "w"), one, output, Path("/r"), behind)


COLLECTION = """\
ERROR tests/test_a.py
E   ModuleNotFoundError: No module named 'trustme'
!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!
1 error in 0.10s
"""


def test_tests_that_import_what_is_to_be_written_are_red(tmp_path: Path) -> None:
    (tmp_path / "src/attr").mkdir(parents=True)
    (tmp_path / "src/attr/converters.py").touch()
    own = (
        "E   ImportError: cannot import name 'to_bool' from 'attr.converters'"
        " (/room/x/src/attr/converters.py)\nE   ModuleNotFoundError: No module named 'attr.new'\n"
    )
    end = "!!!! Interrupted: 2 errors during collection !!!!\n2 errors in 0.10s\n"

    def trial(output: str) -> TriedCommand:
        return judge(FoundCommand("pytest -q", "w"), ran(output, 2), output, tmp_path)

    seen_red = trial(own + end)
    assert (seen_red.kind, seen_red.failed) == ("red", 2)
    assert seen_red.summary.startswith(
        "the tests import what the project does not have yet: to_bool and 1 more"
    )
    assert trial(own + COLLECTION).kind == "fails"
    later = FoundCommand("uv run tox", "w", needs="tox first installs its environments")
    assert ranked([not_tried(later), seen_red])[0] is seen_red


@pytest.mark.parametrize(
    ("command", "output", "exit_code", "behind", "kind", "said"),
    [
        ("pytest -q", "12 passed in 0.50s", 0, (), "passes", "12 passed, 0 failed, 2.0 s"),
        (
            "go test ./...", "ok  \tx.org/a\t0.1s\n--- FAIL: TestB (0.00s)\nFAIL\tx.org/b\t0.1s\n",
            1, (), "red", "1 of its packages passed, 1 failed",
        ),
        ("pytest", "FAILED a::b\n1 failed, 12 passed in 1s", 1, (), "red", "12 passed, 1 failed"),
        (
            "pytest", COLLECTION, 2, (), "fails",
            "exit 2: the tests could not be collected; E   ModuleNotFoundError",
        ),
        ("pytest", "no tests ran in 0.01s", 5, (), "no_tests", "finds no tests"),
        (
            "pytest -n auto", "ERROR: usage: pytest [options]\npytest: error: unrecognized "
            "arguments: -n", 4, (), "fails", "exit 4: pytest does not know",
        ),
        # uv ends with 2 as well, and no test was collected or not.
        (
            "uv run pytest", "error: Failed to download `iniconfig==2.0.0`", 2, (), "fails",
            "exit 2, no test was seen to run: error: Failed to download",
        ),
        ("make test", COLLECTION + "make: *** [Makefile:2: test] Error 2\n", 2, ("pytest",),
         "fails", "exit 2: the tests could not be collected"),
        ("make test", "FAILED a::b\n1 failed in 1s\nmake: *** [Makefile:2: test] Error 1\n", 2,
         ("pytest",), "red", "0 passed, 1 failed"),
        ("sh x.sh", "all fine", 0, (), "no_count", "exit 0, 2.0 s; how many tests ran is not told"),
        ("sh x.sh", "", 3, (), "fails", "exit 3, no test was seen to run: nothing says why"),
        (
            "scripts/test", "12 passed in 1s\nCoverage failure: total of 98 is less than 100", 2,
            (), "unclear", "12 passed, 0 failed, 2.0 s, and yet exit 2; Coverage failure",
        ),
        (
            "bundle exec rake", "/usr/lib/ruby/a.rb:224:in `path': The git source x is not checked "
            "out (Bundler::GitError)\n\tfrom /usr/lib/ruby/b.rb:190:in `find'", 1, (), "fails",
            "exit 1, no test was seen to run: The git source x is not checked out",
        ),
        ("nope", "sh: 1: nope: not found", 127, (), "fails", "exit 127: sh: 1: nope: not found"),
        ("python3 -m unittest", "Ran 0 tests in 0.000s\n\nNO TESTS RAN", 5, (), "no_tests", "find"),
        ("cargo test", "error[E0425]: cannot find value `x`", 101, (), "fails", "exit 101: it"),
    ],
)  # fmt: skip
def test_what_is_said_of_an_end(
    command: str, output: str, exit_code: int, behind: tuple[str, ...], kind: Kind, said: str
) -> None:
    found = seen(command, output, exit_code, behind)
    assert found.kind == kind
    assert found.summary.startswith(said)


def test_red_names_are_kept_and_a_time_out_is_no_start_of_tests() -> None:
    assert seen("pytest", "FAILED a::b - x\n1 failed in 1s", 1).failing == ("a::b",)
    late = seen("pytest", "timed out after 60 s", 124, timed_out=True)
    busy = seen("pytest", "x\na/test_b.py ... [ 12%]\n\ntimed out after 60 s", 124, timed_out=True)
    assert busy.summary == "still running after 2.0 s, it printed: a/test_b.py ... [ 12%]"
    assert late.kind == "running" and not late.runs
    assert late.summary == "still running after 2.0 s, nothing printed yet"


@pytest.mark.parametrize(
    ("output", "word"),
    [
        ("psycopg.OperationalError: connection to server at ::1 failed", "database"),
        ("Error: connect ECONNREFUSED 127.0.0.1:6379", "database"),
        ("browserType.launch: Executable doesn't exist", "browser"),
        ("Cannot connect to the Docker daemon at unix:///x", "Docker"),
        ("assert 1 == 2", ""),
    ],
)
def test_what_the_output_says_that_a_box_lacks(output: str, word: str) -> None:
    lacks = seen("pytest", f"{output}\n1 failed in 1s", 1).lacks
    assert len(lacks) == bool(word)
    assert all(word in text for text in lacks)


def test_the_best_is_what_was_seen_to_test_the_most() -> None:
    def of(command: str, kind: Kind, **facts: int | bool) -> TriedCommand:
        return TriedCommand(FoundCommand(command, "w"), kind, **facts)  # type: ignore[arg-type]

    order = [
        of("missing", "fails"),
        of("offline", "fails", offline=True),
        not_tried(FoundCommand("set-up", "w", needs="node_modules is not there yet")),
        not_tried(FoundCommand("later", "w")),
        of("empty", "no_tests"),
        of("few", "passes", passed=3),
        of("many", "red", passed=90, failed=1),
        of("all", "passes", passed=90),
        of("slow", "passes", passed=90, duration_sec=50),
        of("all red", "red", failed=90),
    ]
    assert [one.found.command for one in ranked(order)] == [
        "all", "slow", "many", "few", "all red", "offline", "later", "set-up", "empty", "missing",
    ]  # fmt: skip


def test_a_tool_that_is_not_there_is_not_there_for_what_was_not_tried_either() -> None:
    first = seen("uv run pytest", "sh: 1: uv: not found\n", 127)
    later = not_tried(FoundCommand("uv run tox", "w", needs="tox first installs"))
    other = not_tried(FoundCommand("make test", "w"))
    assert ranked([first, later]) == [first, later]
    assert ranked([first, later, other]) == [other, first, later]


def test_packages_that_the_set_up_fetches_are_no_reason_for_a_worse_command() -> None:
    lacking = (
        "a.go:3:2: no required module provides package x.test/y; to add it:\n\tgo get x.test/y\n"
    )
    first = seen("go test ./...", lacking, 1)
    later = not_tried(FoundCommand("make test", "w", needs="it runs `go get` first"))
    assert first.offline and ranked([first, later]) == [first, later]
    broken = seen("go test ./...", "a.go:3:2: undefined: word\n", 1)
    assert not broken.offline and ranked([broken, later]) == [later, broken]


@pytest.mark.parametrize(
    ("command", "unknown", "better"),
    [
        ("pytest -n auto", "-n", "pytest"),
        ("pytest -n auto --timeout 10 tests/a", "-n --timeout", "pytest tests/a"),
        ("pytest --cov=src --cov-report=xml", "--cov=src --cov-report=xml", "pytest"),
        ("pytest -q", "--strict-thing", "pytest -q -o addopts="),
        ("pytest -q -o addopts=", "--strict-thing", ""),
        ("make test", "-n", ""),
    ],
)
def test_options_of_plug_ins_that_are_not_there(command: str, unknown: str, better: str) -> None:
    said = f"ERROR: usage: x\npytest: error: unrecognized arguments: {unknown}\n"
    assert without_missing_plugins(command, said) == better


def test_modules_at_the_root_are_found_by_python(tmp_path: Path) -> None:
    (tmp_path / "slug.py").touch()
    (tmp_path / "shop").mkdir()
    error = "E   ModuleNotFoundError: No module named '{}'\n"
    own = error.format("slug") + error.format("shop.cart")
    assert from_the_root("pytest -q", own, tmp_path) == "python3 -m pytest -q"
    assert from_the_root(".venv/bin/pytest", own, tmp_path) == ".venv/bin/python -m pytest"
    assert from_the_root("pytest -q", own + error.format("trio"), tmp_path) == ""
    assert from_the_root("python3 -m pytest", own, tmp_path) == ""
    assert from_the_root("pytest-watch", own, tmp_path) == ""


def test_nothing_is_mended_that_is_not_told() -> None:
    assert (
        without_missing_plugins("pytest -n auto", "ERROR: file or directory not found: auto") == ""
    )
