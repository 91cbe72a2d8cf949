"""Keep the options of the last `plan run`, with which an answer starts the plan again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from agentrunner import api, environment

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
