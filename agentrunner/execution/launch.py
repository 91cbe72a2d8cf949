"""How a worker is started: its key, its way out, its command, and the supervisor beside it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import math
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from agentrunner.config.spec import TaskSpec
from agentrunner.execution.credentials import worker_env
from agentrunner.execution.deps import Deps, Stopped
from agentrunner.execution.egress import EgressRoute, exit_for
from agentrunner.execution.login import credential_for, refused_login
from agentrunner.execution.outside_changes import note_foreign_edits
from agentrunner.execution.worker_record import BEFORE, git_places
from agentrunner.gateway.process import companion
from agentrunner.sandboxes.base import Mount, Request
from agentrunner.sandboxes.limits import DISK, memory_bytes
from agentrunner.sandboxes.worker_git import worker_git
from agentrunner.state.budget import left_of
from agentrunner.state.run_state import TaskContext, WorkerOrder
from agentrunner.storage.failpoints import reach
from agentrunner.supervisor.client import SupervisorOrder, start
from agentrunner.workers.base import WorkerCall, WorkerCommand
from agentrunner.workers.launching import CliCredential

WORKER_GIT = "worker-git"
"""In the run's folder: the git folder that workers see."""
BARE_LOGIN = (
    "There is no gateway: the worker sees the access token of the {kind} login. "
    "Whoever reads it can use the subscription until it ends."
)


@dataclass(frozen=True)
class _LaunchInputs:
    """What a worker gets beside its order."""

    shown: CliCredential
    way_out: EgressRoute


async def start_worker(
    state: TaskContext, deps: Deps, order: WorkerOrder
) -> subprocess.Popen[bytes]:
    """Find the worker's key and its way out, then start it."""
    member = deps.member(order.member)
    shown = await credential_for(
        member.spec,
        member.worker,
        deps.environ,
        gateway=member.has_gateway,
        refused=refused_login(state, deps, order),
        replays=deps.cassette.replay is not None,
    )
    deps.redactor.learn(shown.secrets)
    if shown.bare_login:
        deps.warn(state, "login-in-box", BARE_LOGIN.format(kind=member.worker.kind))
    given = _LaunchInputs(shown, exit_for(state, deps, order, shown.upstream))
    process = await asyncio.to_thread(_hand_over, state, deps, order, given)
    reach("after_start")
    deps.emit(
        "worker_started", worker_run_id=order.worker_run_id, worker=order.worker,
        model=order.model, loop=order.loop,
    )  # fmt: skip
    return process


def _hand_over(
    state: TaskContext, deps: Deps, order: WorkerOrder, given: _LaunchInputs
) -> subprocess.Popen[bytes]:
    """Look at the tree as it is, claim the run, hand it to a supervisor that outlives us. Blocking.

    All in one go: each way to another thread and back costs as much as a look at a small tree.
    """
    before = deps.snapshots.take()
    note_foreign_edits(state, deps, before.tree)
    deps.log.sync()
    fingerprint = deps.snapshots.dependency_fingerprint()
    git = git_places(deps, before.embedded)
    call = _call(state, deps, order, given)
    command = deps.member(order.member).worker.command(call)
    for folder in command.folders:
        make_own(folder, deps.folder.box_dir)
    for path, text in command.files.items():
        make_own(path.parent, deps.folder.box_dir)
        name = path.relative_to(deps.folder.root).as_posix()
        deps.folder.write(name, text, sync=False)
    if deps.stop.is_set():
        raise Stopped
    reach("before_claim")
    claim = deps.ledger.claim(order.worker_run_id)
    with contextlib.closing(claim):
        seen = {"tree": before.tree, "gitdirs": git, "dependencies": fingerprint}
        seen["login"] = given.shown.fingerprint
        deps.folder.write(f"workers/{order.worker_run_id}/{BEFORE}", json.dumps(seen), new=True)
        reach("after_claim")
        deps.snapshots.worker_starts()
        supervisor_order = _supervisor_order(state, deps, call, command, given)
        return start(supervisor_order, claim, deps.repository)


