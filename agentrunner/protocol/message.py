"""A parsed reply: the type of message, its payload, and warnings about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from agentrunner.protocol.looks import Looks
from agentrunner.protocol.messages import CompletionAssessment, NextAction, PlanTask
from agentrunner.protocol.planning import Decompose, PlanPatch
from agentrunner.protocol.wire import ReplyWarning

MessageType = Literal[
    "plan_task", "next_action", "completion_assessment", "decompose", "plan_patch"
]
MESSAGE_TYPES: tuple[MessageType, ...] = get_args(MessageType)
ReplyType = MessageType | Literal["look"]
"""What a reply can be: the message that was requested, or a look before it."""
VERSION = 1

Payload: TypeAlias = PlanTask | NextAction | CompletionAssessment | Decompose | PlanPatch | Looks

PAYLOADS: dict[ReplyType, type[Payload]] = {
    "plan_task": PlanTask,
    "next_action": NextAction,
    "completion_assessment": CompletionAssessment,
    "decompose": Decompose,
    "plan_patch": PlanPatch,
    "look": Looks,
}


def says_done(payload: Payload) -> bool:
    """Whether a message calls anything done, or takes back what decides it."""
    if isinstance(payload, NextAction):
        return payload.decision.action == "mark_complete" or bool(payload.changed_checks)
    if isinstance(payload, CompletionAssessment):
        passed = payload.all_criteria_satisfied or payload.passed_ids()
        return bool(passed) or any(one.quote for one in payload.quotes)
    return False


@dataclass(frozen=True)
class Message:
    """A parsed reply, valid in form. Whether its content is true is not checked here."""

    type: ReplyType
    payload: Payload
    warnings: tuple[ReplyWarning, ...] = ()
    version: int = VERSION
    part: str = field(default="", compare=False, repr=False)
    """The text it was read from, where the reply says more around it; "" where it stands alone."""

    def is_quoted_from(self, material: str) -> bool:
        """Whether it was spoken of and stands word for word in what the planner was shown.

        That is how a reply speaks of somebody else's answer. Spaces and line ends do not count:
        JSON may be printed anew.
        """
        return bool(self.part) and "".join(self.part.split()) in "".join(material.split())

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-native values with all defaults, as `agentrunner parse` prints it."""
        return {
            "type": self.type,
            "version": self.version,
            "payload": self.payload.model_dump(mode="json"),
            "warnings": [asdict(warning) for warning in self.warnings],
        }
