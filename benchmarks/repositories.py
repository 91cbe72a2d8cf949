"""What repositories of every size cost, beside git's own commands on the same files.

    python -m benchmarks.repositories [--files 10,1000,10000,100000] [--large 50] [--megabytes 40]

Snapshots of repositories of some sizes beside `git status` and `git add -A`, folders written beside
`git worktree add`, whole runs until the planner is asked, with and without a test command, `undo`
of one file, `show`, `diff` and `logs`, and the exponent of growth between the two largest sizes;
then folders of large files, and of files too large to be kept, ignored and not. All of it is
written below TMPDIR, about three times as many bytes as the large files have. What a run costs is
measured as more than one of the smallest repository costs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure, by_turns, environment, megabytes, ms, printed, python, report
from benchmarks.server import Server

SIZES = (10, 1_000, 10_000, 100_000)
FOLDER = 50
"""Files in each folder."""
ABOVE = 60
"""Megabytes: more than `runner.sandbox.keep_files_up_to` by default."""
SETTLED_SEC = 2.2
"""Files younger than this are read, whatever an index says."""
GIT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "b",
    "GIT_AUTHOR_EMAIL": "b@localhost",
    "GIT_COMMITTER_NAME": "b",
    "GIT_COMMITTER_EMAIL": "b@localhost",
}
TASK = """\
version: 1
task: {id: first, repo: repo, prd: {text: Make it work.}}
runner:
  meta: {kind: openai-chat, max_loops: 1}
  worker: {kind: command, command: [sh, -c, "echo x >> 0/0.txt"]}
  sandbox: {kind: none}
