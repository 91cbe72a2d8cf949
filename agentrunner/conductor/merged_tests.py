"""The plan's tests and checks on a merged tree: a fresh checkout, in a box as the runs have it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from agentrunner.conductor.proofs import Proof, ProofBook, Seen, newly_broken, told
from agentrunner.errors import EnvironmentNotReady
from agentrunner.evidence.box import DecisionBox, Ran, not_ready, why_not_started
from agentrunner.evidence.checks import command_of, read_check
from agentrunner.evidence.gather import check_outcome, outcome_of
from agentrunner.graph.workshop import programs
from agentrunner.nodes.credentials import secrets_of
from agentrunner.runs.folder import RunFolder, make_private, write_private
from agentrunner.runs.workspace import CloneStore
from agentrunner.sandboxes.base import BoxSpec, Owner, ResourceLimit
from agentrunner.sandboxes.choose import open_sandbox
from agentrunner.sandboxes.limits import DISK
from agentrunner.task.context import TestOutcome
from agentrunner.task.prd import describe_check
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
        living: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """`folder` is the plan's own for this; `spec` any task of the plan.

        `living` tells which tasks the plan has: what others proved need not hold any more.
        `box` are kind and image of the boxes that its runs had (`kept_box`), where known.
        """
        self._clone, self._folder, self._spec = clone, folder, spec
        self._state_dir, self._environ = state_dir, environ
        self._kind, self._image = box
        self._living, self._book = living, ProofBook(folder / "proofs")
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
        async with self._box(commit) as (box, tree):
            ran = await box.run(
                test.command,
                cwd=test.cwd,
                timeout_sec=test.timeout_sec,
                hosts=test.network,
                name="test",
            )
            return _judged(test, ran, before, tree)

    @asynccontextmanager
    async def _box(self, commit: str) -> AsyncIterator[tuple[DecisionBox, Path]]:
        """A checkout that is taken away again, set up, and a box around it."""
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
                yield box, tree
            finally:
                await sandbox.close()
        finally:
            await asyncio.to_thread(self._clone.remove, tree)
            await asyncio.to_thread(shutil.rmtree, run.root, ignore_errors=True)

    # -- checks ---------------------------------------------------------------------------------

    async def broken(
        self, commit: str, before: str, mine: str, task_id: str, proofs: Sequence[Proof]
    ) -> tuple[tuple[Proof, ...], str]:
        """See `TreeTests`. Raises EnvironmentNotReady where the set-up fails, and Surroundings."""
        async with self._one:
            landed = [proof for proof in self._landed() if proof.task_id != task_id]
            own = [] if commit == mine else list(proofs)
            now = await self._look(commit, [*landed, *own])
            was = await self._look(before, [proof for proof in landed if now[proof.key].red])
            alone = await self._look(mine, [proof for proof in own if now[proof.key].red])
            broken = newly_broken(landed, now, was) or newly_broken(own, now, alone)
            if not broken:
                await asyncio.to_thread(self._keep_seen, commit, now)
                await asyncio.to_thread(self._book.save, task_id, proofs)
            return broken, told(broken, now)

    def _landed(self) -> list[Proof]:
        return self._book.of(self._living())

    async def _look(self, commit: str, proofs: Iterable[Proof]) -> dict[str, Seen]:
        """What each check says on a commit, run where it is not known."""
        asked = {proof.key: proof for proof in proofs}
        seen = await asyncio.to_thread(self._read_seen, commit, asked)
        missing = [proof for key, proof in asked.items() if key not in seen]
        if missing:
            async with self._box(commit) as (box, tree):
                for proof in missing:
                    seen[proof.key] = await self._check(box, tree, commit, proof)
        return seen

    async def _check(self, box: DecisionBox, tree: Path, commit: str, proof: Proof) -> Seen:
        """Run or read one check as a run does."""
        criterion, test = proof.criterion, self._spec.task.test
        assert criterion.check is not None

        def read(path: str) -> bytes | None:
            there = self._clone.git.run("ls-tree", commit, "--", path)
            return self._clone.read(commit, path) if there else None

        reading = await asyncio.to_thread(read_check, criterion.check, read, ())
        if reading is not None:
            return Seen(reading.passed is False, reading.detail)
        command = command_of(criterion.check, test, read)
        if command is None:
            return Seen(False)
        ran = await box.run(
            command.shell,
            cwd=command.cwd,
            timeout_sec=command.timeout_sec,
            hosts=test.network if test else (),
            name=criterion.id,
        )
        why = why_not_started(command.shell, ran, tree, is_test=False)
        outcome = check_outcome(criterion, command, describe_check(criterion.check), ran, why)
        return Seen(outcome.outcome == "failed", f"{outcome.detail}\n{ran.tail}".strip())

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

    def _read_seen(self, commit: str, keys: Iterable[str]) -> dict[str, Seen]:
        found = {}
        for key in keys:
            with contextlib.suppress(OSError, ValueError, TypeError):
                found[key] = Seen(**json.loads(self._file(commit, key).read_bytes()))
        return found

    def _keep_seen(self, commit: str, seen: Mapping[str, Seen]) -> None:
        for key, one in seen.items():
            make_private(self._file(commit, key).parent)
            write_private(self._file(commit, key), json.dumps({"red": one.red}).encode())

    def _file(self, commit: str, check: str = "") -> Path:
        """By what is tested and how: the same tree is not tested twice."""
        task = self._spec.task
        asked = [
            self._clone.tree_of(commit),
            task.test.model_dump_json() if task.test else "",
            task.setup.model_dump_json() if task.setup else "",
            self._kind or self._spec.runner.sandbox.kind,
            self._image,
            *filter(None, [check]),
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
