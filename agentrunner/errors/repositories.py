"""Errors of the repository that is worked on, and of git."""

from __future__ import annotations

from agentrunner.errors.error import InfraError, UsageError
from agentrunner.errors.runs import DiskFull


class GitFailed(InfraError):
    """The private object store that remembers the files before and after each worker could not
    be read or written.

    Look at free space and permissions of the state folder, then `agentrunner
    resume`. Your own `.git` is never used for this.
    """

    code = "snapshot-failed"
    passes = True


class BadRepository(UsageError):
    """The repository is missing, a file, `/`, or your home folder.

    Name the project's folder with `--repo DIR`.
    """

    code = "bad-repo"


class BareRepository(UsageError):
    """The folder is a bare repository, as servers keep them: it has history, and no files to
    work on.

    Clone it and work in the clone: `git clone BARE work`, then `cd work`. The result goes back with
    `git push`. A work tree of it (`git worktree add ../work BRANCH`) does as well.
    """


class BranchCheckedOut(UsageError):
    """A branch that the result is to be put onto is checked out in one of your folders.
    AgentRunner changes no checkout, and to move the branch under it would make its files look
    edited.

    Leave out `--onto` and merge the plan's branch by hand, as the message says;
    or switch that folder to another branch.
    """


class BranchExists(UsageError):
    """The branch that the work is to end in is there already, and it is not the one that this
    run made. It is never moved.

    Rename or delete it, or name another one: `--worktree BRANCH`. Where it came while
    the run was at work, the run is COMPLETE all the same: `agentrunner resume RUN` makes the branch
    once the name is free.

    A plan's branch is only moved from where the plan put it last: in your repository and, with
    `--pr`, on the server. Where somebody moved it or made one of its name, rename or delete
    that one, then `agentrunner plan run`.
    """


class BadBranchName(UsageError):
    """Git admits no branch of that name.

    Name another one; `git check-ref-format --branch NAME` tells.
    """

    code = "branch-name"


class ContentGone(GitFailed):
    """A file had not changed when the run began, so its content was not copied: the repository
    has it. It is gone from there now, or damaged, and the run needs it.

    `git fsck` in the repository says what is missing. Bring the object back from a
    clone or a copy (`git fetch` from where it is), then continue.
    """

    passes = False


class DetachedHead(UsageError):
    """`--commit` commits on the branch that is checked out, and there is none.

    `git switch BRANCH`; or `--worktree`, which makes a branch of its own.
    """


class FilteredFile(UsageError):
    """A file that the run changed is for a filter of `.gitattributes`, as of Git LFS. Git would
    run a program that rewrites it; AgentRunner runs no program that a repository names, and
    commits no other content than git would.

    The work is in the checkout or work tree of the run: `git add` and `git commit` it
    yourself. `agentrunner diff RUN` shows all of it.
    """


class BadGitLink(UsageError):
    """The repository's `.git` is a link or a file that does not lead to a git folder.

    Check out a fresh clone or worktree.
    """

    code = "git-link"


class GitMissing(InfraError):
    """The program `git` is not found. It is used for snapshots, in a store of its own; the
    repository itself need not be one of git.

    Install git (`apt install git`, `dnf install git`, `brew install git`) and see with
    `command -v git` that it is on the PATH of the process that runs `agentrunner`: services
    and cron have a PATH of their own. A git that lies inside the repository is not used.
    """


class GitTimeout(GitFailed):
    """A git command has not ended in its time and was ended: 30 seconds for one that reads
    settings and references of your repository, an hour for any other. Mostly something that git
    reads there never ends: a pipe or a device that `include.path` of `.git/config` names, or a
    file of a server that is away. Nothing is lost.

    `git config --no-includes --list --show-origin` shows which files are included, without
    reading them. Once `git status` answers, run the command again; a run that had begun continues
    with `agentrunner resume`.
    """


class HeadMoved(UsageError):
    """The run is COMPLETE and was to be committed in the checkout, which is at another commit
    or branch than when the run began. What was proven was proven on the old one, so nothing was
    committed. The changes are in the files.

    Commit them by hand after a look; or go back to where the run began, then
    `agentrunner resume RUN`.
    """


class WorkInSubmodule(UsageError):
    """A run changed files of a submodule. A submodule is a repository of its own, of which a
    commit has only the name of a commit: with its files it would be gone. So nothing was
    committed.

    Commit what is wanted in the submodule yourself (`agentrunner diff` shows all that the run
    changed), and have the rest done again; or say in the task that the submodule stays as it
    is.
    """

    code = "in-submodule"


