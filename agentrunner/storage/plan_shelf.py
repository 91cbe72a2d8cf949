"""Plans of a repository that are not the current one: put aside under a name, and taken back.

A plan's folder holds paths below itself, so only the current plan, in its one place, can be
executed; the others are kept beside it as whole folders. All functions block.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from agentrunner.config.naming import is_safe_id
from agentrunner.errors.command_line import AlreadyExists, BadName
from agentrunner.errors.plans import NoPlan, UnknownPlan
from agentrunner.storage.locks import Holder
from agentrunner.storage.plan_folder import PlanFolder, plan_folder, repository_key
from agentrunner.storage.run_folder import make_private, write_private
from agentrunner.storage.worker_ledger import read_json

FACTS = "aside.json"
"""File name in the folder of a plan that was put aside: its name, and whether it is archived."""


@dataclass(frozen=True)
class PlanAside:
    """A plan that is not the current one."""

    name: str
    folder: PlanFolder
    archived: bool = False


def plans_aside(state_dir: Path, repo: Path) -> list[PlanAside]:
    """Return the plans of a repository that were put aside, by name."""
    place = _place(state_dir, repo)
    found = sorted(place.iterdir()) if place.is_dir() else []
    return [_aside(folder) for folder in found if (folder / "plan.sqlite").is_file()]


def find_aside(state_dir: Path, repo: Path, name: str) -> PlanAside:
    """Return the plan of a name; raise UsageError (`unknown-plan`)."""
    for plan in plans_aside(state_dir, repo):
        if plan.name == name:
            return plan
    raise UnknownPlan(
        f'This repository has no plan "{name}" beside the current one.',
        remedy="agentrunner plan list --all",
    )


def runs_aside(state_dir: Path, repo: Path) -> dict[str, str]:
    """Return the runs of tasks of plans that were put aside, each with its plan's name.

    They cannot go on before their plan is the current one again: their work trees moved with it.
    """
    return {
        str(kept["run_id"]): plan.name
        for plan in plans_aside(state_dir, repo)
        for file in plan.folder.work.glob("*/*.json")
        if (kept := read_json(file)) and kept.get("run_id")
    }


def way_to_a_plan(state_dir: Path, repo: Path) -> str:
    """Return the command by which a repository that has no current plan gets one: what is proposed
    and waits comes before what was put aside, and that before a new wish.
    """
    if plan_folder(state_dir, repo).proposal.exists():
        return "agentrunner plan accept"
    aside = [plan.name for plan in plans_aside(state_dir, repo) if not plan.archived]
    if len(aside) == 1:
        return f"agentrunner plan switch {aside[0]}"
    return "agentrunner plan list" if aside else 'agentrunner plan "what you want"'


def put_aside(
    state_dir: Path, repo: Path, name: str, holder: Holder, *, archived: bool = False
) -> PlanAside:
    """Put the current plan aside under `name`; there is no current one afterwards.

    Raises UsageError (`bad-name`, `exists`, `no-plan`), and LockHeld while it is executed.
    """
    current = plan_folder(state_dir, repo)
    target = _free(state_dir, repo, name)
    if not current.plan.is_file():
        raise NoPlan("There is no current plan.", remedy=way_to_a_plan(state_dir, repo))
    make_private(target.parent)
    with _held(current, holder):
        _note(current.root, name, archived)
        current.root.rename(target)
    return PlanAside(name, PlanFolder(target), archived)


def take_back(state_dir: Path, repo: Path, name: str) -> PlanFolder:
    """Make a plan that was put aside the current one again.

    Raises UsageError (`unknown-plan`, and `exists` where there is a current one).
    """
    aside, current = find_aside(state_dir, repo, name), plan_folder(state_dir, repo)
    if current.plan.is_file():
        raise AlreadyExists(
            "There is a current plan; it has to be put aside first.",
            remedy="agentrunner plan new NAME",
        )
    if current.root.is_dir():  # a lock or settings of a plan that was never made
        leftover = _unused(_place(state_dir, repo) / ".left")
        make_private(leftover.parent)
        current.root.rename(leftover)
    make_private(current.root.parent)
    aside.folder.root.rename(current.root)
    (current.root / FACTS).unlink(missing_ok=True)
    return current


def archive_aside(state_dir: Path, repo: Path, name: str) -> PlanAside:
    """Mark a plan that was put aside as archived; raise UsageError (`unknown-plan`)."""
    aside = find_aside(state_dir, repo, name)
    _note(aside.folder.root, name, True)
    return PlanAside(name, aside.folder, True)


def free_name(state_dir: Path, repo: Path, wanted: str) -> str:
    """Return `wanted`, or the first of `wanted-2`, `wanted-3`, … that no other plan has."""
    taken = {plan.name for plan in plans_aside(state_dir, repo)}
    number, name = 1, wanted
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name


@contextlib.contextmanager
def _held(folder: PlanFolder, holder: Holder) -> Iterator[None]:
    """Hold the plan's lock, so that no process executes it meanwhile."""
    lock = folder.lock()
    lock.acquire(holder)
    with contextlib.closing(lock):
        yield


def _place(state_dir: Path, repo: Path) -> Path:
    return state_dir / "plans-aside" / repository_key(repo)


def _free(state_dir: Path, repo: Path, name: str) -> Path:
    if not is_safe_id(name):
        raise BadName(f'"{name}" cannot name a plan: letters, digits, ".", "_" and "-" only.')
    target = _place(state_dir, repo) / name
    if target.exists():
        raise AlreadyExists(f'There is a plan "{name}" already.', remedy=f"another name: {name}-2")
    return target


def _unused(path: Path) -> Path:
    number = 1
    while path.with_name(f"{path.name}-{number}").exists():
        number += 1
    return path.with_name(f"{path.name}-{number}")


def _note(folder: Path, name: str, archived: bool) -> None:
    facts = asdict(PlanAside(name, PlanFolder(folder), archived))
    del facts["folder"]
    write_private(folder / FACTS, json.dumps(facts).encode())


def _aside(folder: Path) -> PlanAside:
    try:
        archived = bool(json.loads((folder / FACTS).read_bytes())["archived"])
    except (OSError, ValueError, KeyError, TypeError):
        archived = False
    return PlanAside(folder.name, PlanFolder(folder), archived)
