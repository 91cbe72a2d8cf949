"""AgentRunner as a library: the verbs of the command line, typed and asynchronous.

    from agentrunner import api

    task = api.read_task("task.yaml")
    result = await api.run(task)
    if result.complete:
        print(result.grade, result.note)

Each function raises `agentrunner.errors.AgentRunnerError`: UsageError for a wrong request,
InfraError where the machine prevents it. Nothing here prints or reads standard input. Runs are kept
in `Options.state_dir`, where the command line finds them, too.

What only looks at runs has a twin that blocks, `look_sync` beside `look`: for programs without an
event loop, such as the command line. Libraries are imported by the function that needs them, so
that looking at a run does not wait for LangGraph.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agentrunner import environment
from agentrunner.api import driving, plan_verbs, run_verbs
from agentrunner.api.driving import *  # noqa: F403 - each room lists its names itself
from agentrunner.api.plan_verbs import *  # noqa: F403
from agentrunner.api.run_verbs import *  # noqa: F403

if TYPE_CHECKING:
    from agentrunner.config.spec import TaskSpec as TaskSpec
    from agentrunner.engine.attempt_run import Options as Options
    from agentrunner.engine.queries import ChangedFile as ChangedFile
    from agentrunner.engine.queries import ListedRun as ListedRun
    from agentrunner.engine.retention import Collected as Collected
    from agentrunner.engine.verify import Verification as Verification
    from agentrunner.events import Event as Event
    from agentrunner.plans.execution.status import PlanStatus as PlanStatus
    from agentrunner.plans.planner import PanelPlanner as PanelPlanner
    from agentrunner.results import InboxItem as InboxItem
    from agentrunner.results import PlanResult as PlanResult
    from agentrunner.results import Result as Result
    from agentrunner.results import RunEntry as RunEntry
    from agentrunner.results import Undone as Undone
    from agentrunner.storage.events import EventReader as EventReader

environment.quiet_libraries()  # before the first import of what reads these settings at import

_TYPES = {
    "ChangedFile": "agentrunner.engine.queries",
    "Collected": "agentrunner.engine.retention",
    "Event": "agentrunner.events",
    "EventReader": "agentrunner.storage.events",
    "InboxItem": "agentrunner.results",
    "ListedRun": "agentrunner.engine.queries",
    "Options": "agentrunner.engine.attempt_run",
    "PanelPlanner": "agentrunner.plans.planner",
    "PlanResult": "agentrunner.results",
    "PlanStatus": "agentrunner.plans.execution.status",
    "Result": "agentrunner.results",
    "RunEntry": "agentrunner.results",
    "TaskSpec": "agentrunner.config.spec",
    "Undone": "agentrunner.results",
    "Verification": "agentrunner.engine.verify",
}
"""Types that are part of the API, imported when somebody names them."""

__all__ = [*_TYPES, *driving.__all__, *plan_verbs.__all__, *run_verbs.__all__]


def __getattr__(name: str) -> Any:
    if name not in _TYPES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_TYPES[name]), name)
