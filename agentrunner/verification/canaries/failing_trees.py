"""Builds delivered trees in which the programs and texts that decide are made to fail. Blocks."""

from __future__ import annotations

from msgspec import Struct

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


class FailingTree(Struct, frozen=True):
    """The new tree with some of what decides made to fail."""

    tree: str
    what: str
    """What to report where the tree is green, one clause."""
    programs: bool = True
    """Whether programs were changed, not only texts that something may compare with."""
    whole: bool = False
    """Whether all programs that decide were changed."""
    old: str = ""
    """The old tree with the same texts; "" where programs were changed."""


def failing_trees(snapshots: Snapshots, world: SnapshotTrees, inputs: Inputs) -> list[FailingTree]:
    """The new tree with what decides made to fail, in each possible way."""
    read = snapshots.reader(world.new)
    entries = snapshots.list(world.new)
    programs = [
        input_.path
        for input_ in inputs.tests
        if input_.path in entries and input_.kind in ("test", "runner") and not input_.region
    ]
    texts = [
        input_.path
        for input_ in inputs.tests
        if input_.path in entries
        and input_.kind == "fixture"
        and not input_.itself
        and language_of(input_.path) is None
    ]
    changes = [
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
    for files, what in changes:
        changed: dict[str, Entry | None] = {
            path: (entries[path][0], snapshots.write_blob(text)) for path, text in files.items()
        }
        if changed:
            tree = snapshots.combine(world.new, changed)
            whole = changed.keys() >= set(programs)
            by_program = not changed.keys() <= set(texts)
            old = "" if by_program else snapshots.combine(world.old, changed)
            found.append(FailingTree(tree, what, by_program, whole, old))
    return found
