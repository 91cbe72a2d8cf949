"""The pattern library and the worker's prompt."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from jinja2 import UndefinedError

from agentrunner.config.markdown import Language
from agentrunner.config.spec import Check
from agentrunner.errors import UsageError
from agentrunner.prompts import Pattern, choose, load_patterns, render, worker_prompt
from agentrunner.state.run_state import Criterion

NAMES = ["implement_feature", "run_all_checks", "ensure_git_clean", "summarize_work_as_json"]
LANGUAGES: tuple[Language, ...] = ("en", "ja")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_shipped_catalog(language: Language) -> None:
    library = load_patterns(None, language)
    assert list(library) == NAMES
    assert "git status" in library["ensure_git_clean"].instructions
    assert (
        '{"cmd": "npm test", "status": "passed"}' in library["summarize_work_as_json"].instructions
    )


def test_a_file_adds_and_overrides() -> None:
    text = """
version: 1
patterns:
  run_all_checks: {summary: Ours, instructions: Run make check.}
  write_docs:
    summary: Write the docs
    instructions: |
      - Update README.md.
"""
    library = load_patterns(text, "en")
    assert list(library) == [*NAMES, "write_docs"]
    assert library["run_all_checks"].instructions == "Run make check."
    assert library["write_docs"].instructions == "- Update README.md."
    assert library["implement_feature"] == load_patterns(None, "en")["implement_feature"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("version: 2\npatterns: {}", "version"),
        ("patterns: {}", "version"),
        ("version: 1\npatterns: {a: {summary: x}}", "instructions"),
        ("version: 1\npatterns: {a: {summary: x, instructions: ' '}}", "instructions"),
        ("version: 1\npatterns: {a: {summary: x, instructions: y, more: z}}", "more"),
        ("version: 1\npatterns: {'# a': {summary: x, instructions: y}}", "patterns"),
        ("- x", "The patterns file"),
    ],
)
def test_what_is_no_catalog(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        load_patterns(text, "en")
    assert caught.value.code == "patterns-invalid"


def test_a_mistake_is_told_with_its_line() -> None:
    with pytest.raises(UsageError) as caught:
        load_patterns("version: 1\npatterns:\n  a:\n    summary: x\n    instructions: ''\n", "en")
    assert caught.value.path == "patterns file:5"


def test_anchors_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        load_patterns("version: 1\npatterns: &a {}", "en")
    assert caught.value.code == "forbidden-yaml"


def test_choosing_keeps_order_and_names_the_unknown() -> None:
    library = load_patterns(None, "en")
    chosen, unknown = choose(library, ["run_all_checks", "nope", "implement_feature", "nope"])
    assert list(chosen) == ["run_all_checks", "implement_feature"]
    assert unknown == ["nope"]


CRITERIA = {
    "en": [
        Criterion(
            id="AC-1",
            description="An unknown code answers 404.",
            check=Check(kind="command", run="pytest -q tests/test_links.py"),
            detail="also for codes of other lengths\nand for empty ones",
        ),
        Criterion(id="AC-2", description="The README shows an example.", critical=False),
    ],
    "ja": [
        Criterion(
            id="AC-1",
            description="未知のコードには 404 を返す。",
            check=Check(kind="command", run="pytest -q tests/test_links.py"),
            detail="長さの違うコードでも\n空のコードでも",
        ),
        Criterion(id="AC-2", description="README に例がある。", critical=False),
    ],
}
BODY = {
    "en": "Add the route GET /CODE to app/links.py.\n\nAn unknown code answers 404.\n",
    "ja": "app/links.py に GET /CODE を追加する。\n\n未知のコードには 404 を返す。\n",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_golden_worker_prompt(language: Language, golden: Callable[[str, str], None]) -> None:
    chosen, _ = choose(load_patterns(None, language), ["implement_feature", "run_all_checks"])
    text = worker_prompt(BODY[language], CRITERIA[language], chosen, language)
    golden(f"prompts/worker.{language}.md", text)


def test_the_worker_prompt_has_the_shape_of_its_parts_in_order() -> None:
    pattern = Pattern(summary="Sum.", instructions="Do {{ this }}.")
    text = worker_prompt("Body {{ x }} {% y %}", CRITERIA["en"], {"mine": pattern}, "en")
    parts = [
        "You are the implementation engineer",
        "1. mine: Sum.",
        "# Task overview",
        "Body {{ x }} {% y %}",
        "- AC-1: An unknown code",
        "- AC-2 (optional): ",
        "# Contents of the command patterns",
        "## mine",
        "Do {{ this }}.",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_without_patterns_nothing_is_said_of_them() -> None:
    text = worker_prompt("Body.", [], {}, "en")
    assert "pattern" not in text and "criteria" not in text
    assert text.endswith("Body.\n")


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("worker", "en", body="x", criteria=[])
