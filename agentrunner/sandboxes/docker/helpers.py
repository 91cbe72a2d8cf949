"""The programs that hold a registry's credentials: docker-py starts them, found by PATH."""

from __future__ import annotations

import shutil
from pathlib import Path

from agentrunner.errors.sandboxes import BadImageHelper
from agentrunner.sandboxes.deny import holds


def check_helpers(repo: Path) -> None:
    """Refuse to go on where PATH leads to such a program inside the repository.

    Raises SandboxUnavailable (`image-helper`). docker-py looks them up itself, so that there is
    no handing it another one.
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
