"""Tests that stand somewhere else now, word for word. Pure, but for reading files of two trees."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from agentrunner.evidence.checks import ReadFile
from agentrunner.evidence.results.model import Results, TestResult
from agentrunner.evidence.syntax.definitions import definition
from agentrunner.evidence.syntax.languages import language_of

MOST = 200
"""Names that are looked for elsewhere."""


def not_moved(
    lost: Sequence[str],
    before: Results,
    now: Results,
    cwd: str,
    read_old: ReadFile,
    read_new: ReadFile,
) -> list[str]:
    """Those of `lost` that do not pass under another name with the same definition."""
    known = before.names
    others = [test for test in now.tests if test.name not in known and test.outcome == "passed"]
    if not others:
        return list(lost)
    found = {text for test in others[:MOST] if (text := _definition(test, cwd, read_new))}
    by_name = {test.name: test for test in before.tests}
    left: list[str] = []
    for name in lost:
        text = _definition(by_name[name], cwd, read_old) if len(left) < MOST else None
        if text is None or text not in found:
            left.append(name)
    return left


def _definition(test: TestResult, cwd: str, read: ReadFile) -> str | None:
    path = posixpath.normpath(posixpath.join(cwd, test.file)) if test.file else ""
    language, source = language_of(path), read(path) if path else None
    return definition(source, language, test.name) if language and source is not None else None
