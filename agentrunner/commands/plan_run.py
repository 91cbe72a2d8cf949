"""`agentrunner plan run`: its options, and the checks before anything is started."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel, ConfigDict, ValidationError

from agentrunner import api, environment
from agentrunner.commands import options as opt
from agentrunner.commands.console import Console, Output, interactive, show_json, tell
from agentrunner.commands.plan_drive import drive_plan
from agentrunner.commands.plan_place import repository, task_id_of
from agentrunner.commands.question_prompt import ask_which
from agentrunner.errors import UsageError
from agentrunner.errors.plans import UnknownTask
from agentrunner.errors.repositories import NoCommit, NoRepository

if TYPE_CHECKING:
    from agentrunner.plans.execution.instructions import PlanInstructions


class Begun(BaseModel):
    """The options of the latest `plan run` that are not settings of the plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    parallel: int
    only: tuple[str, ...] = ()
    in_place: bool = False
    include_uncommitted: bool = False
    squash: bool = False
    onto: str = ""
    request: bool = False
    policy: str = ""
    """Absolute; "" for none."""


WAYS = {
    "g": ("git_init", "make it a git repository: git init, and one commit of what is there"),
    "i": ("in_place", "work without git: one task after another, in the folder itself"),
}
"""By letter: the option that a person chooses with it, and its effect."""


@opt.with_output
def run(
    parallel: Annotated[
        int | None,
        typer.Option(
            "--parallel",
            "-j",
            min=1,
            max=1000,
            metavar="N",
            help="Tasks at once, 1 to 1000. Default: one per core.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ID", help="This task and what it depends on."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the order; nothing is started.")
    ] = False,
    test: opt.Test = None,
    setup: Annotated[
        str | None, typer.Option("--setup", metavar="CMD", help="Prepares each work tree.")
    ] = None,
    meta: opt.Meta = None,
    planner_model: opt.PlannerModel = None,
    worker: opt.Worker = None,
    model: opt.Model = None,
    sandbox: opt.Sandbox = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            "--budget", metavar="NAME=AMOUNT", help="A limit of the whole plan, e.g. usd=5."
        ),
    ] = None,
    overrides: opt.Overrides = None,
    include_uncommitted: Annotated[
        bool, typer.Option("--include-uncommitted", help="Include uncommitted changes.")
    ] = False,
    git_init: Annotated[
        bool,
        typer.Option("--git-init", help="No git yet: make a repository."),
    ] = False,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="No git: one after another, in the folder itself.")
    ] = False,
    pr: Annotated[
        bool, typer.Option("--pr", help="Push the result, open a pull or merge request.")
    ] = False,
    onto: Annotated[
        str | None,
        typer.Option("--onto", metavar="BRANCH", help="Bring the result onto this branch."),
    ] = None,
    squash: Annotated[
        bool, typer.Option("--squash", help="One commit for the whole plan.")
    ] = False,
    author: Annotated[
        str | None, typer.Option("--author", metavar="NAME <EMAIL>", help="Author of the commits.")
    ] = None,
    message: Annotated[
        str | None,
        typer.Option("--commit-message", metavar="TEMPLATE", help="Message of each task's commit."),
    ] = None,
    detach: opt.Detach = False,
    repo: opt.PlanRepo = None,
    policy: opt.PolicyFile = None,
    *,
    output: Output,
) -> int:
    """Carry the plan out: each task as a run in a work tree of its own, merged onto a branch.

    Settings are kept with the plan for the next time. If you run it again, it resumes.
    """
    from agentrunner.plans.execution.delivery import DeliveryOptions
    from agentrunner.plans.execution.plan_settings import save_settings

    output = opt.detached(output, detach)
    place = repository(repo)
    options = {
        "test": test,
        "meta": meta,
        "planner_model": planner_model,
        "worker": worker,
        "model": model,
        "sandbox": sandbox,
    }
    order = api.plan_instructions(
        place,
        api.options(output.state_dir, policy=policy),
        parallel=parallel,
        only=_ids(only) if only else (),
        settings=[*(overrides or []), *map(opt.budget_override, budget or [])],
        setup=setup,
        git_init=git_init,
        in_place=in_place,
        include_uncommitted=include_uncommitted,
        commit_author=author,
        commit_message=message,
        delivery=DeliveryOptions(squash=squash, onto=onto or "", request=pr),
        **options,
    )
    if dry_run:
        return _dry_run(order, output)
    ready = _checked(order, output)
    if ready is None:
        tell("Nothing was started.", sys.stderr)
        return 0
    save_settings(ready.folder, ready.settings)
    keep(ready)
    return drive_plan(ready, output)


