"""Starting a worker: its key, its network route, its command, and its supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import math
import os
import subprocess
import uuid
from dataclasses import replace
from pathlib import Path

from agentrunner.config.spec import TaskSpec
from agentrunner.errors.workers import WorkerMissing
from agentrunner.execution.deps import Deps, Stopped
from agentrunner.execution.egress import exit_for
from agentrunner.execution.tries import after_refused_login
from agentrunner.execution.worker_record import git_places, note_foreign_edits, seen_before
from agentrunner.launching.access import CliCredential, worker_access, worker_env
from agentrunner.launching.launch import (
    CliLaunch,
    Supervision,
    disk_bytes,
    make_own,
    start_supervised,
)
from agentrunner.launching.route import EgressRoute
from agentrunner.sandboxes.base import Mount, Request
from agentrunner.sandboxes.gitdirs import worker_git
from agentrunner.state.budget import left_of
from agentrunner.state.rounds import round_of, rounds_at_most
from agentrunner.state.run_state import TaskContext
from agentrunner.state.worker_runs import WorkerOrder, WorkerRun
from agentrunner.storage.failpoints import reach
from agentrunner.text.unicode import to_bytes
from agentrunner.workers.base import LacksScript, WorkerRequest
from agentrunner.workers.member import Member

WORKER_GIT = "worker-git"
"""Name of the git folder that workers see, in the run's folder."""
BARE_LOGIN = (
    "There is no gateway: the worker sees the access token of the {kind} login. "
    "Whoever reads it can use the subscription until it ends."
)


async def start_worker(
    state: TaskContext, deps: Deps, order: WorkerOrder
) -> subprocess.Popen[bytes]:
    """Find the worker's key and its network route, then start it and return its supervisor's
    process.

    Raises InfraError where a login is missing, has expired or cannot be refreshed, and where the
    script that it is to run is nowhere: each round would end at once.
    """
    member = deps.member(order.member)
    await _check_script(deps, member)
    replays = deps.cassette.replay is not None
    access = worker_access(member.spec, member.worker, deps.environ, replays=replays)
    shown = await access.credential(
        member.spec.runner.worker.max_run_time_sec,
        gateway=member.has_gateway,
        refused=refused_login(state, deps, order),
    )
    deps.redactor.learn(shown.secrets)
    if shown.bare_login:
        deps.warn(state, "login-in-box", BARE_LOGIN.format(kind=member.worker.kind))
    route = exit_for(state, deps, order, shown.upstream)
    process = await asyncio.to_thread(_hand_over, state, deps, order, shown, route)
    reach("after_start")
    deps.emit(
        "worker_started", worker_run_id=order.worker_run_id, worker=order.worker,
        model=order.model, loop=order.loop, round=round_of(order.round, order.loop),
        rounds_at_most=rounds_at_most(state),
    )  # fmt: skip
    return process


async def _check_script(deps: Deps, member: Member) -> None:
    """Raise WorkerMissing where neither this machine nor the sandbox has the worker's script.

    That is known only now: a set-up may have made it.
    """
    worker, repo = member.worker, Path(deps.spec.repo)
    script = worker.lacking_script() if isinstance(worker, LacksScript) else None
    if script is None:
        return
    inside = script.is_relative_to(repo)
    if not inside:
        seek = ("sh", "-c", 'test -r "$1"', "sh", str(script))
        found = await deps.sandbox.run(Request(command=seek, workdir=repo, timeout_sec=60))
        if found.exit_code == 0:
            return
    error = script_lost(member.spec, worker.program(), script)
    error.details = (("sandbox", deps.sandbox.describe()),)
    raise error


def script_lost(
    spec: TaskSpec, program: str, script: Path, *, nothing_spent: bool = False
) -> WorkerMissing:
    """Return the error for a worker's script that is nowhere, with where it has to lie."""
    inside, shown = script.is_relative_to(Path(spec.repo)), script
    remedy = f"put it into the repository, or where the sandbox has it; it has no {script}"
    if inside and spec.part_of:  # the work tree of a plan's task is no place of a person's
        shown = script.relative_to(spec.repo)
        remedy = f"commit {shown}: a task of a plan has what is committed"
    elif inside:
        remedy = f"put it at {script}"
    # Other paths of a task file are relative to it, so this one is easily taken for such a path.
    beside = Path(spec.base_dir) / os.path.relpath(script, spec.repo)
    if beside.is_file():
        named = os.path.relpath(beside, spec.repo)
        remedy = f"name it {named}: the command runs in the repository, not beside the task file"
    return WorkerMissing(
        f"{shown} is not there, and the worker is to run it ({program}).",
        path=spec.places.get("runner.worker.command", "runner.worker.command"),
        remedy=remedy,
        nothing_spent=nothing_spent,
    )


