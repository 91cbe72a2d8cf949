"""The protocol between AgentRunner and its planner: five messages, parsed from any reply."""

from agentrunner.protocol.looks import Look, Looks
from agentrunner.protocol.message import MESSAGE_TYPES, Message, MessageType
from agentrunner.protocol.messages import (
    CHECK_KINDS,
    AssessmentDetails,
    CompletionAssessment,
    CriterionDraft,
    CriterionUpdate,
    CriterionVerdict,
    Decision,
    NextAction,
    PlanTask,
    WorkerCall,
)
from agentrunner.protocol.parsing import parse_reply, take_reply
from agentrunner.protocol.planning import (
    Conflict,
    Decompose,
    DecomposedTask,
    Phase,
    PlanOperation,
    PlanPatch,
    Position,
    SuggestedImpl,
)
from agentrunner.protocol.schema import Choices, message_schema
from agentrunner.protocol.wire import ReplyWarning

__all__ = [
    "CHECK_KINDS",
    "MESSAGE_TYPES",
    "AssessmentDetails",
    "Choices",
    "CompletionAssessment",
    "Conflict",
    "CriterionDraft",
    "CriterionUpdate",
    "CriterionVerdict",
    "Decision",
    "Decompose",
    "DecomposedTask",
    "Look",
    "Looks",
    "Message",
    "MessageType",
    "NextAction",
    "Phase",
    "PlanOperation",
    "PlanPatch",
    "PlanTask",
    "Position",
    "ReplyWarning",
    "SuggestedImpl",
    "WorkerCall",
    "message_schema",
    "parse_reply",
    "take_reply",
]
