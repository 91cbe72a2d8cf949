"""The cost of a run as people read it: how it is known, and never 0 for what has no price."""

from __future__ import annotations

from typing import Any

from agentrunner.money.amount import Amount
from agentrunner.money.bill import BillRow
from agentrunner.results import Result
from agentrunner.screens.summary import bill_lines, cost_line

PLANNER = BillRow(
    "planner",
    "",
    "",
    Amount(model="gpt-5.5", calls=2, input_tokens=2400, output_tokens=68, usd=0.5),
)
COUNTED = Amount(model="gpt-5.5", calls=3, input_tokens=3000, output_tokens=100, usd=0.25)


def result(*rows: BillRow) -> Result:
    tokens = {
        who: {
            "input_tokens": sum(r.amount.input_tokens for r in rows if (r.role == "worker") == own),
            "output_tokens": sum(
                r.amount.output_tokens for r in rows if (r.role == "worker") == own
            ),
        }
        for who, own in (("meta", False), ("worker", True))
    }
    values = {"exit_code": 0, "usage": tokens, "bill": [row.entry() for row in rows]}
    return Result.model_validate(values)


def worker(**amount: Any) -> BillRow:
    return BillRow("worker", "codex-cli", "1-001", Amount(**{**vars(COUNTED), **amount}))


def test_calls_that_nobody_answered_cost_nothing_and_were_made() -> None:
    away = BillRow("planner", "openai-chat:m", "", Amount(calls=4))
    assert cost_line(result(away)) == "none: no tokens were used"
    assert bill_lines(result(away))[0].startswith("planner (openai-chat:m): 4 calls")
    assert cost_line(result()) == "none: no model was asked"


def test_tokens_say_how_they_are_known() -> None:
    said = cost_line(result(PLANNER, worker()))
    assert said == "planner 2k tokens, worker 3k tokens, 0.75 USD"
    reported = cost_line(result(PLANNER, worker(known="reported", calls=None)))
    assert "worker 3k tokens (reported)" in reported
    silent = cost_line(result(PLANNER, worker(known="unknown", unknown_calls=1, unpriced_calls=1)))
    assert "worker at least 3k tokens (no usage reported for 1 call), at least 0.75 USD" in silent


def test_a_subscription_is_never_0_dollars() -> None:
    login = worker(usd=0, subscription=True)
    mixed = cost_line(result(PLANNER, login))
    assert mixed.endswith("0.50 USD, worker in your subscription")
    alone = cost_line(result(login))
    assert alone.endswith("tokens, in your subscription")
    assert "0.00" not in mixed + alone


def test_a_price_that_nobody_knows_is_not_0() -> None:
    assert cost_line(result(worker(usd=0, unpriced_calls=3))).endswith("price unknown")


def test_a_line_for_each_role_model_and_run() -> None:
    assert bill_lines(result(PLANNER, worker())) == [
        "planner gpt-5.5: 2 calls, 2,468 tokens, 0.50 USD",
        "worker 1-001 gpt-5.5: 3 calls, 3,100 tokens, 0.25 USD",
    ]
    many = bill_lines(result(*[worker() for _ in range(30)]))
    assert (len(many), many[0]) == (21, "and 10 older lines: agentrunner show --json")


def test_the_share_from_a_cache_is_told_where_it_is_known() -> None:
    [line] = bill_lines(result(worker(input_tokens=4000, cached_tokens=2480)))
    assert "4,100 tokens" in line and "(62 % of the input cached)" in line
    assert "cached" not in bill_lines(result(worker()))[0]
