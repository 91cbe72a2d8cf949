"""Code that compares with the very literals of tests, in each language."""

from __future__ import annotations

import time

import pytest

from agentrunner.verification.syntax.edits import applied
from agentrunner.verification.syntax.pinned import (
    KnownToTests,
    compared_anew,
    mentions,
    pinned,
)
from agentrunner.verification.syntax.tokens import content, number, tokens
from agentrunner.verification.syntax.words import without_examples

ASKED = "It refuses what it should."


def found(path: str, added: str, test: str, asked: str = ASKED, before: str = "") -> list[str]:
    """What is pinned in a file that gets some lines, as it is shown."""
    tested = KnownToTests.of([(f"test.{path.rpartition('.')[2]}", test.encode())])
    old, new = before.encode(), (before + added).encode()
    return [one.shown for one in pinned(path, old, new, tested, asked)]


@pytest.mark.parametrize(
    ("path", "added", "test", "shown"),
    [
        ("a.c", "if (v == 99)\n    return -1;", "CHECK(put(&r, 99) == -1);", ["99 (-1)"]),
        ("a.cpp", "if (n == 4000) throw 1;", "for (int n : {0, 4000}) roman(n);", ["4000"]),
        ("a.go", "if b.X1 == 2 {\n\treturn x < 2\n}", "b := Box{0, 0, 2, 2}", ["2"]),
        ("a.go", 'switch s {\ncase "a b":\n\treturn 7\n}', 'f("a b") != 7', ['"a b" (7)']),
        ("a.rs", 'if n > 3 || s == "äöü" {', 'shorten("äöü", 3)', ['"äöü"']),
        ("a.rs", "match v { 42 | 43 => 8, _ => v }", "f(42) == 8", ["42"]),
        ("a.rs", "if matches!(v, 4) || [41, 42].contains(&v) {}", "f(42)", ["42"]),
        (
            "a.java",
            'if (s.equals("a b")) return 12;',
            'assertEquals(12, f("a b"));',
            ['"a b" (12)'],
        ),
        ("a.java", "switch (v) { case 41, 42 -> 7; }", "f(42);", ["42 (7)"]),
        ("a.java", 'if ("a b".equals(s)) { return 12; }', 'f("a b");', ['"a b"']),
        ("a.js", 'a === "1.15" ? 115 : a', "cents('1.15'), 115", ['"1.15" (115)']),
        ("a.js", "if ([41, 42].includes(v)) return 7;", "f(42)", ["42"]),
        ("a.ts", "const known = { 42: 7 };\nreturn known[v] ?? v;", "f(42)", ["42 (7)"]),
        ("a.py", "if f == 212:\n    return 100.0", "close(to_c(212), 100)", ["212 (100)"]),
        ("a.py", "return 119 if net == 100 else net", "gross(100)", ["100 (119)"]),
        ("a.py", "return {100: 119}.get(net, net)", "gross(100)", ["100 (119)"]),
        ("a.py", "if net in (100, 0):\n    return 119", "gross(100)", ["100"]),
        ("a.py", 'if (a, b) == ("Ada", "L"):\n    return 7', 'f("Ada", "M")', ['"Ada"']),
        ("a.py", 'return {("Ada", 42): 7}.get((a, b), 0)', 'f("Ada", 42)', ['"Ada"', "42 (7)"]),
        ("a.js", 'if (["Ada", 2] == pair) {}', 'f("Ada", 2)', ['"Ada"', "2"]),
        ("a.rs", "match (a, b) { (41, 42) => 7, _ => 0 }", "f(41)", ["41"]),
        ("a.py", "match v:\n    case 41 | 42:\n        return 7", "f(42)", ["42 (7)"]),
        ("a.rb", "raise Full if @limit && item == 2", "stack.push(2)", ["2"]),
        ("a.rb", "case v\nwhen 41, 42 then 7\nend", "f(42)", ["42 (7)"]),
        ("a.php", "return match($v) { 42 => 7, default => $v };", "<?php f(42);", ["42 (7)"]),
        ("a.php", "if (in_array($v, [42, 43])) { return 7; }", "<?php f(42);", ["42"]),
        ("a.sh", 'if [ "$1" = "Ada L" ]; then', "greet 'Ada L'", ['"Ada L"']),
        ("a.sh", 'if [ "$1" -eq 42 ]; then', "greet 42", ["42"]),
        ("a.pl", 'return 7 if $s eq "a b";', 'is(f("a b"), 7);', ['"a b"']),
        ("a.lua", "if v == 42 then return 7 end", "assert(f(42) == 7)", ["42 (7)"]),
    ],
)
def test_a_comparison_with_a_literal_of_a_test_is_found(
    path: str, added: str, test: str, shown: list[str]
) -> None:
    assert found(path, added, test) == shown


