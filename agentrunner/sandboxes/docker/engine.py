"""The connection to a container engine: anything on this machine that implements Docker's API.

docker-py blocks, so each call has its own thread. While a call takes long, the engine is pinged: a
hanging engine is detected in seconds, a busy one is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import docker
import docker.errors
import requests.exceptions
import urllib3.exceptions
from docker.context import ContextAPI
from msgspec import Struct, field

from agentrunner.errors import SandboxUnavailable
from agentrunner.errors.sandboxes import EngineAway
from agentrunner.sandboxes.base import ErrorKind, SandboxError
from agentrunner.text.lazy_regex import lazy_regex

T = TypeVar("T")

PATIENCE_SEC = 4.0
"""Seconds a call may take before the engine is pinged, and seconds that the ping may take."""
CALL_SEC = 120
"""The longest that any call may take, even if the engine is alive."""
NOT_FOUND = 404
CONFLICT = 409

NO_ENGINE = "systemctl start docker, or set DOCKER_HOST=unix:///…"
PROGRAMS = ("dockerd", "docker", "podman")
NONE_INSTALLED = (
    "nothing, if another sandbox works; else install an engine: apt install docker.io, or podman"
)
NO_ACCESS = "sudo usermod -aG docker $USER, then log in again"


class EngineError(SandboxError):
    """The engine refused a call, or did not answer; its kind is always INFRA.

    `status` is the HTTP status of its answer. None means no answer: the call may have had any
    effect.
    """

    def __init__(self, op: str, cause: str, *, status: int | None = None) -> None:
        super().__init__(ErrorKind.INFRA, op, cause)
        self.status = status


class Traits(Struct, frozen=True):
    """What this engine can do, by its own account."""

    product: str = "Docker"
    version: str = ""
    api: tuple[int, int] = (1, 41)
    cgroup: str = "1"
    rootless: bool = False
    """Its uid 0 in a sandbox is the user who runs the engine."""
    bridge: bool = False
    """It has a separate network for sandboxes that may reach everything."""
    lacks: frozenset[str] = field(default_factory=frozenset)
    """Which of memory, cpus, pids and seccomp it cannot enforce here."""

    @property
    def read_only_below(self) -> bool:
        """Whether a read-only mount makes the mounts inside it read-only, too."""
        return self.product == "Docker" and self.api >= (1, 44)


class Engine:
    """An engine that answered. `host` is its address, for another process to connect to."""

    def __init__(self, host: str, api: docker.APIClient, traits: Traits) -> None:
        self.host = host
        self.api = api
        """Only for use within `call`: it blocks."""
        self.traits = traits
        self.silent = False
        """Whether the last call got no answer at all."""

    @classmethod
    async def connect(cls, environ: Mapping[str, str]) -> Engine:
        """Connect to the engine of DOCKER_HOST, or of the docker command's current context.

        Raises SandboxUnavailable with the reason and a remedy.
        """
        host = await asyncio.to_thread(engine_address, environ)
        if not host.startswith("unix://"):
            raise SandboxUnavailable(
                f"the engine at {host} is not on this machine, whose folders a sandbox needs",
                remedy="let DOCKER_HOST name a socket of this machine (unix:///…)",
            )
        try:
            async with asyncio.timeout(2 * PATIENCE_SEC):
                return await in_thread(lambda: _connect(host))
        except TimeoutError:
            words, remedy = f"it did not answer within {2 * PATIENCE_SEC:g} s", NO_ENGINE
        except _FAILURES as error:
            words, denied = _words(error), isinstance(error, PermissionError)
            remedy = NO_ACCESS
            if not denied:
                remedy = await asyncio.to_thread(remedy_without_engine, environ)
            if denied or remedy == NONE_INSTALLED:  # neither passes by itself
                message = f"no container engine at {host}: {words}"
                raise SandboxUnavailable(message, remedy=remedy) from error
        raise EngineAway(f"no container engine at {host}: {words}", remedy=remedy)

    async def call(self, op: str, do: Callable[[Any], T]) -> T:
        """Call the API; `op` names the call in errors. Raises EngineError.

        A call that is given up or cancelled may still complete in the engine.
        """
        try:
            async with asyncio.timeout(CALL_SEC):
                return await self._outcome(op, do)
        except TimeoutError:
            raise EngineError(op, f"the engine took more than {CALL_SEC:g} s") from None

    async def follow(
        self,
        op: str,
        start: Callable[[docker.APIClient], Iterable[dict[str, object]]],
        on_entry: Callable[[dict[str, object]], None],
    ) -> None:
        """Pass on the entries of a long answer (a pull, a build) as they arrive, in this loop.

        It may take as long as the engine lives. Raises EngineError. When it is cancelled, the
        engine's work ends with the next entry.
        """
        loop, given_up = asyncio.get_running_loop(), threading.Event()

        def read(api: docker.APIClient) -> None:
            for entry in start(api):
                if given_up.is_set():
                    return
                loop.call_soon_threadsafe(on_entry, entry)

        try:
            await self._outcome(op, read)
        finally:
            given_up.set()

    async def _outcome(self, op: str, do: Callable[[Any], T]) -> T:
        def work() -> T:
            _knock(self.host)
            return do(self.api)

        working = asyncio.ensure_future(in_thread(work))
        try:
            while not (await asyncio.wait({working}, timeout=PATIENCE_SEC))[0]:
                await self._ping(op)
            return working.result()
        except docker.errors.APIError as error:
            self.silent = False
            raise EngineError(op, _words(error), status=error.status_code) from error
        except _FAILURES as error:
            self.silent = True
            raise EngineError(op, f"the engine at {self.host} is gone: {_words(error)}") from error
        finally:
            working.cancel()

    async def _ping(self, op: str) -> None:
        """Raise EngineError if the engine no longer answers."""
        try:
            async with asyncio.timeout(PATIENCE_SEC):
                await in_thread(self.api.ping)
        except TimeoutError:
            self.silent = True
            text = f"the engine at {self.host} hangs: no answer for {2 * PATIENCE_SEC:g} s"
            raise EngineError(op, text) from None

    def close(self) -> None:
        """Release the connections."""
        self.api.close()


async def remove_container(engine: Engine, ident: str) -> bool:
    """Whether we removed it, running or not; raises EngineError if nobody can remove it."""
    try:
        await engine.call(
            "remove a sandbox", lambda api: api.remove_container(ident, force=True, v=True)
        )
    except EngineError as error:
        # It is gone already, or the engine or another process of ours is removing it.
        if error.status in (NOT_FOUND, CONFLICT):
            return False
        raise
    return True


_FAILURES = (
    docker.errors.DockerException,
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
    ValueError,  # an answer that is not JSON
)
"""What docker-py raises: its own errors and those of its dependencies."""


def engine_address(environ: Mapping[str, str]) -> str:
    """Return DOCKER_HOST, or the endpoint of the current context, or Docker's usual socket."""
    if environ.get("DOCKER_HOST"):
        return environ["DOCKER_HOST"]
    with contextlib.suppress(Exception):  # another program's broken file is no reason to fail
        context = ContextAPI.get_current_context()
        if context is not None and context.Host:
            return str(context.Host).replace("http+unix://", "unix://")
    return "unix:///var/run/docker.sock"


