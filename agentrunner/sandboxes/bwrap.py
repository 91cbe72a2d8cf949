"""The bubblewrap sandbox: namespaces for each command, for root and for ordinary users.

Only the repository and the run's own folder are writable; everything else is a small read-only view
of the system. Each command has its own namespaces, so no process outlives it.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from agentrunner.environment import own_process
from agentrunner.errors import AgentRunnerError
from agentrunner.folders import remove_tree
from agentrunner.sandboxes.base import (
    Caches,
    CommandResult,
    Ending,
    ErrorKind,
    Launch,
    Mount,
    OnOutput,
    Request,
    ResourceLimit,
    SandboxError,
    SandboxOrder,
)
from agentrunner.sandboxes.bwrap_program import (
    Layers,
    Overlays,
    bundled_bwrap,
    find_bwrap,
    unavailable,
    version_of,
)
from agentrunner.sandboxes.cgroups import hierarchies
from agentrunner.sandboxes.configuration import COMMON, configuration_of
from agentrunner.sandboxes.deny import holds
from agentrunner.sandboxes.enter import sweep
from agentrunner.sandboxes.gitdirs import GitData, git_data, remove_mask
from agentrunner.sandboxes.homes import (
    SANDBOX_HOME,
    command_environment,
    home_mounts,
    shared,
    without_large,
)
from agentrunner.sandboxes.layers import LAYERS, sweep_layers
from agentrunner.sandboxes.limits import HeldLimits, hold_limits, memory_bytes
from agentrunner.sandboxes.on_host import HostSandbox, not_executed
from agentrunner.sandboxes.process import GRACE_SEC, STATUS_FD
from agentrunner.sandboxes.requests import base_environment, check_request
from agentrunner.sandboxes.seccomp import DENIED, MACHINES
from agentrunner.sandboxes.toolchain import SYSTEM_ROOTS, Toolchain, find_toolchain
from agentrunner.text.lazy_regex import lazy_regex

NAMESPACES = (
    "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
)  # fmt: skip
SCRATCH = {"/tmp": "1777", "/var/tmp": "1777", "/dev/shm": "1777", str(SANDBOX_HOME): "0700"}
"""Folders in memory and their modes; each can grow up to the memory limit."""
_NOT_STARTED = lazy_regex(rb"bwrap: execvp (.*): ([^\n]+)\n", re.DOTALL)


class BwrapSandbox(HostSandbox):
    """A bubblewrap sandbox. `environ` and `host_home` are only used to find toolchains."""

    kind = "bwrap"
    isolates = True
    byte_code = Path("/tmp/pycache")

    def __init__(
        self,
        spec: SandboxOrder,
        *,
        environ: Mapping[str, str],
        host_home: Path,
        grace_sec: float = GRACE_SEC,
        overlays: bool = True,
    ) -> None:
        """Without `overlays`, layers are copies, as where the kernel supports no overlays."""
        super().__init__(spec, environ=environ, host_home=host_home, grace_sec=grace_sec)
        self._may_overlay = overlays
        self._filtered = os.uname().machine in MACHINES
        self._version = ""

    @staticmethod
    def hold(limits: ResourceLimit) -> HeldLimits:
        """Hold the limits by a cgroup where one can be had."""
        return hold_limits(limits, hierarchies())

    def describe(self) -> str:
        """Return one line: version, network, what is writable, limits."""
        network = "no route out" if self._spec.network == "none" else "the host's network on demand"
        parts = [f"{network}, system read-only, .git read-only", shared(self._spec.caches)]
        parts.append(self._held.describe())
        return f"bwrap{self._version and ' '}{self._version}; " + "; ".join(filter(None, parts))

    def isolation(self) -> Mapping[str, str]:
        host = "" if self._spec.network == "none" else "; the host's for commands that ask for it"
        calls = f"seccomp: {len(DENIED)} denied, no new namespaces, four socket families"
        return {
            "processes": "a PID namespace for each command; nothing outlives it",
            "files": "repository and run folder writable, .git and the system read-only, no HOME",
            "network": f"its own loopback, and a door in it where there is one{host}",
            "system calls": calls if self._filtered else "all: no filter for this processor",
            "privileges": "no capabilities, no new privileges",
            "user": "you, in a user namespace without rights on the host",
            **self._held.means,
        }

    def mounts(self) -> list[Mount]:
        """Return everything of the host that is visible, in mount order."""
        return self._mounts(self._spec.repo, git_data(self._spec.repo), private=False)

    async def open(self) -> None:
        """Run `true` in the sandbox. Raises SandboxUnavailable with bwrap's words and a remedy."""
        self._version = await version_of(await asyncio.to_thread(lambda: self._helper))
        try:
            result = await self.run(
                Request(command=("true",), workdir=self._spec.repo, timeout_sec=30)
            )
        except SandboxError as error:
            raise unavailable(error.cause) from error
        if result.exit_code != 0:
            raise unavailable(result.stderr.decode(errors="replace").strip())

    def launch(self, request: Request) -> Launch:
        """Return the command line of `enter` and bwrap; both report on `{status_fd}`, in JSON."""
        check_request(request, self._spec)
        try:
            git = git_data(self._spec.repo)
        except AgentRunnerError as error:
            raise SandboxError(ErrorKind.INVALID_REQUEST, "launch", error.message) from error
        mounts = self._home_mounts(request)
        layers = self._layers([*mounts, *request.mounts])
        for mount in mounts:
            if mount.kept:
                layers.work(mount).mkdir(mode=0o700, parents=True, exist_ok=True)
        is_layered = any(mount.layer for mount in (*mounts, *request.mounts))
        helper = (is_layered and self._overlays.helper) or self._helper
        network = [] if request.network == "full" else ["--unshare-net"]
        argv = [
            *self._enter(request, layers),
            str(helper),
            *NAMESPACES,
            "--unshare-user-try" if os.geteuid() == 0 else "--unshare-user",
            *network,
            *("--hostname", "localhost", "--die-with-parent", "--new-session"),
            *("--cap-drop", "ALL", "--json-status-fd", STATUS_FD),
            *self._layout(request, git, mounts, layers),
            *("--remount-ro", "/", "--chdir", str(request.workdir), "--"),
            *self._held.prefix,
            *request.command,
        ]
        return Launch(tuple(argv), self._environment(request), cwd=Path("/"))

    async def run(self, request: Request, on_output: OnOutput | None = None) -> CommandResult:
        """Run a request in namespaces of its own.

        A missing program is a result with exit code 127 (126 if it cannot be executed). A sandbox
        that cannot be created is SandboxError(INFRA) with bwrap's message.
        """
        launch = await asyncio.to_thread(self.launch, request)
        try:
            ended = await self._run_launch(launch, request, on_output)
        except OSError as error:
            raise SandboxError(ErrorKind.INFRA, "run", f"{launch.argv[0]}: {error}") from error
        finally:
            await asyncio.to_thread(self._clear, request)
        if ended.reported is not None or ended.result.ending is not Ending.EXITED:
            return ended.result
        return _not_started(ended.result)

    def _clear(self, request: Request) -> None:
        remove_mask(self._spec.repo)
        if request.home is not None and not request.home_layer:
            layers = self._spec.home.parent / LAYERS
            for work in layers.glob("*-work-*"):
                remove_tree(str(work))

    async def close(self) -> None:
        """Kill everything, and remove its remains on the host.

        These are the empty `.git` that bwrap made as a mount point, and cgroups and copies whose
        owner was killed.
        """
        await self.kill_all()
        await asyncio.to_thread(remove_mask, self._spec.repo)
        for group in self._held.groups:
            await asyncio.to_thread(sweep, str(group.parent))
        await asyncio.to_thread(sweep_layers, str(self._spec.home.parent / LAYERS))

    @cached_property
    def _helper(self) -> Path:
        return find_bwrap(self._environ, self._spec.repo)

    @cached_property
    def _overlays(self) -> Overlays:
        helpers = [self._helper, *filter(None, [bundled_bwrap()])]
        return Overlays(helpers if self._may_overlay else [], self._spec.home.parent)

    @cached_property
    def _toolchain(self) -> Toolchain:
        return find_toolchain(
            self._spec.programs,
            self._spec.repo,
            self._environ,
            self._host_home,
            avoid=(self._spec.home,),
        )

    @cached_property
    def _configuration(self) -> tuple[Mount, ...]:
        return configuration_of(self._toolchain.programs)

    @cached_property
    def _base_env(self) -> Mapping[str, str]:
        return base_environment(
            self._toolchain.path,
            home=SANDBOX_HOME,
            repo=self._spec.repo,
            pycache=self.byte_code,
        )

    def _environment(self, request: Request) -> Mapping[str, str]:
        """Return the command's environment, plus what our own start needs and `enter` removes."""
        env = dict(self._base_env)
        if libraries := self._environ.get("LD_LIBRARY_PATH"):
            env["LD_LIBRARY_PATH"] = libraries
        return command_environment(env, request, self._caches, SANDBOX_HOME)

    def _home_mounts(self, request: Request) -> list[Mount]:
        """Return what is mounted at and below the command's home, in this order."""
        homely = request.home is not None or bool(self._spec.caches.folders)
        overlays = homely and self._overlays.helper is not None
        spec = replace(self._spec, caches=self._caches)
        return home_mounts(request, spec, overlays=overlays)

    @cached_property
    def _caches(self) -> Caches:
        """The caches that can be shown on this machine."""
        found = self._spec.caches
        return found if not found.folders or self._overlays.helper else without_large(found)

    def _layers(self, mounts: Sequence[Mount]) -> Layers:
        """Decide how each layer of a request is made: by the kernel, or else as a copy."""
        sources = dict.fromkeys(each.source.resolve() for each in mounts if each.layer)
        return Layers(
            folder=self._spec.home.parent / LAYERS / secrets.token_hex(8),
            copied=tuple(source for source in sources if not self._overlays.can(source)),
        )

    def _enter(self, request: Request, layers: Layers) -> list[str]:
        """Return the words that come before bwrap's own; see `enter`."""
        helper = own_process("agentrunner.sandboxes.enter", packages=False)
        words = [*helper, "--status", STATUS_FD]
        if self._filtered:
            words.append("--filter")
        for group in self._held.groups:
            words += ["--group", *group.words]
        if request.door is not None:
            ports = (f"{port}={name}" for port, name in request.door.ports.items())
            words += ["--door", str(request.door.folder), *ports]
            if request.network == "full":
                words.append("--host-network")
        if layers.copied:
            words += ["--layers", str(layers.folder), *map(str, layers.copied)]
        return [*words, "--"]

    def _mounts(self, tree: Path, git: GitData, *, private: bool) -> list[Mount]:
        system = [Mount(p, p) for p in SYSTEM_ROOTS if p.is_dir() and not p.is_symlink()]
        etc = [Mount(p, p) for name in COMMON if (p := Path("/etc") / name).exists()]
        shown = {mount.target for mount in etc}
        etc += [m for m in self._configuration if shown.isdisjoint((m.target, *m.target.parents))]
        wanted = [self._shown(path) for path in self._spec.read_paths]
        below = [*self._toolchain.mounts, *wanted]
        own = [Mount(tree, self._spec.repo, read_only=False)]
        if not private:
            own.append(Mount(self._spec.home, self._spec.home, read_only=False))
        # What is inside the repository is visible already, and must not hide the copy.
        below = [mount for mount in below if not holds(self._spec.repo, mount.target)]
        ordered = sorted([*below, *own], key=lambda mount: len(mount.target.parts))
        return [*system, *etc, *ordered, *(Mount(path, path) for path in git.paths)]

    def _shown(self, path: Path) -> Mount:
        """Return a read path's mount: behind links that the toolchain makes again, not on them."""
        links, target = [place for place, _ in self._toolchain.links], path
        while place := next((one for one in links if holds(one, target)), None):
            target = place.resolve() / target.relative_to(place)
        return Mount(path.resolve(), target)

    def _layout(
        self, request: Request, git: GitData, home: Sequence[Mount], layers: Layers
    ) -> list[str]:
        """Return bwrap's options for the file system, starting from an empty root."""
        words: list[str] = []
        for path in SYSTEM_ROOTS:
            if path.is_symlink():
                words += ["--symlink", os.readlink(path), str(path)]  # noqa: PTH115 - its text
        sized = ["--size", str(memory_bytes(m))] if (m := self._spec.limits.memory) else []
        words += ["--proc", "/proc", "--dev", "/dev", "--dir", "/run", "--dir", "/var"]
        for scratch, mode in SCRATCH.items():
            words += ["--perms", mode, *sized, "--tmpfs", scratch]
        words += ["--remount-ro", "/dev"]
        shown = self._mounts(request.repo_copy or self._spec.repo, git, private=request.private)
        # Home comes first: the repository, or a tool, may be below a home of the same name.
        for mount in (*home, *shown, *request.mounts):
            words += layers.words(mount)
        read = [self._shown(path).target for path in self._spec.read_paths]
        for place, text in self._toolchain.links:
            if not any(holds(folder, place) for folder in read):  # there it is already
                words += ["--symlink", text, str(place)]
        if request.network == "full" and Path("/etc/resolv.conf").exists():
            words += ["--ro-bind", str(Path("/etc/resolv.conf").resolve()), "/etc/resolv.conf"]
        if git.absent:
            mask = str(self._spec.repo / ".git")
            words += ["--tmpfs", mask, "--remount-ro", mask, "--lock-file", str(self._spec.repo)]
        return words


def _not_started(result: CommandResult) -> CommandResult:
    """Return the result of a missing program, or raise the error of a sandbox that failed.

    Only bwrap's own message is trusted, and only if nothing else was printed, so that a command
    cannot imitate it.
    """
    match = _NOT_STARTED.fullmatch(result.stderr)
    if match is None or result.stdout_bytes:
        words = result.stderr.decode(errors="replace").strip()
        raise SandboxError(
            ErrorKind.INFRA, "run", words or "the sandbox ended without a word", result=result
        )
    return not_executed(
        match[1] + b": " + match[2] + b"\n",
        result.started_at,
        result.ended_at,
        missing=match[2] == b"No such file or directory",
        duration_sec=result.duration_sec,
    )
