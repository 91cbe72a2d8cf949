"""The engine: one connection to whatever speaks Docker's API on this machine, Podman included.

docker-py blocks. Each call has a thread of its own, and while one takes long the engine is asked
whether it is alive: a hanging engine is found out in seconds, a busy one is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import docker
import docker.errors
import requests.exceptions
import urllib3.exceptions
from docker.context import ContextAPI

from agentrunner.errors import SandboxUnavailable
from agentrunner.sandboxes.base import ErrorKind, SandboxError

T = TypeVar("T")

PATIENCE_SEC = 4.0
"""How long a call may take before the engine is asked whether it lives, and how long that may."""
CALL_SEC = 120
"""The longest that any call may take, however alive the engine is."""
NOT_FOUND = 404
CONFLICT = 409

NO_ENGINE = "systemctl start docker, or set DOCKER_HOST=unix:///…"
NO_ACCESS = "sudo usermod -aG docker $USER, then log in again"


class EngineError(SandboxError):
    """The engine refused a call, or did not answer: always INFRA.

    `status` is that of its answer; None where there was none, so that it may have done anything.
    """

    def __init__(self, op: str, cause: str, *, status: int | None = None) -> None:
        super().__init__(ErrorKind.INFRA, op, cause)
        self.status = status


@dataclass(frozen=True)
class Traits:
    """What this engine can do, by its own word."""

    product: str = "Docker"
    version: str = ""
    api: tuple[int, int] = (1, 41)
    cgroup: str = "1"
    rootless: bool = False
    """Its uid 0 in a sandbox is the user who runs it."""
    bridge: bool = False
    """There is a network of its own for a sandbox that may reach everything."""
    lacks: frozenset[str] = field(default_factory=frozenset)
    """Of memory, cpus, pids, seccomp: what it cannot hold here."""

    @property
    def read_only_below(self) -> bool:
        """Whether a read-only mount is read-only for the mounts in it, too."""
        return self.product == "Docker" and self.api >= (1, 44)


class Engine:
    """An engine that answered. `host` is its address, for another process to connect to."""

    def __init__(self, host: str, api: docker.APIClient, traits: Traits) -> None:
        self.host = host
        self.api = api
        """For calls within `call` only: it blocks."""
        self.traits = traits
        self.silent = False
        """The last call got no answer at all."""

    @classmethod
    async def connect(cls, environ: Mapping[str, str]) -> Engine:
        """The engine that DOCKER_HOST names, else the current context of the docker command.

        Raises SandboxUnavailable with the reason and a cure.
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
            words = _words(error)
            remedy = NO_ACCESS if isinstance(error, PermissionError) else NO_ENGINE
        raise SandboxUnavailable(f"no container engine at {host}: {words}", remedy=remedy)

    async def call(self, op: str, do: Callable[[Any], T]) -> T:
        """Do something with the API; `op` names it in errors. Raises EngineError.

        A call that is given up, or cancelled, may still come to its end in the engine.
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
        """Hand over the entries of a long answer (a pull, a build) as they come, in this loop.

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
        """Raises EngineError where the engine does not answer any more."""
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


_FAILURES = (
    docker.errors.DockerException,
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
    ValueError,  # an answer that is no JSON
)
"""What docker-py raises, beside its own errors those of what it stands on."""


def engine_address(environ: Mapping[str, str]) -> str:
    """DOCKER_HOST, else the endpoint of the current context, else Docker's usual socket."""
    if environ.get("DOCKER_HOST"):
        return environ["DOCKER_HOST"]
    with contextlib.suppress(Exception):  # a broken file of another program is no reason to fail
        context = ContextAPI.get_current_context()
        if context is not None and context.Host:
            return str(context.Host).replace("http+unix://", "unix://")
    return "unix:///var/run/docker.sock"


async def in_thread(work: Callable[[], T]) -> T:
    """Like asyncio.to_thread, but nobody waits for a thread that hangs, not even at the exit."""
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
        except BaseException as failure:  # noqa: BLE001 - handed to whoever waits
            error = failure
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True, name="engine").start()
    return await future


def _knock(host: str) -> None:
    """Raises OSError where nobody listens: docker-py would leave a socket open then."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(CALL_SEC)
        probe.connect(host.removeprefix("unix://"))


def _connect(host: str) -> Engine:
    _knock(host)
    api = docker.APIClient(base_url=host, version="auto", timeout=CALL_SEC)
    # Else docker-py keeps one open for each URL, 25 of them, and finds those of an engine that
    # was started anew to be dead.
    api.headers["Connection"] = "close"
    info, version = api.info(), api.version()
    bridge = any(network["Name"] in ("bridge", "podman") for network in api.networks())
    return Engine(host, api, read_traits(info, version, bridge=bridge))


def read_traits(info: Mapping[str, Any], version: Mapping[str, Any], *, bridge: bool) -> Traits:
    """What the engine's answers to `info` and `version` say."""
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
    """The engine's own sentence, without the wrapping."""
    if isinstance(error, docker.errors.APIError) and error.explanation:
        return str(error.explanation).strip()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror  # without the number
    return (str(error) or type(error).__name__).strip()
