"""What a round's report says, and what it leaves to an earlier one."""

from __future__ import annotations

from typing import Any

from agentrunner.state.round_reports import (
    digests,
    in_lines,
    line_of,
    report,
    sections,
    state_of_now,
    without_diffed,
)


def red(name: str, message: str) -> dict[str, Any]:
    return {"name": name, "file": "tests/test_a.py", "line": 3, "message": message}


def facts(*reds: dict[str, Any], failing: list[str] | None = None, **more: Any) -> dict[str, Any]:
    names = [one["name"] for one in reds]
    test = {
        "executed": True, "green": not reds, "failed": len(reds), "failing": failing or names,
        "red": list(reds), "tail": "x" * 4000 + "2 failed",
    }  # fmt: skip
    return {"test_result": test, **more}


def told(of: dict[str, Any]) -> dict[str, str]:
    return digests(sections(of))


def test_a_test_that_is_red_for_the_same_reason_is_named_without_it() -> None:
    first = facts(red("a", "1 != 2"), red("b", "no b"))
    later = facts(red("a", "1 != 2"), red("b", "b is 3"))
    shown = report(first, None, {}, ())["test_result"]
    assert [one["message"] for one in shown["red"]] == ["1 != 2", "no b"]
    assert "failing" not in shown  # each is there with its message
    shown = report(later, None, told(first), ())["test_result"]
    assert [one["message"] for one in shown["red"]] == ["b is 3"]
    assert shown["failing"] == ["a"] and shown["failed"] == 2


def test_the_same_test_red_again_after_it_was_green_has_its_reason_again() -> None:
    first, between = facts(red("a", "1 != 2")), facts()
    shown = report(first, None, told(between), ())["test_result"]
    assert [one["name"] for one in shown["red"]] == ["a"]


def test_a_reason_that_stood_in_a_folded_report_is_told_with_the_state_of_now() -> None:
    first, later = facts(red("a", "1 != 2"), red("b", "no b")), facts(red("a", "1 != 2"))
    known = told(later)
    left = {name: value for name, value in known.items() if not name.startswith("red ")}
    assert "test_result" not in state_of_now(later, known)
    assert state_of_now(later, left)["test_result"] == {"red": [red("a", "1 != 2")]}
    assert "1 != 2" in str(state_of_now(later, {})["test_result"])
    assert "no b" in str(state_of_now(first, left)["test_result"])


def test_output_is_left_out_only_where_each_red_test_has_its_message() -> None:
    silent = report(facts(red("a", "")), None, {}, ())["test_result"]
    assert len(silent["tail"]) > 4000
    assert "tail" not in report(facts(red("a", "1 != 2")), None, {}, ())["test_result"]
    unknown = facts(red("a", "1 != 2"), failing=["a", "b"])
    assert len(report(unknown, None, {}, ())["test_result"]["tail"]) > 4000
    crashed = facts()
    crashed["test_result"] |= {"green": False}
    assert len(report(crashed, None, {}, ())["test_result"]["tail"]) > 4000


def test_a_summary_takes_the_place_of_the_output_of_a_run_that_ended_in_order() -> None:
    def shown(outcome: str, summary: str) -> str:
        run = {"worker_run_id": "1-001", "outcome": outcome, "summary": summary}
        last = {"stdout_tail": "y" * 4000}
        of = facts(recent_worker_runs=[run], last_worker_result=last)
        return str(report(of, None, {}, ()).get("worker_output_tail", ""))

    assert shown("completed", "Done.") == ""
    assert len(shown("completed", "")) == len(shown("failed", "Done.")) == 4000


def test_files_that_a_diff_shows_are_not_listed_beside_it() -> None:
    view = {
        "worker_runs": [{"changes": ["a.py +1 -0", "x (1).bin +0 -0"], "diff_stat": "2 files"}],
        "changed_files": {"total": 3, "paths": ["a.py", "old.py", "x (1).bin"]},
    }
    diff, earlier = "=== a.py (modified)\n@@ -1 +1 @@\n-=== b (c)\n", "=== old.py (added)\n"
    found = without_diffed(view, diff, [earlier])
    assert found["worker_runs"] == [{"changes": ["x (1).bin +0 -0"], "diff_stat": "2 files"}]
    assert found["changed_files"] == {"total": 3, "paths": ["x (1).bin"]}
    assert without_diffed(view, "", [])["changed_files"] == view["changed_files"]


def test_a_red_test_takes_a_line() -> None:
    view = {"test_result": {"red": [red("T1", "1 != 2")]}, "evidence": {"red": True, "checks": [
        {"red": [{"name": "b", "file": "", "line": None, "message": ""}]}]}}  # fmt: skip
    found = in_lines(view)
    assert found["test_result"]["red"] == ["T1 (tests/test_a.py:3): 1 != 2"]
    assert found["evidence"] == {"red": True, "checks": [{"red": ["b"]}]}


def test_an_order_is_told_without_its_reason_which_small_models_write_again() -> None:
    order = {"number": 1, "action": "run_worker", "reason": "It is red.", "prompt": "Mend it."}
    view = report(facts(), order, {}, ())
    assert view["decided"] == {"number": 1, "action": "run_worker", "prompt": "Mend it."}
    assert "Mend it." in line_of(view, "1-1")
    asked = {"number": 2, "action": "ask_human", "reason": "Two prices.", "prompt": ""}
    assert report(facts(), asked, {}, ())["decided"]["reason"] == "Two prices."


def test_tests_that_did_not_run_are_not_told() -> None:
    nothing = {"test_result": {"executed": False}, "baseline_test": {"executed": False}}
    assert report(nothing, None, {}, ()) == {}
