"""What a plan's end comes to: a branch in the user's repository, and further if they asked.

The checked-out tree is never touched. Branches only move from where they were put before, so that
nobody's work is lost, and each step says beforehand what it is about to do: a process that was
killed in between is followed by one that finds it done or does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from agentrunner.conductor.landing import TreeTests
from agentrunner.conductor.message import DEFAULT_TEMPLATE, commit_message
from agentrunner.conductor.pull_request import Request, Wanted, forge_of, open_request
from agentrunner.conductor.remote import PUSH_USER, Remote, remote_of
from agentrunner.errors import TaskFailed, UsageError
from agentrunner.runs.failpoints import reach
from agentrunner.runs.push import push, push_environment
from agentrunner.runs.user_repository import UserRepository
from agentrunner.runs.workspace import BRANCHES, CloneStore, Identity

PUBLISHED, PUSHED = "refs/agentrunner/published/", "refs/agentrunner/pushed/"
"""A reference for each commit that the user's branch and the server's were about to be put at."""


@dataclass(frozen=True)
class Wishes:
    """What a user wants of a plan's result, beside its branch."""

    squash: bool = False
    """One commit for all of the plan."""
    onto: str = ""
    """A branch of theirs that it is brought onto; with `request` the one it is to go into."""
    request: bool = False
    """Whether to push, and open a pull or merge request."""


@dataclass(frozen=True)
class Delivered:
    """Where the result is."""

    branch: str
    commit: str
    """Of the branch."""
    onto: str = ""
    """The branch that it was brought onto; "" for none."""
    request: Request | None = None


