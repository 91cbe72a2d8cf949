"""Named places in the code where a test can make the process die, fail or get a signal.

Inactive unless AGENTRUNNER_TEST=1 and AGENTRUNNER_FAILPOINT=NAME:ACTION are both set. The names are
listed, so that a crash matrix can go through all of them.
"""

from __future__ import annotations

import errno
import os
import signal

IN_RUNNER = (
    "during_setup",
    "during_baseline",
    "before_claim",
    "after_claim",
    "after_spawn_before_spec",
    "mid_spec",
    "after_start",
    "mid_work",
    "after_finish",
    "during_validation",
    "before_proof",
    "mid_proof",
    "after_proof",
    "during_note",
)
"""Reached in the driving process."""

IN_SUPERVISOR = (
    "supervisor_before_started",
    "supervisor_before_release",
    "supervisor_after_start",
    "supervisor_after_worker",
    "supervisor_before_result",
)
"""Reached in the supervisor, which gets its fail-point with its order."""

IN_PLAN = ("plan_half_changed", "plan_before_commit")
"""Reached where a plan is changed on disk."""

IN_LANDING = (
    "landing_before_move",
    "landing_after_move",
    "publish_before",
    "publish_after",
    "push_after",
    "request_after",
)
"""Reached where a plan's work is merged and delivered."""

IN_COMMIT = ("commit_made", "commit_published")
"""Reached where a run that is COMPLETE is committed."""

IN_WORKSPACE = ("repository_made",)
"""Reached where a folder becomes a repository."""

IN_VERIFY = ("during_verify",)
"""Reached where what a run delivered is verified once more."""

IN_ASKING = ("after_look",)
"""Reached where a planner has looked and has not answered."""

REGISTERED = (
    IN_RUNNER
    + IN_SUPERVISOR
    + IN_PLAN
    + IN_LANDING
    + IN_COMMIT
    + IN_WORKSPACE
    + IN_VERIFY
    + IN_ASKING
)

SIGNALS = {
    "kill": signal.SIGKILL,
    "term": signal.SIGTERM,
    "int": signal.SIGINT,
    "stop": signal.SIGSTOP,
}
ACTIONS = (*SIGNALS, "raise", "enospc")


class FailPointReached(Exception):
    """Raised by the action `raise`."""


def wanted() -> tuple[str, str] | None:
    """Return the fail-point that the environment asks for, as (name, action)."""
    if os.environ.get("AGENTRUNNER_TEST") != "1":
        return None
    name, _, action = os.environ.get("AGENTRUNNER_FAILPOINT", "").partition(":")
    return (name, action) if name in REGISTERED and action in ACTIONS else None


def reach(name: str) -> None:
    """Do what the environment asks for at the fail-point `name`; nothing outside of tests.

    Raises ValueError for a name that is not registered, FailPointReached for `raise` and
    OSError(ENOSPC) for `enospc`.
    """
    if name not in REGISTERED:
        raise ValueError(f"fail-point {name!r} is not registered")
    point = wanted()
    if point is None or point[0] != name:
        return
    action = point[1]
    if action == "raise":
        raise FailPointReached(name)
    if action == "enospc":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
    os.kill(os.getpid(), SIGNALS[action])