def _hand_over(
    state: TaskContext, deps: Deps, order: WorkerOrder, shown: CliCredential, route: EgressRoute
) -> subprocess.Popen[bytes]:
    """Take a snapshot, claim the worker run, and start it under a supervisor that outlives us.
    Blocks.

    All in one thread: each change to another thread and back costs as much as reading a small tree.
    """
    before = deps.snapshots.take()
    note_foreign_edits(state, deps, before.tree)
    deps.log.sync()
    fingerprint = deps.snapshots.dependency_fingerprint()
    git = git_places(deps, before.embedded)
    launch = _launch(state, deps, order, shown, route)
    launch.lay_out(deps.folder.sandbox_dir, links=deps.sandbox.isolates)
    if deps.stop.is_set():
        raise Stopped
    reach("before_claim")
    claim = deps.ledger.claim(order.worker_run_id)
    with contextlib.closing(claim):
        seen = {"tree": before.tree, "gitdirs": git, "dependencies": fingerprint}
        seen["login"] = shown.fingerprint
        claim.write(json.dumps(seen))
        reach("after_claim")
        deps.snapshots.worker_starts()
        launch = replace(launch, mounts=_git_mounts(deps))
        supervision = _supervision(deps, order)
        return start_supervised(
            launch, deps.sandbox, deps.environ, supervision, claim, deps.repository
        )


def _launch(
    state: TaskContext, deps: Deps, order: WorkerOrder, shown: CliCredential, route: EgressRoute
) -> CliLaunch:
    """Return the order as it is started."""
    member = deps.member(order.member)
    call = _call(state, deps, order, shown, route)
    own = worker_env(member.spec, member.worker, deps.environ)
    return CliLaunch(
        command=member.worker.command(call),
        credential=shown,
        route=route,
        workdir=call.workdir,
        seconds=_wall_sec(state, deps, member.spec),
        env={**own, **order.env},
        network="full" if member.network.policy == "full" else "none",
        home=deps.verifier.rooms.sealed.home_seen,
    )


def _call(
    state: TaskContext, deps: Deps, order: WorkerOrder, shown: CliCredential, route: EgressRoute
) -> WorkerRequest:
    """Return the order as the adapter reads it; `resume` without a session becomes `exec`."""
    prompt = deps.folder.read(order.prompt).decode("utf-8")
    prompt_file = deps.folder.sandbox_dir / "prompts" / f"{order.worker_run_id}.md"
    make_own(prompt_file.parent, deps.folder.sandbox_dir)
    deps.folder.write(f"box/prompts/{order.worker_run_id}.md", prompt, sync=False, new=True)
    session = _session(state, order) if order.mode == "resume" else None
    if order.mode == "resume" and session is None:
        deps.warn(state, "no-session", "There is no session to resume; the worker starts afresh.")
    return WorkerRequest(
        worker_run_id=order.worker_run_id,
        prompt=prompt,
        workdir=Path(deps.spec.repo),
        home=deps.folder.sandbox_dir,
        prompt_file=prompt_file,
        mode="resume" if session else "exec",
        session_id=session,
        new_session_id=_new_session(state["run"].run_id, order.worker_run_id),
        model=order.model,
        flags=tuple(order.flags),
        tool_specific=order.tool_specific,
        base_url=route.base_url or shown.base_url or None,
        login=bool(shown.fingerprint),
        sandboxed=deps.sandbox.isolates,
    )


def _new_session(run_id: str, worker_run_id: str) -> str:
    """Return the id for a new session: a UUID that differs for every worker run."""
    digest = hashlib.sha256(to_bytes(f"{run_id}/{worker_run_id}")).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def _session(state: TaskContext, order: WorkerOrder) -> str | None:
    """Return this candidate's latest session; the session of another candidate is no use to it."""
    runs = [run for run in state.get("recent", []) if run.member == order.member]
    return next((run.session_id for run in reversed(runs) if run.session_id), None)


def _supervision(deps: Deps, order: WorkerOrder) -> Supervision:
    """Return what the supervisor of the worker watches and limits."""
    settings = deps.spec.runner.sandbox
    return Supervision(
        idle_sec=deps.member(order.member).spec.runner.worker.idle_timeout_sec,
        disk=((Path(deps.spec.repo), deps.folder.sandbox_dir), disk_bytes(settings)),
        after=deps.snapshots.take_command(),
        secrets=deps.redactor.spellings,
    )


def _git_mounts(deps: Deps) -> tuple[Mount, ...]:
    """Return mounts that give the worker its own index and objects; without a sandbox none."""
    if not deps.sandbox.isolates:
        return ()
    return worker_git(Path(deps.spec.repo), deps.folder.root / WORKER_GIT)


def _wall_sec(state: TaskContext, deps: Deps, spec: TaskSpec) -> float:
    """Return how many seconds the worker may take, within the budget that the run has left."""
    remaining = left_of(deps.spec, state).get("wall_sec", math.inf)
    return max(1.0, min(spec.runner.worker.max_run_time_sec, remaining))


def refused_login(state: TaskContext, deps: Deps, order: WorkerOrder) -> str:
    """Return the fingerprint of the token that its latest run was refused with; "" for none."""
    runs = [run for run in state.get("recent", []) if run.member == order.member]
    latest = runs[-1] if runs else None
    if latest is None or not _ended_by_auth(latest):
        return ""
    return str(seen_before(deps, latest.worker_run_id).get("login", ""))


def again_with_login(deps: Deps, order: WorkerOrder, run: WorkerRun) -> WorkerOrder | None:
    """Return the same order, continued with a fresh token; None where that is of no use."""
    member = deps.member(order.member)
    if member.spec.runner.worker.auth == "key" or not _ended_by_auth(run):
        return None
    again = after_refused_login(order.worker_run_id)
    if again is None:
        return None
    mode = "resume" if run.session_id else order.mode
    return order.model_copy(update={"worker_run_id": again, "mode": mode})


def _ended_by_auth(run: WorkerRun) -> bool:
    return run.outcome == "auth"
