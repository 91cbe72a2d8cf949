"""The graph, readable as the state diagram.

    START ─► plan ─► decide ─► run_worker ─► validate ─► decide … ─► note ─► END
               │       │  ▲          ▲           │
               └─► approve ◄─────────┼───────────┤     a person's yes or no
                       └─► ask_human ┘ (answer ─► decide)
                   wait: a node that hits a spent quota goes here, and is run again afterwards
                   planner: a person decides, where no planner gives a usable answer

Every node but `note` names the next node itself (a Command). It has no static edge besides, because
LangGraph would follow both. The nodes that it may name are its row in ROUTES.
"""

from __future__ import annotations

from functools import cache

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agentrunner.execution.deps import Deps
from agentrunner.nodes.approve import approve
from agentrunner.nodes.ask_human import ask_human
from agentrunner.nodes.decide import decide
from agentrunner.nodes.guarded import Node, OpenDeps, guarded
from agentrunner.nodes.note import note
from agentrunner.nodes.plan import plan
from agentrunner.nodes.planner import planner
from agentrunner.nodes.run_worker import run_worker
from agentrunner.nodes.validate import validate
from agentrunner.nodes.wait import wait
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.run_state import TaskContext

NODES: dict[str, Node] = {
    "plan": plan,
    "decide": decide,
    "ask_human": ask_human,
    "approve": approve,
    "planner": planner,
    "run_worker": run_worker,
    "validate": validate,
    "wait": wait,
    "note": note,
}
ROUTES: dict[str, tuple[str, ...]] = {
    "plan": ("plan", "approve", "ask_human", "planner", "decide", "wait", "note"),
    "decide": ("ask_human", "approve", "planner", "run_worker", "validate", "wait", "note"),
    "ask_human": ("ask_human", "plan", "decide", "run_worker", "validate", "note"),
    "approve": ("approve", "plan", "decide", "run_worker", "validate"),
    "planner": ("planner", "plan", "decide", "validate", "note"),
    "run_worker": ("run_worker", "approve", "ask_human", "validate", "wait", "note"),
    "validate": ("decide", "approve", "ask_human", "planner", "wait", "note"),
    "wait": ("plan", "decide", "approve", "run_worker", "validate", "note"),
    "note": (END,),
}
ASKS = frozenset({"ask_human", "approve", "planner"})
"""Nodes that wait for a person; nothing may catch what they raise."""
IDLE = frozenset({"wait"})
"""Nodes that only wait: their time does not count as the run's."""

Builder = StateGraph[TaskContext, Deps, TaskContext, TaskContext]
Graph = CompiledStateGraph[TaskContext, Deps, TaskContext, TaskContext]


def entry(state: TaskContext) -> str:
    """Return an attempt's first node: `note` where it was cancelled, else `validate` or `plan`."""
    if state.get("verdict"):
        return "note"
    return "validate" if state.get("state") == TaskState.VALIDATING else "plan"


def build_graph() -> Builder:
    """Return the graph, not yet compiled. It is run with its dependencies as the context."""
    return _wired(StateGraph(TaskContext, context_schema=Deps))


def graph_for(saver: BaseCheckpointSaver[str]) -> Graph:
    """Return the graph of one run, whose state `saver` keeps. All runs share one compiled graph."""
    return _compiled().copy({"checkpointer": saver})


@cache
def _compiled() -> Graph:
    return build_graph().compile(name="AgentRunner")


def build_served_graph(open_deps: OpenDeps, input_schema: type) -> Builder:
    """Return the same graph for a server, which has no dependencies: every node opens its own."""
    return _wired(StateGraph(TaskContext, input_schema=input_schema), open_deps)


def _wired(builder: Builder, open_deps: OpenDeps | None = None) -> Builder:
    for name, node in NODES.items():
        builder.add_node(
            name,
            guarded(node, ROUTES[name], asks=name in ASKS, idle=name in IDLE, open_deps=open_deps),
            destinations=ROUTES[name],
        )
    builder.add_conditional_edges(START, entry, ["plan", "validate", "note"])
    return builder


def mermaid() -> str:
    """Return the graph as Mermaid text."""
    return str(_compiled().get_graph().draw_mermaid())
