"""Imports of tests that follow a function to another module."""

from __future__ import annotations

import pytest

from agentrunner.verification.inputs.wanted_moves import wants_part_moved
from agentrunner.verification.test_changes.moved_imports import parts_follow

BEFORE = b"from a.old import f, g\n\n\ndef test_f():\n    assert f(1) == g(1)\n"
AFTER = BEFORE.replace(b"from a.old import f, g", b"from a.new import f\nfrom a.old import g")
OLD = b"def f(x):\n    return x\n\n\ndef g(x):\n    return x\n"
ASKED = "Move `f` and `h` from `a/old.py` to `a/new.py`."


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
    assert parts_follow("tests/test_f.py", BEFORE, after, ASKED, changed) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (ASKED, True),
        ("Split `a.old`: `f` goes to `a.new`.", True),
        ("`f` goes to a module of its own.", False),
        ("Something goes to `a/new.py`.", False),
    ],
)
def test_the_name_and_its_new_place_are_named(asked: str, expected: bool) -> None:
    changed = {"a/old.py": (OLD, OLD[25:]), "a/new.py": (b"", OLD)}
    assert parts_follow("tests/test_f.py", BEFORE, AFTER, asked, changed) == expected


def test_a_test_of_javascript_imports_from_where_a_function_stands_now() -> None:
    before = b"import { all, f } from '../src/index.js';\ntest('f', () => { all(f(1)); });\n"
    after = before.replace(
        b"{ all, f } from '../src/index.js';",
        b"{ all } from '../src/index.js';\nimport { f } from '../src/util.js';",
    )
    made = b"export function f(x) { return x; }\n"
    rest = b"export function all(x) { return x; }\n"
    changed = {"src/index.js": (made + rest, rest), "src/util.js": (b"", made)}
    asked = "Move the helper `f` from `src/index.js` to `src/util.js`."
    assert parts_follow("test/f.test.js", before, after, asked, changed)
    kept = changed | {"src/index.js": (made + rest, made + rest)}
    assert not parts_follow("test/f.test.js", before, after, asked, kept)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("`f` moves from `a/old.py` to a new module `a/new.py`.", True),
        ("Extract the helper `f` into `a/new.py`.", True),
        ("`f` を `a/new.py` に移動する。", True),
        ("Do not move `f` from `a/old.py` to `a/new.py`.", False),
        ("`f` を `a/new.py` に移動しないこと。", False),
        ("`f` rounds up.", False),
        ("Move `g` to `a/new.py`; `f` stays in `a/old.py`.", False),
        ("`f` moves to `a/new.py` (tests import it there; nothing stays in `a/old.py`).", True),
        ("Move `f` to `b/new.py`.", False),
    ],
)
def test_what_moves_is_read(text: str, wanted: bool) -> None:
    assert wants_part_moved(text, "f", "a/new") == wanted
