"""The look into the test tool's own process: what the change exchanged there.

Reporters of ours that run in that process say which functions of the tool are others than before
the project's code ran (results/reporters). Plug-ins and tests exchange some honestly, with the
change and without it. What is exchanged with the change alone makes the tool say what the product
wants. Where no reporter of ours can look, nothing is claimed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from agentrunner.state.run_state import Finding
from agentrunner.verification.findings import tool_exchanged
from agentrunner.verification.results.model import Exchanged, Results
from agentrunner.verification.target import Run, Target
from agentrunner.verification.world import SnapshotTrees

OF_A_FILE = re.compile(r"\w+ of (\S.*\.py)")
"""How a function that a file defines is called."""
SILENT = "the look itself, which reported in the runs before the change and is silent now"


async def exchanged(
    run: Run,
    target: Target,
    before: Results | None,
    now: Results,
    world: SnapshotTrees,
    held: Results | None = None,
    decides: Callable[[str], bool] = lambda path: True,
) -> Finding | None:
    """A finding about what is exchanged with the change only.

    `decides` tells of a file whether it does: what is exchanged in others is the product's affair.

    `held`: the results with the inputs of the proof as they were; what is exchanged in that run is
    the product's doing. What is exchanged only with the tests as they stand now may be theirs: the
    old product runs once more with them. Raises what runs in rooms raise.
    """

    def is_of_proof(one: Exchanged) -> bool:
        place = OF_A_FILE.fullmatch(one.what)
        return place is None or decides(place[1])

    found = beyond(held, before) if held is not None and held is not now else []
    found = list(filter(is_of_proof, found))
    owned = {one.what for one in found}
    others = [one for one in beyond(now, before) if one.what not in owned and is_of_proof(one)]
    if others:
        without = await run(target, world.mixed, ())
        found += [one for one in others if one.what not in _named(without.results)]
    return tool_exchanged(target, found) if found else None


def beyond(now: Results, before: Results | None) -> list[Exchanged]:
    """What is exchanged now and was not before; in the order in which it was seen. Pure.

    A look that falls silent counts where something passes: files that cannot be loaded, as tests of
    a module that is gone, leave nothing to look at.
    """
    left = [one for one in now.exchanged if one.what not in _named(before)]
    passes = any(one.outcome == "passed" for one in now.tests)
    if before is not None and before.looked and not now.looked and passes:
        left.append(Exchanged(SILENT))
    return left


def _named(results: Results | None) -> set[str]:
    return {one.what for one in results.exchanged} if results is not None else set()
