"""`doctor`: check what works on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote, urlsplit

import typer
from msgspec import Struct, field

import agentrunner
from agentrunner import __version__, environment
from agentrunner.commands import options as opt
from agentrunner.commands.chosen import Taken, chosen
from agentrunner.commands.console import Output, form_of, interactive, show, show_json, tell
from agentrunner.commands.obstacles import obstacles
from agentrunner.commands.planner_probe import NOT_ASKED, probe_planner
from agentrunner.commands.policy_findings import login_findings, policy_findings
from agentrunner.commands.trying import SandboxTrial
from agentrunner.commands.which_run import here
from agentrunner.config.kinds import planner_kind, sandbox_kind
from agentrunner.environment import home_of
from agentrunner.errors import AgentRunnerError, InfraError, UsageError
from agentrunner.git.own_checkout import described
from agentrunner.registry import AUTO_SANDBOXES, LOGINS, WORKERS
from agentrunner.screens.doctor import DoctorItem, DoctorReport, Mark, doctor_screen
from agentrunner.screens.layout import tilde

if TYPE_CHECKING:
    from agentrunner.sandboxes.base import Sandbox, SandboxOrder
    from agentrunner.workers.base import Probe

LIMITED = ("cpus", "memory", "pids")
ISOLATION = (
    "processes", "files", "network", "system calls", "privileges", "user", *LIMITED, "disk",
)  # fmt: skip
"""Aspects reported for every kind of sandbox, see `Sandbox.isolation`."""


class SandboxProbe(Struct):
    """One kind of sandbox, opened and examined."""

    kind: str
    description: str = ""
    problem: AgentRunnerError | None = None
    held: dict[str, str] = field(default_factory=dict)
    """Its isolation, with an example of every limit."""
    more: list[DoctorItem] = field(default_factory=list)
    """Further findings about it."""

    def findings(self) -> list[DoctorItem]:
        if self.problem is None:
            return [DoctorItem("ok", self.kind, self.description), *self.more]
        return [DoctorItem("--", self.kind, self.problem.message, self.problem.remedy), *self.more]

    def isolation(self) -> tuple[str, list[DoctorItem]]:
        """Return a section of its own, with its title."""
        facts = [DoctorItem("", name, self.held[name]) for name in ISOLATION if name in self.held]
        return f"What {self.kind} holds here, with a limit of each kind as an example", facts


DISTRIBUTION = "agentrunner-graph"
"""The name by which it is installed."""
_REDS = 3
"""Names of red tests that are shown before a count."""


@opt.with_file
def doctor(
    sandbox: Annotated[
        str | None,
        typer.Option(
            "--sandbox",
            metavar="KIND",
            help="Try all that a sandbox promises: {sandboxes}.",
        ),
    ] = None,
    planner: Annotated[
        bool,
        typer.Option("--planner", help="Try the planner that is set: this sends requests to it."),
    ] = False,
    no_try: Annotated[
        bool, typer.Option("--no-try", help="Do not run the repository's tests.")
    ] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Offer to do what doctor can do itself.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --fix: do all of it.")] = False,
    policy: opt.PolicyFile = None,
    no_input: opt.NoInput = False,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """What works on this machine, found out by trying. Exit 0, or 5 when nothing is ready."""
    if fix and sandbox:
        raise UsageError("--sandbox tries one kind and fixes nothing.", path="--fix")
    if yes and not fix:
        raise UsageError("--yes says yes to --fix.", path="--yes", remedy="doctor --fix --yes")
    if sandbox:
        report = asyncio.run(_conformance(sandbox, os.environ))
    elif planner:
        report = probe_planner(os.environ, environment.state_dir(state_dir), policy)
    else:
        state = environment.state_dir(state_dir)

        def look() -> DoctorReport:
            return examine(here(), os.environ, state, policy, skip=no_try)

        report = (
            _apply_fixes(look(), Output(json=as_json, no_input=no_input), look, yes=yes)
            if fix
            else look()
        )
    if as_json:
        show_json(asdict(report))
        return 0 if report.ready else InfraError.exit_code
    if not fix:
        show(doctor_screen(report, *form_of(sys.stdout)))
    return 0 if report.ready else InfraError.exit_code


def _apply_fixes(
    report: DoctorReport, output: Output, again: Callable[[], DoctorReport], *, yes: bool
) -> DoctorReport:
    """Apply the fixes and return the new report; `again` makes one if a fix may have helped."""
    from agentrunner.commands.fixing import carry_out, fixes, outcome_lines

    def shown(one: DoctorReport) -> None:
        if not output.json:
            show(doctor_screen(one, *form_of(sys.stdout)))

    shown(report)
    done = carry_out(fixes(here(), os.environ, report.worker), yes=yes, output=output)
    if any(entry.pop("readies", False) for entry in done):
        report = again()
        shown(report)
    report.fixes = done
    if not output.json:
        show("\n".join(["", *outcome_lines(done)] if done else ["", "There is nothing to fix."]))
        if not (yes or interactive(output)) and done:
            tell("Next:  agentrunner doctor --fix --yes   does all of it")
    return report


def examine(
    repo: Path,
    environ: Mapping[str, str],
    state_dir: Path,
    policy: Path | None = None,
    *,
    skip: bool = False,
) -> DoctorReport:
    """Collect everything that `doctor` reports; with `skip` the repository's tests are not run."""
    from agentrunner.discovery.agents import USUAL_WORKER, available_planners, available_workers
    from agentrunner.discovery.candidates import candidates_of, part_of

    part = part_of(repo, Path.cwd())
    candidates = candidates_of(repo / part)
    taken = chosen(repo, environ, state_dir, bool(candidates), policy, connect=True)
    worker = taken.kinds.get("worker") or USUAL_WORKER
    trial = SandboxTrial(
        repo, candidates, state_dir,
        environ=environ, skip=skip or is_own_clone(repo), part=part, worker_kind=worker,
        policy=policy, wanted=taken.sandbox,
    ).run()  # fmt: skip
    looks = asyncio.run(probe_sandboxes(repo, environ, state_dir, worker))
    home = environ.get("HOME", "")
    workers, planners = available_workers(repo), available_planners(environ, repo)
    people = [
        DoctorItem(
            "ok" if not offer.needs else "--", offer.kind, offer.needs or "has what it needs"
        )
        for offer in planners
    ]
    policies = policy_findings(policy, environ, repo)
    refused = obstacles(repo, state_dir, home)
    report = DoctorReport(
        worker=worker,
        head=f"agentrunner {described(__version__)},"
        f" Python {platform.python_version()}, {_system()}",
        sections=[
            (
                f"This repository: {tilde(str(repo), home)}",
                [*_git(repo, refused), *refused, *_repository(repo, part, trial, home)],
            ),
            ("Sandboxes", _sandboxes(trial, looks)),
            *(look.isolation() for look in looks if look.held),
            ("Planners", people),
            ("Workers (agentrunner workers tells more)", _workers(workers)),
            ("Taken where the task names none", [*taken.items, *_model(taken, environ)]),
            *([("Names", names)] if (names := _names()) else []),
            ("Logins (runner.worker.auth: login)", login_findings(list(LOGINS), environ)),
            ("Policies", policies),
        ],
    )
    ready = [kind for kind, probe in workers.items() if probe.path and not probe.problem]
    report.ready = False
    if refused:
        report.verdict = f"Not ready: {refused[0].name}: {refused[0].text}"
    elif trial.problem is not None:
        which = "no sandbox works"
        if taken.sandbox != "auto":
            which = f"the sandbox {taken.sandbox} does not start, and a setting or policy names it"
        report.verdict = f"Not ready: {which}. Nothing was started, nothing was spent."
    elif policies[0].mark == "FAIL":
        report.verdict = "Not ready: a policy cannot be read. Nothing was started."
    elif lack := taken.lacking(in_image=sandbox_kind(trial.kind).has_image):
        report.verdict = (
            f"Not ready for a task that names no {lack.name}: {lack.text.rstrip('.')}. "
            f"Sandbox {trial.kind} works."
        )
        report.next = lack.cure
    else:
        report.ready = True
        who = " or ".join(offer.kind for offer in planners if not offer.needs)
        works = " or ".join([*ready, "command"])
        report.verdict = f"Ready: planner {who}; worker {works}; sandbox {trial.kind}."
        if any(item.name == NOT_ASKED for item in taken.items):
            report.verdict += " No model was asked yet: agentrunner doctor --planner"
        report.next = "agentrunner run FILE.md"
    return report


