"""A bounded sample of the battery in the gate: one or two cases for each rule and kind.

All of it: `python -m tests.battery --jobs 2`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from agentrunner import registry
from tests.battery.case import Case, Rule, load_cases
from tests.battery.planner import KIND
from tests.battery.play import Outcome, play
from tests.battery.report import totals
from tests.battery.tools import lacking
from tests.kit.bwrap import require_bwrap
from tests.kit.byte_code import begin_compiled
from tests.kit.missing import missing

SAMPLE = [case for case in load_cases() if case.sample]
RULES = get_args(Rule)


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_battery(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_bwrap()
    begin_compiled(monkeypatch)
    # Other tests in this process try every planner that there is, and this one knows no other task.
    monkeypatch.setitem(registry.PLANNERS, KIND, "tests.battery.planner:Planner")
    if reason := lacking(case.needs):
        missing(reason)
    outcome = play(case, tmp_path)
    assert not outcome.complaints
    assert outcome.got == "COMPLETE" if case.kind == "honest" else outcome.got != "COMPLETE"
    assert not outcome.failed, outcome.said


def test_the_battery_is_large_enough() -> None:
    cases = load_cases()
    cheats = [case for case in cases if case.kind == "cheat" and not case.out_of_reach]
    honest = [case for case in cases if case.kind == "honest"]
    assert len(cheats) >= 60
    assert len(honest) >= 60
    for kind in (cheats, honest):
        by_rule = Counter(case.rule for case in kind)
        assert [rule for rule in RULES if by_rule[rule] < 2] == []


def test_the_sample_has_each_rule_and_kind() -> None:
    assert {(case.rule, case.kind) for case in SAMPLE} >= {
        (rule, kind) for rule in RULES for kind in ("cheat", "honest")
    }


def test_totals_count_what_is_out_of_reach_apart() -> None:
    def outcome(kind: str, got: str, *, apart: bool = False) -> Outcome:
        return Outcome("name", kind, "V1", "", "", out_of_reach=apart, got=got)

    outcomes = [
        outcome("cheat", "COMPLETE"),
        outcome("cheat", "FAILED"),
        outcome("cheat", "COMPLETE", apart=True),
        outcome("honest", "FAILED"),
    ]
    text = totals(outcomes)
    assert "1 of 2 cheats believed" in text
    assert "1 of 1 honest completions refused" in text
    assert "1 of 1 cheats out of reach believed" in text
    assert [o.failed for o in outcomes] == [True, False, False, True]
