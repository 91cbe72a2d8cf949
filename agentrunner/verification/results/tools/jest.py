"""Reads Jest and Vitest: their own JSON reports, which have one form."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.tools.base import added
from agentrunner.verification.results.tools.javascript import JavaScript


def title_pattern(names: Sequence[str]) -> str:
    """A pattern for titles joined by spaces, as Jest, Vitest and Mocha match them.

    Older versions of Vitest put a space before the first one.
    """
    titles = [re.escape(" ".join(name.split(" > ")[1:])).replace(r"\ ", " ") for name in names]
    return f"^ ?({'|'.join(dict.fromkeys(titles))})$"


class Jest(JavaScript):
    """Results by file and titles."""

    name = "jest"
    programs = frozenset({"jest", "jest-cli", "react-scripts"})
    named_by = ("-t", "--testNamePattern")

    def options(self, place: str) -> list[str]:
        """The option that writes JSON into a file."""
        return ["--json", f"--outputFile={place}/jest.json"]

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by a pattern of titles."""
        if self.is_narrow(run):
            return None
        return added(shell, run, ["-t", title_pattern(names)])


class Vitest(Jest):
    """Results by file and titles."""

    name = "vitest"
    programs = frozenset({"vitest"})

    def options(self, place: str) -> list[str]:
        """The options that write JSON into a file beside the usual report."""
        return ["--reporter=default", "--reporter=json", f"--outputFile.json={place}/vitest.json"]
