"""The proxy's benchmark runs, with tiny sizes; what it finds is not looked at here."""

from __future__ import annotations

from benchmarks.proxy import proxy_figures


async def test_the_proxys_figures_can_be_taken() -> None:
    figures = await proxy_figures(opens=5, megabytes=5)
    assert len(figures) == 3 and all(figure.ratio != 0 for figure in figures)
