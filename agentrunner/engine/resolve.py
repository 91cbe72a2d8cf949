"""Works out everything about a run before anything is spent: once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agentrunner.config.kinds import planner_kind
from agentrunner.config.spec import TaskSpec
from agentrunner.environment import ignored_tracing, prices_file
from agentrunner.errors import InfraError, UsageError
from agentrunner.errors.runs import BudgetNotHeld
from agentrunner.errors.task_files import BadValue
from agentrunner.errors.workers import WorkerKeyMissing, WorkerMissing, WorkerNeedsNetwork
from agentrunner.execution.credentials import secrets_of
from agentrunner.execution.launch import script_lost
from agentrunner.execution.resolved import ResolvedRun
from agentrunner.gateway.prices import Prices, load_prices
from agentrunner.git.snapshots import check_open
from agentrunner.launching.access import check_login, worker_key
from agentrunner.launching.route import Cassette
from agentrunner.notes.writer import check_note_dir
from agentrunner.planners.endpoint import endpoint
from agentrunner.planners.panel import make_panel
from agentrunner.text.redaction import Redactor
from agentrunner.workers.base import LacksScript
from agentrunner.workers.member import Member, make_members

SUBSCRIPTION = (
    "What {who} uses is in your subscription: runner.budget.usd does not count it and cannot "
    "stop it."
)
NO_GATEWAY = (
    "The model calls of {who} pass no gateway: runner.budget.{name} is held before and after its "
    "work, and cannot stop it meanwhile."
)
NO_PRICE = "The price of {what}, for {who}, is not known: runner.budget.usd cannot stop it."


def resolve(
    spec: TaskSpec,
    environ: Mapping[str, str],
    cassette: Cassette | None = None,
    *,
    begins: bool = False,
) -> ResolvedRun:
    """Return everything that is known of a run before its first node, and what is missing for it.

    `spec` is settled, within its policies. Where it `begins`, no worker of it can have removed its
    own script, or still be at work. Raises UsageError for a task that cannot be run this way.
    """
    check_open(Path(spec.repo))
    check_note_dir(Path(spec.repo), spec.runner.note.dir)
    tape = cassette or Cassette()
    notices: list[str] = []
    missing: list[InfraError] = []
    members = make_members(spec)
    keys, lacks = _keys_and_lacks(members, environ, tape, begins=begins)
    if able := tuple(one for one in members if not lacks[one.name]):
        members = able
        left_out = [(name, problems[0]) for name, problems in lacks.items() if problems]
        notices += [f"{name} is left out: {problem.message}" for name, problem in left_out]
    else:
        missing += lacks[members[0].name]
    prices = load_prices(prices_file(environ))
    open_limits = not_held(spec, members, environ, prices)
    check_enforced(spec, open_limits)
    resolved = ResolvedRun(
        spec, environ, None, members, keys, secrets_of(spec, members, environ), prices
    )
    notices += _notices(resolved, [why for _, why in open_limits])
    for one in members:
        notices += _tape_notices(tape, one)
    planner = None
    try:
        planner = make_panel(spec, environ, tape)
        notices += planner.notices
    except InfraError as error:
        missing.append(error)
    return replace(resolved, planner=planner, missing=tuple(missing)).noting(notices)


def lacking(spec: TaskSpec, environ: Mapping[str, str]) -> dict[str, list[InfraError]]:
    """Return what keeps the planner (`meta`) and the workers (`worker`) of a settled task from
    starting a run here: what `resolve` would miss. A section that lacks nothing is left out.
    """
    found: dict[str, list[InfraError]] = {}
    members = make_members(spec)
    _, lacks = _keys_and_lacks(members, environ, Cassette(), begins=True)
    if all(lacks.values()):
        found["worker"] = lacks[members[0].name]
    try:
        make_panel(spec, environ)
    except InfraError as error:
        found["meta"] = [error]
    return found


def _keys_and_lacks(
    members: Sequence[Member], environ: Mapping[str, str], tape: Cassette, *, begins: bool
) -> tuple[dict[str, str], dict[str, list[InfraError]]]:
    """Return the variable of each candidate's key, and what keeps it from working; by name."""
    keys = {member.name: _key_name(member, environ) for member in members}
    lacks = {one.name: _lacking(one, keys[one.name], environ, tape) for one in members}
    for one in members if begins else ():
        lacks[one.name] += _lost_script(one)
    return keys, lacks


def check_test_folder(spec: TaskSpec) -> None:
    """Raise UsageError where the test command works in a folder that nothing can have made."""
    test = spec.task.test
    if test is None or not test.baseline or spec.task.setup is not None:
        return
    if not Path(spec.repo, test.cwd).is_dir():
        name = "task.test.cwd"
        raise BadValue(
            f"{test.cwd} is no folder of {spec.shown_repo}.",
            path=spec.places.get(name) or spec.places.get("task.test") or name,
            remedy="correct task.test.cwd; task.test.baseline: false, where the run is to make it",
        )


