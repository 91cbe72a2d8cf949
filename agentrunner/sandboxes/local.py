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
from signal import SIGCONT, SIGSTOP

from agentrunner.errors import SandboxUnavailable
from agentrunner.sandboxes.base import (
    CommandResult,
    Launch,
    Mount,
    OnOutput,
    Request,
    SandboxOrder,
)
from agentrunner.sandboxes.environment import base_environment
from agentrunner.sandboxes.homes import command_environment, git_identity
from agentrunner.sandboxes.layers import LAYERS, make_layers, sweep_layers
from agentrunner.sandboxes.limits import hold_by_rlimits, watch_disk
from agentrunner.sandboxes.process import (
    GRACE_SEC,
    RunningLaunch,
    kill_live,
    run_launch,
    signal_live,
)
from agentrunner.sandboxes.requests import check_request, host_workdir, invalid
from agentrunner.sandboxes.toolchain import find_toolchain


class LocalSandbox:
    """Runs commands as this user with this user's rights and network.

    The environment is built from nothing here too, and HOME is the run's own folder. A request with
    a copy of the repository runs in the copy, at the copy's own path: absolute paths and editable
    installs still lead to the original. The network cannot be taken away.
    """

    image = ""
    kind = "none"
    isolates = False
    byte_code = None

    def __init__(
        self,
        spec: SandboxOrder,
        *,
        environ: Mapping[str, str],
        host_home: Path,
        grace_sec: float = GRACE_SEC,
    ) -> None:
        self._spec = spec
        self._environ = environ
        self._host_home = host_home
        self._grace_sec = grace_sec
        self._held = hold_by_rlimits(spec.limits)
        self._live: set[RunningLaunch] = set()

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
        tree = request.repo_copy or self._spec.repo
        disk = await asyncio.to_thread(watch_disk, self._spec.limits, tree, self._spec.home)
        started_at = datetime.now(UTC)
        try:
            ended = await run_launch(
                launch,
                request,
                live=self._live,
                disk=disk,
                on_output=on_output,
                grace_sec=self._grace_sec,
            )
        except OSError as error:
            code = 127 if error.errno == ENOENT else 126
            text = f"{request.command[0]}: {error.strerror}\n".encode()
            return CommandResult(
                exit_code=code,
                stdout=b"",
                stderr=text,
                started_at=started_at,
                ended_at=datetime.now(UTC),
                duration_sec=0,
                stderr_bytes=len(text),
            )
        return ended.result

    async def pause(self) -> None:
        """Stop every process that `run` has started. Deadlines keep running."""
        await signal_live(self._live, SIGSTOP)

    async def unpause(self) -> None:
        """Resume the stopped processes."""
        await signal_live(self._live, SIGCONT)

    async def kill_all(self) -> None:
        """Kill what `run` has started; a worker is ended by its supervisor."""
        await kill_live(self._live)

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
