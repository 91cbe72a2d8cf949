"""Runs a command that decides in a room, so that its tests are known by name.

The report goes to a folder outside the tree. The sandbox learns its name when the tool starts.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from agentrunner.folders import remove_tree
from agentrunner.sandboxes.base import Mount
from agentrunner.state.run_state import Baseline
from agentrunner.state.state_model import FileRef
from agentrunner.storage.run_folder import RunFolder, make_private
from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.results.model import Exchanged, ReadFile, Results, TestResult
from agentrunner.verification.results.names import only_of_name
from agentrunner.verification.results.registry import (
    instrument,
    read_results,
    readers_of,
    select,
    weaker,
)
from agentrunner.verification.rooms.decision_sandbox import CommandOutcome, DecisionSandbox
from agentrunner.verification.rooms.room import Room

PLAIN = -1
"""In the place of a means: the command runs without a reporter."""
MOST_MOVED = 1_000
"""Paths that one run wrote which are kept."""
MOST_KEPT = 200_000
"""Results of one run that are kept by name."""


@dataclass
class Measurer:
    """Runs targets in rooms."""

    sandbox: DecisionSandbox
    folder: RunFolder
    hosts: Sequence[str]
    ignored: Callable[[], Iterable[str]]
    mounts: bool
    """Whether the sandbox can mount a folder for the report."""
    means: dict[str, int] = field(default_factory=dict)
    """How each target reports, by its id, where the strongest means changed its result."""

    @property
    def _reports(self) -> Path:
        return self.folder.root / "reports"

    def remember(self, baseline: Baseline) -> Baseline:
        """Return a baseline that also holds what the first runs on the old tree showed."""
        return baseline.model_copy(
            update={"reporters": {key: means for key, means in self.means.items() if means}}
        )

    def recall(self, baseline: Baseline) -> None:
        """Go on with what `remember` wrote into this baseline."""
        self.means.update(baseline.reporters)

    def clear(self) -> None:
        """Remove reports that a killed process has left. Blocks."""
        remove_tree(str(self._reports))

    async def run(
        self, target: Target, room: Room, read: ReadFile, *, only: Sequence[str] = ()
    ) -> Measured:
        """Run `target`; of its tests only those named `only`, where its tool can select them.

        Raises SandboxError where the sandbox fails.
        """
        shell = target.shell
        if only:
            narrowed = await asyncio.to_thread(select, shell, only, target.cwd, read)
            shell = narrowed or shell
        ran, results = await self._run_with_reporter(target, shell, room, read)
        moved = tuple((await asyncio.to_thread(room.moved))[:MOST_MOVED])
        written = await asyncio.to_thread(lambda: room.written(list(self.ignored())))
        results = results and replace(results, moved=moved)
        measured = Measured(target, ran, results, moved, tuple(written[:MOST_MOVED]))
        return _of_one(measured) if target.test else measured

    async def find_reporter(self, target: Target, room: Room, read: ReadFile) -> Measured:
        """Run a target for the first time, on the old tree, and choose how it reports.

        A report must not change the result. Where a run with a reporter is red and nothing in its
        report is, the plain command is run as well. If the two disagree, the next weaker means is
        tried, and in the end none. Where the command fails alike with each and none reports, no
        test was reached (nothing compiles yet, say), and the strongest stays. Only what is written
        from now on counts as the target's writes: commands that ran before it in this room may have
        written, too.
        """
        self.means.pop(target.id, None)
        room = await asyncio.to_thread(lambda: room.from_now(list(self.ignored())))
        measured = await self.run(target, room, read)
        if _is_consistent(measured):
            return measured
        if not await asyncio.to_thread(readers_of, target.shell, target.cwd, read):
            return measured
        self.means[target.id] = PLAIN
        plain = await self.run(target, room, read)
        means: int | None = 0
        unheard = True
        while means is not None:
            if measured.results is not None and measured.ran.exit_code == plain.ran.exit_code:
                self.means[target.id] = means
                return measured
            unheard &= measured.results is None and measured.ran.exit_code == plain.ran.exit_code
            means = await asyncio.to_thread(weaker, target.shell, target.cwd, read, means)
            if means is not None:
                self.means[target.id] = means
                measured = await self.run(target, room, read)
        self.means[target.id] = 0 if unheard and not plain.passed else PLAIN
        return plain

    async def _run_with_reporter(
        self, target: Target, shell: str, room: Room, read: ReadFile
    ) -> tuple[CommandOutcome, Results | None]:
        means = self.means.get(target.id, 0)
        if means == PLAIN:
            return await self._run(target, shell, room, ()), None
        token = secrets.token_hex(12)
        folder_on_host = self._reports / token
        folder_in_sandbox = Path("/tmp") / token if self.mounts else folder_on_host
        instrumented = await asyncio.to_thread(
            instrument, shell, target.cwd, read, str(folder_in_sandbox), means
        )
        await asyncio.to_thread(_write, folder_on_host, instrumented.files)
        mounts = (Mount(folder_on_host, folder_in_sandbox, read_only=False),) if self.mounts else ()
        try:
            ran = await self._run(target, instrumented.shell, room, mounts)
            results = await asyncio.to_thread(
                read_results,
                shell,
                target.cwd,
                read,
                folder_on_host,
                ran.stdout,
                ran.stderr,
                ran.exit_code,
                means,
                room.clock,
            )
        finally:
            await asyncio.to_thread(remove_tree, str(folder_on_host))
        return ran, results

    async def _run(
        self, target: Target, shell: str, room: Room, mounts: Sequence[Mount]
    ) -> CommandOutcome:
        return await self.sandbox.run(
            shell,
            cwd=target.cwd,
            timeout_sec=target.timeout_sec,
            hosts=self.hosts,
            copy=room.copy,
            name=target.id,
            mounts=mounts,
            written=target.shell,
        )

    # -- results that are kept ------------------------------------------------------------------

    def keep(self, results: Results | None, name: str) -> FileRef | None:
        """Write results into the run's folder. Blocks."""
        if results is None:
            return None
        return self.folder.write(
            f"results/{secrets.token_hex(6)}-{name}.jsonl", results_as_lines(results)
        )

    def kept(self, ref: FileRef | None) -> Results | None:
        """The results at `ref`. Blocks. Raises CheckpointCorrupt where they are gone or damaged."""
        return kept_results(self.folder, ref)


