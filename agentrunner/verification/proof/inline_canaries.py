"""Whether a command without test names can still fail; its inline programs become files for that.

So do programs in the recipes and scripts that it runs. When run, each program is put back where it
stood: one in a file could tell the difference from one in a command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes, to_text
from agentrunner.verification.canaries.canary_trees import CommandOnTrees
from agentrunner.verification.canaries.claimed_tests import Canaries, CanaryReport
from agentrunner.verification.evidence.findings import tool_changed
from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.inputs.inline_programs import (
    STEM,
    WrittenOut,
    killed_at_once,
    written_out,
)
from agentrunner.verification.inputs.model import Input, Inputs
from agentrunner.verification.inputs.recipes import Carrier, carrier_of
from agentrunner.verification.proof.examination import Examination

NOT_READ = (
    "the program in this command could not be read, and so not be made to fail; so this shows, and"
    " no more"
)
HAS_ALTERNATIVE = lazy_regex(r"\|\||\bif\b|\buntil\b|\bwhile\b")
"""What lets something else decide where a program fails."""
MOST_PROGRAMS = 12
"""Programs in recipes and scripts that are tried."""
NOT_ALL = "it runs more programs of its recipes than are made to fail; so this shows, and no more"
KILLED = "it is green although its program was killed"


async def canaries_of_programs(exam: Examination, target: Target) -> CanaryReport:
    """Report what the command says where its programs fail; raises what running in rooms raises."""
    stem = f"{STEM}{exam.unknown.make()}_"
    command = written_out(target.shell, target.cwd, stem)
    inputs = await asyncio.to_thread(exam.differential.inputs, exam.world.new, [target])
    carriers = await asyncio.to_thread(_carriers, exam, inputs, f"{stem}r")
    programs = _Programs(exam, target, command or WrittenOut(target.shell, {}), ())
    carriers, notes = await programs.only_deciding(carriers)
    programs = replace(programs, carriers=tuple(carriers))
    found = await programs.report(inputs)
    notes += [NOT_READ] * programs.command.unread
    if not notes:
        return found
    return replace(found, notes=list(dict.fromkeys([*found.notes, *notes])), shows_only=True)


@dataclass(frozen=True)
class _Programs:
    """The inline programs of a command, and those in files that it runs (`carriers`)."""

    exam: Examination
    target: Target
    command: WrittenOut
    carriers: tuple[Carrier, ...]

    async def only_deciding(self, carriers: Sequence[Carrier]) -> tuple[list[Carrier], list[str]]:
        """The carriers with only those programs that turn the command red where `false` replaces
        them, and notes on why others that may decide are missing.
        """
        if not carriers:
            return [], []
        unread = {carrier.path: carrier.blind for carrier in carriers if carrier.unread}
        notes = [NOT_READ] if unread and not await self._is_green_with(unread) else []
        if await self._is_green_with(
            {carrier.path: carrier.failing([*carrier.files]) for carrier in carriers}
        ):
            return [], notes
        places = [(carrier, path) for carrier in carriers for path in carrier.files]
        deciding_paths: dict[str, set[str]] = {}
        for carrier, path in places[:MOST_PROGRAMS]:
            if len(places) == 1 or not await self._is_green_with(
                {carrier.path: carrier.failing([path])}
            ):
                deciding_paths.setdefault(carrier.path, set()).add(path)
        found = [
            carrier.only(deciding_paths[carrier.path])
            for carrier in carriers
            if carrier.path in deciding_paths
        ]
        return found, notes + [NOT_ALL] * (len(places) > MOST_PROGRAMS)

    async def report(self, inputs: Inputs) -> CanaryReport:
        """Report how the command answers to programs that are killed and that are made to fail."""
        exam, target, files = self.exam, self.target, self._files()
        if not files:
            return await Canaries(exam.on_trees(target, inputs)).program_is_dead()
        # `! python3 -c "…"` and the like are left alone: their exit code is not what decides.
        if self.command.files:
            fails = {path: killed_at_once(path) for path in self.command.files}
            if (await self.run(target, await self._tree(fails), ())).passed:
                return await self._green_though_killed(fails)
        for path in files.keys() - self.command.files.keys():
            if (await self.run(target, await self._tree({path: killed_at_once(path)}), ())).passed:
                return CanaryReport(tool_changed(target, KILLED))
        tree = await self._tree({})
        if not (await self.run(target, tree, ())).passed:
            return CanaryReport(notes=[NOT_READ], shows_only=True)
        written = replace(target, shell=self.command.shell)
        inputs = await asyncio.to_thread(exam.differential.inputs, tree, [written])
        seen = {one.path for one in inputs.deciding}
        own_programs = [
            Input(path, "the command holds it", "runner") for path in files if path not in seen
        ]
        inputs = replace(inputs, deciding=[*inputs.deciding, *own_programs])
        world = replace(exam.world, new=tree, old=await self._tree({}, exam.world.old))
        command = CommandOnTrees(self.run, target, world, inputs)
        return await Canaries(command).program_is_dead()

    async def run(self, _: Target, tree: str, only: Sequence[str]) -> Measured:
        """Run on a tree whose programs are files, with the programs put back where they stood."""
        shell, without_files = await asyncio.to_thread(self._put_back, tree)
        return await self.exam.run(replace(self.target, shell=shell), without_files, only)

    def _files(self) -> dict[str, bytes]:
        files = dict(self.command.files)
        for carrier in self.carriers:
            files |= carrier.files
        return files

    def _put_back(self, tree: str) -> tuple[str, str]:
        snapshots, files = self.exam.world.snapshots, self._files()
        read = snapshots.reader(tree)
        texts = {path: read(path) or b"" for path in files}
        without_files = snapshots.combine(tree, dict.fromkeys(files))
        made = {
            one.path: one.put_back(to_text(read(one.path) or b""), texts) for one in self.carriers
        }
        return self.command.put_back(texts), self._with(made, without_files)

    async def _tree(self, changed: Mapping[str, bytes], tree: str = "") -> str:
        """A tree in which the programs are files, and the carriers start these files."""

        def made() -> str:
            text = self._with({one.path: one.text for one in self.carriers}, tree)
            return self._with(
                {
                    path: to_text(changed.get(path, source))
                    for path, source in self._files().items()
                },
                text,
            )

        return await asyncio.to_thread(made)

    def _with(self, files: Mapping[str, str], tree: str) -> str:
        texts = {path: to_bytes(text) for path, text in files.items()}
        return self.exam.world.snapshots.with_texts(tree or self.exam.world.new, texts)

    async def _is_green_with(self, files: Mapping[str, str]) -> bool:
        """Whether the command passes with other texts in these files."""
        tree = await asyncio.to_thread(self._with, files, "")
        return (await self.exam.run(self.target, tree)).passed

    async def _green_though_killed(self, killed: Mapping[str, bytes]) -> CanaryReport:
        """Judge a command that passes although its programs are killed, as a negated one may.

        One that passes with the old product as well does not depend on how its programs end. If it
        is red there, the product keeps it from being killed.
        """
        before = await self._tree(killed, self.exam.world.old)
        if (await self.run(self.target, before, ())).passed:
            return CanaryReport()
        if HAS_ALTERNATIVE.search(self.target.shell):
            return CanaryReport(notes=[NOT_READ], shows_only=True)
        return CanaryReport(tool_changed(self.target, KILLED))


def _carriers(exam: Examination, inputs: Inputs, stem: str) -> list[Carrier]:
    found = []
    for number, one in enumerate(inputs.deciding):
        source = exam.world.now(one.path) if not one.region else None
        carrier = carrier_of(one.path, source, f"{stem}{number}_") if source else None
        if carrier is not None:
            found.append(carrier)
    return found
