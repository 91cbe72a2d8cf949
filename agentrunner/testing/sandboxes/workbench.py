"""What a conformance check works with: a repository, a state folder, a sandbox."""

from __future__ import annotations

import asyncio
import inspect
import secrets
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from agentrunner.sandboxes.base import CommandResult, Request, Sandbox, SandboxOrder

CANARY = "AGENTRUNNER_CONFORMANCE_CANARY"
Make = Callable[[SandboxOrder], Sandbox]


@dataclass(frozen=True)
class CheckResult:
    """One check: `detail` is what it shows, what went wrong, or why it does not apply."""

    name: str
    status: Literal["passed", "failed", "not_applicable"]
    detail: str


class ConformanceCheck(Protocol):
    """An async function that raises when the sandbox breaks the promise in its docstring."""

    __name__: str

    def __call__(self, workbench: Workbench) -> Awaitable[None]:
        """Try it."""


def promises_in(names: Mapping[str, Any]) -> tuple[ConformanceCheck, ...]:
    """Return the checks of a module with these names, in the order in which they are written."""
    found = (one for name, one in names.items() if not name.startswith("_"))
    return tuple(
        one
        for one in found
        if inspect.iscoroutinefunction(one) and one.__module__ == names["__name__"]
    )


class NotApplicable(Exception):
    """The check makes no sense here; the text says why."""


class Broken(Exception):
    """A promise that is not kept."""


def expect(kept: object, what: str) -> None:
    """Raises Broken with `what` unless it is kept."""
    if not kept:
        raise Broken(what)


@contextmanager
def outcome_of(check: Callable[..., Any], results: list[CheckResult]) -> Iterator[None]:
    """Add to the results what comes of a check that is tried meanwhile."""
    try:
        yield
    except Broken as error:
        results.append(CheckResult(check.__name__, "failed", str(error)))
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is this check's result
        detail = f"{type(error).__name__}: {error}"
        results.append(CheckResult(check.__name__, "failed", detail))
    else:
        results.append(CheckResult(check.__name__, "passed", str(check.__doc__)))


@dataclass(frozen=True)
class Workbench:
    """One check's own repository, state folder and sandbox."""

    root: Path
    repo: Path
    state: Path
    home: Path
    sandbox: Sandbox
    make: Make
    bait: str
    """Value of a variable in our own environment."""
    marker: str
    """In the command line of every process that a check leaves behind on purpose."""

    @classmethod
    def build(cls, root: Path, make: Make, bait: str) -> Workbench:
        """Make the folders: a git repository with one commit, a state folder with a secret."""
        repo, state = root / "repo", root / "state"
        home = state / "runs/check/box"
        home.mkdir(parents=True)
        (repo / "folder").mkdir(parents=True)
        (repo / "file.txt").write_text("hello\n")
        (state / "runs/check/secret.txt").write_text(bait)
        (root / "outside.txt").write_text("untouched\n")
        git(repo, "init", "-q")
        git(repo, "add", ".")
        git(repo, "commit", "-q", "-m", "first")
        spec = SandboxOrder(repo=repo, home=home, programs=("sh", "git"))
        return cls(root, repo, state, home, make(spec), make, bait, secrets.token_hex(8))

    async def sh(self, script: str, **fields: Any) -> CommandResult:
        """Run a shell script in the sandbox; `fields` are those of a Request."""
        return await self.sandbox.run(self.request(script, **fields))

    def request(self, script: str, **fields: Any) -> Request:
        """A request for a shell script."""
        given = {"workdir": self.repo, "timeout_sec": 30.0, **fields}
        return Request(command=("sh", "-c", script), **given)

    def leftovers(self) -> list[int]:
        """Processes on this host that carry the marker."""
        found = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = file.read_bytes()
            except OSError:
                continue
            if self.marker.encode() in words:
                found.append(int(file.parent.name))
        return found


async def wait_for(file: Path) -> None:
    """Wait until a process in the sandbox has made this file."""
    while not file.exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)


def git(repo: Path, *words: str) -> None:
    """Run git on a repository of our own making, with nobody's settings."""
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_NAME": "check" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "check@localhost" for who in ("AUTHOR", "COMMITTER")},
    }
    subprocess.run(["git", *words], cwd=repo, env=env, check=True, capture_output=True)
