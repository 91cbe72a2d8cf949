"""What a test asks with, told where it fails, and refused as soon as it is asked again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agentrunner.verification.syntax.asked_again import ask_again, helper, telling, values_in
from agentrunner.verification.syntax.asked_values import asked_calls
from agentrunner.verification.syntax.edits import applied
from tests.unit.verification.syntax.named import named

HEAD = (
    "import re\nimport unittest\n\nimport shop\nfrom shop import rate, read\n\nHERE = 'a.csv'\n\n\n"
)


def asked(body: str, head: str = HEAD) -> list[tuple[str, tuple[str, ...]]]:
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    source = f"{head}def test_it(rows, self=None):\n{lines}\n".encode()
    found = asked_calls(named(source, "python", "test_it"))
    return [((one.where.text or b"").decode(), one.values) for one in found]


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("assert shop.gross(5) == 5 * shop.RATE", ("5 * shop.RATE",)),
        ("want = shop.RATE\nassert rate(5) == want", ("want",)),
        ("for name in shop.NAMES:\n    assert rate(name)", ("name",)),
        ("for name in sorted(shop.NAMES):\n    self.assertTrue(rate(name))", ("name",)),
        ("for a, b in read(HERE):\n    assert rate(a) == b", ("a", "b")),
        (
            "for row in rows:\n    assert rate(row['a']) == row['b']",
            ("row", "row['a']", "row['b']"),
        ),
        ("assert all(rate(name) for name in shop.NAMES)", ("name",)),
        ("for row in rows:\n    check(rate(row.a))", ("row", "row.a")),
        ("for got, want in zip(shop.all(3), [1, 2]):\n    assert got == want", ("want",)),
        ("assert all(got == want for got, want in zip(rate(3), [1, 2]))", ("want",)),
        ("pairs = zip(rate(3), [1])\nfor got, want in pairs:\n    assert got == want", ("want",)),
        ("assert all([want == got for got, want in zip(rate(3), (1, 2))])", ("want",)),
        (
            "for i, (got, want) in enumerate(zip(rate(3), [1])):\n    self.assertEqual(got, want)",
            ("want",),
        ),
        (
            "want = [1, 2]\nfor i, got in enumerate(rate(3)):\n    assert got == want[i]",
            ("want[i]",),
        ),
        (
            "want = {'a': 1}\nfor name, got in rate(3).items():\n    assert want[name] == got",
            ("want[name]",),
        ),
        (
            "got, want = rate(3), [1, 2]\nfor i in range(len(got)):\n    assert got[i] == want[i]",
            ("want[i]",),
        ),
        (
            "got, want, i = list(rate(3)), [1, 2], 0\n"
            "while i < len(got):\n    assert got[i] == want[i]\n    i += 1",
            ("want[i]",),
        ),
        (
            "want = [1, 2]\nfor i, got in enumerate(rate(3)):\n    with self.subTest(i=i):\n"
            "        self.assertEqual(got, want[i])",
            ("want[i]",),
        ),
    ],
)
def test_what_comes_from_elsewhere_is_told(body: str, values: tuple[str, ...]) -> None:
    found = asked(body)
    assert [set(one[1]) >= set(values) for one in found] == [True]


def test_all_of_the_answers_is_asked_of_one_at_least() -> None:
    body = "assert all(got > 0 for got in rate(3))"
    assert asked(body) == [("got > 0", ())]
    assert asked("assert all(one > 0 for one in [1, 2])") == []


@pytest.mark.parametrize(
    ("body", "asking"),
    [
        (
            "want = [1, 2]\nbad = [got for i, got in enumerate(rate(3)) if got != want[i]]\n"
            "assert not bad",
            ("got != want[i]", ("want[i]",)),
        ),
        (
            "for got, want in zip(rate(3), [1, 2]):\n    if got != want:\n        self.fail('no')",
            ("got != want", ("want",)),
        ),
    ],
)
def test_a_difference_is_told_wherever_it_is_looked_for(
    body: str, asking: tuple[str, tuple[str, ...]]
) -> None:
    assert asking in asked(body)


@pytest.mark.parametrize(
    "body",
    [
        "assert rate(5) == 15",
        "for a, b in [(1, 2), (3, 4)]:\n    assert rate(a) == b",
        "for name in shop.NAMES:\n    assert name == name.lower()",
        "for name in shop.NAMES:\n    assert re.match('[a-z]+', name)",
        "assert shop.RATE == 3",
        "assert rate(5) == rate(6)",
        "got = shop.cart()\nassert got.total == rate(5)",
        "for row in rows:\n    assert await rate(row)",
        "for got in rate(3):\n    assert got == 4",
        "for got in rate(3):\n    assert got == got.upper()",
        "for name, got in rate(3).items():\n    assert name == 'a'",
        "for got, want in zip(rate(3), rate(4)):\n    assert got == want",
        "i, want = 0, [1, 2]\nwhile i < 2:\n    assert rate(i) == want[i]\n    i += 1",
    ],
)
def test_what_stands_in_the_test_or_is_its_subject_is_left_alone(body: str) -> None:
    assert asked(body) == []


def test_a_statement_tells_its_values_and_fails_where_it_asks_with_them_again(
    tmp_path: Path,
) -> None:
    source = (
        b"import shop\n\n\ndef test_it():\n    for name in shop.NAMES:\n"
        b"        assert shop.cost(name) == 3\n"
    )
    (tmp_path / "shop.py").write_text(
        "NAMES = ['a', 'b']\ndef cost(name):\n    return 3 * (name == 'a')\n"
    )
    [one] = asked_calls(named(source, "python", "test_it"))

    def run(edit: object, shop: str = "") -> str:
        text = applied(source, [edit]).decode() + helper("python", "f")  # type: ignore[list-item]
        (tmp_path / "test_shop.py").write_text(f"{text}\ntest_it()\n")
        (tmp_path / "shop.py").write_text(shop or (tmp_path / "shop.py").read_text())
        ran = subprocess.run(
            [sys.executable, "-B", "test_shop.py"], cwd=tmp_path, capture_output=True, text=True
        )
        return ran.stderr

    assert values_in(run(telling(one, "python", 7, "f"))) == {7: ("b",)}
    again = ask_again(one, "python", ["b"], "f")
    assert "asked again" in run(again, "NAMES = ('b', 'a')\ndef cost(name):\n    return 3\n")
    assert run(again, "NAMES = ['a']\ndef cost(name):\n    return 3\n") == ""


def test_a_loop_of_javascript_is_read_too() -> None:
    source = (
        b"const shop = require('./shop.js');\n"
        b"test('costs', () => shop.ROWS.forEach(([a, b]) => { expect(shop.cost(a)).toBe(b); }));\n"
        b"test('rate', () => assert.equal(shop.cost(1), shop.RATE));\n"
        b"test('stated', () => { for (const a of [1, 2]) assert.equal(shop.cost(a), 3); });\n"
        b"const want = [1, 2];\n"
        b"test('each', () => shop.all().forEach((a, i) => { assert.equal(a, want[i]); }));\n"
        b"test('every', () => assert.ok(shop.all().every((a, i) => a === want[i])));\n"
        b"test('keys', () => { for (const [k, a] of Object.entries(shop.all()))"
        b" assert.equal(a, want[k]); });\n"
        b"test('index', () => { const got = shop.all();"
        b" for (let i = 0; i < got.length; i++) assert.equal(got[i], want[i]); });\n"
        b"test('names', () => { const got = shop.all();"
        b" for (const i in got) assert.equal(got[i], want[i]); });\n"
        b"test('low', () => shop.all().forEach((a) => assert.equal(a, a.low)));\n"
    )
    found = {}
    for name in ("costs", "rate", "stated", "each", "every", "keys", "index", "names", "low"):
        found[name] = [one.values for one in asked_calls(named(source, "javascript", name))]
    assert found["rate"] == [("shop.RATE",)]
    assert [set(one) for one in found["costs"]] == [{"a", "b"}]
    assert found["stated"] == found["low"] == []
    assert found["each"] == found["every"] == [("want[i]",)]
    assert found["keys"] == [("want[k]",)]
    assert found["index"] == found["names"] == [("want[i]",)]


def test_an_answer_that_is_not_given_any_more_is_not_asked_about(tmp_path: Path) -> None:
    source = (
        b"import shop\n\n\ndef test_it():\n    for got, want in zip(shop.all(), [1, 2, 3]):\n"
        b"        assert got == want\n"
    )
    [one] = asked_calls(named(source, "python", "test_it"))

    def run(edit: object, answers: str) -> str:
        text = applied(source, [edit]).decode() + helper("python", "f")  # type: ignore[list-item]
        (tmp_path / "test_shop.py").write_text(f"{text}\ntest_it()\n")
        (tmp_path / "shop.py").write_text(f"def all():\n    return {answers}\n")
        ran = subprocess.run(
            [sys.executable, "-B", "test_shop.py"], cwd=tmp_path, capture_output=True, text=True
        )
        return ran.stderr

    assert values_in(run(telling(one, "python", 7, "f"), "[1, 1, 1]")) == {7: (2,)}
    again = ask_again(one, "python", [2], "f")
    assert "asked again" in run(again, "[1, 2, 3]")
    assert run(again, "[1]") == ""


@pytest.mark.parametrize("module", [".shop", ".", "..a.shop"])
def test_relative_imports_are_the_project_s(module: str) -> None:
    head = f"from {module} import RATE, rate\n\n"
    assert asked("assert rate(5) == RATE", head) == [("rate(5) == RATE", ("RATE",))]
