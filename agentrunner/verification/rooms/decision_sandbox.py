"""Runs commands that decide about completion, in the sandbox and never on the host."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agentrunner.errors import EnvironmentNotReady, UsageError
from agentrunner.errors.repositories import FolderOutside
from agentrunner.folders import remove_tree, walk
from agentrunner.gateway.egress_log import read_egress
from agentrunner.gateway.gateway_process import running
from agentrunner.gateway.order import GatewayOrder
from agentrunner.launching.route import EGRESS_LOG, route_of
from agentrunner.sandboxes.base import (
    CommandResult,
    ErrorKind,
    Mount,
    Network,
    Request,
    Sandbox,
    SandboxError,
)
from agentrunner.sandboxes.choose import AutoSandbox
from agentrunner.sandboxes.shims import ENVIRONMENTS
from agentrunner.state.run_state import TAIL_BYTES
from agentrunner.state.state_model import FileRef
from agentrunner.storage.run_folder import RunFolder
from agentrunner.text.likeness import slip_of
from agentrunner.verification.results.counts import Counts, read_counts
from agentrunner.verification.results.shell import simple_commands
from agentrunner.verification.rooms.build_cache import BuildCaches, ShownCache
from agentrunner.verification.rooms.byte_code import (
    COMPILING,
    NAMES,
    PROGRAMS,
    WITH_PROGRAMS,
    compiled_elsewhere,
    speaks_of,
    write_programs,
)
from agentrunner.verification.rooms.complaints import MISUSED, missing_programs
from agentrunner.verification.rooms.start_up import NO_TESTS, names_missing_file

TEST_COMMAND = "task.test.command"
OFFLINE: Mapping[str, str] = {
    "npm_config_offline": "true",  # npx and pnpm dlx, too
    "pnpm_config_offline": "true",  # from version 11 on, pnpm reads only its own names
    "npm_config_update_notifier": "false",
    "UV_OFFLINE": "1",
    "PIP_NO_INDEX": "1",  # pipx installs with pip
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
"""Settings that tell package managers that there is no network."""
TIMED_OUT = 124
"""Exit code recorded for a command that ran into its time limit, as timeout(1) has it."""
NO_FOLDER = 1
"""Exit code recorded for a command whose folder does not exist (yet): it is red."""
NOT_EXECUTABLE = 126
"""Exit code recorded for a command whose folder is outside of the repository."""
READ_CHARS = 8_000_000
"""Characters at the end of each stream in which results by name are looked for."""
COUNTED_CHARS = 200_000
"""Characters at the end of each stream in which the counts of tests are looked for."""


@dataclass(frozen=True)
class CommandOutcome:
    """One command that ran in the sandbox."""

    exit_code: int
    output: FileRef
    tail: str
    counts: Counts | None
    duration_sec: float
    timed_out: bool = False
    stdout: str = ""
    stderr: str = ""
    """The ends of both streams, for readers of results."""


@dataclass(frozen=True)
class CopyOfRepo:
    """A tree that takes the repository's place for one command."""

    path: Path
    mounts: tuple[Mount, ...]
    home: Path | None = None
    """What the set-up wrote into its home, visible to commands; None for an empty home."""


