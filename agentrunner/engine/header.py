"""The header printed before anything starts: who works, where, with what, and how long at most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentrunner.config.agents import See, seen_by
from agentrunner.config.budget_kinds import BUDGET_KINDS
from agentrunner.config.spec import TaskSpec
from agentrunner.discovery.ci_environment import ci_environment
from agentrunner.discovery.git import read_branch
from agentrunner.discovery.proof import MOST_FILES_AT_START, ProofInputs, proof_inputs
from agentrunner.discovery.protected import asked_protected
from agentrunner.discovery.set_up import filters_of, not_taken_along
from agentrunner.engine.commits import load_task_of
from agentrunner.engine.queries import ChangedFile, changes, listed_runs
from agentrunner.errors import AgentRunnerError
from agentrunner.execution.resolved import ResolvedRun
from agentrunner.execution.seeing import CONTEXT_FILE, no_provider
from agentrunner.header import Header, HeaderInputs, HeaderLanding, HeaderLimits
from agentrunner.state.rounds import rounds_at_most
from agentrunner.state.run_state import TaskContext
from agentrunner.storage.run_folder import RunFolder
from agentrunner.text.cut import some_of
from agentrunner.workers.member import Member

MOST_NAMED = 4
"""Files named of what an earlier run changed."""
MOST_LISTED = 50
"""Entries shown of each list of what counts as tests; `validate --json` shows all of them."""


def header_of(
    resolved: ResolvedRun,
    *,
    sandbox: str,
    state: TaskContext,
    begins: bool = True,
    news: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the `header` of the first event, and of --dry-run, of a run in this state.

    `news` are notices that are shown once. What counts as tests is shown only where the run
    `begins`: later the files are a worker's.
    """
    spec, members = resolved.spec, resolved.members
    setup, test = spec.task.setup, spec.task.test
    inputs = ProofInputs()
    if begins:
        inputs = proof_inputs(spec, most_files=MOST_FILES_AT_START, most_listed=MOST_LISTED)
    first = members[0].spec.runner.worker
    limits = {
        "max_loops": state["run"].max_loops,
        "rounds_at_most": rounds_at_most(state),
        "run_time_sec": first.max_run_time_sec,
        "idle_timeout_sec": first.idle_timeout_sec,
        **spec.runner.budget.model_dump(include=set(BUDGET_KINDS)),
    }
    header = Header(
        repo=spec.shown_repo,
        branch=None if spec.part_of else read_branch(Path(spec.shown_repo)),
        landing=_landing(spec),
        part_of=spec.part_of,
        planner=_planner(resolved) + _because(spec, "meta"),
        worker=", else ".join(_described(one) for one in members) + _because(spec, "worker"),
        key=", ".join(dict.fromkeys(filter(None, (_key(one, resolved) for one in members)))),
        sandbox=sandbox,
        network=resolved.network,
        reach=reach_of(spec, members),
        setup=setup.command if setup else None,
        tests=test.command if test else None,
        tests_where=_tests_where(spec),
        env={name: text.removeprefix("literal:") for name, text in spec.task.env.items()},
        inputs=HeaderInputs.model_validate(inputs.lists) if inputs.lists else None,
        limits=HeaderLimits.model_validate(limits),
        completion=spec.completion,
        policies=list(spec.policies),
        notices=[
            *resolved.notices,
            *news,
            *_missing_dependencies(spec),
            *_filtered(spec),
            *(_ci_environment(spec) if begins else ()),
            *inputs.problems,
            *(asked_protected(spec) if begins else ()),
        ],
    )
    return header.model_dump(mode="json", by_alias=True, exclude_unset=True)


SIGHTS: dict[See, str] = {
    "nothing": "nothing of the code",
    "change": "the change",
    "repo": "the change and the repository",
}
"""What a planner sees, for people."""


def _filtered(spec: TaskSpec) -> list[str]:
    """Return a notice where a commit is planned and git would rewrite files by a filter program."""
    repo = Path(spec.repo)
    if spec.landing is None or not (names := filters_of(repo)):
        return []
    return [f"files for the filter {', '.join(names)} (.gitattributes) are not committed by a run"]


def _ci_environment(spec: TaskSpec) -> list[str]:
    """Return a notice where CI sets language or time zone for the tests, and the task does not."""
    if spec.task.test is None:
        return []
    around = ci_environment(Path(spec.repo)).without(spec.task.env)
    if not around.env:
        return []
    return [
        f"{around.where} sets {around.text} for the tests; task.env: {around.text} does so here"
    ]


def _missing_dependencies(spec: TaskSpec) -> list[str]:
    """Return notices of dependencies installed in the checkout but not where the run works."""
    landing = spec.landing
    if landing is None or not (landing.outside and landing.base) or spec.task.setup is not None:
        return []
    there = [place.name for place in Path(spec.repo).iterdir()]
    return not_taken_along(Path(landing.repo), there, "task.setup.command: {}")


def _landing(spec: TaskSpec) -> HeaderLanding | None:
    """Return where the commit goes and which files were carried over; None for no commit."""
    landing = spec.landing
    if landing is None:
        return None
    fields = landing.model_dump(include={"branch", "base", "carried", "carried_more", "left"})
    fields["branch"] = landing.branch or (f"agentrunner/{spec.task_id}" if landing.outside else "")
    return HeaderLanding(**fields, worktree=spec.repo if landing.outside else None)


