"""Opening what a run works with: its sandbox, snapshots and logs; and closing it again."""

from __future__ import annotations

import asyncio
import shlex
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from agentrunner.config.agents import AUTO
from agentrunner.config.spec import TaskSpec
from agentrunner.discovery.versions import CACHE, sandbox_version
from agentrunner.engine.known_reds import accepted_reds
from agentrunner.engine.resolve import script_hidden, worker_missing
from agentrunner.environment import home_of
from agentrunner.errors import InfraError, UsageError
from agentrunner.errors.sandboxes import BadImageName, SandboxUnavailable
from agentrunner.execution.deps import Clock, Deps
from agentrunner.execution.resolved import ResolvedRun
from agentrunner.git.snapshots import Snapshots, worked_mark
from agentrunner.launching.launch import read_paths, resource_limits
from agentrunner.launching.route import Cassette
from agentrunner.planners.workplace import Workplace
from agentrunner.policy.check import isolating
from agentrunner.policy.load import load_policies
from agentrunner.prompts import load_patterns
from agentrunner.sandboxes.base import Caches, Owner, Request, Sandbox, SandboxOrder
from agentrunner.sandboxes.choose import make_sandbox, missing_image, open_sandbox
from agentrunner.sandboxes.find_caches import find_caches
from agentrunner.storage.events import EventLog, Listener
from agentrunner.storage.locks import FileLock
from agentrunner.storage.run_folder import RunFolder, kept_sandbox
from agentrunner.storage.run_log import RunLog
from agentrunner.storage.worker_ledger import Ledger
from agentrunner.text.redaction import Redactor
from agentrunner.verification.evidence.checks import command_of
from agentrunner.verification.evidence.measure import Measurer
from agentrunner.verification.evidence.verifier import Verifier
from agentrunner.verification.proof.run_prover import RunProver
from agentrunner.verification.results.commands import runs_of
from agentrunner.verification.results.files import MOST_READ, read_plain
from agentrunner.verification.rooms.decision_sandbox import DecisionSandbox
from agentrunner.verification.rooms.room import Rooms
from agentrunner.verification.rooms.sealed import Sealed
from agentrunner.workers.base import RunsScript
from agentrunner.workers.member import Member


def programs(spec: TaskSpec, members: Sequence[Member]) -> tuple[str, ...]:
    """Return the programs that the commands start which will run in the sandbox."""
    test, setup = spec.task.test, spec.task.setup
    shells = [(test.command, test.cwd)] if test else []
    shells += [(setup.command, ".")] if setup else []
    for criterion in spec.criteria:
        command = command_of(criterion.check, test) if criterion.check else None
        shells += [(command.shell, command.cwd)] if command else []
    words = [*(member.worker.program() for member in members), "sh"]
    for shell, cwd in shells:
        words += started_programs(shell, Path(spec.repo), cwd)
    return tuple(dict.fromkeys(words))


def started_programs(shell: str, repo: Path, cwd: str = ".") -> list[str]:
    """Return the programs that a command starts, those behind `env`, make and scripts as well."""
    read = partial(read_plain, repo, most=MOST_READ)
    return [*first_words(shell), *(run.words[0] for run in runs_of(shell, cwd, read))]


