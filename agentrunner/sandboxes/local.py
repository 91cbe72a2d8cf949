"""No sandbox: a plain process of this user. It isolates nothing, and is only used when named."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from errno import ENOENT
from functools import cached_property
from pathlib import Path

from agentrunner.errors import SandboxUnavailable
from agentrunner.sandboxes.base import (
    CommandResult,
    Launch,
    Mount,
    OnOutput,
    Request,
)
from agentrunner.sandboxes.homes import command_environment, git_identity
from agentrunner.sandboxes.layers import LAYERS, make_layers, sweep_layers
from agentrunner.sandboxes.limits import hold_by_rlimits
from agentrunner.sandboxes.on_host import HostSandbox, not_executed
from agentrunner.sandboxes.requests import base_environment, check_request, host_workdir, invalid
from agentrunner.sandboxes.toolchain import find_toolchain


class LocalSandbox(HostSandbox):
    """Runs commands as this user with this user's rights and network.

    The environment is built from nothing here too, and HOME is the run's own folder. A request with
    a copy of the repository runs in the copy, at the copy's own path: absolute paths and editable
    installs still lead to the original. The network cannot be taken away.
    """

    kind = "none"
    isolates = False
    byte_code = None
    hold = staticmethod(hold_by_rlimits)

    def describe(self) -> str:
        """Return one line that says what is missing."""
        text = "none: no isolation; commands have your files, your network and your rights"
        return "; ".join(filter(None, (text, self._held.describe())))

    def isolation(self) -> Mapping[str, str]:
        """Return what it isolates and by what means: next to nothing."""
        return {
            "processes": "the host's; what is still in the command's session is ended with it",
            "files": "all of yours, with your rights",
            "network": "the host's",
            "system calls": "all",
            "privileges": "yours",
            "user": "you",
            **self._held.means,
        }

    def mounts(self) -> list[Mount]:
        """Return an empty list: nothing is mounted, everything is visible as it is."""
        return []

    async def open(self) -> None:
        """Check that the repository is there; raises SandboxUnavailable."""
        if not self._spec.repo.is_dir():
            raise SandboxUnavailable(f"{self._spec.repo} is not a folder")

    def launch(self, request: Request) -> Launch:
        """Return the command itself. Its children may outlive it.

        Raises SandboxError(INVALID_REQUEST), also for a door: without walls nothing would stop a
        command from going around it. And for a layer, because nothing can be mounted over a folder.
        """
        check_request(request, self._spec)
        if any(mount.layer for mount in request.mounts):
            raise invalid('a layer needs a sandbox, and "none" is none')
        if request.door is not None:
            raise invalid('a door needs a sandbox, and "none" is none')
        home = self._home(request)
        base = {
            **self._base_env,
            "HOME": str(home),
            "GIT_CONFIG_SYSTEM": str(git_identity(self._spec.home.parent)),
        }
        return Launch(
            argv=(*self._held.prefix, *request.command),
            env=command_environment(base, request, self._spec.caches, home),
            cwd=host_workdir(request, self._spec),
            contains_children=False,
        )

    def _home(self, request: Request) -> Path:
        """Return the command's home, with links to the user's caches.

        It is a copy where it must not change. A copy stays until the sandbox is closed, because a
        worker may outlive us.
        """
        home = request.home or self._spec.home
        if request.home is not None:
            request.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            if request.home_layer:
                home = self._spec.home.parent / LAYERS / secrets.token_hex(8) / "0"
                os.close(make_layers(str(home.parent), [str(request.home)]))
        for cache in self._spec.caches.folders:
            place = home / cache.place
            place.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(place):
                place.symlink_to(cache.source)
        return home

    async def run(self, request: Request, on_output: OnOutput | None = None) -> CommandResult:
        """Run a request as a plain process.

        A missing program is a result with exit code 127 (126 if it cannot be executed). On return
        everything in its session is ended; a process that left the session and whose parent has
        died cannot be found.
        """
        launch = await asyncio.to_thread(self.launch, request)
        began = datetime.now(UTC)
        try:
            return (await self._run_launch(launch, request, on_output)).result
        except OSError as error:
            message = f"{request.command[0]}: {error.strerror}\n".encode()
            missing = error.errno == ENOENT
            return not_executed(message, began, datetime.now(UTC), missing=missing)

    async def close(self) -> None:
        """Kill everything, and remove the copies of homes."""
        await self.kill_all()
        await asyncio.to_thread(sweep_layers, str(self._spec.home.parent / LAYERS))

    @cached_property
    def _base_env(self) -> Mapping[str, str]:
        toolchain = find_toolchain(
            self._spec.programs, self._spec.repo, self._environ, self._host_home
        )
        everything = (Path(entry) for entry in self._environ.get("PATH", "").split(":"))
        path = (*toolchain.path, *(entry for entry in everything if entry.is_absolute()))
        return base_environment(
            tuple(dict.fromkeys(path)),
            home=self._spec.home,
            repo=self._spec.repo,
            pycache=self._spec.home / "pycache",
        )
