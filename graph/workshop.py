"""Opening what a run works with: box, worker, planner, snapshots, logs; and closing it again."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentrunner.errors import Surroundings, UsageError
from agentrunner.evidence.box import DecisionBox
from agentrunner.evidence.checks import command_of
from agentrunner.evidence.gather import Gatherer
from agentrunner.evidence.guard import Guard
from agentrunner.gateway.prices import load_prices
from agentrunner.meta.base import MetaClient
from agentrunner.meta.make import make_meta
from agentrunner.nodes.credentials import credential, secrets_of
from agentrunner.nodes.deps import Cassette, Clock, Deps
from agentrunner.nodes.egress import has_gateway
from agentrunner.nodes.login import check_login
from agentrunner.notes import check_note_dir
from agentrunner.prompts import load_patterns
from agentrunner.runs.events import EventLog
from agentrunner.runs.folder import RunFolder, kept_box
from agentrunner.runs.ledger import Ledger
from agentrunner.runs.locks import FileLock
from agentrunner.runs.log import RunLog
from agentrunner.runs.snapshots import Snapshots, check_open
from agentrunner.sandboxes.base import BoxSpec, Owner, Request, ResourceLimit, Sandbox
from agentrunner.sandboxes.choose import make_sandbox, missing_image, open_sandbox
from agentrunner.sandboxes.limits import DISK
from agentrunner.settings import ignored_tracing, prices_file
from agentrunner.task.spec import NetworkSpec, TaskSpec
from agentrunner.text.redaction import Redactor
from agentrunner.workers.base import Probe, Worker
from agentrunner.workers.make import make_worker, network_of

IMAGES = ("auto", "docker")
"""Boxes whose image may bring a worker that this machine has not."""


@dataclass
class Crew:
    """Who plans and who works, looked for before anything is spent."""

    meta: MetaClient | None
    """None where it is not to be had."""
    worker: Worker
    probe: Probe
    notices: list[str] = field(default_factory=list)
    """What a person should know before it starts."""
    missing: list[Surroundings] = field(default_factory=list)
    """What keeps it from starting; nothing in a crew that `assemble` gives."""


def assemble(spec: TaskSpec, environ: Mapping[str, str], cassette: Cassette | None = None) -> Crew:
    """Planner and worker of this task; raises Surroundings where one is missing."""
    crew = muster(spec, environ, cassette)
    if crew.missing:
        raise crew.missing[0]
    return crew


def muster(spec: TaskSpec, environ: Mapping[str, str], cassette: Cassette | None = None) -> Crew:
    """Planner and worker as far as they are to be had, and what is missing."""
    check_open(Path(spec.repo))
    check_note_dir(Path(spec.repo), spec.runner.note.dir)
    worker = make_worker(spec)
    crew = Crew(None, worker, worker.probe(), _notices(spec, worker, environ))
    if crew.probe.path is None and spec.runner.sandbox.kind not in IMAGES:
        crew.missing.append(_worker_missing(spec, crew.probe.problem, crew.probe.cure))
    tape = cassette or Cassette()
    crew.notices += _tape_notices(tape, spec, worker)
    replays = tape.replay is not None
    try:
        if not replays:
            check_login(spec, worker, environ)
        _check_model_access(spec, worker, environ, network_of(spec, worker), replays)
    except Surroundings as error:
        crew.missing.append(error)
    try:
        crew.meta = make_meta(spec, environ, record=tape.record, replay=tape.replay)
    except Surroundings as error:
        crew.missing.append(error)
    return crew


def _worker_missing(spec: TaskSpec, problem: str = "", cure: str = "") -> Surroundings:
    return Surroundings(
        problem or f"The worker {spec.runner.worker.kind} is not found.",
        code="worker-missing",
        remedy=cure or "agentrunner doctor",
        nothing_spent=True,
    )


async def _check_worker_in(sandbox: Sandbox, spec: TaskSpec, crew: Crew) -> None:
    """Raises Surroundings where neither this machine nor the box has the worker."""
    if crew.probe.path is not None:
        return
    program = crew.worker.program()
    seek = ("sh", "-c", 'command -v "$1"', "sh", program)
    result = await sandbox.run(Request(command=seek, workdir=Path(spec.repo), timeout_sec=60))
    if result.exit_code != 0:
        here = f"{program} is neither on this machine nor in the box ({sandbox.describe()})."
        raise _worker_missing(spec, here, crew.probe.cure)


def _notices(spec: TaskSpec, worker: Worker, environ: Mapping[str, str]) -> list[str]:
    """What is open, and what is not obeyed."""
    box = spec.runner.sandbox
    notices = []
    if network_of(spec, worker).policy == "full":
        notices.append("The box shares this machine's network (runner.sandbox.network: full).")
    keyed = spec.runner.worker.auth == "key"
    name = credential(spec, worker, environ)[0] if keyed else f"The {worker.kind} login's token"
    if name and not has_gateway(spec, worker, box.kind):
        where = "" if box.kind == "none" else " inside the box"
        notices.append(f"{name} is handed to the worker{where}.")
    elsewhere = environ.get("OPENAI_BASE_URL")
    if elsewhere and name == "OPENAI_API_KEY" and spec.runner.worker.base_url is None:
        notices.append(
            f"OPENAI_BASE_URL is the planner's. The worker shows OPENAI_API_KEY to "
            f"{worker.provider_url}; runner.worker.base_url names another server."
        )
    if spec.runner.budget.usd is not None and not _is_priced(spec, worker, environ):
        notices.append(
            "The price of the worker's model is not known: runner.budget.usd cannot stop it."
        )
    if short := Redactor(secrets_of(spec, worker, environ)).unprotected:
        notices.append(f"{', '.join(short)} is too short to be masked in notes and logs.")
    if tracing := ignored_tracing():
        notices.append(f"{', '.join(tracing)} is ignored: nothing is sent to a tracing service.")
    if box.kind == "none":
        notices.append("No sandbox: the worker runs as you, with all that you can reach.")
    return notices


def _is_priced(spec: TaskSpec, worker: Worker, environ: Mapping[str, str]) -> bool:
    """Whether what the gateway counts has a price, or needs none."""
    if not worker.wire or spec.runner.worker.auth == "login":
        return True
    model = spec.runner.worker.model
    return model is not None and load_prices(prices_file(environ)).price(model) is not None


def _tape_notices(tape: Cassette, spec: TaskSpec, worker: Worker) -> list[str]:
    """What is recorded or replayed; raises UsageError where a worker would go around that."""
    if tape.record is None and tape.replay is None:
        return []
    if worker.wire and not has_gateway(spec, worker, spec.runner.sandbox.kind):
        raise UsageError(
            f"{worker.kind} is recorded and replayed at the gateway of its box, and there is none.",
            code="usage",
            path="--record" if tape.record else "--replay",
            remedy="--sandbox bwrap or --sandbox docker, with the network allowlist",
        )
    if tape.record:
        return [f"Every exchange with a model is recorded in {tape.record}."]
    return [f"Replayed from {tape.replay}: no model is asked, and the cost is that of then."]


def _check_model_access(
    spec: TaskSpec, worker: Worker, environ: Mapping[str, str], network: NetworkSpec, replays: bool
) -> None:
    """Raises Surroundings where the worker has no way to its model, or nothing to show there."""
    if not worker.needs_model:
        return
    if network.policy == "none":
        raise Surroundings(
            f"{worker.kind} calls a model over the network, and the box has none.",
            code="worker-needs-network",
            path="runner.sandbox.network",
            remedy="leave runner.sandbox.network out, or set it to allowlist",
            nothing_spent=True,
        )
    keyless = replays or spec.runner.worker.auth == "login" or bool(spec.runner.worker.base_url)
    if worker.key_names and not keyless and not credential(spec, worker, environ)[0]:
        raise Surroundings(
            f"{worker.kind} needs a key for its model, and none of "
            f"{', '.join(worker.key_names)} is set.",
            code="worker-key-missing",
            path="runner.worker.env",
            remedy=f"export {worker.key_names[0]}=…",
            nothing_spent=True,
        )


def programs(spec: TaskSpec, worker: Worker) -> tuple[str, ...]:
    """First words of every command that will run in the box."""
    test, setup = spec.task.test, spec.task.setup
    shells = [test.command] if test else []
    shells += [setup.command] if setup else []
    for criterion in spec.criteria:
        command = command_of(criterion.check, test) if criterion.check else None
        shells += [command.shell] if command else []
    words = [worker.program(), "sh"]
    for shell in shells:
        words += first_words(shell)
    return tuple(dict.fromkeys(words))


def first_words(shell: str) -> list[str]:
    """The programs a shell line names: the first word after each `&&`, `||`, `;` and `|`."""
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
    except ValueError:  # an unclosed quote; the shell will say so itself
        return words
    return words


def box_spec(spec: TaskSpec, worker: Worker, folder: RunFolder) -> BoxSpec:
    """The box of this task."""
    box = spec.runner.sandbox
    return BoxSpec(
        repo=Path(spec.repo),
        home=folder.box_dir,
        network="full" if network_of(spec, worker).policy == "full" else "none",
        programs=programs(spec, worker),
        read_paths=tuple(
            Path(os.path.normpath(Path(spec.base_dir) / path)) for path in box.read_paths
        ),
        image=spec.runner.worker.docker_image or "",
        image_from=Path(spec.repo) / box.image_from if box.image_from else None,
        worker_kind=worker.kind,
        pull=box.pull or "never",
        limits=ResourceLimit(
            cpus=box.cpus, memory=box.memory, pids=box.pids, disk=box.disk or DISK
        ),
        sockets=folder.sock_dir,
        owner=Owner(folder.run_id, spec.task_id),
    )


def check_box(spec: TaskSpec, crew: Crew, environ: Mapping[str, str], state_dir: Path) -> None:
    """Raises UsageError where no box may hold this repository, or show what the task asks for."""
    make_sandbox(
        spec.runner.sandbox.kind,
        box_spec(spec, crew.worker, RunFolder(Path(spec.repo))),
        environ,
        Path(environ.get("HOME") or Path.home()),
        state_root=state_dir,
    )


async def with_image(
    spec: TaskSpec, crew: Crew, environ: Mapping[str, str], confirm: Callable[[str], bool] | None
) -> TaskSpec:
    """The task, with `pull: missing` where its image is missing and a person wants it made.

    Only for boxes that are Docker by name: `auto` goes on to the next kind. Raises
    SandboxUnavailable (`image-missing`) before anything is written where nobody says yes.
    """
    box = spec.runner.sandbox
    if box.kind != "docker" or box.pull in ("missing", "always"):
        return spec
    nowhere = RunFolder(Path(spec.repo))
    missing = await missing_image(box_spec(spec, crew.worker, nowhere), environ)
    if missing is None:
        return spec
    asked = confirm if box.pull is None and missing.details else None  # else a yes is no help
    question = f"{missing.message[:1].upper()}{missing.message[1:]}.\nGet it now"
    if asked is None or not asked(f"{question} ({missing.remedy})?"):
        raise missing
    sandbox = box.model_copy(update={"pull": "missing"})
    runner = spec.runner.model_copy(update={"sandbox": sandbox})
    return spec.model_copy(update={"runner": runner})


@asynccontextmanager
async def open_workshop(
    spec: TaskSpec,
    folder: RunFolder,
    state_dir: Path,
    environ: Mapping[str, str],
    listeners: list[Callable[[dict[str, Any]], None]],
    repository: FileLock,
    crew: Crew,
    clock: Clock | None = None,
    cassette: Cassette | None = None,
) -> AsyncIterator[Deps]:
    """Everything the nodes stand on, with the box open; closed again whatever happens."""
    assert crew.meta is not None
    clock = clock or Clock()
    known = secrets_of(spec, crew.worker, environ)
    redactor = Redactor(known)
    events = EventLog(folder.events_file, folder.run_id, clock.now, redactor.redact)
    events.listeners.extend(listeners)
    repo = Path(spec.repo)
    snapshots = await asyncio.to_thread(Snapshots, folder.snapshots_dir, repo, spec.runner.note.dir)
    home = Path(environ.get("HOME") or Path.home())

    def told(line: str) -> None:
        events.emit("image_progress", text=line)

    kind, image = kept_box(folder)
    wanted = box_spec(spec, crew.worker, folder)
    if image:  # exactly that one: a worker may have changed what it was built from
        wanted = replace(wanted, image=image, pull="never")
    sandbox = await open_sandbox(
        kind or spec.runner.sandbox.kind,
        replace(wanted, on_progress=told),
        environ,
        home,
        state_root=state_dir,
    )
    try:
        gatherer = Gatherer(
            spec=spec,
            box=DecisionBox(sandbox, repo, folder, redactor.redact, environ),
            snapshots=snapshots,
            guard=Guard(
                snapshots,
                folder.root / "copies",
                spec.task.test.may_change if spec.task.test else (),
                mounts=sandbox.kind != "none",
            ),
            emit=events.emit,
        )
        await _check_worker_in(sandbox, spec, crew)
        yield Deps(
            spec=spec,
            folder=folder,
            log=RunLog(folder.log_file, redactor.redact),
            events=events,
            snapshots=snapshots,
            ledger=Ledger(folder),
            gatherer=gatherer,
            meta=crew.meta,
            worker=crew.worker,
            sandbox=sandbox,
            redactor=redactor,
            patterns=load_patterns(spec.patterns_text, spec.language),
            environ=environ,
            repository=repository,
            prices=load_prices(prices_file(environ)),
            secrets=known,
            clock=clock,
            cassette=cassette or Cassette(),
        )
    finally:
        await sandbox.close()
        await crew.meta.close()
