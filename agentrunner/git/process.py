"""Runs git on a private object store: the only place of this package where git is run.

Standard library only, like everything that `take` needs.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, BinaryIO

from agentrunner.environment import fullest, is_full
from agentrunner.errors.repositories import GitDiskFull, GitFailed, GitTimeout
from agentrunner.text.unicode import to_bytes, to_text

CONFIG = """\
[core]
\tbare = true
\trepositoryformatversion = {version}
\thooksPath = /dev/null
\tfsmonitor = false
\tattributesFile = /dev/null
\texcludesFile = /dev/null
[gc]
\tauto = 0
[maintenance]
\tauto = false
{extensions}"""
CONFIGS = {
    "sha1": CONFIG.format(version=0, extensions="").encode(),
    "sha256": CONFIG.format(
        version=1, extensions="[extensions]\n\tobjectFormat = sha256\n"
    ).encode(),
}
"""The configuration of a private store, by the hash that names its objects."""

ATTRIBUTES = b"* -text -filter -ident -eol -working-tree-encoding\n"
"""Contents are read and written byte for byte, whatever the folder's own attributes say."""

MOST_SEC = 3600.0
"""For one command; fetching a large repository takes minutes."""
ANSWER_SEC = 30.0
"""For a command that reads settings and references of the user's repository, or writes one."""

NO_ROOM = ("No space left on device", "Out of diskspace", "Disk quota exceeded")
"""Git's messages for a full disk; of a few files it says only that they cannot be written."""
LEAST_BYTES = 1 << 16
"""Where less is free, a command of git that failed has failed for that."""


def users_git(git_dir: Path, binary: str) -> Git:
    """Return git on the user's own repository, with the timeout `ANSWER_SEC`.

    A file that its settings include, or one in place of a reference, may be a pipe without an end.
    """
    return Git(git_dir, binary, ANSWER_SEC)


class Git:
    """Git on one private store: nothing of the user's, the system's or the folder's is read."""

    def __init__(
        self, git_dir: Path, binary: str, most_sec: float = MOST_SEC, *, borrows: bool = False
    ) -> None:
        """`most_sec` is how long one command may take.

        A store that `borrows` also finds objects of the user's, once `borrow.lend` was called.
        """
        self.git_dir = git_dir
        self.binary = binary
        self.most_sec = most_sec
        self.borrows = borrows
        self._lender = ""

    def borrows_from(self, objects: bytes) -> None:
        """Let commands that only read also find objects in this folder of the user's."""
        text = to_text(objects).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        self._lender = f'"{text}"'

    def borrows_nothing(self) -> None:
        """Let commands find only objects of the store."""
        self._lender = ""

    def _borrowed(self) -> str:
        """Return the folder that `borrow.lend` recorded, as git reads it; "" for none."""
        if self.borrows and not self._lender:
            with contextlib.suppress(OSError, ValueError, KeyError):
                saved = json.loads((self.git_dir / "agentrunner" / "borrowed.json").read_bytes())
                self.borrows_from(to_bytes(saved["objects"]))
        return self._lender

    def init(self) -> None:
        """Make the store if there is none."""
        if (self.git_dir / "agentrunner").is_dir():
            return
        self.git_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.run("init", "-q", "--bare", "--template=", "--object-format=sha1")
        replace(self.git_dir / "config", CONFIGS["sha1"])
        (self.git_dir / "info").mkdir(mode=0o700, exist_ok=True)
        replace(self.git_dir / "info" / "attributes", ATTRIBUTES)
        (self.git_dir / "agentrunner").mkdir(mode=0o700)

    def run(
        self,
        *command: str,
        stdin: bytes | IO[bytes] = b"",
        accept: tuple[int, ...] = (0,),
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        umask: int = 0o077,
        writes: bool = False,
    ) -> bytes:
        """Run a command on the store; raises GitFailed for an exit code not in `accept`.

        It also raises GitFailed (`git-timeout`) for a command that has not ended after `most_sec`,
        and kills it. A command that `writes` objects does not see borrowed ones: git would mark
        them as fresh, in the user's repository. Only the owner may read what it writes; a `umask`
        of -1 keeps the user's own.
        """
        guard = ("-c", "safe.bareRepository=explicit", f"--git-dir={self.git_dir}")
        given, file = (stdin, None) if isinstance(stdin, bytes) else (None, stdin)
        try:
            done = subprocess.run(
                [self.binary, *guard, *command],
                cwd=cwd or self.git_dir,
                env=self.environment(env or {}, borrow=not writes),
                stdin=file,
                input=given,
                capture_output=True,
                check=False,
                umask=umask,
                timeout=self.most_sec,
            )
        except subprocess.TimeoutExpired as error:
            raise GitTimeout(
                f"git {_verb(command)} has not ended after {self.most_sec:.0f} s: {self.git_dir}",
                remedy="look for a pipe or a server that is away in what git reads there: "
                "git config --no-includes --list --show-origin",
            ) from error
        except OSError as error:
            raise GitFailed(f"git can't be run: {error}") from error
        if done.returncode not in accept:
            stderr = done.stderr.decode("utf-8", "replace").strip()
            message = f"git {_verb(command)} ended with {done.returncode}: {stderr}"
            where = fullest(self.git_dir, cwd or self.git_dir)
            if any(words in stderr for words in NO_ROOM) or is_full(where, LEAST_BYTES):
                raise GitDiskFull.of(where, cause=message)
            raise GitFailed(message)
        return done.stdout

    def environment(
        self, extra: Mapping[str, str] | None = None, *, borrow: bool = True
    ) -> dict[str, str]:
        """Return the whole environment of git, built from nothing."""
        lender = self._borrowed() if borrow else ""
        return {
            **({"GIT_ALTERNATE_OBJECT_DIRECTORIES": lender} if lender else {}),
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.git_dir),
            "XDG_CONFIG_HOME": str(self.git_dir),
            "LC_ALL": "C",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            **(extra or {}),
        }


def _verb(command: Sequence[str]) -> str:
    """Return the name of a command, after settings such as `-c gc.auto=0`."""
    return command[2 * command.count("-c")]


def read_small(path: bytes, limit: int = 1 << 20) -> bytes | None:
    """Return the start of a regular file, None for anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            return None
        with open(fd, "rb", buffering=0, closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(fd)


def replace(path: Path, data: bytes) -> None:
    """Write a file of ours in one step, for its owner only."""
    with replaced(path) as file:
        file.write(data)


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """Give a file to be written; it is at `path` when it is whole, for its owner only."""
    temporary = path.with_name(path.name + ".new")
    temporary.touch(mode=0o600)
    with temporary.open("wb") as file:
        yield file
    temporary.replace(path)


def git_dir_of(checkout: Path) -> Path:
    """Return the `.git` of a checkout, or for a linked work tree the folder that this file names.

    Nothing is run. Raises OSError.
    """
    place = checkout / ".git"
    if place.is_dir():
        return place
    if not place.is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(place))
    return _named_by(place, checkout)


def shared_dir_of(git_dir: Path) -> Path:
    """Return what all work trees of a repository share, such as branches. Raises OSError."""
    pointer = git_dir / "commondir"
    if not pointer.is_file():
        return git_dir
    return _named_by(pointer, git_dir)


def _named_by(pointer: Path, folder: Path) -> Path:
    """Return the path that a file of git's names, from `folder`. Raises OSError for none."""
    text = pointer.read_text(errors="replace").removeprefix("gitdir:").strip()
    try:
        return (folder / text).resolve()
    except (ValueError, RuntimeError) as error:  # a NUL, a link to itself
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(pointer)) from error
