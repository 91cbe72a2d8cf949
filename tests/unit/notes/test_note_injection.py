"""Whatever a model, a worker or a PRD writes, the note's structure stays ours."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from agentrunner.notes import markdown
from agentrunner.notes.render import render_note
from agentrunner.state.people import People, PersonLine, Question
from agentrunner.state.run_state import Criterion
from agentrunner.storage.run_log import History
from agentrunner.text.terminal import sanitize
from tests.kit.examples import examples
from tests.unit.notes.note_samples import (
    context_of,
    evidence_of,
    history_of,
    record,
    spec_of,
    view_of,
)

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
HOSTILE = [
    "```", "````\n", "~~~", "</details>", "<script>", "<!-- ", "-->", "<img src=x>", "<details>",
    "|", "\\|", "\\", "\n", "\r", "\n\n", "# ", "## 6. Notes", "\n# Forged\n", "- [x] AC-1", "[x]",
    "- ", "* ", "+ ", "1. ", "1) ", "> ", "---", "\n---\n", "===", "\n===\n", "    code", "\t",
    "![a](http://x)", "[a](http://x)", "[a]: http://x", "<http://x>", "http://x.y", "www.x.y",
    "a@b.cd", "&lt;", "&#60;", "*", "**", "_", "__init__", "~~", "`", "``", "`a`", "`|`", "`a\\`",
    "[^1]", "\u2028", "\x1b[31m", "\x0b", "\x0c", "\x85", "\u202e", "\ud800", "\0", "a", "日本",
    " ",
]  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=3)), max_size=8).map("".join)


def tokens(text: str) -> list[Token]:
    return [
        inner
        for token in PARSER.parse(text)
        for inner in (token, *(token.children or ()))
        if inner.type != "inline"
    ]


def headings(text: str) -> list[str]:
    parsed = PARSER.parse(text)
    return [
        f"{opening.tag} {content.content}"
        for opening, content in pairwise(parsed)
        if opening.type == "heading_open"
    ]


def checkboxes(text: str) -> list[str]:
    parsed = PARSER.parse(text)
    return [
        re.sub(r"(\[[x ]\] \S*).*", r"\1", item.content)
        for item in parsed
        if item.type == "inline" and re.match(r"\[[xX ]\]", item.content)
    ]


def html(text: str) -> list[str]:
    return [t.content.strip() for t in tokens(text) if t.type in ("html_block", "html_inline")]


def bare(text: str) -> str:
    """Without what is shown as code in place of backticks, and without blanks."""
    return "".join(text.replace("`", "").split())


OWN_HTML = {
    "core": [r"<!-- agentrunner-note {.*} -->", r"<details><summary>Original PRD</summary>",
             r"</details>"],
    "architecture": [r"<!-- agentrunner-note {.*} -->",
                     r"<details><summary>Original PRD</summary>", r"</details>"],
}  # fmt: skip
CORE = [
    "h1 Task Note", "h2 1. Summary", "h2 2. PRD summary", "h2 3. Acceptance Criteria",
    "h2 4. Execution log (Meta / Worker)", "h3 4.1 Meta Calls", "h4 ", "h4 ", "h4 ",
    "h3 4.2 Worker Runs", "h4 Run ", "h2 5. Test result",
    "h2 Decisions of people", "h2 6. Notes / open points",
]  # fmt: skip
ARCHITECTURE = [
    "h1 Task users-api:", "h2 Overview", "h2 PRD summary", "h2 Acceptance Criteria",
    "h2 Timeline", "h3 Run #1",
    "h2 Decisions of people", "h2 Retrospective / what to reuse next time",
]  # fmt: skip


def hostile_note(text: str, template: str) -> str:
    """A note in which every text that is not ours is `text`."""
    context = context_of("en", "FAILED")
    evidence = evidence_of("FAILED")
    assert evidence is not None and evidence.test is not None
    storable = text.encode("utf-8", "replace").decode()
    outcome = evidence.test.model_copy(
        update={"command": storable, "failing": [storable], "tail": storable, "finding": storable}
    )
    checks = [
        check.model_copy(update={"what": storable, "detail": storable, "exit_code": None})
        for check in evidence.checks
    ]
    said = {"asked": storable, "text": storable, "by": storable}
    context["people"] = People(
        older=[PersonLine(line=storable)],
        recent=[one.model_copy(update=said) for one in context["people"].recent],
    )
    context["evidence"] = evidence.model_copy(
        update={"test": outcome, "checks": checks, "proof": [storable],
                "changed_files": [storable]}
    )  # fmt: skip
    assessment = context["assessment"]
    assert assessment is not None
    context["assessment"] = assessment.model_copy(update={"summary": storable, "risks": [storable]})
    context["criteria"] = [
        Criterion(id=f"AC-1{storable}", description=storable, comment=storable, status="failed"),
        Criterion(id="AC-2", description=storable, proof=storable, status="passed"),
    ]
    ref = {"path": storable, "size": 3}
    run = {
        "worker_run_id": f"w1{text}", "worker": text, "outcome": text, "exit_code": 0,
        "summary": text, "error": text, "output": ref, "started_at": text, "ended_at": text,
        "commands": [{"command": text, "status": text}], "changes": [{"path": text}],
    }  # fmt: skip
    meta: dict[str, Any] = {"type": text, "at": text, "error": text, "model": text}
    history = History(
        (
            *history_of("en", worker_runs=0).records,
            record("meta_call", "h", **meta, request=ref, response=ref),
            record("worker_run", "h", **run),
            record("decision", "h", worker_run_id=f"w1{text}", reason=text, used_patterns=[text]),
            record("decision", "i", action=text, reason=text),
            record("question", "h", text=text),
            record("answer", "h", decision="reject", text=text),
            record("human_edit", "h", paths=[text]),
            record("acceptance", "h", criteria=[text], by=text, at=text, reason=text),
            record("warning", "h", message=text),
        )
    )
    spec = spec_of(title=text, prd_text=text, detail="full", repo=f"/r{text}")
    view = view_of("en", "FAILED", spec=spec, context=context, history=history, tail=lambda _: text)
    return render_note(view, template, "en")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS, template=st.sampled_from(["core", "architecture"]))
def test_structure_is_the_templates(text: str, template: str) -> None:
    note = hostile_note(text, template)
    expected = CORE if template == "core" else ARCHITECTURE
    found = headings(note)
    assert len(found) == len(expected)
    assert all(map(str.startswith, found, expected)), found
    boxes = checkboxes(note)
    assert [box[:6] for box in boxes] == (["[ ] AC", "[x] AC"] if template == "core" else [])
    own = OWN_HTML[template]
    assert len(html(note)) == len(own)
    assert all(re.fullmatch(ours, found) for ours, found in zip(own, html(note), strict=True))
    kinds = {token.type for token in tokens(note)}
    assert not kinds & {"link_open", "image", "s_open", "code_block"}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS, template=st.sampled_from(["core", "architecture"]))
def test_every_block_is_where_it_is_with_harmless_words(text: str, template: str) -> None:
    def blocks(text: str) -> list[str]:
        return [token.type for token in PARSER.parse(hostile_note(text, template))]

    assume(sanitize(f"{text}x").strip())  # an unfinished control string swallows what follows it
    assert blocks(f"{text}x") == blocks("x")


@settings(max_examples=examples(300), deadline=None)
@given(TEXTS)
def test_words_stay_words(text: str) -> None:
    word = sanitize(text)
    for made in (
        f"{markdown.inline(word)}",
        f"- {markdown.inline(word)}",
        f"# {markdown.inline(word)}",
    ):
        kinds = {token.type for token in tokens(made)}
        assert kinds <= {
            "paragraph_open", "paragraph_close", "text", "code_inline", "text_special",
            "bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close",
            "heading_open", "heading_close",
        }  # fmt: skip
    shown = "".join(token.content for token in tokens(str(markdown.inline(word))))
    assert bare(shown) == bare(word)


@settings(max_examples=examples(300), deadline=None)
@given(TEXTS)
def test_code_and_cells_say_what_was_written(text: str) -> None:
    word = sanitize(text)
    flat = " ".join(word.split())
    spans = [t.content for t in tokens(f"x {markdown.code(word)}") if t.type == "code_inline"]
    assert spans == ([flat] if flat else [])
    table = f"|a|b|\n|-|-|\n| {markdown.cell_code(word)} | {markdown.inline(word)} |\n"
    cells = [t for t in PARSER.parse(table) if t.type == "inline"][2:]
    for cell in cells:
        shown = "".join(child.content for child in cell.children or ())
        assert bare(shown) == bare(word)


@settings(max_examples=examples(300), deadline=None)
@given(TEXTS)
def test_a_fence_holds(text: str) -> None:
    parsed = PARSER.parse(f"{markdown.fence(sanitize(text))}\n\nafter\n")
    assert [token.type for token in parsed] == [
        "fence",
        "paragraph_open",
        "inline",
        "paragraph_close",
    ]
    assert parsed[0].content.strip("\n") == sanitize(text).strip("\n").rstrip("\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("src/users.py: test_users_v2 (new)", "src/users.py: test_users_v2 (new)"),
        ("use `pytest -q` here", "use `pytest -q` here"),
        ("2.5 times", "2.5 times"),
        ("2. times", "2\\. times"),
        ("- item", "\\- item"),
        ("__init__", "\\_\\_init\\_\\_"),
        ("see https://x.y", "see https\\://x.y"),
        ("C# and #3", "C# and \\#3"),
        ("AT&T &amp;", "AT\\&T \\&amp;"),
    ],
)
def test_plain_text_stays_readable(text: str, expected: str) -> None:
    assert markdown.inline(text) == expected


def test_the_waiting_question_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    question = Question(
        id="abc",
        kind="ask_human",
        text="</details>\n# Yes\n- [x] AC-1",
        options=["![x](http://y)"],
        subject="{}",
        state=context_of("en", "WAITING")["state"],
    )
    monkeypatch.setattr("tests.unit.notes.note_samples.question_of", lambda _: question)
    note = render_note(view_of("en", "WAITING"), "core", "en")
    assert "h1 Yes" not in headings(note)
    assert len(html(note)) == 3
    assert not any(token.type == "image" for token in tokens(note))