def _ids(names: list[str]) -> tuple[str, ...]:
    """Return the tasks of `--only`; refuse an empty list, which would mean all of them."""

    parts = [part.strip() for name in names for part in name.split(",")]
    ids = tuple(dict.fromkeys(task_id_of(part) for part in parts if part))
    if not ids:
        raise UnknownTask(
            "--only names no task.",
            path="--only",
            remedy="--only TASK-0001, or leave it out for the whole plan",
        )
    return ids


def _checked(order: PlanInstructions, output: Output) -> PlanInstructions | None:
    """Return the order if it can be executed; None if the person leaves.

    A folder without git, or without a commit, is a question in a terminal, and else an error.
    """
    from dataclasses import replace

    from agentrunner.plans.execution.preflight import ways_on

    try:
        api.check_plan(order)
    except UsageError as error:
        ways = ways_on(order.repo) if isinstance(error, NoRepository | NoCommit) else ()
        if not ways or not interactive(output):
            raise
        choices = {letter: meaning for letter, (way, meaning) in WAYS.items() if way in ways}
        if isinstance(error, NoCommit):
            choices["g"] = "make the first commit, of what is there"
        chosen = ask_which(error.message, {**choices, "q": "quit"}, Console(output))
        if chosen == "q":
            return None
        way: dict[str, Any] = {WAYS[chosen][0]: True}
        order = replace(order, **way)
        api.check_plan(order)
    return order


def _dry_run(order: PlanInstructions, output: Output) -> int:
    """Show the waves in which tasks would start."""
    from agentrunner.plans.execution.forecast import waves

    plan = api.check_plan(order)
    planned = waves(plan, order.only, order.parallel)
    if output.json:
        return show_json({"waves": planned})
    from agentrunner.screens.layout import flat

    for number, tasks in enumerate(planned, start=1):
        for index, task in enumerate(tasks):
            lead = f"{number:>4}." if index == 0 else " " * 5
            tell(f"{lead} {task}  {flat(plan.design_of(task).title)}")
    if not planned:
        tell("Nothing is left to do: every task that is wanted is COMPLETE.")
        return 0
    tell("\nNothing was started. A task starts as soon as it may, not in waves.")
    return 0


def keep(order: PlanInstructions) -> None:
    """Save the options of this start; the plan's folder exists."""
    from agentrunner.storage.run_folder import write_private

    policy = order.options.policy
    begun = Begun(
        parallel=order.parallel,
        only=order.only,
        in_place=order.in_place,
        include_uncommitted=order.include_uncommitted,
        squash=order.wishes.squash,
        onto=order.wishes.onto,
        request=order.wishes.request,
        policy=str(policy.absolute()) if policy else "",
    )
    write_private(order.folder.begun, begun.model_dump_json(indent=1).encode())


def as_before(repo: Path, state_dir: str | None) -> PlanInstructions:
    """Return the instructions of the latest `plan run`, including its policy file.

    Raises UsageError and InfraError if the plan cannot be continued here, and `plan-damaged` if the
    saved options cannot be read.
    """
    from agentrunner.errors.plans import PlanDamaged
    from agentrunner.plans.execution.delivery import DeliveryOptions
    from agentrunner.plans.execution.instructions import check_order
    from agentrunner.plans.store import PlanStore
    from agentrunner.storage.plan_folder import plan_folder

    place = environment.state_dir(state_dir)
    folder = plan_folder(place, repo)
    try:
        begun = Begun.model_validate_json(folder.begun.read_bytes())
    except FileNotFoundError:
        begun = Begun(parallel=len(os.sched_getaffinity(0)))
    except ValidationError as error:
        raise PlanDamaged(
            f"How the plan was begun, in {folder.begun}, cannot be read.",
            path=str(folder.begun),
            remedy="agentrunner plan run --detach, with the options that it had",
        ) from error
    policy = Path(begun.policy) if begun.policy else None
    order = api.plan_instructions(
        repo,
        api.options(place, policy=policy),
        parallel=begun.parallel,
        only=begun.only,
        in_place=begun.in_place,
        include_uncommitted=begun.include_uncommitted,
        delivery=DeliveryOptions(squash=begun.squash, onto=begun.onto, request=begun.request),
    )
    check_order(order, PlanStore(folder.plan).load())
    return order
