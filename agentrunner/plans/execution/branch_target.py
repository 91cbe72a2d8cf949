"""Executing a plan on a git repository: work trees of a private clone, merged into a branch."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.discovery.candidates import detect_tests
from agentrunner.discovery.set_up import not_taken_along
from agentrunner.engine import attempts
from agentrunner.errors import AgentRunnerError
from agentrunner.errors.repositories import GitFailed
from agentrunner.execution.credentials import secrets_in
from agentrunner.git.private_clone import BRANCHES, CloneStore
from agentrunner.plans.execution.branch import BRANCH, Publisher, begin
from agentrunner.plans.execution.commit_message import DEFAULT_TEMPLATE
from agentrunner.plans.execution.delivery import Delivered, Delivery
from agentrunner.plans.execution.forge.pull_request import TaskReport, request_body, request_title
from agentrunner.plans.execution.instructions import PlanInstructions
from agentrunner.plans.execution.merging.merge_checks import MergedTests
from agentrunner.plans.execution.preflight import done_in_place, make_repository
from agentrunner.plans.execution.task_runs import TaskRunStore
from agentrunner.plans.execution.task_spec import criteria_of
from agentrunner.plans.execution.workspaces import Workspaces, WorkTrees
from agentrunner.plans.plan import Plan, PlanTaskStatus
from agentrunner.plans.store import PlanStore
from agentrunner.storage.plan_folder import PlanFolder
from agentrunner.storage.run_folder import RunFolder
from agentrunner.text.redaction import Redactor
from agentrunner.text.unicode import to_text
from agentrunner.verification.evidence.checks import is_executable

UNPROVEN = "No test command and no check of a criterion: nothing of the plan proves its merges."


class BranchTarget:
    """A plan on a branch of a git repository; see `PlanTarget`."""

    def __init__(
        self,
        order: PlanInstructions,
        folder: PlanFolder,
        clone: CloneStore,
        store: PlanStore,
        task_runs: TaskRunStore,
        emit: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._order, self._folder, self._clone = order, folder, clone
        self._store, self._task_runs, self._emit = store, task_runs, emit
        self._publisher = Publisher(clone, folder, store.load().goal)
        self._template = order.settings.message or DEFAULT_TEMPLATE
        self.most = order.parallel
        self.unpublished = False

    async def begin(self, plan: Plan, spec: TaskSpec) -> list[str]:
        order, clone = self._order, self._clone
        identity = order.settings.identity
        self._author = await asyncio.to_thread(identity, clone, order.options.environ)
        self._tests = MergedTests(
            clone,
            self._folder.root / "merged",
            spec,
            state_dir=order.options.state_dir,
            environ=order.options.environ,
            living=lambda: self._store.load().tasks,
        )
        self._delivery = Delivery(
            clone,
            self._publisher.publish,
            order.wishes,
            author=self._author,
            environ=order.options.environ,
            template=self._template,
            tests=self._tests,
        )
        self._workspaces = WorkTrees(
            clone,
            self._task_runs,
            order.options.state_dir,
            self._author,
            order.options.clock,
            self._tests,
            self._template,
        )
        messages = await asyncio.to_thread(self._begin_branch, plan, spec.runner.note.dir)
        await self._sweep(plan)
        return messages + await asyncio.to_thread(advice, clone, spec, plan)

    def _begin_branch(self, plan: Plan, note_dir: str) -> list[str]:
        order, clone, folder = self._order, self._clone, self._folder
        at, made = order.options.clock.stamp(), list[str]()
        clone.sweep()
        if order.git_init:
            made = make_repository(clone, folder, note_dir, author=self._author, at=at)
        self._delivery.check(self._publisher.published.name)
        return made + begin(
            clone,
            folder,
            include_uncommitted=order.include_uncommitted,
            note_dir=note_dir,
            author=self._author,
            at=at,
            done=done_in_place(plan, self._task_runs),
        )

    async def _sweep(self, plan: Plan) -> None:
        """Remove work trees that no task needs any more."""
        for task_run in self._task_runs.all():
            latest = self._task_runs.latest(task_run.task_id)
            task = plan.tasks.get(task_run.task_id)
            over = task is None or task.status == PlanTaskStatus.COMPLETE or task_run != latest
            if over and self._workspaces.folder(task_run).exists():
                await self._workspaces.close(task_run)

    @property
    def workspaces(self) -> Workspaces:
        return self._workspaces

    def publish(self) -> None:
        head = self._clone.branch_at(BRANCH)
        landed = any(t.status == PlanTaskStatus.COMPLETE for t in self._store.load().tasks.values())
        if self._order.wishes.squash:
            return  # at the end, as one commit
        if head is None or not landed:
            return
        try:
            if self._publisher.has(head):
                self.unpublished = False  # the branch was missing for a moment
                return
            name = self._publisher.publish(head)
        except (AgentRunnerError, OSError) as trouble:  # also where the repository is unavailable
            error = trouble if isinstance(trouble, AgentRunnerError) else GitFailed(str(trouble))
            self._emit({"event": "warning", "code": error.code, "message": error.in_one_text})
            self.unpublished = True
            return
        self.unpublished = False
        self._emit({"event": "plan_published", "branch": name, "commit": head})

    async def deliver(self, plan: Plan, questions: list[str]) -> Delivered | None:
        """Raises what `Delivery.deliver` does."""
        if not self._order.wishes.any:
            return None
        options = self._order.options
        redact = Redactor(secrets_in(options.environ)).redact
        reports = await reports_of(options.state_dir, self._task_runs, plan)
        body = request_body(plan, reports, questions, redact)
        delivered = await self._delivery.deliver(request_title(plan, redact), body)
        self._emit({"event": "plan_delivered", **asdict(delivered)})
        return delivered

    def result(self) -> Delivered:
        published = self._publisher.published
        return Delivered(published.name if published.commit else None, published.commit or None)


async def reports_of(state_dir: Path, task_runs: TaskRunStore, plan: Plan) -> dict[str, TaskReport]:
    """Return the reports of COMPLETE tasks, by task; of a run that is gone only its id."""
    found = {}
    for task_id in plan.task_order():
        task_run = task_runs.latest(task_id)
        if task_run is None or plan.tasks[task_id].status != PlanTaskStatus.COMPLETE:
            continue
        found[task_id] = TaskReport(task_run.run_id)
        with contextlib.suppress(AgentRunnerError, OSError):
            found[task_id] = await _report(state_dir, task_run.run_id)
    return found


async def _report(state_dir: Path, run_id: str) -> TaskReport:
    state = await attempts.latest(RunFolder.open(state_dir, run_id))
    verdict, evidence = state.get("verdict"), state.get("evidence")
    return TaskReport(
        run_id,
        verdict.text if verdict else "",
        tuple(evidence.proof) if evidence else (),
        len(evidence.changed_files) if evidence else 0,
    )


def advice(clone: CloneStore, spec: TaskSpec, plan: Plan) -> list[str]:
    """Return sentences for a person; `spec` is any task of the plan, whose branch exists.

    Blocks.
    """
    messages = unproven(clone.repo, spec, plan)
    if spec.task.setup is None:
        head = clone.resolve(f"{BRANCHES}{BRANCH}")
        out = clone.git.run("ls-tree", "-z", "--name-only", head)
        present = {to_text(name) for name in out.split(b"\0")}
        messages += not_taken_along(clone.repo, present, "--setup {}")
    return messages


def unproven(repo: Path, spec: TaskSpec, plan: Plan) -> list[str]:
    """Return a notice where no test or check of the plan runs on a merged tree."""
    test = spec.task.test
    texts = [text for task in plan.tasks for text in plan.design_of(task).acceptance_criteria]
    if test or any(is_executable(criterion.check, test) for criterion in criteria_of(texts)):
        return []
    found = detect_tests(repo)
    if found is None:
        return [UNPROVEN]
    return [f"{UNPROVEN} --test {shlex.quote(found.command)} would ({found.where})."]
