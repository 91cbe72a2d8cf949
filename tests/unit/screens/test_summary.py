from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from agentrunner.results import InboxItem, Result
from agentrunner.screens.layout import Paint
from agentrunner.screens.next_steps import next_lines
from agentrunner.screens.paused import approval_prompt, approval_screen, paused_screen
from agentrunner.screens.summary import headline, missing_sentences, summary_screen
from agentrunner.text.terminal import cell_width
from tests.kit.screen_samples import (
    CRITERIA,
    EVIL,
    JAPANESE,
    TESTS,
    changed,
    criterion,
    result,
)

Golden = Callable[[str, str], None]

FAILED_TEST = {
    **TESTS, "command": "pytest -q", "exit_code": 1, "passed": 40, "failed": 2,
    "baseline_exit_code": 1,
}  # fmt: skip
ENDS: dict[str, Result] = {
    "complete": result(),
    "unproven": result(reason="unproven", acceptance_criteria=CRITERIA[3:], test=None, proof=[]),
    "needs-review": result(
        state="NEEDS_REVIEW", exit_code=3, reason="loop_limit", waited_sec=7384.0
    ),
    "failed": result(
        state="FAILED", exit_code=1, reason="loop_limit", test=FAILED_TEST, proof=[],
        acceptance_criteria=[
            criterion("AC-1", "Totals are rounded", "failed", detail="expected 1.50, got 1.5"),
            criterion("AC-2", "Nothing else changes", "unknown", "none"),
        ],
    ),
    "known-red": result(
        test={
            **FAILED_TEST, "failed": 1, "known_red": ["tests/test_net.py::test_fetch"],
            "red": [{"name": "tests/test_net.py::test_fetch", "file": "tests/test_net.py",
                     "line": 5, "message": "AssertionError: no network here"}],
        },
    ),
    "interrupted": result(state="RUNNING", exit_code=130, reason="interrupted", note=None),
    "interrupted-unseen": result(
        state="RUNNING", exit_code=130, reason="interrupted", note=None, proof=[], proofs=[],
        acceptance_criteria=[criterion("AC-1", "Totals are rounded", "unknown", "none")],
        test={**FAILED_TEST, "measured": False, "baseline_exit_code": 1, "baseline_passed": 40},
        changed_files=[], lines_added=0, lines_removed=0,
    ),
    "japanese": result(state="FAILED", exit_code=1, reason="loop_limit", **JAPANESE),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_last_screen(name: str, golden: Golden) -> None:
    screen = summary_screen(ENDS[name], warnings=["uv.lock changed"], home="/home/hana")
    golden(f"screens/summary-{name}.txt", screen + "\n")


@pytest.mark.parametrize("name", ["complete", "japanese"])
def test_the_last_screen_in_44_columns(name: str, golden: Golden) -> None:
    screen = summary_screen(ENDS[name], width=44)
    commands = ("agentrunner ", "git ", "Next:")
    told = [line for line in screen.split("\n") if not line.strip().startswith(commands)]
    assert max(map(cell_width, told)) <= 44
    golden(f"screens/summary-{name}-44.txt", screen + "\n")


@pytest.mark.parametrize("width", [80, 88])
@pytest.mark.parametrize("name", ENDS)
def test_last_screen_fits_24_lines(name: str, width: int) -> None:
    many = ENDS[name].acceptance_criteria * 12
    crowded = ENDS[name].model_copy(
        update={"acceptance_criteria": many, "changed_files": ["a.py"] * 300}
    )
    for shown in (ENDS[name], crowded):
        lines = summary_screen(shown, warnings=["w"] * 9, width=width).split("\n")
        assert len(lines) <= 24
        assert max(map(cell_width, lines)) <= width


@pytest.mark.parametrize(
    "end",
    [
        "To settle it: agentrunner accept AC-1 --reason TEXT, after agentrunner diff",
        "Without it the command fails, so it says what the old code did.",
    ],
)
@pytest.mark.parametrize("others", [[], ["One more thing is open", "and another one is open"]])
def test_why_and_what_to_do_stay_where_a_long_sentence_is_cut(end: str, others: list[str]) -> None:
    names = ", ".join(f"src/generated/part_{number}.bin" for number in range(30))
    missing = [f"The run changed {names}: nothing here builds them again. {end}", *others]
    lines = summary_screen(
        result(state="NEEDS_REVIEW", exit_code=3, reason="loop_limit", missing=missing)
    ).split("\n")
    assert end in " ".join(" ".join(lines).split()) and len(lines) <= 24
    assert any(line.endswith("…") for line in lines), "what was cut is marked"
    assert lines[2].startswith("  Missing: The run changed")


DECIDES = "the change exchanges functions that decide what a test says: random.randint of shop.py"


@pytest.mark.parametrize("width", [80, 100])
def test_free_lines_are_for_a_sentence_that_would_be_cut(width: int) -> None:
    others = [f"AC-1 is not proven yet: {'x ' * 90}", "Nothing was red. To settle it: a check"]
    missing = [f"`python3 -m unittest`: {DECIDES}. To settle it: agentrunner diff", *others]
    lines = summary_screen(result(state="NEEDS_REVIEW", missing=missing), width=width).split("\n")
    assert DECIDES in " ".join(" ".join(lines).split()) and len(lines) <= 24


def test_what_shows_all_of_it_is_named_where_something_is_cut() -> None:
    def next_of(*missing: str) -> str:
        few = ENDS["unproven"].acceptance_criteria[:1]
        open_ = result(state="NEEDS_REVIEW", missing=list(missing), acceptance_criteria=few)
        return summary_screen(open_, target="a-1")

    assert "agentrunner show a-1" in next_of(f"It is red: {LONG}")
    assert "agentrunner show a-1" in next_of("One", "Two", "Three", "Four")
    assert "agentrunner show" not in next_of("It is red", "There is no proof")


LONG = f"It was {'more and ' * 200}more:"


def test_no_last_sentence_is_longer_than_the_screen() -> None:
    missing = [f"AC-{number} is red. {LONG} enough." for number in range(3)]
    lines = summary_screen(result(state="NEEDS_REVIEW", missing=missing)).split("\n")
    assert len(lines) <= 24 and sum("more and" in line for line in lines) == 3


def test_a_long_last_sentence_is_cut_before_the_command_in_it() -> None:
    command = "`agentrunner accept AC-1 --reason TEXT` settles it."
    missing = [f"AC-1 is red. {LONG} {command}"]
    screen = summary_screen(result(state="NEEDS_REVIEW", missing=missing))
    assert command in screen and re.search(r"more and .*…\n", screen)
    assert len(screen.split("\n")) <= 24


def test_show_lifts_the_limit() -> None:
    many = [criterion(f"AC-{number}", "x") for number in range(40)]
    screen = summary_screen(result(acceptance_criteria=many), all_rows=True)
    assert "AC-39" in screen and "more" not in screen


def test_where_rows_are_summed_up_the_open_ones_stay() -> None:
    many = [criterion(f"AC-{number}", "x") for number in range(30)]
    many.append(criterion("AC-99", "the one that fails", "failed"))
    assert "AC-99" in summary_screen(result(acceptance_criteria=many))


def test_what_only_the_planner_calls_passed_is_open_where_code_calls_it_not_shown() -> None:
    ended = result(
        state="NEEDS_REVIEW", exit_code=3, reason="loop_limit", proofs=[], completion="evidence"
    )
    assert "AC-4  open    judged" in summary_screen(ended)
    strict = {"completion": "strict", "state": "NEEDS_REVIEW", "exit_code": 3}
    assert "AC-4  open    judged" in summary_screen(result(**strict))
    assert "AC-4  passed  judged" in summary_screen(result())


def test_only_complete_says_complete() -> None:
    for state in ("FAILED", "NEEDS_REVIEW", "RUNNING", "VALIDATING", None):
        assert "COMPLETE" not in headline(result(state=state, reason="complete"))


def test_accept_is_offered_with_the_criteria_that_need_it() -> None:
    screen = summary_screen(ENDS["needs-review"])
    assert 'agentrunner accept AC-4 --reason "..."' in screen


def test_a_yes_is_offered_only_where_it_can_count() -> None:
    review = {"state": "NEEDS_REVIEW", "exit_code": 3, "reason": "loop_limit"}
    failed = [criterion("AC-1", "Totals", "failed")]
    for ended in (
        result(**review, acceptance_criteria=failed),
        result(**review, test=FAILED_TEST),
    ):
        assert "accept" not in summary_screen(ended)
    known = {**FAILED_TEST, "failed": 1, "known_red": ["test_a"]}
    assert "agentrunner accept" in summary_screen(result(**review, test=known))
    red = {"state": "FAILED", "exit_code": 1, "reason": "loop_limit"}
    still = {**FAILED_TEST, "still_red": ["test_a"], "newly_red": []}
    whole = [criterion("AC-1", "The tests pass", "failed", "tested")]
    for test, criteria in ((still, []), ({**still, "turned": ["test_c"]}, whole)):
        assert "accept --known-red NAME" in summary_screen(
            result(**red, test=test, acceptance_criteria=criteria)
        )
    for test, criteria in (
        ({**still, "newly_red": ["test_b"]}, []), (still, failed), (still, whole),
    ):  # fmt: skip
        screen = summary_screen(result(**red, test=test, acceptance_criteria=criteria))
        assert "accept" not in screen
    nothing = summary_screen(result(**review, changed_files=[]))
    assert 'AC-4 --unchanged --reason "..."' in nothing


def test_another_run_than_the_newest_is_named_in_the_commands() -> None:
    assert "agentrunner diff users-api-7f3a" in summary_screen(result(), target="users-api-7f3a")


QUESTION = {
    "id": "3fa91c0aa1b2",
    "kind": "ask_human",
    "text": '"unique e-mail": is Foo@x.jp the same address as foo@x.jp?',
    "options": ["the same (compare in lower case)", "different"],
}
PLAN = {
    "id": "3fa91c0aa1b2",
    "kind": "plan",
    "text": "Approve the plan: 2 criteria.",
    "options": [],
    "subject": '{"criteria":[{"check":{"kind":"command","run":"pytest -q"},"id":"AC-1"},'
    '{"check":null,"id":"AC-2"}]}',
}


@pytest.mark.parametrize(("name", "waiting"), [("question", QUESTION), ("plan", PLAN)])
def test_paused_screen(name: str, waiting: dict[str, Any], golden: Golden) -> None:
    paused = result(
        state="PLANNING", exit_code=4, reason=None, worker_runs=1, loops=0, waiting=waiting
    )
    golden(f"screens/paused-{name}.txt", paused_screen(paused, where="hana@devbox") + "\n")


def test_approval_shows_the_subject_with_every_control_character_visible() -> None:
    subject = '{"criteria":[{"check":{"run":"rm -rf x\\u001b[8m hidden\\r\\u202e"}}]}'
    screen = approval_screen(InboxItem.model_validate({**PLAN, "subject": subject}))
    assert "rm -rf x\\x1b[8m hidden\\x0d\\u202e" in screen
    assert "3fa91c0aa1b2" in screen


def test_approval_of_a_worker_shows_the_whole_prompt() -> None:
    subject = '{"order":{"worker":"codex-cli"}}'
    waiting = InboxItem.model_validate({**PLAN, "kind": "worker", "subject": subject})
    screen = approval_screen(waiting, "Do this.\n" * 50 + f"And {EVIL} that.")
    assert screen.count("Do this.") == 50
    assert "\\x1b]52;c;aGk=\\x07" in screen and "\x1b" not in screen


def test_a_plan_and_a_prompt_can_be_edited() -> None:
    assert "[e]" in approval_prompt("plan") and "[e]" in approval_prompt("worker")
    assert "[e]" not in approval_prompt("complete")


def test_hostile_texts_are_harmless_in_every_field() -> None:
    hostile = result(
        title=EVIL, reason=EVIL, state="FAILED", note=f"/x/{EVIL}", proof=[EVIL],
        changed_files=[EVIL], acceptance_criteria=[criterion(EVIL, EVIL, "failed", detail=EVIL)],
        test={**TESTS, "command": EVIL, "exit_code": 1}, missing=[EVIL],
    )  # fmt: skip
    waiting = {"id": EVIL, "kind": "ask_human", "text": EVIL, "options": [EVIL]}
    screens = [
        summary_screen(hostile, warnings=[EVIL]),
        summary_screen(changed(hostile, missing=[])),
        paused_screen(changed(hostile, waiting=waiting), where=EVIL),
        paused_screen(changed(hostile, waiting={**waiting, "kind": "plan"}), where=EVIL),
    ]
    for screen in screens:
        assert not any(character in screen for character in "\x1b\x9b\r\x07\u202e")


def test_colours_come_only_when_wanted() -> None:
    assert "\x1b[1;32mCOMPLETE\x1b[0m" in summary_screen(result(), paint=Paint(True))
    assert "\x1b" not in summary_screen(result())


def test_a_run_that_went_in_a_circle_says_so_first() -> None:
    stuck = result(state="NEEDS_REVIEW", reason="stuck", text="The same changed nothing 3 times.",
                   missing=["AC-1 is not proven yet"])  # fmt: skip
    assert missing_sentences(stuck) == [
        "The same changed nothing 3 times.",
        "AC-1 is not proven yet",
    ]


def test_a_run_that_ended_for_its_budget_is_given_more() -> None:
    screen = summary_screen(result(state="FAILED", reason="budget: tokens"))
    assert "agentrunner resume --budget tokens=+AMOUNT" in screen
    assert 'resume -m "..."' not in screen


def test_what_is_missing_is_said_once() -> None:
    """After a refused `accept` the failure is in its text, in what is missing and in a warning."""
    red = "`pytest` exits 1: red before and still: test_fee"
    refused = f"The acceptance was refused: {red}"
    also = "AC-1 failed: pytest → 1"
    screen = summary_screen(
        result(state="NEEDS_REVIEW", text=f"{red}.", missing=[f"{red}.", refused, also]),
        warnings=[f"{red}; {also}"],
        width=200,
    )
    assert screen.count(red) == 1 and screen.count(also) == 1 and refused in screen


def test_a_run_that_was_stopped_says_so_wherever_it_is_shown() -> None:
    stopped = result(state="RUNNING", reason=None)
    said = "it was interrupted; the run is kept"
    assert said in summary_screen(stopped) and said not in summary_screen(stopped, driven=True)


def test_a_criterion_without_evidence_is_not_called_not_shown() -> None:
    """*Shown* is a grade."""
    waits = result(
        state="FAILED", missing=[], acceptance_criteria=[criterion("AC-1", "It adds", "unknown")]
    )
    assert "AC-1 has no evidence yet" in summary_screen(waits)
    assert "not shown" not in summary_screen(waits)


def test_a_cut_sentence_ends_with_an_ellipsis() -> None:
    words = "test_cart.CartTest.test_three_pieces was red before and is skipped now; " * 4
    screen = summary_screen(
        result(state="NEEDS_REVIEW", missing=[f"{name}: {words}" for name in "abc"])
    )
    ends = [line for line in screen.splitlines() if line.endswith("…") and "red before" in line]
    assert len(ends) == 3
    whole = summary_screen(result(state="NEEDS_REVIEW", missing=[words]))
    assert "…" not in whole.split("AC-1")[0], "one sentence has room for four lines"


def test_a_command_wider_than_the_window_breaks_at_words_and_can_be_pasted() -> None:
    lines = next_lines([("agentrunner accept shop-7f3a AC-1 AC-2 AC-3 --unchanged", "why")], 44)
    assert lines == [
        "Next:  agentrunner accept shop-7f3a AC-1 \\",
        "         AC-2 AC-3 --unchanged",
        "         why",
    ]


def test_what_has_no_room_beside_a_command_stands_below_it() -> None:
    steps = [("agentrunner accept " + "r" * 20, "your yes is recorded"), ("agentrunner undo", "x")]
    assert next_lines(steps, 60) == [
        "Next:  agentrunner accept " + "r" * 20,
        "         your yes is recorded",
        "       agentrunner undo  x",
    ]


@pytest.mark.parametrize(
    ("grade", "first"),
    [
        ("proven", "COMPLETE  "),
        ("shown", "COMPLETE (shown)  "),
        ("accepted", "COMPLETE (accepted)  "),
        ("kept", "COMPLETE (kept)  "),
    ],
)
def test_the_first_line_says_what_a_complete_run_rests_on(grade: str, first: str) -> None:
    ended = result(grade=grade, acceptance_criteria=CRITERIA[:1])
    for width in (44, 80, 120):
        head = summary_screen(ended, width=width).splitlines()[0]
        assert head.startswith(first) and cell_width(head) <= width
    assert "judged" in summary_screen(result()).splitlines()[0]
    failed = result(state="FAILED", exit_code=1, grade=grade, acceptance_criteria=CRITERIA[:1])
    assert summary_screen(failed).startswith("FAILED  ")


def test_tests_that_the_planner_mapped_are_named_so() -> None:
    rows = [
        criterion("AC-1", "It adds", evidence="tested"),
        criterion("AC-2", "It subtracts", evidence="tested"),
        criterion("AC-3", "It is fast", "unknown", "none"),
    ]
    mapped = [{**one, "mapped_by": "planner"} for one in rows]
    said = "AC-1, AC-2: their tests are mapped by the planner"
    assert said in summary_screen(result(acceptance_criteria=mapped), all_rows=True)
    assert said not in summary_screen(result(acceptance_criteria=rows), all_rows=True)


@pytest.mark.parametrize(("failed", "named"), [(0, True), (1, False)])
def test_what_a_command_printed_is_a_step_where_no_test_is_red(failed: int, named: bool) -> None:
    ended = ENDS["failed"]
    assert ended.test is not None
    test = ended.test.model_copy(update={"exit_code": 1, "failed": failed, "red": []})
    screen = summary_screen(ended.model_copy(update={"test": test}))
    assert ("agentrunner logs --tests" in screen) is named


@pytest.mark.parametrize("width", [80, 43])
def test_no_name_at_the_head_of_a_run_is_cut(width: int) -> None:
    title = "Refuse what an account may not see, with a sentence that says why it may not"
    ended = summary_screen(result(title=title), width=width)
    name = "refuse-what-an-account-may-not-see-a1b2"
    fields = {"state": "PLANNING", "exit_code": 4, "reason": None, "waiting": PLAN}
    waits = paused_screen(result(**fields, run_id=name), where="hana@devbox", width=width)
    assert title in " ".join(ended.split()) and f"{name} ·" in waits
    for screen in (ended, waits):
        head = screen.split("\n\n")[0].split("\n")
        assert max(map(cell_width, head)) <= width


def test_a_cancelled_run_is_named_in_the_commands_as_they_take_it_no_other_way() -> None:
    ended = result(state="FAILED", exit_code=1, reason="cancelled")
    shown = " ".join(summary_screen(ended).split())
    assert f'agentrunner resume {ended.run_id} -m "..."' in shown
    other = result(state="FAILED", exit_code=1, reason="loop_limit")
    assert 'agentrunner resume -m "..."' in " ".join(summary_screen(other).split())
