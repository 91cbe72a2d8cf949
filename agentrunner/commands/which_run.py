"""Find the run that a command means."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from agentrunner import environment

if TYPE_CHECKING:
    from agentrunner.results import Result


def here() -> Path:
    """Return the repository around the current folder, else the folder itself."""
    from agentrunner.config.repo import git_root

    folder = Path.cwd()
    return git_root(folder) or folder


def git_of(result: Result) -> str:
    """Return how git is called for the folder of a run from here; "" where it has none."""
    from agentrunner.config.repo import git_root

    folder = Path(result.repo or "")
    if git_root(folder) is None:
        return ""
    return "git" if folder.resolve() == Path.cwd() else f"git -C {shlex.quote(str(folder))}"


def name_needed(state_dir: Path, run_id: str) -> str:
    """Return the run's name for commands given here; "" if this repository has no other run."""
    from agentrunner.storage.index import RunIndex

    rows = RunIndex(state_dir).runs(here())
    return "" if [row.run_id for row in rows] == [run_id] else run_id


def resolve(name: str | None, state_dir: str | None) -> tuple[Path, str]:
    """Return state folder and id of the run called `name`, or of this repository's newest one."""
    from agentrunner.storage.index import RunIndex

    folder = environment.state_dir(state_dir)
    index = RunIndex(folder)
    return folder, index.find(name, here()) if name else index.newest(here())
