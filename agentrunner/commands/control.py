"""Control words typed after `agentrunner plan`, such as *stop*: no model is called."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from agentrunner import environment
from agentrunner.commands.console import tell
from agentrunner.commands.plan_place import Setting, repository
from agentrunner.errors.command_line import NotReachable
from agentrunner.storage.locks import Holder, boot_id
from agentrunner.storage.process_time import start_time

if TYPE_CHECKING:
    from agentrunner.plans.control_words import ControlWord

STOPPED = "The tasks at work are ended gracefully.\nNext:  agentrunner plan run   resumes them"
NOTHING = "Nothing is under way.\nNext:  agentrunner plan run   carries the plan out"
UNDER_WAY = "The plan is under way.\nNext:  agentrunner plan status -f"


def act_on(word: ControlWord, setting: Setting, *, as_json: bool) -> int:
    """Apply a control word to the process that executes the plan; return the exit code.

    Raises UsageError (`not-here`) for a process that cannot be reached from here, and for a pause,
    which only the chat that executes the plan can do.
    """
    from agentrunner.commands.plan_status import status
    from agentrunner.storage.plan_folder import plan_folder

    if word == "status":
        return status(follow=False, repo=setting.repo, as_json=as_json, state_dir=setting.state_dir)
    folder = plan_folder(environment.state_dir(setting.state_dir), repository(setting.repo))
    holder = folder.lock().probe() if folder.root.is_dir() else None
    if holder is None:
        tell(NOTHING)
    elif word == "continue":
        tell(UNDER_WAY)
    elif word == "stop" and _is_here(holder):
        os.kill(holder.pid, signal.SIGINT)
        tell(STOPPED)
    else:
        raise NotReachable(
            f"The plan is carried out by process {holder.pid} on {holder.host or 'this machine'}, "
            f"which has to be told to {word} there.",
            remedy="/pause in its chat, or Ctrl-C; agentrunner plan stop ends it from this machine",
        )
    return 0


def _is_here(holder: Holder) -> bool:
    """Whether the process is on this machine, and still the same one."""
    known = holder.pid > 0 and holder.boot_id == boot_id()
    return known and start_time(holder.pid) == holder.start_time
