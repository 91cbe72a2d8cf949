"""What the note says, and how much of it."""

from __future__ import annotations

import time
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from agentrunner.config.spec import NOTE_TEMPLATES, NoteSpec
from agentrunner.errors import UsageError
from agentrunner.errors.runs import BadNoteTemplate
from agentrunner.notes.note_model import BillLine, Line
from agentrunner.notes.render import MAX_BYTES, TOP_LINES, Words, render_note
from agentrunner.notes.view import cut_bytes, prd_summary
from agentrunner.state.people import Question
from agentrunner.state.run_state import Criterion, Finding, Verdict
from agentrunner.state.state_model import FileRef
from agentrunner.storage.run_log import History
from agentrunner.text.redaction import Redactor
from agentrunner.verification.evidence.findings import approval_of
from tests.unit.notes.note_samples import (
    context_of,
    evidence_of,
    history_of,
    record,
    spec_of,
    view_of,
)


def keys(lines: tuple[Line, ...]) -> list[str]:
    return [line.key for line in lines]


@pytest.mark.parametrize(
    ("ending", "label", "decide", "commands"),
    [
        ("COMPLETE", "COMPLETE", ["finding_dependencies_changed", "decide_judged"],
         ["do_look", "do_commit"]),
        ("UNPROVEN", "UNPROVEN", ["finding_dependencies_changed", "decide_judged"],
         ["do_look", "do_commit"]),
        ("NEEDS_REVIEW", "NEEDS_REVIEW", ["finding_dependencies_changed", "decide_judged"],
         ["do_accept", "do_send_back", "do_look"]),
        ("FAILED", "FAILED",
         ["missing_test", "missing_red", "missing_criterion", "missing_proof"],
         ["do_logs", "do_hint", "do_look"]),
        ("WAITING", "WAITING", ["question_ask_human", "question_options"],
         ["do_answer", "do_show"]),
        ("STOPPED", "STOPPED", ["decide_stopped"], ["do_resume"]),  # it changed nothing
    ],
)  # fmt: skip
def test_each_ending_says_what_to_decide_and_do(
    ending: Any, label: str, decide: list[str], commands: list[str]
) -> None:
    view = view_of("en", ending)
    assert (view.label, keys(view.decide), keys(view.commands)) == (label, decide, commands)


@pytest.mark.parametrize(
    ("ending", "commands"),
    [
        ("COMPLETE", ["do_see", "do_plan"]),
        ("NEEDS_REVIEW", ["do_accept", "do_send_back", "do_resume", "do_see"]),
        ("FAILED", ["do_logs", "do_hint", "do_resume", "do_see"]),
        ("WAITING", ["do_answer", "do_resume", "do_see"]),
        ("STOPPED", ["do_resume", "do_see"]),
    ],
)
@pytest.mark.parametrize("language", ["en", "ja"])
def test_of_a_plans_task_the_plan_is_what_is_told(
    language: str, ending: Any, commands: list[str]
) -> None:
    spec = spec_of(language, repo="/state/trees/users-api/1", plan_repo="/home/hana/src/shop")
    view = view_of(language, ending, spec=spec)
    assert keys(view.commands) == commands
    assert view.repo == "/home/hana/src/shop"
    text = render_note(view, "core", "ja" if language == "ja" else "en")
    assert "agentrunner resume" not in text and "agentrunner undo" not in text


def test_strict_leaves_a_judged_criterion_open() -> None:
    def status(completion: str) -> str:
        spec = spec_of(completion=completion)
        return next(r.status for r in view_of(ending="NEEDS_REVIEW", spec=spec).criteria[2:])

    assert (status("evidence"), status("strict")) == ("passed", "open")


def test_what_a_person_approved_is_not_asked_again() -> None:
    context = context_of("en", "COMPLETE")
    evidence = evidence_of("COMPLETE")
    assert evidence is not None
    finding = Finding(code="tests_changed", message="…", paths=["tests/a.py"])
    context["evidence"] = evidence.model_copy(update={"findings": [finding]})
    asked = view_of(context=context).decide
    context["approved"] = [approval_of(finding, evidence.tree)]
    assert "finding_tests_changed" in keys(asked)
    assert "finding_tests_changed" not in keys(view_of(context=context).decide)


