"""What the supervisor reads off a worker's lines."""

from __future__ import annotations

from math import inf

import pytest

from agentrunner.supervisor.watching import LINE_LIMIT, LINES, OutputWatch, Watcher

WATCH = OutputWatch(
    final=r'^\{"type":"end"',
    final_grace_sec=10,
    retry="Reconnecting",
    retries=3,
    login="(?i)^please log in",
)
END = b'{"type":"end","text":"done"}\n'
RETRY = b"Reconnecting... 1/5\n"


def heard(*chunks: bytes, watch: OutputWatch = WATCH, stdout: bool = True) -> Watcher:
    """A watcher that read these, one in each second."""
    watcher = Watcher(watch)
    for second, chunk in enumerate(chunks):
        watcher.feed(chunk, second, stdout=stdout)
    return watcher


def test_a_worker_has_its_grace_after_its_last_event() -> None:
    watcher = heard(b"one\n", END)
    assert watcher.finished and watcher.limit == 11
    assert (watcher.reason(10.9), watcher.reason(11)) == ("", "lingered")


@pytest.mark.parametrize("size", [1, 2, 7, 29, 1000])
def test_lines_are_found_wherever_a_read_cuts_them(size: int) -> None:
    data = b"one\n" + END
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert heard(*chunks).finished
    data = RETRY * 3
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert heard(*chunks).reason(0) == "retry_storm"


@pytest.mark.parametrize("after", [b"more\n", RETRY, b"\n".join([b"x"] * (LINES + 5)) + b"\n"])
def test_a_worker_that_goes_on_was_not_at_its_end(after: bytes) -> None:
    assert not heard(END, after).finished
    assert not heard(END + after).finished


@pytest.mark.parametrize("after", [b"", b"\n", b"  \r\n", b'{"type":"end"'])
def test_blanks_and_half_lines_are_no_going_on(after: bytes) -> None:
    assert heard(END, after).finished


def test_the_end_counts_on_stdout_only() -> None:
    assert not heard(END, stdout=False).finished
    watcher = heard(END)
    watcher.feed(b"warning: slow exit\n", 3, stdout=False)
    assert watcher.finished


def test_the_end_is_found_at_the_end_of_a_flood_and_in_an_endless_line() -> None:
    assert heard(b"noise\n" * 10_000 + END).finished
    long = b'{"type":"end","text":"' + b"x" * (3 * LINE_LIMIT)
    assert heard(*(long[at : at + 65536] for at in range(0, len(long), 65536)), b'"}\n').finished
    assert not heard(b"x" * (3 * LINE_LIMIT), END).finished


def test_tries_in_a_row_are_a_storm() -> None:
    assert heard(RETRY * 2).reason(0) == ""
    assert heard(RETRY, b"\n", RETRY, RETRY).reason(0) == "retry_storm"
    assert heard(RETRY * 2, b"an answer\n", RETRY * 2).reason(0) == ""
    assert heard(RETRY * 2 + b"an answer\n" + RETRY * 2).reason(0) == ""


def test_a_storm_on_stderr_is_ended_by_words_on_stdout_alone() -> None:
    watcher = heard(RETRY, b"trace\n" * 5, RETRY, stdout=False)
    assert watcher.reason(0) == ""
    watcher.feed(RETRY, 9, stdout=False)
    assert watcher.reason(9) == "retry_storm"
    watcher = heard(RETRY * 2, stdout=False)
    watcher.feed(b"an answer\n", 8, stdout=True)
    watcher.feed(RETRY, 9, stdout=False)
    assert watcher.reason(9) == ""


@pytest.mark.parametrize("stdout", [True, False])
def test_a_login_prompt_needs_no_end_of_line(stdout: bool) -> None:
    assert heard(b"Please log in: ", stdout=stdout).reason(0) == "login_prompt"
    assert heard(b"Pleas", b"e log", b" in: ", stdout=stdout).reason(0) == "login_prompt"
    assert heard(b"x\nPlease log in\nx\n", stdout=stdout).reason(0) == "login_prompt"


def test_a_long_line_is_no_prompt() -> None:
    assert heard(b"Please log in" + b"!" * 500 + b"\n").reason(0) == ""


def test_who_watches_for_nothing_finds_nothing() -> None:
    watcher = heard(END, RETRY * 20, b"Please log in", watch=OutputWatch())
    assert (watcher.reason(1e9), watcher.limit) == ("", inf)
