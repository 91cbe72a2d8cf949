"""What a person decides about, in reading order, with nothing of the subject left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, get_args

import pytest

from agentrunner.config.markdown import Language
from agentrunner.prompts import choose, load_patterns, own_part, worker_prompt
from agentrunner.results import DecisionEntry, InboxItem, PeopleSummary
from agentrunner.screens.approval import subject_lines
from agentrunner.screens.layout import wrap
from agentrunner.screens.paused import (
    approval_prompt,
    approval_screen,
    asked_screen,
    letters,
    paused_screen,
)
from agentrunner.screens.summary import summary_screen
from agentrunner.state.people import QuestionKind
from agentrunner.verification.evidence.findings import EXAMINED
from tests.kit.screen_samples import EVIL, result

Golden = Callable[[str, str], None]
PLAN = {
    "criteria": [
        {"id": "AC-1", "description": "A valid POST returns 201", "line": 9,
         "check": {"kind": "command", "run": "pytest -q -k create", "cwd": "api",
                   "timeout_sec": 30.0}},
        {"id": "AC-2", "description": "Error texts are friendly", "critical": False},
        {"id": "AC-3", "description": "Migration is reversible", "origin": "model",
         "check_origin": "model", "rationale": "asked by nobody",
         "check": {"kind": "file", "path": "README.md", "contains": "a", "matches": "b+"}},
    ],
    "surprise": "x",
}  # fmt: skip
ORDER = {
    "order": {
        "worker_run_id": "1-001", "worker": "codex-cli", "member": "codex-cli", "mode": "exec",
        "prompt": {"path": "prompts/1.md", "size": 1200, "sha256": "ab" * 32}, "model": "gpt-5.5",
        "flags": ["--fast"], "env": {}, "tool_specific": {}, "reason": "Write the endpoint",
        "loop": 0, "tries": 0, "waits": 0, "waited_sec": 0.0,
    },
}  # fmt: skip


def screen(kind: str, subject: Any, text: str = "Approve?", **more: Any) -> str:
    waiting = {"id": "3fa91c0aa1b2", "kind": kind, "text": text, "options": []}
    return approval_screen(
        InboxItem.model_validate({**waiting, "subject": json.dumps(subject)}), **more
    )


def test_a_plan_is_read_as_criteria_with_their_checks(golden: Golden) -> None:
    golden("screens/approve-plan.txt", screen("plan", PLAN, "Approve the plan: 3 criteria.") + "\n")


def test_nothing_of_a_plan_is_left_out() -> None:
    shown = screen("plan", PLAN)
    for value in ("api", "30.0", "a", "b+", "asked by nobody", "surprise: x", "line 9"):
        assert value in shown


def test_a_worker_is_why_it_starts_then_its_prompt_and_who_gets_it(golden: Golden) -> None:
    shown = screen("worker", ORDER, "Start codex-cli.", prompt="Do this.\nThen that.")
    golden("screens/approve-worker.txt", shown + "\n")
    assert shown.index("Start") < shown.index("Do this.") < shown.index("codex-cli, model gpt-5.5")


@pytest.mark.parametrize("language", ["en", "ja"])
def test_what_is_particular_to_an_order_is_seen_first_and_on_one_screen(language: Language) -> None:
    """What every prompt says is folded where the whole can be paged, and else comes last."""
    chosen, _ = choose(load_patterns(None, language), ["implement_feature"])
    prompt = worker_prompt("Do this.\n\nThen that.", [], chosen, language)
    begins, ends = own_part(prompt, chosen, language)
    assert prompt[begins:ends].strip() == "Do this.\n\nThen that."
    order = {**ORDER["order"], "own_begins": begins, "own_ends": ends}
    asked: dict[str, Any] = {"prompt": prompt, "width": 80}
    folded = screen("worker", {"order": order}, "Start it.", **asked, height=24)
    assert folded.index("Start it.") < folded.index("Do this.") < folded.index("Then that.")
    assert "of every prompt: [p] shows it whole" in folded and len(folded.split("\n")) < 24
    frame = next(line for line in prompt.split("\n") if line)[:12]
    assert frame not in folded
    whole = screen("worker", {"order": order}, "Start it.", **asked)
    assert whole.index("Do this.") < whole.index(frame) and "[p]" not in whole
    assert "own_" not in whole + folded


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30)])
def test_a_long_prompt_is_cut_so_that_all_else_of_a_worker_fits_the_terminal(
    width: int, height: int
) -> None:
    reason = "The endpoint is there, and a taken address is not refused yet. " * 4 + "Refuse it."
    subject = {"order": {**ORDER["order"], "reason": reason}}
    text, prompt = f"Start codex-cli: {reason}", "Do this.\n" * 300
    asked = {"prompt": prompt, "width": width}
    lines = screen("worker", subject, text, height=height, **asked).split("\n")
    letters_too = len(lines) + len(wrap(approval_prompt("worker"), width - 4))
    assert letters_too == height
    shown = " ".join(" ".join(lines).split())
    for words in ("Its prompt: Do this. Do this.", "codex-cli, model gpt-5.5", "--fast", text):
        assert words in shown
    assert shown.index(text) < shown.index("Do this.")
    assert shown.count(reason) == 1 and "id 3fa91c0aa1b2" in shown
    assert f"… and {300 + 1 - shown.count('Do this.')} more lines: [p] shows it whole" in shown
    assert screen("worker", subject, text, **asked).count("Do this.") == 300
    assert "more lines" not in screen("worker", subject, text, prompt="Do this.", height=height)


def test_a_worker_s_trouble_ends_with_the_one_useful_sentence() -> None:
    subject = {"why": "its key is refused", "code": "worker-auth", **ORDER}
    text = "Its key is refused. Set OPENAI_API_KEY to a key that is good"
    shown = screen("worker_failed", subject, text, prompt="Do this.\n" * 60)
    again = {"order": {**ORDER["order"], "tries": 1}}
    more = screen("worker_failed", {**subject, **again}, text)
    assert "tries" not in more and "tried    1 time without a result" in more
    assert len(shown.split("\n")) < 16 and text in shown.rstrip().split("\n\n")[-1]


DECIDES = {"tests_changed", "inputs_written", "tool_changed", "tool_exchanged"}
"""Codes of findings about what decides, which the heading of their kind of question says."""


@pytest.mark.parametrize("code", sorted(EXAMINED))
def test_the_heading_says_what_was_found(code: str) -> None:
    heading = screen("tests_changed", {"code": code, "paths": []}).splitlines()[0].strip()
    assert (heading == "what decides was changed, or is in doubt") == (code in DECIDES)


def test_work_that_is_missing_is_not_called_a_changed_test() -> None:
    shown = screen(
        "tests_changed", {"code": "work_unasked"}, "Nothing reads --all. Is this wanted?"
    )
    assert shown.startswith("  requested work may be missing\n")


def test_a_completion_is_its_evidence_and_files(golden: Golden) -> None:
    subject = {"tree": "9c41f2e" + "0" * 33, "verdict": "AC-1 failed before and passes now."}
    shown = screen(
        "complete", subject, "Accept it as complete? AC-1 failed before.", result=result()
    )
    golden("screens/approve-complete.txt", shown + "\n")


def test_a_completion_says_why_the_one_before_was_rejected() -> None:
    def after(*decisions: tuple[str, str, str, int]) -> str:
        made = [
            DecisionEntry(id="c-1", kind=kind, asked="?", decision=decision, text=text, at="",
                          by="", round=number)
            for kind, decision, text, number in decisions
        ]  # fmt: skip
        people = PeopleSummary(decisions=made)
        return screen("complete", {"tree": "9c41f2e"}, result=result(people=people))

    no = ("complete", "reject", "The README still names the old flag.", 2)
    said = "you rejected this in round 2: The README still names the old flag."
    assert said in after(no, ("worker", "approve", "", 3))
    assert "rejected" not in after(no, ("complete", "approve", "", 3))
    assert "rejected" not in after(("worker", "reject", "Not so.", 1))


@pytest.mark.parametrize("kind", ["plan", "worker", "worker_failed", "complete", "tests_changed"])
def test_control_characters_are_visible_in_every_kind(kind: str) -> None:
    subjects: list[Any] = [
        {
            "criteria": [
                {"id": EVIL, "description": EVIL, "check": {"kind": "command", "run": EVIL}}
            ]
        },
        {"order": {"worker": EVIL, "reason": EVIL, "env": {"A": EVIL}}, EVIL: EVIL},
        {"tree": EVIL, "verdict": EVIL, "x": EVIL},
        {"finding": EVIL, "paths": [EVIL], "diff": EVIL},
        [EVIL],
    ]
    for subject in subjects:
        shown = screen(kind, subject, EVIL, prompt=EVIL)
        assert not any(character in shown for character in "\x1b\x9b\r\x07\u202e")


def test_the_letters() -> None:
    assert list(letters("plan")) == ["y", "e", "n", "q"]
    assert list(letters("complete")) == ["y", "d", "n", "q"]
    assert list(letters("worker")) == ["y", "e", "p", "n", "q"]


def test_who_mapped_the_tests_is_told_in_words() -> None:
    item = {"id": "AC-1", "description": "It adds", "tests": ["t.A.b"], "tests_origin": "model"}
    lines = "\n".join(subject_lines("plan", json.dumps({"criteria": [item]}), "", 80))
    assert "tests: t.A.b   (from the planner)" in lines and "tests_origin" not in lines


def test_why_tests_cannot_run_is_said_once() -> None:
    why = "zzreq is named in requirements.txt and is not installed"
    subject = {"tests": ["tests.test_far"], "why": [why]}
    text = f"1 of the tests cannot run here, while others do: {why} (tests.test_far). Go on?"
    shown = " ".join(screen("tests_could_not_run", subject, text).split())
    assert shown.count(why) == 1 and shown.count("tests.test_far") == 1
    more = screen("tests_could_not_run", {**subject, "tests": ["tests.test_far", "more.b"]}, text)
    assert "more.b" in more


@pytest.mark.parametrize("kind", get_args(QuestionKind))
@pytest.mark.parametrize(
    "subject", ["", "{}", "null", "[]", "7", "cut {", '{"order": null}', '{"tests": null}']
)
def test_a_question_is_shown_whatever_its_subject_is(kind: QuestionKind, subject: str) -> None:
    item = InboxItem(id="3fa91c0aa1b2", kind=kind, text="May it?", options=[], subject=subject)
    assert "May it?" in approval_screen(item, "Do this.")
    assert "May it?" in asked_screen(item)
    waits = result(state="PLANNING", exit_code=4, waiting=item)
    assert "May it?" in paused_screen(waits, where="hana@devbox")


def test_an_object_of_a_diff_is_no_two_lines_of_digits() -> None:
    diff = f"diff --git a/t.py b/t.py\nindex {'1a' * 20}..{'2b' * 20} 100644\n--- a/t.py\n"
    seen = screen("tests_changed", {"paths": ["t.py"], "diff": diff}, "Is this wanted?", width=44)
    assert "    index 1a1a1a1a..2b2b2b2b 100644\n" in seen
    found = {"code": "tests_changed", "message": "t.py", "blocks": True, "remedy": ""}
    ended = result(findings=[{**found, "paths": ["t.py"], "tests": [], "diff": diff}])
    assert "    index 1a1a1a1a..2b2b2b2b 100644\n" in summary_screen(ended, width=44, all_rows=True)


@pytest.mark.parametrize("kind", ["tests_changed", "protected_path"])
@pytest.mark.parametrize("diff", ["", "--- a/t.py\n+++ b/t.py\n"])
def test_a_change_is_shown_without_the_codes_and_ids_that_programs_read(
    kind: str, diff: str
) -> None:
    subject = {
        "code": "tests_changed",
        "finding": "6f88750e990f-f49dfe0fe660",
        "others": ["1f88750e990f-f49dfe0fe660"],
        "paths": ["t.py"],
        "tests": ["test_a"],
        "tree": "f49dfe0fe660",
        "diff": diff,
    }
    shown = screen(kind, subject, "It passes only as it was left. Is this wanted?")
    assert "t.py" in shown and "test_a" in shown and "f49dfe0" in shown
    assert not any(word in shown for word in ("code:", "finding:", "others", "88750e990f"))
