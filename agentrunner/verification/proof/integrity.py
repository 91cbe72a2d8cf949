"""Compares which functions of the test tool the project replaced in the tool's own process.

Our reporters in that process list functions of the tool that differ from before the project's code
ran (results/reporters). Plug-ins and tests replace some legitimately, with the change and without
it. What is replaced only with the change makes the tool say what the product wants. Where no
reporter of ours can look, nothing is claimed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from msgspec import Struct

from agentrunner.state.run_state import Finding
from agentrunner.verification.evidence.findings import tool_exchanged
from agentrunner.verification.evidence.target import Run, Target, in_repo
from agentrunner.verification.proof.trees_without_work import TreesWithoutWork
from agentrunner.verification.results.model import Exchanged, Results
from agentrunner.verification.world import SnapshotTrees

SILENT = "the look itself, which reported in the runs before the change and is silent now"


async def exchanged(
    run: Run,
    target: Target,
    before: Results | None,
    now: Results,
    world: SnapshotTrees,
    held: Results | None = None,
    decides: Callable[[str], bool] = lambda path: True,
    trees: TreesWithoutWork | None = None,
) -> Finding | None:
    """A finding about what is replaced only with the change, or inherited by tests.

    `decides` says whether a file is an input of the proof: what is replaced by others does not
    matter here, nor what new classes of tests inherit, or others from code that is no product.
    `held` are the results with the inputs of the proof as they were; what is replaced in that run
    is the product's doing. What is replaced only with the present tests may be theirs: so the old
    product runs once more with them. `trees` makes a tree whose inherited methods are as they were:
    where all passes there as well, they decide nothing. Raises what running in rooms raises.
    """
    asked = _Asked(run, target, before, now, held, world, decides, trees)
    found = newly_exchanged(held, before) if held is not None and held is not now else []
    found = list(filter(asked.counts, found))
    of_product = {one.key for one in found}
    others = [
        one
        for one in newly_exchanged(now, before)
        if one.key not in of_product and asked.counts(one)
    ]
    if others:
        without = await run(target, world.mixed, ())
        found += [one for one in others if one.key not in _keys(without.results)]
    if not found or await asked.decide_nothing(found):
        return None
    return tool_exchanged(target, found)


class _Asked(Struct, frozen=True):
    """Tells what matters of the things that were exchanged, by their files and by what tests say
    where methods that they inherit are as they were before."""

    run: Run
    target: Target
    before: Results | None
    now: Results
    held: Results | None
    world: SnapshotTrees
    decides: Callable[[str], bool]
    trees: TreesWithoutWork | None

    async def decide_nothing(self, found: Sequence[Exchanged]) -> bool:
        """Whether all that passes now passes as well without what these methods say anew.

        A new test may ask for such a method itself. It has to pass where no test inherits it.
        """
        if not all(one.member and one.place and one.files for one in found) or not self.trees:
            return False
        members, heirs = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for one in found:
            heirs[in_repo(one.place, self.target.cwd)].add(one.heir)
            for path in one.files:
                members[in_repo(path, self.target.cwd)].add(one.member)
        if "" in members:
            return False
        held = self.held if self.held is not self.now else None
        if held and await self._lost_with_former(members, self.world.kept, held) != []:
            return False
        lost = await self._lost_with_former(members, self.world.new, self.now)
        if not lost:
            return lost is not None
        if self.before is None or any(self.before.named(name) for name in lost):
            return False
        tree = await self.trees.without_classes(heirs)
        if tree is None:
            return False
        ran = await self.run(self.target, tree, lost)
        return self._lost(ran.results, lost, by_new=True) == []

    async def _lost_with_former(
        self, members: Mapping[str, set[str]], tree: str, results: Results
    ) -> list[str] | None:
        """What no longer passes of the results of a tree, where the methods are as they were."""
        assert self.trees is not None
        former = await self.trees.with_former(tree, members)
        if former is None:
            return None
        ran = await self.run(self.target, former, ())
        return self._lost(ran.results, [name for name in results.names if results.passed(name)])

    def _lost(
        self, results: Results | None, names: Sequence[str], *, by_new: bool = False
    ) -> list[str] | None:
        """Those of the tests that do not pass here; None where something is inherited here, too.

        With `by_new` also where classes do so that were not there before.
        """
        if results is None:
            return None
        found = newly_exchanged(results, self.before)
        if by_new:
            found = [replace(one, place="") if one.member else one for one in found]
        if any(map(self.counts, found)):
            return None
        return [name for name in names if not results.passed(name)]

    def counts(self, one: Exchanged) -> bool:
        """Whether what was exchanged is the product's, and of tests that were there before."""
        if one.member:
            return self._is_old(one) and any(map(self._may_be_product, one.files))
        if one.place and not self.decides(one.place):
            return False
        return not one.files or not all(path and self.decides(path) for path in one.files)

    def _is_old(self, one: Exchanged) -> bool:
        """Whether the class that inherits it was there before, or may have been."""
        if not one.place:
            return True
        source = self.world.was(in_repo(one.place, self.target.cwd)) or b""
        text = source.decode("utf-8", "replace")
        return re.search(rf"\bclass\s+{re.escape(one.heir)}\b", text) is not None

    def _may_be_product(self, path: str) -> bool:
        """Whether a file is changed product, or none of which anything is known."""
        place, world = in_repo(path, self.target.cwd), self.world
        if not place or place in world.product:
            return True
        return place not in world.old_paths and all(one.path != place for one in world.changes)


def newly_exchanged(now: Results, before: Results | None) -> list[Exchanged]:
    """What is replaced now and was not before, in the order in which it was seen. Pure.

    A look that falls silent is listed too where something passes. Files that cannot be loaded, such
    as tests of a module that is gone, leave nothing to look at.
    """
    found = [one for one in now.exchanged if one.key not in _keys(before)]
    passes = any(one.outcome == "passed" for one in now.tests)
    if before is not None and before.looked and not now.looked and passes:
        found.append(Exchanged(SILENT))
    return found


def _keys(results: Results | None) -> set[tuple[str, str]]:
    return {one.key for one in results.exchanged} if results is not None else set()
