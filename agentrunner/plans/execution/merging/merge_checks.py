"""What proves a merge: the plan's tests and the checks of its tasks, on whole commits."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

from agentrunner.config.spec import TaskSpec
from agentrunner.git.private_clone import CloneStore, Identity
from agentrunner.plans.execution.merging.commit_sandbox import CommitSandbox, open_commit
from agentrunner.plans.execution.merging.merge_verdict import (
    CheckOutput,
    CommitFindings,
    LostInMerge,
    MergeCandidate,
    MergeVerdict,
    defined_twice,
    judge,
    judge_old_tests,
    named,
    newly_red,
    not_kept_of,
)
from agentrunner.plans.execution.merging.proofs import ProofBook, ProvenCriterion
from agentrunner.state.run_state import TestOutcome
from agentrunner.storage.run_folder import (
    RunFolder,
    keep_sandbox,
    kept_sandbox,
    make_private,
    write_private,
)
from agentrunner.text.unicode import clean
from agentrunner.verification.evidence.claims import red_names
from agentrunner.verification.evidence.measure import results_as_lines, results_of_lines
from agentrunner.verification.evidence.target import Target, target_of, test_target
from agentrunner.verification.inputs.changes import judge_changes, put_back
from agentrunner.verification.inputs.finder import find_inputs
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.names import settled


class OutcomeBook:
    """One small file for each outcome; by tree, by what is run, and by the sandbox it ran in.

    Methods may raise OSError.
    """

    def __init__(self, folder: Path, spec: TaskSpec) -> None:
        self._folder, self._spec = folder, spec

    def read(self, tree: str, sandbox: tuple[str, str], checks: Iterable[str]) -> CommitFindings:
        """Return known outcomes on a tree: of the tests and these `ProvenCriterion.key`s.

        An outcome that was reported by name and has lost its names is not known.
        """
        test = results = None
        with contextlib.suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            file = self._file(tree, sandbox)
            outcome = TestOutcome.model_validate_json(file.read_bytes())
            if outcome.reader:
                results = results_of_lines(file.with_suffix(".jsonl").read_text("utf-8"))
            test = outcome
        seen = {}
        for check in checks:
            with contextlib.suppress(FileNotFoundError, ValueError, TypeError, KeyError):
                red = json.loads(self._file(tree, sandbox, check).read_bytes())["red"]
                if isinstance(red, bool):
                    seen[check] = CheckOutput(red)
        return CommitFindings(test, seen, results=results)

    def keep(self, tree: str, sandbox: tuple[str, str], look: CommitFindings) -> None:
        """Save outcomes; a red one of the tests is not, as it may be red by chance."""
        make_private(self._folder)
        if look.test is not None and look.test.green:
            test = look.test.model_copy(update={"output": None})
            file = self._file(tree, sandbox)
            text = clean(json.dumps(test.model_dump(mode="json"), ensure_ascii=False))
            if look.results is not None:
                lines = results_as_lines(look.results).encode()
                write_private(file.with_suffix(".jsonl"), lines, sync=False)
            write_private(file, text.encode(), sync=False)
        for check, seen in look.seen.items():
            file = self._file(tree, sandbox, check)
            write_private(file, json.dumps({"red": seen.red}).encode(), sync=False)

    def _file(self, tree: str, sandbox: tuple[str, str], *check: str) -> Path:
        task = self._spec.task
        kind, image = sandbox
        asked = [
            tree,
            task.test.model_dump_json() if task.test else "",
            task.setup.model_dump_json() if task.setup else "",
            kind or self._spec.runner.sandbox.kind,
            image,
            *check,
        ]
        name = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]
        return self._folder / f"{name}.json"


_NOBODY = Identity("AgentRunner", "agentrunner@localhost")
_WHENEVER = "2000-01-01T00:00:00Z"

LONG_SEC = 60
"""A suite that takes longer is not run a second time on a merge."""
TRIES_BEFORE = 3
"""How often the commit before is asked whether a test is red there by chance."""


class MergedTests:
    """Examines commits that a plan's branch, or the one it is merged into, is about to move to.

    Each commit is set up at most once per examination, and only for outcomes not known of its tree.
    """

    def __init__(
        self,
        clone: CloneStore,
        folder: Path,
        spec: TaskSpec,
        *,
        state_dir: Path,
        environ: Mapping[str, str],
        living: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """`folder` is the plan's own for this; `spec` any task of the plan.

        `living` returns the tasks that the plan has: what others proved need not hold any more.
        """
        self._clone, self._folder, self._spec = clone, folder, spec
        self._state_dir, self._environ, self._living = state_dir, environ, living
        self._outcomes = OutcomeBook(folder / "outcomes", spec)
        self._proofs = ProofBook(folder / "proofs")
        self._lock = asyncio.Lock()

    async def examine(self, candidate: MergeCandidate) -> MergeVerdict:
        async with self._lock:
            living = await asyncio.to_thread(self._landed)
            landed = [proof for proof in living if proof.task_id != candidate.task_id]
            verdict = await self._examine(candidate, landed)
            if not verdict.evidence:
                await asyncio.to_thread(self._keep, candidate, verdict)
            return verdict

    async def joined(self, commit: str, onto: str, head: str) -> MergeVerdict:
        async with self._lock:
            proofs = tuple(await asyncio.to_thread(self._landed))
            sandbox = await asyncio.to_thread(kept_sandbox, RunFolder(self._folder))
            return await self._examine(
                MergeCandidate(commit, onto, head, proofs=proofs, sandbox=sandbox), ()
            )

    async def sets_up(self, commit: str, sandbox: tuple[str, str]) -> bool:
        if self._spec.task.setup is None:
            return True
        async with self._lock, self._open(commit, sandbox) as opened:
            return (await opened.look((), test=False)).failed is None

    async def doubts(self, task_id: str) -> tuple[ProvenCriterion, ...]:
        return await asyncio.to_thread(self._proofs.doubts, task_id)

    def _landed(self) -> list[ProvenCriterion]:
        return self._proofs.of(self._living())

    def _keep(self, candidate: MergeCandidate, verdict: MergeVerdict) -> None:
        """From now on the task's proofs count, and the sandbox is the plan's."""
        self._proofs.save(candidate.task_id, candidate.proofs, verdict.doubts)
        if any(candidate.sandbox):
            keep_sandbox(RunFolder(self._folder), *candidate.sandbox)

    async def _examine(
        self, candidate: MergeCandidate, landed: Sequence[ProvenCriterion]
    ) -> MergeVerdict:
        """Examine the commit, and those it is compared with as far as they decide."""
        moves = candidate.commit != candidate.before
        landed = landed if moves else ()
        own, sandbox = candidate.proofs, candidate.sandbox
        now = await self._look(candidate.commit, sandbox, [*landed, *own], test=moves)
        baseline = self._spec.task.test is not None and self._spec.task.test.baseline
        before = await self._look(
            candidate.before,
            sandbox,
            now.red(landed),
            test=moves and baseline and now.failed is None,
            set_up=now.failed is not None,
        )
        if before.failed is not None:  # so it is not this commit's fault
            raise before.failed.error
        await asyncio.to_thread(self._know, candidate.before, sandbox, before)
        now = await self._confirmed(candidate, before, now)
        alone = now
        if candidate.mine != candidate.commit:
            alone = await self._look(
                candidate.mine,
                sandbox,
                now.red(own),
                test=newly_red(before, now, candidate) is not None
                or self._may_have_lost(candidate, now),
                set_up=now.failed is not None,
            )
        lost = await self._lost(candidate, before, now, alone)
        verdict = judge(candidate, landed, now, before, alone, lost)
        if verdict.evidence:
            return verdict
        await asyncio.to_thread(self._know, candidate.commit, sandbox, now)
        red = now.red(landed)
        unproven = await self._unproven(candidate, [proof for proof in landed if proof not in red])
        return unproven if unproven.evidence else verdict

    async def _confirmed(
        self, candidate: MergeCandidate, before: CommitFindings, now: CommitFindings
    ) -> CommitFindings:
        """Run the tests of a merge, and tests that are newly red, once more in another checkout.

        Those that are red once and green once are unsteady, unless they are so before, too.
        """
        test = self._spec.task.test
        if test is None or now.test is None or now.results is None or before.results is None:
            return now
        asked = candidate.commit != candidate.mine or newly_red(before, now, candidate) is not None
        long = test.confirm in ("auto", "names") and now.test.duration_sec > LONG_SEC
        if test.confirm == "once" or long or not asked:
            return now
        again = await self._look(candidate.commit, candidate.sandbox, (), test=True, known=False)
        if again.results is None:
            return replace(now, test=again.test, results=None)
        both = set(red_names(now.results)) ^ set(red_names(again.results))
        known = {settled(name) for name in red_names(before.results)}
        unsteady = sorted(name for name in both if settled(name) not in known)
        if not unsteady:
            return now
        if await self._was_unsteady(candidate, unsteady):
            return replace(now, excused=frozenset(unsteady))
        return replace(now, unsteady=tuple(unsteady))

    async def _was_unsteady(self, candidate: MergeCandidate, names: Sequence[str]) -> bool:
        """Whether each of these tests is red by chance on the commit before, too."""
        seen: set[str] = set()
        for _ in range(TRIES_BEFORE):
            again = await self._look(
                candidate.before, candidate.sandbox, (), test=True, known=False
            )
            if again.results is None:
                return False
            seen.update(red_names(again.results))
            if seen.issuperset(names):
                return True
        return False

    def _may_have_lost(self, candidate: MergeCandidate, now: CommitFindings) -> bool:
        """Whether a test of the task's run, or of the plan, may not pass on the merge any more."""
        if now.results is None:
            return False
        if candidate.passed is None:
            return not candidate.task_id
        passed = now.results.passed
        return any(
            one.outcome == "passed" and not passed(one.name) for one in candidate.passed.tests
        )

    async def _lost(
        self,
        candidate: MergeCandidate,
        before: CommitFindings,
        now: CommitFindings,
        alone: CommitFindings,
    ) -> LostInMerge:
        """Find tests of the candidate's own work that the merge does not run, or has red."""
        if candidate.commit == candidate.mine or now.results is None or before.results is None:
            return LostInMerge()
        base = await asyncio.to_thread(self._clone.base, candidate.before, candidate.mine)
        both = await asyncio.to_thread(self._changed_by_both, candidate, base)
        sides = (before.read, self._clone.reader(candidate.mine))
        twice = await asyncio.to_thread(defined_twice, named(now), sides, both)
        if alone.results is None or alone is now:
            return LostInMerge(twice=tuple(twice))
        own, there = named(alone), before.results
        names = await asyncio.to_thread(not_kept_of, own, None, there, named(now))
        if names and base:
            known = await self._look(base, candidate.sandbox, (), test=True)
            await asyncio.to_thread(self._know, base, candidate.sandbox, known)
            names = await asyncio.to_thread(not_kept_of, own, known.results, there, named(now))
        failing = set(red_names(now.results)) - now.excused
        return LostInMerge(
            tuple(name for name in names if name not in failing and name not in now.excused),
            tuple(name for name in names if name in failing),
            tuple(twice),
        )

    def _changed_by_both(self, candidate: MergeCandidate, base: str) -> set[str]:
        if not base:
            return set()
        theirs = set(self._clone.changed(base, candidate.before))
        return theirs.intersection(self._clone.changed(base, candidate.mine))

    async def _unproven(
        self, candidate: MergeCandidate, landed: Sequence[ProvenCriterion]
    ) -> MergeVerdict:
        """Find checks of others that are green only because the commit changes their tests."""
        landed = [proof for proof in landed if proof.key not in candidate.allowed]
        if not landed:
            return MergeVerdict()
        before, commit = candidate.before, candidate.commit
        found = await asyncio.to_thread(
            with_old_tests, self._clone, self._targets(landed), before, commit
        )
        if found is None:
            return MergeVerdict()
        made, touched = found
        old = await self._look(made, candidate.sandbox, landed, test=False)
        await asyncio.to_thread(self._know, made, candidate.sandbox, old)
        return judge_old_tests(landed, old, touched)

    def _targets(self, proofs: Sequence[ProvenCriterion]) -> list[Target]:
        """Return the commands that decide about these proofs."""
        found = [target_of(proof.criterion, self._spec, None) for proof in proofs]
        test = [test_target(self._spec.task.test)] if self._spec.task.test else []
        return [*test, *(target for target in found if target is not None)]

    async def _look(
        self,
        commit: str,
        sandbox: tuple[str, str],
        proofs: Sequence[ProvenCriterion],
        *,
        test: bool,
        set_up: bool = False,
        known: bool = True,
    ) -> CommitFindings:
        """Return the outcomes of these checks, and where asked for of the test command, on a
        commit.

        With `set_up` the set-up command is run even if nothing else has to be; without `known` the
        test command is run also where its outcome is known.
        """
        asked = {proof.key: proof for proof in proofs}
        kept = await asyncio.to_thread(
            lambda: self._outcomes.read(self._clone.tree_of(commit), sandbox, asked)
        )
        cwd = self._spec.task.test.cwd if self._spec.task.test else "."
        kept = replace(kept, read=self._clone.reader(commit), cwd=cwd)
        kept = kept if test and known else replace(kept, test=None, results=None)
        missing = [proof for key, proof in asked.items() if key not in kept.seen]
        test = test and self._spec.task.test is not None and kept.test is None
        if not (missing or test or set_up):
            return kept
        async with self._open(commit, sandbox, missing) as opened:
            found = await opened.look(missing, test=test)
        found = found if test else replace(found, test=kept.test, results=kept.results)
        return replace(found, seen={**kept.seen, **found.seen}, read=kept.read, cwd=cwd)

    def _open(
        self, commit: str, sandbox: tuple[str, str], proofs: Sequence[ProvenCriterion] = ()
    ) -> AbstractAsyncContextManager[CommitSandbox]:
        return open_commit(
            self._clone,
            self._folder,
            self._spec,
            commit,
            sandbox,
            proofs,
            state_dir=self._state_dir,
            environ=self._environ,
        )

    def _know(self, commit: str, sandbox: tuple[str, str], look: CommitFindings) -> None:
        self._outcomes.keep(self._clone.tree_of(commit), sandbox, look)


def with_old_tests(
    clone: CloneStore, targets: Sequence[Target], before: str, commit: str
) -> tuple[str, list[str]] | None:
    """Return a commit with what decides about `targets` as it was before, and the paths of that.

    None where nothing that decides was touched. Blocks.
    """
    old, new = clone.modes(before), clone.modes(commit)

    def reader(tree: str, paths: Mapping[str, str]) -> ReadFile:
        return lambda path: clone.read(tree, path) if path in paths else None

    shells = [(target.shell, target.cwd) for target in targets]
    read_old, read_new = reader(before, old), reader(commit, new)
    judged = judge_changes(
        find_inputs(shells, list(old), read_old),
        old,
        read_old,
        new,
        read_new,
        clone.changed(before, commit),
    )
    touched = sorted(suspect.path for suspect in judged.suspects)
    if not touched:
        return None
    tests = {change.path for change in judged.understood if change.input.kind == "test"}
    tree = clone.with_files(commit, put_back(judged, tests | set(touched), understood=True))
    made = clone.commit_tree(tree, parents=(commit,), message="-\n", author=_NOBODY, at=_WHENEVER)
    return made, touched
