"""What pytest prints, and what other programs print that looks like it."""

from __future__ import annotations

from pathlib import Path

from agentrunner.verification.results.model import Ran
from agentrunner.verification.results.tools.pytest import TEXT, Pytest


def read(text: str) -> list[tuple[str, str]] | None:
    found = Pytest().read(Ran(Path("/nowhere"), text, "", 1), TEXT)
    return None if found is None else [(test.name, test.outcome) for test in found.tests]


def test_the_names_of_pytest() -> None:
    assert read("PASSED test_a.py::test_one\nFAILED test_a.py::test_two - assert 1 == 2\n") == [
        ("test_a.py::test_one", "passed"),
        ("test_a.py::test_two", "failed"),
    ]


def test_a_file_that_cannot_be_collected() -> None:
    summary = "=== short test summary info ===\n"
    assert read(f"{summary}ERROR test_a.py - ImportError\n") == [("test_a.py", "error")]


def test_lines_of_another_runner_are_no_results() -> None:
    assert read("ok conv check_f\nFAILED conv check_c\nERROR while reading\n") is None
