"""Which run is meant."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentrunner import environment
from agentrunner.errors import UsageError


def here() -> Path:
    """The repository around the current folder, else the folder itself."""
    from agentrunner.config.repo import git_root

    folder = Path.cwd()
    return git_root(folder) or folder


def in_git(result: Mapping[str, Any]) -> bool:
    """Whether git knows the folder that a run worked in."""
    from agentrunner.config.repo import git_root

    return git_root(Path(result["repo"])) is not None


def is_driven(state_dir: Path, run_id: str) -> bool:
    """Whether a process works on this run, or asks about it, right now."""
    from agentrunner.storage.locks import run_lock
    from agentrunner.storage.run_folder import RunFolder

    return run_lock(RunFolder(state_dir / "runs" / run_id)).probe() is not None


def name_needed(state_dir: Path, run_id: str) -> str:
    """What commands given here must call this run; "" where it is the newest of this repository."""
    from agentrunner.storage.index import RunIndex

    rows = RunIndex(state_dir).runs(here())
    return "" if rows and rows[0].run_id == run_id else run_id


def resolve(name: str | None, state_dir: str | None) -> tuple[Path, str]:
    """State folder and id of the run called `name`, or of the newest one of this repository."""
    from agentrunner.storage.index import RunIndex

    folder = environment.state_dir(state_dir)
    index = RunIndex(folder)
    return folder, index.find(name, here()) if name else index.newest(here())


def resolve_waiting(name: str | None, state_dir: str | None) -> tuple[Path, str]:
    """As `resolve`; without a name the only run of this repository that waits for a person."""
    from agentrunner.storage.index import RunIndex

    folder = environment.state_dir(state_dir)
    index = RunIndex(folder)
    if name:
        return folder, index.find(name, here())
    rows = index.runs(here())
    at_work = rows and not rows[0].part_of and is_driven(folder, rows[0].run_id)
    if at_work and not any(row.waiting for row in rows):
        raise UsageError(
            f"{rows[0].run_id} goes on in another terminal; what it asks is asked there.",
            code="not-waiting",
            remedy="answer there, or type q there and then answer here",
        )
    return folder, index.waiting(here())


def resolve_review(state_dir: str | None) -> tuple[Path, str]:
    """State folder and id of the only run of this repository that needs a review, else the newest.

    Raises UsageError (`ambiguous-run`) where there are several.
    """
    from agentrunner.storage.index import RunIndex

    folder = environment.state_dir(state_dir)
    rows = [row for row in RunIndex(folder).runs(here()) if row.state == "NEEDS_REVIEW"]
    if len(rows) > 1:
        raise UsageError(
            "several runs need a review",
            code="ambiguous-run",
            details=tuple((row.run_id, row.title) for row in rows[:8]),
            remedy=f"name one, e.g. {rows[0].run_id}",
        )
    return (folder, rows[0].run_id) if rows else resolve(None, state_dir)