class DecisionSandbox:
    """Runs shell commands in the sandbox, without network, and keeps their output.

    Byte code of libraries is kept across commands, or each would compile its test tool again (3 s
    for pytest). It is written only on the untouched tree, from `warm` to `seal`, never contains the
    repository's own code, and is read-only from then on: nobody can forge it. Build caches are
    kept likewise.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        repo: Path,
        folder: RunFolder,
        redact: Callable[[str], str],
        environ: Mapping[str, str],
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`env` are variables that every command gets beside its own: the task's `task.env`."""
        self.environ = environ
        """Our environment, to resolve references to it; no command gets it."""
        self._env = {name: text.removeprefix("literal:") for name, text in (env or {}).items()}
        self._sandbox = sandbox
        self._repo = repo
        self._folder = folder
        self._redact = redact
        self._byte_code = folder.root / "bytecode"
        self._build_caches = BuildCaches(folder.root)
        self._programs = folder.root / "python"
        self._warming = False
        self._count = len(list(folder.checks_dir.iterdir())) if folder.checks_dir.is_dir() else 0

    def describe(self) -> str:
        """A description of the sandbox for people."""
        return self._sandbox.describe()

    async def fall_back(self, why: str) -> bool:
        """Switch to the next kind of sandbox, where the task permits that; False for none.

        Byte code of one sandbox's Python is useless in another's, so it is removed, as are our
        programs that start it.
        """
        if not isinstance(self._sandbox, AutoSandbox) or not await self._sandbox.fall_back(why):
            return False
        for folder in (self._byte_code, self._programs):
            await asyncio.to_thread(remove_tree, str(folder))
        await asyncio.to_thread(self._build_caches.remove)
        return True

    def warm(self) -> None:
        """Start writing byte code; only while the tree is the user's own."""
        self._byte_code.mkdir(mode=0o700, exist_ok=True)
        self._warming = True
        self._build_caches.open()

    def seal(self, ignored: Iterable[str]) -> None:
        """Make byte code read-only, and remove that of the repository's own code.

        `ignored` are the folders of installed packages in the repository, which are watched by
        other means.
        """
        self._warming = False
        self._build_caches.seal()
        own = self._byte_code / self._repo.relative_to("/")
        keep = [own / name for name in ignored]
        for folder, names, files in walk(own):
            here = Path(folder)
            names[:] = [name for name in names if here / name not in keep]
            for name in files:
                (here / name).unlink()

    def forget(self) -> None:
        """Remove what is kept across commands and may be large; blocks. Later commands are slower.

        For a run that has ended, whose folder stays.
        """
        self._build_caches.remove()

    def _byte_code_mount(self) -> tuple[Mount, ...]:
        place = self._sandbox.byte_code
        if place is None or not self._byte_code.is_dir():
            return ()
        return (Mount(self._byte_code, place, read_only=not self._warming),)

    def _shown_build_caches(
        self, copy: CopyOfRepo | None, texts: Iterable[str]
    ) -> list[ShownCache]:
        if copy is None:
            return []
        return self._build_caches.shown(self._sandbox.byte_code, copy.path, texts)

    async def _programs_that_compile(self, copy: CopyOfRepo | None) -> tuple[Mount, ...]:
        """Programs that stand for Python, where the tree has commands that only compile."""
        if copy is None or self._sandbox.byte_code is None:
            return ()
        if not await asyncio.to_thread(speaks_of, COMPILING, copy.path):
            return ()
        folder = self._programs
        if not folder.is_dir():
            look = f"for name in {' '.join(NAMES)}; do command -v $name; done; true"
            found = await self._sandbox.run(
                Request(
                    command=("sh", "-c", look),
                    workdir=self._repo,
                    repo_copy=copy.path,
                    mounts=copy.mounts,
                    private=True,
                )
            )
            await asyncio.to_thread(write_programs, folder, found.stdout.decode("utf-8", "replace"))
        return (Mount(folder, PROGRAMS),)

    async def run(
        self,
        shell: str,
        *,
        cwd: str = ".",
        timeout_sec: float = 600,
        network: Network = "none",
        hosts: Sequence[str] = (),
        copy: CopyOfRepo | None = None,
        name: str = "check",
        env: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] = (),
        home: Path | None = None,
        written: str = "",
    ) -> CommandOutcome:
        """Run `shell` to its end; a time-out is a result, a dead sandbox raises SandboxError.

        `written` is what people wrote, where `shell` is more than that.

        `hosts`, written as in an allow-list, are all that it may reach, through a proxy that
        lives as long as the command. What it writes into `home` stays there; what it writes into
        the home of a copy is thrown away. In a copy of the repository it sees nothing of what
        workers keep in their home.
        """
        try:
            place = await asyncio.to_thread(_start_folder, self._repo, cwd, copy)
        except UsageError as error:
            return await self._not_run(name, error.message, NOT_EXECUTABLE)
        if place is None:
            return await self._not_run(name, f"{cwd} is no folder of the repository", NO_FOLDER)
        if self._sandbox.byte_code is not None:
            shell = compiled_elsewhere(shell)
        shell = with_ones_own_uv(shell, self._repo, written or shell)
        programs = await self._programs_that_compile(copy)
        own = {**self._env, **(env or {})}
        caches = await asyncio.to_thread(self._shown_build_caches, copy, (shell, *own.values()))
        if first := ":".join(filter(None, (one.path for one in caches))):
            shell = f'PATH="{first}:$PATH"; {shell}'
        request = Request(
            command=("sh", "-c", *((WITH_PROGRAMS, str(PROGRAMS)) if programs else ()), shell),
            workdir=place,
            network=network,
            timeout_sec=timeout_sec,
            repo_copy=copy.path if copy else None,
            mounts=(
                *self._byte_code_mount(),
                *(one.mount for one in caches),
                *programs,
                *(copy.mounts if copy else ()),
                *mounts,
            ),
            env={
                **self._offline(network, hosts),
                **{name: text for one in caches for name, text in one.env.items()},
                **own,
            },
            private=copy is not None,
            home=home or (copy.home if copy else None),
            home_layer=home is None,
            keep_bytes=READ_CHARS,
        )
        try:
            async with self._with_proxy(request, hosts, name) as ready:
                result = await self._sandbox.run(ready)
        except SandboxError as error:
            if error.kind is not ErrorKind.TIMEOUT:
                raise
            note = f"timed out after {timeout_sec:g} s"
            text = "".join(self._texts(error.result)) if error.result else ""
            text += "\n" * bool(text and not text.endswith("\n")) + note
            output = await asyncio.to_thread(self._keep, name, text)
            return CommandOutcome(
                TIMED_OUT, output, text[-TAIL_BYTES:], None, timeout_sec, timed_out=True
            )
        out, err = self._texts(result)
        text = out + "\n" * bool(out and err and not out.endswith("\n")) + err
        return CommandOutcome(
            exit_code=result.exit_code,
            output=await asyncio.to_thread(self._keep, name, text),
            tail=text[-TAIL_BYTES:],
            counts=read_counts(out[-COUNTED_CHARS:], err[-COUNTED_CHARS:]),
            duration_sec=round(result.duration_sec, 3),
            stdout=out[-READ_CHARS:],
            stderr=err[-READ_CHARS:],
        )

    def _offline(self, network: Network, hosts: Sequence[str]) -> Mapping[str, str]:
        """Settings that make a tool refuse at once to fetch another one, if the network is cut off.

        Without them npx tries its registry for two minutes before it reports that.
        """
        cut_off = network == "none" and not hosts and self._sandbox.isolates
        return OFFLINE if cut_off else {}

    def _texts(self, result: CommandResult) -> tuple[str, str]:
        """Standard output and error as text, without secrets."""
        out, err = (stream.decode("utf-8", "replace") for stream in (result.stdout, result.stderr))
        return self._redact(out), self._redact(err)

    @asynccontextmanager
    async def _with_proxy(
        self, request: Request, hosts: Sequence[str], name: str
    ) -> AsyncIterator[Request]:
        """The request with a door to a proxy, where it may reach some hosts but not all."""
        if not hosts or request.network == "full" or not self._sandbox.isolates:
            yield request
            return
        sockets = self._folder.sock_dir
        order = GatewayOrder(
            sockets=sockets,
            egress_log=self._folder.root / EGRESS_LOG,
            usage_log=self._folder.root / "usage.jsonl",
            label=name,
            allow=tuple(hosts),
            setting=f"task.{'setup' if name == 'setup' else 'test'}.network",
        )
        route = route_of(order)
        async with running(order, self.environ):
            yield replace(request, door=route.door, env={**request.env, **route.environment})

    def refused(self, name: str) -> list[str]:
        """Entries of hosts that the commands of this name asked for in vain."""
        used = read_egress(self._folder.root / EGRESS_LOG, name)
        return [use.entry for use in used if use.refused and not use.allowed]

    async def _not_run(self, name: str, note: str, exit_code: int) -> CommandOutcome:
        output = await asyncio.to_thread(self._keep, name, note)
        return CommandOutcome(exit_code, output, note, None, 0)

    def _keep(self, name: str, text: str) -> FileRef:
        self._count += 1
        safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:40]
        return self._folder.write(f"checks/{self._count:04d}-{safe}.txt", text)