def is_own_clone(repo: Path) -> bool:
    """Whether the package that runs lies in this repository, or was installed from it."""
    package = Path(agentrunner.__file__).resolve().parent
    if package.parent == repo.resolve():
        return True
    with contextlib.suppress(metadata.PackageNotFoundError, ValueError, AttributeError):
        origin = json.loads(metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "")
        folder = urlsplit(origin["url"]) if "url" in origin else urlsplit("")
        return folder.scheme == "file" and Path(unquote(folder.path)) == repo.resolve()
    return False


def _workers(probes: Mapping[str, Probe]) -> list[DoctorItem]:
    """Report the installed CLIs one by one, and kinds of others that fail; the rest in a line."""
    absent = [kind for kind, one in probes.items() if not one.path and kind in WORKERS.own]
    found = [
        DoctorItem("WARN", kind, probe.problem)
        if probe.problem
        else DoctorItem("ok", kind, f"{probe.version}; tested with {probe.tested or 'none'}")
        for kind, probe in probes.items()
        if kind not in absent
    ]
    return found + [DoctorItem("--", "not installed", ", ".join(absent))] * bool(absent)


def _git(repo: Path, refused: Sequence[DoctorItem]) -> list[DoctorItem]:
    """Report the branch; nothing where it is the program or the repository that is refused."""
    from agentrunner.discovery.git import read_branch

    if any(item.name == "git" for item in refused):
        return []
    if branch := read_branch(repo):
        return [DoctorItem("ok", "git", f"branch {branch}")]
    if refused:
        return []
    return [DoctorItem("--", "git", "no git repository; it works without")]


