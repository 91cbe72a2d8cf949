"""Where the tests of sandboxes work: a repository, a run's folder and a home."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agentrunner.sandboxes.base import Launch, Sandbox, SandboxOrder
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.choose import make_sandbox
from agentrunner.sandboxes.local import LocalSandbox
from tests.kit.docker import docker, require_docker
from tests.kit.files import put, write
from tests.kit.layers import tree_of
from tests.kit.repository import git


@dataclass(frozen=True)
class Place:
    """A repository, a run's folder and a home to build sandboxes from."""

    root: Path
    repo: Path
    home: Path
    user: Path

    def spec(self, **fields: object) -> SandboxOrder:
        """What is asked of a sandbox here."""
        return SandboxOrder(**{"repo": self.repo, "home": self.home, **fields})  # type: ignore[arg-type]

    def box(self, kind: str = "bwrap", **fields: object) -> Sandbox:
        """As a run makes it."""
        environ = {"PATH": os.environ["PATH"]}
        return make_sandbox(
            kind, self.spec(**fields), environ, self.user, state_root=self.root / "state"
        )

    def own(self, kind: str, spec: SandboxOrder | None = None) -> Sandbox:
        """One of `docker`, `none`, or bubblewrap; with `copy` that without overlays."""
        spec = spec or self.spec()
        if kind == "docker":
            return docker(spec)
        environ = {"PATH": os.environ["PATH"]}
        if kind == "none":
            return LocalSandbox(spec, environ=environ, host_home=self.user)
        return BwrapSandbox(spec, environ=environ, host_home=self.user, overlays=kind != "copy")

    @asynccontextmanager
    async def opened(self, kind: str, spec: SandboxOrder | None = None) -> AsyncIterator[Sandbox]:
        """The same from its start to its end, which leaves no layer."""
        sandbox = self.own(kind, spec)
        await sandbox.open()
        yield sandbox
        await sandbox.close()
        layers = self.home.parent / "layers"
        assert not layers.exists() or not list(layers.iterdir()), "a layer is left"

    def repository(self, shape: str, **files: str) -> Path:
        """Ours with a second commit, a work tree of it, or a clone that borrows its objects."""
        write(self.repo, {"other.txt": "other\n", "third.txt": "third\n", **files})
        git(self.repo, "add", ".")
        git(self.repo, "commit", "-qm", "second")
        folder = self.root / shape
        if shape == "linked":
            git(self.repo, "worktree", "add", "-q", str(folder), "-b", "linked")
        elif shape == "shared":
            git(self.root, "clone", "-q", "--shared", str(self.repo), str(folder))
            git(put(folder, "own.txt"), "add", ".")
            git(folder, "commit", "-qm", "own")
        else:
            return self.repo
        return folder

    def opened_in(self, kind: str, repo: Path) -> AbstractAsyncContextManager[Sandbox]:
        """One for a repository of these shapes."""
        reads = (self.repo / ".git/objects",) if repo.name == "shared" else ()
        return self.opened(kind, replace(self.spec(read_paths=reads), repo=repo))

    def git_data(self, repo: Path) -> dict[str, str]:
        """All of git's, with sizes and times, of both repositories."""
        folders = [self.repo / ".git", *([repo / ".git"] if (repo / ".git").is_dir() else [])]
        found: dict[str, str] = {}
        for folder in folders:
            found |= {
                f"{folder}/{name}": text for name, text in tree_of(folder, text=False).items()
            }
        return found


def start_helper(launch: Launch) -> tuple[subprocess.Popen[bytes], int]:
    """The process between us and bubblewrap, and the end that its status is read from."""
    read, write_end = os.pipe()
    helper = subprocess.Popen(
        [str(write_end) if word == "{status_fd}" else word for word in launch.argv],
        env=dict(launch.env),
        cwd=launch.cwd,
        pass_fds=(write_end,),
        stdout=subprocess.PIPE,
    )
    os.close(write_end)
    return helper, read


def available(kind: str) -> str:
    """This kind, or one that begins like it; skips or fails the test where no engine answers."""
    if kind.startswith("docker"):
        require_docker()
    return kind


SHAPES = ("plain", "linked", "shared")
"""Of a repository that a sandbox gets."""
