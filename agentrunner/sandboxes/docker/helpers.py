"""Checks the programs that hold a registry's credentials, which docker-py finds by PATH."""

from __future__ import annotations

import shutil
from pathlib import Path

from agentrunner.errors.sandboxes import BadImageHelper
from agentrunner.sandboxes.deny import holds


def check_helpers(repo: Path) -> None:
    """Refuse to continue if PATH leads to such a program inside the repository.

    Raises SandboxUnavailable (`image-helper`). docker-py looks the programs up itself, so it cannot
    be given another one.
    """
    from docker import auth

    config = auth.load_config()
    for name in {config.creds_store, *(config.cred_helpers or {}).values()} - {None, ""}:
        found = shutil.which(f"docker-credential-{name}")
        if found is None:
            continue
        place = Path(found)
        inside = any(holds(repo, path) for path in (place, place.resolve()))
        if inside or not place.is_absolute():
            raise BadImageHelper(
                f"PATH leads to {found} in the repository, which would be given the registry's"
                " credentials",
                remedy="take the repository and relative folders out of PATH",
            )