class Delivery:
    """Hands over the result of one plan."""

    def __init__(
        self,
        clone: CloneStore,
        branch: str,
        wishes: Wishes,
        *,
        author: Identity,
        environ: Mapping[str, str],
        template: str = DEFAULT_TEMPLATE,
        tests: TreeTests | None = None,
    ) -> None:
        """`branch` is that of the clone, and the name of the user's."""
        self._clone, self._branch, self._wishes = clone, branch, wishes
        self._author, self._environ, self._template = author, environ, template
        self._tests = tests
        self._user = UserRepository(clone.repo, environ)

    def check(self) -> None:
        """Look for what would keep the result from being handed over, before anything is spent.

        Raises UsageError (`branch-exists`, `branch-checked-out`, `unknown-branch`,
        `forge-unknown`) and Surroundings (`forge-token`, `forge-missing`). Blocking.
        """
        self._check_branch(self._branch, *_known(self._clone, PUBLISHED, self._branch))
        wishes = self._wishes
        if wishes.request:
            forge_of(self._remote())
        elif wishes.onto:
            self._target()

    def publish(self) -> None:
        """Put the plan's branch, as it is now, into the user's repository.

        Raises UsageError (`branch-exists`, `branch-checked-out`). Blocking.
        """
        self._publish(self._clone.resolve(f"{BRANCHES}{self._branch}"))

    async def deliver(self, base: str, title: str, body: str) -> Delivered:
        """All that was wished for; once more changes nothing.

        `base` is the commit that the plan began at. Raises what `check` does, TaskFailed
        (`onto-conflict`, `onto-red`), and Surroundings (`push-failed`, `forge-refused`,
        `forge-unavailable`).
        """
        commit = await asyncio.to_thread(self._result, base, title)
        await asyncio.to_thread(self._publish, commit)
        wishes = self._wishes
        if wishes.request and commit != base:
            request = await asyncio.to_thread(self._request, commit, title, body)
            return Delivered(self._branch, commit, request=request)
        if wishes.onto and not wishes.request:
            await self._bring_onto(commit)
        return Delivered(self._branch, commit, onto=wishes.onto * (not wishes.request))

    # -- the branch -----------------------------------------------------------------------------

    def _result(self, base: str, title: str) -> str:
        head = self._clone.resolve(f"{BRANCHES}{self._branch}")
        if not self._wishes.squash or head == base:
            return head
        at = self._clone.git.run("log", "-1", "--format=%aI", head).decode().strip()
        return self._clone.commit_tree(
            self._clone.tree_of(head),
            parents=(base,),
            message=commit_message(self._template, title=title),
            author=self._author,
            at=at,
        )

    def _publish(self, commit: str) -> None:
        known = _known(self._clone, PUBLISHED, self._branch)
        there = self._check_branch(self._branch, commit, *known)
        _remember(self._clone, PUBLISHED, self._branch, commit)
        reach("publish_before_move")
        self._clone.publish(commit, self._branch, replaces=there or None)
        reach("publish_after_move")

    def _check_branch(self, branch: str, *allowed: str) -> str:
        there = self._clone.check_branch(branch, *allowed)
        if branch in self._user.checked_out():
            raise UsageError(
                f"{branch} is checked out in {self._user.checked_out()[branch]}, and AgentRunner"
                " changes no checkout.",
                code="branch-checked-out",
                remedy="git switch -  # to another branch, then agentrunner plan run",
            )
        return there

    # -- onto another branch --------------------------------------------------------------------

    def _target(self) -> str:
        """Where the other branch is; raises UsageError where it cannot be moved."""
        name = self._wishes.onto
        there = self._user.branch_at(name)
        if there is None:
            raise UsageError(
                f"There is no branch {name}.",
                code="unknown-branch",
                path="--onto",
                remedy=f"git branch {name}",
            )
        if name in self._user.checked_out():
            raise UsageError(
                f"{name} is checked out in {self._user.checked_out()[name]}, and AgentRunner"
                " changes no checkout.",
                code="branch-checked-out",
                path="--onto",
                remedy=f"without --onto, then: git merge {self._branch}",
            )
        return there

    async def _bring_onto(self, commit: str) -> None:
        there = await asyncio.to_thread(self._target)
        name = self._wishes.onto
        await asyncio.to_thread(self._clone.fetch_branch, name)
        made, merged = await asyncio.to_thread(self._joined, there, commit)
        if merged and self._tests is not None:
            evidence = await self._tests.newly_red(made, there)
            if evidence:
                raise self._cannot("onto-red", f"The tests fail on {name} with it.", evidence)
        await asyncio.to_thread(self._clone.publish, made, name, replaces=there)

    def _joined(self, there: str, commit: str) -> tuple[str, bool]:
        """The other branch's new commit, and whether it had to be merged."""
        if self._clone.contains(there, commit):
            return there, False
        if self._clone.contains(commit, there):
            return commit, False
        merged = self._clone.merge(there, commit)
        if merged.conflicts:
            names = ", ".join(merged.conflicts[:10])
            name = self._wishes.onto
            raise self._cannot("onto-conflict", f"It conflicts with {name}.", names)
        at = self._clone.git.run("log", "-1", "--format=%aI", commit).decode().strip()
        message = f"Merge branch '{self._branch}' into {self._wishes.onto}\n"
        made = self._clone.commit_tree(
            merged.tree, parents=(there, commit), message=message, author=self._author, at=at
        )
        return made, True

    def _cannot(self, code: str, why: str, evidence: str) -> TaskFailed:
        return TaskFailed(
            f"The plan's result was not brought onto {self._wishes.onto}. {why}",
            code=code,
            path="--onto",
            details=(("evidence", evidence[:4000]),),
            remedy=f"git switch {self._wishes.onto} && git merge {self._branch}",
        )

    # -- a request ------------------------------------------------------------------------------

    def _remote(self) -> Remote:
        return remote_of(self._user.remote(), self._environ)

    def _request(self, commit: str, title: str, body: str) -> Request:
        remote = self._remote()
        key = f"{remote.project}/{self._branch}"
        _remember(self._clone, PUSHED, key, commit)
        push(
            self._clone,
            remote.address,
            commit,
            self._branch,
            ours=_known(self._clone, PUSHED, key),
            env=push_environment(
                self._environ, remote.origin, PUSH_USER[remote.kind], remote.token
            ),
        )
        reach("push_after")
        return open_request(remote, Wanted(self._branch, self._wishes.onto, title, body))


def _known(clone: CloneStore, kind: str, name: str) -> list[str]:
    """Where a branch of somebody else's may be because it was put there from here."""
    out = clone.git.run("for-each-ref", "--format=%(objectname)", f"{kind}{name}/")
    return out.decode().split()


def _remember(clone: CloneStore, kind: str, name: str, commit: str) -> None:
    """Before a branch is put there."""
    clone.git.run("update-ref", f"{kind}{name}/{commit}", commit)
