"""All tests of a task, for what the tests of one command do not ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentrunner.verification.proof.trees_without_work import turns_red
from agentrunner.verification.results.model import Results
from agentrunner.verification.target import Run, Target
from agentrunner.verification.world import SnapshotTrees


@dataclass
class AllTests:
    """All tests of a task, for what the tests of one command do not ask."""

    run: Run
    target: Target
    world: SnapshotTrees
    now: Results | None
    """Their results on the new tree, where they are known."""
    refused: Mapping[str, str]
    """Tests that show nothing, with the reason."""
    passed: list[str] | None = None

    async def is_red(self, tree: str) -> bool | None:
        """Whether any of them that passes on the new tree, and shows something, does not here.

        None where they do not pass on the new tree either, so that this would say nothing.
        """
        if self.passed is None:
            results = self.now
            if results is None:
                ran = await self.run(self.target, self.world.new, ())
                results = ran.results
                if results is None and not ran.passed:
                    return None
            names = results.names if results else []
            self.passed = [
                one
                for one in names
                if results and results.passed(one) and not self.refused.get(one)
            ]
        return turns_red(await self.run(self.target, tree, ()), self.passed)
