"""The sandbox for Docker, or any engine with its API: long-lived containers, one command at a time.

A container serves requests that see the same files and have the same way out. What a command leaves
in it is removed before the next. A worker has its own container, which belongs to the helper that
the supervisor starts (see `attach`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from agentrunner.environment import own_process
from agentrunner.errors import AgentRunnerError, SandboxUnavailable
from agentrunner.errors.sandboxes import ImageMissing
from agentrunner.folders import walk
from agentrunner.sandboxes.base import (
    Caches,
    CommandResult,
    ErrorKind,
    Launch,
    Mount,
    OnOutput,
    Request,
    SandboxError,
    SandboxOrder,
)
from agentrunner.sandboxes.command_record import KILLED, CommandRecord, Moment
from agentrunner.sandboxes.disk import DiskWatch
from agentrunner.sandboxes.docker import description, owners
from agentrunner.sandboxes.docker.attach import PASSED_ON, AttachOrder
from agentrunner.sandboxes.docker.builds import import_host_image
from agentrunner.sandboxes.docker.config import (
    ContainerSpec,
    User,
    configuration,
    container_config,
    host_programs,
    identity,
    make_places,
    sandbox_mounts,
)
from agentrunner.sandboxes.docker.container import (
    Container,
    ContainerRecipe,
    Exit,
    Pool,
    remove_dead_lifelines,
)
from agentrunner.sandboxes.docker.engine import PATIENCE_SEC, Engine, EngineError, unavailable
from agentrunner.sandboxes.docker.exec import ExecCommand, ExecNeverStarted
from agentrunner.sandboxes.docker.images import Image, ensure_image, image_to_try, our_images
from agentrunner.sandboxes.docker.layers import Copies, can_overlay
from agentrunner.sandboxes.docker.owners import remove_dead
from agentrunner.sandboxes.docker.recipes import HOST_IMAGE
from agentrunner.sandboxes.gitdirs import GitData, Mask, git_data
from agentrunner.sandboxes.homes import (
    SANDBOX_HOME,
    command_environment,
    home_mounts,
    without_large,
)
from agentrunner.sandboxes.layers import LAYERS, sweep_layers
from agentrunner.sandboxes.limits import watch_disk
from agentrunner.sandboxes.process import DRAIN_SEC, GRACE_SEC, STATUS_FD
from agentrunner.sandboxes.requests import base_environment, check_request
from agentrunner.sandboxes.shims import environments_of
from agentrunner.sandboxes.toolchain import SYSTEM_PATH


class ContainerRun:
    """A request, from its first container to its end."""

    def __init__(self, request: Request, on_output: OnOutput | None, grace_sec: float) -> None:
        self.over = asyncio.Event()
        """Nothing of it is left; set by the caller that provides the containers."""
        self._request = request
        self._grace_sec = grace_sec
        self._enough = asyncio.Event()
        self._record = CommandRecord(request, on_output, self._enough.set)
        self._began = Moment.now()

    def stop(self) -> None:
        """End it at once; its waiter gets an error that says it was stopped."""
        self._record.stopped = True
        self._enough.set()

    async def to_its_end(
        self, container: Container, command: ExecCommand, disk: DiskWatch | None = None
    ) -> CommandResult:
        """Run the command; until it ends, `disk` is asked whether too much was written.

        Raises SandboxError: TIMEOUT, UNKNOWN if it was stopped, INFRA (an EngineError). The
        container is removed if anything of the command might be left in it.
        """
        self._begin()
        executing = asyncio.ensure_future(
            container.execute(command, self._stdin(), self._record.take, started=self._begin)
        )
        enough = asyncio.ensure_future(self._enough.wait())
        watching = asyncio.ensure_future(self._record.watch_disk(disk))
        both = {executing, enough}
        late = False
        try:
            left = self._request.timeout_sec
            done, _ = await asyncio.wait(both, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                late = True
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._grace_sec):
                        await container.terminate()
                        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            ended = Moment.now()
            if not executing.done():
                await _remove_under(container, executing)
        except asyncio.CancelledError:
            await asyncio.shield(_remove_under(container, executing))
            raise
        finally:
            for task in (enough, executing, watching):
                task.cancel()
            await asyncio.gather(enough, executing, watching, return_exceptions=True)
        by_itself = not (late or self._record.limit or self._record.stopped)
        exited = executing.result() if by_itself else Exit(KILLED, oom=False)
        return self._record.result(exited.code, self._began, ended, oom=exited.oom, late=late)

    def _begin(self) -> None:
        self._began = Moment.now()

    async def _stdin(self) -> AsyncIterator[bytes]:
        if self._request.stdin:
            yield self._request.stdin


OPEN_SEC = 30.0
MISSING = 'for each; do [ -e "$each" ] || printf "%s\\0" "$each"; done'


class DockerSandbox:
    """A sandbox of containers. `environ` names the engine, `host_home` is never shown."""

    kind = "docker"
    isolates = True
    has_image = True
    byte_code = Path("/var/cache/agentrunner/pycache")
    """Not below /tmp, because everything there is removed after each command."""

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
        self._engine: Engine | None = None
        self._image: Image | None = None
        self._path: tuple[Path, ...] = SYSTEM_PATH
        self._programs: tuple[Mount, ...] = ()
        self._overlays = False
        """Whether the engine supports overlays for throw-away layers; otherwise they are copied."""
        self._pool: Pool | None = None
        self._mask = Mask(spec.repo)
        self._live: set[ContainerRun] = set()

    @staticmethod
    async def missing_image(
        spec: SandboxOrder, environ: Mapping[str, str]
    ) -> SandboxUnavailable | None:
        """Return why its image is missing, or None; nothing is downloaded.

        Raises SandboxUnavailable if there is no engine to ask, or if the image is unusable.
        """
        with contextlib.closing(await Engine.connect(environ)) as engine:
            try:
                await ensure_image(engine, replace(spec, pull="never"))
            except ImageMissing as error:
                return error
        return None

    @staticmethod
    async def image_to_try(environ: Mapping[str, str]) -> tuple[str, tuple[Path, ...]]:
        """Return an image of ours, and the host paths that it must read.

        If there is none, an image without programs is made. Raises SandboxUnavailable and
        EngineError.
        """
        with contextlib.closing(await Engine.connect(environ)) as engine:
            there = await our_images(engine)
            image, read_paths = image_to_try(there, "")
            if image in there:
                return image, read_paths
            await import_host_image(engine)
        return HOST_IMAGE, (Path("/usr"),)

    @property
    def image(self) -> str:
        """The id of the image in use."""
        return self._image.id if self._image else ""

    def describe(self) -> str:
        """Return one line: engine, image, network, what is writable, limits."""
        traits = self._engine.traits if self._engine else None
        return description.describe(self._spec, traits, str(self._image or ""))

    def isolation(self) -> Mapping[str, str]:
        return description.isolation(self._spec, self._engine.traits if self._engine else None)

    def mounts(self) -> list[Mount]:
        """Return everything of the host that is visible; the rest is the image's.

        Before the sandbox is open it is unknown which programs the image itself has.
        """
        programs = self._programs
        if self._image is None:
            programs = tuple(host_programs(self._spec, self._host_home).values())
        programs = (*programs, *self._configuration)
        return list(sandbox_mounts(self._spec, git_data(self._spec.repo), programs=programs))

    @cached_property
    def _configuration(self) -> tuple[Mount, ...]:
        return configuration(self._spec, self._environ, self._host_home)

    async def open(self) -> None:
        """Make the first container and try it. Raises SandboxUnavailable with a remedy.

        Sandboxes that a dead process of ours has left on the engine are removed first.
        """
        try:
            self._engine = engine = await Engine.connect(self._environ)
            self._pool = Pool(engine, self._spec.home.parent)
            await self._sweep()
            self._refuse_unenforceable_limits(engine)
            self._image = image = await ensure_image(engine, self._spec)
            await self._read_image(engine, image)
            layers = [cache.source for cache in self._spec.caches.folders if cache.layer]
            if layers:
                run = self._spec.home.parent
                self._overlays = await can_overlay(engine, image.id, run, layers)
            await self._try_out()
        except SandboxError as error:
            await self.close()
            host = self._engine.host if self._engine else None
            raise unavailable(host, error.cause, self._spec.repo) from error
        except BaseException:
            await self.close()
            raise

    def launch(self, request: Request) -> Launch:
        """Return the helper that makes a container for a worker, and reports on `{status_fd}`."""
        recipe, command = self._prepare(request, "worker")
        assert self._engine is not None
        order = AttachOrder(
            host=self._engine.host,
            folder=self._spec.home.parent,
            config=recipe.config,
            user=recipe.user,
            command=command,
            door=request.door,
            masked=self._spec.repo if recipe.masked else None,
            layers=recipe.layers,
        )
        helper = own_process("agentrunner.sandboxes.docker.attach", packages=True)
        names = [name for name in PASSED_ON if name in self._environ]
        env = {**order.to_env(), **{name: self._environ[name] for name in names}}
        return Launch((*helper, STATUS_FD), env, cwd=Path("/"))

    async def run(self, request: Request, on_output: OnOutput | None = None) -> CommandResult:
        """Run a request in a container that nothing else uses meanwhile.

        A missing program is a result with exit code 127 (126 if it cannot be executed). An engine
        failure is SandboxError(INFRA); if the command surely had not started, it is first tried
        again in a new container.
        """
        recipe, command = await asyncio.to_thread(self._prepare, request, "command")
        assert self._pool is not None
        running = ContainerRun(request, on_output, self._grace_sec)
        self._live.add(running)
        tree = request.repo_copy or self._spec.repo
        disk = await asyncio.to_thread(watch_disk, self._spec.limits, tree, self._spec.home)
        began = time.monotonic()
        try:
            async with recipe.layers.made():
                while True:
                    container = await self._pool.take(recipe)
                    try:
                        return await running.to_its_end(container, command, disk)
                    except ExecNeverStarted:
                        # Do not wait a second time for an engine that hung once.
                        if container.fresh or time.monotonic() - began > PATIENCE_SEC:
                            raise
                    finally:
                        await self._pool.give_back(recipe, container)
        finally:
            self._live.discard(running)
            running.over.set()

    async def pause(self) -> None:
        """Freeze the containers. Deadlines keep running."""
        if self._pool is not None:
            await self._pool.pause()

    async def unpause(self) -> None:
        """Resume the containers."""
        if self._pool is not None:
            await self._pool.unpause()

    async def kill_all(self) -> None:
        """Kill what `run` has started; a worker is ended by its supervisor."""
        live = list(self._live)
        for running in live:
            running.stop()
        for running in live:
            await running.over.wait()

    async def close(self) -> None:
        """Kill everything; remove the containers, and the empty `.git` that was a mask."""
        await self.kill_all()
        if self._pool is not None:
            with contextlib.suppress(EngineError):  # the sandboxes end by themselves, with us
                await self._pool.close()
        if self._engine is not None and not self._engine.silent:
            with contextlib.suppress(EngineError):
                await self._sweep()
        await asyncio.to_thread(self._mask.lift)
        if self._engine is not None:
            self._engine.close()

    async def _sweep(self) -> None:
        """Remove what dead processes of ours have left; raises EngineError.

        This is done at the end as well as at the start: a worker's helper that was killed while it
        made its sandbox cannot end it, and the run may be over.
        """
        assert self._engine is not None
        await remove_dead(self._engine)
        run = self._spec.home.parent
        await asyncio.to_thread(remove_dead_lifelines, run, now=time.time())
        await asyncio.to_thread(sweep_layers, str(self._spec.home.parent / LAYERS))

    def _refuse_unenforceable_limits(self, engine: Engine) -> None:
        """Raise SandboxUnavailable for a limit that this engine cannot really enforce."""
        limits = self._spec.limits
        asked = {"memory": limits.memory, "cpus": limits.cpus, "pids": limits.pids}
        for name in sorted(engine.traits.lacks & {key for key, value in asked.items() if value}):
            raise SandboxUnavailable(
                f"the engine cannot limit {name} here",
                path=f"runner.sandbox.{name}",
                remedy=f"leave {name} out, or run an engine with all cgroup controllers",
            )

    async def _read_image(self, engine: Engine, image: Image) -> None:
        facts = await engine.call("image", lambda api: api.inspect_image(image.id))
        for line in (facts.get("Config") or {}).get("Env") or ():
            name, _, value = line.partition("=")
            if name == "PATH":
                self._path = tuple(map(Path, filter(None, value.split(":"))))

    async def _try_out(self) -> None:
        """Run a first command, which also finds out which host programs the image lacks."""
        programs = await asyncio.to_thread(host_programs, self._spec, self._host_home)
        command = ("/bin/sh", "-c", MISSING, "sh", *map(str, programs))
        result = await self.run(Request(command, self._spec.repo, timeout_sec=OPEN_SEC))
        if result.exit_code != 0:
            stderr = result.stderr.decode(errors="replace").strip()
            raise SandboxError(ErrorKind.INFRA, "open", stderr or f"exit code {result.exit_code}")
        missing = [Path(word) for word in result.stdout.decode().split("\0")[:-1]]
        self._programs = tuple(programs[path] for path in missing if path in programs)

    def _prepare(self, request: Request, purpose: str) -> tuple[ContainerRecipe, ExecCommand]:
        """Return a request's container and command; raises SandboxError(INVALID_REQUEST)."""
        check_request(request, self._spec)
        try:
            git = git_data(self._spec.repo)
            return self._recipe(request, git, purpose), self._command(request)
        except AgentRunnerError as error:
            raise SandboxError(ErrorKind.INVALID_REQUEST, "run", error.message) from error
        except OSError as error:
            raise SandboxError(ErrorKind.INVALID_REQUEST, "run", str(error)) from error

    def _recipe(self, request: Request, git: GitData, purpose: str) -> ContainerRecipe:
        if self._engine is None or self._image is None:
            raise SandboxError(ErrorKind.INVALID_REQUEST, "run", "the sandbox is not open")
        spec, traits = self._spec, self._engine.traits
        homely = self._home_mounts(request)
        mounts = sandbox_mounts(
            spec, git, request, (*homely, *self._programs, *self._configuration)
        )
        layers = Copies.of(mounts, spec.home.parent, overlays=self._overlays)
        masks = (spec.repo / ".git",) if git.absent else ()
        if masks:
            self._mask.put()
        if spec.sockets is not None:
            # The forwarder runs as another user. The folders above are closed to others.
            spec.sockets.chmod(0o711)
        make_places(request.repo_copy or spec.repo, spec.repo, (*mounts, *masks))
        owner = spec.repo.stat()
        user = User(0, 0) if traits.rootless else User(owner.st_uid, owner.st_gid)
        full = "bridge" if traits.bridge else "host"
        plan = ContainerSpec(
            image=self._image.id,
            user=user,
            mounts=layers.laid(mounts),
            masks=masks,
            network=full if request.network == "full" else "none",
            limits=spec.limits,
            labels={
                owners.RUN: spec.owner.run_id,
                owners.TASK: spec.owner.task_id,
                owners.PURPOSE: purpose,
            },
        )
        config = container_config(plan, traits)
        whose = identity(mounts)
        return ContainerRecipe(config, user, request.door, whose, masked=bool(masks), layers=layers)

    def _command(self, request: Request) -> ExecCommand:
        own = tuple(venv / "bin" for venv in environments_of(self._spec.repo))
        base = base_environment(
            (*own, *self._path), home=SANDBOX_HOME, repo=self._spec.repo, pycache=self.byte_code
        )
        env = command_environment(base, request, self._caches, SANDBOX_HOME)
        return ExecCommand(request.command, env, str(request.workdir))

    def _home_mounts(self, request: Request) -> list[Mount]:
        """Return what is mounted at and below the command's home."""
        spec = replace(self._spec, caches=self._caches)
        mounts = home_mounts(request, spec, overlays=self._overlays)
        if request.home is not None and os.geteuid() == 0:
            owner = spec.repo.stat()
            for here, _, _ in walk(request.home):
                if os.lstat(here).st_uid == 0:
                    os.chown(here, owner.st_uid, owner.st_gid)
        return mounts

    @cached_property
    def _caches(self) -> Caches:
        """The caches that can be shown in this sandbox."""
        return self._spec.caches if self._overlays else without_large(self._spec.caches)


async def _remove_under(container: Container, executing: asyncio.Future[Exit]) -> None:
    """Remove the container while the command runs in it."""
    with contextlib.suppress(EngineError):
        await container.remove()
    await asyncio.wait({executing}, timeout=DRAIN_SEC)
