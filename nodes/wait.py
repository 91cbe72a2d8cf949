"""A waiting step, in any state: wait until a quota is available again or a provider may be back.

The end of the wait is saved in the state. A process that is killed meanwhile loses nothing:
`resume` waits for the rest.
"""

from __future__ import annotations

from datetime import datetime

from langgraph.types import Command

from agentrunner.execution.deps import Clock, Deps
from agentrunner.execution.quota import moment
from agentrunner.state.run_state import TaskContext

LOOK_SEC = 5.0
"""How often the time of day is checked, so that a machine that slept continues soon after it
wakes."""


async def wait(state: TaskContext, deps: Deps) -> Command[str]:
    """Wait with the sandbox paused, then go back to the node that could not continue."""
    waiting = state["wait"]
    assert waiting is not None
    fields = waiting.model_dump(include={"until", "reason", "role", "candidate", "told"})
    deps.emit("waiting", **fields)
    deps.record(state, "wait", f"{waiting.role}-{waiting.since}", waiting)
    until = moment(waiting.until)
    await deps.sandbox.pause()
    try:
        await _sleep_until(until or deps.clock.now(), deps.clock)
    finally:
        await deps.sandbox.unpause()
    return Command(update={"wait": None}, goto=waiting.back_to)


async def _sleep_until(until: datetime, clock: Clock) -> None:
    """Sleep until a time, but not longer than it is away now, should the clock be set back."""
    longest = clock.monotonic() + (until - clock.now()).total_seconds()
    while (
        remaining := min((until - clock.now()).total_seconds(), longest - clock.monotonic())
    ) > 0:
        await clock.sleep(min(remaining, LOOK_SEC))
