"""What the requirements want changed and the work left as it was."""

from __future__ import annotations

import pytest

from agentrunner.verification.inspection.left_as_it_was import left_as_it_was
from tests.kit.text_trees import both_trees


def _left(old: dict[str, str], new: dict[str, str], asked: str) -> str:
    return left_as_it_was(both_trees(old, new), asked)


OLD = {"mathx.py": "x = 1\n", "README.md": "# mathx\n", "CHANGELOG.md": "# Changes\n"}


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ("Add `clamp(x)` to mathx.py. Also document it in README.md.", "README.md"),
        ("Add clamp, and add a line to CHANGELOG.md.", "CHANGELOG.md"),
        ("Add clamp. Update the changelog and the README.", "CHANGELOG.md"),
        ("`clamp` を追加し、README.md にも追記する。", "README.md"),
        ("Add clamp. If it is public, document it in README.md.", ""),
        ("(optional) Document it in README.md", ""),
        ("The README.md says nothing of clamp.", ""),
        ("Document it in NOTES.md.", ""),
        ("Write the report to out.txt.", ""),
    ],
)
def test_a_file_that_has_to_change(asked: str, left: str) -> None:
    found = _left(OLD, OLD | {"mathx.py": "x = 2\n"}, asked)
    assert found.startswith(f"{left} is as it was") if left else not found
    longer = {path: f"{text}\n" for path, text in OLD.items()}
    assert found == _left(OLD, longer | {"mathx.py": "x = 2\n"}, asked)
    assert not _left(OLD, {path: f"{text}more\n" for path, text in OLD.items()}, asked)


@pytest.mark.parametrize(
    ("asked", "is_left"),
    [
        ("Add clamp. Document it in README.md and CHANGELOG.md.", True),
        (
            "Describe clamp in `README.md` (a part) and in the CHANGELOG.md (section 1.2.0).",
            True,
        ),
        ("Update README.md, CHANGELOG.md and mathx.py.", True),
        ("Document it in README.md, and CHANGELOG.md gets a line by itself.", False),
        ("Update `README.md` and `CHANGELOG.md` as needed.", False),
        ("Document it in README.md, CHANGELOG.md is made by a tool.", False),
        ("Document it in README.md. See CHANGELOG.md.", False),
    ],
)
def test_each_of_several_files_has_to_change(asked: str, is_left: bool) -> None:
    found = _left(OLD, OLD | {"mathx.py": "x = 2\n", "README.md": "# mathx\n\nclamp\n"}, asked)
    assert found.startswith("CHANGELOG.md is as it was") is is_left


@pytest.mark.parametrize(
    ("now", "left"),
    [
        ("import optparse as argparse\n", True),
        ("from optparse import OptionParser\n", True),
        ("import argparse  # not optparse\n", False),
    ],
)
@pytest.mark.parametrize(
    "asked", ["Migrate report.py from optparse to argparse.", "Replace `optparse` by `argparse`."]
)
def test_a_module_that_has_to_go(now: str, left: bool, asked: str) -> None:
    old = {"report.py": "import optparse\n", "other.py": ""}
    assert bool(_left(old, old | {"report.py": now}, asked)) is left


@pytest.mark.parametrize(
    ("asked", "now", "left"),
    [
        ("Change the page size from 10 to 25.", "SIZE = 10\nPAGE = 25\n", True),
        ("Change the page size from 10 to 25.", "SIZE = 25\n", False),
        ("Change nothing from 10 to 25 if it is set.", "SIZE = 10\nPAGE = 25\n", False),
        ("Change the page size from 11 to 25.", "SIZE = 10\nPAGE = 25\n", False),
    ],
)
def test_a_value_that_has_to_become_another(asked: str, now: str, left: bool) -> None:
    assert bool(_left({"a.py": "SIZE = 10\n"}, {"a.py": now}, asked)) is left


SAVE = "def save(path):\n    write(path)\n\n\ndef write(path):\n    open(path)\n"
USES = {"state.py": SAVE, "src/search.py": "def query(text):\n    return ask(text)\n"}


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ("Write `atomic(path)`. Use it in `save`.", "`save`"),
        ("Write `atomic(path)` and use it in `state.save()`.", "`save`"),
        ("Write `throttle`. Use it for `Search#query` in `src/search.py`.", "`src/search.py`"),
        ("Write `atomic`. It may be of use in `save`.", ""),
        ("Write `atomic`. Use it in `nowhere`.", ""),
    ],
)
def test_a_caller_that_has_to_use_what_is_new(asked: str, left: str) -> None:
    new = USES | {"new.py": "def atomic(path):\n    pass\n"}
    found = _left(USES, new, asked)
    assert found.startswith(f"{left} is as it was") if left else not found


def test_a_caller_uses_it_by_what_it_calls_itself() -> None:
    new = USES | {"state.py": SAVE.replace("open(path)", "atomic(path)")}
    assert not _left(USES, new, "Write `atomic(path)`. Use it in `save`.")


def test_each_file_of_a_list_has_to_change() -> None:
    old = {f"{name}.py": "print()\n" for name in "abc"}
    asked = "`a.py`, `b.py` and `c.py` print. Use logging instead."
    assert _left(old, old | {"a.py": "log()\n"}, asked).startswith("b.py is as it was")
    assert not _left(old, dict.fromkeys(old, "log()\n"), asked)
    assert not _left(old | {"d.py": ""}, old | {"d.py": "log()\n"}, asked)