def first_words(shell: str) -> list[str]:
    """Return the programs that a shell line names: first words after `&&`, `||`, `;` and `|`."""
    lexer = shlex.shlex(shell, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words, fresh = [], True
    try:
        for word in lexer:
            if word in ("&&", "||", ";", "|", "&", "(", ")"):
                fresh = True
            elif fresh and "=" not in word:
                words.append(word)
                fresh = False
    except ValueError:  # an unclosed quote; the shell will report it
        return words
    return words


def sandbox_order(spec: TaskSpec, members: Sequence[Member], folder: RunFolder) -> SandboxOrder:
    """Return the one sandbox of this task, in which each of its workers can work."""
    kinds = {member.worker.kind for member in members}
    policies = {member.network.policy for member in members}
    settings = spec.runner.sandbox
    return SandboxOrder(
        repo=Path(spec.repo),
        home=folder.sandbox_dir,
        network="full" if "full" in policies else "none",
        programs=programs(spec, members),
        read_paths=read_paths(spec),
        image=_image(members),
        image_from=Path(spec.repo) / settings.image_from if settings.image_from else None,
        worker_kind=kinds.pop() if len(kinds) == 1 else "",
        pull=settings.pull or "never",
        limits=resource_limits(settings),
        sockets=folder.sock_dir,
        owner=Owner(folder.run_id, spec.task_id),
    )


def with_caches(order: SandboxOrder, spec: TaskSpec, environ: Mapping[str, str]) -> SandboxOrder:
    """Return the sandbox order with the user's package caches that this task may see. Blocks."""
    wanted = spec.runner.sandbox.caches
    return replace(order, caches=shown_caches(order.repo, wanted, spec.cache_caps, environ))


def shown_caches(
    repo: Path, wanted: str | list[str], allowed: list[str] | None, environ: Mapping[str, str]
) -> Caches:
    """Return the caches as `runner.sandbox.caches` wants and policies allow. Blocks."""
    listed = {"auto": None, "none": []}[wanted] if isinstance(wanted, str) else wanted
    return find_caches(repo, environ, home_of(environ), listed, allowed=allowed)


def _image(members: Sequence[Member]) -> str:
    """Return the image that the task names; raise UsageError where candidates' images differ."""
    names = {member.spec.runner.worker.docker_image or "" for member in members}
    if len(names) > 1:
        raise BadImageName(
            "All workers of a run share one sandbox, and these name different images: "
            f"{', '.join(sorted(names - {''}))}.",
            path="runner.workers",
            remedy="give each of them the same docker_image, one that has all their CLIs",
        )
    return names.pop()


def check_sandbox(resolved: ResolvedRun, state_dir: Path) -> None:
    """Raise UsageError where no sandbox may hold this repository, or mount what it asks for."""
    spec, environ = resolved.spec, resolved.environ
    try:
        make_sandbox(
            spec.runner.sandbox.kind,
            sandbox_order(spec, resolved.members, RunFolder(Path(spec.repo))),
            environ,
            home_of(environ),
            state_root=state_dir,
        )
    except UsageError as error:
        error.path = spec.places.get(error.path or "", error.path)
        raise


async def lacking_in_sandbox(
    resolved: ResolvedRun, order: SandboxOrder, state_dir: Path
) -> list[InfraError]:
    """Return what keeps every worker from working in the sandbox, which is opened for that only
    where a worker can lack something there. No image is fetched for it.
    """
    if not any(map(_may_be_hidden, resolved.members)):
        return []
    settings, environ = resolved.spec.runner.sandbox, resolved.environ
    if settings.pull in ("missing", "always"):
        return []
    with tempfile.TemporaryDirectory(prefix="agentrunner-") as root:
        folder = RunFolder(Path(root))
        await asyncio.to_thread(folder.sandbox_dir.mkdir)
        here = replace(order, home=folder.sandbox_dir, sockets=folder.sock_dir)
        try:
            sandbox = await open_sandbox(
                settings.kind, here, environ, home_of(environ), state_root=state_dir
            )
        except InfraError as error:
            return [error]
        try:
            await _workers_in(sandbox, resolved.members, state_dir)
        except InfraError as error:
            return [error]
        finally:
            await sandbox.close()
    return []


def _may_be_hidden(member: Member) -> bool:
    """Whether only the sandbox can tell that it has what this worker is made of."""
    worker = member.worker
    script = worker.script() if isinstance(worker, RunsScript) else None
    return script is not None or member.probe.path is None


async def _workers_in(
    sandbox: Sandbox, members: Sequence[Member], state_dir: Path
) -> tuple[Member, ...]:
    """Return the workers that this machine or the sandbox has; raise InfraError where there is
    none.

    The version of a worker that only the sandbox has is asked for there.
    """
    hidden = [await _hidden_script(sandbox, member) for member in members]
    seen = [member for member, script in zip(members, hidden, strict=True) if script is None]
    found = [await _found(sandbox, member, state_dir / CACHE) for member in seen]
    if not any(found):
        first = members[0]
        if hidden[0] is not None:
            raise script_hidden(first, str(hidden[0]), sandbox.describe())
        where = f"neither on this machine nor in the sandbox ({sandbox.describe()})"
        raise worker_missing(first, f"{first.worker.program()} is {where}.")
    return tuple(member for member in found if member is not None)


async def _hidden_script(sandbox: Sandbox, member: Member) -> Path | None:
    """Return the script that a worker is to run and that its sandbox does not have, if any."""
    worker = member.worker
    if not sandbox.isolates or not isinstance(worker, RunsScript):
        return None
    script = await asyncio.to_thread(worker.script)
    if script is None:
        return None
    return None if await _is_there(sandbox, member, 'test -r "$1"', str(script)) else script


async def _found(sandbox: Sandbox, member: Member, versions: Path) -> Member | None:
    """Return the candidate with the version that will work; None where its program is nowhere."""
    if member.probe.path is not None:
        return member
    if not await _is_there(sandbox, member, 'command -v "$1"', member.worker.program()):
        return None
    version = await sandbox_version(sandbox, member, versions)
    return replace(member, probe=replace(member.probe, version=version))


async def _is_there(sandbox: Sandbox, member: Member, test: str, what: str) -> bool:
    """Whether a shell in the sandbox finds something by a test on $1."""
    seek = ("sh", "-c", test, "sh", what)
    workdir = Path(member.spec.repo)
    result = await sandbox.run(Request(command=seek, workdir=workdir, timeout_sec=60))
    return result.exit_code == 0


async def with_image(resolved: ResolvedRun, confirm: Callable[[str], bool] | None) -> ResolvedRun:
    """Return the run, with `pull: missing` where its image is missing and a person confirms getting
    it.

    Only for sandboxes that are named: `auto` goes on to the next kind. Raises SandboxUnavailable
    (`image-missing`) before anything is written where nobody confirms.
    """
    spec, settings = resolved.spec, resolved.spec.runner.sandbox
    if settings.kind == AUTO or settings.pull in ("missing", "always"):
        return resolved
    nowhere = RunFolder(Path(spec.repo))
    order = sandbox_order(spec, resolved.members, nowhere)
    with _naming_policy(spec):
        missing = await missing_image(settings.kind, order, resolved.environ)
    if missing is None:
        return resolved
    asked = (
        confirm if settings.pull is None and missing.details else None
    )  # else confirming does not help
    question = f"{missing.message[:1].upper()}{missing.message[1:]}.\nGet it now"
    if asked is None or not asked(f"{question} ({missing.remedy})?"):
        raise missing
    sandbox = settings.model_copy(update={"pull": "missing"})
    runner = spec.runner.model_copy(update={"sandbox": sandbox})
    return replace(resolved, spec=spec.model_copy(update={"runner": runner}))


@asynccontextmanager
async def open_workshop(
    resolved: ResolvedRun,
    folder: RunFolder,
    state_dir: Path,
    listeners: list[Listener],
    repository: FileLock,
    clock: Clock | None = None,
    cassette: Cassette | None = None,
) -> AsyncIterator[tuple[Deps, ResolvedRun]]:
    """Yield the dependencies of the nodes, with the sandbox open; close them whatever happens.

    The second value is what is known of the run now: with the workers that the sandbox has, and
    notices about package caches.
    """
    spec, environ, planner = resolved.spec, resolved.environ, resolved.planner
    assert planner is not None
    clock = clock or Clock()
    redactor = Redactor(resolved.secrets)
    events = EventLog(folder.events_file, folder.run_id, clock.now, redactor.redact)
    events.listeners.extend(listeners)
    repo = Path(spec.repo)
    snapshots = await asyncio.to_thread(
        Snapshots.of, folder.snapshots_dir, spec, worked_mark(state_dir, repo)
    )
    log = RunLog(folder.log_file, redactor.redact)
    await asyncio.to_thread(log.records)  # from here on it reads only what is appended
    order = await asyncio.to_thread(
        with_caches, sandbox_order(spec, resolved.members, folder), spec, environ
    )
    resolved = resolved.noting(order.caches.notices)
    sandbox = await _open_sandbox(resolved, order, folder, state_dir, events)
    try:
        verifier = make_verifier(
            spec,
            DecisionSandbox(sandbox, repo, folder, redactor.redact, environ, spec.task.env),
            snapshots,
            folder,
            mounts=sandbox.isolates,
            emit=events.emit,
            log=log,
        )
        await asyncio.to_thread(verifier.clear)
        resolved = resolved.with_members(await _workers_in(sandbox, resolved.members, state_dir))
        await planner.open(Workplace(folder, state_dir, sandbox, redactor))
        deps = Deps(
            spec=spec,
            folder=folder,
            log=log,
            events=events,
            snapshots=snapshots,
            ledger=Ledger(folder),
            verifier=verifier,
            prover=RunProver(verifier, folder.root / "proof"),
            panel=planner,
            members=resolved.members,
            sandbox=sandbox,
            redactor=redactor,
            patterns=load_patterns(spec.patterns_text, spec.language),
            environ=environ,
            repository=repository,
            prices=resolved.prices,
            secrets=resolved.secrets,
            clock=clock,
            cassette=cassette or Cassette(),
        )
        yield deps, resolved
    finally:
        try:
            await planner.close()
        finally:
            await sandbox.close()


def make_verifier(
    spec: TaskSpec,
    sandbox: DecisionSandbox,
    snapshots: Snapshots,
    folder: RunFolder,
    *,
    mounts: bool,
    emit: Callable[..., Any],
    log: RunLog | None = None,
) -> Verifier:
    """Return what measures trees of a run; `mounts` says whether its sandbox can mount. Blocks.

    The known reds that people accepted in the run are read from `log`.
    """
    sealed = Sealed(folder.root / "sealed", Path(spec.repo))
    return Verifier(
        spec=spec,
        sandbox=sandbox,
        snapshots=snapshots,
        rooms=Rooms(snapshots, sealed, folder.root / "rooms", mounts=mounts),
        measurer=Measurer(
            sandbox,
            folder,
            spec.task.test.network if spec.task.test else (),
            lambda: [folder.name for folder, _ in sealed.folders()],
            mounts=mounts,
        ),
        emit=emit,
        accepted_red=accepted_reds(log) if log else (),
    )


async def _open_sandbox(
    resolved: ResolvedRun, order: SandboxOrder, folder: RunFolder, state_dir: Path, events: EventLog
) -> Sandbox:
    """Open a sandbox like the one that the run has had, else the one that the task wants."""

    def show_progress(line: str) -> None:
        events.emit("image_progress", text=line)

    environ = resolved.environ
    kind, image = kept_sandbox(folder)
    wanted = replace(order, on_progress=show_progress)
    if image:  # exactly that image: a worker may have changed what it is built from
        wanted = replace(wanted, image=image, pull="never")
    with _naming_policy(resolved.spec):
        return await open_sandbox(
            kind or resolved.spec.runner.sandbox.kind,
            wanted,
            environ,
            home_of(environ),
            state_root=state_dir,
        )


@contextmanager
def _naming_policy(spec: TaskSpec) -> Iterator[None]:
    """Name the policy that left one kind of sandbox, in the error of one that does not start."""
    try:
        yield
    except SandboxUnavailable as error:
        kind = spec.runner.sandbox.kind
        if kind != AUTO and "runner.sandbox.kind" not in spec.places:
            policies = load_policies(None, {}, kept=[Path(one.path) for one in spec.policies])
            kinds = ((one.path, one.caps.sandbox.kinds) for one in policies)
            if which := [str(path) for path, some in kinds if some and isolating(some) == [kind]]:
                text = f"{' and '.join(which)} leaves no other sandbox than {kind}"
                error.details += (("policy", text),)
        raise
