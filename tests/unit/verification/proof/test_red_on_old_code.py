"""Which reds on the old code say something about the work."""

from types import SimpleNamespace
from typing import Any

import pytest

from agentrunner.state.state_model import FileRef
from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.proof.code_removal import _TriedTests
from agentrunner.verification.proof.names_of_work import _is_written
from agentrunner.verification.proof.red_on_old_code import why_not_red_on_old_code
from agentrunner.verification.proof.trees_without_work import turns_red
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import made
from agentrunner.verification.rooms.decision_sandbox import CommandOutcome


@pytest.mark.parametrize(
    ("outcome", "message", "is_red"),
    [
        ("failed", "assert 2 == 3", True),
        ("error", "'M' object has no attribute 'p'", False),
        ("error", "Error: Cannot find module '../lib/total'", True),
        ("error", "Cannot find module 'total.js' imported from test/total.test.js", True),
        ("error", "Cannot find package 'pad' imported from /w/test/total.test.js", False),
        ("error", "Cannot find module 'pad' from 'test/total.test.js'", False),
        ("error", "SyntaxError: './a' does not provide an export named 'total'", True),
        ("error", "SyntaxError: Identifier 'total' has already been declared", False),
        ("error", "SyntaxError: Unexpected token '=>'", False),
    ],
)
def test_a_red_fails_or_lacks_what_the_work_adds(outcome: str, message: str, is_red: bool) -> None:
    test = made("test_a", outcome, "test/total.test.js", message=message)
    ran = CommandOutcome(1, FileRef(path="out"), "", None, 1)
    old = Measured(Target("test", "node --test"), ran, Results("node", (test,)))
    found = why_not_red_on_old_code(["test_a"], old, {"test_a": test}, {"total"})
    assert (found["test_a"] == "") is is_red


def test_a_refusal_says_the_reason_that_was_seen() -> None:
    test = made("test/total.test.js > adds", "passed", "test/total.test.js")
    died = made(test.file, "error", test.file, message="SyntaxError: Unexpected token\nmore")
    old = Measured(
        Target("test", "node --test"),
        CommandOutcome(1, FileRef(path="out"), "", None, 1),
        Results("node", (died,)),
    )
    found = why_not_red_on_old_code([test.name], old, {test.name: test}, {"total"})
    assert "not the work, SyntaxError: Unexpected token; to settle it" in found[test.name]


@pytest.mark.parametrize(
    ("outcomes", "red"),
    [
        (["passed"], False),
        (["failed"], True),
        (["passed", "failed"], True),
        (["skipped"], False),
        (["passed", "skipped"], False),
        ([], True),
    ],
)
def test_a_test_that_is_left_out_is_not_red(outcomes: list[str], red: bool) -> None:
    tests = tuple(made("a", one, "a.test.js") for one in outcomes)
    outcome = CommandOutcome(1, FileRef(path="out"), "", None, 1)
    ran = Measured(Target("test", "jest"), outcome, Results("jest", tests))
    assert turns_red(ran, ["a"]) is red


def test_a_text_of_the_work_is_asked_for_as_code_writes_it_or_as_it_is_meant() -> None:
    before, after = b'T = {\n    "a": 1,\n}\n', b'T = {\n    "a": 1,\n    "\\\\e": "\\x1b",\n}\n'
    assert _is_written(before, after, r"Texts may contain `\e`.")
    assert _is_written(before, after, r"A row for `\\e` is missing.")
    assert not _is_written(before, after, r"Texts may contain `\a`.")


def test_one_character_is_no_text_of_the_work() -> None:
    for text in (b"'\\\\'", b"'/'"):
        assert not _is_written(b"", b"SIGN = " + text, r"A path is written a / b, or a \ b.")


def test_an_example_of_new_code_is_nowhere_on_the_old_code() -> None:
    before = b"pub fn split(line: &str) -> usize {\n    line.len()\n}\n"
    after = before.replace(b"len()", b"len() + 0") + b"pub fn join() -> usize {\n    1\n}\n"
    sources = [("src/lib.rs", "rust", before, after)]
    exam: Any = SimpleNamespace(world=SimpleNamespace(sources=lambda: sources))
    names = [f"doc a src/lib.rs - {item} (line 3)" for item in ("join", "split")]
    unused: Any = None
    tried = _TriedTests(exam, unused, "", unused, refused=dict.fromkeys(names, "it is not run"))
    outcome = CommandOutcome(0, FileRef(path="out"), "", None, 1)
    old = Measured(Target("test", "cargo test"), outcome, Results("cargo", ()))
    assert tried._of_new_code(old) == names[:1]
    seen = Results("cargo", (made(names[0], "passed"),))
    assert not tried._of_new_code(Measured(old.target, outcome, seen))
