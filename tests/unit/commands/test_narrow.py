"""What is said to a narrow terminal: nothing is cut in a word, and nothing left out."""

from __future__ import annotations

import pytest

from agentrunner.commands import detach, elsewhere
from agentrunner.commands.console import Output, last_whole
from agentrunner.text.terminal import cell_width

RUN = "asks-ty56"


@pytest.mark.parametrize("width", [100, 80, 44])
def test_what_a_detached_run_leaves_behind_says_what_each_command_does(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detach, "width_of", lambda _: width)
    shown = detach.run_text(RUN)
    words = " ".join(shown.split())
    assert max(map(cell_width, shown.split("\n"))) <= width
    for what in ("see it work, and answer it there", "it continues by itself", "end it"):
        assert what in words


@pytest.mark.parametrize("width", [80, 44])
def test_an_answer_given_elsewhere_is_told_in_whole_words(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(elsewhere, "columns_of", lambda _: width)
    elsewhere._say_taken(RUN, Output(), "")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(cell_width, lines)) <= width
    words = " ".join(" ".join(lines).split())
    assert f"{RUN} continues in the other terminal." in words
    assert f"agentrunner watch {RUN} see it work" in words


@pytest.mark.parametrize(
    ("most", "shown"),
    [(12, "abcde"), (4, "cde"), (3, "cde"), (2, "de"), (1, "de"), (0, "de")],
)
def test_the_past_of_a_watched_run_begins_with_a_whole_event(most: int, shown: str) -> None:
    by_event = [["a", "b"], ["c"], [], ["d", "e"], []]
    assert "".join(line for one in last_whole(by_event, most) for line in one) == shown
