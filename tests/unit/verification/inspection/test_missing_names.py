"""What the requirements name with its parameters, and what no file has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.inspection.missing_names import missing_names
from tests.kit.text_trees import TextTrees

ASKED = (
    "Add `percent(n)` and `--dry-run`; see `old(x)`, and never `eval(text)`."
    " Compare as `math.isclose(a, b)` does."
)


def _missing(
    old: dict[str, str],
    new: dict[str, str],
    asked: str = ASKED,
    checked: str = "",
    criteria: Sequence[str] = (),
) -> str:
    trees = cast(Snapshots, TextTrees(old, new))
    return missing_names(trees, "old", "new", asked, checked, criteria)


@pytest.mark.parametrize(
    ("file", "new", "missing"),
    [
        ("a.py", "def percent(n): return n\nadd('--dry-run')", ""),
        ("a.js", "exports.percent = (n) => n; let o = { dryRun: true }", ""),
        ("a.ts", "const percent: F = f; struct Args { dry_run: bool }", ""),
        ("a.pl", 'sub percent { } flag.Bool("dry-run")', ""),
        ("a.php", "<?php $percent = fn ($n) => $n; '--dry-run'", "percent(n)"),
        ("a.rb", "def percent n\nend\n--dry-run", ""),
        ("a.py", "def cut(net, percent): return net - percent\n--dry-run", "percent(n)"),
        ("a.py", "def percents(n): return n\n--dry-run", "percent(n)"),
        ("a.py", "def percent(n): return n\nimport dry_run", "--dry-run"),
    ],
)
def test_what_is_named_is_somewhere(file: str, new: str, missing: str) -> None:
    said = _missing({"b": "old"}, {file: new})
    assert said == (
        f"`{missing}`, which the requirements name, is nowhere in the tree" * bool(missing)
    )


def test_what_stood_before_may_be_gone() -> None:
    assert _missing({"a": "percent old --dry-run"}, {"a": ""}) == ""
    assert _missing({"a.py": "percent(3) old(1) --dry-run"}, {"a.py": ""}) == ""


def test_a_parameter_of_that_name_is_no_function_in_the_old_tree_either() -> None:
    """A run with a small model: `feet(metres)` was wanted beside `def metres(feet)`."""
    old = "def metres(feet):\n    return feet * 0.3\n"
    missing = _missing({"a.py": old}, {"a.py": f"{old}48"}, "Add a function `feet(metres)`.")
    assert "`feet(metres)`" in missing


@pytest.mark.parametrize(
    ("asked", "new", "missing"),
    [
        ('The svg gets `role="img"` and an `aria-label` with the text.', "role=img", "aria-label"),
        ('The svg gets `role="img"` and an `aria-label` with the text.', "role, ariaLabel", ""),
        ("Answers carry the `X-Request-Id` header.", "send()", "X-Request-Id"),
        ("Answers carry the `X-Request-Id` header.", "env['HTTP_X_REQUEST_ID']", ""),
        ("The report has a column `per_cent`.", "row(total)", "per_cent"),
        ("結果に `per_cent` 列を追加する。", "row(total)", "per_cent"),
        ("The `X-Old` header is removed.", "send()", ""),
        ("Keep headers such as `X-Any` header.", "send()", ""),
        ("If a client sends the `X-Debug` header, log it.", "send()", ""),
        ('`slug("A b")` gives `a-b`.', "send()", ""),
        ("It returns a `Promise`.", "async", ""),
    ],
)
def test_what_is_called_a_thing_is_somewhere(asked: str, new: str, missing: str) -> None:
    said = _missing({"b": "old"}, {"a.js": new}, asked)
    assert said == (
        f"`{missing}`, which the requirements name, is nowhere in the tree" * bool(missing)
    )


@pytest.mark.parametrize(
    ("criterion", "checked", "missing"),
    [
        ("`gross` of 100 is 119", "", "gross"),
        ("The function `gross()` adds the tax.", "", "gross"),
        ("`gross` は 119 を返す。", "", "gross"),
        ("`net` of 119 is 100", "", ""),
        ("It returns a `Promise`.", "", ""),
        ("`None` is refused.", "", ""),
        ("`gross` is removed.", "", ""),
        ("`gross` of 100 is 119", "python -c 'from shop import gross'", ""),
    ],
)
def test_what_a_criterion_is_about_is_somewhere(criterion: str, checked: str, missing: str) -> None:
    said = _missing({"b": "old"}, {"a.py": "def brutto(net): return net"}, "", checked, [criterion])
    assert said == (
        f"`{missing}`, which the requirements name, is nowhere in the tree" * bool(missing)
    )


def test_a_page_of_that_name_is_what_a_criterion_is_about() -> None:
    criteria = ["`CONTRIBUTING` says how to run the tests."]
    assert _missing({"b": "old"}, {"CONTRIBUTING.md": "make test"}, "", "", criteria) == ""
    assert "CONTRIBUTING" in _missing({"b": "old"}, {"README.md": "x"}, "", "", criteria)


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        ("`size` defaults to 50.", "50"),
        ("It is cut at 72 characters.", "72"),
        ("It keeps at most 120 entries.", "120"),
        ('For no rows it says "nothing here yet".', "nothing here yet"),
        ("`Stack` gets `push`, `pop` and `peek`.", "peek"),
        ("The time-out defaults to 30 seconds, the rate to 50%.", ""),
        ('It shows "Hello Bob" and prints "3 rows left".', ""),
        ('Today it says "nothing here yet", which is wrong.', ""),
    ],
)
def test_values_and_texts_that_are_stated(asked: str, missing: str) -> None:
    new = "class A:\n    def push(self): ...\n    def pop(self): ...\n"
    found = _missing({}, {"a.py": new}, asked)
    assert missing in found if missing else not found
    done = f"{new}    def peek(self): ...\nB = 50, 72, 120, 'nothing here yet'\n"
    assert _missing({}, {"a.py": done}, asked) == ""
