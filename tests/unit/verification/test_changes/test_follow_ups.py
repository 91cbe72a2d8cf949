"""Changes that only follow from what a PRD moves."""

from __future__ import annotations

import pytest

from agentrunner.verification.inputs.changes import ProofChange
from agentrunner.verification.inputs.model import Input
from agentrunner.verification.test_changes.follow_ups import FollowUps
from agentrunner.verification.test_changes.moved_imports import places_follow
from agentrunner.verification.trees import Changes

OLD = "src/test/java/org/example/AccountTest.java"
NEW = "src/test/java/org/example/bank/AccountTest.java"
TEST = """\
package org.example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class AccountTest {
    @Test
    void addsUp() {
        assertEquals(150, new Account(50).plus(100));
    }
}
"""
WANTED = "Move `Account` to package `org.example.bank`."
MOVED = TEST.replace("org.example;", "org.example.bank;")


def follow_ups(wanted: str, after: str) -> FollowUps:
    was, now = {OLD: TEST.encode()}, {NEW: after.encode()}
    judged = [ProofChange(OLD, "deleted", Input(OLD, "it is run", "test"), TEST.encode())]
    total = Changes(added=frozenset(now), deleted=frozenset(was))
    return FollowUps(wanted, judged, was.get, now.get, total)


def test_a_test_moves_along_with_its_package() -> None:
    assert follow_ups(WANTED, MOVED).of_moves() == {OLD, NEW}


@pytest.mark.parametrize(
    ("wanted", "after"),
    [
        (WANTED, MOVED.replace("150", "100")),
        (WANTED, MOVED.replace("@Test", "")),
        ("Move `Account` to package `org.other`.", MOVED),
        ("Mend package `org.example.bank`.", MOVED),
    ],
    ids=["another value", "no test", "another place", "no move"],
)
def test_a_test_does_not_move_along(wanted: str, after: str) -> None:
    assert not follow_ups(wanted, after).of_moves()


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("test-api:\n\tcd services/api && sh api-test\n", True),
        ("test-api:\n\tcd services/api && true\n", False),
        ("test-api:\n\tcd services/api/easy && sh api-test\n", False),
        ("test-api:\n\tcd services/api && sh services/api-test\n", False),
        ("test-api:\n\tcd api && sh api-test\n", False),
    ],
)
def test_paths_follow_a_move(after: str, expected: bool) -> None:
    before = b"test-api:\n\tcd api && sh api-test\n"
    assert places_follow(before, after.encode(), [("api", "services/api")]) == expected


SETTINGS = """\
from app import timeout


def test_default():
    assert timeout() == 10


def test_given():
    assert timeout(5) == 5
"""


@pytest.mark.parametrize(
    ("wanted", "old", "new", "follows"),
    [
        ("The default timeout becomes 30 seconds.", "== 10", "== 30", True),
        ("A timeout of 10 seconds is too short.", "== 10", "== 30", False),
        ("The default timeout becomes 30 seconds.", "== 5", "== 30", False),
        ("The default timeout becomes 30 seconds.", "== 10", "== 20", False),
        ("The default timeout becomes 30 seconds.", "== 10", ">= 10", False),
    ],
    ids=["as stated", "not stated", "not of the product", "another value", "less"],
)
def test_a_test_follows_a_value_that_the_product_exchanges(
    wanted: str, old: str, new: str, follows: bool
) -> None:
    was = {"test_app.py": SETTINGS.encode(), "app.json": b'{"timeout": 10}'}
    now = {
        "test_app.py": SETTINGS.replace(old, new).encode(),
        "app.json": b'{"timeout": 30}',
    }
    test = Input("test_app.py", "it is run", "test")
    judged = [ProofChange(test.path, "modified", test, was[test.path])]
    total = Changes(modified=frozenset(was))
    found = FollowUps(wanted, judged, was.get, now.get, total).adapted_tests(["test_app.py"])
    assert bool(found) == follows


@pytest.mark.parametrize(
    ("product", "follows"),
    [
        ("__all__ = ['get_usr']\ndef get_usr(n): return n\n", True),
        ("# 'get_usr'\ndef get_usr(n): return n\n", True),
        ("def get_usr(n): return n\nCOMMANDS = {'get_usr': get_usr}\n", False),
        ("def get_usr(n): return dict(get_usr=n)\n", False),
        ("class Row:\n    get_usr: int\ndef f(n): return n\n", False),
    ],
    ids=["an export", "a comment", "a command", "a key by its name", "a field"],
)
def test_a_name_in_quotes_follows_where_it_can_be_nothing_else(product: str, follows: bool) -> None:
    test = "def test_a():\n    with patch('shop.api.get_usr'):\n        assert f(1) == 1\n"
    was = {"shop/api.py": product.encode(), "tests/test_api.py": test.encode()}
    now = {path: text.replace(b"get_usr", b"get_user") for path, text in was.items()}
    path = "tests/test_api.py"
    judged = [ProofChange(path, "modified", Input(path, "it is run", "test"), was[path])]
    total = Changes(modified=frozenset(was))
    found = FollowUps("Rename get_usr to get_user.", judged, was.get, now.get, total).of_moves()
    assert (found == {path}) is follows


def test_what_imports_a_part_that_moves_may_have_new_tests() -> None:
    test = b"from shapes import edge\n\n\ndef test_edge():\n    assert edge(1) == 1\n"
    was = {
        "shapes.py": b"def area(x):\n    return x\n\n\ndef edge(x):\n    return x\n",
        "test_shapes.py": test,
    }
    more = b"\n\ndef test_more():\n    assert edge(2) == 2\n"
    now = {
        "shapes.py": b"def area(x):\n    return x\n",
        "edges.py": b"def edge(x):\n    return x\n",
        "test_shapes.py": was["test_shapes.py"].replace(b"shapes", b"edges") + more,
    }
    wanted = "Move `edge` from `shapes.py` to `edges.py`."
    path = "test_shapes.py"
    judged = [ProofChange(path, "modified", Input(path, "it is run", "test"), was[path])]
    total = Changes(added=frozenset(["edges.py"]), modified=frozenset(was))
    assert FollowUps(wanted, judged, was.get, now.get, total).of_moves() == {path}
    now[path] = now[path].replace(b"(1) == 1", b"(1)")
    assert FollowUps(wanted, judged, was.get, now.get, total).of_moves() == set()
