"""The whole change beside reports that show parts of it."""

from __future__ import annotations

from agentrunner.prompts.context_budget import UNKNOWN, ContextBudget
from agentrunner.prompts.rounds import Round, not_reported

A, B = "=== a.py (modified)\n@@ -1 +1 @@\n+1\n", "=== b.py (added)\n@@ -0,0 +1 @@\n+2\n"


def past(key: str, change: str) -> Round:
    return Round(key, "report", "line", change)


def test_a_file_that_one_round_changed_is_named_with_its_report() -> None:
    other = "=== a.py (modified)\n@@ -1 +1 @@\n+0\n"
    rounds = [past("1-1", f"{other}\n{B}"), past("1-2", A)]
    assert not_reported([A, B], rounds, UNKNOWN) == (
        "=== a.py (modified): as in report 1-2\n=== b.py (added): as in report 1-1\n"
    ).removesuffix("\n")
    both = "=== a.py (modified)\n@@ -1 +1 @@\n+0\n+1\n"
    assert not_reported([both], rounds, UNKNOWN) == both


def test_what_stood_in_a_folded_report_is_shown() -> None:
    rounds = [past(f"1-{n}", A if n == 0 else "=== c (added)\n" + "+x\n" * 400) for n in range(9)]
    short = ContextBudget(rounds=900, known=True)
    assert not_reported([A], rounds, short) == A
    assert "as in report 1-0" in not_reported([A], rounds, UNKNOWN)
