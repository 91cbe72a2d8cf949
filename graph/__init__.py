"""Which node follows which, and driving a run along it.

`agentrunner.graph:graph` is what langgraph.json names: the same graph without a checkpointer,
making its own dependencies from a task file.
"""

from __future__ import annotations

from typing import Any

from agentrunner.settings import quiet_libraries

quiet_libraries()  # before the first import of LangGraph, which reads its settings then


def __getattr__(name: str) -> Any:
    """`graph` is compiled when asked for, so that importing this package costs nothing."""
    if name == "graph":
        from agentrunner.graph.studio import graph

        return graph
    raise AttributeError(name)
