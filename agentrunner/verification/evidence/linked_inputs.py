"""Adds what symbolic links among the inputs of the proof lead to. Blocks."""

from __future__ import annotations

from dataclasses import replace

from agentrunner.git.snapshots import LINK, Snapshots, folders_of
from agentrunner.verification.inputs.globs import literal
from agentrunner.verification.inputs.model import Input, Inputs


def with_links(inputs: Inputs, tree: str, snapshots: Snapshots) -> Inputs:
    """The same inputs, with the files and folders of the tree to which links among them lead."""
    listed = snapshots.list(tree)
    links = [path for path, (mode, _) in listed.items() if mode == LINK]
    folders = folders_of(listed) if links else set()
    found: list[Input] = []
    for path in links:
        counted, target = inputs.input_at(path), snapshots.leads_to(tree, path)
        if counted is None or target is None:
            continue
        why = f"{path} leads to it; {counted.why}"
        if target in listed:
            found.append(Input(target, why, counted.kind))
        elif target in folders:
            found.append(Input(f"{literal(target)}/**", why, counted.kind, old_only=True))
    return replace(inputs, deciding=[*inputs.deciding, *found]) if found else inputs
