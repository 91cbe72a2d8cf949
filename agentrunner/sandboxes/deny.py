"""What is never mounted: credentials, homes, sockets, the state folder, the system's own files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from agentrunner.errors.repositories import BadWorkFolder
from agentrunner.errors.task_files import BadReadPath
from agentrunner.folders import walk
from agentrunner.text.lazy_regex import lazy_regex

MOST_BYTES = 64 << 10
"""A larger file is not searched: it is a download, not something that a tool wrote down."""
MOST_FILES = 200_000
"""With more files than this, nothing is searched and the folder is not shown."""

_VALUE = rb"[\"']?\s*[=:]\s*[\"']?(?!\s*[\"'\[{$<(]|\$|null\b|none\b|true\b|false\b)\S{4}"
_CREDENTIAL = lazy_regex(
    rb"://[^\s/:@\"'<>]{1,200}:[^\s/@\"'<>]{1,200}@"  # https://user:pass@host
    rb"|_auth(?:token)?[\"']?\s*[=:]\s*[\"']?[^\s\"'$]"
    rb"|(?i:\b[\w.-]{0,40}(?:token|passw(?:or)?d|secret|api[_-]?key)" + _VALUE + rb")"
    rb"|(?i:authorization[\"']?\s*[=:]\s*[\"']?(?:basic|bearer|token)\s)"
    rb"|(?i:<(?:password|token|passphrase|privatekey)>\s*[^\s<$])"
    rb"|(?m:^[^\S\n]*machine\s+\S+\s+login\s+\S+)"
    rb"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)


class TooMany(Exception):
    """There are more than MOST_FILES files to search."""


CREDENTIALS = (
    ".aws", ".azure", ".bash_history", ".cargo/credentials", ".cargo/credentials.toml", ".claude",
    ".claude.json", ".codex", ".config", ".docker", ".gemini", ".git-credentials", ".gnupg",
    ".gradle/gradle.properties", ".kube", ".local/share/keyrings", ".m2/settings.xml", ".mozilla",
    ".netrc", ".npmrc", ".password-store", ".pgpass", ".pki", ".pypirc", ".ssh", ".terraform.d",
    ".vault-token", ".zsh_history",
)  # fmt: skip
"""Paths below a home that hold keys, tokens or history."""

SYSTEM = tuple(
    map(
        Path,
        ("/boot", "/dev", "/etc", "/home", "/proc", "/root", "/run", "/sys", "/var/run"),
    )
)
"""No task can have these, or anything above them, mounted."""

CLOSED = tuple(path for path in SYSTEM if path not in (Path("/home"), Path("/root")))
"""For these, nothing below them either; a folder in a home may be requested by name."""

OCCUPIED = tuple(map(Path, ("/bin", "/lib", "/tmp", "/usr", "/var/lib")))
"""Where the sandbox has its own files: a repository may be below these, not at or above them."""


@lru_cache(maxsize=8)
def credential_paths(host_home: Path) -> tuple[Path, ...]:
    """Return the credential paths below the user's home and below root's."""
    homes = dict.fromkeys((host_home, _real(host_home), Path("/root")))
    return tuple(home / name for home in homes for name in CREDENTIALS)


def holds(outer: Path, inner: Path) -> bool:
    """Whether `outer` is `inner` or above it. Called hundreds of times for each command."""
    above, below = str(outer), str(inner)
    if not above.startswith("/"):
        return inner.is_relative_to(outer)
    return below == above or below.startswith(above if above == "/" else f"{above}/")


def exposes(path: Path, host_home: Path) -> bool:
    """Whether mounting `path` would show a whole home, or anything with credentials."""
    private = (host_home, _real(host_home), *credential_paths(host_home))
    return any(holds(path, place) for place in private)


def check_read_paths(paths: Sequence[Path], *, host_home: Path, state_root: Path) -> None:
    """Refuse paths that no task may make visible; raises UsageError (code `read-path`).

    The real path is judged, so neither `..` nor a symbolic link gets around the list.
    """
    for path in paths:
        reason = _refusal(path, host_home=host_home, state_root=state_root)
        if reason:
            raise BadReadPath(
                f'"{path}" cannot be made visible in the sandbox: {reason}.',
                path="runner.sandbox.read_paths",
                remedy="name the folder that is needed, and only that",
            )


def _refusal(path: Path, *, host_home: Path, state_root: Path) -> str:
    if not path.is_absolute():
        return "it is not absolute"
    try:
        real = path.resolve(strict=True)
        mode = real.stat().st_mode
    except (OSError, RuntimeError):
        return "it does not exist or cannot be read"
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        return "it is neither a folder nor a file"
    if exposes(real, host_home):
        return "it is a home, or holds credentials"
    if any(holds(place, real) for place in credential_paths(host_home)):
        return "it holds credentials"
    state = _real(state_root)
    if holds(real, state) or holds(state, real):
        return "AgentRunner keeps its state there"
    if any(holds(real, place) or holds(real, _real(place)) for place in SYSTEM):
        return "it is the system's"
    if any(holds(_real(place), real) for place in CLOSED):
        return "it is the system's"
    return ""


def check_repo(repo: Path, *, host_home: Path, state_root: Path) -> None:
    """Refuse a repository that cannot appear in a sandbox at its own path.

    Raises UsageError (code `repo-path`): not a folder, not its real path, a home, a folder of the
    system, or one that contains the state folder.
    """
    reason = ""
    if not repo.is_absolute() or not repo.is_dir():
        reason = "it is not a folder with an absolute path"
    elif _real(repo) != repo:
        reason = f"its real path is {_real(repo)}; give that one"
    elif holds(repo, _real(host_home)):
        reason = "it is a home, or above one"
    elif holds(repo, _real(state_root)):
        reason = "it holds AgentRunner's state folder"
    elif any(holds(repo, place) for place in (*SYSTEM, *OCCUPIED)):
        reason = "it is a folder of the system"
    elif any(holds(place, repo) for place in map(Path, ("/dev", "/proc", "/sys"))):
        reason = "it is in a file system of the kernel"
    if reason:
        raise BadWorkFolder(
            f'The repository "{repo}" cannot be worked on: {reason}.',
            path="task.repo",
            remedy="put the project in a folder of its own",
        )


def _real(path: Path) -> Path:
    return path.resolve()


def holds_secret(text: bytes) -> bool:
    """Whether this looks like a credential: in a URL, a setting, a header or a key."""
    return _CREDENTIAL.search(text) is not None


def secrets_in(root: Path, skipped: Sequence[str]) -> Iterator[str]:
    """Yield the paths below `root` of small files that hold credentials; links are not followed.

    Files that match a pattern of `skipped` (`*` for any text, also below it) are not searched. A
    file that cannot be read is skipped: the sandbox's user cannot read it either. Raises TooMany.
    """
    remaining = MOST_FILES
    for here, folders, files in walk(root):
        below = os.path.relpath(here, root)
        prefix = "" if below == "." else f"{below}/"
        folders[:] = [name for name in folders if not _matches(f"{prefix}{name}", skipped)]
        remaining -= len(files)
        if remaining < 0:
            raise TooMany
        for name in files:
            path = f"{prefix}{name}"
            if not _matches(path, skipped) and _file_holds_secret(os.path.join(here, name)):  # noqa: PTH118
                yield path


def _file_holds_secret(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        text = os.read(fd, MOST_BYTES + 1)
    except OSError:
        return False
    finally:
        os.close(fd)
    return len(text) <= MOST_BYTES and holds_secret(text)


def _matches(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)
