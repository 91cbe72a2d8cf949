"""Running a command that decides, so that its tests are known by name.

The report goes to a folder outside of the tree whose name the box learns when the tool starts.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from agentrunner.evidence.box import DecisionBox, Ran
from agentrunner.evidence.checks import ReadFile
from agentrunner.evidence.results.model import Results, TestResult
from agentrunner.evidence.results.registry import instrument, read_results, select
from agentrunner.evidence.room import Room
from agentrunner.evidence.target import Measured, Target
from agentrunner.runs.folder import RunFolder, make_private
from agentrunner.sandboxes.base import Mount
from agentrunner.task.context import FileRef

MOST_KEPT = 200_000
"""Results of one run that are kept by name."""


class Measurer:
    """Runs targets in rooms. `mounts`: the sandbox can mount a folder for the report."""

    def __init__(
        self,
        box: DecisionBox,
        folder: RunFolder,
        hosts: Sequence[str],
        ignored: Callable[[], Iterable[str]],
        *,
        mounts: bool,
    ) -> None:
        self._box = box
        self._folder = folder
        self._hosts = tuple(hosts)
        self._ignored = ignored
        self._mounts = mounts
        self.plain: set[str] = set()
        """Targets that run without a reporter of ours, since one changed what they say."""

    async def run(
        self, target: Target, room: Room, read: ReadFile, *, only: Sequence[str] = ()
    ) -> Measured:
        """Run `target`, or of its tests those named `only` where its tool can select them.

        Raises SandboxError where the box fails.
        """
        shell = target.shell
        if only and (narrowed := select(shell, only, target.cwd, read)):
            shell = narrowed
        ran, results = await self._reported(target, shell, room, read)
        moved = await asyncio.to_thread(room.moved)
        written = await asyncio.to_thread(lambda: room.written(list(self._ignored())))
        return Measured(target, ran, results, tuple(moved[:1000]), tuple(written[:1000]))

    async def find_reporter(self, target: Target, room: Room, read: ReadFile) -> Measured:
        """The first run of a target, on the old tree: with a reporter where that changes nothing.

        Where a run with the reporter is red and nothing in the report is, the plain command is
        run beside it; if that says otherwise, the reporter is given up for good.
        """
        measured = await self.run(target, room, read)
        if measured.passed or (measured.results is not None and measured.results.red):
            return measured
        if target.id in self.plain or not self._instruments(target, read):
            return measured
        self.plain.add(target.id)
        plain = await self.run(target, room, read)
        if plain.ran.exit_code == measured.ran.exit_code and measured.results is not None:
            self.plain.discard(target.id)
            return measured
        return plain

    def _instruments(self, target: Target, read: ReadFile) -> bool:
        made = instrument(target.shell, target.cwd, read, "/nowhere")
        return made.shell != target.shell or bool(made.env)

    async def _reported(
        self, target: Target, shell: str, room: Room, read: ReadFile
    ) -> tuple[Ran, Results | None]:
        if target.id in self.plain:
            ran = await self._run(target, shell, room, {}, ())
            return ran, None
        token = secrets.token_hex(12)
        here = self._folder.root / "reports" / token
        there = Path("/tmp") / token if self._mounts else here
        made = await asyncio.to_thread(instrument, shell, target.cwd, read, str(there))
        await asyncio.to_thread(_write, here, made.files)
        mounts = (Mount(here, there, read_only=False),) if self._mounts else ()
        try:
            ran = await self._run(target, made.shell, room, dict(made.env), mounts)
            results = await asyncio.to_thread(
                read_results, shell, target.cwd, read, here, ran.stdout, ran.stderr, ran.exit_code
            )
        finally:
            await asyncio.to_thread(shutil.rmtree, here, ignore_errors=True)
        return ran, results

    async def _run(
        self,
        target: Target,
        shell: str,
        room: Room,
        env: dict[str, str],
        mounts: Sequence[Mount],
    ) -> Ran:
        return await self._box.run(
            shell,
            cwd=target.cwd,
            timeout_sec=target.timeout_sec,
            hosts=self._hosts,
            copy=room.copy,
            name=target.id,
            env=env,
            mounts=mounts,
        )

    # -- results that are kept ------------------------------------------------------------------

    def keep(self, results: Results | None, name: str) -> FileRef | None:
        """Write results into the run's folder. Blocks."""
        if results is None:
            return None
        head = {"reader": results.reader, "weak": results.weak, "complete": results.complete}
        rows = [json.dumps(asdict(test), ensure_ascii=True) for test in results.tests[:MOST_KEPT]]
        text = "\n".join([json.dumps(head), *rows]) + "\n"
        return self._folder.write(f"results/{secrets.token_hex(6)}-{name}.jsonl", text)

    def kept(self, ref: FileRef | None) -> Results | None:
        """What was kept. Blocks. Raises CheckpointCorrupt where it is gone or damaged."""
        if ref is None:
            return None
        head, *rows = self._folder.read(ref).decode().splitlines()
        tests = tuple(TestResult(**json.loads(row)) for row in rows)
        return Results(tests=tests, **json.loads(head))


def _write(place: Path, files: Mapping[str, str]) -> None:
    make_private(place)
    # The box may run as the repository's owner, who is not us; what is above is closed to others.
    place.chmod(0o777)
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        with suppress(OSError):
            path.chmod(0o644)