async def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread. Unlike with asyncio.to_thread, nobody waits for one that hangs."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as failure:  # noqa: BLE001 - passed on to the caller
            error = failure
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True, name="engine").start()
    return await future


def _knock(host: str) -> None:
    """Raise OSError if nobody listens: docker-py would leave a socket open then."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(CALL_SEC)
        probe.connect(host.removeprefix("unix://"))


def remedy_without_engine(environ: Mapping[str, str]) -> str:
    """Return how to get an engine that does not answer; where none is installed, how to get one.

    Blocks.
    """
    if environ.get("DOCKER_HOST"):
        return NO_ENGINE
    known = any(shutil.which(program, path=environ.get("PATH")) for program in PROGRAMS)
    return NO_ENGINE if known else NONE_INSTALLED


def _connect(host: str) -> Engine:
    _knock(host)
    api = docker.APIClient(base_url=host, version="auto", timeout=CALL_SEC)
    # Otherwise docker-py keeps a connection open for each URL, 25 of them, and finds them dead when
    # the engine has been restarted.
    api.headers["Connection"] = "close"
    info, version = api.info(), api.version()
    bridge = any(network["Name"] in ("bridge", "podman") for network in api.networks())
    return Engine(host, api, read_traits(info, version, bridge=bridge))


def read_traits(info: Mapping[str, Any], version: Mapping[str, Any], *, bridge: bool) -> Traits:
    """Return the traits that the engine's answers to `info` and `version` state."""
    names = [component.get("Name", "") for component in version.get("Components") or ()]
    podman = any("podman" in name.lower() for name in names)
    security = " ".join(info.get("SecurityOptions") or ())
    held = {
        "memory": info.get("MemoryLimit"),
        "cpus": info.get("CpuCfsQuota"),
        "pids": info.get("PidsLimit"),
        "seccomp": "seccomp" in security,
    }
    major, _, minor = str(version.get("ApiVersion", "1.41")).partition(".")
    return Traits(
        product="Podman" if podman else "Docker",
        version=str(version.get("Version", "")),
        api=(int(major), int(minor)),
        cgroup=str(info.get("CgroupVersion", "1")),
        rootless="rootless" in security,
        bridge=bridge,
        lacks=frozenset(name for name, holds in held.items() if not holds),
    )


def _words(error: Exception) -> str:
    """Return the engine's own message, without the wrapping."""
    if isinstance(error, docker.errors.APIError) and error.explanation:
        return str(error.explanation).strip()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror  # without the number
    return (str(error) or type(error).__name__).strip()


_UNSEEN = lazy_regex(
    r"bind source path does not exist: (?P<docker>/.*?)[\")]*\s*$"
    r"|error while creating mount source path '(?P<created>/[^']+)'"
    r"|statfs (?P<podman>/.*?): no such file or directory"
    r"|[Tt]he path (?P<desktop>/.*?) (?:is not shared|does not exist) ",
    re.MULTILINE,
)


def unavailable(host: str | None, cause: str, repo: Path) -> SandboxUnavailable:
    """Return the error for an engine on which no sandbox of this repository could be made.

    An engine mounts what lies on its own machine. A volume of the container that we run in, a
    folder in a private mount namespace, or one that Docker Desktop does not share is here and not
    there.
    """
    found = _UNSEEN.search(cause)
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
