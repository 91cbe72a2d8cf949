"""Run trials of test commands, announcing each with its maximum duration."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentrunner.commands.console import tell
from agentrunner.commands.trying import MOST, TRY_SEC, SandboxTrial, try_tests
from agentrunner.screens.layout import count, flat

if TYPE_CHECKING:
    from agentrunner.discovery.found import FoundCommand


def announced_trial(
    repo: Path,
    candidates: Sequence[FoundCommand],
    state_dir: Path,
    *,
    environ: Mapping[str, str] = os.environ,
    skip: bool = False,
    env: Mapping[str, str] | None = None,
    part: str = ".",
    worker_kind: str = "",
    policy: Path | None = None,
) -> SandboxTrial:
    """Run `try_tests`, announcing on stderr what it runs before it does.

    With `skip` nothing is run; Ctrl-C skips the rest.
    """
    where = "" if part == "." else f" in {flat(part)}"
    startable = [found for found in candidates if not found.needs][:MOST]
    if startable and not skip:
        what = count(len(startable), "test command")
        _say(f"Trying {what} on a copy of the files, without network. Ctrl-C or --no-try skips it.")

    def on_try(command: str) -> None:
        _say(f"running `{flat(command)}`{where} in the sandbox (at most {TRY_SEC} s) ...", "  ")

    return try_tests(
        repo, candidates, environ, state_dir,
        on_try=on_try, skip=skip, env=env, part=part, worker_kind=worker_kind, policy=policy,
    )  # fmt: skip


def _say(text: str, indent: str = "") -> None:
    tell(f"{indent}{flat(text)}", sys.stderr)
