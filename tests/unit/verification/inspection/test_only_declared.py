"""An error that the requirements name has to be raised or returned, not only to be there."""

from __future__ import annotations

import pytest

from agentrunner.verification.inspection.missing_failures import only_declared
from tests.kit.text_trees import both_trees

PYTHON = "class UnknownCity(Exception):\n    pass\n\n\n"
GO = 'package stat\n\nvar (\n\tErrEmpty = errors.New("empty")\n)\n\n'
RUST = "pub enum CalcError {\n    Underflow,\n    Leftover,\n}\n\n"
SHOWN = RUST + 'fn show(e: CalcError) -> &str {\n    match e { _ => "" }\n}\n'


def told(path: str, source: str, asked: str, before: str = "") -> str:
    old = {path: before} if before else {}
    return only_declared(both_trees(old, {path: f"{source}\n"}), asked)


@pytest.mark.parametrize(
    ("path", "source", "asked"),
    [
        ("a.py", PYTHON + "def f():\n    return None\n", "A 404 raises `UnknownCity`."),
        ("a.py", PYTHON + "# raise UnknownCity\n", "A 404 raises `UnknownCity`."),
        (
            "a.js",
            "class BadCode extends Error {}\nmodule.exports = { BadCode };\n",
            "An unknown code throws `BadCode`.",
        ),
        ("a.go", GO + "func F() error { return nil }\n", "Nothing is an error (`ErrEmpty`)."),
        ("a.rs", SHOWN, "Values that are left give `CalcError::Leftover`."),
    ],
    ids=["python", "in a comment", "javascript", "go", "a member in rust"],
)
def test_an_error_that_nothing_raises_is_told(path: str, source: str, asked: str) -> None:
    assert "nothing in the work raises or returns it" in told(path, source, asked)


@pytest.mark.parametrize(
    ("path", "source", "asked"),
    [
        ("a.py", PYTHON + "def f():\n    raise UnknownCity\n", "A 404 raises `UnknownCity`."),
        ("a.py", PYTHON + "raise (\n    UnknownCity('x')\n)\n", "A 404 raises `UnknownCity`."),
        ("a.py", PYTHON + "class Lost(UnknownCity):\n    pass\n", "`UnknownCity` is the base."),
        (
            "a.py",
            PYTHON + "try:\n    hook()\nexcept UnknownCity:\n    pass\n",
            "A hook that raises `UnknownCity` stops.",
        ),
        ("a.js", "export const f = () => { throw new BadCode(); };\n", "It throws `BadCode`."),
        ("a.go", GO + "func F() error { return ErrEmpty }\n", "Nothing gives `ErrEmpty`."),
        ("a.rs", RUST + "fn f() { Err(CalcError::Leftover) }\n", "Else `CalcError::Leftover`."),
        ("a.py", "class Basket:\n    pass\n", "Write a class `Basket`."),
    ],
    ids=["raised", "over lines", "a base", "caught", "exported", "go", "rust", "no error"],
)
def test_one_that_is_used_is_not(path: str, source: str, asked: str) -> None:
    assert told(path, source, asked) == ""


def test_one_that_was_there_is_not() -> None:
    assert told("a.py", PYTHON, "Mention `UnknownCity`.", before=PYTHON) == ""
