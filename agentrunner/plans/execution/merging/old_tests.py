"""Tests and checks of merged tasks as they were: a test that was rewritten since proves nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentrunner.git.private_clone import CloneStore, Identity
from agentrunner.verification.evidence.target import Target
from agentrunner.verification.inputs.changes import judge_changes, put_back
from agentrunner.verification.inputs.finder import find_inputs
from agentrunner.verification.results.model import ReadFile

_NOBODY = Identity("AgentRunner", "agentrunner@localhost")
_WHENEVER = "2000-01-01T00:00:00Z"


def with_old_tests(
    clone: CloneStore, targets: Sequence[Target], before: str, commit: str
) -> tuple[str, list[str]] | None:
    """Return a commit with what decides about `targets` as it was before, and the paths of that.

    None where nothing that decides was touched. Blocks.
    """
    old, new = clone.modes(before), clone.modes(commit)

    def reader(tree: str, paths: Mapping[str, str]) -> ReadFile:
        return lambda path: clone.read(tree, path) if path in paths else None

    shells = [(target.shell, target.cwd) for target in targets]
    read_old, read_new = reader(before, old), reader(commit, new)
    judged = judge_changes(
        find_inputs(shells, list(old), read_old),
        old,
        read_old,
        new,
        read_new,
        clone.changed(before, commit),
    )
    touched = sorted(suspect.path for suspect in judged.suspects)
    if not touched:
        return None
    tests = {change.path for change in judged.understood if change.input.kind == "test"}
    tree = clone.with_files(commit, put_back(judged, tests | set(touched), understood=True))
    made = clone.commit_tree(tree, parents=(commit,), message="-\n", author=_NOBODY, at=_WHENEVER)
    return made, touched
