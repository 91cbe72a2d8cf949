"""Protected paths that a task asks for: said before a worker is paid, not after."""

from __future__ import annotations

import posixpath

from agentrunner.config.spec import TaskSpec
from agentrunner.verification.inputs.asked import named_new
from agentrunner.verification.inputs.steering import is_executable_config, matches

FREE = ".gitattributes"
"""A question only where it names a driver, which nobody knows yet."""


def asked_protected(spec: TaskSpec) -> list[str]:
    """A sentence for each path that the task asks for and that a person would be asked about."""
    named = named_new(spec.wanted)
    for criterion in spec.criteria:
        check = criterion.check
        if check is not None and check.kind == "file" and check.exists is not False:
            named.append(posixpath.normpath(check.path))
    found = []
    for path in dict.fromkeys(named):
        if matches(path, spec.task.protect):
            found.append(f"{path} is asked for, and task.protect says that no worker may change it")
        elif (
            is_executable_config(path)
            and path != FREE
            and not matches(path, spec.task.allow_changes)
        ):
            found.append(
                f"{path} is asked for, and tools run what it says without asking: a person"
                f" has to approve it, or task.allow_changes: [{path}] allows it now"
            )
    return found
