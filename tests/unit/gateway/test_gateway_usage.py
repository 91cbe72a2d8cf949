"""The usage log: what is written, and what is read out of it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from agentrunner.errors import UsageError
from agentrunner.gateway.prices import load_prices
from agentrunner.gateway.usage import ModelCall, UsageLog, read_calls
from agentrunner.gateway.wires import CallTokens
from agentrunner.money.counters import Usage, read_usage

CALL = ModelCall(
    ts="2026-11-21T10:00:00.000Z", label="1-001", n=1, path="/responses", model="gpt-5.5",
    status=200, duration_ms=900, input_tokens=1200, cached_tokens=200, output_tokens=34, usd=0.5,
)  # fmt: skip
UNKNOWN = replace(CALL, input_tokens=None, cached_tokens=None, output_tokens=None, usd=None)
FAILED = replace(UNKNOWN, status=429, usd=0.0, error="quota", reset_at="2026-11-21T11:00:00.000Z")


def written(path: Path, *calls: ModelCall) -> Usage:
    log = UsageLog(path)
    for call in calls:
        log.append(call)
    log.close()
    return read_usage(path)


def test_there_may_be_no_log(tmp_path: Path) -> None:
    assert read_usage(tmp_path / "none.jsonl") == Usage()


def test_a_sum(tmp_path: Path) -> None:
    other = replace(CALL, model="o3", usd=0.25)
    usage = written(tmp_path / "u", CALL, other, CALL)
    assert (usage.total.calls, usage.total.unknown_calls, usage.total.unpriced_calls) == (3, 0, 0)
    assert (usage.total.input_tokens, usage.total.cached_tokens, usage.total.output_tokens) == (
        3600,
        600,
        102,
    )
    assert usage.total.price == usage.total.usd == 1.25
    assert {name: of.calls for name, of in usage.by_model.items()} == {"gpt-5.5": 2, "o3": 1}
    assert usage.last_error is None


def test_what_is_unknown_is_never_nothing(tmp_path: Path) -> None:
    usage = written(tmp_path / "u", CALL, UNKNOWN, replace(CALL, usd=None))
    assert (usage.total.calls, usage.total.unknown_calls, usage.total.unpriced_calls) == (3, 1, 2)
    assert (usage.total.price, usage.total.usd) == (None, 0.5)


def test_a_reply_that_broke_off_has_a_cost_that_is_not_known(tmp_path: Path) -> None:
    broken = replace(UNKNOWN, error="network")
    usage = written(tmp_path / "u", CALL, broken)
    assert (usage.total.unknown_calls, usage.total.unpriced_calls, usage.total.price) == (
        1,
        1,
        None,
    )
    assert usage.last_error == broken


def test_a_failed_call_costs_nothing_and_the_last_one_is_told(tmp_path: Path) -> None:
    usage = written(tmp_path / "u", CALL, FAILED)
    assert (usage.total.unknown_calls, usage.total.unpriced_calls, usage.total.price) == (0, 0, 0.5)
    assert usage.last_error == FAILED
    models = replace(CALL, path="/models", metered=False, input_tokens=None)
    assert written(tmp_path / "u", models).last_error == FAILED
    assert written(tmp_path / "u", CALL).last_error is None


@pytest.mark.parametrize("half", [b'{"ts": "20', b"null\n", b"[]\n", b'{"ts": 1}\n', b"\xff\n"])
def test_half_a_line_is_no_call_and_spoils_none(tmp_path: Path, half: bytes) -> None:
    path = tmp_path / "u"
    written(path, CALL)
    with path.open("ab") as file:
        file.write(half)
    assert read_calls(path) == [CALL]
    written(path, CALL)
    assert read_calls(path) == [CALL, CALL]


def test_each_call_is_one_line_for_its_owner_only(tmp_path: Path) -> None:
    written(tmp_path / "deep" / "u", CALL, FAILED)
    path = tmp_path / "deep" / "u"
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        asdict(CALL), asdict(FAILED),
    ]  # fmt: skip
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_call_whose_end_nobody_told_is_known_of_and_counted_once(tmp_path: Path) -> None:
    """A gateway that is killed leaves the beginning of what it had sent on."""
    path = tmp_path / "u"
    log = UsageLog(path)
    log.append(replace(UNKNOWN, status=0, n=1), begins=True)
    log.append(replace(UNKNOWN, status=0, n=2), begins=True)
    log.append(replace(CALL, n=2))
    log.close()
    assert [(call.n, call.unknown) for call in read_calls(path)] == [(2, False), (1, True)]
    usage = read_usage(path)
    assert (usage.total.calls, usage.total.unknown_calls, usage.total.input_tokens) == (2, 1, 1200)
    assert usage.total.price is None


# -- prices ---------------------------------------------------------------------------------------

MILLION = CallTokens(input=1_000_000, output=1_000_000)


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        ("gpt-5.1", 11.25),
        ("gpt-5.1-2025-11-13", 11.25),
        ("claude-sonnet-4-5-20250929", 18.0),
        ("claude-sonnet-4-5@20250929", 18.0),
        ("gpt-5.1-codex-mini", 2.25),
        ("gpt-5.1-turbo", None),
        ("gpt-5.10", None),
        ("gpt-5", 11.25),
        ("local-model", None),
        ("", None),
    ],
)
def test_a_price_is_of_a_name_or_of_its_dated_versions(model: str, usd: float | None) -> None:
    assert load_prices().cost(model, MILLION) == usd


def test_caches_and_long_calls_have_prices_of_their_own() -> None:
    prices = load_prices()
    tokens = CallTokens(input=100_000, output=1000, cached=60_000, cache_write=30_000)
    expected = (10_000 * 3 + 60_000 * 0.3 + 30_000 * 3.75 + 1000 * 15) / 1e6
    assert prices.cost("claude-sonnet-4-5", tokens) == pytest.approx(expected)
    short, long = CallTokens(200_000, 0), CallTokens(200_001, 0)
    assert prices.cost("gemini-2.5-pro", short) == pytest.approx(0.25)
    assert prices.cost("gemini-2.5-pro", long) == pytest.approx(0.5000025)


def test_without_a_price_for_the_cache_it_costs_what_the_rest_costs(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("models: {m: {input: 2, output: 0}}")
    assert load_prices(path).cost("m", CallTokens(1_000_000, 0, cached=900_000)) == 2


def test_without_tokens_there_is_no_cost() -> None:
    assert load_prices().cost("gpt-5.1", None) is None


def test_the_table_says_of_when_it_is() -> None:
    prices = load_prices()
    assert prices.as_of[:2] == "20" and len(prices.models) > 50
    assert all(price and price.input < price.output for price in prices.models.values())


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("models: {m: {input: -1, output: 1}}", "models.m.input"),
        ("models: {m: {input: 1}}", "models.m.output"),
        ("models: {m: {input: .nan, output: 1}}", "models.m.input"),
        ("models: {m: {input: 1, output: 1, per: token}}", "models.m.per"),
        ("[]", "valid dictionary"),
        ("a: [", "while parsing"),
    ],
)
def test_a_file_of_prices_that_cannot_be_used(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=part) as caught:
        load_prices(path)
    assert (caught.value.code, caught.value.path) == ("prices-invalid", str(path))


def test_a_file_of_prices_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_prices(tmp_path / "none.yaml")
