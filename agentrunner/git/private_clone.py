"""Work outside of the checkout: a private clone of a repository, with a folder for each task.

Git runs on our clone alone, with our settings: of the user's repository it only fetches, and into
it it only puts a branch. What a worker made is read as files and never through its `.git`, so no
hook, filter or setting of a work tree is obeyed (threat T1). Everything here blocks.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

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
from agentrunner.git.process import CONFIGS, Git, git_dir_of, replace, to_bytes, to_text, users_git
from agentrunner.git.restore import SafeFolder
from agentrunner.git.scratch import room as _room
from agentrunner.git.scratch import sweep
from agentrunner.git.snapshots import find_git

HEAD = "refs/agentrunner/head"
BRANCHES = "refs/heads/"
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")


@dataclass(frozen=True)
class Identity:
    """Author or committer."""

    name: str
    email: str


@dataclass(frozen=True)
class MergedTree:
    """Two commits brought together."""

    tree: str
    """Of the result; where there are conflicts, with their marks in the files."""
    conflicts: tuple[str, ...] = ()
    """Paths that both changed, sorted."""


class CloneStore:
    """The private clone of one repository: commits and branches, and the folders they are in.

    Every method may raise GitFailed and OSError.
    """

    def __init__(self, git_dir: Path, repo: Path) -> None:
        self.repo = repo
        self.git = Git(git_dir, find_git(repo))

    def fetch(self) -> str:
        """Bring the clone up to the repository's HEAD, whose commit is returned.

        Raises UsageError (`no-repository`, `no-commit`) where there is none, and `partial-clone`
        where it lacks contents.
        """
        if not (self.repo / ".git").exists():
            for above in self.repo.parents:
                if (above / ".git").exists():
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
        """Bring a branch of the user's into the clone; its commit."""
        name = f"refs/agentrunner/theirs/{branch}"
        self._fetch(f"{BRANCHES}{branch}", name)
        return self.resolve(name)

    def _fetch(self, theirs: str, ours: str) -> None:
        self._prepare(self._hash())
        self.git.run(
            *("-c", "protocol.file.allow=always", "fetch", "--quiet", "--no-tags"),
            *("--update-shallow", "--no-write-fetch-head", "--no-recurse-submodules"),
            *(str(self.repo), f"+{theirs}:{ours}"),
        )

    def _prepare(self, objects: str = "") -> None:
        """A clone with our settings, whatever a worker without a sandbox did to them.

        `objects` is the `_hash`, where it is known.
        """
        config, objects_dir = self.git.git_dir / "config", self.git.git_dir / "objects"
        if objects_dir.is_dir() and config.is_file() and config.read_bytes() in CONFIGS.values():
            return  # threads would take each other's new file away
        objects = objects or self._hash()
        self.git.git_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        config.unlink(missing_ok=True)
        option = f"--object-format={objects}"
        self.git.run("init", "--quiet", "--bare", "--template=", option)
        replace(config, CONFIGS[objects])  # last: git may be killed in the middle of `init`

    def _hash(self) -> str:
        """What names the objects of the user's repository: "sha1" or "sha256".

        Asked before what may take long: it ends soon where what git reads there never does.
        """
        if not (self.repo / ".git").exists():
            return "sha1"
        user = users_git(self.user_git_dir(), self.git.binary)
        return _line(user.run("rev-parse", "--show-object-format"))

    def resolve(self, name: str) -> str:
        """The commit that a name means; raises GitFailed for none."""
        return _line(self.git.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"))

    def tree_of(self, commit: str) -> str:
        """The tree of a commit."""
        return _line(self.git.run("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}"))

    def branch(self, name: str, commit: str, before: str = "") -> None:
        """Let a branch of the clone point to a commit; with `before` only where it was there."""
        expected = (before,) if before else ()
        self.git.run("update-ref", f"{BRANCHES}{name}", commit, *expected)

    def branch_at(self, name: str) -> str | None:
        """The commit of a branch of the clone; None where there is none."""
        found = self.git.run("rev-parse", "--verify", "--quiet", f"{BRANCHES}{name}", accept=(0, 1))
        return _line(found) or None

    # -- folders --------------------------------------------------------------------------------

    def check_out(self, folder: Path, commit: str) -> None:
        """A new work tree at a commit, on no branch; its parent exists."""
        self._prepare()
        self.git.run("worktree", "prune")
        twice = ("--force", "--force")  # a git that was killed has left its own locked
        self.git.run("worktree", "add", "--quiet", "--detach", *twice, str(folder), commit)

    def remove(self, folder: Path) -> None:
        """Take a work tree away, whatever is in it."""
        remove_tree(folder)
        self.git.run("worktree", "prune")

    def carry_over(self, folder: Path, paths: Iterable[str]) -> None:
        """Make files of a work tree as they are in the user's own, deleted ones deleted.

        Symbolic links are made again and never followed, on either side.
        """
        wanted = sorted(paths)
        with SafeFolder(self.repo) as source, SafeFolder(folder) as target:
            for path in reversed(wanted):  # room is made before it is used
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
        """A commit of the first parent with these files as they are in a folder.

        Files that are not there are deleted. `at` is a UTC time, ISO 8601; `tree` stands in for
        that of the first parent. Nothing is checked out or changed but the clone's objects.
        Raises UsageError (`in-submodule`) for a file of a submodule, which would take its place,
        and (`filtered-file`) for one that a filter has to rewrite, as of Git LFS.
        """
        self._prepare()
        wanted = set(paths)
        self._refuse_submodules(wanted, tree or parents[0])
        rules = {path for path in wanted if path.rpartition("/")[2] == ".gitattributes"}
        with _room(self.git.git_dir) as room:
            env = {"GIT_INDEX_FILE": f"{room}/index", "GIT_WORK_TREE": str(room)}
            self.git.run("read-tree", tree or parents[0], env=env)
            self._put(folder, rules, room, env)
            # What a worker left at these names might be a pipe; these files are of the commit.
            output = self.git.run("ls-files", "-z", ":(glob)**/.gitattributes", env=env, cwd=room)
            self.git.run("checkout-index", "-z", "--stdin", stdin=output, env=env, cwd=room)
            self._refuse_filtered(folder, wanted, room, env)
            self._put(folder, wanted - rules, room, env)
            made = _line(self.git.run("write-tree", env=env))
        return self.commit_tree(made, parents=parents, message=message, author=author, at=at)

    def commit_tree(
        self, tree: str, *, parents: tuple[str, ...], message: str, author: Identity, at: str
    ) -> str:
        """A commit of a whole tree."""
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
        """Where a commit or tree has other repositories."""
        lines = self.git.run("ls-tree", "-r", "-z", tree).split(b"\0")
        return [to_text(line.partition(b"\t")[2]) for line in lines if line.startswith(b"160000 ")]

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
        """Files that a program of the user's has to rewrite: theirs would be other content."""
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
        """The tree without a file, which is among the clone's objects from now on."""
        self._prepare()
        return _line(self.git.run("mktree"))

    def sweep(self) -> None:
        """Remove what processes that were killed had under way, unless others work here now.

        Whoever asks has the clone for itself: what git has locked there was left so.
        """
        sweep(self.git.git_dir)
        for locked in ("packed-refs.lock", "shallow.lock", "refs/**/*.lock", "worktrees/*/locked"):
            for left in self.git.git_dir.glob(locked):
                left.unlink(missing_ok=True)

    def _put(self, folder: Path, paths: Iterable[str], room: Path, env: Mapping[str, str]) -> None:
        """Bring an index to what these files are in a folder; `room` has the attributes."""
        lines = b"".join(self._entries(folder, paths, room, env))
        self.git.run("update-index", "-z", "--index-info", stdin=lines, env=env)

    def _entries(
        self, folder: Path, paths: Iterable[str], room: Path, env: Mapping[str, str]
    ) -> Iterable[bytes]:
        """A line for the index per file: its mode and content, or that it is gone."""
        with SafeFolder(folder) as tree:
            for path in sorted(paths):
                entry = tree.read(path)
                if entry is None:
                    none = b"0" * len(self.empty_tree())
                    yield b"0 " + none + b"\t" + to_bytes(path) + b"\0"
                    continue
                mode, content = entry
                # With the path, so that line ends become what the repository's attributes say.
                how = () if mode == "120000" else (f"--path={path}",)
                argv = ("hash-object", "-w", *how, "--stdin")
                blob = _line(self.git.run(*argv, stdin=content, env=env, cwd=room))
                yield f"{mode} {blob}\t".encode() + to_bytes(path) + b"\0"

    def with_files(self, tree: str, files: Mapping[str, bytes | None]) -> str:
        """The tree of a commit with other contents of these files; None takes one away."""
        modes = self.modes(tree)
        none = b"0 " + b"0" * len(self.empty_tree()) + b"\t"
        wanted = []
        for path, content in files.items():
            if content is None:
                wanted.append(none + to_bytes(path) + b"\0")
                continue
            blob = _line(self.git.run("hash-object", "-w", "--stdin", stdin=content))
            mode = modes.get(path, "100644")
            wanted.append(f"{mode} {blob}\t".encode() + to_bytes(path) + b"\0")
        with _room(self.git.git_dir) as room:
            env = {"GIT_INDEX_FILE": f"{room}/index"}
            self.git.run("read-tree", tree, env=env)
            self.git.run("update-index", "-z", "--index-info", stdin=b"".join(wanted), env=env)
            return _line(self.git.run("write-tree", env=env))

    def modes(self, tree: str) -> dict[str, str]:
        """Every path of a commit with its mode."""
        lines = self.git.run("ls-tree", "-r", "-z", tree).split(b"\0")
        rows = (line.partition(b"\t") for line in lines if line)
        return {to_text(path): facts.split(b" ")[0].decode() for facts, _, path in rows}

    def merge(self, ours: str, theirs: str) -> MergedTree:
        """The tree in which both commits come together; no work tree is touched."""
        self._prepare()
        out = self.git.run(
            *("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"),
            *(ours, theirs),
            accept=(0, 1),
        )
        tree, *names = out.split(b"\0")
        return MergedTree(tree.decode(), tuple(sorted({to_text(name) for name in names if name})))

    def changed(self, before: str, after: str) -> tuple[str, ...]:
        """Paths that differ between two commits or trees."""
        out = self.git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after)
        return tuple(to_text(name) for name in out.split(b"\0") if name)

    def read(self, tree: str, path: str) -> bytes:
        """A file of a commit or tree; empty where there is none."""
        return self.git.run("cat-file", "blob", f"{tree}:{path}", accept=(0, 128))

    def contains(self, commit: str, ancestor: str) -> bool:
        """Whether a commit has another one behind it, or is it."""
        return self.base(ancestor, commit) == ancestor

    def base(self, one: str, other: str) -> str:
        """The latest commit that is behind both; "" for none."""
        return _line(self.git.run("merge-base", one, other, accept=(0, 1)))

    # -- the user's repository ------------------------------------------------------------------

    def publish(self, commit: str, branch: str, *, replaces: str | None = None) -> None:
        """Put a commit into the user's repository as a branch, which is not checked out.

        A branch of that name that is there is only moved from the commit `replaces`. Raises
        UsageError (`branch-exists`, `branch-name`).
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

        No `git fetch` does this there: it obeys settings of that repository which name commands
        (`url.*.insteadOf` with `core.sshCommand`, `core.alternateRefsCommand`, a promisor).
        """
        shared = self._shared()
        revs = "\n".join([commit, *(f"^{known}" for known in self._known_to_both())])
        with _room(self.git.git_dir) as room:
            self.git.run("pack-objects", "--quiet", "--revs", f"{room}/new", stdin=revs.encode())
            (made,) = room.glob("*.pack")
            with made.open("rb") as stream:
                self.git.run(
                    *("-c", f"core.sharedRepository={shared}", "unpack-objects", "-q"),
                    stdin=stream,
                    env={"GIT_OBJECT_DIRECTORY": str(self._user_common_dir() / "objects")},
                    umask=-1,
                )

    def _known_to_both(self) -> list[str]:
        """What references of the user's repository point to, as far as the clone has it."""
        user = users_git(self.user_git_dir(), self.git.binary)
        ids = user.run("for-each-ref", "--format=%(objectname)")
        ids += user.run("rev-parse", "--verify", "--quiet", "HEAD", accept=(0, 1))
        output = self.git.run("cat-file", "--batch-check=%(objectname)", stdin=ids).decode()
        return sorted({line for line in output.splitlines() if not line.endswith(" missing")})

    def _shared(self) -> str:
        """Who else is to read new objects of the user's repository, as its settings say."""
        options = ("--file", str(self._user_common_dir() / "config"), "--no-includes")
        git = users_git(self.git.git_dir, self.git.binary)
        out = git.run("config", *options, "--get", "core.sharedRepository", accept=(0, 1))
        return _line(out) or "umask"

    def check_branch(self, branch: str, *allowed: str | None) -> str:
        """The commit of a branch of the user's; "" for none.

        Raises UsageError: `branch-name` for what no branch can be called, `branch-exists` where it
        is at none of the `allowed` commits.
        """
        name = f"{BRANCHES}{branch}"
        if branch.startswith("-") or not _is_ref(self.git, name):
            raise BadBranchName(f'"{branch}" cannot be the name of a branch.')
        user = users_git(self.user_git_dir(), self.git.binary)
        there = _line(user.run("rev-parse", "--verify", "--quiet", name, accept=(0, 1)))
        if there and there not in allowed:
            raise BranchExists(
                f"There is a branch {branch} already.",
                remedy="name another branch",
            )
        return there

    def user_git_dir(self) -> Path:
        """Where git keeps what is of the user's checkout; nothing is run."""
        return git_dir_of(self.repo)

    def _user_common_dir(self) -> Path:
        """Where the objects are: for a linked work tree that of its repository."""
        own = self.user_git_dir()
        pointer = own / "commondir"
        return (own / pointer.read_text().strip()).resolve() if pointer.is_file() else own


def _is_ref(git: Git, name: str) -> bool:
    try:
        git.run("check-ref-format", name)
    except GitFailed:
        return False
    return True


def remove_tree(folder: Path) -> None:
    """Remove a folder, also where a worker took permissions away from what is in it."""
    for top, names, _ in os.walk(folder):
        for name in names:
            place = Path(top) / name
            if not place.is_symlink():
                place.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _line(out: bytes) -> str:
    return out.decode("utf-8", "replace").strip()
