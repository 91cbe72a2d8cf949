"""Names that the work replaced everywhere are told from the code."""

from __future__ import annotations

import pytest

from agentrunner.verification.test_changes.renamed_names import names_follow, renamed_in_code

OLD = b"def total(items):\n    return sum(items)\n\n\ndef show(items):\n    print(total(items))\n"
NEW = b"def add_up(items):\n    return sum(items)\n\n\ndef show(items):\n    print(add_up(items))\n"


@pytest.mark.parametrize(
    "wanted",
    ["Rename symbols to shorter ones.", "`add_up` says it better.", "関数名をリネームする"],
)
def test_a_name_that_is_gone_and_one_in_its_place_are_a_pair(wanted: str) -> None:
    assert renamed_in_code({"a.py": (OLD, NEW)}, wanted) == {"total": "add_up"}


def test_nobody_asked_for_another_name() -> None:
    assert renamed_in_code({"a.py": (OLD, NEW)}, "The sum of nothing is 0.") == {}


def test_a_name_that_some_file_still_has_is_not_renamed() -> None:
    other = b"from cart import total\n"
    assert renamed_in_code({"a.py": (OLD, NEW), "b.py": (other, other + b"\n")}, "Rename it.") == {}


def test_a_name_with_two_new_ones_is_not_renamed() -> None:
    two = NEW.replace(b"print(add_up", b"print(other")
    assert renamed_in_code({"a.py": (OLD, two)}, "Rename it.") == {}


def test_a_name_that_takes_the_place_of_two_is_no_pair() -> None:
    before = b"a = first()\nb = second()\n"
    after = b"a = both()\nb = both()\n"
    assert renamed_in_code({"a.py": (before, after)}, "Rename them.") == {}


def test_a_comment_may_keep_the_old_name() -> None:
    kept = b"# total\n" + NEW
    assert renamed_in_code({"a.py": (OLD, kept)}, "Rename it.") == {"total": "add_up"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"def total(a):\n    return True\n", b"def total(a):\n    return False\n"),
        (b"def total(a):\n    return min(a)\n", b"def total(a):\n    return max(a)\n"),
        (b"def total(a):\n    return a.net\n", b"def total(a):\n    return a.gross\n"),
        (b"def total(a):\n    return sum(a)\n", b"def add_up(a):\n    return len(a)\n"),
    ],
    ids=["keyword", "function of the language", "attribute", "something else"],
)
def test_what_is_not_declared_or_changes_is_not_renamed(before: bytes, after: bytes) -> None:
    assert renamed_in_code({"a.py": (before, after)}, "Rename it.") == {}


def test_variables_are_called_as_the_class_is_now() -> None:
    before = b"from bank import Acct\n\n\ndef test_a():\n    acct = Acct(1)\n    assert acct == 1\n"
    after = before.replace(b"Acct", b"Account").replace(b"acct", b"account")
    assert names_follow("test_a.py", before, after, {"Acct": "Account"})
    taken = before.replace(b"import Acct", b"import Acct, account")
    other = taken.replace(b"Acct", b"Account").replace(b"acct", b"account")
    assert not names_follow("test_a.py", taken, other, {"Acct": "Account"})
