"""The verbs of plans: make one by talking, carry it out, answer what it asks."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrunner.api.driving import aside, ignore, in_thread, options, state_folder
from agentrunner.errors.plans import NoProposal

if TYPE_CHECKING:
    from agentrunner.engine.attempt_run import Options
    from agentrunner.plans.conversation import Conversation
    from agentrunner.plans.execution.delivery import DeliveryOptions
    from agentrunner.plans.execution.instructions import PlanInstructions
    from agentrunner.plans.execution.status import PlanStatus
    from agentrunner.plans.plan import Plan
    from agentrunner.plans.planner import PanelPlanner
    from agentrunner.plans.proposal import Proposal
    from agentrunner.plans.store import OpenQuestion, PlanStore, UndonePlan
    from agentrunner.results import PlanResult
    from agentrunner.storage.plan_folder import PlanFolder

__all__ = [
    "answer_plan",
    "answer_plan_sync",
    "apply_proposal",
    "check_plan",
    "conversation",
    "execute_plan",
    "plan",
    "plan_instructions",
    "plan_status",
    "plan_status_sync",
    "propose",
    "run_plan",
    "undo_plan",
    "waiting_proposal",
]


@asynccontextmanager
async def conversation(
    repo: Path | str,
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

    place, environ = state_folder(state_dir), os.environ
    # A conversation has no task: this one only passes the settings to the planner.
    task = await aside(
        load_task,
        TaskSource("goal", "A conversation about the plan."),
        overrides=settings,
        options={"repo": str(repo), **named},
        environ=environ,
        cwd=Path.cwd(),
        auto=True,
    )
    refuse_inside(place, Path(repo))
    spec = await aside(planning_spec, task, environ, place, policy)
    async with open_conversation(
        spec, _folder(repo, state_dir), place, environ, author=author
    ) as talk:
        yield talk


async def propose(
    repo: Path | str,
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
            await aside(keep, talk.store.path.parent, proposal)
        return proposal


async def waiting_proposal(
    repo: Path | str, proposal_id: str | None = None, *, state_dir: Path | str | None = None
) -> Proposal:
    """Return the proposal that was made last and waits, exactly as it was made.

    Raises UsageError where there is none, or it is not the one of this id.
    """
    from agentrunner.plans.proposal import kept

    store = _store(repo, state_dir)
    waiting = await aside(lambda: kept(store.path.parent, store.load()))
    if proposal_id not in (None, waiting.id):
        raise NoProposal(
            f"The proposal that waits is {waiting.id}, not {proposal_id}.",
            remedy='agentrunner plan "what you want" shows a new one',
        )
    return waiting


async def apply_proposal(
    repo: Path | str, proposal: Proposal, *, author: str = "", state_dir: Path | str | None = None
) -> Plan:
    """Make a proposal part of the plan; raise PlanConflict where that changed meanwhile."""
    from agentrunner.plans.conversation import accept as accept_proposal
    from agentrunner.text.times import stamp_now

    store = _store(repo, state_dir)
    return await aside(accept_proposal, store, proposal, at=stamp_now(), author=author)


async def plan(repo: Path | str, *, state_dir: Path | str | None = None) -> Plan:
    """Return the present plan of a repository."""
    return await aside(_store(repo, state_dir).load)


def plan_status_sync(repo: Path | str, *, state_dir: Path | str | None = None) -> PlanStatus:
    """Return how the plan and each of its tasks stand, also while another process executes it."""
    from datetime import UTC, datetime

    from agentrunner.plans.execution.status import look

    return look(state_folder(state_dir), _folder(repo, state_dir), datetime.now(UTC))


plan_status = in_thread(plan_status_sync)


async def undo_plan(
    repo: Path | str, *, author: str = "", force: bool = False, state_dir: Path | str | None = None
) -> UndonePlan:
    """Undo the last change of the plan; return the plan before and after that, and the change.

    Raises PatchRejected where that removes a task that is at work, unless `force`.
    """
    from agentrunner.text.times import stamp_now

    undo = _store(repo, state_dir).undo
    return await aside(undo, at=stamp_now(), author=author, force=force)


def plan_instructions(
    repo: Path | str,
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
    from functools import partial

    from agentrunner.plans.execution.delivery import DeliveryOptions
    from agentrunner.plans.execution.instructions import PlanInstructions
    from agentrunner.plans.execution.plan_settings import load_settings
    from agentrunner.plans.execution.task_spec import kinds_of

    how, repo = how or options(), Path(repo)
    shared = load_settings(_folder(repo, how.state_dir), Path.cwd())
    kinds = partial(kinds_of, repo=repo, environ=how.environ)
    shared = shared.with_given(named, setup, list(settings), Path.cwd(), kinds)
    return PlanInstructions(
        repo,
        shared.with_commits(commit_author, commit_message),
        replace(how, on_event=ignore, ask=None, confirm=None),
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
    from agentrunner.config.repo import refuse_state
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
    repo: Path | str,
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
    order = await aside(plan_instructions, Path(repo).resolve(), how, **given, **more)
    await aside(check_plan, order)
    await aside(save_settings, order.folder, order.settings)
    return await execute_plan(order, how.on_event)


def answer_plan_sync(
    repo: Path | str, question: int | str, text: str, *, state_dir: Path | str | None = None
) -> OpenQuestion:
    """Answer a question of the plan, and return it; the process that executes the plan continues by
    itself.

    `question` is its number, or the task that asks, or "budget", whose answer raises the limit.
    Raises UsageError where there is no such question or the answer does not fit.
    """
    from agentrunner.execution.credentials import secrets_in
    from agentrunner.plans.conversation import check_message
    from agentrunner.plans.execution.answers import asked_by
    from agentrunner.plans.execution.plan_budget import raise_budget
    from agentrunner.plans.store import BUDGET
    from agentrunner.text.redaction import Redactor
    from agentrunner.text.times import stamp_now

    place, environ = state_folder(state_dir), os.environ
    folder, store = _folder(repo, place), _store(repo, place)
    text = Redactor(secrets_in(environ)).redact(text)
    check_message(text)
    found = asked_by(store, str(question))
    if found.task_id == BUDGET:
        raise_budget(folder, store.load(), text, repo=Path(repo), state_dir=place, environ=environ)
    return store.answer(found.id, text, stamp_now())


answer_plan = in_thread(answer_plan_sync)


def _folder(repo: Path | str, state_dir: Path | str | None) -> PlanFolder:
    from agentrunner.storage.plan_folder import plan_folder

    return plan_folder(state_folder(state_dir), Path(repo).resolve())


def _store(repo: Path | str, state_dir: Path | str | None) -> PlanStore:
    from agentrunner.plans.store import PlanStore

    return PlanStore(_folder(repo, state_dir).plan)
