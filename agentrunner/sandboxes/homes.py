"""The home of a command: what is mounted there, with the user's package caches below it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agentrunner.folders import remove_tree, walk
from agentrunner.sandboxes.base import Cache, Caches, Mount, Request, SandboxOrder
from agentrunner.sandboxes.layers import MOST_COPIED, TooLarge, copy_tree

SANDBOX_HOME = Path("/home/agent")
"""Where a command's home is in a sandbox."""
EMPTY = "empty"
"""Below a run's folder: an empty folder and an empty file, shown in place of what is hidden."""


GIT_CONFIG = Path("/etc/gitconfig")
IDENTITY = "[user]\n\tname = Agent\n\temail = agent@localhost\n"
"""An identity for repositories that commands make, as test suites do. It is the system's
configuration because it must give way to whatever a repository or a test sets."""


def git_identity(run: Path) -> Path:
    """Return the file with a neutral git identity, in the folder of a run; write it if missing."""
    file = run / "gitconfig"
    if not file.exists():
        file.write_text(IDENTITY)
        file.chmod(0o644)
    return file


def home_mounts(request: Request, spec: SandboxOrder, *, overlays: bool) -> list[Mount]:
    """Return the mounts at and below the sandbox's home, in order, with git's identity; blocks.

    `overlays` says whether the kernel makes overlays here. Without them, the caches of a writable
    home are copied first, once.
    """
    mounts = [Mount(git_identity(spec.home.parent), GIT_CONFIG)]
    if request.home is not None:
        request.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        mounts.append(Mount(request.home, SANDBOX_HOME, read_only=False, layer=request.home_layer))
    for cache in spec.caches.folders:
        if request.home is None:
            shown = [_unchanged(cache, SANDBOX_HOME / cache.place)]
        else:
            # Otherwise the mount itself would create the folder, as another user.
            (request.home / cache.place).mkdir(parents=True, exist_ok=True)
            shown = [_of_home(cache, request, SANDBOX_HOME / cache.place, overlays=overlays)]
        if shown[0].source == cache.source or shown[0].over:
            shown += _masks(cache, SANDBOX_HOME / cache.place, spec.home.parent)
        mounts += shown
    return mounts


def written_caches(home: Path) -> Path:
    """Return the folder beside a home for what its commands write into package caches."""
    return home.with_name(f"{home.name}.caches")


def _unchanged(cache: Cache, target: Path) -> Mount:
    return Mount(cache.source, target, layer=cache.layer)


def _of_home(cache: Cache, request: Request, target: Path, *, overlays: bool) -> Mount:
    """Return the mount of a cache with what is or was written into it below this home."""
    assert request.home is not None
    own, writes = written_caches(request.home) / cache.place, not request.home_layer
    if overlays and writes:
        own.mkdir(parents=True, exist_ok=True)
        return Mount(own, target, layer=True, over=(cache.source,), kept=True)
    if overlays and own.is_dir():
        return Mount(own, target, layer=True, over=(cache.source,))
    if writes and _copy_once(own, cache):
        return Mount(own, target, read_only=False)
    if not overlays and own.is_dir():
        return Mount(own, target, layer=cache.layer)
    return _unchanged(cache, target)


def _masks(cache: Cache, target: Path, run: Path) -> list[Mount]:
    """Return mounts of empty files and folders over what is hidden, where that still exists."""
    mounts = []
    for name in cache.hidden:
        place = cache.source / name
        if place.is_symlink() or not place.exists():
            continue
        nothing = run / EMPTY / ("folder" if place.is_dir() else "file")
        _make_empty(run / EMPTY)
        mounts.append(Mount(nothing, target / name))
    return mounts


def _make_empty(folder: Path) -> None:
    (folder / "folder").mkdir(mode=0o755, parents=True, exist_ok=True)
    (folder / "file").touch(mode=0o444)


def _copy_once(target: Path, cache: Cache) -> bool:
    """Copy a cache, once, for commands that write to it; False if it is too large.

    What is hidden is never copied: it might be impossible to remove, or we be killed before that.
    """
    if target.exists():
        return True
    unfinished = target.with_name(f"{target.name}.new")
    remove_tree(str(unfinished))
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        hidden = frozenset(f"{cache.source}/{name}" for name in cache.hidden)
        copy_tree(str(cache.source), str(unfinished), without=hidden)
    except TooLarge:
        remove_tree(str(unfinished))
        return False
    unfinished.rename(target)
    return True


def without_large(caches: Caches) -> Caches:
    """Return the caches that can be shown where a layer is a copy; blocks while measuring them."""
    kept, notices = [], list(caches.notices)
    for cache in caches.folders:
        if cache.layer and is_large(cache.source):
            notices.append(
                f"{cache.ecosystem}: {cache.source} is not shown: more than "
                f"{MOST_COPIED >> 30} GB would be copied for each command, as there are no "
                "overlays here (bwrap 0.11 or newer)"
            )
        else:
            kept.append(cache)
    return replace(caches, folders=tuple(kept), notices=tuple(notices))


def is_large(folder: Path, most: int = MOST_COPIED) -> bool:
    """Whether a copy of the folder would take more than `most` bytes."""
    remaining = most
    for here, _, files in walk(folder):
        for name in files:
            try:
                remaining -= os.lstat(os.path.join(here, name)).st_size  # noqa: PTH118 - many
            except OSError:
                continue
            if remaining < 0:
                return True
    return False


def command_environment(
    base: Mapping[str, str], request: Request, caches: Caches, home: Path
) -> dict[str, str]:
    """Return a command's variables: of the sandbox, of its caches, and of the request.

    Options for a tool (`MAVEN_OPTS`) add up, so that those of a task or of a proxy leave the tool
    its cache.
    """
    offline = request.network == "none" and request.door is None
    env = {**caches.env, **(caches.offline if offline else {})}
    if caches.path:
        env["PATH"] = ":".join([base["PATH"], *caches.path])
    env = {name: text.replace("{home}", str(home)) for name, text in env.items()}
    added = {
        name: f"{env[name]} {text}"
        for name, text in request.env.items()
        if name in env and name.endswith("_OPTS")
    }
    return {**base, **env, **request.env, **added}


def shared(caches: Caches) -> str:
    """Return the caches in one phrase for a header; "" where there are none."""
    return f"package caches of {', '.join(caches.ecosystems)}" if caches.folders else ""
