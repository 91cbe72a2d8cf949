"""The base: the same loop as a plain LangGraph program, with nothing of AgentRunner in it.

    python -m benchmarks.bare CALL.json CHECKPOINTS.sqlite LOOPS REPO WORKER …

It has what one would write: three nodes, ChatOpenAI, AsyncSqliteSaver with durability="sync", the
model's answer read as JSON, the worker run as a child process, the end of its output kept in the
state, and `git status` asked what it changed. CALL.json holds the messages and the response format
of one call that AgentRunner made, so both ask the same. Prints the CPU seconds of this process at
each decision as one JSON list.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

TAIL = 2048


class State(TypedDict, total=False):
    """What the loop carries."""

    loop: int
    decision: dict[str, Any]
    exit_code: int
    tail: str
    changed: list[str]


async def run(
    call: dict[str, Any], checkpoints: str, loops: int, repo: str, worker: list[str]
) -> list[float]:
    """CPU seconds at each decision."""
    marks: list[float] = []
    model = ChatOpenAI(model="benchmark", max_retries=0, timeout=60).bind(
        response_format=call["response_format"]
    )
    messages = [(message["role"], message["content"]) for message in call["messages"]]

    async def decide(state: State) -> Command[str]:
        answer = await model.ainvoke(messages)
        marks.append(time.process_time())
        loop = state.get("loop", 0) + 1
        update = {"loop": loop, "decision": json.loads(str(answer.content))}
        return Command(update=update, goto="run_worker" if loop <= loops else END)

    async def run_worker(state: State) -> Command[str]:
        exit_code, output = await _child(*worker, cwd=repo)
        tail = output[-TAIL:].decode("utf-8", "replace")
        return Command(update={"exit_code": exit_code, "tail": tail}, goto="validate")

    async def validate(state: State) -> Command[str]:
        _, output = await _child("git", "status", "--porcelain", cwd=repo)
        return Command(update={"changed": output.decode().splitlines()}, goto="decide")

    builder = StateGraph(State)
    for node, goto in ((decide, "run_worker"), (run_worker, "validate"), (validate, "decide")):
        builder.add_node(node.__name__, node, destinations=(goto, END))
    builder.add_edge(START, "decide")
    async with AsyncSqliteSaver.from_conn_string(checkpoints) as saver:
        graph = builder.compile(checkpointer=saver)
        await graph.ainvoke(
            {"loop": 0},
            {"configurable": {"thread_id": "1"}, "recursion_limit": 4 * loops + 20},
            durability="sync",
        )
    return marks


async def _child(*command: str, cwd: str) -> tuple[int | None, bytes]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, cwd=cwd)
    output, _ = await process.communicate()
    return process.returncode, output


def main() -> None:
    """The program."""
    call, checkpoints, loops, repo, *worker = sys.argv[1:]
    asked = json.loads(Path(call).read_bytes())
    marks = asyncio.run(run(asked, checkpoints, int(loops), repo, worker))
    print(json.dumps(marks))


if __name__ == "__main__":
    main()
