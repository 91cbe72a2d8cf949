"""What counts as the same again, when the planner is told, and when it is for a person."""

from __future__ import annotations

from typing import Any

import pytest

from agentrunner.execution.stuck import (
    after_worker,
    failing,
    forgotten,
    leads_nowhere,
    ordered,
    stuck_end,
)
from agentrunner.state.run_state import CheckOutcome, Evidence, TaskContext, TestOutcome, Verdict
from agentrunner.state.worker_runs import Stuck, WorkerRun

GREEN = Evidence(tree="t", test=TestOutcome(command="t", exit_code=0))


def red(tail: str = "E  assert 1 == 2", tree: str = "t", **test: Any) -> Evidence:
    facts = {"command": "pytest", "exit_code": 1, "failing": ["t::a"], "tail": tail, **test}
    return Evidence(tree=tree, test=TestOutcome.model_validate(facts))


def ran(number: int, *, changed: bool = True, **more: Any) -> WorkerRun:
    return WorkerRun(
        worker_run_id=f"1-{number:03}",
        worker="codex-cli",
        loop=0,
        outcome=more.pop("outcome", "completed"),
        changed_files=int(changed),
        tree_before="a",
        tree_after="b" if changed else "a",
        **more,
    )


class Rounds:
    """Rounds of order, worker and validation, as the nodes make them."""

    def __init__(self, stuck_after: int = 3) -> None:
        self.stuck_after = stuck_after
        self.state = TaskContext()
        self.number = 0

    def order(self, prompt: str) -> bool:
        """Whether the order was refused as the same again."""
        if leads_nowhere(self.state, prompt, self.stuck_after):
            return True
        self.state |= TaskContext(stuck=ordered(self.state, prompt), remarks=[])
        return False

    def run(self, prompt: str, evidence: Evidence = GREEN, *, changed: bool = True) -> list[str]:
        """One round; what the planner is told after it."""
        assert not self.order(prompt)
        self.number += 1
        self.state |= TaskContext(recent=[ran(self.number, changed=changed)], evidence=evidence)
        update = after_worker(self.state, self.stuck_after)
        self.state = {**self.state, **update}
        return self.state["remarks"]


def test_the_same_prompt_without_a_change_is_told_and_then_refused() -> None:
    rounds = Rounds()
    assert [rounds.run("p", changed=False) for _ in range(2)] == [[], []]
    (told,) = rounds.run("p", changed=False)
    assert told.startswith("Noticed: the same worker prompt was given 3 times in a row")
    assert rounds.order("p")
    assert not rounds.order("another")


def test_a_change_in_between_starts_the_count_of_prompts_anew() -> None:
    rounds = Rounds()
    for changed in (False, False, True, False, False):
        assert rounds.run("p", changed=changed) == []
    assert not rounds.order("p")


def test_another_prompt_starts_the_count_of_prompts_anew() -> None:
    rounds = Rounds()
    for prompt in ("p", "p", "q", "p", "p"):
        assert rounds.run(prompt, red(tree=prompt, tail=str(rounds.number)), changed=False) == []


def test_other_prompts_that_change_nothing_either_are_told_and_then_refused() -> None:
    rounds = Rounds()
    assert [rounds.run(f"p{n}", changed=False) for n in range(2)] == [[], []]
    (told,) = rounds.run("p2", changed=False)
    assert "3 worker runs in a row changed nothing" in told
    (told,) = rounds.run("p3", changed=False)
    assert "No further worker will be started" in told
    assert rounds.order("p4")
    end = stuck_end(rounds.state, Verdict(state="NEEDS_REVIEW", reason="limit", text=""))
    assert end.text == "4 worker runs in a row changed nothing."


def test_the_same_failure_is_told_and_one_more_round_is_given() -> None:
    rounds = Rounds()
    assert [rounds.run(f"p{n}", red(tree=f"t{n}")) for n in range(2)] == [[], []]
    (told,) = rounds.run("p2", red())
    assert "after each of the last 3 worker runs exactly the same was failing: t::a." in told
    (told,) = rounds.run("p3", red())
    assert "No further worker will be started" in told
    assert rounds.order("p4")