@pytest.mark.parametrize("kind", ["plan", "worker", "complete", "tests_changed", "protected_path"])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_every_kind_of_question_has_words(
    monkeypatch: pytest.MonkeyPatch, kind: Any, language: Any
) -> None:
    question = Question(
        id="abc", kind=kind, text="?", subject="{}", state=context_of("en", "WAITING")["state"]
    )
    monkeypatch.setattr("tests.unit.notes.note_samples.question_of", lambda _: question)
    text = render_note(view_of(language, "WAITING"), "core", language)
    assert "agentrunner approve users-api-7f3a --id abc" in text
    assert 'agentrunner reject users-api-7f3a --id abc --reason "…"' in text


def test_both_languages_have_the_same_phrases_and_values() -> None:
    english, japanese = Words("en")._phrases, Words("ja")._phrases
    assert english.keys() == japanese.keys()

    def fields(phrase: Any) -> set[str]:
        text = phrase if isinstance(phrase, str) else phrase["other"]
        return {field for _, field, _, _ in Words("en")._formatter.parse(text) if field}

    for key, phrase in english.items():
        assert fields(phrase) == fields(japanese[key]), key


def test_an_unknown_reason_is_told_in_the_verdicts_words() -> None:
    context = context_of("en", "FAILED")
    context["verdict"] = Verdict(state="FAILED", reason="odd", text="The moon was full.")
    text = render_note(view_of(context=context), "core", "en")
    assert "The moon was full." in text


def test_the_built_in_templates_are_named_where_one_is_asked_for() -> None:
    about = NoteSpec.model_json_schema()["properties"]["template"]["description"]
    assert [
        n for n in NOTE_TEMPLATES if f"`{n}`" not in about or n not in str(BadNoteTemplate.__doc__)
    ] == []


@pytest.mark.parametrize(
    ("language", "words"), [("en", "62 % cached"), ("ja", "62 % はキャッシュ")]
)
def test_the_bill_tells_the_share_from_a_cache(language: Literal["en", "ja"], words: str) -> None:
    row = BillLine("planner", "gpt-5.5", 2, 4000, 68, "counted", tokens_cached=2480)
    for template in NOTE_TEMPLATES:
        view = replace(view_of(language), bill=(row,))
        assert f"| 4000 ({words}) / 68 |" in render_note(view, template, language)
        without = replace(view, bill=(replace(row, tokens_cached=0),))
        assert "| 4000 / 68 |" in render_note(without, template, language)


def test_no_criteria_and_no_history() -> None:
    context = context_of("en", "WAITING")
    context["criteria"] = []
    view = view_of(ending="WAITING", context=context, history=History((record("x", "y"),)))
    for template in NOTE_TEMPLATES:
        text = render_note(view, template, "en")
        assert "\n| |" not in text and "None." in text


def test_many_criteria_keep_the_top_short_and_show_those_that_need_eyes() -> None:
    context = context_of("en", "NEEDS_REVIEW")
    context["criteria"] = [
        Criterion(
            id=f"AC-{number}",
            description="d",
            status="passed",
            evidence="judged" if number in (70, 80) else "checked",
        )
        for number in range(90)
    ]
    view = view_of(ending="NEEDS_REVIEW", context=context)
    text = render_note(view, "core", "en")
    top = text.splitlines()[: TOP_LINES + 1]
    assert "---" in top
    assert any(line.startswith("| AC-70 ") for line in top)
    assert any(line.startswith("| AC-80 ") for line in top)
    assert any(line.startswith("| … |") for line in top)
    assert "- [x] AC-89: d" in text.splitlines()


