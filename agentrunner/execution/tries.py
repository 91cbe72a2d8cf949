"""Ids of the further tries of one order: none is ever given twice. Pure.

The ledger starts a worker once per id, and answers a second claim with the first one's result.
"""

from __future__ import annotations

from agentrunner.text.lazy_regex import lazy_regex

FRESH_LOGIN = "r"
LOST = "x"
AGAIN = "w"
_LOST_BEFORE = lazy_regex(rf"{LOST}\d+$")
_AGAIN_BEFORE = lazy_regex(rf"{AGAIN}\d+$")
_ORDERED = lazy_regex(r"\d+-\d+")


def after_loss(worker_run_id: str, losses: int) -> str:
    """Return the id for an order whose worker was lost `losses` times in a row: "1-001x1"."""
    return f"{_LOST_BEFORE.sub('', worker_run_id)}{LOST}{losses}"


def after_refused_login(worker_run_id: str) -> str | None:
    """Return the id to continue with a fresh token: "1-001r"; None where that was tried for this
    order.

    Once only: a provider that refuses a token just made will refuse the next.
    """
    return None if FRESH_LOGIN in worker_run_id else f"{worker_run_id}{FRESH_LOGIN}"


def begun_again(worker_run_id: str, tries: int) -> str:
    """Return the id of an order started again without a new decision, the `tries`-th time:
    "1-001w1".

    `tries` only grows, so this id is new whatever else happened to the order.
    """
    return f"{_AGAIN_BEFORE.sub('', worker_run_id)}{AGAIN}{tries}"


def ordered_as(worker_run_id: str) -> str:
    """Return the id that the decision gave, which all tries of one order share: "1-001"."""
    match = _ORDERED.match(worker_run_id)
    return match[0] if match else worker_run_id
