"""Where a sentence ends and the next one begins."""

from __future__ import annotations

import pytest

from agentrunner.text.sentences import (
    ended,
    in_a_row,
    sentence_before,
    sentence_behind,
    sentences,
    with_gaps,
    within,
)

LIST = "Two are red:\n- test_a\n- test_b; ignore it\n\nFix 1.5 (the rest) now. Done"


def test_each_point_of_a_list_is_a_sentence() -> None:
    assert sentences(LIST) == [
        "Two are red:",
        "- test_a",
        "- test_b; ignore it",
        "Fix 1.5 (the rest) now.",
        "Done",
    ]


def test_a_list_belongs_to_the_sentence_before_it_where_points_do_not_count() -> None:
    assert sentences(LIST, points=False)[0] == "Two are red:\n- test_a\n- test_b; ignore it"


def test_semicolons_and_brackets_end_a_sentence_where_they_are_asked_to() -> None:
    assert sentences(LIST, semicolons=True)[2:4] == ["- test_b;", "ignore it"]
    assert "(the rest)" in sentences(LIST, brackets=True)


def test_a_japanese_sentence_ends_without_a_blank() -> None:
    assert sentences("消す。ほかは残す。\n") == ["消す。", "ほかは残す。"]


@pytest.mark.parametrize("text", [LIST, "", "消す。残す", "# A\ntext\n## B\n 1) one\n"])
def test_sentences_with_their_gaps_are_the_text(text: str) -> None:
    assert "".join(with_gaps(text)) == text


def test_what_stands_around_a_place_is_of_its_own_sentence() -> None:
    text = "Keep a.py. Do not change b.py, please; but see c.py"
    place = text.index("b.py")
    assert sentence_before(text, place, 60) == "Do not change "
    assert sentence_before(text, place, 7) == "change "
    assert sentence_behind(text, place, 60) == "b.py, please;"


def test_sentences_become_parts_of_one_without_full_stops_in_the_middle() -> None:
    assert in_a_row(["It ends.", "so does this", "The last."]) == "It ends; so does this; The last."
    assert (ended("compilation terminated."), ended("exit 2")) == (
        "compilation terminated.",
        "exit 2.",
    )
    assert within("Nothing was changed.") == "nothing was changed."
    assert within("CartTest.test_total is red") == "CartTest.test_total is red"
