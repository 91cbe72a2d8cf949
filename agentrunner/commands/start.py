"""Start from a task: run, validate, and `agent-runner` with a task file on stdin."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentrunner import api
from agentrunner.commands import options as opt
from agentrunner.commands.command_line import is_goal
from agentrunner.commands.console import Output, show, show_json, tell, width_of
from agentrunner.errors import InfraError, UsageError
from agentrunner.errors.command_line import (
    AlreadyExists,
    BadOption,
    EventsInRepository,
    RecordInRepository,
)
from agentrunner.errors.task_files import UnknownFile

if TYPE_CHECKING:
    from agentrunner.config.load import TaskSource
    from agentrunner.config.spec import Check, TaskSpec
    from agentrunner.engine.attempt_run import Options
    from agentrunner.engine.dry_run import ShownMount
    from agentrunner.launching.route import Cassette
    from agentrunner.results import InboxItem, Result


@opt.with_output
def run(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE.md | FILE.yaml | TEXT | -]",
            help="A PRD, a task file, what you want in words, or - for stdin.",
        ),
    ] = None,
    goal: Annotated[
        str | None, typer.Option("--goal", "-g", metavar="TEXT", help="The requirements, in words.")
    ] = None,
    prd: Annotated[str | None, typer.Option("--prd", metavar="FILE", help="A PRD.")] = None,
    test: opt.Test = None,
    repo: Annotated[
        str | None, typer.Option("--repo", metavar="DIR", help="The repository to work in.")
    ] = None,
    meta: opt.Meta = None,
    worker: opt.Worker = None,
    model: opt.Model = None,
    planner_model: opt.PlannerModel = None,
    sandbox: opt.Sandbox = None,
    max_loops: Annotated[
        int | None, typer.Option("--max-loops", metavar="N", help="Rounds after the first.")
    ] = None,
    approve: Annotated[
        str | None,
        typer.Option("--approve", metavar="WHAT", help="Ask me first: plan,worker,complete."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="The planner's word never completes a criterion.")
    ] = False,
    budget: Annotated[
        list[str] | None,
        typer.Option("--budget", metavar="NAME=AMOUNT", help="A limit of the run, e.g. usd=5."),
    ] = None,
    overrides: opt.Overrides = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="FILE", help="Keep every exchange with a model."),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option("--replay", metavar="FILE", help="Answer from a recording, not from a model."),
    ] = None,
    policy: opt.PolicyFile = None,
    worktree: Annotated[
        str | None,
        typer.Option(
            "--worktree",
            metavar="[BRANCH]",
            help="Work outside of the checkout; COMPLETE ends in a branch.",
        ),
    ] = None,
    clean: Annotated[
        bool, typer.Option("--clean", help="Leave uncommitted changes out of it.")
    ] = False,
    commit: Annotated[
        bool, typer.Option("--commit", help="COMPLETE ends in one commit on this branch.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; no model is asked.")
    ] = False,
    detach: opt.Detach = False,
    *,
    output: Output,
) -> int:
    """Work on a task until it is proven done, fails, or needs you."""
    named = {
        "test": test,
        "repo": repo,
        "meta": meta,
        "worker": worker,
        "model": model,
        "planner_model": planner_model,
        "sandbox": sandbox,
        "max_loops": max_loops,
        "approve": approve,
        "strict": strict,
    }

    def spec() -> TaskSpec:
        given = [*(overrides or []), *map(opt.budget_override, budget or [])]
        task = load_to_run(source_of(file, goal, prd), given, named)
        return with_landing(task, worktree, clean=clean, commit=commit)

    if dry_run:
        from agentrunner.config.repo import refuse_bare

        task = spec()
        refuse_bare(Path(task.repo))
        return _dry_run(task, output, policy)

    from agentrunner.commands.drive import drive  # asyncio, which `validate` must not pay

    checked: list[tuple[TaskSpec, Cassette]] = []

    def first() -> None:
        task = spec()
        _refuse_state(task)
        _refuse_events_inside(output.events, Path(task.repo))
        checked.append((task, _cassette(record, replay, Path(task.repo))))

    def work(options: Options) -> Awaitable[Result]:
        ((task, cassette),) = checked
        return api.run(task, replace(options, cassette=cassette, policy=policy))

    return drive(work, opt.detached(output, detach), first=first)


def with_landing(spec: TaskSpec, worktree: str | None, *, clean: bool, commit: bool) -> TaskSpec:
    """Return the task with the target of its commit; raises UsageError for conflicting options."""
    from agentrunner.config.spec import Landing

    if clean and worktree is None:
        raise BadOption(
            "--clean says what a work tree outside of the checkout begins with.",
            path="--clean",
            remedy="--worktree --clean",
        )
    if worktree is None and not commit:
        return spec
    landing = Landing(
        repo=spec.repo, branch=worktree or "", outside=worktree is not None, clean=clean
    )
    return spec.model_copy(update={"landing": landing})


def _cassette(record: Path | None, replay: Path | None, repo: Path) -> Cassette:
    """Return where exchanges are recorded or replayed; raises UsageError for unusable files."""
    from agentrunner.launching.route import Cassette

    if record is not None and replay is not None:
        raise UsageError("a run is recorded or replayed, not both.", path="--replay")
    if record is not None and record.exists():
        raise AlreadyExists(
            f"{record} is there already; nothing was recorded.",
            path="--record",
            remedy="name a new file",
        )
    if record is not None and record.resolve().is_relative_to(repo):
        raise RecordInRepository(
            f"{record} would be inside the repository, where it counts as a change.",
            path="--record",
            remedy="name a file elsewhere, for example in /tmp",
        )
    if replay is not None and not replay.is_file():
        raise UnknownFile(
            f"there is no recording {replay}.",
            path="--replay",
            remedy="agentrunner run … --record FILE makes one",
        )
    return Cassette(record and record.resolve(), replay and replay.resolve())


def _refuse_state(spec: TaskSpec) -> None:
    """Raise before anything is spent if nothing can begin in this repository."""
    from agentrunner.config.repo import refuse_state

    landing = spec.landing
    outside = landing is not None and landing.outside and landing.clean
    refuse_state(Path(spec.repo), elsewhere=outside)


def _refuse_events_inside(events: Path | None, repo: Path) -> None:
    """Refuse an events file in the repository: as it grows, it would count as a change."""
    if events is not None and events.resolve().is_relative_to(repo):
        raise EventsInRepository(
            f"the file of --events, {events}, is inside the repository.",
            path="--events",
            remedy="name a file elsewhere, for example in /tmp",
        )


def source_of(file: str | None, goal: str | None, prd: str | None) -> TaskSource:
    """Return the one source that was named, or standard input if none was and it is no terminal."""
    from agentrunner.config.load import TaskSource, read_stdin

    given = {
        kind: value
        for kind, value in (("file", file), ("goal", goal), ("prd", prd))
        if value is not None
    }
    if len(given) > 1:
        raise UsageError(
            "give one of FILE, --goal and --prd, not several.",
            remedy="put the rest into a task file: agentrunner init",
        )
    if file is not None and not file.strip():
        raise UsageError(
            "FILE is empty: it names no file and says nothing.",
            remedy='agentrunner run FILE.md   or   agentrunner run "what you want"',
        )
    if file == "-" or (not given and not sys.stdin.isatty()):
        return read_stdin(sys.stdin.buffer)
    if not given:
        raise UsageError(
            "there is nothing to run: no FILE, no --goal, no --prd.",
            remedy='agentrunner run FILE.md   or   agentrunner run --goal "..." --test CMD',
        )
    if file is not None:
        return TaskSource("goal" if is_goal(file) else "file", file)
    return TaskSource("goal", goal) if goal is not None else TaskSource("prd", str(prd))


def load_to_run(source: TaskSource, overrides: Sequence[str], named: Mapping[str, Any]) -> TaskSpec:
    """Load the task; a goal without a test command gets the repository's.

    That is the one of the current part of the repository, if it has its own.

    A task file and a PRD define themselves what is run. Raises UsageError.
    """
    from agentrunner.config.layers import NO_TEST

    spec = load(source, overrides, named)
    if source.kind != "goal" or spec.task.test is not None or named.get("test") == NO_TEST:
        return spec
    from agentrunner.config.spec import TestSpec
    from agentrunner.discovery.candidates import detect_tests, part_of

    repo = Path(spec.repo)
    part = part_of(repo, Path.cwd())
    found = detect_tests(repo / part)
    if found is None or found.needs:
        return spec
    task = spec.task.model_copy(update={"test": TestSpec(command=found.command, cwd=part)})
    where = found.where if part == "." else f"{part}/{found.where}"
    return spec.model_copy(update={"task": task, "chosen": {**spec.chosen, "test": where}})


def load(
    source: TaskSource,
    overrides: Sequence[str],
    named: Mapping[str, Any],
    *,
    auto: bool = True,
) -> TaskSpec:
    """Load the task with options applied; raises UsageError.

    With `auto`, this machine chooses planner and worker if nothing names them.
    """
    from agentrunner.config.load import load_task

    return load_task(
        source,
        overrides=overrides,
        options=named,
        environ=os.environ,
        cwd=Path.cwd(),
        detect_test=_detect_test,
        today=date.today(),
        auto=auto,
    )


def _detect_test(repo: Path) -> str | None:
    from agentrunner.discovery.candidates import detect_test  # only `test: auto` pays for it

    return detect_test(repo)


def _dry_run(spec: TaskSpec, output: Output, policy: Path | None) -> int:
    """Show header, criteria, checks, the worker's command, mounts and network; spends nothing."""
    import asyncio

    from agentrunner.engine.dry_run import preview
    from agentrunner.screens.live import header_rows
    from agentrunner.screens.run_table import dry_run_screen

    plan = asyncio.run(preview(spec, api.options(output.state_dir, policy=policy)))
    code = InfraError.exit_code if plan["missing"] else 0
    if output.json:
        show_json(plan)
        return code
    screen = dry_run_screen(
        header_rows(plan["header"], os.environ.get("HOME", "")),
        criteria_of(
            "The goal" if spec.task_file is None and spec.prd_file is None else spec.title,
            spec,
            width_of(sys.stdout),
        ),
        plan["worker_command"],
        [_mount(mount) for mount in plan["mounts"]],
        plan["reach"],
        plan["missing"],
        width_of(sys.stdout),
    )
    show(screen)
    return code