def with_ones_own_uv(shell: str, repo: Path, written: str) -> str:
    """A command that starts nothing but uv, as it is written, with the uv that one would start.

    An environment of the project may have another version, with a cache of its own that is empty.
    What uv starts finds the environment, as uv puts it on PATH.
    """
    if {one.texts[0] for one in simple_commands(written) if one.texts} - {"cd"} != {"uv"}:
        return shell
    bins = " ".join(f"-e {shlex.quote(str(repo / one / 'bin'))}" for one in ENVIRONMENTS)
    others = f"$(echo \"$PATH\" | tr : '\\n' | grep -vxF {bins} | paste -sd : -)"
    return f'others={others}; PATH="$others" command -v uv >/dev/null && PATH="$others"; {shell}'


def _start_folder(repo: Path, cwd: str, copy: CopyOfRepo | None) -> Path | None:
    """The folder in which a command starts; None where the tree it runs on lacks that folder."""
    place = inside(repo, cwd)
    actual_folder = copy.path / place.relative_to(repo) if copy else place
    return place if actual_folder.is_dir() else None


def inside(repo: Path, cwd: str) -> Path:
    """`cwd` within the repository, symlinks resolved; UsageError where it leads out."""
    place = (repo / cwd).resolve()
    if place != repo and repo not in place.parents:
        raise FolderOutside(
            f"{cwd} leads out of the repository.",
            path="cwd",
            remedy="name a folder inside the repository",
        )
    return place