"""
TESTED = TASK.replace("prd:", "test: {command: test -e 0/0.txt}, prd:")
"""With a command that decides nothing, in a clean room of its own each time."""
LOOKS = ("show", "diff", "logs")


def git(repo: Path, *command: str, **more: str) -> float:
    """Run git and return the seconds it took."""
    before = time.monotonic()
    subprocess.run(
        ["git", "-c", "gc.auto=0", *command], cwd=repo, env={**GIT, **more}, check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return time.monotonic() - before


def make_repository(repo: Path, files: int) -> None:
    """A repository of small text files, committed, packed and settled."""
    for number in range(files):
        folder = repo / str(number // FOLDER)
        if number % FOLDER == 0:
            folder.mkdir(parents=True)
        (folder / f"{number}.txt").write_text(f"This is line one of file {number}.\n" * 20)
    time.sleep(SETTLED_SEC)
    git(repo, "init", "-q")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "x")
    git(repo, "repack", "-adq")
    git(repo, "prune-packed", "-q")


@contextmanager
def scratch(place: Path) -> Iterator[Path]:
    """A folder that is gone afterwards."""
    place.mkdir(parents=True)
    yield place
    shutil.rmtree(place)


def add_all(place: Path, repo: Path) -> float:
    """`git add -A` of the same files into a repository of its own."""
    store = place / "added.git"
    git(repo, "init", "-q", "--bare", str(store))
    taken = git(repo, f"--git-dir={store}", f"--work-tree={repo}", "add", "-A")
    shutil.rmtree(store)
    return taken


def snapshot(place: Path, store: str = "store", *target: str) -> Any:
    """What `benchmarks.snapshot` prints of the repository in `place`."""
    paths = (str(place / name) for name in (store, "repo", "mark"))
    return printed(python("-m", "benchmarks.snapshot", *paths, *target))


def kept(place: Path) -> int:
    """Bytes of the store of snapshots, which is gone then."""
    size = sum(path.stat().st_size for path in (place / "store" / "objects").rglob("*"))
    shutil.rmtree(place / "store")
    return size


class Sized:
    """The figures of one repository."""

    def __init__(self, place: Path, files: int, rounds: int) -> None:
        self.place = place
        self.files = files
        self.rounds = rounds
        self.repo = place / "repo"
        self.names = count()
        self.first_sec = 0.0
        self.next_sec = 0.0
        self.tree_sec = 0.0
        """Of `git worktree add`."""
        self.asked_sec = 0.0
        self.whole_sec = 0.0
        self.tested_asked_sec = 0.0
        self.tested_whole_sec = 0.0
        self.undone_sec = 0.0
        make_repository(self.repo, files)

    def figures(self, smallest: Sized | None) -> Iterator[Figure]:
        """All of them; what a run costs whatever the size is that of the smallest repository."""
        yield from self._snapshots()
        yield self._export()
        yield from self._runs(smallest or self)

    def _snapshots(self) -> Iterator[Figure]:
        peak = 0

        def first() -> float:
            nonlocal peak
            store = self.place / f"store-{next(self.names)}"
            found = snapshot(self.place, store.name)
            assert found["borrowed"] == self.files, "the index was not believed"
            shutil.rmtree(store)
            peak = max(peak, found["rss_bytes"])
            return float(found["take_sec"])

        snapshot(self.place)
        added, status, self.first_sec, self.next_sec = by_turns(
            self.rounds,
            lambda: add_all(self.place, self.repo),
            lambda: git(self.repo, "status", "--porcelain"),
            first,
            lambda: float(snapshot(self.place)["take_sec"]),
            pick=min,
        )
        name = f"{self.files:,} files"
        yield Figure(f"{name}: first snapshot", ms(self.first_sec), f"git add -A, {ms(added)}",
                     self.first_sec / added, 0.5 if self.files >= 1000 else 4)  # fmt: skip
        yield Figure(f"{name}: next snapshot", ms(self.next_sec), f"git status, {ms(status)}",
                     self.next_sec / status, 8)  # fmt: skip
        yield Figure(f"{name}: peak memory of a snapshot", megabytes(peak), "-", peak / 1e6, 250)

    def _export(self) -> Figure:
        def ours() -> float:
            target = self.place / f"out-{next(self.names)}"
            found = snapshot(self.place, "store", str(target))
            shutil.rmtree(target)
            return float(found["export_sec"])

        def theirs() -> float:
            target = self.place / f"tree-{next(self.names)}"
            taken = git(self.repo, "worktree", "add", "-q", "--detach", str(target))
            git(self.repo, "worktree", "remove", "--force", str(target))
            return taken

        base, subject = by_turns(self.rounds, theirs, ours, pick=min)
        self.tree_sec = base
        return Figure(
            f"{self.files:,} files: a folder written", ms(subject),
            f"git worktree add, {ms(base)}", subject / base, 1.0 if self.files >= 1000 else 4,
        )  # fmt: skip

    def _run(self, text: str) -> tuple[float, float, int, dict[str, str]]:
        """A whole run of one line: until the planner is asked, in all, its memory, its settings."""
        task, state = self.place / "task.yaml", self.place / f"state-{next(self.names)}"
        task.write_text(text, encoding="utf-8")
        command = python("-m", "agentrunner", "run", str(task), "--json")
        with Server(loops=1) as server:
            env = environment({**server.environ, "AGENTRUNNER_STATE_DIR": str(state)})
            quiet = subprocess.DEVNULL
            started = time.monotonic()
            process = subprocess.Popen(command, env=env, cwd=self.place, stdout=quiet, stderr=quiet)
            asked = server.first_request() - started
            _, _, usage = os.wait4(process.pid, 0)
            process.returncode = 0
        return asked, time.monotonic() - started, usage.ru_maxrss * 1024, env

    def _command(self, env: dict[str, str], *words: str) -> float:
        before = time.monotonic()
        command = python("-m", "agentrunner", *words)
        subprocess.run(command, env=env, cwd=self.repo, stdout=subprocess.DEVNULL, check=True)
        return time.monotonic() - before

    def _runs(self, smallest: Sized) -> Iterator[Figure]:
        self.asked_sec, self.whole_sec, peak, env = self._run(TASK)
        added = add_all(self.place, self.repo)
        name = f"{self.files:,} files"
        for look in LOOKS:
            taken = min(self._command(env, look) for _ in range(self.rounds))
            yield Figure(f"{name}: {look}", ms(taken), "-", taken, 0.3)
        self.undone_sec = self._command(env, "undo")
        self.tested_asked_sec, self.tested_whole_sec, tested_peak, env = self._run(TESTED)
        self._command(env, "undo")
        for what, field, goal in (
            ("until the planner is asked", "asked_sec", 3.0),
            ("undo of one file", "undone_sec", 2.0),
        ):
            base, subject = getattr(smallest, field), getattr(self, field)
            yield Figure(f"{name}: {what}, s more", ms(subject),
                         f"{smallest.files:,} files, {ms(base)}", subject - base, goal)  # fmt: skip
        room = self.tested_asked_sec - self.asked_sec
        more = room - (smallest.tested_asked_sec - smallest.asked_sec)
        goal = 1.0 if self.files >= 100_000 else math.inf
        yield Figure(f"{name}: a test command before the planner is asked, more than of"
                     f" {smallest.files:,}", ms(more), f"git worktree add, {ms(self.tree_sec)}",
                     more / self.tree_sec, goal)  # fmt: skip
        for what, field, goal in (
            ("a whole run of one line", "whole_sec", 1.3),
            ("the same with a test command and clean rooms", "tested_whole_sec", 2.5),
        ):
            more = getattr(self, field) - getattr(smallest, field)
            yield Figure(f"{name}: {what}, more than of {smallest.files:,}", ms(more),
                         f"git add -A, {ms(added)}", more / added,
                         goal if self.files >= 100_000 else math.inf)  # fmt: skip
        for what, most in (("the run", peak), ("the run with tests", tested_peak)):
            yield Figure(f"{name}: peak memory of {what}", megabytes(most), "-", most / 1e6, 250)


def growth(sized: Sequence[Sized]) -> Iterator[Figure]:
    """The exponent between the two largest sizes; 1 is linear."""
    if len(sized) < 2:
        return
    less, more = sized[-2:]
    ratio = math.log(more.files / less.files)
    for name in ("first", "next"):
        small, large = getattr(less, f"{name}_sec"), getattr(more, f"{name}_sec")
        yield Figure(
            f"{name} snapshot, exponent to {more.files:,}", ms(large),
            f"{less.files:,}, {ms(small)}", math.log(large / small) / ratio, 1.1,
        )  # fmt: skip


def large_files(place: Path, number: int, megabyte: int) -> Iterator[Figure]:
    """A folder of large files that do not shrink, first as they are, then ignored."""
    repo = place / "repo"
    make_repository(repo, 10)
    for index in range(number):
        with (repo / f"{index}.bin").open("wb") as file:
            for _ in range(megabyte):
                file.write(os.urandom(1 << 20))
    added = add_all(place, repo)
    found = snapshot(place)
    name = f"{number} files of {megabyte} MB"
    yield Figure(f"{name}: first snapshot", ms(found["take_sec"]), f"git add -A, {ms(added)}",
                 found["take_sec"] / added, 1.2)  # fmt: skip
    yield Figure(f"{name}: peak memory", megabytes(found["rss_bytes"]), "-",
                 found["rss_bytes"] / 1e6, 200)  # fmt: skip
    shutil.rmtree(place / "store")
    (repo / ".git" / "info" / "exclude").write_text("*.bin\n")
    found = snapshot(place)
    size = kept(place)
    for path in repo.glob("*.bin"):
        path.unlink()
    without = snapshot(place)
    more = found["take_sec"] - without["take_sec"]
    yield Figure(f"{name}, ignored: more than without, s", ms(found["take_sec"]),
                 f"without, {ms(without['take_sec'])}", more, 0.5)  # fmt: skip
    yield Figure(f"{name}, ignored: kept", megabytes(size), "-", size / 1e6, 0.1)


def files_too_large(place: Path, number: int, megabyte: int) -> Iterator[Figure]:
    """Files that are named and not kept, first as they are, then ignored."""
    repo = place / "repo"
    make_repository(repo, 10)
    without = snapshot(place)
    shutil.rmtree(place / "store")
    for index in range(number):
        with (repo / f"{index}.bin").open("wb") as file:
            file.truncate(megabyte << 20)
    name = f"{number} files of {megabyte} MB, too large to be kept"
    for what in ("", ", ignored"):
        found = snapshot(place)
        size = kept(place)
        more = found["take_sec"] - without["take_sec"]
        yield Figure(f"{name}{what}: more than without, s", ms(found["take_sec"]),
                     f"without, {ms(without['take_sec'])}", more, 0.5)  # fmt: skip
        yield Figure(f"{name}{what}: kept", megabytes(size), "-", size / 1e6, 0.1)
        (repo / ".git" / "info" / "exclude").write_text("*.bin\n")


def figures(
    place: Path, sizes: Sequence[int], number: int, megabyte: int, rounds: int
) -> Iterator[Figure]:
    """Measure everything in `place`, which holds one repository at a time."""
    done: list[Sized] = []
    for files in sizes:
        with scratch(place / str(files)) as folder:
            sized = Sized(folder, files, rounds)
            yield from sized.figures(done[0] if done else None)
            done.append(sized)
    yield from growth(done)
    with scratch(place / "large") as folder:
        yield from large_files(folder, number, megabyte)
    with scratch(place / "too-large") as folder:
        yield from files_too_large(folder, number, ABOVE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.repositories")
    parser.add_argument("--files", default=",".join(map(str, SIZES)))
    parser.add_argument("--large", type=int, default=50)
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print each figure as it is found")
    chosen = parser.parse_args(arguments)
    sizes = [int(size) for size in chosen.files.split(",") if size]
    found = []
    with tempfile.TemporaryDirectory(prefix="agentrunner-bench-") as name:
        for figure in figures(Path(name), sizes, chosen.large, chosen.megabytes, chosen.rounds):
            found.append(figure)
            if chosen.json:
                print(json.dumps(vars(figure)), flush=True)
    return report(found)


if __name__ == "__main__":
    sys.exit(main())
