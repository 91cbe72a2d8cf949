"""Cache marks for providers that keep of a prompt what they are told to keep. Pure.

Anthropic's API reads a prefix from its cache only up to a block that carries a mark, four at most.
"""

from __future__ import annotations

from typing import Any

from agentrunner.planners.base import PlannerRequest

MARK = {"type": "ephemeral"}
Block = dict[str, Any]


def marked_turns(request: PlannerRequest) -> list[tuple[str, list[Block]]]:
    """The messages by role, each a block of its own, with marks where the next request differs.

    What never changes in a run ends with the system message and with the task; what the next
    request begins with ends with the last of `request.stable`. The last message is marked where
    something was appended to it: then more may follow.
    """
    first = [role.role for role in request.messages].count("system")
    last = len(request.messages) - 1
    ends = {one for one in (first - 1, first, request.stable - 1) if 0 <= one < request.stable}
    if last > request.stable:  # answers that could not be used, and what was looked at
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