INSTALL = "install what is missing with task.setup.command"
"""How the remedy for a command that may lack a program or a package begins."""


def not_ready(
    shell: str,
    ran: CommandOutcome,
    why: str,
    sandbox: str,
    *,
    what: str,
    path: str = "",
    place: str = "",
) -> EnvironmentNotReady:
    """The error for a command that cannot start, with what was run and what to try.

    `path` is the setting that holds the command, if any, and `place` the file and line where it
    stands.
    """
    message = f"{what} cannot start in the sandbox."
    remedy = (
        f"{INSTALL}, or name its folder in runner.sandbox.read_paths; agentrunner doctor tries the"
        " test command"
    )
    if why == NO_TESTS:
        message = f"{what} finds no tests."
        remedy = "task.test.baseline: false, where the run is to write the first ones"
    elif why.startswith(MISUSED):
        message = f"{what} is called wrongly."
        remedy = "correct it; if the run is to write what it lacks, the PRD has to name that"
    elif names_missing_file(shell, why):
        message = f"{what} names a file that is not there."
        remedy = "correct the name; if the run is to write that file, the PRD has to name it"
    if path == TEST_COMMAND:
        remedy += "; --test none runs without one"
    if near := nearest_program(why):
        remedy = f"did you mean {near}? Or {remedy}"
    return EnvironmentNotReady(
        message,
        path=place or path,
        details=(("ran", f"{shell}      exit {ran.exit_code}, {why}"), ("sandbox", sandbox)),
        remedy=remedy,
        nothing_spent=True,
    )


OF_SHELLS = frozenset({"test", "true", "false"})
"""Programs on every PATH that nobody means who names a test tool."""


def nearest_program(why: str, search: str | None = None) -> str:
    """Return a program on PATH whose name is a slip away from the missing one; "" for none."""
    missing = next(missing_programs(why), None)
    if missing is None or "/" in missing["program"]:
        return ""
    names: set[str] = set()
    for folder in (search if search is not None else os.environ.get("PATH", "")).split(os.pathsep):
        with contextlib.suppress(OSError):
            names.update(one.name for one in Path(folder or "/dev/null").iterdir())
    names -= OF_SHELLS
    word = missing["program"]
    names.discard(word)  # it is on PATH, and the sandbox lacks it
    if len(word) < 4:  # `zig` is no slip for `zip`, as `nmp` is for `npm`
        names = {name for name in names if sorted(name) == sorted(word)}
    return slip_of(word, sorted(names))
