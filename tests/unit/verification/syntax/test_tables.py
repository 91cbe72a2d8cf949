"""Tables that a program or a test runs through."""

from __future__ import annotations

from agentrunner.verification.syntax.edits import applied
from agentrunner.verification.syntax.tables import tables_in

SOURCE = b"""USED = [([], 0), ([5], 5)]
GIVEN = [([], 0), ([5], 5)]

def cases():
    yield [], 0
    yield [(5, "a")], 15

def others():
    yield from cases()
    yield total([1]), 2
    yield total([2]), 2

@parametrize("items", GIVEN)
def test_it(items):
    for items, want in USED:
        assert total(items) == want
"""


def test_tables_that_a_loop_is_given_and_rows_of_generators() -> None:
    used, given = tables_in(SOURCE, "python")
    assert [row.text for row in used.rows] == ["([], 0)", "([5], 5)"]
    assert [row.changed for row in given.rows] == ["[], 1", '[(5, "a")], 16']
    first = applied(SOURCE, given.first(given.rows[1], changed=True))
    assert b'yield [(5, "a")], 16\n    yield [], 0\n' in first
