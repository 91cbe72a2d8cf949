"""Which node follows which, and driving a run along it."""

from agentrunner.environment import quiet_libraries

quiet_libraries()  # before the first import of LangGraph, which reads its settings then
