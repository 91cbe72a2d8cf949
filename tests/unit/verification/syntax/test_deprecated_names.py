"""What code itself says to be deprecated."""

import pytest

from agentrunner.verification.syntax.deprecated_names import deprecated_names

PYTHON = """
def sum_lines(lines):
    \"\"\"Deprecated: use total.\"\"\"
    return 2


def total(lines, fmt=None):
    \"\"\"Adds up.

    What fmt gives is deprecated.
    \"\"\"
    if fmt:
        warn("fmt is deprecated")


def old():
    warn("old() is deprecated")


@deprecated("use total")
def older():
    pass


class Cart:
    def add(self):
        \"\"\"Deprecated.\"\"\"

    def put(self):
        pass
"""
SCRIPT = """/** @deprecated use total */
export function sum() { return 1; }
export function total() { return 1; }
// deprecated
const add = () => 3;
"""
GO = """package cart

// Sum adds up.
//
// Deprecated: use Total.
func Sum() int { return 1 }

func Total() int { return 1 }
"""


@pytest.mark.parametrize(
    ("source", "language", "names"),
    [
        (PYTHON, "python", {"sum_lines", "old", "older", "add"}),
        (SCRIPT, "javascript", {"sum", "add"}),
        (GO, "go", {"Sum"}),
        ("#[deprecated]\npub fn sum() {}\npub fn total() {}\n", "rust", {"sum"}),
        (
            "class A { @Deprecated int sum() { return 1; } int total() { return 2; } }",
            "java",
            {"sum"},
        ),
    ],
)
def test_deprecated_names(source: str, language: str, names: set[str]) -> None:
    assert deprecated_names(source.encode(), language) == names
