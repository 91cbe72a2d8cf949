"""Reads RSpec: by a listener of ours, which SPEC_OPTS loads."""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.lines import read_lines
from agentrunner.verification.results.model import Command, Instrumented, Ran, Results
from agentrunner.verification.results.reporters import text_of
from agentrunner.verification.results.tools.base import Tool, added

FILES = ("agentrunner_rspec.rb", "agentrunner_ruby.rb")


class RSpec(Tool):
    """Results by file and full description."""

    name = "rspec"
    by_path = True
    means = ("listener",)
    named_by = ("-e", "--example")

    def matches(self, run: Run) -> bool:
        """`rspec`, and `rake`, which may start it."""
        return run.program in ("rspec", "rake", "parallel_rspec") or run.words[:1] == ("bin/rspec",)

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Make RSpec load one more file; its formatters stay."""
        return Instrumented(
            command.shell,
            {"SPEC_OPTS": f"--require {place}/ruby/agentrunner_rspec.rb"},
            {f"ruby/{name}": text_of(name) for name in FILES},
        )

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read what the listener wrote."""
        return read_lines(ran.place, "rspec", ran.folder)

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by the beginning of the full description."""
        if run.program == "rake":
            return None
        titles = [name.partition(" > ")[2] for name in names]
        return added(shell, run, [part for title in titles for part in ("-e", title)])
