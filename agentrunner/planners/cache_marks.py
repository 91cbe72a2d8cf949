"""Cache marks, for providers that cache only the prefixes that a request marks. Pure.

Anthropic's API caches a prefix only up to a block that carries a mark, four marks at most.
"""

from __future__ import annotations

from typing import Any

from agentrunner.planners.base import PlannerRequest

MARK = {"type": "ephemeral"}
Block = dict[str, Any]


def marked_turns(request: PlannerRequest) -> list[tuple[str, list[Block]]]:
    """Return the messages by role, one block each, with marks where later requests will differ.

    Marks end the system message and the task (both fixed for the run) and the last of the
    `request.stable` messages, with which the next request begins as well. The last message is
    marked too when something was appended to the stable ones, since more may follow.
    """
    first = [role.role for role in request.messages].count("system")
    last = len(request.messages) - 1
    ends = {one for one in (first - 1, first, request.stable - 1) if 0 <= one < request.stable}
    if last > request.stable:  # unusable answers and the results of looks
        ends.add(last)
    turns: list[tuple[str, list[Block]]] = []
    for number, message in enumerate(request.messages):
        block: Block = {"type": "text", "text": message.content}
        if number in ends:
            block["cache_control"] = MARK
        if turns and turns[-1][0] == message.role:
            turns[-1][1].append(block)
        else:
            turns.append((message.role, [block]))
    return turns
