"""AgentRunner as a library: the verbs of the command line, typed and asynchronous.

    from agentrunner import api

    task = api.read_task("task.yaml")
    result = await api.run(task)
    if result.complete:
        print(result.grade, result.note)

Each function raises `agentrunner.errors.AgentRunnerError`: UsageError for a wrong request,
InfraError where the machine prevents it. Nothing here prints or reads standard input. Runs are kept
in `Options.state_dir`, where the command line finds them, too.

What only looks at runs has a twin that blocks, `look_sync` beside `look`: for programs without an
event loop, such as the command line. Libraries are imported by the function that needs them, so
that looking at a run does not wait for LangGraph.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from agentrunner import environment
from agentrunner.errors import UsageError
from agentrunner.errors.plans import NoProposal

environment.quiet_libraries()  # before the first import of what reads these settings at import

if TYPE_CHECKING:
    from agentrunner.config.spec import TaskSpec
    from agentrunner.engine.attempt_run import Options
    from agentrunner.engine.following import EventReader
    from agentrunner.engine.listing import ListedRun
    from agentrunner.engine.queries import ChangedFile
    from agentrunner.events import Event
    from agentrunner.plans.conversation import Conversation, UndonePlan
    from agentrunner.plans.execution.delivery import DeliveryOptions
    from agentrunner.plans.execution.instructions import PlanInstructions
    from agentrunner.plans.plan import Plan
    from agentrunner.plans.planner import PanelPlanner
    from agentrunner.plans.proposal import Proposal
    from agentrunner.plans.store import OpenQuestion, PlanStore
    from agentrunner.results import InboxItem, PlanResult, Result, RunEntry, Undone
    from agentrunner.storage.plan_folder import PlanFolder

_TYPES = {
    "ChangedFile": "agentrunner.engine.queries",
    "Event": "agentrunner.events",
    "EventReader": "agentrunner.engine.following",
    "InboxItem": "agentrunner.results",
    "ListedRun": "agentrunner.engine.listing",
    "Options": "agentrunner.engine.attempt_run",
    "PanelPlanner": "agentrunner.plans.planner",
    "PlanResult": "agentrunner.results",
    "Result": "agentrunner.results",
    "RunEntry": "agentrunner.results",
    "TaskSpec": "agentrunner.config.spec",
    "Undone": "agentrunner.results",
}
"""Types that are part of the API, imported when somebody names them."""

__all__ = [
    "ChangedFile",
    "Event",
    "EventReader",
    "InboxItem",
    "ListedRun",
    "Options",
    "PanelPlanner",
    "PlanResult",
    "Result",
    "RunEntry",
    "TaskSpec",
    "Undone",
    "accept",
    "answer_plan",
    "answer_plan_sync",
    "apply_proposal",
    "cancel",
    "changes",
    "changes_sync",
    "check_plan",
    "conversation",
    "diff",
    "diff_sync",
    "execute_plan",
    "follow",
    "listed_runs_sync",
    "look",
    "look_sync",
    "look_values_sync",
    "options",
    "plan",
    "plan_instructions",
    "propose",
    "read_events",
    "read_task",
    "respond",
    "resume",
    "run",
    "run_plan",
    "runs",
    "undo",
    "undo_plan",
    "undo_sync",
    "waiting_proposal",
    "worker_at_work_sync",
]

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def __getattr__(name: str) -> Any:
    if name not in _TYPES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_TYPES[name]), name)


async def _aside(
    work: Callable[_Given, _Found], /, *args: _Given.args, **kwargs: _Given.kwargs
) -> _Found:
    """Do in a thread what blocks."""
    import asyncio  # a third of the time of `agentrunner list`, which does without

    return await asyncio.to_thread(work, *args, **kwargs)


def _place(state_dir: Path | str | None) -> Path:
    return environment.state_dir(os.fspath(state_dir) if state_dir else None)


FOLLOW_SEC = 0.2
"""How often `follow` looks for new events, in seconds."""


def options(state_dir: Path | str | None = None, **how: Any) -> Options:
    """Return how runs are driven: `state_dir` as for the command line, no questions, no listener.

    `how` are further fields of `Options`: `on_event`, `ask`, `environ`, `policy`, `stop`.
    """
    from agentrunner.engine.attempt_run import Options

    return Options(state_dir=_place(state_dir), **{"on_event": _ignore, **how})


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
    from datetime import date

    from agentrunner.config.load import TaskSource, load_task
    from agentrunner.discovery.repository import detect_test

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
    from agentrunner.engine import runs as engine_runs

    how = how or options()
    return await _remembered(await engine_runs.start(task, how), how)


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
    from agentrunner.engine import runs as engine_runs

    given: dict[str, Any] = {"max_loops": max_loops, "message": message, "on_change": on_change}
    given |= {"planner": planner, "planner_model": planner_model, "model": model}
    given |= {"budget": budget, "by": by}
    how = how or options()
    return await _remembered(await engine_runs.resume(run_id, how, **given), how)


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
    from agentrunner.engine import runs as engine_runs
    from agentrunner.state.people import Answer

    # The engine checks it against the question that waits, under the run's lock.
    answer = Answer(id=question, kind="ask_human", decision=decision, text=text, edit=edit, by=by)
    how = how or options()
    return await _remembered(await engine_runs.respond(run_id, answer, how), how)


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
    from agentrunner.engine import runs as engine_runs

    how = how or options()
    more: dict[str, Any] = {"unchanged": unchanged, "known_red": known_red}
    ended = await engine_runs.accept(run_id, list(criteria), reason, by, how, **more)
    return await _remembered(ended, how)


async def cancel(run_id: str, how: Options | None = None) -> Result:
    """End a run FAILED, after stopping the process that drives it and its worker."""
    from agentrunner.engine import runs as engine_runs

    how = how or options()
    return await _remembered(await engine_runs.cancel(run_id, how), how)


async def _remembered(result: Result, how: Options) -> Result:
    """Cache what `look` and `diff` need of a run while the libraries for it are loaded."""
    from agentrunner.engine import queries

    run_id = result.run_id
    if run_id and (how.state_dir / "runs" / run_id / "checkpoints.sqlite").is_file():
        await _aside(queries.remember, how.state_dir, run_id)
    return result


# -- looking at runs ------------------------------------------------------------------------------


async def runs(repo: Path | None = None, *, state_dir: Path | str | None = None) -> list[RunEntry]:
    """Return the runs of a repository, or of all, the newest first.

    The end of a run that was killed before it recorded that itself is recorded.
    """
    from agentrunner.results import RunEntry

    found = await _aside(listed_runs_sync, repo, state_dir=state_dir)
    return [RunEntry.of(row) for row in found]


def listed_runs_sync(
    repo: Path | None = None, *, state_dir: Path | str | None = None
) -> list[ListedRun]:
    """Return the same as `runs` with what else a list shows, as rounds. Blocks."""
    from agentrunner.engine.listing import listed_runs

    return listed_runs(_place(state_dir), repo)


async def look(run_id: str, *, state_dir: Path | str | None = None) -> Result:
    """Return the present result of a run."""
    return await _aside(look_sync, run_id, state_dir=state_dir)


def look_sync(run_id: str, *, state_dir: Path | str | None = None) -> Result:
    """Do the same as `look`. Blocks."""
    from agentrunner.engine import queries

    return queries.show(_place(state_dir), run_id)


def look_values_sync(run_id: str, *, state_dir: Path | str | None = None) -> dict[str, object]:
    """Return the same as `look` as the JSON values that `show --json` prints, sooner. Blocks."""
    from agentrunner.engine import queries

    return queries.show_values(_place(state_dir), run_id)


def worker_at_work_sync(run_id: str, *, state_dir: Path | str | None = None) -> bool:
    """Whether a worker of a run that nobody drives is still at work. Blocks."""
    from agentrunner.engine import queries

    return queries.has_worker(_place(state_dir), run_id)


async def follow(
    run_id: str, *, after: int = 0, state_dir: Path | str | None = None
) -> AsyncIterator[Event]:
    """Yield the events of a run as they come, from number `after` + 1 on, also those of another
    process.

    It ends with the result of an attempt that is no longer driven, and where a run that is not
    driven has no further event.
    """
    import asyncio

    from agentrunner.events import read_event

    reader = read_events(run_id, state_dir=state_dir)
    while True:
        driven, lines = await _aside(reader.read_new)
        for line in lines:
            if int(line.get("seq", 0)) > after:
                yield read_event(line)
        if not driven and not lines:
            return
        if not lines:
            await asyncio.sleep(FOLLOW_SEC)


def read_events(run_id: str, *, state_dir: Path | str | None = None) -> EventReader:
    """Return a reader of the events of a run; each call of its `read_new` returns further ones.

    For programs that follow a run without an event loop, and want its events as JSON objects.
    """
    from agentrunner.engine.following import EventReader
    from agentrunner.storage.run_folder import RunFolder

    return EventReader(RunFolder.open(_place(state_dir), run_id))


async def diff(
    run_id: str,
    *,
    number: int | None = None,
    stat: bool = False,
    state_dir: Path | str | None = None,
) -> str:
    """Return what the run changed so far, or in its round `number`, as a unified diff.

    With `stat` a line for each file, and the counts.
    """
    return await _aside(diff_sync, run_id, number=number, stat=stat, state_dir=state_dir)


def diff_sync(
    run_id: str,
    *,
    number: int | None = None,
    stat: bool = False,
    state_dir: Path | str | None = None,
) -> str:
    """Do the same as `diff`. Blocks."""
    from agentrunner.engine import queries

    return queries.diff(_place(state_dir), run_id, number, stat)


async def changes(
    run_id: str, *, number: int | None = None, state_dir: Path | str | None = None
) -> list[ChangedFile]:
    """Return the files of `diff` with what happened to each and its lines."""
    return await _aside(changes_sync, run_id, number=number, state_dir=state_dir)


def changes_sync(
    run_id: str, *, number: int | None = None, state_dir: Path | str | None = None
) -> list[ChangedFile]:
    """Do the same as `changes`. Blocks."""
    from agentrunner.engine import queries

    return queries.changes(_place(state_dir), run_id, number)


async def undo(run_id: str, *, force: bool = False, state_dir: Path | str | None = None) -> Undone:
    """Put the files back as they were before the run; a second call redoes it.

    Files that were edited since are left alone and are in `refused`, unless `force`. `not_kept` are
    those that nobody can put back.
    """
    return await _aside(undo_sync, run_id, force=force, state_dir=state_dir)


def undo_sync(run_id: str, *, force: bool = False, state_dir: Path | str | None = None) -> Undone:
    """Do the same as `undo`. Blocks."""
    from agentrunner.engine import queries

    return queries.undo(_place(state_dir), run_id, force)


# -- plans ----------------------------------------------------------------------------------------


@asynccontextmanager
async def conversation(
    repo: Path,
    *,
    settings: Sequence[str] = (),
    policy: Path | None = None,
    author: str = "",
    state_dir: Path | str | None = None,
    **named: Any,
) -> AsyncIterator[tuple[Conversation, PanelPlanner]]:
    """Open a conversation about the plan of a repository; yield it and its planner.

    `settings` and `named` say who plans, as for `read_task`. Raises UsageError and InfraError where
    the planner is unavailable; then nothing is spent.
    """
    from agentrunner.config.load import TaskSource, load_task
    from agentrunner.plans.planner import open_conversation, planning_spec
    from agentrunner.storage.run_folder import refuse_inside

    place, environ = _place(state_dir), os.environ
    # A conversation has no task: this one only passes the settings to the planner.
    task = await _aside(
        load_task,
        TaskSource("goal", "A conversation about the plan."),
        overrides=settings,
        options={"repo": str(repo), **named},
        environ=environ,
        cwd=Path.cwd(),
        auto=True,
    )
    refuse_inside(place, repo)
    spec = await _aside(planning_spec, task, environ, place, policy)
    async with open_conversation(
        spec, _folder(repo, state_dir), place, environ, author=author
    ) as talk:
        yield talk


async def propose(
    repo: Path,
    text: str,
    *,
    settings: Sequence[str] = (),
    policy: Path | None = None,
    author: str = "",
    state_dir: Path | str | None = None,
    **named: Any,
) -> Proposal:
    """Return the planner's proposal for a message about the plan of a repository; nothing is
    changed yet.

    It is kept as the proposal that waits. `settings` and `named` say who plans, as for `read_task`.
    """
    from agentrunner.plans.proposal import keep

    how: dict[str, Any] = {"settings": settings, "policy": policy, "author": author}
    async with conversation(repo, state_dir=state_dir, **how, **named) as (talk, _):
        proposal = await talk.propose(text)
        if not proposal.empty:
            await _aside(keep, talk.store.path.parent, proposal)
        return proposal


async def waiting_proposal(
    repo: Path, proposal_id: str | None = None, *, state_dir: Path | str | None = None
) -> Proposal:
    """Return the proposal that was made last and waits, exactly as it was made.

    Raises UsageError where there is none, or it is not the one of this id.
    """
    from agentrunner.plans.proposal import kept

    store = _store(repo, state_dir)
    waiting = await _aside(lambda: kept(store.path.parent, store.load()))
    if proposal_id not in (None, waiting.id):
        raise NoProposal(
            f"The proposal that waits is {waiting.id}, not {proposal_id}.",
            remedy='agentrunner plan "what you want" shows a new one',
        )
    return waiting


async def apply_proposal(
    repo: Path, proposal: Proposal, *, author: str = "", state_dir: Path | str | None = None
) -> Plan:
    """Make a proposal part of the plan; raise PlanConflict where that changed meanwhile."""
    from agentrunner.plans.conversation import accept as accept_proposal
    from agentrunner.text.times import stamp_now

    store = _store(repo, state_dir)
    return await _aside(accept_proposal, store, proposal, at=stamp_now(), author=author)


async def plan(repo: Path, *, state_dir: Path | str | None = None) -> Plan:
    """Return the present plan of a repository."""
    return await _aside(_store(repo, state_dir).load)


async def undo_plan(
    repo: Path, *, author: str = "", force: bool = False, state_dir: Path | str | None = None
) -> UndonePlan:
    """Undo the last change of the plan; return the plan before and after that, and the change.

    Raises PatchRejected where that removes a task that is at work, unless `force`.
    """
    from agentrunner.plans.conversation import undo as undo_change
    from agentrunner.text.times import stamp_now

    store = _store(repo, state_dir)
    return await _aside(undo_change, store, at=stamp_now(), author=author, force=force)


def plan_instructions(
    repo: Path,
    how: Options | None = None,
    *,
    parallel: int | None = None,
    only: Sequence[str] = (),
    settings: Sequence[str] = (),
    setup: str | None = None,
    in_place: bool = False,
    git_init: bool = False,
    include_uncommitted: bool = False,
    commit_author: str | None = None,
    commit_message: str | None = None,
    delivery: DeliveryOptions | None = None,
    **named: Any,
) -> PlanInstructions:
    """Return what `execute_plan` is to do: the settings kept with the plan, and those given here.

    `parallel` tasks are at work at once, without it one per core; `only` are ids of tasks.
    `settings` and `named` are as for `read_task`. Blocks.
    """
    from dataclasses import replace

    from agentrunner.plans.execution.delivery import DeliveryOptions
    from agentrunner.plans.execution.instructions import PlanInstructions
    from agentrunner.plans.execution.plan_settings import load_settings

    how = how or options()
    shared = load_settings(_folder(repo, how.state_dir), Path.cwd())
    shared = shared.with_given(named, setup, list(settings), Path.cwd())
    return PlanInstructions(
        repo,
        shared.with_commits(commit_author, commit_message),
        replace(how, on_event=_ignore, ask=None, confirm=None),
        parallel=parallel or len(os.sched_getaffinity(0)),
        only=tuple(only),
        in_place=in_place,
        git_init=git_init,
        include_uncommitted=include_uncommitted,
        wishes=delivery or DeliveryOptions(),
    )


def check_plan(instructions: PlanInstructions) -> Plan:
    """Return the plan if it can be executed as instructed; else raise UsageError or InfraError.

    Blocks.
    """
    from agentrunner.config.repo_state import refuse_state
    from agentrunner.plans.execution.instructions import check_order
    from agentrunner.plans.store import PlanStore

    refuse_state(instructions.repo, elsewhere=not instructions.include_uncommitted)
    known = PlanStore(instructions.folder.plan).load()
    check_order(instructions, known)
    return known


async def execute_plan(
    instructions: PlanInstructions,
    on_event: Callable[[dict[str, Any]], None],
    may_start: Callable[[], bool] = lambda: True,
) -> PlanResult:
    """Execute a plan as far as it goes without a person.

    `on_event` gets the events of the plan and of its tasks' runs; no further task starts while
    `may_start` returns False.
    """
    from agentrunner.plans.execution import executor

    return await executor.execute_plan(instructions, on_event, may_start)


async def run_plan(
    repo: Path,
    how: Options | None = None,
    *,
    parallel: int | None = None,
    only: Sequence[str] = (),
    settings: Sequence[str] = (),
    in_place: bool = False,
    include_uncommitted: bool = False,
    **more: Any,
) -> PlanResult:
    """Execute the plan of a repository as far as it goes without a person.

    `how.on_event` gets the events of the plan and of its tasks' runs. `more` are further ones of
    `plan_instructions`. The settings given here are kept with the plan for the next time.
    """
    from agentrunner.plans.execution.plan_settings import save_settings

    how = how or options()
    given: dict[str, Any] = {"parallel": parallel, "only": only, "settings": settings}
    given |= {"in_place": in_place, "include_uncommitted": include_uncommitted}
    order = await _aside(plan_instructions, repo.resolve(), how, **given, **more)
    await _aside(check_plan, order)
    await _aside(save_settings, order.folder, order.settings)
    return await execute_plan(order, how.on_event)


async def answer_plan(
    repo: Path, question: int | str, text: str, *, state_dir: Path | str | None = None
) -> OpenQuestion:
    """Answer a question of the plan, and return it; the process that executes the plan continues by
    itself.

    `question` is its number, or the task that asks, or "budget", whose answer raises the limit.
    Raises UsageError where there is no such question or the answer does not fit.
    """
    return await _aside(answer_plan_sync, repo, question, text, state_dir=state_dir)


def answer_plan_sync(
    repo: Path, question: int | str, text: str, *, state_dir: Path | str | None = None
) -> OpenQuestion:
    """Do the same as `answer_plan`. Blocks."""
    from agentrunner.plans.execution.answering import answer_question

    place = _place(state_dir)
    return answer_question(_folder(repo, place), str(question), text, repo=repo, state_dir=place)


def _folder(repo: Path, state_dir: Path | str | None) -> PlanFolder:
    from agentrunner.storage.plan_folder import plan_folder

    return plan_folder(_place(state_dir), repo.resolve())


def _store(repo: Path, state_dir: Path | str | None) -> PlanStore:
    from agentrunner.plans.store import PlanStore

    return PlanStore(_folder(repo, state_dir).plan)
