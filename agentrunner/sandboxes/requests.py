"""Checks a request before anything is started for it."""

from __future__ import annotations

import re
from pathlib import Path

from agentrunner.environment import loads_code
from agentrunner.sandboxes.base import Door, ErrorKind, Request, SandboxError, SandboxOrder


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
