"""Reads Minitest and test-unit: by reporters of ours, which they find on Ruby's load path."""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.lines import by_id, read_lines
from agentrunner.verification.results.model import Command, Instrumented, Ran, Results
from agentrunner.verification.results.reporters import text_of
from agentrunner.verification.results.tools.base import Tool, added

PROGRAMS = ("rake", "rails", "minitest", "m", "test-unit")
FILES = {
    "mt/agentrunner_ruby.rb": "agentrunner_ruby.rb",
    "mt/minitest/agentrunner_plugin.rb": "agentrunner_minitest.rb",
    "mt/test/unit/runner/console.rb": "agentrunner_test_unit.rb",
}
"""Where each reporter lies below the folder on the load path, and the file it is made of."""


class Minitest(Tool):
    """Results by class and method, as in `CartTest#test_total`."""

    name = "minitest"
    means = ("plug-in",)

    def matches(self, run: Run) -> bool:
        """`ruby` with a file of tests, `rake`, `rails test`."""
        if run.program == "ruby":
            return any("test" in word or "spec" in word for word in run.words[1:])
        return run.program in PROGRAMS

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Add a folder to the load path; the tools' own reporters stay."""
        return Instrumented(
            command.shell,
            {"RUBYLIB": f"{place}/mt"},
            {path: text_of(name) for path, name in FILES.items()},
        )

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read what the reporter wrote."""
        return read_lines(ran.place, "minitest", ran.folder, by_id)

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by `-n` with the methods' names."""
        if run.program != "ruby" or run.outer is None or not run.direct:
            return None
        methods = "|".join(dict.fromkeys(name.rpartition("#")[2] for name in names))
        if not methods.replace("|", "").replace("_", "").isalnum():
            return None
        # Behind a script of `-e` an option would be Ruby's own.
        rest = run.words[run.words.index("-e") + 2 :] if "-e" in run.words else ["file"]
        ends = [] if any(not word.startswith("-") for word in rest) else ["--"]
        return added(shell, run, [*ends, "-n", f"/^({methods})$/"])