@pytest.mark.parametrize(
    "other", [GREEN, red(failing=["t::b"]), red("E  assert 1 == 3"), red(exit_code=2)]
)
def test_another_failure_or_none_starts_the_count_of_evidence_anew(other: Evidence) -> None:
    rounds = Rounds()
    for number, evidence in enumerate([red(), red(), other, red(), red()]):
        assert rounds.run(f"p{number}", evidence) == []


def test_never_is_never() -> None:
    rounds = Rounds(stuck_after=0)
    assert not any(rounds.run("p", red(), changed=False) for _ in range(20))


def test_a_run_is_counted_once_however_often_its_tree_is_looked_at() -> None:
    state = TaskContext(recent=[ran(1)], evidence=red(), stuck=Stuck())
    state |= TaskContext(stuck=after_worker(state, 3)["stuck"])
    assert after_worker(state, 3) == {}
    assert after_worker(TaskContext(), 3) == {}


def test_what_did_nothing_is_told_at_once() -> None:
    run = ran(1, changed=False, outcome="no_op", member="second")
    (told,) = after_worker(TaskContext(recent=[run]), 3)["remarks"]
    assert told.startswith("Noticed: the latest worker run, of second, did nothing")


def test_a_person_s_word_starts_all_counts_anew() -> None:
    rounds = Rounds()
    for _ in range(3):
        rounds.run("p", red(), changed=False)
    stuck = forgotten(rounds.state)
    assert stuck == Stuck(run="1-003")
    rounds.state |= TaskContext(stuck=stuck)
    assert not rounds.order("p")
    assert after_worker(rounds.state, 3) == {}
    assert forgotten(TaskContext()) is None


def test_the_end_is_for_a_person_and_says_what_came_again() -> None:
    limit = Verdict(state="FAILED", reason="loop_limit", text="red", missing=["AC-1 failed"])
    end = stuck_end(TaskContext(stuck=Stuck(evidences=4)), limit)
    assert (end.state, end.reason, end.missing) == ("NEEDS_REVIEW", "stuck", ["AC-1 failed"])
    assert end.text == "4 worker runs in a row left exactly the same failing."
    end = stuck_end(TaskContext(stuck=Stuck(prompts=3, evidences=3)), limit)
    assert end.text == "The same worker prompt changed nothing 3 times, and came again."


# -- what is red, by name -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 failed in 0.12s", "1 failed in 3.4s"),
        ("took 12 ms at 2026-03-01 10:11:12.5", "took 9 ms at 2026-03-02T00:00:00Z"),
        ("<object at 0x7f01>", "<object at 0x7fff>"),
        ("/tmp/pytest-of-a/7/x.py: no", "/tmp/pytest-of-a/8/x.py: no"),
        ("calc.py:12: AssertionError", "calc.py:14: AssertionError"),
        ('File "calc.py", line 3, in add', 'File "calc.py", line 30, in add'),
    ],
)
def test_one_and_the_same_failure_looks_a_little_different_each_time(one: str, other: str) -> None:
    assert failing(red(one)) == failing(red(other)) != failing(red("something else"))


def test_a_failing_check_is_red_and_the_tree_does_not_matter() -> None:
    check = CheckOutcome(criterion_id="AC-1", what="x", outcome="failed", exit_code=1)
    evidence = Evidence(tree="t1", checks=[check])
    assert failing(evidence) == failing(evidence.model_copy(update={"tree": "t2"})) != ""
    other = check.model_copy(update={"criterion_id": "AC-2"})
    assert failing(Evidence(tree="t", checks=[check, other])) != failing(evidence)
    passed = check.model_copy(update={"outcome": "passed"})
    assert failing(Evidence(tree="t", checks=[passed])) == failing(GREEN) == failing(None) == ""
