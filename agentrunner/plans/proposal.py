"""A planner's proposal for a plan: a person sees it before it is accepted.

A proposal is made of one plan and one reply, and nothing else. It can be kept in a file, so that
exactly what was shown can be accepted later, by another process.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from pydantic import ValidationError

from agentrunner.errors import ProtocolError
from agentrunner.errors.plans import NoProposal
from agentrunner.errors.replies import ReplyInvalid
from agentrunner.plans.diff import PlanDiff, diff
from agentrunner.plans.patch import (
    EditError,
    PatchRejected,
    apply,
    conflicts_of,
    edits_of_decompose,
    edits_of_patch,
)
from agentrunner.plans.plan import Plan, PotentialConflict
from agentrunner.protocol import Decompose, Message, PlanPatch
from agentrunner.storage.run_folder import write_private

GOAL_CHARS = 4000
"""Characters of the first message that become the plan's goal: every prompt about the plan has
it."""
MOST_ERRORS = 20
"""Errors of a refused patch that the planner sees; fixing those usually fixes the others."""
FILE = "proposal.json"

Kind = Literal["decompose", "plan_patch"]
Reply = Decompose | PlanPatch


class Proposal(Struct, frozen=True):
    """A change of a plan that is not accepted yet."""

    message: str
    """The person's message."""
    reply: Reply
    before: Plan
    after: Plan

    @property
    def goal(self) -> str:
        """Return the goal of the plan; a new plan's is the first message about it."""
        return self.after.goal

    @property
    def kind(self) -> Kind:
        """Return the type of the reply's message."""
        return "decompose" if isinstance(self.reply, Decompose) else "plan_patch"

    @property
    def id(self) -> str:
        """Return an id of exactly this change of exactly this plan; 12 hex digits."""
        return hashlib.sha256(json.dumps(_as_json(self)).encode()).hexdigest()[:12]

    @property
    def understanding(self) -> str:
        """Return how the planner understood what the person wants."""
        return self.reply.understanding

    @property
    def questions(self) -> tuple[str, ...]:
        """Return the planner's questions to the person."""
        return tuple(self.reply.questions)

    @property
    def changes(self) -> PlanDiff:
        """Return the difference between the plan before and after it."""
        return diff(self.before, self.after)

    @property
    def conflicts(self) -> tuple[PotentialConflict, ...]:
        """Return files that several tasks may change and that the plan did not list yet."""
        known = set(self.before.conflicts)
        return tuple(conflict for conflict in self.after.conflicts if conflict not in known)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to accept."""
        return self.changes.empty and not self.conflicts

    @property
    def operations(self) -> Sequence[Mapping[str, Any]]:
        """Return what the planner wrote, for the history."""
        if isinstance(self.reply, PlanPatch):
            parts: Sequence[Decompose | Any] = self.reply.operations
        else:
            parts = self.reply.phases
        return [part.model_dump(mode="json", exclude_none=True) for part in parts]

    def on(self, plan: Plan) -> Proposal:
        """Return the same change of the present plan; raise PatchRejected."""
        return propose(plan, self.message, self.reply, self.goal)


def is_empty(plan: Plan) -> bool:
    """Whether a plan has no nodes to change: then a wish is decomposed, not patched."""
    return len(plan.nodes) == 1


def propose(plan: Plan, message: str, reply: Reply, goal: str = "") -> Proposal:
    """Return the proposal that a reply makes of a plan; raise PatchRejected where it cannot be
    applied.

    A plan that has no goal yet gets `goal`, or without one the message.
    """
    conflicts = conflicts_of(reply.potential_conflicts)
    if isinstance(reply, PlanPatch):
        after = apply(plan, edits_of_patch(reply), conflicts=conflicts)
    else:
        goal = plan.goal or goal or message.strip()[:GOAL_CHARS]
        after = apply(plan, edits_of_decompose(reply), conflicts=conflicts, goal=goal)
    return Proposal(message, reply, plan, after)


def check(plan: Plan, message: Message) -> None:
    """Refuse a well formed reply that cannot be applied or is empty, so that the planner fixes it.

    Raises ProtocolError that names every operation that cannot be applied.
    """
    reply = message.payload
    assert isinstance(reply, Decompose | PlanPatch)
    if isinstance(reply, Decompose) and not (reply.questions or _tasks(reply)):
        raise ReplyInvalid("payload.phases", "a plan needs at least one task")
    try:
        propose(plan, "", reply)
    except PatchRejected as rejected:
        raise refusal(rejected, reply) from rejected


def _tasks(reply: Decompose) -> int:
    return sum(len(phase.tasks) for phase in reply.phases)


def refusal(rejected: PatchRejected, reply: Reply) -> ProtocolError:
    """Return the error that shows the planner a rejected patch."""
    messages = [_described(error, reply) for error in rejected.errors[:MOST_ERRORS]]
    if more := len(rejected.errors) - len(messages):
        messages.append(f"and {more} more")
    path = _path(rejected.errors[0], reply)
    nothing = "nothing of the reply was applied"
    return ReplyInvalid(path, f"{nothing}: {'; '.join(messages)}")


def _path(error: EditError, reply: Reply) -> str:
    if isinstance(reply, Decompose):
        return "payload.phases"
    at = f".{error.op_index}" if error.op_index >= 0 else ""
    return f"payload.operations{at}"


def _described(error: EditError, reply: Reply) -> str:
    if isinstance(reply, Decompose) or error.op_index < 0:
        return f"{error.message} ({error.code})"
    return f"operation {error.op_index}: {error.message} ({error.code})"


# -- kept for later -------------------------------------------------------------------------------


def keep(folder: Path, proposal: Proposal) -> None:
    """Keep a proposal, in place of an earlier one."""
    write_private(folder / FILE, json.dumps(_as_json(proposal)).encode())


def kept(folder: Path, plan: Plan) -> Proposal:
    """Return the proposal that was kept, made for the present plan.

    Raises UsageError (`no-proposal`) where there is none, or none for this version of the plan, and
    PatchRejected where a task that it deletes is being worked on by now.
    """
    try:
        known = json.loads((folder / FILE).read_bytes())
        shape = Decompose if known["kind"] == "decompose" else PlanPatch
        reply = shape.model_validate(known["reply"])
        version, message = int(known["version"]), str(known["message"])
        goal = str(known.get("goal", ""))  # not in a file of an earlier version
    except FileNotFoundError:
        raise NoProposal(
            "There is no proposal that waits to be accepted.",
            remedy='agentrunner plan "what you want"',
        ) from None
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise NoProposal(
            f"The proposal in {folder / FILE} cannot be read.",
            remedy='agentrunner plan "what you want"',
        ) from error
    if version != plan.version:
        raise NoProposal(
            f"The proposal was made for version {version} of the plan, which is at version "
            f"{plan.version} now.",
            remedy='ask again: agentrunner plan "what you want"',
        )
    return propose(plan, message, reply, goal)


def waiting(folder: Path) -> str | None:
    """Return the message of the proposal that is kept, whatever its version; None for none."""
    try:
        return str(json.loads((folder / FILE).read_bytes())["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def forget(folder: Path) -> None:
    """Delete the proposal that is kept."""
    with contextlib.suppress(FileNotFoundError):
        (folder / FILE).unlink()


def _as_json(proposal: Proposal) -> dict[str, object]:
    return {
        "kind": proposal.kind,
        "version": proposal.before.version,
        "message": proposal.message,
        "goal": proposal.goal,
        "reply": proposal.reply.model_dump(mode="json", exclude_none=True),
    }
