"""Imports of tests that follow a function to another module."""

from __future__ import annotations

import pytest

from agentrunner.verification.inputs.wanted_moves import parts_moved_in
from agentrunner.verification.moves import parts_follow

BEFORE = b"from a.old import f, g\n\n\ndef test_f():\n    assert f(1) == g(1)\n"
AFTER = BEFORE.replace(b"from a.old import f, g", b"from a.new import f\nfrom a.old import g")
OLD = b"def f(x):\n    return x\n\n\ndef g(x):\n    return x\n"
PARTS = [("f", "a/old.py", "a/new.py")]


@pytest.mark.parametrize(
    ("after", "old", "new", "expected"),
    [
        (AFTER, OLD[25:], OLD, True),
        (AFTER, OLD, OLD, False),
        (AFTER, OLD[25:], b"", False),
        (AFTER.replace(b"a.new", b"a.fake"), OLD[25:], OLD, False),
        (AFTER.replace(b"== g(1)", b""), OLD[25:], OLD, False),
    ],
    ids=["moved", "copied", "not there", "from elsewhere", "and another assertion"],
)
def test_imports_follow_a_part(after: bytes, old: bytes, new: bytes, expected: bool) -> None:
    changed = {"a/old.py": (OLD, old), "a/new.py": (b"", new)}
    assert parts_follow(BEFORE, after, PARTS, changed) == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`f` moves from `a/old.py` to a new module `a/new.py`.", PARTS),
        ("Move `f` from `a/old.py` into `a/new.py`.", PARTS),
        ("Do not move `f` from `a/old.py` to `a/new.py`.", []),
    ],
)
def test_what_moves_is_read(text: str, found: list[tuple[str, str, str]]) -> None:
    assert parts_moved_in(text) == found
