"""Assertions that fail once more as they failed before."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.replayed_assertions import (
    Equality,
    ending,
    equalities,
    helper,
    sides_in,
    telling_sides,
    with_sides,
)
from tests.unit.verification.syntax.named import named

PYTHON = (
    "import pytest\nfrom unittest.mock import patch\n\nfrom shop import kept, logged, total\n\n\n"
)
SCRIPT = "const test = require('node:test');\nconst { kept, total } = require('./shop.js');\n"


def found(source: str, language: str, name: str) -> list[Equality]:
    return equalities(named(source.encode(), language, name))


@pytest.mark.parametrize(
    ("text", "sides"),
    [
        ("@logged\ndef test_a():\n    assert total() == 3\n", ["total()", "3"]),
        ("def test_a():\n    with kept():\n        assert 3 == total()\n", ["3", "total()"]),
        (
            "def test_a():\n    def ask():\n        assert total() == 3\n    kept(ask)\n",
            ["total()", "3"],
        ),
        (
            "@logged\ndef test_a(self):\n    self.assertEqual(total(1), [3, 4])\n",
            ["total(1)", "[3, 4]"],
        ),
    ],
)  # fmt: skip
def test_what_code_of_the_project_stands_around_is_found(text: str, sides: list[str]) -> None:
    [one] = found(PYTHON + text, "python", "test_a")
    assert [(side.text or b"").decode() for side in one.sides] == sides


@pytest.mark.parametrize(
    "text",
    [
        "def test_a():\n    assert total() == 3\n",
        "@pytest.mark.slow\n@patch('shop.kept')\ndef test_a(kept):\n    assert total() == 3\n",
        "def test_a(self):\n    with self.subTest(1):\n        assert total() == 3\n",
        "def test_a():\n    kept(lambda: 1)\n    assert total() == 3\n",
        "@logged\ndef test_a():\n    assert 2 == 3\n",
        "@logged\nasync def test_a():\n    assert await total() == 3\n",
        "@logged\ndef test_a():\n    assert total()\n",
    ],
)
def test_what_nothing_can_catch_is_left_alone(text: str) -> None:
    assert found(PYTHON + text, "python", "test_a") == []


def test_callbacks_of_javascript_are_found_and_the_tests_own_are_none() -> None:
    source = (
        f"{SCRIPT}test('a', () => kept((c) => {{ assert.strictEqual(c.total(), 3); }}));\n"
        "test('b', kept(() => { expect(total()).toBe(3); }));\n"
        "describe('d', () => { test('c', () => { assert.strictEqual(total(), 3); }); });\n"
    )

    def texts(path: str) -> list[list[str]]:
        all_found = found(source, "javascript", path)
        return [[(side.text or b"").decode() for side in one.sides] for one in all_found]

    assert texts("a") == [["c.total()", "3"]]
    assert texts("b") == [["total()", "3"]]
    assert texts("d c") == []


CATCHES = """
def logged(function):
    def call():
        try:
            function()
        except AssertionError as error:
            if "2" not in str(error):
                raise
    return call


def total():
    return {total}
"""


def test_an_assertion_tells_both_values_and_fails_with_them_again(tmp_path: Path) -> None:
    source = (
        "from shop import logged, total\n\n\n@logged\ndef test_a():\n"
        "    got = total()\n    assert got == [1, 'two']\n"
    )
    [one] = found(source, "python", "test_a")

    def run(edits: Sequence[Edit], shop: str) -> tuple[int, str]:
        text = applied(source.encode(), edits).decode() + helper("python", "f")
        (tmp_path / "test_shop.py").write_text(f"{text}\n\ntest_a()\n")
        (tmp_path / "shop.py").write_text(shop)
        command = [sys.executable, "-B", "test_shop.py"]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        return ran.returncode, ran.stderr

    plain = CATCHES.replace('"2" not in str(error)', "True")
    tells = [telling_sides(one, "python", 7, "f")]
    code, told = run(tells, plain.format(total="[1, 3]"))
    assert (code, sides_in(told)) == (1, {7: ("[1, 3]", "[1, 'two']")})
    again = with_sides(one, sides_in(told)[7])
    assert run(again, plain.format(total="[1, 'two']"))[0] == 1
    assert run(tells, plain.format(total="[1, 'two']"))[0] == 0
    assert sides_in(run(tells, plain.format(total="[print]"))[1]) == {}
    assert run([ending(one, "f")], plain.format(total="2"))[0] == 70


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_an_assertion_of_javascript_tells_both_values_too(tmp_path: Path) -> None:
    source = (
        "const assert = require('node:assert');\nconst test = (name, call) => call();\n"
        "const kept = (call) => call();\n"
        "test('a', () => kept(() => { assert.deepStrictEqual(total(), [1, 'two']); }));\n"
    )
    [one] = found(source, "javascript", "a")

    def run(edits: Sequence[Edit], total: str) -> tuple[int, str]:
        text = applied(source.encode(), edits).decode() + helper("javascript", "f")
        (tmp_path / "a.js").write_text(f"{text}\nfunction total() {{ return {total}; }}\n")
        command = ["node", "a.js"]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        return ran.returncode, ran.stderr

    code, told = run([telling_sides(one, "javascript", 3, "f")], "[1, 3]")
    assert (code, sides_in(told)) == (1, {3: ("[1,3]", '[1,"two"]')})
    assert run(with_sides(one, sides_in(told)[3]), "[1, 'two']")[0] == 1
    assert run([telling_sides(one, "javascript", 3, "f")], "[1, 'two']")[0] == 0
    assert sides_in(run([telling_sides(one, "javascript", 3, "f")], "[new Map()]")[1]) == {}
    assert run([ending(one, "f")], "2")[0] == -9


def test_relative_imports_are_the_project_s() -> None:
    source = (
        "from .shop import logged, total\n\n\n@logged\ndef test_a():\n    assert total() == 3\n"
    )
    assert len(found(source, "python", "test_a")) == 1
