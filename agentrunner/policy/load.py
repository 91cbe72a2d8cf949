"""Where policies are, and how one is read: only a file that no task and no stranger can write."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from agentrunner.config.mistakes import from_validation
from agentrunner.config.text_files import MAX_BYTES, decode, require_size
from agentrunner.config.yaml_text import read_yaml
from agentrunner.errors import UsageError
from agentrunner.errors.task_files import PolicyMissing, PolicyUnsafe
from agentrunner.policy.policy_file import Policy, PolicyFile

SYSTEM = Path("/etc/agentrunner/policy.yaml")
"""In force on this machine if it exists."""
VARIABLE = "AGENTRUNNER_POLICY"


def load_policies(
    option: Path | None,
    environ: Mapping[str, str],
    repo: Path | None = None,
    *,
    kept: Sequence[Path] = (),
    system: Path = SYSTEM,
) -> tuple[Policy, ...]:
    """Return all policies in force together: the machine's, AGENTRUNNER_POLICY's and `option`'s.

    `kept` are those under which a run was started; they stay in force for it. Raises UsageError
    (`policy-missing`, `policy-unsafe`) for one that is named and missing, that is in `repo`, or
    that others may change, and what a task file raises for mistakes in it.
    """
    named = [(str(path), path) for path in kept]
    if VARIABLE in environ:
        if not environ[VARIABLE]:
            raise _missing(VARIABLE, f"{VARIABLE} is set and names no file.")
        named.append((VARIABLE, Path(environ[VARIABLE])))
    if option is not None:
        named.append(("--policy", option))
    found = {_absolute(path): by for by, path in reversed(named)}
    if _is_there(system):
        found.setdefault(system, str(system))
    # The machine's policy first: the first policy to fill in a missing setting wins.
    order = sorted(found, key=lambda path: path != system)
    return tuple(_read(path, found[path], repo) for path in order)


def _is_there(path: Path) -> bool:
    """Whether a file exists, or may exist where we may not look: reading it then fails visibly."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _absolute(path: Path) -> Path:
    return Path(os.path.normpath(path.expanduser().absolute()))


def _read(path: Path, by: str, repo: Path | None) -> Policy:
    real = Path(os.path.realpath(path))
    for place in (path, real):
        if repo is not None and place.is_relative_to(repo):
            raise _unsafe(path, "stands in the repository, where a task could change it")
        _require_safe_folders(path, place)
    try:
        fd = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise _missing(by, f"The policy {path} cannot be read: {error.strerror}.") from error
    with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        _require_own(path, os.fstat(fd))
        data = file.read(MAX_BYTES + 1)
    require_size(data, str(path))
    tree = read_yaml(decode(data, str(path)), str(path))
    try:
        caps = PolicyFile.model_validate(tree.value)
    except ValidationError as error:
        raise from_validation(error, tree, PolicyFile) from error
    return Policy(caps, path, hashlib.sha256(data).hexdigest(), tree)


def _require_own(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise _unsafe(path, "is no file")
    if facts.st_uid not in (0, os.geteuid()):
        raise _unsafe(path, f"belongs to somebody else (uid {facts.st_uid})")
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _unsafe(path, "can be written by others", f"chmod go-w {path}")


def _require_safe_folders(path: Path, place: Path) -> None:
    """Check the folders above: who may write to one could replace the file, unless it is sticky."""
    for folder in place.parents:
        try:
            facts = folder.stat()
        except OSError:
            return  # then the file is missing too, which is reported when it is opened
        others = facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if others and not facts.st_mode & stat.S_ISVTX:
            raise _unsafe(path, f"stands below {folder}, which others can write to")
        if facts.st_uid not in (0, os.geteuid()):
            raise _unsafe(path, f"stands below {folder}, which belongs to somebody else")


def _missing(by: str, message: str) -> UsageError:
    remedy = {VARIABLE: f"unset {VARIABLE}, or name a file that is there", "--policy": ""}
    return PolicyMissing(
        message,
        path=by,
        remedy=remedy.get(by, "put it back, or start a new run"),
    )


def _unsafe(path: Path, why: str, remedy: str = "") -> UsageError:
    return PolicyUnsafe(
        f"The policy {path} {why}.",
        path=str(path),
        remedy=remedy or "keep it in /etc/agentrunner, or in a folder of your own",
    )
