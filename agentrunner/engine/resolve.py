"""Who plans and who works in a run, looked for before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentrunner.config.spec import TaskSpec
from agentrunner.engine.limits import check_enforced, not_held
from agentrunner.environment import ignored_tracing
from agentrunner.errors import InfraError, UsageError
from agentrunner.errors.workers import WorkerKeyMissing, WorkerMissing, WorkerNeedsNetwork
from agentrunner.execution.credentials import credential, secrets_of
from agentrunner.execution.deps import Cassette
from agentrunner.execution.egress import has_gateway
from agentrunner.execution.login import check_login
from agentrunner.git.snapshots import check_open
from agentrunner.notes import check_note_dir
from agentrunner.planners.panel import Panel, make_panel
from agentrunner.text.redaction import Redactor
from agentrunner.workers.make import network_of
from agentrunner.workers.member import Member, make_members

IMAGES = ("auto", "docker")
"""Boxes whose image may bring a worker that this machine has not."""


@dataclass
class Agents:
    """Who plans and who may work."""

    meta: Panel | None
    """None where it is not to be had."""
    members: tuple[Member, ...]
    """In order of preference; those that cannot work are left out as long as another one can."""
    notices: list[str] = field(default_factory=list)
    """What a person should know before it starts."""
    missing: list[InfraError] = field(default_factory=list)
    """What keeps it from starting; nothing in a crew that `assemble` gives."""


def assemble(
    spec: TaskSpec, environ: Mapping[str, str], cassette: Cassette | None = None
) -> Agents:
    """Planner and workers of this task; raises Surroundings where one is missing."""
    crew = find_agents(spec, environ, cassette)
    if crew.missing:
        raise crew.missing[0]
    return crew


def find_agents(
    spec: TaskSpec, environ: Mapping[str, str], cassette: Cassette | None = None
) -> Agents:
    """Planner and workers as far as they are to be had, and what is missing."""
    check_open(Path(spec.repo))
    check_note_dir(Path(spec.repo), spec.runner.note.dir)
    tape = cassette or Cassette()
    candidates = make_members(spec)
    crew = Agents(None, candidates)
    lacks = {one.name: _lacking(one, environ, tape) for one in candidates}
    if able := tuple(one for one in candidates if not lacks[one.name]):
        crew.members = able
        left_out = [(name, problems[0]) for name, problems in lacks.items() if problems]
        crew.notices += [f"{name} is left out: {problem.message}" for name, problem in left_out]
    else:
        crew.missing += lacks[candidates[0].name]
    check_enforced(spec, crew.members, environ)
    crew.notices += _notices(spec, crew.members, environ)
    for one in crew.members:
        crew.notices += [told for told in _tape_notices(tape, one) if told not in crew.notices]
    try:
        crew.meta = make_panel(spec, environ, record=tape.record, replay=tape.replay)
        crew.notices += crew.meta.notices
    except InfraError as error:
        crew.missing.append(error)
    return crew


def _lacking(member: Member, environ: Mapping[str, str], tape: Cassette) -> list[InfraError]:
    """What keeps a candidate from working here."""
    missing = []
    if member.probe.path is None and member.spec.runner.sandbox.kind not in IMAGES:
        missing.append(worker_missing(member))
    replays = tape.replay is not None
    try:
        if not replays:
            check_login(member.spec, member.worker, environ)
        _check_model_access(member, environ, replays)
    except InfraError as error:
        missing.append(error)
    return missing


def worker_missing(member: Member, problem: str = "") -> InfraError:
    """The error for a candidate whose program is nowhere."""
    return WorkerMissing(
        problem or member.probe.problem or f"The worker {member.worker.kind} is not found.",
        remedy=member.probe.cure or "agentrunner doctor",
        nothing_spent=True,
    )


def _notices(spec: TaskSpec, members: tuple[Member, ...], environ: Mapping[str, str]) -> list[str]:
    """What is open, and what is not obeyed."""
    box = spec.runner.sandbox
    notices = []
    if any(network_of(one.spec, one.worker).policy == "full" for one in members):
        notices.append("The box shares this machine's network (runner.sandbox.network: full).")
    for one in members:
        notices += [told for told in _key_notices(one, environ) if told not in notices]
    notices += [why for _, why in not_held(spec, members, environ)]
    secrets = secrets_of(spec, members, environ)
    if short := Redactor(secrets).unprotected:
        notices.append(f"{', '.join(short)} is too short to be masked in notes and logs.")
    if tracing := ignored_tracing():
        notices.append(f"{', '.join(tracing)} is ignored: nothing is sent to a tracing service.")
    if box.kind == "none":
        notices.append("No sandbox: the worker runs as you, with all that you can reach.")
    return notices


def _key_notices(member: Member, environ: Mapping[str, str]) -> Iterator[str]:
    """Who sees a candidate's key."""
    spec, worker = member.spec, member.worker
    box = spec.runner.sandbox
    keyed = spec.runner.worker.auth == "key"
    name = credential(spec, worker, environ)[0] if keyed else f"The {worker.kind} login's token"
    if name and not has_gateway(spec, worker, box.kind):
        where = "" if box.kind == "none" else " inside the box"
        yield f"{name} is handed to the worker{where}."
    elsewhere = environ.get("OPENAI_BASE_URL")
    if elsewhere and name == "OPENAI_API_KEY" and spec.runner.worker.base_url is None:
        yield (
            f"OPENAI_BASE_URL is the planner's. The worker shows OPENAI_API_KEY to "
            f"{worker.provider_url}; runner.worker.base_url names another server."
        )


def _tape_notices(tape: Cassette, member: Member) -> list[str]:
    """What is recorded or replayed; raises UsageError where a worker would go around that."""
    if tape.record is None and tape.replay is None:
        return []
    spec, worker = member.spec, member.worker
    if worker.wire and not has_gateway(spec, worker, spec.runner.sandbox.kind):
        raise UsageError(
            f"{worker.kind} is recorded and replayed at the gateway of its box, and there is none.",
            path="--record" if tape.record else "--replay",
            remedy="--sandbox bwrap or --sandbox docker, with the network allowlist",
        )
    if tape.record:
        return [f"Every exchange with a model is recorded in {tape.record}."]
    return [f"Replayed from {tape.replay}: no model is asked, and the cost is that of then."]


def _check_model_access(member: Member, environ: Mapping[str, str], replays: bool) -> None:
    """Raises Surroundings where the worker has no way to its model, or nothing to show there."""
    spec, worker = member.spec, member.worker
    if not worker.needs_model:
        return
    if network_of(spec, worker).policy == "none":
        raise WorkerNeedsNetwork(
            f"{worker.kind} calls a model over the network, and the box has none.",
            path="runner.sandbox.network",
            remedy="leave runner.sandbox.network out, or set it to allowlist",
            nothing_spent=True,
        )
    keyless = replays or spec.runner.worker.auth == "login" or bool(spec.runner.worker.base_url)
    if worker.key_names and not keyless and not credential(spec, worker, environ)[0]:
        raise WorkerKeyMissing(
            f"{worker.kind} needs a key for its model, and none of "
            f"{', '.join(worker.key_names)} is set.",
            path="runner.worker.env",
            remedy=f"export {worker.key_names[0]}=…",
            nothing_spent=True,
        )
