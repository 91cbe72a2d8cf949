"""Compares which functions of the test tool the project replaced in the tool's own process.

Our reporters in that process list functions of the tool that differ from before the project's code
ran (results/reporters). Plug-ins and tests replace some legitimately, with the change and without
it. What is replaced only with the change makes the tool say what the product wants. Where no
reporter of ours can look, nothing is claimed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from agentrunner.state.run_state import Finding
from agentrunner.verification.findings import tool_exchanged
from agentrunner.verification.results.model import Exchanged, Results
from agentrunner.verification.target import Run, Target, in_repo
from agentrunner.verification.world import SnapshotTrees

FUNCTION_OF_FILE = re.compile(r"\w+ of (\S.*\.py)")
"""What a function defined in a file is called in a report."""
INHERITED = re.compile(r".* of (\S.*?\.py), which (?:[\w<>]+\.)*(\w+) of (\S.*\.py) inherits")
"""What is said of a method that a class of tests inherits from other code."""
CODE = re.compile(r" \([0-9a-f]{8}\)")
"""What tells in a report that such a method says something else than before."""
SILENT = "the look itself, which reported in the runs before the change and is silent now"


async def exchanged(
    run: Run,
    target: Target,
    before: Results | None,
    now: Results,
    world: SnapshotTrees,
    held: Results | None = None,
    decides: Callable[[str], bool] = lambda path: True,
    stood: Callable[[str], bytes | None] = lambda path: None,
) -> Finding | None:
    """A finding about what is replaced only with the change, or inherited by tests.

    `decides` says whether a file is an input of the proof: what is replaced by others does not
    matter here. `stood` reads a file of the tree before the run: what new classes of tests inherit
    does not matter here, nor what others inherit from code that is no product. `held` are the
    results with the inputs of the proof as they were; what is replaced in that run is the product's
    doing. What is replaced only with the present tests may be theirs: so the old product runs once
    more with them. Raises what running in rooms raises.
    """

    def decides_here(one: Exchanged) -> bool:
        if heir := INHERITED.fullmatch(one.what):
            path, name, test = heir.groups()
            text = (stood(in_repo(test, target.cwd)) or b"").decode("utf-8", "replace")
            is_old = re.search(rf"\bclass\s+{name}\b", text) is not None
            return is_old and in_repo(path, target.cwd) in world.product
        place = FUNCTION_OF_FILE.fullmatch(one.what)
        return place is None or decides(place[1])

    found = newly_exchanged(held, before) if held is not None and held is not now else []
    found = list(filter(decides_here, found))
    of_product = {one.what for one in found}
    others = [
        one
        for one in newly_exchanged(now, before)
        if one.what not in of_product and decides_here(one)
    ]
    if others:
        without = await run(target, world.mixed, ())
        found += [one for one in others if one.what not in _exchanged_names(without.results)]
    named = [replace(one, what=CODE.sub("", one.what)) for one in found]
    return tool_exchanged(target, named) if found else None


def newly_exchanged(now: Results, before: Results | None) -> list[Exchanged]:
    """What is replaced now and was not before, in the order in which it was seen. Pure.

    A look that falls silent is listed too where something passes. Files that cannot be loaded, such
    as tests of a module that is gone, leave nothing to look at.
    """
    found = [one for one in now.exchanged if one.what not in _exchanged_names(before)]
    passes = any(one.outcome == "passed" for one in now.tests)
    if before is not None and before.looked and not now.looked and passes:
        found.append(Exchanged(SILENT))
    return found


def _exchanged_names(results: Results | None) -> set[str]:
    return {one.what for one in results.exchanged} if results is not None else set()
