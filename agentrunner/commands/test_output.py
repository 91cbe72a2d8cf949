"""`logs --tests`: everything that the test command printed in a round, as it is kept."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from agentrunner.commands.console import show, show_json
from agentrunner.errors.runs import NoTestOutput
from agentrunner.screens.layout import count
from agentrunner.state.rounds import round_of
from agentrunner.storage.events import read_events
from agentrunner.storage.run_folder import RunFolder
from agentrunner.text.terminal import sanitize


def show_test_output(
    folder: RunFolder, run_id: str, number: int | None, *, as_json: bool = False
) -> int:
    """Print the test command's output of round `number`, by default of its last run.

    With `as_json` as one object, with its exit code and the red tests. Raises UsageError if it did
    not run in that round.
    """
    found, rounds = test_runs(folder)
    wanted = max(found, default=None) if number is None else number
    if wanted is None or wanted not in found:
        place = f"in round {wanted}" if wanted is not None else "in this run"
        known = ", ".join("before the run" if one == 0 else str(one) for one in sorted(found))
        raise NoTestOutput(
            f"{run_id} has no output of the test command {place}"
            + (f"; it ran in: {known}." if known else f" ({count(rounds, 'round')})."),
            remedy=f"agentrunner logs {run_id}",
        )
    event = found[wanted]
    text = (folder.root / _kept(folder, event)).read_text(encoding="utf-8", errors="replace")
    if as_json:
        data = {
            "run_id": run_id,
            "round": wanted,
            "exit_code": event.get("exit_code"),
            "red": event.get("red") or [],
            "output": text,
        }
        return show_json(data)
    # A pipe gets it unchanged; a terminal gets no foreign control sequences.
    show((sanitize(text) if sys.stdout.isatty() else text).rstrip("\n"))
    return 0


def test_runs(folder: RunFolder) -> tuple[dict[int, Mapping[str, Any]], int]:
    """Return the event of the last test command by round (0: before the run), and all rounds."""
    found: dict[int, Mapping[str, Any]] = {}
    rounds = 0
    for event in read_events(folder.events_file):
        if event.get("event") == "worker_started":
            rounds = round_of(event.get("round"), event.get("loop"))
        elif (
            event.get("event") in ("check", "baseline")
            and event.get("target") == "test"
            and _kept(folder, event)
        ):
            found[rounds] = event
    return found, rounds


def _kept(folder: RunFolder, event: Mapping[str, Any]) -> str:
    """Return the file's path below the run's folder; "" if it is not kept."""
    path = PurePosixPath(str(event.get("output") or ""))
    plain = path.parts[:1] == ("checks",) and ".." not in path.parts
    return str(path) if plain and (folder.root / path).is_file() else ""