def _key_name(member: Member, environ: Mapping[str, str]) -> str:
    """Return the variable that holds the key of its model; "" for none, and for a login."""
    if member.subscribed:
        return ""
    return worker_key(member.spec, member.worker, environ)[0] or ""


def _lacking(
    member: Member, key: str, environ: Mapping[str, str], tape: Cassette
) -> list[InfraError]:
    """Return the errors that keep a candidate from working here."""
    missing = []
    if member.probe.path is None and not member.spec.runner.sandbox.has_image:
        missing.append(worker_missing(member))
    replays = tape.replay is not None
    try:
        if not replays:
            check_login(member.spec, member.worker, environ)
        _check_model_access(member, key, replays)
    except InfraError as error:
        if member.probe.path is None and not missing:
            # Named now, or it would be the next error once the key is set.
            where = f"{member.worker.kind} is not installed here, only an image may have it"
            error.details = (*error.details, ("also", f"{where}: {member.probe.cure}"))
        missing.append(error)
    return missing


def _lost_script(member: Member) -> list[InfraError]:
    """Return the error for a script that is nowhere, and that no set-up and no image can bring."""
    spec, worker = member.spec, member.worker
    script = worker.lacking_script() if isinstance(worker, LacksScript) else None
    if script is None or spec.task.setup is not None or spec.runner.sandbox.has_image:
        return []
    return [script_lost(spec, worker.program(), script, nothing_spent=True)]


def script_hidden(member: Member, script: str, sandbox: str) -> InfraError:
    """Return the error for a command whose script is on this machine and not in the sandbox."""
    places = member.spec.places
    names = ("runner.worker.command", "runner.worker")
    return WorkerMissing(
        f"{script} is on this machine, and not in the sandbox.",
        path=next((places[name] for name in names if name in places), names[0]),
        details=(("sandbox", sandbox),),
        remedy=f"runner.sandbox.read_paths: [{script}]; or put it into the repository",
        nothing_spent=True,
    )


def worker_missing(member: Member, problem: str = "") -> InfraError:
    """Return the error for a candidate whose program is found nowhere, with where it is named."""
    own = member.spec.runner.worker.command is not None
    setting = "runner.worker.command" if own else "runner.worker.kind"
    places = member.spec.places
    place = next((places[name] for name in (setting, "runner.worker") if name in places), "")
    remedy = "name a program of the sandbox, or by its path in the repository (./agent.sh)"
    word = member.worker.program()
    if (Path(member.spec.repo) / word).is_file():
        remedy = f"did you mean ./{word}? A file of the repository is named by its path"
    nowhere = f"The worker {member.worker.kind} is not found."
    if own:
        where = "neither on this machine nor in the repository"
        nowhere = f"{member.worker.program()} is not found: {where}."
    return WorkerMissing(
        problem or ("" if own else member.probe.problem) or nowhere,
        path=place or setting,
        remedy=member.probe.cure or (remedy if own else "agentrunner doctor"),
        nothing_spent=True,
    )


def _notices(resolved: ResolvedRun, open_limits: Sequence[str]) -> Iterator[str]:
    """Yield what is not protected, not limited or ignored."""
    if any(member.network.policy == "full" for member in resolved.members):
        yield "The sandbox shares this machine's network (runner.sandbox.network: full)."
    for member in resolved.members:
        yield from _key_notices(member, resolved)
    yield from open_limits
    if short := Redactor(resolved.secrets).unprotected:
        yield f"{', '.join(short)} is too short to be masked in notes and logs."
    if tracing := ignored_tracing():
        yield f"{', '.join(tracing)} is ignored: nothing is sent to a tracing service."
    if not resolved.spec.runner.sandbox.isolates:
        yield "No sandbox: the worker runs as you, with all that you can reach."


def _key_notices(member: Member, resolved: ResolvedRun) -> Iterator[str]:
    """Yield who sees a candidate's key."""
    worker = member.worker
    login = f"The {worker.kind} login's token" if member.subscribed else ""
    name = login or resolved.keys[member.name]
    if name and not member.has_gateway:
        where = " inside the sandbox" if member.spec.runner.sandbox.isolates else ""
        yield f"{name} is handed to the worker{where}."
    elsewhere = resolved.environ.get("OPENAI_BASE_URL")
    if elsewhere and name == "OPENAI_API_KEY" and member.spec.runner.worker.base_url is None:
        yield (
            f"OPENAI_BASE_URL is the planner's. The worker shows OPENAI_API_KEY to "
            f"{worker.provider_url}; runner.worker.base_url names another server."
        )


