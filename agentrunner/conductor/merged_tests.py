"""The plan's tests on a merged tree: a fresh checkout, in a box of the kind the runs work in."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from agentrunner.errors import EnvironmentNotReady
from agentrunner.evidence.box import DecisionBox, Ran, not_ready, why_not_started
from agentrunner.evidence.gather import outcome_of
from agentrunner.graph.workshop import programs
from agentrunner.nodes.credentials import secrets_of
from agentrunner.runs.folder import RunFolder, make_private, write_private
from agentrunner.runs.workspace import CloneStore
from agentrunner.sandboxes.base import BoxSpec, Owner, ResourceLimit
from agentrunner.sandboxes.choose import open_sandbox
from agentrunner.sandboxes.limits import DISK
from agentrunner.task.context import TestOutcome
from agentrunner.task.spec import TaskSpec, TestSpec
from agentrunner.text.redaction import Redactor
from agentrunner.workers.member import make_members

MAX_NAMES = 20


class MergedTests:
    """Runs the test command that all tasks of a plan share, on whole commits of its clone."""

    def __init__(
        self,
        clone: CloneStore,
        folder: Path,
        spec: TaskSpec,
        *,
        state_dir: Path,
        environ: Mapping[str, str],
        box: tuple[str, str] = ("", ""),
    ) -> None:
        """`folder` is the plan's own for this; `spec` any task of the plan.

        `box` are kind and image of the boxes that its runs had (`kept_box`), where known.
        """
        self._clone, self._folder, self._spec = clone, folder, spec
        self._state_dir, self._environ = state_dir, environ
        self._kind, self._image = box
        self._one = asyncio.Lock()

    async def newly_red(self, commit: str, before: str, *, removed: int = 0) -> str:
        """See `TreeTests`; "" where the plan has no test command.

        Raises EnvironmentNotReady where the set-up fails on the commit before as well, and
        Surroundings where there is no box.
        """
        test = self._spec.task.test
        if test is None:
            return ""
        async with self._one:
            was = None
            if test.baseline:
                was = await self._known(before) or await self._first(before, test)
            outcome = await self._known(commit)
            if outcome is None:
                try:
                    outcome = await self._outcome(commit, test, _fewer(was, removed))
                except EnvironmentNotReady as error:
                    if was is None:
                        raise
                    return f"{error.message}\n\n{_details(error)}"
            evidence = compare(was, outcome)
            if not evidence:
                await asyncio.to_thread(self._keep, commit, outcome)
            return evidence

    async def _first(self, commit: str, test: TestSpec) -> TestOutcome:
        """How the tests stand before anything is merged, run once and kept."""
        outcome = await self._outcome(commit, test, None)
        await asyncio.to_thread(self._keep, commit, outcome)
        return outcome

    async def _outcome(
        self, commit: str, test: TestSpec, before: TestOutcome | None
    ) -> TestOutcome:
        """Set-up and tests on a checkout that is taken away again."""
        run = RunFolder(self._folder / "box")
        tree = self._folder / "tree"
        await asyncio.to_thread(self._prepare, run, tree, commit)
        try:
            sandbox = await open_sandbox(
                self._kind or self._spec.runner.sandbox.kind,
                self._box_spec(run, tree),
                self._environ,
                Path(self._environ.get("HOME") or Path.home()),
                state_root=self._state_dir,
            )
            try:
                members = make_members(self._spec)
                redact = Redactor(secrets_of(self._spec, members, self._environ)).redact
                box = DecisionBox(sandbox, tree, run, redact, self._environ)
                await self._set_up(box)
                ran = await box.run(
                    test.command,
                    cwd=test.cwd,
                    timeout_sec=test.timeout_sec,
                    hosts=test.network,
                    name="test",
                )
            finally:
                await sandbox.close()
            return _judged(test, ran, before, tree)
        finally:
            await asyncio.to_thread(self._clone.remove, tree)
            await asyncio.to_thread(shutil.rmtree, run.root, ignore_errors=True)

    def _prepare(self, run: RunFolder, tree: Path, commit: str) -> None:
        """Fresh folders, also where a process that was killed left some."""
        make_private(self._folder)
        self._clone.remove(tree)
        shutil.rmtree(run.root, ignore_errors=True)
        for part in (run.box_dir, run.sock_dir, run.checks_dir):
            make_private(part)
        self._clone.check_out(tree, commit)

    def _box_spec(self, run: RunFolder, tree: Path) -> BoxSpec:
        wanted = self._spec.runner.sandbox
        network = wanted.network
        return BoxSpec(
            repo=tree,
            home=run.box_dir,
            network="full" if network is not None and network.policy == "full" else "none",
            programs=programs(self._spec, ()),
            read_paths=tuple(
                (Path(self._spec.base_dir) / path).resolve() for path in wanted.read_paths
            ),
            image=self._image or self._spec.runner.worker.docker_image or "",
            image_from=tree / wanted.image_from if wanted.image_from else None,
            worker_kind=self._spec.runner.worker.kind,
            pull="never",
            limits=ResourceLimit(
                cpus=wanted.cpus, memory=wanted.memory, pids=wanted.pids, disk=wanted.disk or DISK
            ),
            sockets=run.sock_dir,
            owner=Owner(self._folder.parent.name, "merged"),
        )

    async def _set_up(self, box: DecisionBox) -> None:
        setup = self._spec.task.setup
        if setup is None:
            return
        network = self._spec.runner.sandbox.network
        full: Literal["none", "full"] = (
            "full" if network is not None and network.policy == "full" else "none"
        )
        ran = await box.run(
            setup.command,
            timeout_sec=setup.timeout_sec,
            network=full,
            hosts=setup.network,
            name="setup",
        )
        if ran.exit_code != 0:
            why = (ran.tail.strip().splitlines() or ["no output"])[-1]
            raise not_ready(setup.command, ran, why, box.describe(), what="The set-up command")

    # -- what is known --------------------------------------------------------------------------

    async def _known(self, commit: str) -> TestOutcome | None:
        return await asyncio.to_thread(self._read, commit)

    def _read(self, commit: str) -> TestOutcome | None:
        try:
            return TestOutcome.model_validate_json(self._file(commit).read_bytes())
        except (OSError, ValidationError):
            return None

    def _keep(self, commit: str, outcome: TestOutcome) -> None:
        make_private(self._file(commit).parent)
        kept = outcome.model_copy(update={"output": None})
        write_private(self._file(commit), kept.model_dump_json().encode())

    def _file(self, commit: str) -> Path:
        """By what is tested and how: the same tree is not tested twice."""
        task = self._spec.task
        asked = [
            self._clone.tree_of(commit),
            task.test.model_dump_json() if task.test else "",
            task.setup.model_dump_json() if task.setup else "",
            self._kind or self._spec.runner.sandbox.kind,
            self._image,
        ]
        name = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]
        return self._folder / "outcomes" / f"{name}.json"


def _judged(test: TestSpec, ran: Ran, before: TestOutcome | None, tree: Path) -> TestOutcome:
    outcome = outcome_of(test, ran, before)
    why = why_not_started(test.command, ran, tree, is_test=True)
    if why and not outcome.finding:
        outcome = outcome.model_copy(update={"finding": why})
    return outcome


def _fewer(was: TestOutcome | None, removed: int) -> TestOutcome | None:
    """What the commit before came to, less tests that a run was allowed to take away."""
    if was is None or was.passed is None or not removed:
        return was
    return was.model_copy(update={"passed": max(0, was.passed - removed)})


def compare(was: TestOutcome | None, now: TestOutcome) -> str:
    """What is red now and was not before, in words; "" for nothing. Pure.

    Where both are red, names and numbers of the failing tests decide; where a runner tells none,
    red is as red as before.
    """
    if now.green:
        return ""
    why = now.finding or f"exits {now.exit_code}"
    if was is None or was.green:
        return _told(now, why, now.failing)
    if was.failed is None and now.failed is None:
        return ""
    fresh = [name for name in now.failing if name not in was.failing]
    fewer = (now.passed or 0) + (now.failed or 0) < (was.passed or 0) + (was.failed or 0)
    if was.failed is None or now.failed is None or fewer:
        return _told(now, why, fresh)
    if fresh or now.failed > was.failed:
        return _told(now, why, fresh)
    return ""


def _told(now: TestOutcome, why: str, names: list[str]) -> str:
    text = (
        "This task's work and that of others are clean together, but the tests fail on both:"
        f" `{now.command}` {why}.\n"
    )
    if names:
        text += "".join(f"- {name}\n" for name in names[:MAX_NAMES])
    return f"{text}\nThe end of its output:\n\n```\n{now.tail.strip()}\n```\n"


def _details(error: EnvironmentNotReady) -> str:
    return "\n".join(f"{label}: {text}" for label, text in error.details)
