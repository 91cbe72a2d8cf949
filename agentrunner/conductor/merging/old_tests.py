"""What proved tasks that have landed, as it was: a check that was rewritten proves nothing."""

from __future__ import annotations

from agentrunner.evidence.config import PARTS, steers_alike
from agentrunner.evidence.guard import Changes
from agentrunner.runs.git import to_text
from agentrunner.runs.workspace import CloneStore, Identity

_NOBODY = Identity("AgentRunner", "agentrunner@localhost")
_WHENEVER = "2000-01-01T00:00:00Z"


def with_old_tests(clone: CloneStore, before: str, commit: str) -> tuple[str, list[str]] | None:
    """A commit with tests, and what steers them, as they were before; and which those are.

    None where no test that was there, and nothing that steers, was touched. What only a command
    names may be the product, and stays. Blocking.
    """
    changes = _changes(clone, before, commit)
    touched = sorted({*changes.tests_touched, *changes.steering})
    if not touched:
        return None
    back = [path for path in changes.all if changes.guards(path, new=path in changes.added)]
    tree = clone.mixed(commit, before, back)
    made = clone.commit_tree(tree, parents=(commit,), message="-\n", author=_NOBODY, at=_WHENEVER)
    return made, touched


def _changes(clone: CloneStore, before: str, commit: str) -> Changes:
    told = clone.git.run("diff-tree", "-r", "-z", "--name-status", "--no-renames", before, commit)
    words = told.split(b"\0")
    kinds = {to_text(path): kind for kind, path in zip(words[::2], words[1::2], strict=False)}
    harmless = {
        path
        for path in kinds
        if path.rpartition("/")[2] in PARTS
        and steers_alike(path, clone.read(before, path), clone.read(commit, path))
    }
    return Changes(
        added=frozenset(path for path, kind in kinds.items() if kind == b"A"),
        modified=frozenset(path for path, kind in kinds.items() if kind not in (b"A", b"D")),
        deleted=frozenset(path for path, kind in kinds.items() if kind == b"D"),
        harmless=frozenset(harmless),
    )