def _planner_kinds(spec: TaskSpec) -> set[str]:
    """Return the kinds of all who plan or judge, in any role."""
    runner, profiles = spec.runner, spec.runner.profiles
    judge = runner.assess.kind if runner.assess else None
    roles = filter(None, (profiles.meta, profiles.plan, profiles.assess))
    candidates = {one.kind for role in roles for one in role.candidates}
    return {runner.meta.kind, judge or runner.meta.kind, *candidates}


def _calls_model(kind: str) -> bool:
    return planner_kind(kind).calls_model


def _tape_notices(tape: Cassette, member: Member) -> list[str]:
    """Return what is recorded or replayed; raise UsageError where a worker would bypass that."""
    if tape.record is None and tape.replay is None:
        return []
    worker = member.worker
    if worker.wire and not member.has_gateway:
        raise UsageError(
            f"{worker.kind} is recorded and replayed at the gateway of its sandbox, and there is "
            "none.",
            path="--record" if tape.record else "--replay",
            remedy="--sandbox bwrap or --sandbox docker, with the network allowlist",
        )
    if not worker.wire and not any(map(_calls_model, _planner_kinds(member.spec))):
        what = f"recorded in {tape.record}" if tape.record else f"replayed from {tape.replay}"
        return [f"Nothing is {what}: neither planner nor worker asks a model."]
    if tape.record:
        return [f"Every exchange with a model is recorded in {tape.record}."]
    return [f"Replayed from {tape.replay}: no model is asked, and the cost is that of then."]


def _check_model_access(member: Member, key: str, replays: bool) -> None:
    """Raise InfraError where the worker cannot reach its model, or has no key for it."""
    spec, worker = member.spec, member.worker
    if not worker.needs_model:
        return
    if member.network.policy == "none":
        raise WorkerNeedsNetwork(
            f"{worker.kind} calls a model over the network, and the sandbox has none.",
            path="runner.sandbox.network",
            remedy="leave runner.sandbox.network out, or set it to allowlist",
            nothing_spent=True,
        )
    keyless = replays or member.subscribed or bool(spec.runner.worker.base_url)
    if worker.key_names and not keyless and not key:
        raise WorkerKeyMissing(
            f"{worker.kind} needs a key for its model, and {_unset(worker.key_names)}.",
            path="runner.worker.env",
            remedy=", or ".join(f"export {name}=…" for name in worker.key_names),
            nothing_spent=True,
        )


def _unset(names: Sequence[str]) -> str:
    """Return that none of these variables is set, as the end of a sentence."""
    return f"{names[0]} is not set" if len(names) == 1 else f"none of {', '.join(names)} is set"


def not_held(
    spec: TaskSpec, members: Sequence[Member], environ: Mapping[str, str], prices: Prices
) -> list[tuple[str, str]]:
    """Return limits that cannot stop someone at work, by name, each with a sentence about why."""
    found = list(_planner(spec, prices, environ))
    for member in members:
        found += [known for known in _worker(member, prices) if known not in found]
    return found


def check_enforced(spec: TaskSpec, open_limits: Iterable[tuple[str, str]]) -> None:
    """Raise UsageError where `runner.budget.enforce: hard` is more than can be enforced.

    `open_limits` is what `not_held` found.
    """
    if spec.runner.budget.enforce != "hard":
        return
    for name, why in open_limits:
        raise BudgetNotHeld(
            f"{why} runner.budget.enforce is hard, so nothing was started.",
            path=spec.places.get(f"runner.budget.{name}", f"runner.budget.{name}"),
            remedy="--set runner.budget.enforce=soft, or choose another worker, login or sandbox",
            nothing_spent=True,
        )


def _worker(member: Member, prices: Prices) -> Iterator[tuple[str, str]]:
    spec, budget = member.spec, member.spec.runner.budget
    login = member.subscribed
    if budget.usd is not None and login:
        yield "usd", SUBSCRIPTION.format(who=member.name)
    if not member.has_gateway:
        limits = (("tokens", budget.tokens), ("usd", None if login else budget.usd))
        for name, limit in limits if member.can_call_model else ():
            if limit is not None:
                yield name, NO_GATEWAY.format(who=member.name, name=name)
        return
    model = spec.runner.worker.model
    if budget.usd is not None and not login and (model is None or prices.price(model) is None):
        yield "usd", NO_PRICE.format(what=model or "its default model", who=member.name)


def _planner(
    spec: TaskSpec, prices: Prices, environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    planner = spec.runner.meta
    if spec.runner.budget.usd is None or not planner_kind(planner.kind).default_model:
        return
    where = endpoint(planner, environ)
    model = where.model
    if not prices.is_free(model, near=where.near) and prices.price(model) is None:
        yield "usd", NO_PRICE.format(what=model, who="the planner")