def _mount(mount: ShownMount) -> str:
    source, target = mount["source"], mount["target"]
    mode = "read-only" if mount["read_only"] else "writable"
    return f"{source} ({mode})" if source == target else f"{source} at {target} ({mode})"


@opt.with_file
def validate(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A task file or a PRD; - is stdin.")],
    strict: Annotated[bool, typer.Option("--strict", help="As with run --strict.")] = False,
    policy: opt.PolicyFile = None,
    as_json: opt.OneJson = False,
) -> int:
    """Check a task file or PRD; show what each criterion executes, and what counts as tests."""

    from agentrunner.commands.policy_findings import policy_line
    from agentrunner.discovery.proof import proof_inputs
    from agentrunner.discovery.protected import asked_protected
    from agentrunner.policy.check import narrowed
    from agentrunner.policy.load import load_policies
    from agentrunner.screens.layout import labelled
    from agentrunner.screens.live import counts_lines

    with _as_invalid(as_json=as_json):
        spec = load(source_of(file, None, None), [], {"strict": strict})
        policies = load_policies(policy, os.environ, Path(spec.repo))
        spec = narrowed(spec, policies, os.environ)
    name = "standard input" if file == "-" else file
    inputs = proof_inputs(spec)
    problems = [*inputs.problems, *asked_protected(spec)]
    if as_json:
        from agentrunner.screens.run_table import NO_CRITERIA

        warnings = [*problems, *([] if spec.criteria else [NO_CRITERIA]), *_schema_warnings(spec)]
        values = {"valid": True, "criteria": _criteria_rows(spec), "inputs": inputs.lists,
                "warnings": warnings, "error": None}  # fmt: skip
        return show_json(values)
    width = width_of(sys.stdout)
    show(criteria_of(name, spec, width))
    for text in counts_lines(inputs.lists):
        show("\n".join(labelled("counts", text, width)))
    for problem in [*problems, *_schema_warnings(spec)]:
        show("\n".join(labelled("warning", problem, width)))
    for source in spec.policies:
        tell(f"  policy  {policy_line(source.path, source.sha256, os.environ.get('HOME', ''))}")
    return 0


