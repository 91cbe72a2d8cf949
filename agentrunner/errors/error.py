"""Errors in general: what each has, and the four classes that say who should act."""

from __future__ import annotations

import re
from typing import Any, ClassVar


class AgentRunnerError(Exception):
    """AgentRunner itself made a mistake. The traceback is in the file that the message names, with
    secrets masked; only you can read it.

    The run, if there was one, is kept: `agentrunner resume`. Please report it with that file,
    after a look at what is in it.
    """

    exit_code = 1
    code = "internal"
    """One spelling for people and programs; `agentrunner explain CODE` says more. A class of this
    package that names none has its own name: BadCheck is `bad-check`. All others have their base's.
    """
    old_codes: ClassVar[tuple[str, ...]] = ()
    """Earlier spellings, which `agentrunner explain` still knows; of this class alone."""

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        if "code" not in vars(cls) and cls.__module__.startswith("agentrunner.errors."):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        path: str = "",
        source_line: str = "",
        remedy: str = "",
        details: tuple[tuple[str, str], ...] = (),
        nothing_spent: bool = False,
    ) -> None:
        """`path` names the place ("task.yaml:21", "runner.worker.kind"), `source_line` that line's
        text, `remedy` one command or change to try, `details` further "label: text" lines.
        `code` is for an error that passes on the code of another.
        """
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.path = path
        self.source_line = source_line
        self.remedy = remedy
        self.details = details
        self.nothing_spent = nothing_spent

    @property
    def in_one_text(self) -> str:
        """The message with what to do, where only one text is shown."""
        remedy = " ".join(self.remedy.split())
        return f"{self.message.rstrip('.')}. Try: {remedy}" if remedy else self.message

    def as_dict(self) -> dict[str, str]:
        """The `error` object of the result and of `parse`."""
        return {
            "code": self.code,
            "path": self.path,
            "message": self.message,
            "remedy": self.remedy,
        }


class UsageError(AgentRunnerError):
    """The command line asked for something that cannot be done as asked. The message says which
    option or argument.

    `agentrunner COMMAND --help` lists what there is. Nothing was changed.
    """

    exit_code = 2
    code = "usage"


class InfraError(AgentRunnerError):
    """Something on this machine is in the way, not the model and not the task.

    The message says what. The run is kept; fix it and `agentrunner resume`.
    `agentrunner doctor` tries everything a run needs.
    """

    exit_code = 5
    code = "infrastructure"
    old_codes = ("surroundings",)
    passes = False
    """Whether it may pass by itself, so that it is worth trying again later: most is there until a
    person puts it right. tests/unit/errors/test_passing_errors.py has what each class says."""


class TaskFailed(AgentRunnerError):
    """The task cannot continue and ends FAILED. The message says why.

    `agentrunner logs` shows what happened; `agentrunner resume -m "..."` tries
    again with a hint, `agentrunner undo` puts the files back.
    """
