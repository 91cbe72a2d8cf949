"""A planner that reads its replies from a file: for tests, demonstrations and replays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from agentrunner.config.spec import TaskSpec
from agentrunner.config.yaml_text import read_yaml
from agentrunner.errors.planners import BadScript, ScriptEnded, ScriptMismatch, ScriptMissing
from agentrunner.planners.base import PlannerRequest, PlannerUnavailable, Reply
from agentrunner.planners.retry import http_failure, network_failure
from agentrunner.protocol.loading import load_yaml
from agentrunner.protocol.message import MessageType


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ClaimedUsage(_Strict):
    """Tokens that an item claims to have used."""

    input_tokens: Annotated[int, Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)] = 0


class WireFault(_Strict):
    """An error status from the server, or no answer at all."""

    status: Annotated[int, Field(ge=300, le=599)] | None = None
    retry_after: Annotated[float, Field(ge=0)] | None = None
    kind: Literal["timeout", "connection"] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> WireFault:
        if (self.status is None) == (self.kind is None):
            raise ValueError("an error has exactly one of status and kind")
        return self

    def failure(self, now: datetime) -> PlannerUnavailable:
        """Return the exception that a client raises for this fault."""
        if self.status is not None:
            body, wish = "(from the script)", self.retry_after
            return http_failure(self.status, body, wish, now=now, whose="The planner: status")
        what = "no answer in time" if self.kind == "timeout" else "connection failed"
        return network_failure(f"The planner: {what} (from the script).")


class Item(_Strict):
    """The outcome of one attempt: a reply or an error."""

    expect: MessageType | None = None
    """The type of message that must be requested at this point."""
    reply: str | dict[str, object] | None = None
    error: WireFault | None = None
    usage: ClaimedUsage = ClaimedUsage()
    finish_reason: Literal["stop", "length"] = "stop"
    delay_sec: Annotated[float, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _one_of_two(self) -> Item:
        if (self.reply is None) == (self.error is None):
            raise ValueError("an item has exactly one of reply and error")
        return self


_ITEMS = TypeAdapter(list[Item])


class ScriptPlanner:
    """Item n answers attempt n of the run, so a resumed run continues with the next unused item."""

    kind = "script"
    by_code = True
    calls_model = False

    def __init__(
        self,
        spec: TaskSpec,
        environ: Mapping[str, str],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Read `spec.script_text`; raises UsageError (`script-missing`, `script-invalid`)."""
        if spec.script_text is None:
            raise ScriptMissing(
                "the planner `script` needs a file with its replies",
                path="runner.meta.script",
                remedy="set runner.meta.script to a file, relative to the task file",
            )
        self._items = read_script(spec.script_text)
        self._sleep = sleep
        self._clock = clock

    def describe(self) -> str:
        number = len(self._items)
        return f"script with {number} {'reply' if number == 1 else 'replies'} (no model)"

    async def complete(self, request: PlannerRequest) -> Reply:
        """Return the reply at the position of this attempt.

        Raises TaskFailed (`script-ended`, `script-mismatch`), or the item's own error.
        """
        item = self._item(request)
        if item.delay_sec:
            await self._sleep(item.delay_sec)
        if item.error is not None:
            raise item.error.failure(self._clock())
        reply = item.reply
        return Reply(
            text=reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False),
            finish_reason=item.finish_reason,
            input_tokens=item.usage.input_tokens,
            output_tokens=item.usage.output_tokens,
            model="script",
            known="reported" if item.usage != ClaimedUsage() else "counted",
        )

    async def close(self) -> None:
        """Nothing to release."""

    def awaits(self, type_: MessageType, call_number: int) -> bool:
        """Whether the item of this attempt answers such a message."""
        if call_number >= len(self._items):
            return False
        item = self._items[call_number]
        named = item.reply.get("type") if isinstance(item.reply, dict) else None
        return type_ in (item.expect, named)

    def _item(self, request: PlannerRequest) -> Item:
        number = request.call_number + 1
        if number > len(self._items):
            raise ScriptEnded(
                f"The script has no item {number}: it ends after item {len(self._items)}, but the "
                f"run asked for {request.type}.",
                path="runner.meta.script",
            )
        item = self._items[request.call_number]
        if item.expect not in (None, request.type):
            raise ScriptMismatch(
                f"Item {number} of the script expects {item.expect}, but the run asked for "
                f"{request.type}.",
                path="runner.meta.script",
            )
        return item


def read_script(text: str) -> list[Item]:
    """Return the items of a script; raises UsageError with the number of the first bad one."""
    tree = read_yaml(text, "script")  # keeps line numbers, but every scalar is text
    try:
        # Here true, 1 and null keep their types, as in a reply
        return _ITEMS.validate_python(load_yaml(text))
    except ValidationError as problem:
        error = problem.errors()[0]
        place = tree.place(error["loc"])
        names = [f"item {int(error['loc'][0]) + 1}"] if error["loc"] else ["the script"]
        names += [str(part) for part in error["loc"][1:]]
        raise BadScript(
            f"{', '.join(names)}: {error['msg']}",
            path=place.where,
            source_line=place.source_line,
        ) from problem