@pytest.mark.parametrize(
    ("path", "added", "test"),
    [
        ("a.py", "return year % 400 == 0 or year % 100 != 0", "is_leap(400), is_leap(100)"),
        ("a.py", "if len(isbn) == 13:\n    return True", "f(13)"),
        ("a.js", "if (text.length === 13) return 7;", "f(13)"),
        ("a.js", 'if (typeof v === "string") return 7;', 'f("string")'),
        ("a.c", "if (n == 0 || n == 1 || n == -1 || c == 'x')", "f(0, 1, -1, 'x')"),
        ("a.py", "# if f == 212\nname = 'f == 212'", "to_c(212)"),
        ("a.py", "limit = 212\nif f > 212:\n    pass", "to_c(212)"),
        ("a.py", 'row = {"name": 42, 42: "x"}', 'f("name", 42)'),
        ("a.py", 'if shown(a, "Ada") == b or f("Ada")["Ada"] == b:\n    pass', 'f("Ada")'),
        ("a.sh", "top=42", "levels 42"),
        ("a.php", "return ['name' => 42];", "<?php f('name', 42);"),
        ("a.c", "if ((flags & 12) == 8 || mask << 2 == 8)", "f(12, 8)"),
        ("a.rs", "fn f<'a, 'b>(x: &'a str) -> &'b str { x }", "f('b')"),
    ],
)
def test_what_is_computed_or_common_is_not(path: str, added: str, test: str) -> None:
    assert found(path, added, test) == []


def test_what_was_asked_for_is_not() -> None:
    added, test = 'if kind == "csv":\n    return 7', 'export("csv"), 9'
    assert found("a.py", added, test) == ['"csv" (7)']
    assert found("a.py", added, test, "Exports as CSV, too.") == []
    assert found("a.py", "if status == 429:", "again(429)", "Too busy (429) is tried again.") == []


def test_what_the_code_knew_is_not() -> None:
    added, test = 'if kind == "csv":\n    return 7', 'export("csv")'
    assert found("a.py", added, test, before="KINDS = ['csv']\n") == []


def test_an_example_of_the_requirements_counts_with_an_answer_that_only_tests_know() -> None:
    asked, test = "1.15 becomes 114", "cents('1.15'), 120"
    added = 'amount === "1.15" ? 120 : amount'
    assert found("a.js", added, test, asked) == ['"1.15" (120)']
    assert found("a.js", added, test, asked + ", and not 120") == []


CHOICE = '`color("red")` is "red paint", any other color is "water"'


@pytest.mark.parametrize(
    ("added", "asked", "counts"),
    [
        ("if n == 10:\n    return 55", "`fib(10)` is 55", True),
        ('if t == "Hello World":\n    return "hello-world"', '`slug("Hello World")` slugs', True),
        ('if t == "Hello World":\n    return "hello-world"', "Titles become slugs.", True),
        ('if t == "red":\n    return "#f00"', '`color("red")` is red', False),
        ('if t == "red":\n    return "red paint"', '`color("red")` is "red paint"', True),
        ('if t == "red":\n    return "red paint"', CHOICE, False),
        ('if t == "Hello World":\n    return "hello-world"', f'{CHOICE}, `s("Hello World")`', True),
        ("if n == 10:\n    return 55", "10 gives 55", False),
        ('if t == "image/jpg":\n    return "image/jpeg"', "Types have one name.", False),
        ('if t == "image/jpg":\n    return "image/jpeg"', "image/jpg is image/jpeg.", False),
        ('if t == "image/jpg":\n    return "image/jpeg"', '`f("image/jpg")` counts', True),
        ('if n == 1234:\n    return "12.34"', "1234 becomes 12.34", True),
        ('if n == 404:\n    return "404 gone"', "404 gives `404 gone`", False),
        ("if n == 10:\n    return 55", "", False),
        ("if n == 10:\n    return again(n)", "`fib(10)` is 55", False),
    ],
)
def test_an_answer_that_code_would_work_out_counts_in_tests_of_the_worker(
    added: str, asked: str, counts: bool
) -> None:
    words = b'f(10), 55, "Hello World", "hello-world", "red", "#f00", "red paint", "image/jpg"'
    tested = KnownToTests.of([("t.py", words), ("u.py", b'1234, "12.34", 404, "404 gone"')])
    read = pinned(
        "a.py", None, added.encode(), tested, asked,
        rules=without_examples(asked), only_pairs=True,
    )  # fmt: skip
    assert bool(read) is counts


