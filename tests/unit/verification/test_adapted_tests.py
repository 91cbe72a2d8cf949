"""What a change of tests may be that a PRD asks for in ordinary words."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agentrunner.verification.adapted_tests import adapted_in, with_guarded_imports

BEFORE = """\
from bank import account


def test_overdraw():
    assert account(10) is False


def test_more():
    assert account(3) == 7
"""
WANTED = "`account` raises `NoFunds` instead of returning False."


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("assert account(10) is False", "with raises(NoFunds):\n        account(10)", True),
        ("account(3) == 7", "account(3) == 8", False),
        ("account(3) == 7", "account(3)", False),
        ("def test_more", "def test_others", False),
        ("from bank import account", "from fakes import account", False),
        ("from bank import account\n", "from bank import account\naccount.raises = 1\n", False),
    ],
    ids=["stated", "another value", "a value less", "another name", "another import", "beside"],
)
def test_a_change_is_an_adaptation(old: str, new: str, expected: bool) -> None:
    adapted = BEFORE.replace("account(10) is False", "not account(10)")  # by itself it may
    after = (BEFORE if expected else adapted).replace(old, new)
    found = adapted_in(BEFORE.encode(), after.encode(), "python", WANTED)
    assert bool(found) == expected


def test_a_name_that_cannot_be_imported_leaves_the_others_alone() -> None:
    source = b"import os.path as path, nowhere\nfrom json import (\n    dumps,\n    nothing,\n)\n"
    guarded = with_guarded_imports(source, "python")
    assert guarded is not None
    run = guarded + b"print(dumps([path.sep]))\n"
    assert subprocess.check_output([sys.executable, "-c", run]) == b'["/"]\n'
    assert with_guarded_imports(b"import a from 'a';\n", "typescript") is None
