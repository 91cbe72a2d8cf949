"""What a changed file of tests has besides can be taken away, to compare the rest."""

from __future__ import annotations

import pytest

from agentrunner.verification.test_changes.removed_tests import bare_tests, without_new_tests

PYTHON = "from shop import total\n\n\ndef test_total():\n    assert total([2]) == 2\n"
MORE = """import pytest

from shop import total


def test_total():
    assert total([2]) == 2


# Nothing is no total.
@pytest.mark.slow
def test_nothing():
    with pytest.raises(ValueError):
        total([])
"""
GO = 'package a\n\nimport "testing"\n\nfunc TestFetch(t *testing.T) {\n\tFetch()\n}\n'
GO_MORE = """package a

import (
\t"errors"
\t"testing"
)

func TestGet(t *testing.T) {
\tGet()
}

func TestGetNothing(t *testing.T) {
\tif !errors.Is(Get(), Err) {
\t\tt.Error()
\t}
}
"""
SCRIPT = (
    "import { test } from 'node:test';\nimport { a } from './a.js';\n\ntest('a', () => { a(); });\n"
)


def test_new_tests_go_with_what_they_import() -> None:
    rest = without_new_tests(PYTHON.encode(), MORE.encode(), "python").decode()
    assert rest.split() == PYTHON.split()


def test_a_file_without_new_tests_stays() -> None:
    changed = PYTHON.replace("== 2", "== 3").encode()
    assert without_new_tests(PYTHON.encode(), changed, "python") == changed


def test_a_renamed_test_is_not_new() -> None:
    rest = without_new_tests(GO.encode(), GO_MORE.encode(), "go", {"Fetch": "Get"}).decode()
    assert "func TestGet(" in rest
    assert "TestGetNothing" not in rest


def test_the_rest_is_compared_without_imports() -> None:
    bare = bare_tests(GO.encode(), GO_MORE.encode(), "go", {"Fetch": "Get"})
    assert bare is not None
    assert bare[0].decode().replace("Fetch", "Get").split() == bare[1].decode().split()


@pytest.mark.parametrize(
    "after",
    [
        SCRIPT.replace("'./a.js'", "'./fake.js'"),
        SCRIPT.replace("import { a } from './a.js';", "import { b as a } from './a.js';"),
    ],
    ids=["another module", "another name"],
)
def test_what_comes_from_elsewhere_is_no_rest(after: str) -> None:
    assert bare_tests(SCRIPT.encode(), after.encode(), "javascript", {}) is None


def test_a_name_of_the_file_s_own_may_not_be_imported_instead() -> None:
    own = "def total(x):\n    return 2\n\n\ndef test_total():\n    assert total([2]) == 2\n"
    assert bare_tests(own.encode(), PYTHON.encode(), "python", {}) is None
