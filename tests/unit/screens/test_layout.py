from __future__ import annotations

from collections.abc import Callable

import pytest

from agentrunner.screens import layout
from agentrunner.text.terminal import cell_width


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (3.81, "3.8 s"), (21, "21 s"), (59.4, "59 s"), (433, "7 m 13 s"),
     (3599, "59 m 59 s"), (3600, "1 h 00 m"), (3725, "1 h 02 m")],
)  # fmt: skip
def test_duration(seconds: float, text: str) -> None:
    assert layout.duration(seconds) == text


@pytest.mark.parametrize(
    ("worked", "waited", "parts"),
    [
        (None, None, []),
        (0, 3.0, []),
        (2.5, 0.4, ["2.9 s"]),
        (20.0, 7384.0, ["20 s", "waited 2 h 03 m"]),
        (0, 60.0, ["waited 1 m 00 s"]),
    ],
)
def test_worked_and_waited_add_up(
    worked: float | None, waited: float | None, parts: list[str]
) -> None:
    assert layout.worked_and_waited(worked, waited) == parts


@pytest.mark.parametrize(
    ("number", "text"), [(812, "812"), (18_400, "18k"), (999_499, "999k"), (1_234_567, "1.2M")]
)
def test_thousands(number: int, text: str) -> None:
    assert layout.thousands(number) == text


def test_wrap_measures_cells_and_breaks_words_only_where_it_must() -> None:
    text = "エラーメッセージが利用者に分かりやすいこと。 and then some plain words"
    lines = layout.wrap(text, 20, "  ")
    assert max(map(cell_width, lines)) <= 20
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert layout.wrap("one two three", 11) == ["one two", "three"]


def test_words_that_belong_together_stay_in_one_line() -> None:
    text = "   ".join(layout.unbroken(f"AC-{number} FAIL") for number in (1, 2, 3))
    assert layout.wrap(text, 26) == ["AC-1 FAIL   AC-2 FAIL", "AC-3 FAIL"]


def test_wrap_keeps_lines_and_their_indentation() -> None:
    assert layout.wrap("a\n  b\n\nc", 40) == ["a", "  b", "", "c"]


def test_cells_are_exact_for_wide_text() -> None:
    assert cell_width(layout.cell("ユーザー登録", 9)) == 9
    assert layout.spread("ユーザー登録 API", "9 s", 20).endswith("  9 s")


@pytest.mark.parametrize(
    ("path", "home", "shown"),
    [("/home/a/x", "/home/a", "~/x"), ("/home/ab", "/home/a", "/home/ab"), ("/x", "", "/x"),
     ("/home/a", "/home/a/", "~")],
)  # fmt: skip
def test_tilde(path: str, home: str, shown: str) -> None:
    assert layout.tilde(path, home) == shown


def test_colours_need_a_terminal_that_wants_them() -> None:
    assert layout.wants_colour({"TERM": "xterm"}, True)
    assert not layout.wants_colour({"NO_COLOR": "1"}, True)
    assert not layout.wants_colour({"TERM": "dumb"}, True)
    assert not layout.wants_colour({}, False)


def test_japanese_is_broken_where_the_line_ends_and_not_before_its_full_stop() -> None:
    text = "既存の API を使って、商品の一覧ページを作る（絞り込みと並べ替えも）。"
    lines = layout.wrap(text, 24)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert lines[0] == "既存の API を使って、商"
    assert all(cell_width(line) <= 24 for line in lines)
    assert not any(line[0] in "、。）" or line[-1] == "（" for line in lines)


TOLD = """\
The plan goes on.  agentrunner watch --plan
The plan that was current is kept as add-an-api-for-users.  agentrunner plan switch add-an-api
Next:  agentrunner undo users-api-9f3a --force   also the files above
Next:  agentrunner plan show   |   agentrunner plan undo
  left alone, edited since: src/shop/pages/checkout/free-delivery.html
30 pages in /home/me/.local/share/man/man1.  man -l /home/me/.local/share/man/man1/agentrunner.1
Kept:  agentrunner accept users-api-9f3a AC-1 AC-2 AC-3 --known-red tests.A.test_b --unchanged
Kept:  agentrunner resume users-api-9f3a -m "use whole cents, and never a float, anywhere"
"""


@pytest.mark.parametrize("columns", [44, 80, 0])
def test_sentences_fit_the_terminal_and_commands_can_be_pasted(
    columns: int, golden: Callable[[str, str], None]
) -> None:
    lines = layout.sentence_lines(TOLD, columns)
    golden(f"screens/sentences-{columns}.txt", "\n".join(lines))
    whole = " ".join("\n".join(lines).replace("\\\n", "").split())
    assert whole == " ".join(TOLD.split())
    for line in lines:
        assert not columns or cell_width(line) <= columns or " -" in line or '"' in line


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("systemctl start docker, or set DOCKER_HOST=unix:///run/docker.sock",
         ["  cure: systemctl start docker, or set", "    DOCKER_HOST=unix:///run/docker.sock"]),
        ('`codex login -c cli_auth_credentials_store="file"`',
         ["  cure:", '    `codex login -c cli_auth_credentials_store="file"`']),
        ("設定ファイルの場所を書いてから、もう一度やり直してください",
         ["  cure: 設定ファイルの場所を書いてから、もう", "    一度やり直してください"]),
    ],
)  # fmt: skip
def test_words_and_quoted_commands_stay_whole(text: str, lines: list[str]) -> None:
    assert layout.hanging("  cure: ", text, 44) == lines
    assert layout.hanging("  cure: ", text, 0) == [f"  cure: {text}"]


def test_what_stands_between_back_ticks_is_not_broken_where_it_fits_a_line() -> None:
    text = "The answer `afresh` begins anew; what it made stays in `agentrunner diff TASK-0001-qj`."
    for width in (80, 60, 44, 36):
        lines = layout.wrap(text, width)
        assert any("`agentrunner diff TASK-0001-qj`" in line for line in lines)
        assert " ".join(lines) == text and max(map(len, lines)) <= width
    assert len(layout.wrap("a `b c and no end of it, which goes on and on", 20)) == 3
    assert (
        max(map(len, layout.wrap("`one command that is far wider than the line` and `b`", 20)))
        <= 20
    )


@pytest.mark.parametrize("columns", [0, 44])
def test_each_way_of_a_remedy_has_a_line_and_a_command_stands_alone(columns: int) -> None:
    remedy = (
        'export KEY=…, or `codex login -c store="file" --somewhere-that-is-long`, then (a, or b)'
    )
    assert layout.ways_lines("  cure: ", remedy, columns) == [
        "  cure: export KEY=…",
        '    or: codex login -c store="file" --somewhere-that-is-long',
        "  then: (a, or b)",
    ]
    assert layout.ways_lines("  cure     ", "one, then two", columns)[1] == "  then     two"


def test_a_way_in_prose_is_broken_at_words_without_backslashes() -> None:
    lines = layout.ways_lines(
        "Next:  ", "start its server, or correct its address, which is far away", 30
    )
    assert lines[0] == "Next:  start its server" and lines[1].startswith("  or:  correct its")
    assert len(lines) == 3 and not any("\\" in line for line in lines)