def _repository(repo: Path, part: str, trial: SandboxTrial, home: str) -> list[DoctorItem]:
    findings = list[DoctorItem]()
    if part != ".":
        findings.append(DoctorItem("ok", "part", f"{part}: the tests run there"))
    findings += _tests(repo, part, trial)
    if trial.tools:
        shown = ", ".join(tilde(path, home) for path in trial.tools)
        findings.append(DoctorItem("ok", "toolchain", f"{shown} (read-only in the sandbox)"))
    if trial.caches is not None:
        if names := trial.caches.ecosystems:
            text = f"{', '.join(names)}: what is downloaded is seen in the sandbox, read-only"
            findings.append(DoctorItem("ok", "caches", text))
        findings += [DoctorItem("WARN", "caches", notice) for notice in trial.caches.notices]
    return findings


_MARKS: Mapping[str, Mark] = {"passes": "ok", "red": "ok", "fails": "FAIL", "no_tests": "WARN"}


def _tests(repo: Path, part: str, trial: SandboxTrial) -> list[DoctorItem]:
    """Report the trial of the best test command; only one that ran tests is good."""
    from agentrunner.discovery.candidates import first_part
    from agentrunner.discovery.services import likely_lacking
    from agentrunner.discovery.set_up import set_up_line

    best = trial.best
    if best is None:
        text, below = "no test command found; give one with --test", first_part(repo)
        text += f"; {below} has tests of its own, and there it is found" if below else ""
        return [DoctorItem("WARN", "tests", text)]
    command = best.found.command
    if is_own_clone(repo):
        text = f"{command}: not tried, this is AgentRunner's own clone"
        return [DoctorItem("--", "tests", text, "cd to your own project, then agentrunner doctor")]
    if trial.problem is not None:
        return [DoctorItem("--", "tests", f"{command}: not tried, there is no sandbox")]
    line = "" if best.runs else set_up_line(repo, part, os.environ, best.summary)
    cure = f"in the task file: {line}" if line else ""
    outcome = best.summary or f"not tried: {best.found.where}"
    findings = [DoctorItem(_MARKS.get(best.kind, "WARN"), "tests", f"{command}: {outcome}", cure)]
    shown = best.failing[:_REDS]
    more = [f"and {len(best.failing) - _REDS} more"] if len(best.failing) > _REDS else []
    findings += [DoctorItem("WARN", "red now", ", ".join([*shown, *more]))] * bool(shown)
    lacks = best.lacks or ([] if best.runs else likely_lacking(repo / part))
    return findings + [DoctorItem("WARN", "needs", text) for text in lacks]


def _sandboxes(trial: SandboxTrial, looks: list[SandboxProbe]) -> list[DoctorItem]:
    found = [finding for look in looks for finding in look.findings()]
    if trial.problem is not None:
        why = trial.problem
        if trial.wanted == "auto":
            return [*found, DoctorItem("FAIL", "none works", why.message, why.remedy)]
        return [*found, DoctorItem("FAIL", "taken", f"{trial.wanted}: {why.message}", why.remedy)]
    if trial.wanted != "auto":
        return [*found, DoctorItem("ok", "taken", f"{trial.wanted}, by a setting or policy")]
    return [*found, DoctorItem("ok", "auto", f"takes {trial.kind}, {trial.reason}")]


def _model(taken: Taken, environ: Mapping[str, str]) -> list[DoctorItem]:
    """Report the planner's model where no setting names one."""
    from agentrunner.config.agents import AUTO

    traits = planner_kind(taken.kinds.get("meta") or AUTO)
    name = traits.model_variable(environ) or "the default"
    if not traits.default_model:
        return []
    return [DoctorItem("ok", "model", f"{traits.usual_model(environ)} ({name})")]


def _names() -> list[DoctorItem]:
    """Warn if a program of another project has our second name."""
    found = shutil.which("agent-runner")
    if found is None or not Path(found).is_absolute() or not Path(found).is_file():
        return []  # `.` on PATH: that would be a file of the repository, or a pipe
    try:
        ours = b"agentrunner.__main__" in Path(found).read_bytes()[:4096]
    except OSError:
        ours = False
    if ours:
        return []
    return [DoctorItem("WARN", "agent-runner", f"{found} on your PATH does not belong to us")]