@contextlib.contextmanager
def _as_invalid(*, as_json: bool) -> Iterator[None]:
    """Print the object of `validate --json` for a file that is not valid, too."""

    try:
        yield
    except UsageError as error:
        if as_json:
            inputs: dict[str, list[str]] = {"tests": [], "product": [], "unsure": []}
            none = {"criteria": [], "inputs": inputs, "warnings": []}
            show_json({"valid": False, **none, "error": error.as_dict()})
        raise


def _schema_warnings(spec: TaskSpec) -> list[str]:
    """Return a warning for a planner whose answers no schema constrains; [] for others."""
    from agentrunner.config.kinds import planner_kind
    from agentrunner.registry import PLANNERS

    kind = spec.runner.meta.kind
    if planner_kind(kind).takes_schema != "":
        return []
    others = ", ".join(one for one in PLANNERS.own if planner_kind(one).takes_schema)
    notice = f"The planner {kind} is sent no schema: the form of its answers is asked for in "
    notice += f"words, and more of them have to be asked for again. Those that take one: {others}."
    return [notice]


def criteria_of(name: str, spec: TaskSpec, width: int) -> str:
    """Return the table of `validate`."""
    from agentrunner.config.agents import AUTO
    from agentrunner.config.kinds import planner_kind
    from agentrunner.screens.run_table import criteria_table

    kind = spec.runner.meta.kind
    return criteria_table(
        name,
        _criteria_rows(spec),
        strict=spec.completion == "strict",
        has_test=spec.task.test is not None,
        width=width,
        by_code=None if kind == AUTO else planner_kind(kind).by_code,
    )


