"""Choose planner and worker where the task leaves that to this machine: the kind `auto`.

`look` collects facts; the choice depends on those alone. It is made before a run is saved, so that
a run continues with the planner and worker it was started with.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from agentrunner import registry
from agentrunner.config import kinds
from agentrunner.config.agents import AUTO, PlannerSpec, WorkerSpec
from agentrunner.config.kinds import planner_kind
from agentrunner.config.load import resolve_env, with_environment
from agentrunner.config.sandbox import SandboxSpec
from agentrunner.config.spec import RunnerSection, TaskSpec
from agentrunner.environment import home_of
from agentrunner.errors import AgentRunnerError, InfraError
from agentrunner.errors.planners import NoPlanner
from agentrunner.errors.workers import WorkerNotReady
from agentrunner.policy.match import covered
from agentrunner.policy.permitted_agents import barred, login_barred
from agentrunner.policy.policy_file import Policy
from agentrunner.storage.index import RunIndex
from agentrunner.storage.run_folder import RunFolder, load_spec
from agentrunner.verification.evidence.checks import is_executable
from agentrunner.workers.base import Probe, Worker
from agentrunner.workers.login import login_for


class Offer(Struct, frozen=True):
    """A kind of planner, and what it still needs ("" for nothing)."""

    kind: str
    needs: str = ""


NO_CLIS = frozenset({"command", "mock"})
"""Workers that are whatever a task defines, so they are never chosen."""
USUAL_WORKER = "codex-cli"
"""Chosen where no CLI is installed: an image may contain it."""
_RUNS_LOOKED_AT = 20

Auth = Literal["key", "login"]
Barred = Callable[[str], str]
"""Returns why a kind must not be chosen; "" if it may."""


@dataclass(frozen=True)
class Cli:
    """What matters about a CLI of this machine for a choice."""

    kind: str
    installed: bool
    """Whether it was found outside the repository."""
    ready: str = ""
    """Why it can be used ("CODEX_API_KEY is set"); "" if it cannot."""
    auth: Auth = "key"
    cure: str = ""
    """The remedy that would make it usable."""


class Facts(Struct, frozen=True):
    """What this machine provides."""

    workers: tuple[Cli, ...]
    """In order of preference."""
    planners: tuple[Cli, ...]
    api_key: str = ""
    """Why a chat model can be called; "" if it cannot."""
    last_used: str = ""
    """The worker of the newest run in this repository that had one."""


class Choice(Struct, frozen=True):
    """The chosen kind, and why."""

    kind: str
    reason: str
    auth: Auth | None = None
    """The credential to use; None leaves the setting unchanged."""
    ready: bool = True
    """Whether it was found on this machine."""


def choose_planner(facts: Facts, barred: Barred, *, provable: bool) -> Choice:
    """Choose a chat model, else a CLI that can reach its model, else the checklist if provable.

    `provable` is whether the task has a test command or an executable check. Raises InfraError
    (`no-planner`) with all ways to get a planner.
    """
    if facts.api_key and not barred("openai-chat"):
        return Choice("openai-chat", facts.api_key)
    able = [cli for cli in facts.planners if cli.installed and cli.ready]
    for cli in able:
        if not barred(cli.kind):
            return Choice(
                cli.kind, cli.ready + _exclusions(_preferred_over(cli, able), barred), cli.auth
            )
    if provable and not barred("checklist"):
        able += [Cli("openai-chat", True)] * bool(facts.api_key)
        why = "no model can be asked here, and there is something to execute"
        return Choice("checklist", why + _exclusions(able, barred))
    ways = [("openai-chat", "export OPENAI_API_KEY=…")]
    ways += [(cli.kind, _lacking(cli)) for cli in facts.planners]
    ways += [("checklist", "a test command (--test CMD), or a criterion with a check")]
    raise NoPlanner(
        "Nothing here can plan this task: no model can be asked, and nothing can be executed.",
        path="runner.meta.kind",
        details=tuple((kind, barred(kind) or way) for kind, way in ways),
        remedy="export OPENAI_API_KEY=…, or give a test command: --test CMD",
        nothing_spent=True,
    )


def choose_worker(facts: Facts, barred: Barred, sandbox_kind: str) -> Choice:
    """Choose the installed CLI that can reach its model; of several, the one last used here.

    If none is installed, choose one that can reach its model, since the sandbox's image may contain
    it. Raises InfraError (`worker-not-ready`) with what each installed CLI lacks.
    """
    installed = [cli for cli in facts.workers if cli.installed]
    able = [cli for cli in installed if cli.ready and not barred(cli.kind)]
    if able:
        last = next((cli for cli in able if cli.kind == facts.last_used), able[0])
        reason = last.ready + _exclusions(_preferred_over(last, installed), barred)
        if len(able) > 1:
            names = ", ".join(cli.kind for cli in able)
            used = "used last in this repository" if last.kind == facts.last_used else "the first"
            reason += f"; {used} of {names}"
        return Choice(last.kind, reason, last.auth)
    # With an image named, its content counts more than what this machine has.
    image_by_name = sandbox_kind != AUTO and kinds.sandbox_kind(sandbox_kind).has_image
    allowed = [cli for cli in facts.workers if not barred(cli.kind)]
    keyed = [cli for cli in allowed if cli.ready]
    usual = [cli for cli in keyed if cli.kind == USUAL_WORKER]
    if (not installed and keyed) or (image_by_name and usual):
        taken = (usual or keyed)[0]
        reason = f"{taken.ready}; none is installed here, an image may have it"
        return Choice(taken.kind, reason, taken.auth, ready=False)
    if not installed and allowed:
        raise WorkerNotReady(
            "No coding agent is installed here, and none has a key or a login.",
            path="runner.worker.kind",
            remedy="agentrunner workers   tells how to install one; then give it a key or a login",
            nothing_spent=True,
        )
    kinds_here = ", ".join(cli.kind for cli in installed)
    raise WorkerNotReady(
        f"{kinds_here} {'is' if len(installed) == 1 else 'are'} installed here, and nothing that "
        "may be used has a way to its model."
        if installed
        else "No worker that could be chosen is allowed here.",
        path="runner.worker.kind",
        details=tuple((cli.kind, barred(cli.kind) or cli.cure) for cli in installed),
        remedy=next((cli.cure for cli in installed if not barred(cli.kind)), "agentrunner workers"),
        nothing_spent=True,
    )


def _lacking(cli: Cli) -> str:
    """Return what the CLI needs before it can be used."""
    install = "" if cli.installed else "install it (how: agentrunner workers)"
    return ", then ".join(filter(None, (install, cli.cure))) or "agentrunner doctor"


def _preferred_over(taken: Cli, candidates: Sequence[Cli]) -> Sequence[Cli]:
    return candidates[: candidates.index(taken)]


def _exclusions(candidates: Sequence[Cli], barred: Barred) -> str:
    """Return which candidates policies exclude, as part of the reason for the choice."""
    barriers = [f"; not {cli.kind}: {barred(cli.kind)}" for cli in candidates if barred(cli.kind)]
    return "".join(barriers)


# -- collecting facts -----------------------------------------------------------------------------


def look(
    repo: Path,
    runner: RunnerSection,
    environ: Mapping[str, str],
    state_dir: Path,
    *,
    auth: Auth | None = None,
    no_login: Sequence[str] = (),
    replays: bool = False,
) -> Facts:
    """Return what is installed here, what has a key or a login, and what was used last in `repo`.

    Nothing is started. `auth` is the task's setting for the worker. `no_login` names those of
    `worker` and `meta` that may not use a login. A run that `replays` a recording needs neither.
    """
    workers = tuple(
        _cli(worker, runner, environ, auth, "worker" not in no_login, replays)
        for kind in registry.WORKERS.own  # outside kinds are only chosen by name
        if kind not in NO_CLIS
        for worker in [adapter(kind, repo)]
    )
    usable = [cli for cli in workers if cli.installed and cli.ready]
    recorded = "a recording answers in its model's place" if replays else ""
    key = "OPENAI_API_KEY is set" if environ.get("OPENAI_API_KEY", "").strip() else ""
    return Facts(
        workers,
        planners(repo, environ, runner.meta.auth, login="meta" not in no_login),
        recorded or key,
        _last_used(repo, state_dir) if len(usable) > 1 else "",
    )


def planners(
    repo: Path | None, environ: Mapping[str, str], auth: Auth | None = None, *, login: bool = True
) -> tuple[Cli, ...]:
    """The CLIs that can plan, in order of preference; `worker.env` does not apply to them."""
    found = []
    workers = registry.WORKERS.own
    for kind in registry.PLANNERS.own:
        if kind not in workers or not planner_kind(kind).is_program:
            continue
        worker = adapter(kind, repo)
        ready, how, cure = _access(worker, environ, {}, auth, login)
        found.append(Cli(kind, _is_installed(worker), ready, how, cure))
    return tuple(found)


def adapter(kind: str, repo: Path | None) -> Worker:
    """Return a kind's adapter with default settings; it accepts no program from inside `repo`."""
    worker: Worker = registry.make(registry.WORKERS, kind, "worker", WorkerSpec(kind=kind), repo)
    return worker


