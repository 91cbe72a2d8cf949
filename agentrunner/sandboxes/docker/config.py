"""The configuration of one container: the body of the create call, with every field. Pure."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentrunner.sandboxes.base import Mount, Request, ResourceLimit, SandboxOrder
from agentrunner.sandboxes.configuration import COMMON, ETC, configuration_of
from agentrunner.sandboxes.deny import exposes, holds
from agentrunner.sandboxes.docker.engine import Traits
from agentrunner.sandboxes.gitdirs import GitData
from agentrunner.sandboxes.homes import SANDBOX_HOME
from agentrunner.sandboxes.layers import UPPER, WORK
from agentrunner.sandboxes.limits import memory_bytes
from agentrunner.sandboxes.toolchain import SYSTEM_ROOTS, find_toolchain

SOCKETS = Path("/run/agentrunner")
"""Where doors lead to, in the sandbox."""
SCRATCH = (Path("/tmp"), Path("/var/tmp"), SANDBOX_HOME)
MEMORY = "4g"
PIDS = 512
SHARED_MEMORY = 256 << 20
"""Of /dev/shm: browsers and databases need more than Docker's 64 MiB."""
INIT = Path("/sbin/docker-init")
"""Where the engine puts the first process of a sandbox."""

LIFELINE = Path("/run/lifeline")
KEEPER = f"cat {LIFELINE} >/dev/null & wait $!"
"""Lives until its owner closes the pipe: so a sandbox ends with its owner.

As the first process it reaps orphans, where the engine's own init cannot be used.
"""


@dataclass(frozen=True)
class User:
    """The user that processes in the sandbox run as."""

    uid: int
    gid: int

    @property
    def keeper_uid(self) -> int:
        """Another user's uid, so that `kill -9 -1` by this user spares the keeper."""
        return 64999 if self.uid != 64999 else 64998

    @property
    def keeper(self) -> str:
        """The user of the keeper process, as `uid:gid`."""
        return f"{self.keeper_uid}:{self.gid}"

    def __str__(self) -> str:
        return f"{self.uid}:{self.gid}"


@dataclass(frozen=True)
class ContainerSpec:
    """Everything that one container is made from."""

    image: str
    """The image's id: a name may later mean another image."""
    user: User
    mounts: tuple[Mount, ...]
    """In any order; the engine mounts deeper targets later."""
    masks: tuple[Path, ...] = ()
    """Folders that are shown empty and read-only, whatever is below."""
    network: str = "none"
    """The network's name on the engine."""
    limits: ResourceLimit = field(default_factory=ResourceLimit)
    labels: Mapping[str, str] = field(default_factory=dict)


def container_config(plan: ContainerSpec, traits: Traits) -> dict[str, Any]:
    """Return the body of the create call, without its lifeline and owner.

    Raises UsageError for an invalid amount of memory.
    """
    return {
        "Image": plan.image,
        "User": plan.user.keeper,
        "Entrypoint": ["/bin/sh", "-c", KEEPER],
        "Cmd": [],
        "Env": [],
        "WorkingDir": "/",
        "Hostname": "box",
        "Labels": dict(plan.labels),
        "Healthcheck": {"Test": ["NONE"]},
        "Tty": False,
        "HostConfig": _host_config(plan, traits),
    }


def preamble(config: Mapping[str, Any]) -> str:
    """Return the shell definitions that run.sh needs in a container of this configuration."""
    host = config["HostConfig"]
    # A home that is a host folder is not emptied.
    home = SANDBOX_HOME if str(SANDBOX_HOME) in host["Tmpfs"] else Path("/tmp")
    targets = [*(mount["Target"] for mount in host["Mounts"]), *host["Tmpfs"]]
    kept = [
        str(path)
        for place in (*SCRATCH, Path("/dev/shm"))
        for target in map(Path, targets)
        for path in (target, *target.parents)
        if path != place and path.is_relative_to(place)
    ]
    patterns = [re.sub(r"([][*?\\])", r"\\\1", path) for path in dict.fromkeys(kept)]
    words = shlex.join([word for pattern in patterns for word in ("!", "-path", pattern)])
    find = f'find "$place" -xdev -mindepth 1 {words} "$@"'
    return f"home={home}\nscratch() {{ place=$1; shift; {find}; }}\n"


