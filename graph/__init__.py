"""The graph of a run: which node follows which, and the saved state."""

from agentrunner.environment import quiet_libraries

quiet_libraries()  # before the first import of LangGraph, which reads its settings then
