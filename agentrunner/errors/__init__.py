"""Everything that can go wrong by name, and who should act on it.

    AgentRunnerError          message, code, place, remedy; its class has exit code
    ├── UsageError      (2)   the caller's mistake: task file, option, unknown run, stale answer
    │   └── ProtocolError     a reply of the planner that can't be read (asked again first)
    ├── InfraError      (5)   missing key, binary, sandbox; lock held; state damaged; disk full
    └── TaskFailed      (1)   the task ends FAILED: the planner, its API, a worker, a budget

Each further class stands in the module of its subject, and has one code. Its docstring says what
it means and, from its second paragraph on, what to do. `reference.py` makes the pages of them.

A non-zero exit code of a worker or a test is a result, not an error.
"""

from agentrunner.errors.error import AgentRunnerError as AgentRunnerError
from agentrunner.errors.error import InfraError as InfraError
from agentrunner.errors.error import TaskFailed as TaskFailed
from agentrunner.errors.error import UsageError as UsageError
from agentrunner.errors.replies import ProtocolError as ProtocolError
from agentrunner.errors.runs import CheckpointCorrupt as CheckpointCorrupt
from agentrunner.errors.runs import LockHeld as LockHeld
from agentrunner.errors.sandboxes import EnvironmentNotReady as EnvironmentNotReady
from agentrunner.errors.sandboxes import SandboxUnavailable as SandboxUnavailable
