"""Builds delivered trees in which the programs and texts that decide are made to fail. Blocks."""

from __future__ import annotations

from msgspec import Struct

from agentrunner.verification.canaries.command_on_trees import CommandOnTrees
from agentrunner.verification.canaries.script_canary import (
    GARBAGE,
    changed_texts,
    failing_by_code,
    failing_by_error,
    with_failing_assertion,
    with_other_values,
)
from agentrunner.verification.syntax.languages import language_of

WAYS = (
    (failing_by_code, "its program is green although it was made to fail"),
    (failing_by_error, "its program is green although it died of an error"),
    (with_failing_assertion, "its program is green with a failing assertion"),
    (with_other_values, "its script is green with another expected value"),
)
"""How programs are changed, and what to report where the command is green then."""


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


def failing_trees(command: CommandOnTrees) -> list[FailingTree]:
    """The new tree with what decides made to fail, in each possible way."""
    snapshots, world, read = command.world.snapshots, command.world, command.read
    entries = snapshots.list(world.new)
    there = [one for one in command.inputs.deciding if one.path in entries]
    programs = [one.path for one in there if one.kind in ("test", "runner") and not one.region]
    texts = [
        one.path
        for one in there
        if one.kind == "fixture" and not one.itself and language_of(one.path) is None
    ]
    changes = [(changed_texts(programs, read, make), what) for make, what in WAYS]
    garbage = dict.fromkeys(texts, GARBAGE)
    changes.append((garbage, "it is green with another text to compare with"))
    found = []
    for files, what in changes:
        if files:
            by_program = not files.keys() <= set(texts)
            old = "" if by_program else snapshots.with_texts(world.old, files)
            tree, whole = snapshots.with_texts(world.new, files), files.keys() >= set(programs)
            found.append(FailingTree(tree, what, by_program, whole, old))
    return found
