"""Data with other values stays data of its kind."""

import json

import pytest

from agentrunner.verification.canaries.fixture_canary import with_other_lines, with_other_values


def test_json_has_other_values_and_the_same_keys() -> None:
    rows = [{"in": "1,000", "out": 1000, "ok": True}, {"in": "", "out": 3}]
    changed = json.loads(with_other_values(json.dumps(rows).encode()))
    assert [list(row) for row in changed] == [list(row) for row in rows]
    assert changed[0]["in"] == "1,000~" and changed[0]["ok"] is True
    assert changed[0]["out"] - 1000 != changed[1]["out"] - 3  # each by another amount


@pytest.mark.parametrize("text", [b"12;12\n1,000;1000\n", b"a 1\nb 2\n", b'"x": "y"\n'])
def test_each_way_changes_a_table(text: bytes) -> None:
    assert with_other_values(text) != text and with_other_lines(text) != text
    assert with_other_values(text).count(b"\n") == text.count(b"\n")
