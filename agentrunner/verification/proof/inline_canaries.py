"""Whether a command without names can still say no; programs in its text are written out for that.

So are those in the recipes and scripts that it runs. A program runs where it stood: one in a file
could be told from one in a command.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentrunner.git.restore import Entry
from agentrunner.verification.canaries.claimed_tests import CanaryReport
from agentrunner.verification.findings import tool_changed
from agentrunner.verification.inputs.inline_programs import (
    STEM,
    WrittenOut,
    killed_at_once,
    written_out,
)
from agentrunner.verification.inputs.model import Input, Inputs
from agentrunner.verification.inputs.recipe_programs import Carrier, carrier_of
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.target import Measured, Target

NOT_READ = (
    "the program in this command could not be read, and so not be made to fail; so this shows, and"
    " no more"
)
ELSEWISE = re.compile(r"\|\||\bif\b|\buntil\b|\bwhile\b")
"""What lets something else decide where a program fails."""
MOST = 12
"""Programs in recipes and scripts that are asked."""
NOT_ALL = "it runs more programs of its recipes than are made to fail; so this shows, and no more"
KILLED = "it is green although its program was killed"


async def canaries_of_programs(exam: Examination, target: Target) -> CanaryReport:
    """What programs say that are made to fail; raises what runs in rooms raise."""
    stem = f"{STEM}{secrets.token_hex(4)}_"
    command = written_out(target.shell, target.cwd, stem)
    inputs = await asyncio.to_thread(exam.differential.inputs, exam.world.new, [target])
    carriers = await asyncio.to_thread(_carriers, exam, inputs, f"{stem}r")
    asking = _Asking(exam, target, command or WrittenOut(target.shell, {}), ())
    carriers, notes = await asking.deciding(carriers)
    asking = replace(asking, carriers=tuple(carriers))
    found = await asking.report(inputs)
    notes += [NOT_READ] * asking.command.unread
    if not notes:
        return found
    return replace(found, notes=list(dict.fromkeys([*found.notes, *notes])), shows_only=True)


@dataclass(frozen=True)
class _Asking:
    exam: Examination
    target: Target
    command: WrittenOut
    carriers: tuple[Carrier, ...]

    async def deciding(self, carriers: Sequence[Carrier]) -> tuple[list[Carrier], list[str]]:
        """The same with those programs that turn the command red where `false` runs instead.

        And why not all of them are among these, though they may be so.
        """
        if not carriers:
            return [], []
        unread = {one.path: one.blind for one in carriers if one.unread}
        notes = [NOT_READ] if unread and not await self._green(unread) else []
        if await self._green({one.path: one.failing([*one.files]) for one in carriers}):
            return [], notes
        places = [(one, path) for one in carriers for path in one.files]
        kept: dict[str, set[str]] = {}
        for one, path in places[:MOST]:
            if len(places) == 1 or not await self._green({one.path: one.failing([path])}):
                kept.setdefault(one.path, set()).add(path)
        found = [one.only(kept[one.path]) for one in carriers if one.path in kept]
        return found, notes + [NOT_ALL] * (len(places) > MOST)

    async def report(self, inputs: Inputs) -> CanaryReport:
        """What the programs say, killed and made to fail."""
        exam, target, files = self.exam, self.target, self._files()
        if not files:
            return await exam.canaries.program_is_dead(exam.run, target, exam.world, inputs)
        # `! python3 -c "…"` and the like are left alone: how these end is not what decides.
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
        seen = {one.path for one in inputs.tests}
        own = [Input(path, "the command holds it", "runner") for path in files if path not in seen]
        inputs = replace(inputs, tests=[*inputs.tests, *own])
        world = replace(exam.world, new=tree)
        return await exam.canaries.program_is_dead(self.run, target, world, inputs)

    async def run(self, _: Target, tree: str, only: Sequence[str]) -> Measured:
        """With the programs where they stood."""
        shell, bare = await asyncio.to_thread(self._put_back, tree)
        return await self.exam.run(replace(self.target, shell=shell), bare, only)

    def _files(self) -> dict[str, bytes]:
        files = dict(self.command.files)
        for one in self.carriers:
            files |= one.files
        return files

    def _put_back(self, tree: str) -> tuple[str, str]:
        snapshots, files = self.exam.verifier.snapshots, self._files()
        read = snapshots.reader(tree)
        texts = {path: read(path) or b"" for path in files}
        bare = snapshots.combine(tree, dict.fromkeys(files))
        made = {
            one.path: one.put_back(
                (read(one.path) or b"").decode("utf-8", "surrogateescape"), texts
            )
            for one in self.carriers
        }
        return self.command.put_back(texts), self._with(made, bare)

    async def _tree(self, changed: Mapping[str, bytes], tree: str = "") -> str:
        """A tree with the programs as files, and what starts them so."""

        def made() -> str:
            text = self._with({one.path: one.text for one in self.carriers}, tree)
            return self._with(
                {
                    path: changed.get(path, source).decode("utf-8", "surrogateescape")
                    for path, source in self._files().items()
                },
                text,
            )

        return await asyncio.to_thread(made)

    def _with(self, files: Mapping[str, str], tree: str) -> str:
        snapshots = self.exam.verifier.snapshots
        entries = snapshots.list(tree or self.exam.world.new)
        blobs: dict[str, Entry | None] = {
            path: (
                entries[path][0] if path in entries else "100644",
                snapshots.write_blob(text.encode("utf-8", "surrogateescape")),
            )
            for path, text in files.items()
        }
        return snapshots.combine(tree or self.exam.world.new, blobs)

    async def _green(self, files: Mapping[str, str]) -> bool:
        """Whether the command passes with other texts of files."""
        tree = await asyncio.to_thread(self._with, files, "")
        return (await self.exam.run(self.target, tree)).passed

    async def _green_though_killed(self, killed: Mapping[str, bytes]) -> CanaryReport:
        """What a command is worth whose programs may be killed: a negated one is as it should be.

        One that is so with the old product as well does not decide by how its programs end. One
        that is red there has a product that keeps it from being killed.
        """
        before = await self._tree(killed, self.exam.world.old)
        if (await self.run(self.target, before, ())).passed:
            return CanaryReport()
        if ELSEWISE.search(self.target.shell):
            return CanaryReport(notes=[NOT_READ], shows_only=True)
        return CanaryReport(tool_changed(self.target, KILLED))


def _carriers(exam: Examination, inputs: Inputs, stem: str) -> list[Carrier]:
    read = exam.verifier.snapshots.reader(exam.world.new)
    found = []
    for number, one in enumerate(inputs.tests):
        source = read(one.path) if not one.region else None
        carrier = carrier_of(one.path, source, f"{stem}{number}_") if source else None
        if carrier is not None:
            found.append(carrier)
    return found
