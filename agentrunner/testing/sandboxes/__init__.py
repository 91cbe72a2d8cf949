"""The checks that every sandbox must pass: `agentrunner doctor --sandbox KIND` runs them here.

They try each promise from inside the sandbox and look at the effect from outside.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentrunner.testing.sandboxes import limits, running, walls
from agentrunner.testing.sandboxes.workbench import (
    CANARY,
    CheckResult,
    ConformanceCheck,
    Make,
    NotApplicable,
    Workbench,
)

__all__ = ["CheckResult", "run_conformance"]

CHECKS: tuple[ConformanceCheck, ...] = (*running.CHECKS, *walls.CHECKS, *limits.CHECKS)
_CHECK_TIMEOUT_SEC = 60
NO_WALLS = '"none" isolates nothing'


async def run_conformance(
    make_sandbox: Make, scratch: Path, *, checks: Sequence[ConformanceCheck] = CHECKS
) -> list[CheckResult]:
    """Run the checks, each on a sandbox that `make_sandbox` builds from a SandboxOrder.

    `scratch` is an empty folder below which repositories and a state folder are made; the caller
    removes it. A variable with a random value is in our environment meanwhile, as bait.
    """
    results = []
    with _bait() as value:
        for number, check in enumerate(checks):
            workbench = Workbench.build(
                scratch / f"{number:02}-{check.__name__}", make_sandbox, value
            )
            results.append(await _run(check, workbench))
    return results


async def _run(check: ConformanceCheck, workbench: Workbench) -> CheckResult:
    name = check.__name__
    if check not in running.CHECKS and not workbench.sandbox.isolates:
        return CheckResult(name, "not_applicable", NO_WALLS)
    try:
        async with asyncio.timeout(_CHECK_TIMEOUT_SEC):
            await workbench.sandbox.open()
            await check(workbench)
    except NotApplicable as reason:
        return CheckResult(name, "not_applicable", str(reason))
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is this check's result
        return CheckResult(name, "failed", str(error) or type(error).__name__)
    finally:
        await workbench.sandbox.close()
    left = workbench.leftovers()
    if left:
        return CheckResult(name, "failed", f"still running: {', '.join(map(str, left))}")
    return CheckResult(name, "passed", (check.__doc__ or "").strip())


@contextmanager
def _bait() -> Iterator[str]:
    value = secrets.token_hex(16)
    os.environ[CANARY] = value
    try:
        yield value
    finally:
        del os.environ[CANARY]
