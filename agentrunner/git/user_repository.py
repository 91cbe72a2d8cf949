"""The user's repository, read as data: where it pushes to, and what is checked out.

Only commands of git that read settings and references run here; none of them runs a hook, a filter
or a program that settings name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from agentrunner.git.private_clone import BRANCHES
from agentrunner.git.process import git_dir_of, shared_dir_of, users_git
from agentrunner.git.snapshots import Snapshots, find_git
from agentrunner.storage.run_log import Record, RunLog

_REF = "ref: "


class UserRepository(Struct, frozen=True):
    """The repository that a user named; its folder has a `.git`. Methods may raise OSError."""

    repo: Path
    environ: Mapping[str, str]

    @property
    def git_dir(self) -> Path:
        """Where its git data is; for a linked work tree the part of that work tree."""
        return git_dir_of(self.repo)

    def remote(self, name: str = "origin") -> str:
        """Return the push address, rewritten as settings say; "" for no such remote."""
        for settings in self._personal():
            out = self._git("remote", "get-url", "--push", name, settings=settings)
            if address := out.partition("\n")[0].strip():
                return address
        return ""

    def checked_out(self) -> dict[str, Path]:
        """Return each branch that a work tree of the repository has checked out, and its folder."""
        common = shared_dir_of(self.git_dir)
        found = {}
        for head in (common / "HEAD", *sorted(common.glob("worktrees/*/HEAD"))):
            text = head.read_text(errors="replace").strip()
            if text.startswith(_REF + BRANCHES):
                found[text.removeprefix(_REF + BRANCHES)] = _work_tree(head, common)
        return found

    def branch_at(self, branch: str) -> str | None:
        """Return the commit of a branch; None if there is no such branch."""
        return self._git("rev-parse", "--verify", "--quiet", f"{BRANCHES}{branch}").strip() or None

    def unborn(self) -> str | None:
        """Return the branch of its first commit to be; None if HEAD has a commit or no branch."""
        name = self._git("symbolic-ref", "--quiet", "HEAD").strip()
        if not name.startswith(BRANCHES):
            return None
        branch = name.removeprefix(BRANCHES)
        return None if self.branch_at(branch) else branch

    def _personal(self) -> Iterator[str]:
        """Yield the files of a person's own settings, as git finds them, by falling priority."""
        home = self.environ.get("HOME") or str(Path.home())
        config = self.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
        named = self.environ.get("GIT_CONFIG_GLOBAL")
        yield from [named] if named else [f"{home}/.gitconfig", f"{config}/git/config"]

    def _git(self, *command: str, settings: str = "/dev/null") -> str:
        env = {"GIT_CONFIG_GLOBAL": settings, "HOME": self.environ.get("HOME") or str(Path.home())}
        git = users_git(self.git_dir, find_git(self.repo))
        return git.run(*command, accept=(0, 1, 2, 128), env=env).decode("utf-8", "replace")


def _work_tree(head: Path, common: Path) -> Path:
    if head.parent == common:
        return common.parent
    return Path((head.parent / "gitdir").read_text(errors="replace").strip()).parent


def by_hand(snapshots: Snapshots, log: RunLog) -> set[str]:
    """Return the paths that a person, and no worker, changed between the steps of a run."""

    def changed(records: Sequence[Record]) -> set[str]:
        trees = [(r.data.get("tree_before"), r.data.get("tree_after")) for r in records]
        return {
            change.path
            for before, after in trees
            if before and after and before != after
            for change in snapshots.changes(str(before), str(after))
        }

    history = log.history()
    return changed(history.human_edits) - changed(history.worker_runs)
