"""Work outside the checkout: a private clone of a repository, with a folder for each task.

Git runs only on our clone, with our settings: from the user's repository it only fetches, and into
it it only puts a branch. A worker's files are read as files and never through its `.git`, so no
hook, filter or setting of a work tree is obeyed (threat T1). Everything here blocks.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from agentrunner.config.repo import git_root, is_repository
from agentrunner.errors.repositories import (
    BadBranchName,
    BranchExists,
    FilteredFile,
    GitFailed,
    NoCommit,
    NoRepository,
    PartialClone,
    WorkInSubmodule,
)
from agentrunner.folders import remove_tree
from agentrunner.git.export import differing, index_lines, list_tree
from agentrunner.git.process import CONFIGS, Git, git_dir_of, replace, shared_dir_of, users_git
from agentrunner.git.restore import Entry, SafeFolder
from agentrunner.git.scratch import room as _room
from agentrunner.git.scratch import sweep
from agentrunner.git.snapshots import find_git
from agentrunner.text.unicode import to_bytes, to_text

HEAD = "refs/agentrunner/head"
BRANCHES = "refs/heads/"
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")


class Identity(Struct, frozen=True):
    """An author or committer."""

    name: str
    email: str


class MergedTree(Struct, frozen=True):
    """The result of merging two commits."""

    tree: str
    """The merged tree; files with conflicts contain conflict markers."""
    conflicts: tuple[str, ...] = ()
    """Paths that both sides changed, sorted."""


class CloneStore:
    """The private clone of one repository: its commits and branches, and their work trees.

    Every method may raise GitFailed and OSError.
    """

    def __init__(self, git_dir: Path, repo: Path) -> None:
        self.repo = repo
        self.git = Git(git_dir, find_git(repo))

    def fetch(self) -> str:
        """Update the clone to the repository's HEAD, and return that commit.

        Raises UsageError (`no-repository`, `no-commit`) if there is none, and `partial-clone` if
        the repository lacks contents.
        """
        if not is_repository(self.repo):
            if (above := git_root(self.repo)) is not None:
                raise NoRepository(
                    f"{self.repo} is a folder of the repository {above}, and a commit or a work"
                    " tree is of a whole repository.",
                    path="task.repo",
                    remedy=f"task.repo: {above}, with cd in its commands; or run without"
                    " --worktree and --commit",
                )
            raise NoRepository(
                f"{self.repo} is no git repository, so there is nothing to branch from.",
                path="task.repo",
                remedy="git init, then a first commit; or run without --worktree",
            )
        try:
            self._fetch("HEAD", HEAD)
        except GitFailed as error:
            if "couldn't find remote ref HEAD" in error.message:
                raise NoCommit(
                    f"{self.repo} has no commit yet, so there is nothing to branch from.",
                    path="task.repo",
                    remedy="git commit, then again",
                ) from error
            if "lazy fetching disabled" in error.message or "promisor remote" in error.message:
                raise PartialClone(
                    f"{self.repo} is a partial clone: contents of its commits are not here, and a"
                    " private copy of it cannot be made without them.",
                    path="task.repo",
                    remedy="git fetch --refetch --no-filter; or run without --worktree and"
                    " --commit",
                ) from error
            raise
        return self.resolve(HEAD)

    def fetch_branch(self, branch: str) -> str:
        """Fetch a branch of the user's into the clone, and return its commit."""
        name = f"refs/agentrunner/theirs/{branch}"
        self._fetch(f"{BRANCHES}{branch}", name)
        return self.resolve(name)

    def _fetch(self, theirs: str, ours: str) -> None:
        self._prepare(self._object_format())
        self.git.run(
            *("-c", "protocol.file.allow=always", "fetch", "--quiet", "--no-tags"),
            *("--update-shallow", "--no-write-fetch-head", "--no-recurse-submodules"),
            *(str(self.repo), f"+{theirs}:{ours}"),
        )

    def _prepare(self, objects: str = "") -> None:
        """Make or restore the clone with our settings, whatever a worker without a sandbox changed.

        `objects` is the result of `_hash`, if known.
        """
        config, objects_dir = self.git.git_dir / "config", self.git.git_dir / "objects"
        if objects_dir.is_dir() and config.is_file() and config.read_bytes() in CONFIGS.values():
            return  # concurrent threads would delete each other's new file
        objects = objects or self._object_format()
        self.git.git_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        config.unlink(missing_ok=True)
        option = f"--object-format={objects}"
        self.git.run("init", "--quiet", "--bare", "--template=", option)
        replace(config, CONFIGS[objects])  # last: git may be killed in the middle of `init`

    def _object_format(self) -> str:
        """Return what names the objects of the user's repository: "sha1" or "sha256".

        Asked before anything that may take long: it has a short timeout, in case git reads
        something there that never ends.
        """
        if not (self.repo / ".git").exists():
            return "sha1"
        user = users_git(self.user_git_dir(), self.git.binary)
        return _line(user.run("rev-parse", "--show-object-format"))

    def resolve(self, name: str) -> str:
        """Return the commit that a name means; raises GitFailed if there is none."""
        return _line(self.git.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"))

    def tree_of(self, commit: str) -> str:
        return _line(self.git.run("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}"))

    def branch(self, name: str, commit: str, before: str = "") -> None:
        """Set a branch of the clone to a commit; with `before` only if it was at that commit."""
        expected = (before,) if before else ()
        self.git.run("update-ref", f"{BRANCHES}{name}", commit, *expected)

    def branch_at(self, name: str) -> str | None:
        """Return the commit of a branch of the clone; None if there is no such branch."""
        found = self.git.run("rev-parse", "--verify", "--quiet", f"{BRANCHES}{name}", accept=(0, 1))
        return _line(found) or None

    # -- folders --------------------------------------------------------------------------------

    def check_out(self, folder: Path, commit: str) -> None:
        """Make a new work tree at a commit, on no branch; its parent folder exists."""
        self._prepare()
        self.git.run("worktree", "prune")
        twice = ("--force", "--force")  # a killed git has left its work tree locked
        self.git.run("worktree", "add", "--quiet", "--detach", *twice, str(folder), commit)

    def remove(self, folder: Path) -> None:
        """Remove a work tree, whatever is in it."""
        remove_tree(str(folder))
        self.git.run("worktree", "prune")

    def carry_over(self, folder: Path, paths: Iterable[str]) -> None:
        """Make files of a work tree as they are in the user's checkout; deleted ones are deleted.

        Symbolic links are recreated and never followed, on either side.
        """
        wanted = sorted(paths)
        with SafeFolder(self.repo) as source, SafeFolder(folder) as target:
            for path in reversed(wanted):  # make room before it is used
                with contextlib.suppress(OSError):
                    target.remove(path)
            for path in wanted:
                if (entry := source.read(path)) is not None:
                    target.write(path, *entry)

    # -- commits --------------------------------------------------------------------------------

    def commit(
        self,
        folder: Path,
        paths: Iterable[str],
        *,
        parents: tuple[str, ...],
        message: str,
        author: Identity,
        at: str,
        tree: str = "",
    ) -> str:
        """Return a commit of these files as they are in a folder, on top of the first parent.

        Missing files are deleted. `at` is a UTC time, ISO 8601; `tree` replaces the tree of the
        first parent. Nothing is checked out or changed except the clone's objects. Raises
        UsageError (`in-submodule`) for a file of a submodule, which would replace it, and
        (`filtered-file`) for one that a filter has to rewrite, like Git LFS.
        """
        self._prepare()
        wanted = set(paths)
        self._refuse_submodules(wanted, tree or parents[0])
        rules = {path for path in wanted if path.rpartition("/")[2] == ".gitattributes"}
        with _room(self.git.git_dir) as room:
            env = {"GIT_INDEX_FILE": f"{room}/index", "GIT_WORK_TREE": str(room)}
            self.git.run("read-tree", tree or parents[0], env=env)
            self._put(folder, rules, room, env)
            # Taken from the commit: what a worker left at these names might be a pipe.
            output = self.git.run("ls-files", "-z", ":(glob)**/.gitattributes", env=env, cwd=room)
            self.git.run("checkout-index", "-z", "--stdin", stdin=output, env=env, cwd=room)
            self._refuse_filtered(folder, wanted, room, env)
            self._put(folder, wanted - rules, room, env)
            made = _line(self.git.run("write-tree", env=env))
        return self.commit_tree(made, parents=parents, message=message, author=author, at=at)

    def commit_tree(
        self, tree: str, *, parents: tuple[str, ...], message: str, author: Identity, at: str
    ) -> str:
        """Return a new commit of a whole tree."""
        who = {
            "GIT_AUTHOR_NAME": author.name,
            "GIT_AUTHOR_EMAIL": author.email,
            "GIT_AUTHOR_DATE": at,
            "GIT_COMMITTER_NAME": author.name,
            "GIT_COMMITTER_EMAIL": author.email,
            "GIT_COMMITTER_DATE": at,
        }
        options = [word for parent in parents for word in ("-p", parent)]
        return _line(
            self.git.run("commit-tree", tree, *options, "-F", "-", stdin=message.encode(), env=who)
        )

    def submodules(self, tree: str) -> list[str]:
        """Return the paths where a commit or tree has other repositories."""
        return [path for path, mode in self.modes(tree).items() if mode == "160000"]

    def _refuse_submodules(self, paths: Iterable[str], tree: str) -> None:
        inside = tuple(f"{name}/" for name in self.submodules(tree))
        if found := sorted(path for path in paths if f"{path}/".startswith(inside)):
            raise WorkInSubmodule(
                f"Nothing was committed: {', '.join(found[:5])} is in a submodule, which is a "
                "repository of its own.",
                remedy="commit that in the submodule yourself; agentrunner diff RUN has all of it",
            )

    def _refuse_filtered(
        self, folder: Path, paths: Iterable[str], room: Path, env: Mapping[str, str]
    ) -> None:
        """Raise UsageError for files that a filter rewrites: their content would be wrong."""
        asked = b"".join(to_bytes(path) + b"\0" for path in paths)
        command = ("check-attr", "-z", "--stdin", "filter")
        output = self.git.run(*command, stdin=asked, env=env, cwd=room).split(b"\0")
        values = zip(
            output[::3], output[2::3], strict=False
        )  # path, "filter", value; "" at the end
        filters = {to_text(path): to_text(value) for path, value in values}
        with SafeFolder(folder) as tree:
            found = sorted(
                path
                for path, name in filters.items()
                if name not in ("unspecified", "unset") and tree.read(path) is not None
            )
        if found:
            raise FilteredFile(
                f"Nothing was committed: {', '.join(found[:5])} is for the filter"
                f" {filters[found[0]]}, and no program that a repository names is run here.",
                remedy="git add and git commit it yourself; agentrunner diff RUN has all of it",
            )

    def empty_tree(self) -> str:
        """Return the empty tree, which is stored in the clone from now on."""
        self._prepare()
        return _line(self.git.run("mktree"))

    def sweep(self) -> None:
        """Remove unfinished work of killed processes, unless others work here now.

        The caller must have exclusive use of the clone: any lock of git found there is a leftover.
        """
        sweep(self.git.git_dir)
        for locked in ("packed-refs.lock", "shallow.lock", "refs/**/*.lock", "worktrees/*/locked"):
            for leftover in self.git.git_dir.glob(locked):
                leftover.unlink(missing_ok=True)

    def _put(self, folder: Path, paths: Iterable[str], room: Path, env: Mapping[str, str]) -> None:
        """Update an index to these files as they are in a folder; `room` has the attributes."""
        entries: dict[str, Entry | None] = {}
        with SafeFolder(folder) as tree:
            for path in sorted(paths):
                if (found := tree.read(path)) is None:
                    entries[path] = None
                    continue
                mode, content = found
                # With the path, so that line endings become what the repository's attributes say.
                how = () if mode == "120000" else (f"--path={path}",)
                argv = ("hash-object", "-w", *how, "--stdin")
                blob = _line(self.git.run(*argv, stdin=content, env=env, cwd=room))
                entries[path] = mode, blob
        self._enter(entries, env)

    def _enter(self, entries: Mapping[str, Entry | None], env: Mapping[str, str]) -> None:
        """Put entries into an index; None removes a file."""
        lines = index_lines(entries, len(self.empty_tree()))
        self.git.run("update-index", "-z", "--index-info", stdin=lines, env=env)

    def with_files(self, tree: str, files: Mapping[str, bytes | None]) -> str:
        """Return the tree of a commit with other contents of these files; None removes a file."""
        modes = self.modes(tree)
        entries: dict[str, Entry | None] = dict.fromkeys(files)
        for path, content in files.items():
            if content is not None:
                blob = _line(self.git.run("hash-object", "-w", "--stdin", stdin=content))
                entries[path] = modes.get(path, "100644"), blob
        with _room(self.git.git_dir) as room:
            env = {"GIT_INDEX_FILE": f"{room}/index"}
            self.git.run("read-tree", tree, env=env)
            self._enter(entries, env)
            return _line(self.git.run("write-tree", env=env))

    def modes(self, tree: str) -> dict[str, str]:
        """Return every path of a commit with its mode."""
        return {path: mode for path, (mode, _) in list_tree(self.git, tree).items()}

    def merge(self, ours: str, theirs: str) -> MergedTree:
        """Return the tree that merges both commits; no work tree is touched."""
        self._prepare()
        out = self.git.run(
            *("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"),
            *(ours, theirs),
            accept=(0, 1),
        )
        tree, *names = out.split(b"\0")
        return MergedTree(tree.decode(), tuple(sorted({to_text(name) for name in names if name})))

    def changed(self, before: str, after: str) -> tuple[str, ...]:
        """Return the paths that differ between two commits or trees."""
        return tuple(differing(self.git, before, after))

    def read(self, tree: str, path: str) -> bytes:
        """Return a file of a commit or tree; empty if there is none."""
        return self.git.run("cat-file", "blob", f"{tree}:{path}", accept=(0, 128))

    def reader(self, tree: str) -> Callable[[str], bytes | None]:
        """Return what reads files of a commit or tree, each once; None for one that is not there.

        Commands are followed through the same files many times.
        """

        @functools.cache
        def read(path: str) -> bytes | None:
            exists = self.git.run("ls-tree", tree, "--", path)
            return self.read(tree, path) if exists else None

        return read

    def contains(self, commit: str, ancestor: str) -> bool:
        """Whether `ancestor` is an ancestor of a commit, or the commit itself."""
        return self.base(ancestor, commit) == ancestor

    def base(self, one: str, other: str) -> str:
        """Return the latest common ancestor of both commits; "" if there is none."""
        return _line(self.git.run("merge-base", one, other, accept=(0, 1)))

    # -- the user's repository ------------------------------------------------------------------

    def publish(self, commit: str, branch: str, *, replaces: str | None = None) -> None:
        """Put a commit into the user's repository as a branch, which is not checked out.

        An existing branch of that name is only moved from the commit `replaces`. Raises UsageError
        (`branch-exists`, `branch-name`).
        """
        user = users_git(self.user_git_dir(), self.git.binary)
        name = f"{BRANCHES}{branch}"
        there = self.check_branch(branch, commit, replaces)
        if there == commit:
            return
        self.give(commit)
        user.run(*_NO_HOOKS, "update-ref", name, commit, there, umask=-1)

    def give(self, commit: str) -> None:
        """Put a commit, and what is new with it, among the objects of the user's repository.

        `git fetch` is not used there: it obeys settings of that repository which name commands
        (`url.*.insteadOf` with `core.sshCommand`, `core.alternateRefsCommand`, a promisor).
        """
        common = shared_dir_of(self.user_git_dir())
        shared = self._shared(common / "config")
        revs = "\n".join([commit, *(f"^{known}" for known in self._known_to_both())])
        with _room(self.git.git_dir) as room:
            self.git.run("pack-objects", "--quiet", "--revs", f"{room}/new", stdin=revs.encode())
            (made,) = room.glob("*.pack")
            with made.open("rb") as stream:
                self.git.run(
                    *("-c", f"core.sharedRepository={shared}", "unpack-objects", "-q"),
                    stdin=stream,
                    env={
                        "GIT_OBJECT_DIRECTORY": str(shared_dir_of(self.user_git_dir()) / "objects")
                    },
                    umask=-1,
                )

    def _known_to_both(self) -> list[str]:
        """Return the targets of references of the user's repository that the clone has, too."""
        user = users_git(self.user_git_dir(), self.git.binary)
        ids = user.run("for-each-ref", "--format=%(objectname)")
        ids += user.run("rev-parse", "--verify", "--quiet", "HEAD", accept=(0, 1))
        output = self.git.run("cat-file", "--batch-check=%(objectname)", stdin=ids).decode()
        return sorted({line for line in output.splitlines() if not line.endswith(" missing")})

    def _shared(self, config: Path) -> str:
        """Return who may read new objects of the user's repository, according to its settings."""
        options = ("--file", str(config), "--no-includes")
        git = users_git(self.git.git_dir, self.git.binary)
        out = git.run("config", *options, "--get", "core.sharedRepository", accept=(0, 1))
        return _line(out) or "umask"

    def check_branch(self, branch: str, *allowed: str | None) -> str:
        """Return the commit of a branch of the user's; "" if there is none.

        Raises UsageError: `branch-name` for an invalid name, `branch-exists` if the branch is at
        none of the `allowed` commits.
        """
        name = f"{BRANCHES}{branch}"
        if branch.startswith("-") or not _is_ref(self.git, name):
            raise BadBranchName(f'"{branch}" cannot be the name of a branch.')
        user = users_git(self.user_git_dir(), self.git.binary)
        there = _line(user.run("rev-parse", "--verify", "--quiet", name, accept=(0, 1)))
        if there and there not in allowed:
            raise BranchExists(
                f"There is a branch {branch} already.",
                remedy=f"git branch -m {branch} {self.free_branch(branch)}",
            )
        return there

    def free_branch(self, branch: str) -> str:
        """Return a name like `branch` that no branch of the user's has."""
        user = users_git(self.user_git_dir(), self.git.binary)
        options = ("--format=%(refname)", f"{BRANCHES}{branch}-*")
        taken = user.run("for-each-ref", *options).decode("utf-8", "replace").split()
        names = (f"{branch}-{number}" for number in itertools.count(2))
        return next(name for name in names if f"{BRANCHES}{name}" not in taken)

    def user_git_dir(self) -> Path:
        """Return git's folder for the user's checkout; nothing is run."""
        return git_dir_of(self.repo)


def _is_ref(git: Git, name: str) -> bool:
    try:
        git.run("check-ref-format", name)
    except GitFailed:
        return False
    return True


def _line(out: bytes) -> str:
    return out.decode("utf-8", "replace").strip()
