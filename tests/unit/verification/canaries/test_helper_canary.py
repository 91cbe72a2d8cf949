"""Functions of test code with which claimed tests ask."""

from __future__ import annotations

import pytest

from agentrunner.verification.canaries.helper_canary import _called, _defining
from agentrunner.verification.syntax.languages import language_of, parse


@pytest.mark.parametrize(
    ("path", "test", "source", "helper", "text", "found"),
    [
        (
            "spec/a.spec.js", "orders", 'it("orders", () => near(1));',
            "spec/support.js", "global.near = (a) => {};", True,
        ),
        (
            "spec/a.spec.js", "orders", 'it("orders", () => near(1));',
            "spec/support.js", "function near(a) {}", False,
        ),
        (
            "spec/a.spec.js", "orders",
            'const s = require("./support");\nconst { near } = s;\nit("orders", () => near(1));',
            "spec/support.js", "exports.near = function (a) {};", True,
        ),
        (
            "spec/a.spec.js", "orders",
            'const s = require("./support");\nit("orders", () => { s.near(1); });',
            "spec/support.js", "exports.near = function (a) {};", True,
        ),
        (
            "spec/a.spec.js", "orders",
            'const { near } = require("../lib/support");\nit("orders", () => { near(1); });',
            "spec/support.js", "exports.near = function (a) {};", False,
        ),
        (
            "spec/a.spec.js", "orders",
            'const { near } = require("./support");\nit("orders", () => { if (x) near(1); });',
            "spec/support.js", "exports.near = function (a) {};", False,
        ),
        (
            "tests/test_a.py", "test_a",
            "from tests.support import near\ndef test_a():\n    near(1)\n",
            "tests/support.py", "def near(a):\n    assert a\n", True,
        ),
        (
            "tests/test_a.py", "test_a",
            "from tests.support import near\ndef test_a():\n    near(1)\n    assert f() == 2\n",
            "tests/support.py", "def near(a):\n    assert a\n", False,
        ),
        (
            "a_test.go", "TestA",
            'package a\nimport "testing"\nfunc TestA(t *testing.T) { near(t, 1) }\n',
            "b_test.go", "package a\nfunc near(t T, a int) { t.Fatal() }\n", True,
        ),
        (
            "a_test.go", "TestA",
            'package a\nimport "testing"\nfunc TestA(t *testing.T) { near(t, 1) }\n',
            "b_test.go", "package a_test\nfunc near(t T, a int) { t.Fatal() }\n", False,
        ),
    ],
)  # fmt: skip
def test_what_a_test_asks_with(
    path: str, test: str, source: str, helper: str, text: str, found: bool
) -> None:
    language = language_of(path) or ""
    parsed, other = parse(source.encode(), language), parse(text.encode(), language)
    assert parsed is not None
    assert other is not None
    files = {path: parsed, helper: other}
    defined = [
        one for name in _called(parsed, test) for one in _defining(name, path, parsed, files)
    ]
    assert defined == ([(helper, "near")] if found else [])
