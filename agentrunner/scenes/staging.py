"""Stage a scene as a run of its own, with repository, snapshots, logs and state as of then.

Nothing is started but what a planner needs itself: no worker, test or check. Their supposed results
are put where a real run has them, round by round, so that the code of a real run assembles the
planner's request.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import yaml
from msgspec import Struct

from agentrunner.config.agents import ProfilesSpec
from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.prd import describe_check
from agentrunner.config.spec import TaskSpec
from agentrunner.engine.attempts import first_state
from agentrunner.engine.resources import open_workshop
from agentrunner.environment import prices_file
from agentrunner.execution.context_length import context_budget
from agentrunner.execution.credentials import secrets_of
from agentrunner.execution.deps import Deps
from agentrunner.execution.resolved import ResolvedRun
from agentrunner.execution.seeing import seeing
from agentrunner.execution.shown_repository import repository_for_planner
from agentrunner.gateway.prices import load_prices
from agentrunner.planners.panel import Panel
from agentrunner.protocol.message import MessageType
from agentrunner.scenes.scene import (
    FileText,
    Filler,
    Named,
    PersonWords,
    RoundSeen,
    Scene,
    TestSeen,
)
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import People, PersonDecision
from agentrunner.state.round_reports import ORDER_CHARS
from agentrunner.state.run_state import (
    Baseline,
    CheckOutcome,
    Counters,
    Criterion,
    Evidence,
    TaskContext,
    TestOutcome,
    updated,
)
from agentrunner.state.summary import REFUSED, summarize
from agentrunner.state.worker_runs import WorkerRun
from agentrunner.storage.locks import FileLock
from agentrunner.storage.run_folder import RunFolder
from agentrunner.verification.criterion_status import settle
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.workers.member import make_members

WORKER = "coder"
"""The only worker of a scene. It is never started, so any program will do."""
STARTED = "2026-01-05T09:00:00.000Z"
"""Start time of every scene, so that the planner's request never depends on the clock."""
PanelOf = Callable[[TaskSpec], Panel]


class Stage(Struct, frozen=True):
    """A run in the situation in which the scene asks."""

    state: TaskContext
    deps: Deps
    repository: dict[str, object] | None
    """What a planner learns of the repository; None if no planner reads it."""
    names: frozenset[str]
    """Names of the suite's tests."""


@asynccontextmanager
async def staged(
    named: Named,
    settled: TaskSpec,
    panel_of: PanelOf,
    place: Path,
    environ: Mapping[str, str],
    *,
    call_number: int = 0,
) -> AsyncIterator[Stage]:
    """Stage the scene in the empty folder `place`; it is closed again in any case.

    `settled` has the planner's settings; `call_number` is that of the first call. Raises the errors
    of opening a sandbox, for planners that need one.
    """
    repo = place / "repo"
    await asyncio.to_thread(_write, repo, named.scene.files)
    spec = spec_of(named, settled, repo)
    panel = panel_of(spec)
    folder = RunFolder.create(place / "state", f"run-{named.digest[:8]}", repo)
    members = make_members(spec)
    secrets = secrets_of(spec, members, environ)
    prices = load_prices(prices_file(environ))
    resolved = ResolvedRun(spec, environ, panel, members, secrets=secrets, prices=prices)
    lock = FileLock(place / "lock")
    opened = open_workshop(resolved, folder, place / "state", [], lock)
    async with opened as (deps, _):
        yield await _set_up(named, deps, call_number)


