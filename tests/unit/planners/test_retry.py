"""When an attempt is made again, and after how long."""

from __future__ import annotations

import pytest

from agentrunner.planners.base import PlannerUnavailable
from agentrunner.planners.retry import (
    http_failure,
    is_retryable,
    parse_retry_after,
    wait_before_retry,
)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529, 599])
def test_may_succeed_later(status: int) -> None:
    assert is_retryable(status)


@pytest.mark.parametrize("status", [301, 302, 400, 401, 403, 404, 409, 413, 422])
def test_will_not_succeed(status: int) -> None:
    assert not is_retryable(status)


def test_one_two_four_and_over() -> None:
    failure = http_failure(500, "")
    assert [wait_before_retry(failure, made) for made in range(5)] == [1, 2, 4, None, None]


def test_a_final_failure_is_not_waited_for() -> None:
    assert wait_before_retry(http_failure(401, "", retry_after=1), 0) is None


@pytest.mark.parametrize(("wish", "wait"), [(0, 0), (7, 7), (60, 60), (3600, 60), (-1, 1)])
def test_the_servers_wish_counts_up_to_a_minute(wish: float, wait: float) -> None:
    failure = PlannerUnavailable("busy", retryable=True, retry_after=wish)
    assert wait_before_retry(failure, 0) == wait


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7),
        ("0.5", 0.5),
        ("-3", 0),
        ("nan", None),
        ("soon", None),
        ("", None),
        ("Sat, 21 Nov 2026 07:00:30 GMT", 30),
        ("Sat, 21 Nov 2026 06:00:00 GMT", 0),
    ],
)
def test_retry_after_as_number_or_date(header: str | None, seconds: float | None) -> None:
    seven_o_clock = 1795244400.0
    assert parse_retry_after(header, seven_o_clock) == seconds
