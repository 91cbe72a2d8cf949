"""Which task of a plan may start now. Pure: no clock, no runs, only the order of things.

A task may start when all its dependencies are COMPLETE, and no task at work may change the same
files. Of those that may, tasks with a work tree go first, since it gets older; then the order of
the tree decides. Each call costs the same however large the plan is, except for the heap that keeps
the order.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from pathlib import PurePosixPath

from agentrunner.plans.plan import Plan, PlanTaskStatus
from agentrunner.text.lazy_regex import lazy_regex

_CHOICE = lazy_regex(r"\{[^{}]*\}")
_MAGIC = lazy_regex(r"[*?\[]")
_ANY = "**"


class Schedule:
    """The order in which the tasks of one plan start; made anew when the plan changes."""

    def __init__(
        self, plan: Plan, *, only: Collection[str] | None = None, at_work: Iterable[str] = ()
    ) -> None:
        """Take `only` these tasks and their dependencies; `at_work` are tasks already running.

        COMPLETE tasks are done; every other one is still to be run, also one that was being worked
        on when an earlier process ended.
        """
        order = plan.task_order()
        self._place = {task_id: number for number, task_id in enumerate(order)}
        self._begun = {t for t in order if plan.tasks[t].status != PlanTaskStatus.PENDING}
        """Tasks with a work tree: what others change meanwhile may conflict with theirs."""
        wanted = set(order) if only is None else with_dependencies(plan, only)
        complete = {t for t in wanted if plan.tasks[t].status == PlanTaskStatus.COMPLETE}
        unfinished = wanted - complete
        self._waits = {
            task_id: [d for d in plan.design_of(task_id).dependencies if d not in complete]
            for task_id in order
            if task_id in unfinished
        }
        self._sorter = TopologicalSorter(self._waits)
        self._sorter.prepare()
        self._files = {task_id: files_of_task(plan, task_id) for task_id in self._waits}
        for task_id, files in _conflicting(plan).items():
            if task_id in self._files:
                self._files[task_id] |= files
        self._ready: list[tuple[bool, int, str]] = []
        self._queued: set[str] = set()
        """Tasks that are ready or held, so that none is queued, and started, twice."""
        self._held: dict[str, list[str]] = {}
        """Tasks that wait for the files of a task at work, by that task."""
        self._names: dict[str, list[str]] = {}
        """File or folder to the tasks at work that may change it: one, unless the plan was changed
        while they were running."""
        self._below: dict[str, list[str]] = {}
        """Folder to the tasks at work that may change something in it."""
        self._patterns: dict[str, None] = {}
        """Tasks at work with a pattern among their files, such as `src/*.py`."""
        self._at_work: dict[str, None] = {}
        for task_id in at_work:
            if task_id in self._waits:
                self._take(task_id)
        self._open()

    @property
    def at_work(self) -> frozenset[str]:
        """Return tasks that were started and have not ended."""
        return frozenset(self._at_work)

    @property
    def ready(self) -> bool:
        """Whether a task might start now."""
        return bool(self._ready)

    @property
    def finished(self) -> bool:
        """Whether no task is at work and none can be started any more."""
        return not self._at_work and not self._ready

    def start(self, most: int) -> list[str]:
        """Start up to `most` tasks and return them."""
        started: list[str] = []
        while self._ready and len(started) < most:
            *_, task_id = heappop(self._ready)
            if (holder := self._holder(task_id)) is not None:
                self._held.setdefault(holder, []).append(task_id)
                continue
            self._queued.remove(task_id)
            self._take(task_id)
            started.append(task_id)
        return started

    def complete(self, task_id: str) -> None:
        """Record that a task is COMPLETE: tasks that waited for it may start."""
        self._release(task_id)
        self._sorter.done(task_id)
        self._open()

    def again(self, task_id: str) -> None:
        """Queue a task to be started once more, if it is still in the plan."""
        self._release(task_id)
        if task_id in self._waits:
            self._push(task_id)

    def give_up(self, task_id: str) -> None:
        """Record that a task did not become COMPLETE, or is gone: its dependents do not start."""
        self._release(task_id)

    def stopped_by(self, failed: Iterable[str]) -> list[str]:
        """Return the tasks that depend on one of these, directly or not, in order."""
        followers: dict[str, list[str]] = {}
        for task_id, waits in self._waits.items():
            for other in waits:
                followers.setdefault(other, []).append(task_id)
        todo, stopped = list(failed), set[str]()
        while todo:
            fresh = [t for t in followers.get(todo.pop(), ()) if t not in stopped]
            stopped.update(fresh)
            todo += fresh
        return sorted(stopped, key=self._place.__getitem__)

    def _open(self) -> None:
        """Queue tasks that have become ready."""
        for task_id in self._sorter.get_ready():
            if task_id not in self._at_work:
                self._push(task_id)

    def _push(self, task_id: str) -> None:
        if task_id not in self._queued:
            self._queued.add(task_id)
            self._queue(task_id)

    def _queue(self, task_id: str) -> None:
        heappush(self._ready, (task_id not in self._begun, self._place[task_id], task_id))

    def _holder(self, task_id: str) -> str | None:
        """Return a task at work that may change files that this one may change."""
        for name in self._files[task_id]:
            if below := self._below.get(name):
                return below[0]
            for place in (name, *_folders(name)):
                if holders := self._names.get(place):
                    return holders[0]
        # As many as are at work at once, however large the plan is.
        others = self._at_work if self._is_pattern(task_id) else self._patterns
        return next((other for other in others if self._share(task_id, other)), None)

    def _is_pattern(self, task_id: str) -> bool:
        return any(map(is_pattern, self._files[task_id]))

    def _share(self, task_id: str, other: str) -> bool:
        return any(meet(a, b) for a in self._files[task_id] for b in self._files[other])

    def _take(self, task_id: str) -> None:
        self._at_work[task_id] = None
        self._begun.add(task_id)
        if self._is_pattern(task_id):
            self._patterns[task_id] = None
        for name in self._files[task_id]:
            self._names.setdefault(name, []).append(task_id)
            for folder in _folders(name):
                self._below.setdefault(folder, []).append(task_id)

    def _release(self, task_id: str) -> None:
        if task_id not in self._at_work:
            return
        del self._at_work[task_id]
        self._patterns.pop(task_id, None)
        for name in self._files[task_id]:
            self._names[name].remove(task_id)
            for folder in _folders(name):
                self._below[folder].remove(task_id)
        for waiting in self._held.pop(task_id, ()):
            self._queue(waiting)


def files_of_task(plan: Plan, task_id: str) -> set[str]:
    """Return normal paths and patterns of what a task may change, as its design suggests."""
    hint = plan.design_of(task_id).suggested_impl
    return set(filter(None, map(normal, hint.file_paths))) if hint else set()


def _conflicting(plan: Plan) -> dict[str, set[str]]:
    """Return the files that the planner warned several tasks may change, by task."""
    files: dict[str, set[str]] = {}
    for conflict in plan.conflicts:
        for task_id in conflict.tasks:
            if task_id in plan.tasks and (name := normal(conflict.file)):
                files.setdefault(task_id, set()).add(name)
    return files


def with_dependencies(plan: Plan, names: Iterable[str]) -> set[str]:
    """Return these tasks and all that they depend on."""
    wanted: set[str] = set()
    todo = list(names)
    while todo:
        task_id = todo.pop()
        if task_id not in wanted:
            wanted.add(task_id)
            todo.extend(plan.design_of(task_id).dependencies)
    return wanted


def _folders(path: str) -> list[str]:
    """Return the folders that a path is in, and `.` for the whole repository."""
    return [str(parent) for parent in PurePosixPath(path).parents]


def normal(path: str) -> str:
    """Return one spelling for each path: no `./`, `//`, `..` or trailing slash; "" for no path.

    Case is ignored, as some file systems do; for `{a,b}` any text counts as one of them.

    In doubt two names count as the same file: two tasks that wait for each other needlessly lose
    time, two that change one file at once lose work.
    """
    path = _CHOICE.sub("*", path.strip().replace("\\", "/")).casefold()
    return posixpath.normpath(path.lstrip("/") or ".") if path else ""


def is_pattern(path: str) -> bool:
    """Whether a normal path may match several; also `[id]`, which is the name of some folders."""
    return bool(_MAGIC.search(path))


def meet(one: str, other: str) -> bool:
    """Whether two normal paths may mean the same file: one is in the other, or both match one.

    `**` is any number of folders, and what a path or pattern names may be a folder with all in it.
    """
    if "." in (one, other):
        return True
    return _meet(tuple(one.split("/")), tuple(other.split("/")))


@lru_cache(maxsize=4096)
def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Compare by parts, last to first: `after` has the results one part further in `one`."""
    after = [*(_holds(one, other[there:]) for there in range(len(other))), True]
    for here in reversed(range(len(one))):
        now = [*[False] * len(other), _holds(other, one[here:])]
        for there in reversed(range(len(other))):
            if _ANY in (one[here], other[there]):
                now[there] = after[there] or now[there + 1]
            else:
                now[there] = _alike(one[here], other[there]) and after[there + 1]
        after = now
    return after[0]


def _holds(path: Sequence[str], rest: Sequence[str]) -> bool:
    """Whether a path is a folder that may contain the rest of the other one.

    `README.md` is not a folder in which `**/*.py` could find something.
    """
    is_file = bool(posixpath.splitext(path[-1])[1])
    return not (is_file and rest[0] == _ANY) or set(rest) == {_ANY}


def _alike(one: str, other: str) -> bool:
    """Whether a name may match both; of two patterns, judged by beginning and end."""
    if one == other or fnmatchcase(one, other) or fnmatchcase(other, one):
        return True
    if not (is_pattern(one) and is_pattern(other)):
        return False
    return all(
        mine.startswith(yours) or yours.startswith(mine)
        for mine, yours in (
            (_MAGIC.split(one)[0], _MAGIC.split(other)[0]),
            (_last(one)[::-1], _last(other)[::-1]),
        )
    )


def _last(pattern: str) -> str:
    """Return the certain end of a pattern; a set of characters may be the last part of it."""
    return re.split(r"[*?\]]", pattern)[-1]
