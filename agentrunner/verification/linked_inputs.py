"""What symbolic links among the inputs of the proof lead to. Blocks."""

from __future__ import annotations

from dataclasses import replace

from agentrunner.git.snapshots import LINK, Snapshots, folders_of
from agentrunner.verification.inputs.globs import literal
from agentrunner.verification.inputs.model import Input, Inputs


def with_links(inputs: Inputs, tree: str, snapshots: Snapshots) -> Inputs:
    """The same with the files and folders of the tree that a link among them stands for."""
    listed = snapshots.list(tree)
    links = [path for path, (mode, _) in listed.items() if mode == LINK]
    folders = folders_of(listed) if links else set()
    found: list[Input] = []
    for path in links:
        one, place = inputs.counts(path), snapshots.leads_to(tree, path)
        if one is None or place is None:
            continue
        why = f"{path} leads to it; {one.why}"
        if place in listed:
            found.append(Input(place, why, one.kind))
        elif place in folders:
            found.append(Input(f"{literal(place)}/**", why, one.kind, old_only=True))
    return replace(inputs, tests=[*inputs.tests, *found]) if found else inputs