def kept_results(folder: RunFolder, ref: FileRef | None) -> Results | None:
    """The results by name that a run's folder keeps; None where there are none. Blocks.

    Raises CheckpointCorrupt where they are gone or damaged.
    """
    if ref is None:
        return None
    return results_of_lines(folder.read(ref).decode())


def results_as_lines(results: Results) -> str:
    """Results by name as they are saved: a line of facts, then one for each test."""
    head = asdict(replace(results, tests=()))
    del head["tests"]
    rows = [json.dumps(asdict(test), ensure_ascii=True) for test in results.tests[:MOST_KEPT]]
    return "\n".join([json.dumps(head), *rows]) + "\n"


def results_of_lines(text: str) -> Results:
    """The results that `results_as_lines` wrote. Raises ValueError, TypeError and KeyError."""
    head, *rows = text.splitlines()
    tests = tuple(_test(json.loads(row)) for row in rows)
    facts = json.loads(head)
    exchanged = tuple(map(_exchanged, facts.pop("exchanged", ())))
    moved = tuple(facts.pop("moved", ()))
    return Results(tests=tests, exchanged=exchanged, moved=moved, **facts)


def _exchanged(row: dict[str, Any]) -> Exchanged:
    return Exchanged(**{**row, "files": tuple(row.get("files", ()))})


def _test(row: dict[str, Any]) -> TestResult:
    return TestResult(**{**row, "files": tuple(row.get("files", ()))})


def _of_one(measured: Measured) -> Measured:
    """The same run, decided by the one test that the check names."""
    if measured.results is None:
        return measured
    results, others_red = only_of_name(measured.results, measured.target.test)
    return replace(measured, results=results, others_red=others_red)


def _is_consistent(measured: Measured) -> bool:
    """Whether exit code and report agree: a red run that did not time out has a red test."""
    if measured.results is None:
        return False
    return measured.passed or bool(measured.results.red) or measured.ran.timed_out


def _write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    make_private(folder)
    # The sandbox may run as the repository's owner, who is not us. The folders above are closed to
    # others.
    folder.chmod(0o777)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
        with suppress(OSError):
            path.chmod(0o644)