def _system() -> str:
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        name = platform.system()
    return f"{name}, {platform.machine()}"


async def _conformance(kind: str, environ: Mapping[str, str]) -> DoctorReport:
    """Test every promise of a sandbox from inside."""
    from agentrunner.gateway.gateway_process import proxy_starter
    from agentrunner.sandboxes.choose import image_to_try, make_sandbox
    from agentrunner.testing.sandboxes import CHECKS, run_conformance
    from agentrunner.testing.sandboxes.egress import egress_checks

    home = home_of(environ)
    image, read_paths = await image_to_try(kind, environ)
    with tempfile.TemporaryDirectory(prefix="agentrunner-") as root:

        def make(spec: SandboxOrder) -> Sandbox:
            state = spec.home.parents[2]
            spec = replace(spec, image=image, read_paths=(*spec.read_paths, *read_paths))
            return make_sandbox(kind, spec, environ, home, state_root=state)

        egress = egress_checks(proxy_starter(environ)) if sandbox_kind(kind).isolates else ()
        if sys.stderr.isatty():
            tell(f"Trying what sandbox {kind} promises: half a minute ...", sys.stderr)
        results = await run_conformance(make, Path(root), checks=(*CHECKS, *egress))
    marks = {"passed": "ok", "failed": "FAIL", "not_applicable": "--"}
    rows = [DoctorItem(marks[r.status], r.name, r.detail) for r in results]  # type: ignore[arg-type]
    failed = sum(result.status == "failed" for result in results)
    kept = sum(result.status == "passed" for result in results)
    verdict = f"{kept} of {len(results)} promises kept by {kind}, {failed} broken"
    verdict += f", {len(results) - kept - failed} not made."
    described = f"Sandbox {kind}, image {image}" if image else f"Sandbox {kind}"
    return DoctorReport(f"{described}, {_system()}", [("Promises", rows)], verdict, failed == 0)


async def probe_sandboxes(
    repo: Path, environ: Mapping[str, str], state_dir: Path, worker_kind: str
) -> list[SandboxProbe]:
    """Probe every kind that `auto` may choose, in its order."""
    from agentrunner.sandboxes.base import ResourceLimit, SandboxOrder

    looks = []
    with tempfile.TemporaryDirectory(prefix="agentrunner-") as root:
        home = Path(root) / "box"
        home.mkdir()
        limits = ResourceLimit(cpus=1, memory="2g", pids=512, disk="10g")
        spec = SandboxOrder(repo=repo, home=home, limits=limits, worker_kind=worker_kind)
        for kind in AUTO_SANDBOXES:
            look = SandboxProbe(kind)
            if sandbox_kind(kind).has_image:
                spec = await _engine(look, spec, environ)
            if look.problem is None:
                await _open(look, spec, environ, state_dir)
            looks.append(look)
    return looks


async def _engine(
    look: SandboxProbe, spec: SandboxOrder, environ: Mapping[str, str]
) -> SandboxOrder:
    """Look for an engine and its images; return the sandbox order to try on it."""
    from agentrunner.sandboxes.docker.description import describe_engine
    from agentrunner.sandboxes.docker.engine import Engine
    from agentrunner.sandboxes.docker.images import image_to_try, our_images

    try:
        engine = await Engine.connect(environ)
        with contextlib.closing(engine):
            look.more.append(DoctorItem("ok", "engine", await describe_engine(engine)))
            there = await our_images(engine)
    except AgentRunnerError as error:
        look.problem = error
        return spec
    cure = "" if there else f"agentrunner image build {spec.worker_kind}"
    kinds = ", ".join(there) or "none of ours"
    look.more.append(DoctorItem("ok" if there else "--", "images", kinds, cure))
    image, read_paths = image_to_try(there, spec.worker_kind)
    return replace(spec, image=image, read_paths=read_paths)


async def _open(
    look: SandboxProbe, spec: SandboxOrder, environ: Mapping[str, str], state_dir: Path
) -> None:
    """Open the sandbox with as many of the limits as it can enforce."""
    from agentrunner.sandboxes.choose import open_sandbox

    home = home_of(environ)
    refused: dict[str, str] = {}
    while True:
        try:
            sandbox = await open_sandbox(look.kind, spec, environ, home, state_root=state_dir)
        except AgentRunnerError as error:
            name = error.path.removeprefix("runner.sandbox.")
            if name not in LIMITED or name in refused:
                look.problem = error
                return
            refused[name] = error.message
            spec = replace(spec, limits=replace(spec.limits, **{name: None}))
            continue
        look.description = sandbox.describe()
        look.held = {**sandbox.isolation(), **refused}
        await asyncio.shield(sandbox.close())
        return
