"""Tests with a switch left off that they turned on."""

from __future__ import annotations

import pytest

from agentrunner.verification.proof.other_tests import OFF, left_off


@pytest.mark.parametrize(
    ("source", "off"),
    [
        ('monkeypatch.setattr(shop, "ACTIVE", True)', 'monkeypatch.setattr(shop, "ACTIVE", False)'),
        ("patch('shop.ACTIVE', True)", "patch('shop.ACTIVE', False)"),
        ("settings.ACTIVE = true;", "settings.ACTIVE = false;"),
        ("run(ACTIVE=True)", "run(ACTIVE=True)"),
        ('setattr(shop, "INACTIVE", True)', 'setattr(shop, "INACTIVE", True)'),
    ],
)
def test_a_switch_is_left_off_where_a_test_turns_it_on(source: str, off: str) -> None:
    assert left_off(source.encode(), "ACTIVE").decode() == off


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("ACTIVE = False", ["ACTIVE"]),
        ("active: bool = False", ["active"]),
        ("const state = { active: false };", ["active"]),
        ("if found == False: pass", []),
    ],
)
def test_what_is_set_to_false_is_a_switch(source: str, names: list[str]) -> None:
    assert [hit["name"].decode() for hit in OFF.finditer(source.encode())] == names
