"""Delivers a plan's result: a branch in the user's repository, and more on request.

The checked-out tree is never touched. Branches only move from where this code put them before, so
that nobody's work is lost. Each step records beforehand what it is about to do: after a process is
killed, the next one finds the step done or does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from msgspec import Struct

from agentrunner.errors import TaskFailed
from agentrunner.errors.plans import OntoConflict, OntoRed
from agentrunner.errors.repositories import UnknownBranch
from agentrunner.git.private_clone import BRANCHES, CloneStore, Identity
from agentrunner.git.push import push, push_environment
from agentrunner.git.user_repository import UserRepository
from agentrunner.plans.execution.branch import BRANCH, check_not_checked_out
from agentrunner.plans.execution.commit_message import DEFAULT_TEMPLATE, commit_message
from agentrunner.plans.execution.forge.pull_request import (
    PullRequest,
    RequestDraft,
    forge_of,
    open_request,
)
from agentrunner.plans.execution.forge.remote import PUSH_USER, Remote, remote_of
from agentrunner.plans.execution.merging.merge_queue import TreeTests
from agentrunner.storage.failpoints import reach

PUSHED = "refs/agentrunner/pushed/"
"""Prefix of references to commits that a branch on a server was about to be moved to."""


class DeliveryOptions(Struct, frozen=True):
    """What a user wants of a plan's result, beside its branch."""

    squash: bool = False
    """Whether to make one commit for all of the plan."""
    onto: str = ""
    """A branch of theirs that it is merged into; with `request` the target of the request."""
    request: bool = False
    """Whether to push, and open a pull or merge request."""

    @property
    def any(self) -> bool:
        """Whether more than the branch is wanted."""
        return self.squash or bool(self.onto) or self.request


@dataclass(frozen=True)
class Delivered:
    """Where the work of a plan is; None for what does not exist."""

    branch: str | None = None
    commit: str | None = None
    """The commit of the branch."""
    onto: str | None = None
    """The branch that it was merged into; "" where none was requested."""
    request: str | None = None
    """The address of the pull or merge request."""


