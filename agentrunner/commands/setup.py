"""Getting ready: doctor and init."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentrunner import __version__, settings
from agentrunner.commands import options as opt
from agentrunner.commands.boxes import Look, image_for_trying, look_at_boxes
from agentrunner.commands.console import paint_for, show, width_of
from agentrunner.commands.limits import login_findings, policy_findings
from agentrunner.commands.runs import here
from agentrunner.commands.trying import Trial, try_in_box
from agentrunner.errors import Surroundings, UsageError
from agentrunner.screens.doctor import Finding, Report, doctor_screen, init_screen
from agentrunner.screens.layout import tilde

if TYPE_CHECKING:
    from agentrunner.sandboxes.base import BoxSpec, Sandbox
    from agentrunner.survey import Found
    from agentrunner.survey.crew import Choice
    from agentrunner.workers.base import Probe


PEOPLE = {"meta": "planner", "worker": "worker"}
"""Sections of a task file, as people call who is in them."""


def doctor(
    sandbox: Annotated[
        str | None,
        typer.Option("--sandbox", metavar="KIND", help="Try all that a sandbox promises."),
    ] = None,
    policy: opt.PolicyFile = None,
    state_dir: opt.StateDir = None,
) -> int:
    """What works on this machine, found out by trying. Exit 0, or 5 when nothing is ready."""
    if sandbox:
        report = asyncio.run(_conformance(sandbox, os.environ))
    else:
        report = examine(here(), os.environ, settings.state_dir(state_dir), policy)
    show(doctor_screen(report, width_of(sys.stdout), paint_for(sys.stdout)))
    return 0 if report.ready else Surroundings.exit_code


def examine(
    repo: Path, environ: Mapping[str, str], state_dir: Path, policy: Path | None = None
) -> Report:
    """Everything `doctor` looks at."""
    from agentrunner.registry import LOGINS
    from agentrunner.survey import available_metas, available_workers, detect_tests
    from agentrunner.task.crew import WorkerSpec

    tests = detect_tests(repo)
    trial = asyncio.run(try_in_box(repo, tests.command if tests else "", environ, state_dir))
    looks = asyncio.run(look_at_boxes(repo, environ, state_dir, WorkerSpec().kind))
    home = environ.get("HOME", "")
    workers, planners = available_workers(repo), available_metas(environ, repo)
    people = [
        Finding("ok" if not offer.needs else "--", offer.kind, offer.needs or "can plan")
        for offer in planners
    ]
    policies = policy_findings(policy, environ, repo)
    chosen = _chosen(repo, environ, state_dir, bool(tests), policy)
    report = Report(
        f"agentrunner {__version__}, Python {platform.python_version()}, {_system()}",
        [
            (f"This repository: {tilde(str(repo), home)}", _repository(repo, tests, trial, home)),
            ("Boxes", _boxes(trial, looks)),
            *(look.isolation() for look in looks if look.held),
            ("Planners", people),
            ("Workers (agentrunner workers tells more)", _workers(workers)),
            ("Taken where the task names none", chosen),
            ("Keys and names", [_model(environ), *_names()]),
            ("Logins (runner.worker.auth: login)", login_findings(list(LOGINS), environ)),
            ("Policies", policies),
        ],
    )
    ready = [kind for kind, probe in workers.items() if probe.path and not probe.problem]
    report.ready = trial.problem is None and policies[0].mark != "FAIL"
    if trial.problem is None and not report.ready:
        report.verdict = "Not ready: a policy cannot be read. Nothing was started."
    elif report.ready:
        who = " or ".join(offer.kind for offer in planners if not offer.needs)
        works = " or ".join([*ready, "command"])
        report.verdict = (
            f"Ready: planner {who}; worker {works}; box {trial.kind}.   agentrunner run FILE.md"
        )
    else:
        report.verdict = "Not ready: no box works. Nothing was started, nothing was spent."
    return report


def _workers(probes: Mapping[str, Probe]) -> list[Finding]:
    """The installed CLIs one by one, the others in a line."""
    found = [
        Finding("WARN", kind, probe.problem)
        if probe.problem
        else Finding("ok", kind, f"{probe.version}; tested with {probe.tested or 'none'}")
        for kind, probe in probes.items()
        if probe.path
    ]
    absent = [kind for kind, probe in probes.items() if not probe.path]
    return found + [Finding("--", "not installed", ", ".join(absent))] * bool(absent)


def _chosen(
    repo: Path, environ: Mapping[str, str], state_dir: Path, provable: bool, policy: Path | None
) -> list[Finding]:
    """Who plans and who works where the task does not say, by settings, policies and machine."""
    from agentrunner.survey.crew import by_policies, choose_planner, choose_worker, look
    from agentrunner.task.crew import AUTO
    from agentrunner.task.load import load_settings
    from agentrunner.task.policy_load import load_policies

    try:
        runner, places = load_settings(repo, environ, auto=True)
        policies = load_policies(policy, environ, repo)
    except UsageError as error:
        return [Finding("FAIL", "settings", error.message, error.path)]
    facts = look(repo, runner, environ, state_dir)
    ways: dict[str, Callable[[], Choice]] = {
        "meta": lambda: choose_planner(facts, by_policies(policies, "meta"), provable=provable),
        "worker": lambda: choose_worker(
            facts, by_policies(policies, "worker"), runner.sandbox.kind
        ),
    }
    found = []
    for section, choose in ways.items():
        name, kind = PEOPLE[section], getattr(runner, section).kind
        if kind != AUTO:
            told = places.get(f"runner.{section}.kind") or "runner.workers, the first"
            found.append(Finding("ok", name, f"{kind}: {told}"))
            continue
        try:
            choice = choose()
            found.append(Finding("ok", name, f"{choice.kind}: {choice.reason}"))
        except Surroundings as error:
            found.append(Finding("--", name, error.message, error.remedy))
    return found


def _repository(repo: Path, tests: Found | None, trial: Trial, home: str) -> list[Finding]:
    from agentrunner.evidence.registries import registries_of
    from agentrunner.survey import detect_setup, read_branch

    branch = read_branch(repo)
    findings = [
        Finding("ok", "git", f"branch {branch}")
        if branch
        else Finding("--", "git", "no git repository; it works without")
    ]
    if tests is None:
        findings.append(Finding("WARN", "tests", "no test command found; give one with --test"))
    elif trial.problem is not None:
        findings.append(Finding("--", "tests", f"{tests.command}: not tried, there is no box"))
    elif trial.started:
        findings.append(Finding("ok", "tests", f"{tests.command}: starts in the box, {trial.said}"))
    else:
        setup = detect_setup(repo)
        hosts = ", ".join(registries_of(repo, os.environ)) if setup else ""
        network = f", network: [{hosts}]" if hosts else ""
        cure = f"in the task file: setup: {{command: {setup.command}{network}}}" if setup else ""
        told = f"{tests.command}: does not start in the box: {trial.said}"
        findings.append(Finding("FAIL", "tests", told, cure))
    if trial.tools:
        shown = ", ".join(tilde(path, home) for path in trial.tools)
        findings.append(Finding("ok", "toolchain", f"{shown} (read-only in the box)"))
    if trial.caches is not None:
        if names := trial.caches.ecosystems:
            told = f"{', '.join(names)}: what is downloaded is seen in the box, read-only"
            findings.append(Finding("ok", "caches", told))
        findings += [Finding("WARN", "caches", notice) for notice in trial.caches.notices]
    return findings


def _boxes(trial: Trial, looks: list[Look]) -> list[Finding]:
    found = [finding for look in looks for finding in look.findings()]
    if trial.problem is not None:
        return [*found, Finding("FAIL", "none works", trial.problem.message, trial.problem.remedy)]
    return [*found, Finding("ok", "auto", f"takes {trial.kind}, {trial.reason}")]


def _model(environ: Mapping[str, str]) -> Finding:
    from agentrunner.task.crew import DEFAULT_META_MODEL

    for name in ("AGENTRUNNER_META_MODEL", "OPENAI_MODEL"):
        if environ.get(name):
            return Finding("ok", "model", f"{environ[name]} ({name})")
    return Finding("ok", "model", f"{DEFAULT_META_MODEL} (the default)")


def _names() -> list[Finding]:
    """A program of another project may answer to our second name."""
    found = shutil.which("agent-runner")
    if found is None or not Path(found).is_absolute() or not Path(found).is_file():
        return []  # `.` on PATH: that would be a file of the repository, or a pipe
    try:
        ours = b"agentrunner.cli" in Path(found).read_bytes()[:4096]
    except OSError:
        ours = False
    if ours:
        return []
    return [Finding("WARN", "agent-runner", f"{found} on your PATH does not belong to us")]


def _system() -> str:
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        name = platform.system()
    return f"{name}, {platform.machine()}"


async def _conformance(kind: str, environ: Mapping[str, str]) -> Report:
    """Every promise of a sandbox, tried from inside."""
    from agentrunner.gateway.process import proxy_starter
    from agentrunner.sandboxes.choose import make_sandbox
    from agentrunner.sandboxes.conformance import CHECKS, run_conformance
    from agentrunner.sandboxes.conformance.egress import egress_checks

    home = Path(environ.get("HOME") or Path.home())
    image, read_paths = await image_for_trying(environ) if kind == "docker" else ("", ())
    with tempfile.TemporaryDirectory(prefix="agentrunner-") as root:

        def make(spec: BoxSpec) -> Sandbox:
            state = spec.home.parents[2]
            spec = replace(spec, image=image, read_paths=(*spec.read_paths, *read_paths))
            return make_sandbox(kind, spec, environ, home, state_root=state)

        egress = egress_checks(proxy_starter(environ)) if kind != "none" else ()
        results = await run_conformance(make, Path(root), checks=(*CHECKS, *egress))
    marks = {"passed": "ok", "failed": "FAIL", "not_applicable": "--"}
    rows = [Finding(marks[r.status], r.name, r.detail) for r in results]  # type: ignore[arg-type]
    failed = sum(result.status == "failed" for result in results)
    kept = sum(result.status == "passed" for result in results)
    verdict = f"{kept} of {len(results)} promises kept by {kind}, {failed} broken"
    verdict += f", {len(results) - kept - failed} not made."
    box = f"Sandbox {kind}, image {image}" if image else f"Sandbox {kind}"
    return Report(f"{box}, {_system()}", [("Promises", rows)], verdict, failed == 0)


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the task.")] = "task",
    as_yaml: Annotated[bool, typer.Option("--yaml", help="A task file in place of a PRD.")] = False,
    state_dir: opt.StateDir = None,
) -> int:
    """Write a first task for this repository, with what is found in it. Never overwrites."""
    from agentrunner.evidence.registries import registries_of
    from agentrunner.survey import detect_setup, detect_tests, render_task_file
    from agentrunner.task.naming import is_safe_id

    if not is_safe_id(name):
        raise UsageError(
            f'"{name}" cannot name a task: letters, digits, ".", "_" and "-" only.', code="bad-name"
        )
    repo = here()
    tests, setup = detect_tests(repo), detect_setup(repo)
    file = Path(f"{name}.yaml" if as_yaml else f"{name}.md")
    hosts = registries_of(repo, os.environ) if setup else ()
    text = render_task_file(name, tests=tests, setup=setup, hosts=hosts, yaml=as_yaml)
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise UsageError(
            f"{file} is there already; nothing was written.",
            code="exists",
            remedy=f"agentrunner init {name}-2",
        ) from error
    trial = asyncio.run(
        try_in_box(repo, tests.command if tests else "", os.environ, settings.state_dir(state_dir))
    )
    facts = _facts(repo, tests, setup, trial, settings.state_dir(state_dir))
    show(init_screen(facts, str(file), width_of(sys.stdout)))
    return 0


def _facts(
    repo: Path, tests: Found | None, setup: Found | None, trial: Trial, state_dir: Path
) -> list[tuple[str, str, str]]:
    from agentrunner.survey import read_branch

    where = "git root" if read_branch(repo) else "no git repository"
    facts = [
        ("repository", tilde(str(repo), os.environ.get("HOME", "")), where),
        ("tests", *((tests.command, tests.where) if tests else ("not found", "write them in"))),
    ]
    if setup:
        facts.append(("setup", setup.command, setup.where))
    # These are what `run` takes where the task names no others.
    for finding in _chosen(repo, os.environ, state_dir, bool(tests), None):
        kind, _, reason = finding.text.partition(": ")
        ready = finding.mark == "ok"
        facts.append(
            (finding.name, *((kind, reason) if ready else ("none yet", "agentrunner doctor")))
        )
    if trial.problem is not None:
        return [*facts, ("box", "none works", trial.problem.message)]
    box, _, told = trial.box.partition(";")
    facts.append(("box", box, told.strip()))
    if tests:
        started = "the tests start in the box" if trial.started else "the tests do not start"
        facts.append(("tried", started, trial.said))
    return facts
