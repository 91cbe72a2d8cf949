"""Types that functions had and have no more are put back, and nothing else is."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.edits import applied
from agentrunner.verification.syntax.silenced_warnings import lost_types

TYPED = "class A:\n    def f(self, x: str, y: int = 3, *, z: list[int]) -> int:\n        return 1\n"


def put_back(path: str, before: str, after: str) -> str:
    found = lost_types(path, before.encode(), after.encode())
    return applied(after.encode(), [one.edit for one in found]).decode()


@pytest.mark.parametrize(
    "head",
    ["f(self, x, y=3, *, z):", "f(self, x: Any, y: typing.Any=3, *, z) -> Any:"],
    ids=["gone", "anything"],
)
def test_types_of_python_are_put_back(head: str) -> None:
    made = put_back("a.py", TYPED, f"class A:\n    def {head}\n        return 1\n")
    assert made == TYPED.replace("y: int = 3", "y: int=3")


@pytest.mark.parametrize("head", ["f(x, y?, z = 3)", "f(x: any, y?: any, z: any = 3): any"])
def test_types_of_typescript_are_put_back(head: str) -> None:
    before = "export function f(x: string, y?: number, z: number = 3): number { return 1 }\n"
    assert put_back("a.ts", before, f"export function {head} {{ return 1 }}\n") == before


@pytest.mark.parametrize(
    "after",
    ["def g(x):\n    pass\n", "def f(other) -> str:\n    pass\n", TYPED],
    ids=["another function", "another parameter and type", "as it was"],
)
def test_other_functions_and_types_stay(after: str) -> None:
    assert put_back("a.py", "def f(x: int) -> int:\n    pass\n" + TYPED, after) == after
