"""Runs a task's set-up in the repository, and again in rooms where what it installs changed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec import Struct

from agentrunner.config.spec import SetupSpec, TaskSpec
from agentrunner.errors import EnvironmentNotReady
from agentrunner.state.run_state import Finding
from agentrunner.storage.failpoints import reach
from agentrunner.verification.evidence.check_runner import Emit
from agentrunner.verification.evidence.findings import set_up_fails
from agentrunner.verification.rooms.decision_sandbox import (
    CommandOutcome,
    CopyOfRepo,
    DecisionSandbox,
)
from agentrunner.verification.rooms.registries import asked_for
from agentrunner.verification.rooms.room import Room, Rooms
from agentrunner.verification.rooms.set_up import run_set_up, set_up_failed, withheld
from agentrunner.verification.trees import Changes, installs_anew


class TaskSetUp(Struct, frozen=True):
    """The set-up of one task. `emit` receives the events `awaiting` and `check`."""

    spec: TaskSpec
    sandbox: DecisionSandbox
    rooms: Rooms
    emit: Emit

    async def in_repo(self) -> None:
        """Run the set-up in the repository, once per sandbox, before any worker.

        Its home is emptied first: a set-up that was killed may have left a part there. Raises
        EnvironmentNotReady where it fails.
        """
        home = await asyncio.to_thread(self.rooms.sealed.empty_home)
        reach("during_setup")
        if self.spec.task.setup is None:
            return
        ran = await self._run(self.spec.task.setup, home)
        if ran.exit_code != 0:
            raise await self._failed(ran)

    async def anew(self, tree: str, *, worked: bool) -> None:
        """Run the set-up of a task that has changed since the baseline was measured.

        It runs on `tree`, that before the run, in a room, and what it makes replaces what was
        sealed. Then it runs in the repository, for the workers to come. Where one has `worked`, it
        may run there what that one wrote: it gets nothing of our environment then. Its home is
        thrown away there, and where it fails the run goes on. Raises EnvironmentNotReady where it
        fails in the room.
        """
        setup, sealed = self.spec.task.setup, self.rooms.sealed
        if setup is None:
            return
        snapshots = self.rooms.snapshots
        await asyncio.to_thread(sealed.seal_once, snapshots)  # an older version may not have
        async with self.rooms.open(tree) as room:
            await asyncio.to_thread(room.own_home.mkdir, mode=0o700)
            ran = await self._run(setup, room.own_home, room.copy)
            if ran.exit_code != 0:
                raise await self._failed(ran)
            scratch = room.copy.path.parent / "thrown-away"
            await asyncio.to_thread(scratch.mkdir, mode=0o700)
            await self._run(setup, scratch, trusted=not worked)
            await asyncio.to_thread(
                lambda: sealed.replace(room.copy.path, room.own_home, snapshots.ignored_folders())
            )

    async def _failed(self, ran: CommandOutcome) -> EnvironmentNotReady:
        sandbox = self.sandbox
        return await set_up_failed(
            self.spec, ran, sandbox.describe(), sandbox.environ, sandbox.refused("setup")
        )

    def needed_again(self, total: Changes) -> bool:
        """Whether these changes require the set-up to be run again, in each room."""
        return self.spec.task.setup is not None and installs_anew(total.all)

    async def in_room(self, room: Room, total: Changes) -> tuple[Room, list[Finding]]:
        """Run the set-up again where the files it installs from changed; a finding where it fails.

        It starts with an empty home of its own, which the returned room uses from then on.
        """
        setup = self.spec.task.setup
        if setup is None or not room.clock or not self.needed_again(total):
            return room, []
        await asyncio.to_thread(room.own_home.mkdir, mode=0o700)
        ran = await self._run(setup, room.own_home, room.copy, trusted=False)
        room = room.with_own_home()
        if ran.exit_code == 0:
            return room, []
        last = ran.tail.strip().splitlines()[-1:] or ["no output"]
        return room, [set_up_fails(last[0][:300], withheld(setup), asked_for(ran.tail))]

    async def _run(
        self,
        setup: SetupSpec,
        home: Path,
        copy: CopyOfRepo | None = None,
        *,
        trusted: bool = True,
    ) -> CommandOutcome:
        self.emit("awaiting", who="setup", what=setup.command)
        ran = await run_set_up(self.sandbox, self.spec, copy=copy, home=home, trusted=trusted)
        assert ran is not None
        self.emit(
            "check", target="setup", command=setup.command,
            exit_code=ran.exit_code, outcome="failed" if ran.exit_code else "passed",
        )  # fmt: skip
        return ran
