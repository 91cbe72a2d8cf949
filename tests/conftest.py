"""What all tests share: golden files, compared or, with --update-golden, rewritten."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

gc.set_threshold(20_000)
"""As a command has it (`cli.seldom_collecting`)."""
GOLDEN = Path(__file__).parent / "golden"
os.environ.setdefault("AGENTRUNNER_BELL", "off")
"""Terminals of tests are read to the last sequence; `test_bell` switches it on."""
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it puts in the background deaf to Ctrl-C, and so would be all programs
    # that tests start and then send it to.
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile(
    "gate", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gate")
"""The same examples each time, however slow the machine is today."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the golden files from what is now"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `whole` all cases of a series but each n-th, which the gate runs."""
    seen: Counter[str] = Counter()
    for item in items:
        if (series := item.get_closest_marker("series")) is None:
            continue
        test = item.nodeid.partition("[")[0]
        if seen[test] % series.args[0]:
            item.add_marker("whole")
        seen[test] += 1


def pytest_collection_finish() -> None:
    """Leave modules and items out of what is looked at for garbage, in tests and at the end."""
    gc.freeze()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the file of that name under tests/golden."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"no golden file {name}: run pytest --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare
