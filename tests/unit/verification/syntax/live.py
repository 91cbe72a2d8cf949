"""What is made of a source, run with the real tools."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

from agentrunner.verification.syntax.canary import changed_literal
from agentrunner.verification.syntax.edits import Canary, applied
from agentrunner.verification.syntax.ends import failing_end
from agentrunner.verification.syntax.test_finder import all_tests
from tests.kit.missing import missing

QUICK = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""For programs that end soon."""


def need(*tools: str) -> None:
    """Skip where a tool is not installed."""
    for tool in tools:
        if shutil.which(tool) is None:
            missing(f"{tool} is not installed")


def ran(folder: Path, *command: str, timeout: float = 150) -> subprocess.CompletedProcess[str]:
    """A command in a folder, with all it says."""
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | QUICK,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


def canaries(source: bytes, language: str) -> list[Canary]:
    """All canaries of all tests of a source."""
    made = []
    for found in all_tests(source, language):
        for make in (failing_end, changed_literal):
            canary = make(found)
            assert canary is not None, (found.span.name, make.__name__)
            made.append(canary)
    return made


def combined(source: bytes, made: Iterable[Canary]) -> bytes:
    """One source with the edits of several canaries that were made from it."""
    return applied(source, (edit for canary in made for edit in canary.edits))


def halves(made: list[Canary]) -> Iterator[list[Canary]]:
    """Every other canary of each kind, so that the other tests are seen to stay as they were."""
    for is_end in (True, False):
        for rest in (0, 1):
            yield [one for one in made if (one.kind == "end") == is_end][rest::2]


def red(results: dict[str, str]) -> set[str]:
    return {name for name, outcome in results.items() if outcome != "passed"}


def pytest_results(folder: Path, file: str) -> dict[str, str]:
    """Outcome by name of the function, of one file under pytest with warnings as errors."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    said = ran(
        folder, sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider",
        f"--junitxml={report}", "-o", "junit_family=xunit2", file,
    )  # fmt: skip
    assert report.exists(), said.stdout + said.stderr
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        is_red = case.find("failure") is not None or case.find("error") is not None
        found[case.attrib["name"]] = "failed" if is_red else "passed"
    return found


def node_results(folder: Path, file: str) -> dict[str, str]:
    """Outcome by title, of one file under node's runner."""
    said = ran(folder, "node", "--test-reporter=tap", "--test", file)
    lines = re.findall(r"(?m)^\s*(not ok|ok) \d+ - (.*)$", said.stdout)
    assert lines, said.stdout + said.stderr
    return {name.strip(): "passed" if word == "ok" else "failed" for word, name in lines}
