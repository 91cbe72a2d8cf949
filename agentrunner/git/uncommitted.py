"""Which files of a checkout are not committed as they are: told by its index, read as data."""

from __future__ import annotations

import contextlib
import os

from agentrunner.errors.repositories import GitFailed
from agentrunner.git.borrow import LOW, git_mode
from agentrunner.git.export import list_tree
from agentrunner.git.own_checkout import commit_of
from agentrunner.git.process import Git, git_dir_of, shared_dir_of
from agentrunner.git.snapshots import Snapshots
from agentrunner.git.stat_cache import KEY
from agentrunner.git.user_index import IndexDamaged, UserIndex, read_index
from agentrunner.text.unicode import to_bytes, to_text


def uncommitted(snapshots: Snapshots, tree: str) -> list[str]:
    """Return new, changed and deleted files of the checkout whose snapshot is `tree`; sorted.

    A file counts as unchanged where git's index says so. [] where none can be told: no repository,
    or an index that cannot be read. Blocks; raises GitFailed and OSError.
    """
    repo = snapshots.work_tree
    try:
        index = read_index(os.fsencode(git_dir_of(repo) / "index"))
    except (FileNotFoundError, IndexDamaged):
        return []
    if index is None or not index.entries:
        return []
    here = {to_bytes(path): entry[1] for path, entry in snapshots.list(tree).items()}
    new = {to_text(name) for name in here.keys() - index.tracked}
    found = {to_bytes(path) for path in new - snapshots.ignored_paths(new)}
    for name, entry in index.entries.items():
        blob = entry[KEY.size :].hex()
        if here.get(name) != blob and not _as_git_saw_it(os.fsencode(repo), name, entry):
            found.add(name)
    return sorted(map(to_text, found | _staged(snapshots, index)))


def _as_git_saw_it(repo: bytes, name: bytes, entry: bytes) -> bool:
    """Whether a file has the facts that the index has of it."""
    try:
        facts = os.lstat(os.path.join(repo, name))  # noqa: PTH118 - pathlib takes no bytes
    except OSError:
        return False
    key = KEY.pack(
        facts.st_size & LOW,
        facts.st_mtime_ns,
        facts.st_ctime_ns,
        facts.st_ino & LOW,
        git_mode(facts.st_mode),
    )
    return entry.startswith(key)


def _staged(snapshots: Snapshots, index: UserIndex) -> set[bytes]:
    """Return the files that the index has otherwise than the commit that is checked out."""
    repo, head = snapshots.work_tree, dict[bytes, str]()
    reader = Git(snapshots.git.git_dir, snapshots.git.binary)
    reader.borrows_from(os.fsencode(shared_dir_of(git_dir_of(repo)) / "objects"))
    with contextlib.suppress(GitFailed):  # its objects may lie where our own git finds none
        if commit := commit_of(repo):
            listed = list_tree(reader, commit)
            head = {to_bytes(path): entry[1] for path, entry in listed.items()}
    if not head:
        return set()
    staged = {n for n, entry in index.entries.items() if head.get(n) != entry[KEY.size :].hex()}
    return staged | (head.keys() - index.tracked)
