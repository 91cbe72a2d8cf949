"""Which parts of the host a container sees, and where."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agentrunner.sandboxes.base import Mount, Request, SandboxOrder
from agentrunner.sandboxes.configuration import COMMON, ETC, configuration_of
from agentrunner.sandboxes.deny import exposes, holds
from agentrunner.sandboxes.docker.config import SOCKETS
from agentrunner.sandboxes.gitdirs import GitData
from agentrunner.sandboxes.toolchain import SYSTEM_ROOTS, find_toolchain


def sandbox_mounts(
    spec: SandboxOrder, git: GitData, request: Request | None = None, programs: Sequence[Mount] = ()
) -> tuple[Mount, ...]:
    """Return all mounts of the sandbox for a request, each target once."""
    tree = (request and request.repo_copy) or spec.repo
    wanted = [Mount(path.resolve(), path) for path in spec.read_paths]
    # What is inside the repository is visible already, and must not hide the copy.
    below = [mount for mount in (*wanted, *programs) if not holds(spec.repo, mount.target)]
    private = request is not None and request.private
    own = [] if private else [Mount(spec.home, spec.home, read_only=False)]
    mounts = [
        *below,
        Mount(tree, spec.repo, read_only=False),
        *own,
        *(Mount(path, path) for path in git.paths),
        *(request.mounts if request else ()),
    ]
    if spec.sockets is not None:
        mounts.append(Mount(spec.sockets, SOCKETS))
    return tuple({mount.target: mount for mount in mounts}.values())


def host_programs(spec: SandboxOrder, host_home: Path) -> dict[Path, Mount]:
    """Return programs that were named by absolute path, each with the mount that makes it visible.

    That is the program's folder, because its libraries and data may be beside it; only the file if
    the folder is the system's, a home, or holds credentials.
    """
    found = {}
    for word in spec.programs:
        path = Path(word)
        if not path.is_absolute() or holds(spec.repo, path):
            continue
        if not os.access(path, os.X_OK) or not path.is_file():
            continue
        place = path.parent
        if exposes(place, host_home) or any(holds(root, place) for root in SYSTEM_ROOTS):
            place = path
        found[path] = Mount(place.resolve(), place)
    return found


def configuration(
    spec: SandboxOrder, environ: Mapping[str, str], host_home: Path, etc: Path = ETC
) -> tuple[Mount, ...]:
    """Return the host's configuration of programs that the sandbox reads from the host.

    Debian's /usr has links to it in /etc, of which an image has its own, or nothing.
    """
    read = [path.resolve() for path in spec.read_paths]
    if not read:
        return ()
    found = find_toolchain(spec.programs, spec.repo, environ, host_home, avoid=(spec.home,))
    programs = [one for one in found.programs if any(holds(place, one) for place in read)]
    common = [etc / name for name in COMMON]
    return tuple(
        mount
        for mount in configuration_of(programs, etc)
        if not any(holds(place, mount.target) for place in common)
    )


def identity(mounts: Iterable[Mount]) -> tuple[tuple[str, int, int], ...]:
    """Return facts that reveal whether a folder was replaced after a container was made with it."""
    facts = []
    for mount in mounts:
        stat = mount.source.stat()
        facts.append((str(mount.source), stat.st_dev, stat.st_ino))
    return tuple(facts)


def make_places(tree: Path, repo: Path, targets: Iterable[Mount | Path]) -> None:
    """Make missing mount points in the repository's tree.

    The engine would make them as root, and leave them that way.
    """
    for target in targets:
        file = isinstance(target, Mount) and target.source.is_file()
        place = target.target if isinstance(target, Mount) else target
        if not place.is_relative_to(repo) or place == repo:
            continue
        here = tree
        *above, last = place.relative_to(repo).parts
        for name in above:
            here /= name
            if here.is_symlink():
                break  # not ours to follow; the engine does so within the sandbox
            here.mkdir(exist_ok=True)
        else:
            here /= last
            if not os.path.lexists(here):
                here.touch() if file else here.mkdir()
