"""Numbers that a value may only not exceed."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.comparisons import BOUND


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("assert f(200) <= 180", True),
        ("assert 180 < f(200)", True),
        ("expect(f(200)).toBeLessThanOrEqual(180)", True),
        ("self.assertGreater(f(200), 180)", True),
        ("assert_operator f(200), :>=, 180", True),
        ("if got := F(200); got > 180 {", True),
        ("// 180 <nil>", False),
        ("expect(f(200)).toBe(180)", False),
        ("const f = () => 180;", False),
        ("fn f() -> u32 { 180 }", False),
        ("assert f(200) == 180", False),
        ("std::bitset<180> bits;", False),
        ("assert f(180 << 2)", False),
        ("assert page() == '<b>180</b>'", False),
    ],
)
def test_a_bound(text: str, bound: bool) -> None:
    assert ("180" not in BOUND.sub("", text)) is bound