def _is_installed(worker: Worker) -> bool:
    return Path(worker.program()).is_absolute()


def _cli(
    worker: Worker,
    runner: RunnerSection,
    environ: Mapping[str, str],
    auth: Auth | None,
    login: bool,
    replays: bool,
) -> Cli:
    installed = _is_installed(worker)
    if obstacle := _obstacle(worker, runner.sandbox):
        return Cli(worker.kind, installed, cure=obstacle)
    if replays:
        return Cli(worker.kind, installed, "a recording answers in its model's place")
    own = resolve_env(runner.worker.env, environ)
    ready, how, cure = _access(worker, environ, own, auth, login)
    return Cli(worker.kind, installed, ready, how, cure)


def _obstacle(worker: Worker, settings: SandboxSpec) -> str:
    """Return what the sandbox settings lack for this worker; "" for nothing."""
    if not settings.isolates:
        return "" if worker.confines_itself else "it works in a sandbox only: --sandbox auto"
    network = settings.network
    if network is not None and network.policy == "full":
        return ""
    allowed = network.allow if network else []
    lacking = [host for host in worker.hosts if not covered(host, allowed)]
    return f"runner.sandbox.network: {{allow: [{', '.join(lacking)}]}}" if lacking else ""


def _access(
    worker: Worker,
    environ: Mapping[str, str],
    own: Mapping[str, str],
    auth: Auth | None,
    login: bool,
) -> tuple[str, Auth, str]:
    """Return why its model can be called, the credential for it, and the remedy if it cannot."""
    cures = []
    if auth != "login":
        for name in worker.key_names:
            if own.get(name, "").strip() or environ.get(name, "").strip():
                return f"{name} is set", "key", ""
        if not worker.key_names:
            return "it needs no key", "key", ""
        cures.append(", or ".join(f"export {name}=…" for name in worker.key_names))
    home = home_of(environ)
    if auth != "key" and login and (found := login_for(worker.kind, environ, home, given=own)):
        state = found.describe()
        if state.usable:
            return "its login on this machine", "login", ""
        cures.append(state.cure)
    return "", "key", ", or ".join(filter(None, cures))


