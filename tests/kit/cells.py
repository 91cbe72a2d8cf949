"""The table of what can happen to a worker run, and what each has to come to.

The tests go through it with the CLIs that CI installs, `python -m tests.worker_table` with all
that are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentrunner.state.worker_runs import Outcome
from tests.kit.scenario import Shell, Turn, Write
from tests.kit.trials import Trial

DENY = '{"permissions": {"deny": ["Bash(touch:*)"]}}'
WORK = Turn("Making it.", [Write("hello.txt", "hello\n")])
DONE = Turn("Made it.")
SLEEP = Turn("Sleeping.", [Shell("touch started; sleep 60; touch late")])


@dataclass(frozen=True)
class Cell:
    """Something that goes well or wrong, and its outcome."""

    name: str
    trial: Trial
    outcome: Outcome
    but: Mapping[str, Outcome] = field(default_factory=dict)
    """By kind, where a CLI hides what it was."""
    kinds: tuple[str, ...] = ()
    """Of these only; () is all."""
    without: tuple[str, ...] = ()
    """Not of these: they run no commands."""

    def expected(self, kind: str) -> Outcome:
        """What it has to come to."""
        return self.but.get(kind, self.outcome)


CELLS = (
    Cell("ok", Trial([WORK, DONE]), "completed"),
    Cell("401", Trial([Turn(refusal="401")]), "auth"),
    Cell("404", Trial([Turn(refusal="404")]), "model"),
    Cell("429", Trial([Turn(refusal="429", reset_in="header", reset_sec=3600)]), "rate_limit"),
    Cell("overloaded", Trial([Turn(refusal="overload")]), "rate_limit"),
    Cell("500 storm", Trial([Turn(refusal="500")]), "server"),
    Cell("context", Trial([Turn(refusal="context")]), "context"),
    Cell("cut stream", Trial([Turn("half an answer, then the line is dead", cut=True)]), "network"),
    Cell("silent stream", Trial([Turn(hang=True)], idle_sec=5), "idle_timeout"),
    # To Codex a stream without its last event is one that was cut, whatever else is in it; opencode
    # takes it for a step with nothing in it.
    Cell(
        "garbage",
        Trial([Turn(raw="<html>It works!</html>\n\n")]),
        "protocol",
        but={
            "codex-cli": "network",
            "opencode": "server",
        },
    ),
    Cell("nobody there", Trial([WORK], down=True), "network"),
    Cell(
        "interrupt",
        Trial([SLEEP], stop_at="started"),
        "interrupted",
        without=("aider",),
    ),
    # The last thing that mini-swe-agent does is a command.
    Cell(
        "no-op",
        Trial([Turn("All is well as it is.")]),
        "no_op",
        but={"mini-swe-agent": "completed"},
    ),
    Cell(
        "denied",
        Trial(
            [Turn("Trying.", [Shell("touch seen.txt")]), Turn("All is done.")],
            files={".claude/settings.json": DENY},
        ),
        "denied",
        kinds=("claude-code",),
    ),
)


def cells_of(kind: str) -> list[Cell]:
    """What can happen to this CLI."""
    return [
        cell
        for cell in CELLS
        if kind not in cell.without and (not cell.kinds or kind in cell.kinds)
    ]