def _planner(resolved: ResolvedRun) -> str:
    spec, planner = resolved.spec, resolved.planner
    name = planner.describe() if planner else f"{spec.runner.meta.kind}, not ready"
    return name + sight_of(spec)


def sight_of(spec: TaskSpec) -> str:
    """Return what of the code is sent to the planner's provider; "" where there is none."""
    if no_provider(spec):
        return ""
    return f"; sees {SIGHTS[seen_by(spec.runner.meta)]}"


def left_by_others(
    spec: TaskSpec,
    run_id: str,
    state_dir: Path,
    changed_by: Callable[[Path, str], Sequence[ChangedFile]] = changes,
) -> list[str]:
    """Return a notice where the run before this one stands unfinished in the same tree.

    What its worker left is part of what this run begins with, and is not told from a person's. Of a
    run that a later one followed, its own notice told. Blocks.
    """
    landing = spec.landing
    if spec.part_of or (landing is not None and landing.outside):
        return []
    others = [one for one in listed_runs(state_dir, Path(spec.shown_repo)) if one.run_id != run_id]
    last = next((one for one in others if one.rounds and not one.part_of), None)
    if last is None or last.finished_at is not None or last.undone:
        return []
    if _had_own_tree(RunFolder.open(state_dir, last.run_id)):
        return []
    changed: Sequence[ChangedFile] = ()
    with suppress(AgentRunnerError, OSError):  # damaged files keep no other run from it
        changed = changed_by(state_dir, last.run_id)
    if not changed:
        return []
    name, files = last.run_id, some_of([one["path"] for one in changed], MOST_NAMED)
    text = f"{name} is unfinished here ({last.stands}), and it changed {files}: this run begins "
    text += f"with what still stands of that. Ctrl-C, then agentrunner resume {name}, continues it;"
    return [f"{text} agentrunner undo {name} takes its work back"]


def _had_own_tree(folder: RunFolder) -> bool:
    """Whether a run worked outside of the repository."""
    try:
        landing = load_task_of(folder).landing
    except (AgentRunnerError, OSError):
        return False
    return landing is not None and landing.outside


def news_of_sight(spec: TaskSpec, folder: RunFolder) -> list[str]:
    """Return a notice of what is sent to the planner's provider, in the first run here that sends
    something.

    Only after runs that sent nothing, or that an earlier version made: who begins with this version
    reads it in the header. Blocks.
    """
    sight = seen_by(spec.runner.meta)
    if no_provider(spec) or sight == "nothing":
        return []
    others = [run for run in folder.root.parent.iterdir() if run != folder.root]
    if not others or any((run / CONTEXT_FILE).exists() for run in others):
        return []
    less = "change sends no files, nothing no code" if sight == "repo" else "nothing sends no code"
    news = f"New here: the planner's provider is shown {SIGHTS[sight]}. To stop it: "
    return [f"{news}--set runner.meta.see=nothing ({less}), or the same in your own settings"]


def _tests_where(spec: TaskSpec) -> str | None:
    """Return where the test command comes from: the task's file, or a file of the repository."""
    if where := spec.chosen.get("test"):
        return f"{where}; --test none runs none"
    return Path(spec.task_file.path).name if spec.task_file and spec.task_file.path else None


def _because(spec: TaskSpec, who: str) -> str:
    """Return why it was chosen, where the task left that to this machine."""
    return f" (chosen: {spec.chosen[who]})" if who in spec.chosen else ""


def _described(member: Member) -> str:
    """Return a worker with its version and its model."""
    version = f" {member.probe.version}" if member.probe.version else ""
    model = member.spec.runner.worker.model
    named = f", {model}" if model else ""
    return f"{member.worker.kind}{version}{named}{_model_host(member)}"


def reach_of(spec: TaskSpec, members: Sequence[Member]) -> str:
    """Return what workers reach from their sandbox."""
    network = members[0].network
    if not spec.runner.sandbox.isolates or network.policy == "full":
        return "all that this machine reaches"
    if network.policy == "none":
        return "nothing"
    hosts = ["its model"] * any(one.worker.wire for one in members) + network.allow
    return ", ".join(hosts) + " alone" * (len(hosts) == 1) if hosts else "nothing"


def reach_of_all(spec: TaskSpec, members: Sequence[Member]) -> dict[str, str]:
    """Return what each kind of command reaches, by its name."""
    reach = {"worker": reach_of(spec, members)}
    for name, section in (("set-up", spec.task.setup), ("tests", spec.task.test)):
        if section is not None:
            hosts = ", ".join(section.network) or "nothing"
            isolated = spec.runner.sandbox.isolates
            reach[name] = hosts if isolated else "all that this machine reaches"
    return reach


def _model_host(member: Member) -> str:
    """Return the host that gets the worker's key; a login has its own host."""
    spec, worker = member.spec, member.worker
    if not worker.provider_url or spec.runner.worker.auth == "login":
        return ""
    return f" at {urlsplit(worker.provider_url).netloc.rpartition('@')[2]}"


def _key(member: Member, resolved: ResolvedRun) -> str:
    """Return which of the worker's secrets stays out of the sandbox; "" where none does."""
    if not member.has_gateway:
        return ""
    if member.subscribed:
        return f"the {member.worker.kind} login's token stays out of the sandbox"
    name = resolved.keys.get(member.name, "")
    return f"{name} stays out of the sandbox" if name else ""
