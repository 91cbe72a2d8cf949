"""Reads Vitest: its own JSON report, which has Jest's form."""

from __future__ import annotations

from agentrunner.verification.results.tools.jest import Jest


class Vitest(Jest):
    """Results by file and titles."""

    name = "vitest"
    programs = frozenset({"vitest"})

    def options(self, place: str) -> list[str]:
        """The options that write JSON into a file beside the usual report."""
        return ["--reporter=default", "--reporter=json", f"--outputFile.json={place}/vitest.json"]
