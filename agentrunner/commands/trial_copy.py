"""A temporary copy of a repository's files, to try commands in."""

from __future__ import annotations

from pathlib import Path

from agentrunner.git.snapshots import Snapshots
from agentrunner.sandboxes.base import Mount
from agentrunner.verification.rooms.decision_sandbox import CopyOfRepo
from agentrunner.verification.rooms.sealed import copy_folder, fits


def copy_of(repo: Path, place: Path) -> CopyOfRepo:
    """Copy the files as a run would verify them into the new folder `place`. Blocks.

    Ignored folders are copied, too; one that is too large is mounted read-only at its own place.
    Raises GitFailed, InfraError and OSError.
    """
    place.mkdir(mode=0o700)
    target = place / "tree"
    snapshots = Snapshots(place / "store", repo)
    snapshots.export_tree(snapshots.take().tree, target)
    mounts = []
    for name in snapshots.ignored_folders():
        if fits(repo / name):
            copy_folder(repo / name, target / name)
        else:
            (target / name).mkdir(parents=True, exist_ok=True)
            mounts.append(Mount(repo / name, repo / name, read_only=True))
    return CopyOfRepo(target, tuple(mounts))
