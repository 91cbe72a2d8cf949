"""A run of a plan's task, read from the disk."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from agentrunner.engine import attempts
from agentrunner.results import Result
from agentrunner.state.people import Question
from agentrunner.state.run_state import TaskContext
from agentrunner.storage.run_folder import RunFolder, load_spec, runs_root


class SavedRun(Struct, frozen=True):
    """What is known of a run that has a folder."""

    state: TaskContext | None
    """None where it has done nothing yet."""
    question: Question | None = None
    """The question that it waits with."""
    result: Result | None = None


def is_begun(state_dir: Path, run_id: str) -> bool:
    """Whether the run has a folder that can be continued; a run_id of "" is not started yet."""
    folder = RunFolder(runs_root(state_dir) / run_id)
    if not run_id or not folder.root.is_dir():
        return False
    if not folder.spec_file.exists():  # its process was killed before it wrote the task
        folder.remove()
        return False
    return True


async def saved_run(state_dir: Path, run_id: str) -> SavedRun:
    """Return the run as its last process left it."""
    folder = RunFolder.open(state_dir, run_id)
    if attempts.untouched(folder):
        return SavedRun(None)
    state, question = await attempts.read(folder)
    result = attempts.result_of(folder, load_spec(folder), state, question)
    return SavedRun(state, question, result)
