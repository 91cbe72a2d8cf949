"""Whole runs: a project, and the planners of the test kit under names of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner import registry
from tests.kit.byte_code import begin_compiled
from tests.kit.project import Project
from tests.kit.runs import SMALL, Run


@pytest.fixture(autouse=True)
def _metas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.PLANNERS, "liar", "tests.kit.metas:LiarPlanner")
    monkeypatch.setitem(registry.PLANNERS, "true-check", "tests.kit.metas:TrueCheckPlanner")


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    begin_compiled(monkeypatch)


@pytest.fixture
def without_a_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of which no answer depends on a box: it is a quarter of what they cost."""
    monkeypatch.setattr(Project, "sandbox", "none")


@pytest.fixture
def in_a_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file without one, a test of what a box shows or keeps off."""
    monkeypatch.setattr(Project, "sandbox", "bwrap")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Of the smallest project: a module and its tests."""
    return Run(Project.make(tmp_path, SMALL))
