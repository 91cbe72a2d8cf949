"""The state file does not grow with the number of steps."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict, cast

from langgraph.graph import END, START, StateGraph

from agentrunner.graph.checkpoints import KEPT_CHECKPOINTS, open_saver


class Steps(TypedDict):
    steps: int


async def step(state: Steps) -> Steps:
    return {"steps": state["steps"] + 1}


def rows(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute(f"select count(*) from {table}").fetchone()[0])


async def test_a_long_run_keeps_its_latest_checkpoints_and_goes_on_from_them(
    tmp_path: Path,
) -> None:
    builder = StateGraph(Steps)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda s: END if s["steps"] % 20 == 0 else "step")
    path = tmp_path / "checkpoints.sqlite"
    config = cast("Any", {"configurable": {"thread_id": "run#1"}, "recursion_limit": 200})
    for attempt in range(2):
        async with open_saver(path, new=attempt == 0) as saver:
            graph = builder.compile(checkpointer=saver)
            before = await graph.aget_state(config)
            value: Steps = {"steps": before.values.get("steps", 0)}
            result = await graph.ainvoke(value, config, durability="sync")
            assert result == {"steps": 20 * (attempt + 1)}
        kept = rows(path, "checkpoints")
        assert KEPT_CHECKPOINTS <= kept <= 2 * KEPT_CHECKPOINTS * (attempt + 1)
        assert rows(path, "writes") <= 8 * kept
