"""Where Anthropic's models are told to keep what they have read."""

from __future__ import annotations

import pytest

from agentrunner.planners.base import ChatMessage, PlannerRequest
from agentrunner.planners.chat import marked_turns


def request(stable: int, *texts: str) -> PlannerRequest:
    first, *others = texts
    messages = (ChatMessage("system", first), *(ChatMessage("user", text) for text in others))
    return PlannerRequest("next_action", messages, {}, {}, 0, stable=stable)


@pytest.mark.parametrize(
    ("stable", "texts", "marked"),
    [
        (2, "system task now", "system task"),
        (5, "system task r1 r2 r3 now", "system task r3"),
        (3, "system task r1 now repair", "system task r1 repair"),
        (1, "system request", "system"),
        (1, "system request looked", "system looked"),
    ],
)
def test_what_the_next_request_begins_with_is_marked(stable: int, texts: str, marked: str) -> None:
    turns = marked_turns(request(stable, *texts.split()))
    assert [role for role, _ in turns] == ["system", "user"]
    blocks = [block for _, found in turns for block in found]
    assert [block["text"] for block in blocks] == texts.split()
    assert [block["text"] for block in blocks if "cache_control" in block] == marked.split()
    assert sum("cache_control" in block for block in blocks) <= 4  # the API takes no more