def spec_of(named: Named, settled: TaskSpec, repo: Path) -> TaskSpec:
    """The scene's task with the planner's settings; raises UsageError if it is no valid task."""
    scene = named.scene
    # The name of a scene would reveal what it tries.
    task = {"id": f"task-{named.digest[:6]}", "title": "A plan", "prd": {"text": scene.message}}
    worker = {"kind": "command", "name": WORKER, "command": [shutil.which("true") or "true"]}
    tree = {
        "version": "1",
        "task": {**task, **scene.task, "repo": str(repo)},
        "runner": {"worker": worker},
    }
    text = yaml.safe_dump(tree, allow_unicode=True)
    # Without HOME: a person's settings for tasks are no part of a scene.
    spec = load_task(TaskSource("stdin", text), environ={"PATH": "/usr/bin:/bin"}, cwd=repo)
    theirs = settled.runner
    planner = {"language": named.language, "max_loops": scene.max_loops}
    profiles = ProfilesSpec(
        meta=theirs.profiles.meta, plan=theirs.profiles.plan, assess=theirs.profiles.assess
    )
    spec = spec.with_runner(
        meta=theirs.meta.model_copy(update=planner),
        assess=theirs.assess,
        profiles=profiles,
        sandbox=theirs.sandbox,
    )
    texts = {"script_text": settled.script_text, "patterns_text": settled.patterns_text}
    return spec.model_copy(update={"language": named.language, **texts})


def _write(repo: Path, files: Mapping[str, FileText]) -> None:
    """Write files into the repository, or delete them. Blocks."""
    repo.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = repo / name
        if content is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content.whole() if isinstance(content, Filler) else content
        path.write_text(text, encoding="utf-8")


async def _set_up(named: Named, deps: Deps, call_number: int) -> Stage:
    scene, spec = named.scene, deps.spec
    tree = (await asyncio.to_thread(deps.snapshots.take)).tree
    command = spec.task.test.command if spec.task.test else ""
    baseline = Baseline(
        tree=tree,
        origin=tree,
        test=_outcome(scene.before.test, command),
        checks=dict(scene.before.checks),
    )
    planned = [one.model_copy(update={"origin": "model"}) for one in scene.planned]
    people = People(recent=[_decided(number, one) for number, one in enumerate(scene.people, 1)])
    first = first_state(spec, deps.folder.run_id, deps.clock, people)
    state: TaskContext = {
        **first,
        "run": first["run"].model_copy(update={"salt": named.digest, "started_at": STARTED}),
        "state": TaskState.PLANNING if scene.asks == "plan_task" else TaskState.RUNNING,
        "counters": Counters(meta_calls=call_number),
        "criteria": [*first["criteria"], *planned],
        "baseline": baseline,
        "remarks": list(scene.remarks),
    }
    results = _suite(scene)
    budget = await asyncio.to_thread(context_budget, state, deps)
    known = await asyncio.to_thread(repository_for_planner, deps, baseline, results, budget)
    if seeing(state, deps).see == "nothing":
        known = None
    state = await _replay_rounds(scene, state, deps)
    return Stage(state, deps, known, frozenset(results.names if results else ()))


async def _replay_rounds(scene: Scene, state: TaskContext, deps: Deps) -> TaskContext:
    """Return the state after the past rounds, each reported as a real run reports it."""
    rounds = scene.rounds
    for number, one in enumerate(rounds, 1):
        await _report_round(state, deps)
        state = await _after_round(number, one, state, deps)
    if rounds and any(text.startswith(REFUSED) for text in scene.remarks):
        state["state"] = TaskState.FIXING
    # Completion was requested by a decision that had seen the round
    if scene.asks == "completion_assessment":
        await _report_round(state, deps)
        state["wants_completion"] = True
    return state


async def _report_round(state: TaskContext, deps: Deps) -> None:
    """Record the round that ends here, as the request for the next decision does."""
    names = [one.name for one in deps.members]
    facts = summarize(state, deps.spec, patterns=deps.patterns, workers=names)
    what: MessageType = "next_action"
    await asyncio.to_thread(seeing(state, deps).fields, what, facts)


