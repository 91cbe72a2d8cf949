"""What verification costs, beside the plain test command in the same box.

    python -m benchmarks.verify [--seconds 6] [--tests 40] [--files 10000] [--before COMMIT]

A suite of unit tests that take some seconds together, in a bubblewrap box: an ordinary round, a
request for completion where a test that stood before has turned, and one where the worker's own
test has; then a clean room of a large repository beside `git worktree add`, and whole, with what
git ignores and a `.git` of its own. With `--before` a whole run, as a process of its own, beside
that of an earlier commit of this repository; it is left out where the commit is not there.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from agentrunner.engine.resources import make_verifier, sandbox_order
from agentrunner.git.snapshots import Snapshots
from agentrunner.sandboxes.choose import open_sandbox
from agentrunner.state.run_state import Baseline, Evidence
from agentrunner.storage.run_folder import RunFolder
from agentrunner.verification.evidence.verifier import Verifier
from agentrunner.verification.proof.proving import make_prover
from agentrunner.verification.rooms.decision_sandbox import DecisionSandbox
from agentrunner.verification.rooms.room import Rooms
from agentrunner.verification.rooms.sealed import Sealed
from agentrunner.verification.trees import WorkerChange
from agentrunner.workers.member import make_members
from benchmarks.measure import ROOT, Figure, by_turns, ms, program
from benchmarks.repositories import git, make_repository, scratch
from tests.kit.project import Project

EACH = 10
"""Tests in each file."""
COMMAND = "python3 -m unittest discover -q"
PRODUCT = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a + a\n"
FIXED = PRODUCT.replace("a - b", "a + b")
GROWN = PRODUCT + "\n\ndef triple(a):\n    return 3 * a\n"
OWN = """\
import unittest

from calc import triple


class TripleTest(unittest.TestCase):
    def test_triple_is_three_times_as_much(self):
        self.assertEqual(triple(4), 12)
"""
BUG = """\
import unittest

from calc import add


class AddTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""
PRD = """\
---
id: bench
repo: repo
test: python3 -m unittest discover -q
runner:
  meta: {kind: checklist, max_loops: 0}
  worker: {kind: command, command: [sh, ../worker.sh]}
  sandbox: {kind: bwrap, read_paths: [worker.sh]}
---
# Add up

`add` has to add its two numbers.
"""
WORKER = "sed -i 's/a - b/a + b/' calc.py\n"
WAITS = """\
import time
import unittest

from calc import double


class Test{number}(unittest.TestCase):
"""
ONE = """\
    def test_{number}(self):
        time.sleep({seconds})
        self.assertEqual(double({number}), {twice})

"""


def suite(tests: int, seconds: float) -> dict[str, str]:
    """Files of a suite whose tests wait so many seconds together."""
    files = {"calc.py": PRODUCT, "tests/__init__.py": ""}
    for first in range(0, tests, EACH):
        text = WAITS.format(number=first)
        for number in range(first, min(first + EACH, tests)):
            text += ONE.format(number=number, seconds=seconds / tests, twice=2 * number)
        files[f"tests/test_{first}.py"] = text
    return files


@dataclass
class Scene:
    """A repository with a suite, and what verifies it."""

    project: Project
    verifier: Verifier
    box: DecisionSandbox
    snapshots: Snapshots

    async def plain(self) -> None:
        """The test command, in the repository."""
        await self.box.run(COMMAND)

    async def baseline(self) -> Baseline:
        """The tree as it is, before anybody works."""
        return await self.verifier.baseline([], "checkout")

    async def round(self, baseline: Baseline) -> Evidence:
        """What a round after a worker looks at."""
        now = (await asyncio.to_thread(self.snapshots.take)).tree
        return await self.verifier.measure([], baseline, [WorkerChange(baseline.tree, now)])

    async def request(self, baseline: Baseline, evidence: Evidence, author: str) -> None:
        """What a request for completion adds to it; it has to be granted on that author's test."""
        proven = await make_prover(self.verifier).prove([], baseline, evidence)
        authors = {proof.author for proof in proven.proofs}
        if authors != {author} or any(finding.blocks for finding in proven.findings):
            raise RuntimeError(f"not proven: {proven.doubts} {proven.findings}")


@asynccontextmanager
async def scene(place: Path, files: dict[str, str]) -> AsyncIterator[Scene]:
    """A scene in `place`, gone with the box at the end."""
    project = Project.make(place, files)
    spec = project.spec(test=COMMAND, runner={"meta": {"kind": "checklist"}})
    folder = RunFolder.create(project.state_dir, "bench-0000", project.repo)
    wanted = sandbox_order(spec, make_members(spec), folder)
    sandbox = await open_sandbox(
        "bwrap", wanted, os.environ, Path.home(), state_root=project.state_dir
    )
    try:
        box = DecisionSandbox(sandbox, project.repo, folder, str, os.environ)
        snapshots = Snapshots(folder.snapshots_dir, project.repo)
        verifier = make_verifier(
            spec, box, snapshots, folder, mounts=True, emit=lambda *_, **__: None
        )
        yield Scene(project, verifier, box, snapshots)
    finally:
        await sandbox.close()


