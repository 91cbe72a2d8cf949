"""Checks a request before anything is started for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from agentrunner.environment import loads_code
from agentrunner.sandboxes.base import Door, ErrorKind, Request, SandboxError, SandboxOrder

PLAIN = frozenset({"PATH", "HOME", "LANG", "TERM", "TMPDIR"})
"""Those of the variables that programs find everywhere."""


def check_request(request: Request, spec: SandboxOrder) -> None:
    """Raise SandboxError(INVALID_REQUEST) with the reason if the request is invalid."""
    if not request.command or not request.command[0]:
        raise invalid("the command is empty")
    if any("\0" in word for word in request.command):
        raise invalid("a word of the command holds a NUL character")
    for name, value in request.env.items():
        if not name or "=" in name or "\0" in name + value:
            raise invalid(f"{name!r} cannot be an environment variable")
        if loads_code(name):
            raise invalid(
                f"{name} would reach the sandbox's helper outside the sandbox;"
                f" start the command with `env {name}=…` instead"
            )
    if request.network == "full" and spec.network != "full":
        raise invalid("the task does not permit a network")
    if request.timeout_sec <= 0:
        raise invalid("timeout_sec is not above 0")
    if request.door is not None:
        _check_door(request.door)
    for mount in request.mounts:
        if mount.layer and not mount.source.exists():
            raise invalid(f"there is no {mount.source} to lay a layer over")
    _check_workdir(request, spec)


def host_workdir(request: Request, spec: SandboxOrder) -> Path:
    """Return the request's working folder on this host: in the copy, if there is one."""
    if request.repo_copy is not None and request.workdir.is_relative_to(spec.repo):
        return request.repo_copy / request.workdir.relative_to(spec.repo)
    return request.workdir


def _check_workdir(request: Request, spec: SandboxOrder) -> None:
    if request.repo_copy is not None and not (
        request.repo_copy.is_absolute() and request.repo_copy.is_dir()
    ):
        raise invalid(f"the copy {request.repo_copy} is not a folder with an absolute path")
    place = host_workdir(request, spec).resolve()
    tree = request.repo_copy or spec.repo
    if not any(place.is_relative_to(root.resolve()) for root in (tree, spec.home)):
        raise invalid(f"the working folder {request.workdir} is outside the repository")
    if not place.is_dir():
        raise invalid(f"the working folder {request.workdir} does not exist")


def _check_door(door: Door) -> None:
    if not door.folder.is_absolute() or not door.folder.is_dir():
        raise invalid(f"the door's {door.folder} is not a folder with an absolute path")
    for port, name in door.ports.items():
        if not 0 < port < 65536 or not re.fullmatch(r"\w[\w.-]*", name, re.ASCII):
            raise invalid(f"a door cannot lead from port {port} to {name!r}")
    if not door.ports:
        raise invalid("the door leads nowhere")


def invalid(cause: str) -> SandboxError:
    """Return the error for an invalid request."""
    return SandboxError(ErrorKind.INVALID_REQUEST, "run", cause)


def base_environment(
    path: Sequence[Path], *, home: Path, repo: Path, pycache: Path
) -> dict[str, str]:
    """Return the variables that every command gets.

    Byte code is kept in `pycache`: so tests leave nothing in the repository, and a forged
    `__pycache__` in it is never read.
    """
    return {
        "PATH": ":".join(map(str, path)),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": "/tmp",
        "PYTHONPYCACHEPREFIX": str(pycache),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": str(repo),
    }


def proxy_environment(port: int) -> dict[str, str]:
    """Return the variables that send programs to a CONNECT proxy on the sandbox's 127.0.0.1:`port`.

    Each is given in both cases: curl reads only the lower-case `http_proxy`, others only capitals.
    Node, Yarn, Gradle and Maven need variables of their own. Other Java programs are left out: the
    variable that they all read (JAVA_TOOL_OPTIONS) makes each of them print a line.
    """
    url = f"http://127.0.0.1:{port}"
    local = "localhost,127.0.0.1,::1"
    usual = {"HTTPS_PROXY": url, "HTTP_PROXY": url, "ALL_PROXY": url, "NO_PROXY": local}
    java = [f"-D{wire}.proxy{what}" for wire in ("http", "https") for what in ("Host", "Port")]
    places = ("127.0.0.1", port, "127.0.0.1", port)
    options = " ".join(f"{name}={value}" for name, value in zip(java, places, strict=True))
    return {
        **usual,
        **{name.lower(): value for name, value in usual.items()},
        "NODE_USE_ENV_PROXY": "1",
        # npm packages that download binaries read these instead of the usual ones.
        "npm_config_proxy": url,
        "npm_config_https_proxy": url,
        "YARN_HTTP_PROXY": url,
        "YARN_HTTPS_PROXY": url,
        "GRADLE_OPTS": options,
        "MAVEN_OPTS": options,
    }