def places_between(config: Mapping[str, Any]) -> list[str]:
    """Return folders of the in-memory home that the engine makes, as root, as mount points."""
    host = config["HostConfig"]
    if str(SANDBOX_HOME) not in host["Tmpfs"]:
        return []
    targets = [Path(mount["Target"]) for mount in host["Mounts"]]
    below = [parent for target in targets for parent in target.parents]
    return sorted(
        {str(path) for path in below if path != SANDBOX_HOME and holds(SANDBOX_HOME, path)}
    )


def _host_config(plan: ContainerSpec, traits: Traits) -> dict[str, Any]:
    limits = plan.limits
    memory = memory_bytes(limits.memory or MEMORY)
    # Podman makes /run writable in a read-only sandbox.
    masks = [*plan.masks, *([Path("/run")] if traits.product == "Podman" else [])]
    targets = {mount.target for mount in plan.mounts}
    scratch = f"rw,exec,nosuid,nodev,mode=1777,size={memory // 2}"
    return {
        "AutoRemove": True,
        "NetworkMode": plan.network,
        "ReadonlyRootfs": True,
        "Privileged": False,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "Init": not any(holds(mount.target, INIT.parent) for mount in _outer(plan.mounts)),
        "IpcMode": "private",
        "PidMode": "",
        "UTSMode": "",
        "UsernsMode": "",
        "Memory": memory,
        "MemorySwap": memory,
        "NanoCpus": round((limits.cpus or 0) * 1e9),
        "PidsLimit": PIDS if limits.pids is None else limits.pids,
        "ShmSize": min(SHARED_MEMORY, memory // 2),
        "Tmpfs": {
            **{str(place): scratch for place in SCRATCH if place not in targets},
            **{str(mask): "ro,noexec,nosuid,nodev,mode=0555,size=4096" for mask in masks},
        },
        "Mounts": [
            bind(mount, apart=mount.read_only and not traits.read_only_below)
            for mount in plan.mounts
        ],
        "LogConfig": {"Type": "none", "Config": {}},
        "RestartPolicy": {"Name": "no"},
    }


def _outer(mounts: Sequence[Mount]) -> list[Mount]:
    # /sbin is a link to /usr/sbin in most images: a mount over /usr hides what is put there.
    merged = [mount for mount in mounts if mount.target == Path("/usr")]
    return [*mounts, *(Mount(mount.source, INIT.parent) for mount in merged)]


def _overlay(mount: Mount, place: Path) -> dict[str, Any]:
    """Return a volume of one container. Writes go to `place`, or into the source if it is kept."""
    source, below = mount.source.resolve(), [path.resolve() for path in reversed(mount.over)]
    lower, upper = (below, source) if mount.kept else ([source, *below], place / UPPER)
    options = f"lowerdir={':'.join(map(str, lower))},upperdir={upper},workdir={place / WORK}"
    driver = {"type": "overlay", "device": "overlay", "o": options}
    return {
        "Type": "volume",
        "Target": str(mount.target),
        "VolumeOptions": {
            "NoCopy": True,
            "DriverConfig": {"Name": "local", "Options": driver},
        },
    }


def bind(mount: Mount, *, apart: bool) -> dict[str, Any]:
    """Return one mount; with `apart`, without the mounts below its source.

    Older engines make only the topmost of them read-only.
    """
    if mount.upper is not None:
        return _overlay(mount, mount.upper)
    return {
        "Type": "bind",
        "Source": str(mount.source),
        "Target": str(mount.target),
        "ReadOnly": mount.read_only,
        "BindOptions": {"Propagation": "rprivate", "NonRecursive": apart},
    }


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
