"""Reads Vitest: its own JSON report, which has Jest's form."""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.tools.base import added
from agentrunner.verification.results.tools.javascript import JavaScript
from agentrunner.verification.results.tools.jest import title_pattern


class Vitest(JavaScript):
    """Results by file and titles."""

    name = "vitest"
    programs = frozenset({"vitest"})

    def options(self, place: str) -> list[str]:
        """The options that write JSON into a file beside the usual report."""
        return ["--reporter=default", "--reporter=json", f"--outputFile.json={place}/vitest.json"]

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by a pattern of titles."""
        return added(shell, run, ["-t", title_pattern(names)])