def _criteria_rows(spec: TaskSpec) -> list[dict[str, object]]:
    from agentrunner.config.prd import describe_check
    from agentrunner.discovery.git import reader_of
    from agentrunner.verification.evidence.checks import is_executable

    test, read = spec.task.test, reader_of(Path(spec.repo))

    def runs(check: Check | None) -> str:
        return describe_check(check) if is_executable(check, test, read) else ""

    return [
        {
            "id": criterion.id,
            "critical": criterion.critical,
            "line": criterion.line,
            "runs": runs(criterion.check),
        }
        for criterion in spec.criteria
    ]


def run_stdin() -> int:
    """Run `agent-runner < task.yaml`: 0 for COMPLETE, 1 for everything else."""
    from agentrunner.commands.drive import drive
    from agentrunner.config.load import read_stdin

    waiting = ""

    async def work(options: Options) -> Result:
        nonlocal waiting
        spec = load(read_stdin(sys.stdin.buffer), [], {}, auto=False)
        _refuse_state(spec)
        result = await api.run(spec, options)
        if result.waiting:
            waiting = answer_command(str(result.run_id), result.waiting)
        return result

    code = drive(work, Output(no_input=True, log_on_stdout=True))
    if waiting:
        show(waiting, sys.stderr)
    return 0 if code == 0 else 1


def answer_command(run_id: str, waiting: InboxItem) -> str:
    """Return the command that answers a waiting run."""
    from agentrunner.state.people import IN_WORDS

    if waiting.kind in IN_WORDS:
        return f"agentrunner answer {run_id} --id {waiting.id} TEXT"
    return f"agentrunner approve {run_id} --id {waiting.id}"
