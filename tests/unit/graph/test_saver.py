"""What the checkpointer saves, in which order, and what it forgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, interrupt

from agentrunner.graph.checkpoints import KEPT_CHECKPOINTS, BoundedSaver, open_saver


class Steps(TypedDict):
    steps: int


async def step(state: Steps) -> Steps:
    return {"steps": state["steps"] + 1}


async def ask(state: Steps) -> Steps:
    return {"steps": int(interrupt("how many?"))}


def counting(saver: BoundedSaver, to: int) -> CompiledStateGraph[Steps, None, Steps, Steps]:
    builder = StateGraph(Steps)
    builder.add_node("step", step)
    builder.add_node("ask", ask)
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda s: "ask" if s["steps"] == to else "step")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def thread(name: str) -> Any:
    return cast("Any", {"configurable": {"thread_id": name}, "recursion_limit": 200})


def count(saver: BoundedSaver, table: str) -> int:
    return int(saver.conn.execute(f"select count(*) from {table}").fetchone()[0])


async def test_a_thread_that_waits_outlives_the_steps_of_others(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "state.sqlite", new=True) as saver:
        await counting(saver, 1).ainvoke({"steps": 0}, thread("waits"), durability="sync")
        busy = counting(saver, 4 * KEPT_CHECKPOINTS)
        await busy.ainvoke({"steps": 0}, thread("busy"), durability="sync")
        graph = counting(saver, 1)
        standing = await graph.aget_state(thread("waits"))
        assert [one.value for one in standing.interrupts] == ["how many?"]
        ended = await graph.ainvoke(Command(resume=7), thread("waits"), durability="sync")
        assert ended == {"steps": 7}


async def test_writes_of_finished_steps_are_kept_apart_only_where_wanted(tmp_path: Path) -> None:
    kept = {}
    for history in (False, True):
        path = tmp_path / f"{history}.sqlite"
        async with open_saver(path, new=True, history=history) as saver:
            await counting(saver, 3).ainvoke({"steps": 0}, thread("t"), durability="sync")
            kept[history] = count(saver, "writes")
    assert kept[False] == 1  # the question, which no checkpoint follows
    assert kept[True] > 3


async def test_what_the_state_builds_on_comes_before_every_save(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    async with open_saver(
        tmp_path / "state.sqlite",
        new=True,
        before=lambda: seen.append((count(saver, "checkpoints"), count(saver, "writes"))),
    ) as saver:
        await counting(saver, 2).ainvoke({"steps": 0}, thread("t"), durability="sync")
        last = (count(saver, "checkpoints"), count(saver, "writes"))
    assert seen == [(number, 0) for number in range(last[0] + 1)]
    assert last[1] == 1
