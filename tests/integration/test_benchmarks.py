"""The benchmarks run, with tiny sizes; what they find is not looked at here."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import (
    box,
    chart,
    cold,
    gateway,
    growth,
    overhead,
    plan,
    prompts,
    repositories,
    verify,
)
from benchmarks.measure import Figure, report
from tests.kit.engine import connected
from tests.kit.project import require_bwrap


def test_cold_start(tmp_path: Path) -> None:
    names = [figure.name for figure in cold.figures(tmp_path, rounds=1)]
    assert len(names) == 10 and "--help, CPU" in names


@pytest.mark.whole
def test_overhead(tmp_path: Path) -> None:
    require_bwrap()
    found = overhead.figures(tmp_path, rounds=1, loops=3, runs=2)
    assert len(found) == 5


@pytest.mark.whole
def test_growth(tmp_path: Path) -> None:
    require_bwrap()
    found = growth.figures(tmp_path, loops=4, short=2, printed=100_000)
    assert len(found) == 4


async def test_gateway(tmp_path: Path) -> None:
    found = await gateway.figures(tmp_path, rounds=1, requests=4, tokens=3, megabytes=1)
    assert len(found) == 11 and all(figure.ratio != 0 for figure in found)


async def test_box(tmp_path: Path) -> None:
    async with connected():
        found = await box.figures(tmp_path, rounds=1, boxes=2)
    assert len(found) == 4


@pytest.mark.whole
def test_plan(tmp_path: Path) -> None:
    found = plan.figures(tmp_path, rounds=1, sizes=(10, 20, 40), runs=2)
    assert len(found) == 4


@pytest.mark.whole
def test_repositories(tmp_path: Path) -> None:
    found = list(repositories.figures(tmp_path, sizes=(3, 60), number=2, megabyte=1, rounds=1))
    assert len(found) == 38


async def test_verify(tmp_path: Path) -> None:
    require_bwrap()
    found = await verify.figures(tmp_path, tests=2, seconds=0.1, files=20, rounds=1, before="none")
    assert len(found) == 6, "a commit that is not there is left out"


def test_prompts() -> None:
    found = prompts.figures(long=8, repeats=2)
    assert len(found) == 14
    assert all(figure.ok for figure in found if "one decision after" in figure.name
               and "of 30 lines" in figure.name)  # fmt: skip


def test_the_page_of_performance_has_the_goals_that_are_measured_against() -> None:
    """Those of the issue that asked for less: 1.2 times the bare program, 1.4 times, 0.25 MB."""
    goals = (overhead.FIRST_CALL, overhead.PER_LOOP, overhead.PER_RUN_MB)
    assert goals == (1.2, 1.4, 0.25)
    page = Path(__file__).parents[2] / "docs" / "reference" / "performance.md"
    rows = [
        [cell.strip() for cell in line.split("|")] for line in page.read_text("utf-8").splitlines()
    ]
    for name, goal in (
        ("start to the planner's first request", f"{goals[0]}"),
        ("CPU per loop (", f"{goals[1]}"),
        ("memory per further run at a time", f"{goals[2]} MB"),
    ):
        (row,) = [row for row in rows if row[1:] and row[1].startswith(name)]
        assert row[5] == goal, name


def test_a_missed_goal_is_said_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    met, missed = Figure("a", "1", "1", 1.0, 1.0), Figure("b", "2", "1", 2.0, 1.5)
    assert report([met]) == 0 and report([met, missed]) == 1
    assert "MISSED" in capsys.readouterr().out.splitlines()[-1]


def test_the_chart_has_a_line_for_each_figure_and_for_gits() -> None:
    table = [
        "10 files: first snapshot       9.1 ms      git add -A, 3.3 ms     2.73  <= 4  ok",
        "100,000 files: first snapshot  1551.6 ms   git add -A, 17606 ms   0.09  <= 4  ok",
        "100,000 files: peak memory     149.38 MB   -                      149   <= 9  ok",
    ]
    lines = chart.read_lines(table)
    assert lines["git add -A"] == {10: 0.0033, 100_000: 17.606}
    drawn = [line for line in chart.draw(lines) if line.startswith("<polyline")]
    assert len(drawn) == len(lines) == 2 and "dasharray" in drawn[1]
    with pytest.raises(ValueError, match="two sizes"):
        list(chart.draw(chart.read_lines(table[:1])))
