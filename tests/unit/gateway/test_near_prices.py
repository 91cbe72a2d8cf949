"""A server of this machine or its network has no list price."""

from __future__ import annotations

from pathlib import Path

from agentrunner.gateway.prices import load_prices
from agentrunner.gateway.wires import CallTokens

TOKENS = CallTokens(1_000_000, 0, 0)


def test_a_near_server_costs_nothing_unless_the_user_names_its_model(tmp_path: Path) -> None:
    prices = load_prices()
    assert prices.cost("gpt-5.5", TOKENS)
    assert prices.cost("gpt-5.5", TOKENS, near=True) == 0
    assert prices.cost("nobody-knows", TOKENS, near=True) == 0
    own = tmp_path / "prices.yaml"
    own.write_text("models: {gpt-5.5: {input: 3, output: 1}}")
    assert load_prices(own).cost("gpt-5.5", TOKENS, near=True) == 3
