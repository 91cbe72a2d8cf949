"""Find protected paths that a task wants changed, to report them before a worker is paid."""

from __future__ import annotations

import posixpath

from agentrunner.config.spec import TaskSpec
from agentrunner.verification.inputs.globs import is_executable_config, matches
from agentrunner.verification.inputs.wanted_changes import named_new

FREE = ".gitattributes"
"""Only matters if it will name a driver, which nobody knows yet."""


def asked_protected(spec: TaskSpec) -> list[str]:
    """Return a sentence for each requested path whose change a person would have to approve."""
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