async def taken(work: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    """Seconds of wall time, and what came of it."""
    before = time.monotonic()
    found = await work()
    return time.monotonic() - before, found


async def of_suite(place: Path, tests: int, seconds: float, rounds: int) -> list[Figure]:
    """The figures of a suite; of each the least of the rounds."""
    fixed = {"calc.py": FIXED}
    grown = {"calc.py": GROWN, "tests/test_triple.py": OWN}
    rows = []
    for number in range(rounds):
        before = {**suite(tests, seconds), "tests/test_add.py": BUG}
        first = await _one(place / f"fixed-{number}", before, fixed, "person")
        second = await _one(place / f"grown-{number}", suite(tests, seconds), grown, "worker")
        rows.append((first, second))
    plain = min(run[0] for row in rows for run in row)
    base = f"plain test command, {ms(plain)}"

    def figure(name: str, found: float, goal: float) -> Figure:
        return Figure(name, ms(found), base, found / plain, goal)

    return [
        figure("an ordinary round", min(run[1] for row in rows for run in row), 1.5),
        figure("COMPLETE on a test that stood before", min(row[0][2] for row in rows), 3),
        figure("COMPLETE on the worker's own test", min(row[1][2] for row in rows), 3),
    ]


async def _one(
    place: Path, before: dict[str, str], work: dict[str, str], author: str
) -> tuple[float, float, float]:
    """Seconds of the plain command, of a round and of the request for completion after it."""
    async with scene(place, before) as here:
        baseline = await here.baseline()
        here.project.write(work)
        plain, _ = await taken(here.plain)
        looked, evidence = await taken(lambda: here.round(baseline))
        asked, _ = await taken(lambda: here.request(baseline, evidence, author))
        return plain, looked, asked


def of_room(place: Path, files: int, rounds: int) -> Iterator[Figure]:
    """A clean room of a large repository: in seconds, and beside git's own checkout."""
    repo = place / "repo"
    make_repository(repo, files)
    snapshots = Snapshots(place / "store", repo)
    tree = snapshots.take().tree
    names = count()

    def ours() -> float:
        target = place / f"room-{next(names)}"
        before = time.monotonic()
        snapshots.export_tree(tree, target)
        return time.monotonic() - before

    def theirs() -> float:
        target = place / f"tree-{next(names)}"
        return git(repo, "worktree", "add", "-q", "--detach", str(target))

    base, subject = by_turns(rounds, theirs, ours, pick=min)
    yield Figure(f"a clean room of {files:,} files, s", ms(subject), "-", subject, 1.0)
    yield Figure("the same", ms(subject), f"git worktree add, {ms(base)}", subject / base, 1.5)

    rooms = Rooms(snapshots, Sealed(place / "sealed", repo), place / "rooms", mounts=True)
    rooms.sealed.seal(snapshots)
    rooms.since = tree

    async def ready() -> float:
        before = time.monotonic()
        async with rooms.open(tree):
            return time.monotonic() - before

    whole = min(asyncio.run(ready()) for _ in range(rounds))
    yield Figure(f"a room of {files:,} files, whole, s", ms(whole), "-", whole, 1.0)


def of_whole_run(
    place: Path, tests: int, seconds: float, rounds: int, before: str
) -> Iterator[Figure]:
    """A whole run to COMPLETE, beside the same one of an earlier commit; none without it."""
    there = ["git", "-C", str(ROOT), "cat-file", "-e", f"{before}^{{commit}}"]
    if subprocess.run(there, capture_output=True, check=False).returncode:
        print(f"no commit {before} here: the whole run is not measured beside it", file=sys.stderr)
        return
    place.mkdir(parents=True)
    (earlier := place / "earlier").mkdir()
    packed = place / "earlier.tar"
    archive = ["git", "-C", str(ROOT), "archive", "-o", str(packed), before]
    subprocess.run(archive, check=True)
    subprocess.run(["tar", "-xf", str(packed), "-C", str(earlier)], check=True)
    names = count()

    def run_of(code: Path) -> float:
        folder = place / f"run-{next(names)}"
        Project.make(folder, {**suite(tests, seconds), "tests/test_add.py": BUG})
        (folder / "prd.md").write_text(PRD, encoding="utf-8")
        (folder / "worker.sh").write_text(WORKER, encoding="utf-8")
        own = {"PYTHONPATH": str(code), "AGENTRUNNER_STATE_DIR": str(folder / "runs")}
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "agentrunner", "run", "prd.md", "--no-input"],
            cwd=folder, env={**os.environ, **own}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{code}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
        return time.monotonic() - begun

    base, subject = by_turns(rounds, lambda: run_of(earlier), lambda: run_of(ROOT), pick=min)
    yield Figure("a whole run", ms(subject), f"at {before}, {ms(base)}", subject / base, 2.5)


async def figures(
    place: Path, tests: int, seconds: float, files: int, rounds: int, before: str = ""
) -> list[Figure]:
    """Measure everything in `place`."""
    found = await of_suite(place / "suite", tests, seconds, rounds)
    with scratch(place / "room") as folder:
        found += await asyncio.to_thread(lambda: list(of_room(folder, files, rounds)))
    if before:
        found += await asyncio.to_thread(
            lambda: list(of_whole_run(place / "whole", tests, seconds, rounds, before))
        )
    return found


if __name__ == "__main__":
    sys.exit(program(figures, tests=40, seconds=6.0, files=10_000, rounds=2, before=""))
