"""The notes as people read them; refresh with `pytest tests/unit/notes --update-golden`."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest

from agentrunner.config.markdown import Language
from agentrunner.config.spec import NOTE_TEMPLATES
from agentrunner.notes.render import TOP_LINES, render_note
from tests.unit.notes.note_samples import Ending, spec_of, view_of, with_known_red

LANGUAGES: tuple[Language, ...] = get_args(Language)
ENDINGS: tuple[Ending, ...] = get_args(Ending)


@pytest.mark.parametrize("ending", ["COMPLETE", "NEEDS_REVIEW", "FAILED", "WAITING"])
@pytest.mark.parametrize("template", NOTE_TEMPLATES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_notes(
    golden: Callable[[str, str], None], language: Language, template: str, ending: Ending
) -> None:
    text = render_note(view_of(language, ending), template, language)
    golden(f"notes/{template}-{ending.lower()}.{language}.md", text)


@pytest.mark.parametrize("ending", ["UNPROVEN", "STOPPED"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_other_endings(
    golden: Callable[[str, str], None], language: Language, ending: Ending
) -> None:
    text = render_note(view_of(language, ending), "core", language)
    golden(f"notes/top-{ending.lower()}.{language}.md", text.split("\n---\n")[0] + "\n")


@pytest.mark.parametrize("language", LANGUAGES)
def test_known_reds_are_told_and_decide_nothing(
    golden: Callable[[str, str], None], language: Language
) -> None:
    text = render_note(view_of(language, context=with_known_red(language)), "core", language)
    golden(f"notes/core-known-red.{language}.md", text)


@pytest.mark.parametrize("template", ["core", "architecture"])
def test_a_full_note(golden: Callable[[str, str], None], template: str) -> None:
    """It has the ends of what workers wrote, errors apart from output."""
    spec = spec_of("en", detail="full", completion="strict")
    text = render_note(view_of("en", "FAILED", spec=spec), template, "en")
    golden(f"notes/{template}-full.en.md", text)
    for stream in ("stdout", "stderr"):
        assert f"the end of workers/w2/{stream}" in text


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_top_fits_a_screen(language: Language, ending: Ending) -> None:
    text = render_note(view_of(language, ending), "core", language)
    assert text.splitlines().index("---") <= TOP_LINES
