"""Errors in what a planner replies. The planner is asked again, so few of them reach a person."""

from __future__ import annotations

from typing import Any, ClassVar

from agentrunner.errors.error import UsageError


class ProtocolError(UsageError):
    """A reply of the planner is not the message that was asked for.

    In a run nothing: the planner gets the message and is asked again, up to three times. For
    `agentrunner parse` correct the reply; `agentrunner schema TYPE` has the form.
    """

    code = "reply"
    fault: ClassVar[str] = "invalid"
    """What is wrong, as `agentrunner parse` prints it and the planner gets it."""

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        cls.fault = cls.code.removeprefix("reply-").replace("-", "_")
        cls.old_codes = cls.__dict__.get("old_codes", (cls.fault,))

    def __init__(self, path: str, message: str) -> None:
        """`path` is dotted with indices, "" for the whole reply."""
        super().__init__(message, path=path)

    def __str__(self) -> str:
        return f"{self.fault} at {self.path or 'the whole reply'}: {self.message}"


class ReplyEmpty(ProtocolError):
    """The reply holds nothing."""


class ReplyTooLarge(ProtocolError):
    """The reply, or the message in it, is larger than is read."""


class ReplyIncomplete(ProtocolError):
    """The reply was cut. Half a message is never guessed; it is asked again with a larger
    limit.
    """


class ReplyRefusal(ProtocolError):
    """The model declined to answer."""


class ReplyNotFound(ProtocolError):
    """There is no JSON or YAML document in the reply."""


class ReplyAmbiguous(ProtocolError):
    """The reply holds several different answers."""


class ReplySyntax(ProtocolError):
    """The document in the reply is neither valid JSON nor valid YAML."""


class ReplyForbiddenYaml(ProtocolError):
    """The reply uses anchors, tags or several documents."""


class ReplyDuplicateKey(ProtocolError):
    """A key stands twice in one mapping."""


class ReplyUnsupportedVersion(ProtocolError):
    """The message is not of version 1."""


class ReplyWrongType(ProtocolError):
    """The reply is another message than the one that was asked for."""


class ReplyMissing(ProtocolError):
    """A field that is needed is not there."""


class ReplyInvalid(ProtocolError):
    """A field has a value that it cannot have."""


class ReplyQuestioned(ProtocolError):
    """The reply has the right form, and the planner is asked once whether it means it: a question
    to a person, work where evidence has met each criterion, completion where something is red, a
    judge's failure of what was shown without a word about it.
    """

    old_codes = ()


class ReplyPlaceholder(ProtocolError):
    """The reply repeats the form it was asked to fill in."""


def reply_error(fault: str, path: str, message: str) -> ProtocolError:
    """The error of this fault, such as `missing`."""
    kind = next(kind for kind in ProtocolError.__subclasses__() if kind.fault == fault)
    return kind(path, message)
