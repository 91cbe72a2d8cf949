"""Errors of plans, and of the requests that they end in."""

from __future__ import annotations

from agentrunner.errors.error import AgentRunnerError, InfraError, TaskFailed, UsageError


class BadCommitAuthor(UsageError):
    """The author of a plan's commits is no name with an address.

    `agentrunner plan run --author "NAME <EMAIL>"`; `--author ''` takes the one of
    your git settings again.
    """

    code = "commit-author"


class BadCommitMessage(UsageError):
    """The template of a plan's commit messages cannot be rendered, or comes to nothing.

    Its names are `title`, `proof` (a list), `task_id` and `run_id`; see
    [the result of a plan](../how-to/plan-run.md#where-the-result-goes).
    `agentrunner plan run --commit-message ''` takes the built-in one again.
    """

    code = "commit-message"


class BadExportFolder(UsageError):
    """`plan export` writes a folder of its own. The one that was named holds something else,
    which is never touched, or an earlier export, which is only replaced with `--force`.

    Name a new or empty folder, or add `--force` for an earlier export.
    """

    code = "export-folder"


class ForgePackagesMissing(InfraError):
    """Pull and merge requests need githubkit and python-gitlab, which are not installed.

    In AgentRunner's folder: `uv tool install '.[forge]'` or `pip install '.[forge]'`.
    See `docs/how-to/install.md`.
    """

    code = "forge-missing"


class ForgeRequestRefused(InfraError):
    """The forge will not open the request: the token has no right to, the project is not there
    for it, or the branch it is to go into is none.

    Give the token the right to read the project and to open requests. The plan is
    done and its branch is pushed: `agentrunner plan run --pr` tries again, and by hand it can be
    opened, too.
    """

    code = "forge-refused"


class ForgeTokenMissing(InfraError):
    """`--pr` needs a token of the forge that `origin` is on, and the environment has none.

    `export GITHUB_TOKEN=…` (or `GH_TOKEN`), or `GITLAB_TOKEN`, with the right to push and to
    open requests. It is used on this machine alone: no worker and no sandbox gets it.
    """

    code = "forge-token"


class ForgeUnavailable(InfraError):
    """The forge answered three times with errors, or not at all.

    `agentrunner plan run --pr` once it is back. It looks for an open request of
    the branch first, so that none is opened twice.
    """

    passes = True


class UnknownForge(UsageError):
    """The remote `origin` is no address of a project on GitHub or GitLab, or nothing says which
    of them its server is. A token is sent to github.com and gitlab.com, and to a server of your
    own that the environment names, over https or ssh; to no other.

    `git remote set-url origin …`. For a server of your own: `export
    GITHUB_SERVER_URL=https://HOST` (or `GH_HOST`, `GITHUB_API_URL`), or `CI_SERVER_URL` (or
    `GITLAB_HOST`).
    """

    code = "forge-unknown"


class NotInPlace(UsageError):
    """`plan run --in-place` works in the folder itself, and is for folders without git. Here is
    a git repository, or the plan has begun on a branch: half of it would be on the branch, and
    half only in the folder.

    `agentrunner plan run` without `--in-place`. Where the folder is no repository any
    more, `agentrunner plan run --git-init` makes it one and continues with the plan's branch.
    """

    code = "in-place"


class NoPlan(UsageError):
    """This repository has no plan yet.

    `agentrunner plan "what you want"` makes one.
    """


class NoProposal(UsageError):
    """No proposal waits to be accepted: none was made, it was applied already or refused, a
    newer one took its place, or the plan was changed since. What was shown is applied exactly,
    or not at all.

    Say again what you want: `agentrunner plan "…"` makes a proposal for the plan as
    it is now.
    """


class NothingToUndo(UsageError):
    """The plan has no change that could be taken back, or the change is older than the 100
    latest versions, which are all that is kept whole.

    Say what should be different: `agentrunner plan "…"`.
    """


class OntoConflict(TaskFailed):
    """The plan is done and its branch is there, but it and the branch of `--onto` changed the
    same lines. That branch is where it was.

    Merge the plan's branch by hand (`git merge`), resolve what both changed, run the tests and
    commit. Nothing of the plan has to be repeated: its branch holds the finished work.
    """


class OntoRed(TaskFailed):
    """The plan is done and its branch is there, but merged with the branch of `--onto` tests
    fail that did not fail there before, or checks of the plan's tasks are red that are green on
    the plan's branch. The branch of `--onto` is where it was.

    Merge by hand and look at what fails; the message names it, with the end of its
    output.
    """


class BadPatch(AgentRunnerError):
    """A change of the plan cannot be carried out as a whole, so nothing of it was: it names
    what is not there, makes a circle, or takes away or moves a task that is being worked on.
    Each operation that is in the way is named. A planner is told and fixes its patch; you see
    this where a task was begun after the change was proposed.

    Say again what you want: `agentrunner plan "…"`. A task that is being worked on can
    be taken away when it has ended, or with `agentrunner plan undo --force`.
    """

    code = "patch-rejected"


class PlanAtWork(UsageError):
    """`plan import` takes another plan in place of this one, and a task of this one is being
    worked on.

    Wait until it ends (`agentrunner plan status`).
    """


class PlanConflict(AgentRunnerError):
    """Somebody else changed the plan after it was read for this change. Who and with which
    words is told. Nothing was changed.

    Look at it with `agentrunner plan`, and say again what you want. In a conversation
    the planner is asked again by itself, about the plan as it is now.
    """

    exit_code = 2


class PlanDamaged(UsageError):
    """The file of the plan, or of its settings, is none, or of another version of AgentRunner.
    It was not touched.

    Move it away, and bring the plan back from what `agentrunner plan export` wrote, by
    `agentrunner plan import FOLDER`; or use the AgentRunner that wrote it.
    """


class BadPlanFiles(UsageError):
    """The folder does not hold the files of a plan: one is missing, is no JSON, or contradicts
    another. Nothing was changed.

    `agentrunner plan export FOLDER` writes such files. The message names the file and
    what is wrong with it.
    """

    code = "plan-files"


class PushFailed(InfraError):
    """The plan's branch could not be pushed: the server refused the token or the branch, or
    cannot be reached. It is in your repository all the same.

    Look at what git said, in the message; then `agentrunner plan run --pr` again.
    """

    passes = True


class UnknownPlan(UsageError):
    """This repository has no plan of that name beside the current one; each repository has
    plans of its own.

    `agentrunner plan list --all` shows their names, also of those that are archived.
    """


class UnknownQuestion(UsageError):
    """There is no open question of this number, or the task has none: it was answered already,
    or never asked.

    `agentrunner plan` shows the open questions with their numbers.
    """


class UnknownTask(UsageError):
    """The plan has no task of this id. Ids are given once and never again: a task that was
    deleted keeps its own, and an undo that brings the task back brings the id back.

    `agentrunner plan` shows the tree with all ids.
    """


class WorkChanged(InfraError):
    """Files of a task's work tree were changed after its run was found COMPLETE. What is
    committed must be what was judged.

    `agentrunner diff RUN` shows what was judged. Put the files back, then
    `agentrunner plan run`; or `agentrunner resume RUN` to have it judged as it is now.
    """
