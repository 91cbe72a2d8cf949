"""Ids of the further tries of one order: none is ever given twice. Pure.

The ledger starts a worker once per id, and takes a second claim for the first one's result.
"""

from __future__ import annotations

import re

FRESH_LOGIN = "r"
LOST = "x"
AGAIN = "w"
_LOST_BEFORE = re.compile(rf"{LOST}\d+$")
_AGAIN_BEFORE = re.compile(rf"{AGAIN}\d+$")
_ORDERED = re.compile(r"\d+-\d+")


def after_loss(worker_run_id: str, losses: int) -> str:
    """For an order whose worker was lost, the `losses`-th time in a row: "1-001x1"."""
    return f"{_LOST_BEFORE.sub('', worker_run_id)}{LOST}{losses}"


def after_refused_login(worker_run_id: str) -> str | None:
    """To go on with a fresh token: "1-001r"; None where that was tried for this order.

    Once only: a provider that refuses a token just made will refuse the next.
    """
    return None if FRESH_LOGIN in worker_run_id else f"{worker_run_id}{FRESH_LOGIN}"


def begun_again(worker_run_id: str, tries: int) -> str:
    """For an order that is begun again without a new decision, the `tries`-th time: "1-001w1".

    `tries` only ever grows, so that this is new also behind what else became of the order.
    """
    return f"{_AGAIN_BEFORE.sub('', worker_run_id)}{AGAIN}{tries}"


def ordered_as(worker_run_id: str) -> str:
    """The id that the decision gave, which all tries of one order share: "1-001"."""
    match = _ORDERED.match(worker_run_id)
    return match[0] if match else worker_run_id
