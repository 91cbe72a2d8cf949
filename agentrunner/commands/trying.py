"""Try commands in a sandbox, the only way to know whether they start there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from agentrunner.commands.console import tell
from agentrunner.environment import home_of
from agentrunner.errors import AgentRunnerError
from agentrunner.screens.layout import count, flat
from agentrunner.verification.results.commands import texts_run

if TYPE_CHECKING:
    from agentrunner.discovery.found import FoundCommand
    from agentrunner.discovery.judging import TriedCommand
    from agentrunner.sandboxes.base import Caches, Sandbox
    from agentrunner.storage.run_folder import RunFolder
    from agentrunner.verification.rooms.decision_sandbox import (
        CommandOutcome,
        CopyOfRepo,
        DecisionSandbox,
    )

TRY_SEC = 60
"""Time limit of one candidate."""
MOST = 3
"""Candidates that are tried."""

_NAMED = "export PYTEST_ADDOPTS=-rfE; "
"""Makes pytest name red tests, whatever its configuration says about its summary."""


class SandboxTrial(Struct):
    """Commands that are tried in the sandbox that a run would use, without network.

    They run on a copy of the repository's files, which is deleted afterwards: the repository is not
    changed. At most three commands that need no set-up are tried, each for at most a minute.
    """

    repo: Path
    candidates: Sequence[FoundCommand]
    state_dir: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    skip: bool = False
    """Whether the sandbox is opened, but nothing runs."""
    env: Mapping[str, str] = field(default_factory=dict)
    """What `task.env` would give them."""
    part: str = "."
    """The folder that they run in."""
    worker_kind: str = ""
    """The worker whose image a sandbox with images uses."""
    policy: Path | None = None
    """A file that limits what is shown there."""
    wanted: str = "auto"
    """The kind of sandbox that settings or a policy leave."""

    sandbox: str = ""
    """What the sandbox isolates; "" if none could be opened."""
    kind: str = ""
    """Its kind: "docker", "bwrap"."""
    reason: str = ""
    """Why `auto` chose it over earlier kinds; "" if the kind was named."""
    problem: AgentRunnerError | None = None
    """Why there is no sandbox."""
    seen: list[TriedCommand] = field(default_factory=list)
    """All candidates, the best first; untried ones say why."""
    tools: tuple[str, ...] = ()
    """Toolchains that are visible in the sandbox, read-only."""
    caches: Caches | None = None
    """The user's package caches that are visible there; None without a sandbox."""
    uncopied: str = ""
    """Why the files could not be copied for the trial."""
    stopped: bool = False
    """Whether Ctrl-C ended the trial early."""
    done: dict[str, TriedCommand] = field(default_factory=dict)
    """By command as it was found; filled during the trial, so that Ctrl-C loses nothing."""

    @property
    def best(self) -> TriedCommand | None:
        """The best candidate, for the task."""
        return self.seen[0] if self.seen else None

    def run(self) -> SandboxTrial:
        """Try the first candidates, announced on stderr; Ctrl-C keeps the results until then."""
        from agentrunner.discovery.judging import not_tried, ranked

        chosen = [] if self.skip else [one for one in self.candidates if not one.needs][:MOST]
        if chosen:
            what = count(len(chosen), "test command")
            notice = f"Trying {what} on a copy of the files, without network."
            tell(f"{notice} Ctrl-C or --no-try skips it.", sys.stderr)
        try:
            asyncio.run(self._try_all(chosen))
        except KeyboardInterrupt:
            self.stopped = True
        why = "Ctrl-C" if self.stopped else "--no-try" if self.skip else self.uncopied
        self.seen = ranked(
            [
                self.done.get(one.command) or not_tried(one, one.needs or why)
                for one in self.candidates
            ]
        )
        return self

    @property
    def place(self) -> Path:
        """The folder that the commands run in."""
        return self.repo / self.part

    async def _try_all(self, chosen: Sequence[FoundCommand]) -> None:
        from agentrunner.config.agents import WorkerSpec
        from agentrunner.engine.resources import started_programs
        from agentrunner.sandboxes.base import SandboxOrder
        from agentrunner.sandboxes.choose import open_sandbox
        from agentrunner.storage.run_folder import RunFolder
        from agentrunner.verification.rooms.decision_sandbox import DecisionSandbox

        home = home_of(self.environ)
        words = [
            word
            for found in chosen
            for word in started_programs(found.command, self.repo, self.part)
        ]
        with tempfile.TemporaryDirectory(prefix="agentrunner-") as root:
            folder = RunFolder(Path(root))
            folder.sandbox_dir.mkdir()
            spec = SandboxOrder(
                repo=self.repo,
                home=folder.sandbox_dir,
                programs=tuple(dict.fromkeys(words)),
                worker_kind=self.worker_kind or WorkerSpec().kind,
                caches=await asyncio.to_thread(self._caches),
            )
            try:
                sandbox = await open_sandbox(
                    self.wanted, spec, self.environ, home, state_root=self.state_dir
                )
            except AgentRunnerError as error:
                self.problem = error
                return
            try:
                self._note(sandbox, home)
                self.caches = spec.caches
                inside = DecisionSandbox(sandbox, self.repo, folder, str, self.environ, self.env)
                copy = await self._make_copy(folder) if chosen else None
                for found in chosen if copy else ():
                    same = self._skip_duplicate(found)
                    self.done[found.command] = same or await self._try_one(
                        inside, folder, found, copy
                    )
                self._note(sandbox, home)
            finally:
                await sandbox.close()

    def _caches(self) -> Caches:
        """Return the caches that a run would show here, by settings and policies.

        None are shown where these cannot be read: then no run starts.
        """
        from agentrunner.config.load import load_settings
        from agentrunner.engine.resources import shown_caches
        from agentrunner.errors import UsageError
        from agentrunner.policy.check import caches_allowed
        from agentrunner.policy.load import load_policies

        wanted: str | list[str] = "none"
        allowed: list[str] | None = None
        with contextlib.suppress(UsageError):
            allowed = caches_allowed(load_policies(self.policy, self.environ, self.repo))
            wanted = load_settings(self.repo, self.environ)[0].sandbox.caches
        return shown_caches(self.repo, wanted, allowed, self.environ)

    async def _make_copy(self, folder: RunFolder) -> CopyOfRepo | None:
        """Make a copy for the trial below `folder`; return None if it fails, and record why."""
        try:
            return await asyncio.to_thread(_copy_of, self.repo, folder.root / "trial")
        except (AgentRunnerError, OSError) as error:
            self.uncopied = str(getattr(error, "message", "") or error)
            return None

    def _note(self, sandbox: Sandbox, home: Path) -> None:
        from agentrunner.sandboxes.choose import AutoSandbox

        self.sandbox, self.kind = sandbox.describe(), sandbox.kind
        self.reason = sandbox.reason if isinstance(sandbox, AutoSandbox) else ""
        self.tools = tuple(
            str(mount.source)
            for mount in sandbox.mounts()
            if mount.read_only
            and mount.source.is_relative_to(home)
            and not mount.source.is_relative_to(self.repo)
        )

    def _skip_duplicate(self, found: FoundCommand) -> TriedCommand | None:
        """Skip `pytest -q` if `uv run pytest -q` ran tests: it would show nothing new."""
        from agentrunner.discovery.judging import not_tried

        for command, seen in self.done.items():
            if seen.runs and command.endswith(f" {found.command}"):
                return not_tried(found, f"it runs in `{command}`")
        return None

    async def _try_one(
        self,
        inside: DecisionSandbox,
        folder: RunFolder,
        found: FoundCommand,
        copy: CopyOfRepo | None,
    ) -> TriedCommand:
        from agentrunner.discovery.judging import TriedCommand
        from agentrunner.verification.rooms.start_up import why_not_started

        where = "" if self.part == "." else f" in {flat(self.part)}"
        text = f"running `{flat(found.command)}`{where} in the sandbox (at most {TRY_SEC} s) ..."
        tell(f"  {text}", sys.stderr)
        left = float(TRY_SEC)
        try:
            while True:
                ran = await inside.run(
                    _NAMED + found.command, cwd=self.part, timeout_sec=left, copy=copy
                )
                why = "" if ran.timed_out else why_not_started(
                    found.command, ran, self.place, is_test=True, cwd=self.part
                )  # fmt: skip
                # As at the start of a run: in the fallback sandbox the command may start.
                if why and not self.done and await inside.fall_back(why):
                    continue
                left = max(1.0, left - ran.duration_sec)
                better, how = self._better(found.command, ran, _output(folder, ran))
                if not better:
                    return self._judge(found, ran, folder)
                where = f"{found.where}, {how}"
                found = replace(found, command=better, where=where)
        except AgentRunnerError as error:
            return TriedCommand(found, "fails", summary=error.message)

    def _better(self, command: str, ran: CommandOutcome, output: str) -> tuple[str, str]:
        """Return a variant of the command that may start here, and how it differs; "" for none."""
        from agentrunner.discovery.judging import from_the_root, without_missing_plugins

        if ran.exit_code == 4:
            better = without_missing_plugins(command, output)
            return better, "without plug-ins that are not installed"
        if ran.exit_code == 2:
            return from_the_root(command, output, self.place), "with the modules at the root"
        return "", ""

    def _judge(self, found: FoundCommand, ran: CommandOutcome, folder: RunFolder) -> TriedCommand:
        from agentrunner.discovery.judging import judge

        def read(path: str) -> bytes | None:
            from agentrunner.discovery.reading import exists, read_inside

            return read_inside(self.place, path).encode() if exists(self.place, path) else None

        behind = texts_run(found.command, ".", read)[1:]
        return judge(found, ran, _output(folder, ran), self.place, behind)


def _output(folder: RunFolder, ran: CommandOutcome) -> str:
    return (folder.root / ran.output.path).read_text(errors="replace")


def _copy_of(repo: Path, place: Path) -> CopyOfRepo:
    """Copy the files as a run would verify them into the new folder `place`. Blocks.

    Ignored folders are copied, too; one that is too large is mounted read-only at its own place.
    Raises GitFailed, InfraError and OSError.
    """
    from agentrunner.git.snapshots import Snapshots
    from agentrunner.sandboxes.base import Mount
    from agentrunner.verification.rooms.decision_sandbox import CopyOfRepo
    from agentrunner.verification.rooms.sealed import copy_folder, fits

    place.mkdir(mode=0o700)
    target = place / "tree"
    snapshots = Snapshots(place / "store", repo)
    snapshots.export_tree(snapshots.take().tree, target)
    mounts = []
    for name in snapshots.ignored_folders():
        if fits(repo / name):
            copy_folder(repo / name, target / name)
        else:
            (target / name).mkdir(parents=True, exist_ok=True)
            mounts.append(Mount(repo / name, repo / name, read_only=True))
    return CopyOfRepo(target, tuple(mounts))