class MergeInProgress(InfraError):
    """A merge, rebase, cherry-pick or revert is not finished in the repository. Its files may
    hold both sides of a conflict, and no test of them would say anything about the work.
    Nothing was spent.

    Finish it or abort it with git, or begin with the last commit:
    `agentrunner run FILE --worktree --clean`.
    """


class NoCommit(UsageError):
    """The repository has no commit yet, so there is nothing that a work tree or a commit could
    begin from.

    Make a first commit, then run it again. For a plan `agentrunner plan run --git-init` makes
    it, of what is there; where you have staged files for it, `git commit -m start`.
    """


class NoRepository(UsageError):
    """A commit, a branch or a work tree outside of the checkout was asked for, and the folder
    is no git repository of its own.

    `git init` and a first commit; or run it without `--worktree` and `--commit`.

    For a plan: `agentrunner plan run --git-init` makes the folder a repository with one commit
    of what is there, `agentrunner plan run --in-place` works in the folder itself, one task
    after another. A folder inside of a repository has no plan of its own there: name the
    repository with `--repo`.
    """


class FolderOutside(UsageError):
    """A working folder (`cwd`) leads out of the repository.

    Name a folder inside it.
    """

    code = "outside-repository"


class PartialClone(UsageError):
    """The repository is a partial clone (`git clone --filter=…`): contents of its commits are
    on a server. A work tree or a commit is made in a private copy of the repository, and
    nothing is fetched for you.

    `git fetch --refetch --no-filter` brings the contents here. Or run in the checkout,
    without `--worktree` and `--commit`.
    """


class ForeignRepository(InfraError):
    """The repository, or its `.git`, belongs to another user. Working in it as you could run
    that user's settings.

    Run as its owner, or work in a clone of your own.
    """

    code = "repo-owner"


class BadWorkFolder(UsageError):
    """The repository is a folder that no sandbox may hold writable: one of the system, your
    home folder or one above it, or one that holds credentials or AgentRunner's state.

    Put the project into a folder of its own.
    """

    code = "repo-path"


class RepositoryClosed(InfraError):
    """The permissions of the repository's folder keep everybody out: a worker, or a command it
    ran, took them away. What the worker did is recorded, and the run continues from there.

    `chmod u+rwx` on the folder, then `agentrunner resume`.
    """


class RepositoryReadOnly(InfraError):
    """The repository's folder cannot be written by you, or its file system is mounted
    read-only. Neither the work nor its note could be kept there. Nothing was spent.

    Make it writable, or work in a clone of your own.
    """


class StagedChanges(UsageError):
    """`--commit` makes a commit in this checkout, and the next one has been begun: the index
    holds changes, or cannot be read (a split index).

    Commit or unstage them (`git restore --staged .`), or use `--worktree`. Where they
    came while the run was at work: after that, `agentrunner resume RUN` makes the commit.
    """


class TooManyFiles(InfraError):
    """The repository's folder holds more files than a snapshot can name within reason: 500,000
    that no ignore rule leaves out. Nothing was changed, and before the first worker nothing was
    spent.

    Name folders of data, caches or builds in `.gitignore` or `.git/info/exclude`, then start
    again. A run that a worker has begun goes by the rules it began with: remove what the worker
    made, then `agentrunner resume`.
    """


class RepositoryGone(InfraError):
    """The folder that the run works in is not there any more: it was removed, renamed, or is on a
    disk that is not mounted.

    Put it back at its place, then continue. `agentrunner diff RUN` has what was done, as a patch;
    `agentrunner cancel RUN` ends the run.
    """


class WorktreeGone(InfraError):
    """The run worked in a private work tree outside of the checkout, and that is gone: somebody
    removed it, or it was a task of a plan, whose work tree is taken away once it is merged, and
    is put aside with the plan.

    `agentrunner diff RUN` still has what was done, as a patch. Start the task again; what a
    plan's task did is on the plan's branch, which `agentrunner plan status` names, and can be
    taken back there (`git revert`). A plan that was put aside goes on after `agentrunner plan
    switch NAME`, with `agentrunner plan run`.
    """


class UncommittedWork(UsageError):
    """Tasks of the plan became COMPLETE in the folder itself (`plan run --in-place`), and now
    it is a git repository. The plan's branch begins at its HEAD, but not all of what is there
    is committed: the branch would say that those tasks are done, and be without their work.

    Commit what they did: `git add -A && git commit -m 'first tasks'`. Or begin with all
    that is there: `agentrunner plan run --include-uncommitted`.
    """


class UnknownBranch(UsageError):
    """There is no branch of that name in your repository to bring the result onto.

    `git branch NAME`, or name one that is there.
    """


class GitDiskFull(DiskFull, GitFailed):
    """Git found no room on the disk."""

    code = DiskFull.code
