"""The delivered tree with the programs and texts that decide made to fail. Blocks."""

from __future__ import annotations

from agentrunner.evidence.inputs.model import Inputs
from agentrunner.evidence.script_canary import (
    GARBAGE,
    failing_assertions,
    failing_programs,
    unequal_scripts,
)
from agentrunner.evidence.syntax.languages import language_of
from agentrunner.evidence.world import World
from agentrunner.runs.restore import Entry
from agentrunner.runs.snapshots import Snapshots


def failing_trees(snapshots: Snapshots, world: World, inputs: Inputs) -> list[tuple[str, str]]:
    """The new tree with what decides made to fail, in each way that can be, and a word for it."""
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
        if one.path in entries and one.kind == "fixture" and language_of(one.path) is None
    ]
    made = [
        (failing_programs(programs, read), "its program is green although it was made to fail"),
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
            found.append((snapshots.combine(world.new, changed), what))
    return found
