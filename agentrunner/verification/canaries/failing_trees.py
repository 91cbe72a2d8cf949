"""The delivered tree with the programs and texts that decide made to fail. Blocks."""

from __future__ import annotations

from dataclasses import dataclass

from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.canaries.script_canary import (
    GARBAGE,
    dying_programs,
    failing_assertions,
    failing_programs,
    unequal_scripts,
)
from agentrunner.verification.inputs.model import Inputs
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.world import SnapshotTrees


@dataclass(frozen=True)
class FailingTree:
    """The new tree with some of what decides made to fail."""

    tree: str
    what: str
    """What is to be said where it is green, one clause."""
    programs: bool = True
    """Whether programs were changed, and not texts that something may compare with."""
    whole: bool = False
    """Whether it is all the programs that decide."""


def failing_trees(snapshots: Snapshots, world: SnapshotTrees, inputs: Inputs) -> list[FailingTree]:
    """The new tree with what decides made to fail, in each way that can be."""
    read = snapshots.reader(world.new)
    entries = snapshots.list(world.new)
    programs = [
        one.path
        for one in inputs.tests
        if one.path in entries and one.kind in ("test", "runner") and not one.region
    ]
    texts = [
        one.path
        for one in inputs.tests
        if one.path in entries
        and one.kind == "fixture"
        and not one.itself
        and language_of(one.path) is None
    ]
    made = [
        (failing_programs(programs, read), "its program is green although it was made to fail"),
        (dying_programs(programs, read), "its program is green although it died of an error"),
        (
            failing_assertions(programs, read),
            "its program is green with a failing assertion",
        ),
        (unequal_scripts(programs, read), "its script is green with another expected value"),
        (dict.fromkeys(texts, GARBAGE), "it is green with another text to compare with"),
    ]
    found = []
    for files, what in made:
        changed: dict[str, Entry | None] = {
            path: (entries[path][0], snapshots.write_blob(text)) for path, text in files.items()
        }
        if changed:
            tree = snapshots.combine(world.new, changed)
            whole = changed.keys() >= set(programs)
            found.append(FailingTree(tree, what, not changed.keys() <= set(texts), whole))
    return found