def _last_used(repo: Path, state_dir: Path) -> str:
    try:
        rows = RunIndex(state_dir).runs(repo)
    except (OSError, sqlite3.Error):
        return ""  # whatever needs the index reports this error
    for row in [row for row in rows if row.rounds][:_RUNS_LOOKED_AT]:
        try:
            kind = load_spec(RunFolder.open(state_dir, row.run_id)).runner.worker.kind
        except AgentRunnerError:
            continue
        if kind not in NO_CLIS:
            return kind
    return ""


# -- applying the choice --------------------------------------------------------------------------


def settle(
    spec: TaskSpec,
    policies: Sequence[Policy],
    environ: Mapping[str, str],
    state_dir: Path,
    *,
    replays: bool = False,
) -> tuple[TaskSpec, list[InfraError]]:
    """Return the task with concrete planner and worker, and the reasons for them in `chosen`.

    If nothing can be chosen, the default kind is used and the error (`no-planner`,
    `worker-not-ready`) is in the list.
    """
    runner = spec.runner
    if AUTO not in (runner.meta.kind, runner.worker.kind):
        return spec, []
    own, test = runner.worker.auth, spec.task.test
    provable = test is not None or any(is_executable(one.check, None) for one in spec.criteria)
    facts = look(
        Path(spec.repo),
        runner,
        environ,
        state_dir,
        auth=own if own == "login" or "runner.worker.auth" in spec.places else None,
        no_login=[name for name in ("meta", "worker") if login_barred(name, policies)],
        replays=replays,
    )
    may_plan, may_work = by_policies(policies, "meta"), by_policies(policies, "worker")
    ways: dict[str, Callable[[], Choice]] = {
        "meta": lambda: choose_planner(facts, may_plan, provable=provable),
        "worker": lambda: choose_worker(facts, may_work, runner.sandbox.kind),
    }
    chosen, update, missing = dict(spec.chosen), dict[str, Any](), []
    for name, choose in ways.items():
        section: PlannerSpec | WorkerSpec = getattr(runner, name)
        if section.kind != AUTO:
            continue
        try:
            choice = choose()
            chosen[name] = choice.reason
        except InfraError as error:
            missing.append(error)
            choice = Choice(type(section)().kind, "")
        auth = {"auth": choice.auth} if choice.auth else {}
        update[name] = section.model_copy(update={"kind": choice.kind, **auth})
    if "meta" in update:
        update["meta"] = with_environment(update["meta"], environ)
    runner = runner.model_copy(update=update)
    return spec.model_copy(update={"runner": runner, "chosen": chosen}), missing


def by_policies(policies: Sequence[Policy], section: str) -> Barred:
    """Return a function that says why policies exclude a kind of `worker` or `meta`."""
    return lambda kind: barred(kind, section, policies)


def available_workers(repo: Path | None = None) -> dict[str, Probe]:
    """Return every worker kind that is a program, with what was found of it outside `repo`."""
    probes: dict[str, Probe] = {}
    for kind in registry.WORKERS:
        if kind not in NO_CLIS:
            try:
                probes[kind] = adapter(kind, repo).probe()
            except Exception as error:  # code of others may raise anything
                if kind in registry.WORKERS.own:
                    raise
                probes[kind] = Probe(path=None, problem=str(error) or type(error).__name__)
    return probes


def available_planners(environ: Mapping[str, str], repo: Path | None = None) -> list[Offer]:
    """Return the planners that can plan a real task, ready ones first."""
    key = "" if environ.get("OPENAI_API_KEY") else "OPENAI_API_KEY is not set"
    offers = [Offer("openai-chat", key)]
    for cli in planners(repo, environ):
        missing = "" if cli.installed else "it is not installed"
        lacks = "" if cli.ready else f"neither key nor login: {cli.cure}"
        offers.append(Offer(cli.kind, missing or lacks))
    offers.append(Offer("checklist"))
    return sorted(offers, key=lambda offer: bool(offer.needs))