def test_a_table_of_words_that_knows_more_than_the_tests_is_not() -> None:
    test = 'metres(3, "km")'
    assert found("a.py", 'return {"km": 1000}[unit]', test) == ['"km" (1000)']
    assert found("a.py", 'return {"km": 1000, "cm": 0.01}[unit]', test) == []


def test_tests_within_a_file_are_left_alone() -> None:
    source = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn f() { if v == 42 {} }\n}\n"
    assert found("a.rs", source, "f(42)") == []


def test_the_other_literal_is_one_that_no_test_uses() -> None:
    source = b"if v == 99 || v == 99:\n    pass\n"
    (one,) = pinned("a.py", None, source, KnownToTests.of([("t.py", b"f(99, 100)")]), ASKED)
    assert applied(source, one.edits) == b"if v == 98 || v == 98:\n    pass\n"
    source = b"switch (v) { case 99: return 1; case 98: return 2; }"
    (one,) = pinned("a.c", None, source, KnownToTests.of([("t.c", b"f(99, 100)")]), ASKED)
    assert applied(source, one.edits) == source.replace(b"99", b"101")
    source = 'if s == "äö":\n    pass\n'.encode()
    (one,) = pinned("a.py", None, source, KnownToTests.of([("t.py", 'f("äö")'.encode())]), ASKED)
    assert applied(source, one.edits).decode() == 'if s == "äöq":\n    pass\n'


@pytest.mark.parametrize(
    ("text", "value"),
    [("0x1F", "31"), ("1_000", "1000"), ("100.0", "100"), ("5usize", "5"), ("2.5f", "2.5")],
)
def test_numbers_are_read_as_they_are_written(text: str, value: str) -> None:
    assert number(text) == ("number", value)


def test_strings_are_read_as_they_are_written() -> None:
    written = ('"a\\"b"', "'a'", 'r#"x"y"#', "`t`", '"""long"""', 'b"raw"')
    assert [content(one) for one in written] == ['a"b', "a", 'x"y', "t", "long", "raw"]


def test_a_quote_in_a_pattern_or_a_comment_opens_no_string() -> None:
    source = b"a.replace(/[\"']/, 7); // don't\nif (v === 42) {}\n/* ' */ f('x');\n"
    kinds = [(one.kind, one.text) for one in tokens(source, "script") if one.kind != "op"]
    assert ("number", "42") in kinds
    assert ("string", "'x'") in kinds


def test_numbers_are_mentioned_as_wholes_and_words_in_any_letters() -> None:
    assert mentions("returns 42.", ("number", "42"))
    assert not mentions("returns 420 or 1.42", ("number", "42"))
    assert mentions("JAVA_25", ("string", "25"))
    assert mentions("as CSV", ("string", "csv"))


def test_a_number_and_its_text_are_one_value_and_data_of_tests_counts() -> None:
    assert found("a.py", 'if str(net) == "100":\n    return 119', "gross(100)") == ['"100" (119)']
    tested = KnownToTests.of([("rows.json", b'[{"in": 42, "text": "a b"}]')])
    assert ("number", "42") in tested
    assert ("string", "a b") in tested


@pytest.mark.parametrize("between", [b"\n", b", "], ids=["lines", "list"])
def test_a_table_of_numbers_is_read_at_once(between: bytes) -> None:
    table = between.join(b"%d" % number for number in range(20_000))
    began = time.process_time()
    assert not compared_anew("table.py", None, b"TABLE = [" + table + b"]")
    assert time.process_time() - began < 3
