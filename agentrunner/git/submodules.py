"""Submodules: which paths lie in one, and whether its remote has what the folder holds.

A worker can write references of a submodule: what its remotes have is what they had before the
first worker. The user's git data is only read as data; commits are read by git on a store of ours,
which finds the submodule's objects as an alternate. Everything blocks.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath

from agentrunner.config.repo import is_repository
from agentrunner.errors.repositories import GitFailed
from agentrunner.folders import walk
from agentrunner.git.blobs import blobs
from agentrunner.git.process import Git, git_dir_of, read_small, shared_dir_of
from agentrunner.git.restore import Entry
from agentrunner.git.stat_cache import blob_of, mode_of
from agentrunner.git.user_index import IndexDamaged, read_index
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes, to_text

SUBMODULE = 0o160000
FOLDER = "40000"
ROW = lazy_regex(rb"(?P<mode>\d{5,6}) (?P<name>[^\0]+)\0(?P<object>.{20})", re.DOTALL)
HASH = lazy_regex(r"[0-9a-f]{40}")
REMOTE = "refs/remotes/"
MOST_REFS = 1_000


def submodules_in(index: Path) -> dict[str, str]:
    """The submodules that an index has, with their commits; {} for one that can't be read."""
    try:
        found = read_index(os.fsencode(index))
    except IndexDamaged:
        return {}
    entries = found.entries if found else {}
    return {
        to_text(path): blob_of(entry).hex()
        for path, entry in sorted(entries.items())
        if mode_of(entry) == SUBMODULE
    }


def commits_of_remotes(folder: Path, index: Path) -> dict[str, list[str]]:
    """The commits that each submodule is known to have from elsewhere, by its path.

    These are what its own references say of its remotes, and the one that the index names.
    """
    found: dict[str, list[str]] = {}
    for name, commit in submodules_in(index).items():
        with contextlib.suppress(OSError):
            found[name] = [commit, *_remotes(shared_dir_of(git_dir_of(folder / name)))]
    return found


def by_submodule(
    paths: Sequence[str], known: Collection[str], folder: Path, before: Mapping[str, Entry]
) -> dict[str, list[str]]:
    """Those of the paths that lie in a submodule, by its own path.

    One that is not `known` is a folder with a `.git` of its own, of which nothing was there before.
    """
    found: dict[str, list[str]] = {}
    new: dict[str, bool] = {}
    for path in paths:
        for above in map(str, PurePosixPath(path).parents[:-1]):
            if above not in known and above not in new:
                own = is_repository(folder / above)
                new[above] = own and not any(one.startswith(f"{above}/") for one in before)
            if above in known or new[above]:
                found.setdefault(above, []).append(path)
                break
    return found


def remote_has(
    git: Git, folder: Path, name: str, entries: Mapping[str, Entry], known: Sequence[str]
) -> bool:
    """Whether the commit that a submodule is at is one of its remote, and holds just `entries`.

    `entries` are the files of the whole tree, `known` what its remotes had before the first worker
    (`commits_of_remotes`). Nothing is asked over the network, and what cannot be read is a no.
    """
    try:
        own = git_dir_of(folder / name)
        shared = shared_dir_of(own)
        head = _head(own, shared)
        if not (head and known):
            return False
        reading = Git(git.git_dir, git.binary, git.most_sec)
        reading.borrows_from(to_bytes(str((shared / "objects").resolve())))
        had = head in known or _leads_to(reading, known, head)
        return had and _files(reading, head, name) == _below(entries, name)
    except (OSError, GitFailed):
        return False


def _leads_to(git: Git, known: Sequence[str], head: str) -> bool:
    """Whether a commit is an ancestor of a known one. Raises GitFailed.

    A worker can write a commit-graph, and objects with another content than their name says: each
    commit in between is read and compared with its name. Known commits that are not there yet, as
    where only the superproject was pulled, lead nowhere.
    """
    asked = git.run("cat-file", "--batch-check", stdin="\n".join(known).encode())
    there = [row.split()[0] for row in asked.decode().splitlines() if " commit " in row]
    if not there:
        return False
    no_graph = ("-c", "core.commitGraph=false", "rev-list")
    between = git.run(*no_graph, "--ancestry-path", *there, "--not", head, "--")
    verified = ("--no-walk", "--quiet", "--verify-objects", "--filter=tree:0", "--stdin")
    git.run(*no_graph, *verified, stdin=between)
    return bool(between)


def _head(own: Path, shared: Path) -> str:
    text = (read_small(os.fsencode(own / "HEAD")) or b"").decode("latin-1").strip()
    if not text.startswith("ref: "):
        return text if HASH.fullmatch(text) else ""
    return _references(shared).get(text[5:].strip(), "")


def _remotes(shared: Path) -> list[str]:
    found = [commit for ref, commit in _references(shared).items() if ref.startswith(REMOTE)]
    return sorted(set(found))[:MOST_REFS]


def _references(shared: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in (read_small(os.fsencode(shared / "packed-refs")) or b"").splitlines():
        commit, _, ref = line.decode("utf-8", "replace").partition(" ")
        if HASH.fullmatch(commit):
            found[ref] = commit
    for place, _, names in walk(shared / "refs"):
        for one in names:
            text = (read_small(os.fsencode(Path(place, one))) or b"").decode("latin-1").strip()
            if HASH.fullmatch(text):
                found[str(Path(place, one).relative_to(shared))] = text
    return found


def _files(git: Git, commit: str, name: str) -> dict[str, Entry]:
    """The files of a commit, below the path `name`. Raises GitFailed."""
    (content,) = _contents(git, "commit", [commit]).values()
    found: dict[str, Entry] = {}
    todo = {name: content[: content.find(b"\n")].removeprefix(b"tree ").decode()}
    while todo:
        folders = _contents(git, "tree", sorted(set(todo.values())))
        inner: dict[str, str] = {}
        for place, tree in todo.items():
            for row in ROW.finditer(folders[tree]):
                mode, one = row["mode"].decode(), row["object"].hex()
                path = f"{place}/{to_text(row['name'])}"
                if mode == FOLDER:
                    inner[path] = one
                elif int(mode, 8) != SUBMODULE:
                    found[path] = (mode, one)
        todo = inner
    return found


def _contents(git: Git, kind: str, names: Sequence[str]) -> dict[str, bytes]:
    """What these objects hold, each compared with its name: git does that for some only, and a
    worker can write an object with another content. Raises GitFailed."""
    found = {}
    for name, data in blobs(git, names, kind):
        if data is None:
            raise GitFailed(f"the {kind} {name} cannot be read, or is not what its name says")
        found[name] = data if isinstance(data, bytes) else data.read()
    return found


def _below(entries: Mapping[str, Entry], name: str) -> dict[str, Entry]:
    return {path: entry for path, entry in entries.items() if path.startswith(f"{name}/")}
