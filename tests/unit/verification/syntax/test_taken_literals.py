"""Literals that the work has taken over from tests, and tests that ask with values near these."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.edits import applied
from agentrunner.verification.syntax.pinned import KnownToTests
from agentrunner.verification.syntax.taken_literals import (
    NearValues,
    stepped,
    taken_literals,
)

SUM = "assert add(1234, 5678) == 6912"
TIME = 'assert seconds("45s") == 45'


def taken(path: str, added: str, test: str, *, before: str = "", known: str = "") -> list[str]:
    tested = KnownToTests.of([(f"test.{path.rpartition('.')[2]}", test.encode())])
    old, new = before.encode(), (before + added).encode()
    return [one.text for one in taken_literals(path, old, new, tested, before + known)]


@pytest.mark.parametrize(
    ("path", "added", "test", "found"),
    [
        ("a.py", "if (a, b) == (1234, 5678): return 6912", SUM, ["1234", "5678", "6912"]),
        ("a.py", "LIMIT = 1234", SUM, ["1234"]),
        ("a.py", "return 1233 < a < 1235", SUM, ["1233", "1235"]),
        ("a.py", "return 8 < a", "f(9)", []),
        ("a.js", "const known = new Map([[-1234, 7]]);", "add(-1234)", ["-1234"]),
        ("a.js", 'const known = {"1234,5678": 0};', SUM, ['"1234,5678"']),
        ("a.py", 'text.endswith("5s")', TIME, ['"5s"']),
        ("a.py", 'text.endswith("s")', TIME, []),
        ("a.py", 'name = "1234-utf"', SUM, []),
        ("a.py", '"""Takes\n1234 and 5678."""', SUM, []),
        ("a.py", "# 1234\nreturn 4321", SUM, []),
        ("a.json", '{"1234,5678": 6912}', SUM, ['"1234,5678"', "6912"]),
        ("a.py", "if a in (1234, 77, 78): return 0", SUM, []),
        ("a.py", "T = [(1234, 'a'), (77, 'b'), (78, 'c')]", SUM, []),
        ("a.rs", "match c { 1234 => 5, 77 => 6, 78 | 79 => 7 }", SUM, []),
        ("a.py", "if f(1234, 77, 78): return 0", SUM, ["1234"]),
        ("a.rs", "#[cfg(test)]\nmod tests {\n    #[test]\n    fn f() { f(1234) }\n}\n", SUM, []),
    ],
)
def test_numbers_of_tests_are_found_wherever_they_stand(
    path: str, added: str, test: str, found: list[str]
) -> None:
    assert taken(path, added, test) == found


def test_what_the_code_knew_is_not() -> None:
    assert taken("a.py", "return 1234", SUM, before="LIMIT = 1234\n") == []
    assert taken("a.py", "return 1234", SUM, known="1234") == []


@pytest.mark.parametrize(
    ("values", "source", "near"),
    [
        ([("number", "-1234")], "add(-1234, 5678)", "add(-1235, 5678)"),
        ([("number", "1233")], "add(1234, 5678)", "add(1235, 5678)"),
        ([("number", "1234")], "add(0x4D2, 0o2322)", "add(1235, 1235)"),
        ([("number", "1.5")], "f(1.50, 15)", "f(2.50, 15)"),
        ([("number", "45")], 'f("45s", "45", "a 45 b")', 'f("45s", "46", "a 46 b")'),
        ([("string", "5s")], 'f("45s", "45")', 'f("46s", "45")'),
        ([("string", "1234,5678")], "add(1234, 5678)", "add(1235, 5679)"),
        ([("string", "v1")], "f(1, 10)", "f(1, 10)"),
    ],
)
def test_tests_ask_with_values_near_by(
    values: list[tuple[str, str]], source: str, near: str
) -> None:
    tested = KnownToTests.of([("t.py", source.encode())])
    made = NearValues.of(values, tested, {})  # type: ignore[arg-type]
    assert applied(source.encode(), list(made.edits("t.py", source.encode(), 1))).decode() == near


def test_tests_ask_with_other_words_where_the_work_has_the_answer_of_an_example() -> None:
    tested = KnownToTests.of([("t.py", b'slug("Tea Pot!"), "tea-pot"')])
    answers = {"Tea Pot!": "tea-pot"}
    taken = taken_literals("a.py", None, b'x = "tea-pot"', tested, "", answers.values())
    near = NearValues.of([one.value for one in taken], tested, answers)
    source = b'slug("Tea Pot!"), "tea-pot"'
    made = applied(source, list(near.edits("t.py", source, 1)))
    assert made == b'slug("Ufb Qpu!"), "ufb-qpu"'
    assert near.restored("got Ufb Qpu!", 1) == "got Tea Pot!"
    assert not taken_literals("a.py", None, b'x = "tea-pot"', tested, "")


def test_a_message_is_read_with_the_tests_own_values() -> None:
    values = NearValues.of([("number", "1234")], KnownToTests(), {})
    assert values.restored("0 != 6912, where 0 = add(1235)", 1) == "0 != 6912, where 0 = add(1234)"
    assert values.restored("TestAdd/1235_2", 1) == "TestAdd/1234_2"
    assert values.restored("0 != 6912, where 0 = add(1233)", -1) == "0 != 6912, where 0 = add(1234)"


def test_a_step_keeps_the_look_of_a_number() -> None:
    assert [stepped(one, 1) for one in ("09", "1_000", "0.50", "9")] == ["10", "1001", "1.50", "10"]
    assert [stepped(one, -1) for one in ("09", "0.50", "0")] == ["08", "-0.50", "1"]


def test_numbers_of_any_look_break_nothing() -> None:
    written = [
        "1e20",
        "1e-7",
        "0xFFFFFFFFFFFFFFFFFF",
        "1__0.5",
        "'1e20 ² ٣'",
        "'v1.2.3'",
        "-0.0",
        "9_",
    ]
    source = ", ".join(written).encode()
    tested = KnownToTests.of([("t.py", source)])
    found = taken_literals("a.py", None, source, tested, "")
    near = NearValues.of([one.value for one in found], tested, {})
    assert near.restored("1e20 21 0.5", 1)
    assert applied(source, list(near.edits("t.py", source, 1)))
