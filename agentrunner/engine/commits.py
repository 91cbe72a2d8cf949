"""Runs that end in a commit: the work tree they start from, and making a commit that failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from agentrunner.config.spec import TaskSpec
from agentrunner.errors.repositories import RepositoryGone, WorktreeGone
from agentrunner.execution.commit import CommitTools, commit_attempt
from agentrunner.execution.credentials import secrets_of
from agentrunner.execution.deps import Clock
from agentrunner.git.checkout import Checkout
from agentrunner.git.private_clone import CloneStore
from agentrunner.git.snapshots import Snapshots
from agentrunner.git.worktree import WorktreePlace, prepare, worktree_place
from agentrunner.state.run_state import TaskContext
from agentrunner.storage.plan_shelf import runs_aside
from agentrunner.storage.run_folder import RunFolder, load_spec, make_private
from agentrunner.storage.run_log import RunLog
from agentrunner.text.redaction import Redactor
from agentrunner.text.unicode import clean
from agentrunner.workers.member import make_members

MAX_CARRIED = 200
"""Files carried over from the checkout that are listed by name."""


@contextmanager
def prepared(spec: TaskSpec, run_id: str, state_dir: Path) -> Iterator[tuple[TaskSpec, ExitStack]]:
    """Yield the task with the place that it works in, if it is to end in a commit.

    The place is removed again unless the stack is emptied (`pop_all`): by then the run has a
    folder, and the place is removed with it. Raises UsageError where the repository cannot take the
    commit. Blocks.
    """
    with ExitStack() as undo:
        if spec.landing is not None:
            place = worktree_place(state_dir, Path(spec.landing.repo), run_id)
            make_private(place.root.parent)
            place.root.mkdir(mode=0o700)  # never remove the place of another run
            undo.callback(place.remove)
            spec = _outside(spec, place) if spec.landing.outside else _in_checkout(spec, place)
        yield spec, undo


def _outside(spec: TaskSpec, place: WorktreePlace) -> TaskSpec:
    landing = spec.landing
    assert landing is not None
    branch = landing.branch or f"agentrunner/{spec.task_id}"
    note_dir = spec.runner.note.dir
    done = prepare(place, Path(landing.repo), note_dir, branch=branch, clean=landing.clean)
    update = {
        "branch": branch,
        "base": done.base,
        "carried": [clean(path) for path in done.carried[:MAX_CARRIED]],
        "carried_more": max(0, len(done.carried) - MAX_CARRIED),
        "left": [clean(path) for path in done.left],
    }
    landing = landing.model_copy(update=update)
    return spec.model_copy(update={"repo": str(place.work.resolve()), "landing": landing})


def _in_checkout(spec: TaskSpec, place: WorktreePlace) -> TaskSpec:
    landing = spec.landing
    assert landing is not None
    there = Checkout(CloneStore(place.clone, Path(landing.repo))).standing()
    landing = landing.model_copy(update={"branch": there.branch, "base": there.commit})
    return spec.model_copy(update={"landing": landing})


def load_task_of(folder: RunFolder) -> TaskSpec:
    """Return the task of a run to continue; raise InfraError where its folder is gone."""
    spec = load_spec(folder)
    if spec.repo == spec.shown_repo and not Path(spec.repo).is_dir():
        raise RepositoryGone(
            f"The repository of {folder.run_id} is not there any more.",
            path=spec.repo,
            remedy=f"put it back, or end the run: agentrunner cancel {folder.run_id}",
            nothing_spent=True,
        )
    if spec.repo != spec.shown_repo and not Path(spec.repo).is_dir():
        after = "agentrunner plan status" if spec.part_of else "then start it again"
        aside = runs_aside(folder.root.parents[1], Path(spec.shown_repo)) if spec.part_of else {}
        if plan := aside.get(folder.run_id):
            raise WorktreeGone(
                f"{folder.run_id} is a task of the plan {plan}, which is not the current one.",
                path=spec.repo,
                remedy=f"agentrunner plan switch {plan}, then agentrunner plan run",
                nothing_spent=True,
            )
        raise WorktreeGone(
            f"The work tree of {folder.run_id}, {spec.repo}, is gone.",
            path=spec.repo,
            remedy=f"agentrunner diff {folder.run_id} has what was done; {after}",
            nothing_spent=True,
        )
    return spec


def commit_late(
    folder: RunFolder, spec: TaskSpec, state: TaskContext, environ: Mapping[str, str]
) -> None:
    """Make the commit of a run that is COMPLETE where that failed; do nothing where it exists.

    Raises UsageError and GitFailed as `commit_attempt` does. Blocks.
    """
    if spec.landing is None:
        return
    redact = Redactor(secrets_of(spec, make_members(spec), environ)).redact
    snapshots = Snapshots.of(folder.snapshots_dir, spec)
    log = RunLog(folder.log_file, redact)
    commit_attempt(
        state, CommitTools(spec, folder, log, snapshots, environ, redact), Clock().stamp()
    )
