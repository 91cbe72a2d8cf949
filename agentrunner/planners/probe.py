"""One small call of a planner's model: whether it answers, how fast, and whether it obeys a schema.

Nothing of a repository is sent. The caller puts the results into words.
"""

from __future__ import annotations

import json
import time

from msgspec import Struct

from agentrunner.planners.base import (
    ChatMessage,
    PartialAnswer,
    PlannerClient,
    PlannerRequest,
    PlannerUnavailable,
    Reply,
)
from agentrunner.planners.cut import Cut, cut_of
from agentrunner.protocol.schema_parts import closed, one_of
from agentrunner.text.cut import tokens

MOST_TRIES = 5
"""A server may refuse the schema twice and streaming twice before it answers."""
LINES = 360
MOST_OUTPUT = 256
ASKED = "Now say hello in one short sentence, and tell in which line the word heron stands."
COLOUR, NUMBERS = "ultramarine", {"four": 4711, "five": 47112}
"""No model would answer these to ASKED by itself: only an enforced schema makes it do so."""
SCHEMA = closed(
    colour=one_of(COLOUR),
    number={
        "anyOf": [
            closed(kind=one_of(kind), value={"type": "integer", "enum": [value]})
            for kind, value in NUMBERS.items()
        ]
    },
)
"""With a union of objects below the root, as the schemas of a run have: some servers take such a
one, and enforce nothing of it, or only what is around the union."""


class ProbedCall(Struct, frozen=True):
    """The results of one call."""

    reply: Reply
    enforced: bool
    """Whether the schema was enforced on the answer."""
    first_sec: float
    """Seconds until the first text came; the whole time where the answer came in one piece."""
    whole_sec: float
    sent: int
    """Tokens sent, approximately."""
    cut: Cut | None
    """Set if its server truncated the prompt."""
    refused: tuple[str, ...] = ()
    """What the server refused, in its own words."""

    @property
    def read_per_sec(self) -> float:
        """Prompt tokens per second, loading of the model included."""
        return self.sent / max(self.first_sec, 0.001)

    @property
    def written_per_sec(self) -> float | None:
        """Output tokens per second; None where they cannot be measured."""
        took = self.whole_sec - self.first_sec
        written = self.reply.output_tokens or tokens(self.reply.text)
        return written / took if took > 0.05 and written > 2 else None


async def try_once(client: PlannerClient) -> ProbedCall:
    """Return one answer of the planner's model; raises PlannerUnavailable, and as `complete` does.

    What a server refuses and can do without is left out, as in a run.
    """
    texts = ("You are tried before you are used.", f"{_lines()}\n\n{ASKED}")
    refused: list[str] = []
    for number in range(MOST_TRIES):
        begun, first = time.monotonic(), list[float]()

        def report(so_far: PartialAnswer, begun: float = begun, first: list[float] = first) -> None:
            if so_far.text or so_far.thoughts:
                first[:] = first or [time.monotonic() - begun]

        request = PlannerRequest(
            type="next_action",
            messages=(ChatMessage("system", texts[0]), ChatMessage("user", texts[1])),
            schema=SCHEMA,
            facts={},
            call_number=number,
            max_output_tokens=MOST_OUTPUT,
            progress=report,
        )
        try:
            reply = await client.complete(request)
        except PlannerUnavailable as failure:
            if failure.retry_after != 0 or number == MOST_TRIES - 1:
                raise
            refused.append(failure.message)
            continue
        whole = time.monotonic() - begun
        return ProbedCall(
            reply=reply,
            enforced=_is_wanted(reply.text),
            first_sec=first[0] if first else whole,
            whole_sec=whole,
            sent=sum(map(tokens, texts)),
            cut=cut_of(texts, reply.input_tokens),
            refused=tuple(refused),
        )
    raise AssertionError("the last try returns or raises")


def _lines() -> str:
    """Return some text to read, so that the reading speed can be measured."""
    birds = ("swift", "wren", "crane", "robin", "rook")
    return "\n".join(
        f"Line {n}: {'heron' if n == LINES // 3 else birds[n % len(birds)]}"
        for n in range(1, LINES + 1)
    )


def _is_wanted(text: str) -> bool:
    """Whether an answer is one of those that the schema allows."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return any(
        answer == {"colour": COLOUR, "number": {"kind": kind, "value": value}}
        for kind, value in NUMBERS.items()
    )
