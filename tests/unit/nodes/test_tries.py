"""The tries of one order, whatever becomes of each."""

from __future__ import annotations

from itertools import product

import pytest

from agentrunner.execution.tries import after_loss, after_refused_login, begun_again, ordered_as
from agentrunner.nodes.run_worker import MAX_LOSSES

ENDS = ("lost", "auth")


def test_tries_after_waits_are_new_as_well() -> None:
    for ends in product(("lost", "auth", "spent"), repeat=6):
        ids, losses, tries = ["1-001"], 0, 0
        for end in ends:
            losses = losses + 1 if end == "lost" else 0
            if losses >= MAX_LOSSES:
                break
            again = after_refused_login(ids[-1]) if end == "auth" else None
            if end == "lost":
                again = after_loss(ids[-1], losses)
            elif again is None:
                tries += 1
                again = begun_again(ids[-1], tries)
            ids.append(again)
        assert len(set(ids)) == len(ids), ids
        assert {ordered_as(name) for name in ids} == {"1-001"}


@pytest.mark.parametrize("ends", list(product(ENDS, repeat=6)), ids="-".join)
def test_no_id_is_given_twice_and_the_tries_end(ends: tuple[str, ...]) -> None:
    ids = ["1-001"]
    losses = 0
    for end in ends:
        losses = losses + 1 if end == "lost" else 0  # a worker that ended is no loss
        if losses >= MAX_LOSSES:
            break
        lost = end == "lost"
        again = after_loss(ids[-1], losses) if lost else after_refused_login(ids[-1])
        if again is None:
            break
        ids.append(again)
    assert len(set(ids)) == len(ids)
    assert len(ids) <= 4


def test_ids_tell_what_became_of_the_try_before() -> None:
    assert after_loss("1-001", 1) == "1-001x1"
    assert after_loss("1-001x1", 2) == "1-001x2"
    assert after_refused_login("1-001") == "1-001r"
    assert after_loss("1-001x1r", 1) == "1-001x1rx1"
    assert after_refused_login("1-001rx1") is None
    assert begun_again("1-001", 1) == "1-001w1"
    assert begun_again("1-001w1", 2) == "1-001w2"
    assert begun_again("1-001w1x1", 2) == "1-001w1x1w2"
