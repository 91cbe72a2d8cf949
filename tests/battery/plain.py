"""No case is empty: a plain run is fooled by a cheat, and the hidden truth knows better."""

from __future__ import annotations

from typing import Any, Literal

from tests.battery.case import Case
from tests.battery.ground import Ground, Said, write


def complaints(case: Case, ground: Ground) -> list[str]:
    """What is wrong with the case itself, as sentences; nothing where it tries what it says.

    The ground is laid before, and put back to its beginning after.
    """
    command = case.plain.run or plain_command(case)
    found: list[str] = []
    truth_before = _truth(case, ground)
    if truth_before.green and case.awaited_truth:
        found.append("the truth is met before any work")
    ground.again()
    found += _look(ground, command, case, "before")
    for script in case.worker:
        done = ground.say(script)
        if not done.green:
            found.append(f"the worker exits {done.code}: {_tail(done)}")
    found += _look(ground, command, case, "after")
    ground.deliver()
    truth = _truth(case, ground)
    if truth.green != case.awaited_truth:
        wanted = "met" if case.awaited_truth else "not met"
        found.append(f"after the work the truth should be {wanted}: {_tail(truth)}")
    ground.again()
    return found


def truth_met(case: Case, ground: Ground) -> bool:
    """Whether what was delivered does what was asked for. It leaves the checkout in place."""
    ground.deliver()
    return _truth(case, ground).green


def plain_command(case: Case) -> str:
    """The test command and the commands of all checks of the task, one after the other."""
    checks = [item["check"] for item in case.criteria if isinstance(item, dict) and "check" in item]
    commands = [check if isinstance(check, str) else check.get("run", "") for check in checks]
    section = case.task.get("test")
    cwd = section.get("cwd") if isinstance(section, dict) else None
    test = f"cd {cwd} && {case.test}" if cwd else case.test
    return " && ".join(f"({text}\n)" for text in [test, *commands] if text) or "false"


def _look(ground: Ground, command: str, case: Case, when: Literal["before", "after"]) -> list[str]:
    wanted = getattr(case.plain, when)
    if wanted == "any":
        return []
    said = Said(0, "")
    for _ in range(case.plain.tries):
        said = ground.say(command)
        if said.green == (wanted == "green"):
            return []
    return [f"{when} the work a plain run is not {wanted}: {_tail(said)}"]


def _truth(case: Case, ground: Ground) -> Said:
    files: dict[str, Any] = dict(case.truth_files)
    write(ground.repo, files)
    return ground.say(case.truth)


def _tail(said: Said) -> str:
    return f"exit {said.code}: {said.output.strip()[-600:]}"