async def _after_round(number: int, seen: RoundSeen, state: TaskContext, deps: Deps) -> TaskContext:
    baseline = state["baseline"]
    assert baseline is not None
    before = state.get("tree") or baseline.tree
    counters = state["counters"].model_copy(
        update={"decisions": number, "worker_runs": number, "loops": number - 1}
    )
    state = updated(state, {"counters": counters})
    deps.record(state, "decision", str(number), {
        "number": number, "action": "run_worker", "reason": seen.order.reason,
        "loop": counters.loops, "worker_run_id": f"1-{number:03d}", "used_patterns": [],
        "prompt": seen.order.prompt[:ORDER_CHARS],
    })  # fmt: skip
    await asyncio.to_thread(_write, Path(deps.spec.repo), seen.changed)
    after = (await asyncio.to_thread(deps.snapshots.take)).tree
    run = await asyncio.to_thread(_run, number, seen, (before, after), deps)
    deps.record(state, "worker_run", run.worker_run_id, run)
    evidence = await asyncio.to_thread(_evidence, seen, (baseline.tree, after), state, deps)
    test = deps.spec.task.test
    return updated(state, {
        "state": TaskState.VALIDATING,
        "tree": after,
        "recent": [*state.get("recent", []), run],
        "tail": seen.output,
        "error_tail": seen.errors,
        "evidence": evidence,
        "criteria": settle(state["criteria"], evidence, None, test),
    })  # fmt: skip


def _run(number: int, seen: RoundSeen, trees: tuple[str, str], deps: Deps) -> WorkerRun:
    changes = deps.snapshots.changes(*trees)
    added = sum(one.added or 0 for one in changes)
    removed = sum(one.removed or 0 for one in changes)
    name = f"1-{number:03d}"
    values = seen.run.model_dump()
    values |= {
        "worker_run_id": name,
        "worker": "command",
        "member": WORKER,
        "loop": number - 1,
        "started_at": STARTED,
        "ended_at": STARTED,
        "tree_before": trees[0],
        "tree_after": trees[1],
        "changed_files": len(changes),
        "diff_stat": f"{len(changes)} files changed, +{added} -{removed}" if changes else "",
        "changes": [f"{one.path} +{one.added or 0} -{one.removed or 0}" for one in changes[:20]],
        "output": deps.folder.write(f"workers/{name}.out", seen.output).model_dump(),
    }
    return WorkerRun.model_validate(values)


def _evidence(seen: RoundSeen, trees: tuple[str, str], state: TaskContext, deps: Deps) -> Evidence:
    """Return the evidence after a round, with the changes of all rounds together. Blocks."""
    changes = deps.snapshots.changes(*trees)
    command = deps.spec.task.test.command if deps.spec.task.test else ""
    checks = {one.id: one for one in state["criteria"]}
    return Evidence(
        tree=trees[1],
        tree_after=trees[1],
        test=_outcome(seen.test, command),
        checks=[_checked(one, checks.get(one.criterion_id)) for one in seen.checks],
        findings=list(seen.findings),
        changed_files=[one.path for one in changes],
        deleted_files=[one.path for one in changes if one.kind == "deleted"],
        lines_added=sum(one.added or 0 for one in changes),
        lines_removed=sum(one.removed or 0 for one in changes),
    )


def _checked(seen: CheckOutcome, criterion: Criterion | None) -> CheckOutcome:
    what = describe_check(criterion.check) if criterion is not None else seen.what
    return CheckOutcome.model_validate({**seen.model_dump(), "what": seen.what or what})


def _outcome(seen: TestSeen | None, command: str) -> TestOutcome | None:
    if seen is None:
        return None
    return TestOutcome.model_validate({**seen.model_dump(), "command": seen.command or command})


def _suite(scene: Scene) -> Results | None:
    tests = tuple(_results(scene))
    return Results(reader="unittest", tests=tests) if tests else None


def _results(scene: Scene) -> Iterator[TestResult]:
    for name in scene.before.red:
        yield TestResult(name, "failed")
    for name in scene.before.passing:
        yield TestResult(name, "passed")


def _decided(number: int, words: PersonWords) -> PersonDecision:
    decision = "answer" if words.kind == "ask_human" else "message"
    return PersonDecision.model_validate(
        {
            "id": f"message-{number}",
            "kind": words.kind,
            "asked": words.asked,
            "decision": decision,
            "text": words.text,
            "at": STARTED,
            "by": "",
            "steers": True,
        }
    )