def test_a_huge_run_stays_under_a_mebibyte() -> None:
    spec = spec_of(detail="full", prd_text="`長い" * 300_000)
    context = context_of("en", "FAILED")
    context["criteria"] = [
        Criterion(id=f"AC-{number}", description="長*" * 2000) for number in range(400)
    ]
    view = view_of(
        ending="FAILED",
        spec=spec,
        context=context,
        history=history_of("en", worker_runs=300),
        tail=lambda ref: "`漢" * 100_000,
    )
    begun = time.process_time()
    for template in NOTE_TEMPLATES:
        text = render_note(view, template, "en")
        assert len(text.encode()) <= MAX_BYTES
    assert time.process_time() - begun < 10


def test_a_note_that_had_to_be_cut_closes_what_was_open() -> None:
    template = (
        "# T\n\n<details>\n\n"
        "{% for _ in range(2000) %}{{ ('y ``` z\n' * 99) | fence }}\n{% endfor %}"
    )
    text = render_note(view_of(), "core", "en", template)
    assert len(text.encode()) <= MAX_BYTES
    end = text.splitlines()[-6:]
    assert "This note was longer than fits" in end[-1]
    assert "</details>" in end


def test_secrets_and_terminal_controls_are_gone() -> None:
    secret = "a*secret_with`marks`"
    history = History(
        (
            *history_of("en").records,
            record("warning", "w", code="x", message=f"leaked {secret}\x1b]0;t\x07"),
        )
    )
    spec = spec_of(prd_text=f"# Title\n\nUse {secret} \x1b[31mred\u202e.")
    view = view_of(spec=spec, history=history, redact=Redactor({"KEY": secret}).redact)
    text = render_note(view, "core", "en")
    assert "leaked \\[KEY redacted\\]" in text
    assert "Use [KEY redacted] red\\u202e." in text
    assert "secret" not in text and "\x1b" not in text


def test_outputs_are_read_only_for_full_notes() -> None:
    asked: list[str] = []

    def tail(ref: FileRef) -> str:
        asked.append(ref.path)
        return "text"

    view_of(tail=tail)
    assert asked == []
    view_of(spec=spec_of(detail="full"), tail=tail)
    assert "workers/w1/stdout" in asked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# T\n\nOne\ntwo.\n\nThree", "One two."),
        ("# 題\n一行目。\n二行目。", "一行目。二行目。"),
        ("# Only a title", "Only a title"),
        ("\x9dhidden\nOne.", "One."),
        ("# T\n\n> One\n> two.\n", "One two."),
        ("", ""),
    ],
)
def test_prd_summary(text: str, expected: str) -> None:
    assert prd_summary(text) == expected


def test_cutting_keeps_whole_characters() -> None:
    assert cut_bytes("あいう", 7) == "あい\n…"
    assert cut_bytes("あいう", 9) == "あいう"


# -- a person's own template ------------------------------------------------------------------


def test_a_custom_template_is_escaped_and_marked() -> None:
    spec = spec_of(title="<b>*x*</b>")
    text = render_note(
        view_of(spec=spec),
        "mine.j2",
        "en",
        "# {{ note.title }}\n{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m(note.title) }}"
        "{% set y %}{{ note.title }}{% endset %}{{ y }}\n{{ t('nothing') }}",
    )
    lines = text.splitlines()
    assert lines[0].startswith("<!-- agentrunner-note {")
    assert lines[1] == r"# \<b>\*x\*\</b>"
    assert lines[2] == r"[\<b>\*x\*\</b>]\<b>\*x\*\</b>"


@pytest.mark.parametrize(
    "template",
    [
        "{{ nothing_known }}",
        "{{ note.nothing_known }}",
        "{% if %}",
        "{{ 1 / 0 }}",
        "{{ 1 + note.title }}",
        "{{ t('no_such_phrase') }}",
        "{{ note.__class__.__mro__ }}",
        "{{ note.title | safe }}",
        "{% include '/etc/passwd' %}",
    ],
)
def test_a_template_that_cannot_be_rendered_is_the_callers_mistake(template: str) -> None:
    with pytest.raises(UsageError, match="template") as caught:
        render_note(view_of(), "mine.j2", "en", template)
    assert caught.value.path == "runner.note.template"
