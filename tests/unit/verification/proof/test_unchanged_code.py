"""Work that does what the code did before."""

from __future__ import annotations

import pytest

from agentrunner.verification.proof.change_alone import is_only_text, is_unchanged
from tests.kit.examinations import trees

OLD = b"def total(items):\n    return sum(items)\n"
TEXT = OLD.replace(b":\n", b':\n    """Adds them up."""\n')
CLICK = b"import click\n\n\n@click.command()\n"
BASE = b"class Total(Command):\n    pass\n\n\n"


def only_text(before: bytes, after: bytes, asked: str = "Totals round.") -> bool:
    world = trees({"cart.py": before}, {"cart.py": after}, product=("cart.py",))
    return is_only_text(world, asked)


def test_comments_and_docstrings_are_no_work() -> None:
    assert only_text(OLD, TEXT)
    assert only_text(OLD, b"# Rounds.\n" + OLD)
    assert not only_text(OLD, OLD.replace(b"sum", b"round"))


@pytest.mark.parametrize("head", [CLICK, BASE, b"print(__doc__)\n"])
def test_docstrings_that_something_reads_are_code(head: bytes) -> None:
    assert not only_text(head + OLD, head + TEXT)
    assert only_text(head + OLD, head + b"# Rounds.\n" + OLD)


@pytest.mark.parametrize("asked", ["Document total().", "`--help` says it.", "関数の説明を書く。"])
def test_a_task_may_be_about_texts(asked: str) -> None:
    assert not only_text(OLD, TEXT, asked)


def test_no_work_at_all_is_unchanged_and_no_text() -> None:
    assert is_unchanged(trees())
    assert not is_only_text(trees(), "")