class Delivery:
    """Delivers the result of one plan."""

    def __init__(
        self,
        clone: CloneStore,
        publish: Callable[[str], str],
        wishes: DeliveryOptions,
        *,
        author: Identity,
        environ: Mapping[str, str],
        tests: TreeTests,
        template: str = DEFAULT_TEMPLATE,
    ) -> None:
        """`publish` moves the user's branch to a commit of the clone and returns its name."""
        self._clone, self._publish, self._wishes = clone, publish, wishes
        self._author, self._environ, self._template = author, environ, template
        self._tests = tests
        self._user = UserRepository(clone.repo, environ)

    def check(self, branch: str) -> None:
        """Check for anything that would prevent the delivery, before anything is spent.

        `branch` is the name that the plan's branch will have.

        Raises UsageError (`branch-checked-out`, `unknown-branch`, `forge-unknown`) and InfraError
        (`forge-token`, `forge-missing`). Blocks.
        """
        if self._wishes.request:
            forge_of(self._remote())
        elif self._wishes.onto:
            self._target(branch)

    async def deliver(self, title: str, body: str) -> Delivered:
        """Deliver all that was requested; a second call changes nothing.

        Raises what `check` does, UsageError (`branch-exists`), TaskFailed (`onto-conflict`,
        `onto-red`), and InfraError (`push-failed`, `forge-refused`, `forge-unavailable`).
        """
        wishes = self._wishes
        head = self._clone.resolve(f"{BRANCHES}{BRANCH}")
        base = self._clone.base(self._clone.fetch(), head)
        commit = await asyncio.to_thread(self._result, base, head, title)
        branch = await asyncio.to_thread(self._publish, commit)
        if commit == base:
            return Delivered(branch, commit, onto="")
        if wishes.request:
            request = await asyncio.to_thread(self._request, branch, commit, title, body)
            return Delivered(branch, commit, onto="", request=request.url)
        if wishes.onto:
            await self._bring_onto(branch, commit)
        return Delivered(branch, commit, onto=wishes.onto)

    def _result(self, base: str, head: str, title: str) -> str:
        if not self._wishes.squash or head == base or not base:
            return head
        return self._clone.commit_tree(
            self._clone.tree_of(head),
            parents=(base,),
            message=commit_message(self._template, title=title),
            author=self._author,
            at=self._time_of(head),
        )

    def _time_of(self, commit: str) -> str:
        return self._clone.git.run("log", "-1", "--format=%aI", commit).decode().strip()

    # -- onto another branch --------------------------------------------------------------------

    def _target(self, branch: str) -> str:
        """Return where the other branch is; raise UsageError where it cannot be moved."""
        name = self._wishes.onto
        there = self._user.branch_at(name)
        if there is None:
            raise UnknownBranch(
                f"There is no branch {name}.",
                path="--onto",
                remedy=f"git branch {name}",
            )
        remedy = f"without --onto, then: git merge {branch}"
        check_not_checked_out(self._user, name, "--onto", remedy)
        return there

    async def _bring_onto(self, branch: str, commit: str) -> None:
        there = await asyncio.to_thread(self._target, branch)
        name = self._wishes.onto
        await asyncio.to_thread(self._clone.fetch_branch, name)
        made, merged = await asyncio.to_thread(self._joined, there, branch, commit)
        if merged:
            verdict = await self._tests.joined(made, there, commit)
            if verdict.evidence:
                why = f"Tests or checks fail on {name} with it."
                raise self._cannot(branch, why, verdict.evidence, error=OntoRed)
        await asyncio.to_thread(self._clone.publish, made, name, replaces=there)

    def _joined(self, there: str, branch: str, commit: str) -> tuple[str, bool]:
        """Return the other branch's new commit, and whether a merge was needed."""
        if self._clone.contains(there, commit):
            return there, False
        if self._clone.contains(commit, there):
            return commit, False
        merged = self._clone.merge(there, commit)
        if merged.conflicts:
            names = ", ".join(merged.conflicts[:10])
            why = f"It conflicts with {self._wishes.onto}."
            raise self._cannot(branch, why, names, error=OntoConflict)
        message = f"Merge branch '{branch}' into {self._wishes.onto}\n"
        made = self._clone.commit_tree(
            merged.tree,
            parents=(there, commit),
            message=message,
            author=self._author,
            at=self._time_of(commit),
        )
        return made, True

    def _cannot(
        self, branch: str, why: str, evidence: str, *, error: type[TaskFailed]
    ) -> TaskFailed:
        return error(
            f"The plan's result was not brought onto {self._wishes.onto}. {why}",
            path="--onto",
            details=(("evidence", evidence[:4000]),),
            remedy=f"git switch {self._wishes.onto} && git merge {branch}",
        )

    # -- a request ------------------------------------------------------------------------------

    def _remote(self) -> Remote:
        return remote_of(self._user.remote(), self._environ)

    def _request(self, branch: str, commit: str, title: str, body: str) -> PullRequest:
        remote = self._remote()
        key = f"{remote.project}/{branch}"
        _record_push(self._clone, key, commit)
        push(
            self._clone,
            remote.address,
            commit,
            branch,
            ours=_pushed_commits(self._clone, key),
            env=push_environment(
                self._environ, remote.origin, PUSH_USER[remote.kind], remote.token
            ),
        )
        reach("push_after")
        return open_request(remote, RequestDraft(branch, self._wishes.onto, title, body))


def _pushed_commits(clone: CloneStore, key: str) -> list[str]:
    """Return commits that a server's branch may be at because this code pushed them."""
    out = clone.git.run("for-each-ref", "--format=%(objectname)", f"{PUSHED}{key}/")
    return out.decode().split()


def _record_push(clone: CloneStore, key: str, commit: str) -> None:
    """Record a commit before a branch is pushed to it."""
    clone.git.run("update-ref", f"{PUSHED}{key}/{commit}", commit)
