"""A waiting step, in any state: wait until a quota is available again or a provider may be back.

The end of the wait is saved in the state. A process that is killed meanwhile loses nothing:
`resume` waits for the rest.
"""

from __future__ import annotations

from langgraph.types import Command

from agentrunner.execution.deps import Deps
from agentrunner.execution.outages import sleep_until
from agentrunner.state.run_state import TaskContext
from agentrunner.text.times import moment


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
        await sleep_until(until or deps.clock.now(), deps.clock)
    finally:
        await deps.sandbox.unpause()
    return Command(update={"wait": None}, goto=waiting.back_to)