def _call(state: TaskContext, deps: Deps, order: WorkerOrder, given: _LaunchInputs) -> WorkerCall:
    """The order as the adapter reads it; `resume` without a session becomes `exec`."""
    prompt = deps.folder.read(order.prompt).decode("utf-8")
    prompt_file = deps.folder.box_dir / "prompts" / f"{order.worker_run_id}.md"
    make_own(prompt_file.parent, deps.folder.box_dir)
    deps.folder.write(f"box/prompts/{order.worker_run_id}.md", prompt, sync=False, new=True)
    session = _session(state, order) if order.mode == "resume" else None
    if order.mode == "resume" and session is None:
        deps.warn(state, "no-session", "There is no session to resume; the worker starts afresh.")
    return WorkerCall(
        worker_run_id=order.worker_run_id,
        prompt=prompt,
        workdir=Path(deps.spec.repo),
        home=deps.folder.box_dir,
        prompt_file=prompt_file,
        mode="resume" if session else "exec",
        session_id=session,
        new_session_id=_new_session(state["run"].run_id, order.worker_run_id),
        model=order.model,
        flags=tuple(order.flags),
        tool_specific=order.tool_specific,
        base_url=given.way_out.base_url or given.shown.base_url or None,
        login=bool(given.shown.fingerprint),
        sandboxed=deps.sandbox.isolates,
    )


def _new_session(run_id: str, worker_run_id: str) -> str:
    """The id for a new session: a UUID that is another one in every worker run."""
    digest = hashlib.sha256(f"{run_id}/{worker_run_id}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def _session(state: TaskContext, order: WorkerOrder) -> str | None:
    """The latest session of this candidate; another one's is of no use to it."""
    runs = [run for run in state.get("recent", []) if run.member == order.member]
    return next((run.session_id for run in reversed(runs) if run.session_id), None)


def _supervisor_order(
    state: TaskContext, deps: Deps, call: WorkerCall, command: WorkerCommand, given: _LaunchInputs
) -> SupervisorOrder:
    order = state["order"]
    assert order is not None
    member = deps.member(order.member)
    wall = _wall_sec(state, deps, member.spec)
    way_out = given.way_out
    request = Request(
        command=command.argv,
        workdir=call.workdir,
        env=_environment(deps, order, command, given),
        stdin=command.stdin,
        network="full" if member.network.policy == "full" else "none",
        timeout_sec=wall,
        mounts=_git(deps),
        door=way_out.door,
    )
    return SupervisorOrder(
        launch=deps.sandbox.launch(request),
        stdin=command.stdin,
        wall_sec=wall,
        idle_sec=member.spec.runner.worker.idle_timeout_sec,
        stop_signal=command.stop_signal,
        watch=command.watch,
        after=deps.snapshots.take_command(),
        disk=_disk(deps),
        companion=companion(way_out.order, deps.environ) if way_out.order else None,
        secrets=deps.redactor.spellings,
    )


def _git(deps: Deps) -> tuple[Mount, ...]:
    """An index and objects of the worker's own; without a box it has the user's."""
    if not deps.sandbox.isolates:
        return ()
    return worker_git(Path(deps.spec.repo), deps.folder.root / WORKER_GIT)


def _environment(
    deps: Deps, order: WorkerOrder, command: WorkerCommand, given: _LaunchInputs
) -> dict[str, str]:
    """What the worker's box adds to its own; of two values the later one holds."""
    member = deps.member(order.member)
    env = {
        **given.way_out.environment,
        **command.env,
        **worker_env(member.spec, member.worker, deps.environ),
        **order.env,
        **given.shown.env,
    }
    name = given.shown.token_env or command.key_env
    if name and given.shown.key:
        env[name] = given.shown.key
    return env


def _wall_sec(state: TaskContext, deps: Deps, spec: TaskSpec) -> float:
    """How long the worker may take, within what the run has left."""
    left = left_of(deps.spec, state).get("wall_sec", math.inf)
    return max(1.0, min(spec.runner.worker.max_run_time_sec, left))


def _disk(deps: Deps) -> tuple[tuple[Path, ...], int]:
    limit = deps.spec.runner.sandbox.disk or DISK
    return (Path(deps.spec.repo), deps.folder.box_dir), memory_bytes(limit, "disk")


def make_own(folder: Path, box: Path) -> None:
    """Make a folder below `box`, and what is missing between, for its owner only.

    What an earlier worker left in its place is removed: through a link the next file would be
    written where no box has anything to say.
    """
    for part in reversed([folder, *folder.parents]):
        if not part.is_relative_to(box):
            continue
        if part.is_symlink() or part.is_file():
            part.unlink()
        part.mkdir(mode=0o700, exist_ok=True)
