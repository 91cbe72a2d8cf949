"""AgentRunner as a library: the verbs of the command line, typed and asynchronous.

    from agentrunner import api

    task = api.read_task("task.yaml")
    result = await api.run(task)
    if result.complete:
        print(result.grade, result.note)

Each function raises `agentrunner.errors.AgentRunnerError`: UsageError for a wrong request,
InfraError where the machine prevents it. Nothing here prints or reads standard input. Runs are kept
in `Options.state_dir`, where the command line finds them, too.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from dataclasses import replace as _replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentrunner import environment
from agentrunner.errors.repositories import UncommittedWork

environment.quiet_libraries()  # before the first import of what reads these settings at import

from agentrunner.config.load import TaskSource, load_task  # noqa: E402
from agentrunner.config.spec import TaskSpec  # noqa: E402
from agentrunner.discovery.repository import detect_test  # noqa: E402
from agentrunner.engine import queries  # noqa: E402
from agentrunner.engine import runs as _runs  # noqa: E402
from agentrunner.engine.attempt_run import Options  # noqa: E402
from agentrunner.errors import UsageError  # noqa: E402
from agentrunner.events import Event, read_event  # noqa: E402
from agentrunner.results import InboxItem, PlanResult, Result, RunEntry  # noqa: E402
from agentrunner.state.lifecycle import state_word  # noqa: E402
from agentrunner.state.people import Answer  # noqa: E402
from agentrunner.storage.events import read_from  # noqa: E402
from agentrunner.storage.index import RunIndex, RunRow  # noqa: E402
from agentrunner.storage.locks import run_lock  # noqa: E402
from agentrunner.storage.plan_folder import plan_folder  # noqa: E402
from agentrunner.storage.run_folder import RunFolder  # noqa: E402

if TYPE_CHECKING:
    from agentrunner.plans.plan import Plan
    from agentrunner.plans.proposal import Proposal
    from agentrunner.plans.store import PlanStore

__all__ = [
    "Event",
    "InboxItem",
    "Options",
    "PlanResult",
    "Result",
    "RunEntry",
    "TaskSpec",
    "accept",
    "answer_plan",
    "apply_proposal",
    "cancel",
    "diff",
    "follow",
    "look",
    "options",
    "plan",
    "propose",
    "read_task",
    "respond",
    "resume",
    "run",
    "run_plan",
    "runs",
    "undo",
    "undo_plan",
]

FOLLOW_SEC = 0.2
"""How often `follow` looks for new events, in seconds."""


def options(state_dir: Path | str | None = None, **how: Any) -> Options:
    """Return how runs are driven: `state_dir` as for the command line, no questions, no listener.

    `how` are further fields of `Options`: `on_event`, `ask`, `environ`, `policy`, `stop`.
    """
    root = environment.state_dir(os.fspath(state_dir) if state_dir else None)
    return Options(state_dir=root, **{"on_event": _ignore, **how})


def _ignore(event: object) -> None:
    """Take an event and do nothing, for callers that use `follow`, or no events at all."""


def read_task(
    file: Path | str | None = None,
    *,
    goal: str | None = None,
    settings: Sequence[str] = (),
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    **named: Any,
) -> TaskSpec:
    """Return a task from a task file or PRD, or from a goal in words, as `agentrunner run` reads
    it.

    `settings` are texts like "runner.meta.max_loops=3"; `named` are the options of the command line
    by their names: repo, test, meta, worker, model, sandbox, max_loops, approve, strict. Raises
    UsageError with the place of what is wrong. Blocks.
    """
    if (file is None) == (goal is None):
        raise UsageError("Give either a file or a goal.")
    source = TaskSource("goal", str(goal)) if file is None else TaskSource("file", os.fspath(file))
    return load_task(
        source,
        overrides=settings,
        options=named,
        environ=os.environ if environ is None else environ,
        cwd=cwd or Path.cwd(),
        detect_test=detect_test,
        today=date.today(),
        auto=True,
    )


# -- runs -----------------------------------------------------------------------------------------


async def run(task: TaskSpec, how: Options | None = None) -> Result:
    """Run a task to its end, or until it waits for a person."""
    return await _runs.start(task, how or options())


async def resume(
    run_id: str,
    how: Options | None = None,
    *,
    max_loops: int | None = None,
    message: str | None = None,
    on_change: Literal["replan", "continue"] | None = None,
    budget: Sequence[str] = (),
    planner: str | None = None,
    planner_model: str | None = None,
    model: str | None = None,
    by: str = "",
) -> Result:
    """Continue a run; one that ended FAILED or NEEDS_REVIEW starts its next attempt.

    `message` is a text for the planner, of the person `by`; `budget` are grants like "usd=+5";
    `model` is the worker's from now on.
    """
    given: dict[str, Any] = {"max_loops": max_loops, "message": message, "on_change": on_change}
    given |= {"planner": planner, "planner_model": planner_model, "model": model}
    given |= {"budget": budget, "by": by}
    return await _runs.resume(run_id, how or options(), **given)


async def respond(
    run_id: str,
    decision: Literal["answer", "approve", "reject"],
    text: str = "",
    *,
    question: str = "",
    edit: str = "",
    by: str = "",
    how: Options | None = None,
) -> Result:
    """Give a waiting run its answer, and continue it.

    `question` is the id of the question that is meant; without it, the one that waits. `edit` is an
    edited plan for "approve". Raises UsageError for an answer that does not fit.
    """
    # The engine checks it against the question that waits, under the run's lock.
    answer = Answer(id=question, kind="ask_human", decision=decision, text=text, edit=edit, by=by)
    return await _runs.respond(run_id, answer, how or options())


async def accept(
    run_id: str,
    reason: str,
    *,
    criteria: Sequence[str] = (),
    known_red: Sequence[str] = (),
    unchanged: bool = False,
    by: str = "",
    how: Options | None = None,
) -> Result:
    """Record a person's acceptance of an ended run, and verify once more; COMPLETE if the code
    agrees.

    Without `criteria` it covers all of them. `known_red` are tests that were red before for another
    reason.
    """
    return await _runs.accept(
        run_id,
        list(criteria),
        reason,
        by,
        how or options(),
        unchanged=unchanged,
        known_red=known_red,
    )


async def cancel(run_id: str, how: Options | None = None) -> Result:
    """End a run FAILED, after stopping the process that drives it and its worker."""
    return await _runs.cancel(run_id, how or options())


async def runs(repo: Path | None = None, *, state_dir: Path | str | None = None) -> list[RunEntry]:
    """Return the runs of a repository, or of all, the newest first."""

    def read() -> list[RunEntry]:
        index = RunIndex(environment.state_dir(os.fspath(state_dir) if state_dir else None))
        rows = index.runs(repo.resolve() if repo else None)
        return [_entry(index.state_dir, row) for row in rows]

    return await asyncio.to_thread(read)


def _entry(state_dir: Path, row: RunRow) -> RunEntry:
    facts = asdict(row)
    driven = run_lock(RunFolder(state_dir / "runs" / row.run_id)).probe() is not None
    facts["stands"] = state_word({**facts, "running": driven and not row.finished_at})
    return RunEntry(**{name: facts[name] for name in RunEntry.model_fields})


async def look(run_id: str, *, state_dir: Path | str | None = None) -> Result:
    """Return the present result of a run."""
    place = options(state_dir).state_dir
    return await asyncio.to_thread(queries.show, place, run_id)


async def follow(
    run_id: str, *, after: int = 0, state_dir: Path | str | None = None
) -> AsyncIterator[Event]:
    """Yield the events of a run as they come, from number `after` + 1 on, also those of another
    process.

    It ends with the result of an attempt that is no longer driven, and where a run that is not
    driven has no further event.
    """
    folder = RunFolder.open(options(state_dir).state_dir, run_id)
    offset = 0
    while True:
        driven = await asyncio.to_thread(lambda: run_lock(folder).probe() is not None)
        lines, offset = await asyncio.to_thread(read_from, folder.events_file, offset)
        for line in lines:
            if int(line.get("seq", 0)) > after:
                yield read_event(line)
        if not driven and not lines:
            return
        if not lines:
            await asyncio.sleep(FOLLOW_SEC)


async def diff(
    run_id: str, *, number: int | None = None, state_dir: Path | str | None = None
) -> str:
    """Return what the run changed so far, or in its round `number`, as a unified diff."""
    place = options(state_dir).state_dir
    return await asyncio.to_thread(queries.diff, place, run_id, number)


async def undo(
    run_id: str, *, force: bool = False, state_dir: Path | str | None = None
) -> list[str]:
    """Put the files back as they were before the run, and return their paths; a second call redoes
    it.

    Raises UsageError for files that were edited since, unless `force`; then no file is touched.
    """
    place = options(state_dir).state_dir
    done = await asyncio.to_thread(queries.undo, place, run_id, force)
    if done["refused"]:
        raise UncommittedWork(
            f"Edited since the run: {', '.join(done['refused'])}.",
            remedy="force=True",
        )
    return list(done["files"])


# -- plans ----------------------------------------------------------------------------------------


async def propose(
    repo: Path,
    text: str,
    *,
    settings: Sequence[str] = (),
    author: str = "",
    state_dir: Path | str | None = None,
    **named: Any,
) -> Proposal:
    """Return the planner's proposal for a message about the plan of a repository; nothing is
    changed yet.

    `settings` and `named` say who plans, as for `read_task`.
    """
    from agentrunner.plans.planner import open_conversation, planning_spec

    place, environ = options(state_dir).state_dir, os.environ
    task = await asyncio.to_thread(
        read_task, goal="A conversation about the plan.", settings=settings, repo=str(repo), **named
    )
    spec = await asyncio.to_thread(planning_spec, task, environ, place, None)
    folder = plan_folder(place, repo.resolve())
    async with open_conversation(spec, folder, place, environ, author=author) as (talk, _):
        return await talk.propose(text)


async def apply_proposal(
    repo: Path, proposal: Proposal, *, author: str = "", state_dir: Path | str | None = None
) -> Plan:
    """Make a proposal part of the plan; raise PlanConflict where that changed meanwhile."""
    from agentrunner.plans.conversation import accept as accept_proposal

    store, at = _store(repo, state_dir), options().clock.stamp()
    return await asyncio.to_thread(accept_proposal, store, proposal, at=at, author=author)


async def plan(repo: Path, *, state_dir: Path | str | None = None) -> Plan:
    """Return the present plan of a repository."""
    return await asyncio.to_thread(_store(repo, state_dir).load)


async def undo_plan(repo: Path, *, author: str = "", state_dir: Path | str | None = None) -> Plan:
    """Undo the last change of the plan, and return the plan."""
    store, at = _store(repo, state_dir), options().clock.stamp()
    await asyncio.to_thread(store.undo, at=at, author=author)
    return await asyncio.to_thread(store.load)


async def run_plan(
    repo: Path,
    how: Options | None = None,
    *,
    parallel: int = 2,
    only: Sequence[str] = (),
    settings: Sequence[str] = (),
    in_place: bool = False,
    **named: Any,
) -> PlanResult:
    """Execute the plan of a repository as far as it goes without a person.

    `how.on_event` gets the events of the plan and of its tasks' runs.
    """
    from agentrunner.plans.execution.executor import execute_plan
    from agentrunner.plans.execution.instructions import PlanInstructions
    from agentrunner.plans.execution.plan_settings import load_settings

    how = how or options()
    folder = plan_folder(how.state_dir, repo.resolve())
    shared = load_settings(folder, Path.cwd())
    shared = shared.with_given(named, None, list(settings), Path.cwd())
    quiet = _replace(how, on_event=_ignore, ask=None, confirm=None)
    order = PlanInstructions(
        repo.resolve(), shared, quiet, parallel=parallel, only=tuple(only), in_place=in_place
    )
    return await execute_plan(order, how.on_event)


async def answer_plan(
    repo: Path, question: int, text: str, *, state_dir: Path | str | None = None
) -> None:
    """Answer a question of the plan; the process that executes it continues by itself.

    Raises UsageError where there is no such question or it has its answer.
    """
    store, at = _store(repo, state_dir), options().clock.stamp()
    await asyncio.to_thread(store.answer, question, text, at=at)


def _store(repo: Path, state_dir: Path | str | None) -> PlanStore:
    from agentrunner.plans.store import PlanStore

    return PlanStore(plan_folder(options(state_dir).state_dir, repo.resolve()).plan)
