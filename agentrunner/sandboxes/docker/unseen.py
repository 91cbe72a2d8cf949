"""The engine's words about a folder that exists here and that it does not see, and what to do.

An engine mounts what lies on its own machine. A volume of the container that we run in, a folder in
a private mount namespace, or one that Docker Desktop does not share is here and not there.
"""

from __future__ import annotations

import re
from pathlib import Path

from agentrunner.errors.sandboxes import SandboxUnavailable

UNSEEN = re.compile(
    r"bind source path does not exist: (?P<docker>/.*?)[\")]*\s*$"
    r"|error while creating mount source path '(?P<created>/[^']+)'"
    r"|statfs (?P<podman>/.*?): no such file or directory"
    r"|[Tt]he path (?P<desktop>/.*?) (?:is not shared|does not exist) ",
    re.MULTILINE,
)


def unavailable(host: str | None, cause: str, repo: Path) -> SandboxUnavailable:
    """Return the error for an engine on which no sandbox of this repository could be made."""
    found = UNSEEN.search(cause)
    path = next(filter(None, found.groups()), "") if found else ""
    if not path or not Path(path).exists():
        return SandboxUnavailable(f"no sandbox on {host}: {cause}")
    place = repo if Path(path).is_relative_to(repo) else Path(path)
    return SandboxUnavailable(
        f"the engine on {host} does not see {place}, which is here",
        remedy="put the repository and the state folder where the engine's own machine has them at"
        " the same path: not in a volume of a container, nor in a mount that is only here;"
        " docs/how-to/container.md says how; or --sandbox bwrap",
    )
