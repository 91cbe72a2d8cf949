"""Runs the set-up command of a task, and makes the error where it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentrunner.config.load import resolve_env
from agentrunner.config.rules import env_reference
from agentrunner.config.spec import SetupSpec, TaskSpec
from agentrunner.errors import EnvironmentNotReady
from agentrunner.verification.rooms.decision_sandbox import (
    CommandOutcome,
    CopyOfRepo,
    DecisionSandbox,
)
from agentrunner.verification.rooms.registries import asked_for, registries_of

MOST_LINES = 8
"""Lines at the end of its output that are shown where it fails."""


async def run_set_up(
    sandbox: DecisionSandbox,
    spec: TaskSpec,
    *,
    copy: CopyOfRepo | None = None,
    home: Path | None = None,
    trusted: bool,
) -> CommandOutcome | None:
    """Run the task's set-up command, in `copy` where one is given; None where there is no set-up.

    What it writes into its home stays in `home`. It is `trusted` where it can run no code that a
    worker wrote; else it gets nothing of our environment.
    """
    setup = spec.task.setup
    if setup is None:
        return None
    return await sandbox.run(
        setup.command,
        timeout_sec=setup.timeout_sec,
        network="full" if _is_full(spec) else "none",
        hosts=setup.network,
        copy=copy,
        home=home,
        env=_environment(sandbox, setup, trusted=trusted),
        name="setup",
    )


async def set_up_failed(
    spec: TaskSpec,
    ran: CommandOutcome,
    sandbox: str,
    environ: Mapping[str, str] | None = None,
    refused: Sequence[str] = (),
) -> EnvironmentNotReady:
    """The error for a failed set-up; `sandbox` is a description for people.

    Where our environment is given, the remedy also names the hosts that lock files and tools of the
    project name. `refused` are entries of hosts that it asked for in vain.
    """
    setup = spec.task.setup
    assert setup is not None
    how = f"not over after {setup.timeout_sec:g} s" if ran.timed_out else f"exit {ran.exit_code}"
    lines = [line for line in ran.tail.splitlines() if line.strip()][-MOST_LINES:]
    hosts: list[str] = []
    if environ is not None:  # it starts tools, each of which may take seconds
        hosts = await asyncio.to_thread(registries_of, Path(spec.repo), environ)
    named = ", ".join(refused or dict.fromkeys([*hosts, *asked_for(ran.tail)])) or "HOST:443"
    fetches = "asked for in vain" if refused else "fetches"
    fetch = f"task.setup.network: [{named}] reaches what it {fetches}; else "
    reaches_all = _is_full(spec) or (setup.network and not refused)
    return EnvironmentNotReady(
        "The set-up command fails in the sandbox.",
        path="task.setup.command",
        details=(
            ("ran", f"{setup.command}      {how}"),
            ("output", "\n".join(lines) or "nothing"),
            ("sandbox", sandbox),
        ),
        remedy=f"{'' if reaches_all else fetch}correct task.setup.command",
        nothing_spent=True,
    )


def withheld(setup: SetupSpec) -> list[str]:
    """Variables of our environment that a set-up does not get where it may run a worker's code."""
    return [name for name, text in setup.env.items() if env_reference(text) is not None]


def _environment(sandbox: DecisionSandbox, setup: SetupSpec, *, trusted: bool) -> dict[str, str]:
    """The set-up's variables; without references to ours unless only the user's code is run."""
    given = setup.env
    if not trusted:
        given = {name: text for name, text in given.items() if name not in withheld(setup)}
    return resolve_env(given, sandbox.environ, "task.setup.env")


def _is_full(spec: TaskSpec) -> bool:
    network = spec.runner.sandbox.network
    return network is not None and network.policy == "full"
