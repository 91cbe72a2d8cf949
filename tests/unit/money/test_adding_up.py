"""What calls and worker runs cost: counters, and the bill that adds up to them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentrunner.gateway.prices import Prices, load_prices
from agentrunner.gateway.usage import ModelCall
from agentrunner.money.bill import MadeCalls, bill, bill_of
from agentrunner.money.counters import (
    Accounting,
    Usage,
    amounts_of,
    caught_up,
    usage_of_calls,
    with_worker,
)
from agentrunner.planners.base import PlannerCall
from agentrunner.state.run_state import Counters, TaskContext
from agentrunner.storage.run_log import RunLog
from agentrunner.workers.base import WorkerReading

NOTHING = WorkerReading(completed=False)
SENT = ModelCall(
    ts="2026-11-21T10:00:00.000Z", label="1-001", n=1, path="/responses", model="gpt-5.5",
    status=200, duration_ms=900, input_tokens=1200, cached_tokens=200, output_tokens=34, usd=0.5,
)  # fmt: skip
BROKEN = ModelCall(**{**vars(SENT), "input_tokens": None, "output_tokens": None, "usd": None})
REFUSED = ModelCall(**{**vars(BROKEN), "status": 400, "usd": 0.0, "error": "budget"})


def call(**how: Any) -> PlannerCall:
    fields = {"number": 0, "type": "plan_task", "messages": (), "text": "", "error": ""}
    return PlannerCall(**{**fields, "duration_sec": 1.0, **how})


def told(one: PlannerCall, prices: Prices | None = None) -> tuple[Counters, Mapping[str, Any]]:
    tally = Accounting(Counters(), prices or load_prices())
    cost = tally.add(one)
    return tally.counters, cost


# -- the planner ----------------------------------------------------------------------------------


def test_a_call_with_a_price() -> None:
    counted = call(model="gpt-5.1", input_tokens=1_000_000, output_tokens=0, known="counted")
    counters, cost = told(counted)
    assert (counters.usd, counters.priced_calls, counters.unpriced_calls) == (1.25, 1, 0)
    assert (cost["usd"], cost["known"]) == (1.25, "counted")


def test_what_the_cache_gave_has_its_own_price() -> None:
    cached = call(model="gpt-5.1", input_tokens=1_000_000, cached_tokens=1_000_000)
    assert told(cached)[0].usd == pytest.approx(0.125)


def test_who_answers_may_know_the_cost_better() -> None:
    assert told(call(model="gpt-5.1", input_tokens=5, usd=0.75))[0].usd == 0.75


def test_a_call_of_a_subscription_has_no_price() -> None:
    counters, cost = told(call(model="gpt-5.1", input_tokens=5, subscription=True))
    assert (counters.usd, counters.priced_calls, counters.unpriced_calls) == (0, 0, 0)
    assert (counters.subscribed_calls, counters.tokens, cost["usd"]) == (1, 5, None)


def test_a_call_that_tells_nothing_is_unknown_and_never_free() -> None:
    counters, cost = told(call(model="m"))
    assert (counters.unknown_calls, counters.unpriced_calls, cost["usd"]) == (1, 1, None)


@pytest.mark.parametrize("nothing", [{"error": "429"}, {"known": "counted", "model": "checklist"}])
def test_a_call_that_used_nothing_says_nothing_of_prices(nothing: dict[str, Any]) -> None:
    counters, _ = told(call(**nothing))
    assert counters == Counters(meta_calls=1)


# -- workers --------------------------------------------------------------------------------------


def worked(
    used: Usage, reading: WorkerReading = NOTHING, *, gateway: bool = True, subscribed: bool = False
) -> Counters:
    amounts = amounts_of(used, reading, gateway=gateway, calls_model=True, subscribed=subscribed)
    counters = with_worker(Counters(), amounts)
    run = {"worker_run_id": "1-001", "usage": [one.as_dict() for one in amounts]}
    rows = [row.amount for row in bill([], [run])]
    assert sum(row.tokens for row in rows) == counters.tokens
    assert sum(row.usd for row in rows) == counters.usd
    return counters


def test_the_gateway_is_believed_and_not_the_cli() -> None:
    reading = WorkerReading(completed=True, input_tokens=9, output_tokens=9, usd=9)
    counters = worked(usage_of_calls([SENT, SENT]), reading)
    assert (counters.worker_input_tokens, counters.worker_output_tokens) == (2400, 68)
    assert (counters.usd, counters.priced_calls, counters.worker_runs) == (1.0, 2, 1)


def test_a_reply_that_broke_off_leaves_the_rest_to_the_cli() -> None:
    reading = WorkerReading(completed=True, input_tokens=3000, output_tokens=10, usd=9)
    counters = worked(usage_of_calls([SENT, BROKEN]), reading)
    assert (counters.worker_input_tokens, counters.worker_output_tokens) == (3000, 34)
    assert (counters.unknown_calls, counters.unpriced_calls, counters.usd) == (1, 1, 0.5)


def test_a_call_that_the_gateway_refused_was_none() -> None:
    assert worked(usage_of_calls([REFUSED])) == Counters(worker_runs=1)
    assert worked(usage_of_calls([SENT, REFUSED])).priced_calls == 1


def test_without_a_gateway_it_is_as_the_cli_reports() -> None:
    reading = WorkerReading(completed=True, input_tokens=30, output_tokens=4, usd=0.25)
    counters = worked(Usage(), reading, gateway=False)
    assert (counters.tokens, counters.usd, counters.priced_calls) == (34, 0.25, 1)
    unpriced = WorkerReading(completed=True, input_tokens=30)
    assert worked(Usage(), unpriced, gateway=False).unpriced_calls == 1


def test_what_nobody_tells_is_unknown() -> None:
    counters = worked(Usage(), gateway=False)
    assert (counters.unknown_calls, counters.unpriced_calls, counters.tokens) == (1, 1, 0)


def test_a_subscription_is_counted_and_has_no_price() -> None:
    counters = worked(usage_of_calls([SENT]), subscribed=True)
    assert (counters.tokens, counters.usd, counters.subscribed_calls) == (1234, 0, 1)
    assert (counters.priced_calls, counters.unpriced_calls) == (0, 0)


# -- the log --------------------------------------------------------------------------------------


def logged(place: Path, *lines: tuple[str, int]) -> RunLog:
    log = RunLog(place / "log.jsonl")
    cost = {"usage": {"input_tokens": 10, "output_tokens": 1}, "usd": 0.5, "known": "counted"}
    for kind, number in lines:
        data = {"number": number, "type": "plan_task"}
        more = {**cost, "model": "m"} if kind == "meta_call" else {}
        log.append(kind, str(number), {**data, **more}, attempt=1, loop=0, at="")
    return log


BEGUN, ENDED = "meta_begun", "meta_call"


def state(**counters: Any) -> TaskContext:
    return TaskContext(counters=Counters(**counters))


def test_a_saved_state_has_nothing_to_catch_up_with(tmp_path: Path) -> None:
    log = logged(tmp_path, (BEGUN, 0), (ENDED, 0), (BEGUN, 1), (ENDED, 1))
    assert caught_up(state(meta_calls=2), MadeCalls(log)) == {}


def test_calls_that_no_state_has_are_counted_beside_those_made_again(tmp_path: Path) -> None:
    log = logged(tmp_path, (BEGUN, 0), (ENDED, 0), (BEGUN, 1), (ENDED, 1))
    counters = caught_up(state(meta_calls=1), MadeCalls(log))["counters"]
    assert (counters.meta_calls, counters.repeated_calls, counters.calls) == (1, 1, 2)
    assert (counters.tokens, counters.usd) == (11, 0.5)
    again = TaskContext(counters=counters)
    assert caught_up(again, MadeCalls(log)) == {}


def test_a_number_that_comes_again_is_another_call(tmp_path: Path) -> None:
    log = logged(tmp_path, (BEGUN, 0), (ENDED, 0), (BEGUN, 0), (ENDED, 0), (ENDED, 1))
    assert len(MadeCalls(log).known()) == 3
    (row,) = bill_of(log)
    assert (row.calls, row.input_tokens, row.usd) == (3, 30, 1.5)


def test_a_call_whose_end_nobody_saw_is_unknown(tmp_path: Path) -> None:
    log = logged(tmp_path, (BEGUN, 0), (BEGUN, 0), (ENDED, 0))
    counters = caught_up(state(), MadeCalls(log))["counters"]
    assert (counters.calls, counters.unknown_calls, counters.unpriced_calls) == (2, 1, 1)


def test_what_people_granted_is_caught_up_with(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "log.jsonl")
    for key in ("a", "a", "b"):  # the same answer, heard twice
        log.append("grant", key, {"amounts": {"usd": 2}}, attempt=1, loop=0, at="")
    assert caught_up(state(), MadeCalls(log)) == {"grants": {"usd": 4}}
