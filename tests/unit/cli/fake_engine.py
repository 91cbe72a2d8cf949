"""An engine that does nothing but say what it was told to say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.engine.attempt_run import Options
from agentrunner.state.run_state import Answer, Question
from tests.unit.screens.screen_samples import result, story_events

TASK = """\
version: 1
task:
  title: Say hello
  prd: {text: Say hello}
  test: pytest -q
  acceptance_criteria:
    - {description: "It greets", check: "grep -q hello out.txt"}
"""


@dataclass
class FakeEngine:
    """Answers with what it was given, and remembers what it was asked."""

    answer: dict[str, Any] = field(default_factory=result)
    error: Exception | None = None
    asked: list[tuple[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=story_events)
    question: Question | None = None
    """Asked inline before the end; the answer is remembered under `inline`."""

    async def _do(self, verb: str, options: Options, **given: Any) -> dict[str, Any]:
        self.asked.append((verb, given))
        for event in self.events:
            options.on_event(event)
        if self.question is not None and options.ask is not None:
            self.asked.append(("inline", options.ask(self.question)))
        if self.error is not None:
            raise self.error
        return self.answer

    async def start(self, spec: TaskSpec, options: Options) -> dict[str, Any]:
        return await self._do("start", options, spec=spec)

    async def resume(
        self,
        run_id: str,
        options: Options,
        *,
        max_loops: int | None = None,
        message: str | None = None,
        on_change: str | None = None,
        budget: Sequence[str] = (),
        by: str = "",
    ) -> dict[str, Any]:
        given = {
            "max_loops": max_loops,
            "message": message,
            "on_change": on_change,
            "budget": list(budget),
        }
        return await self._do("resume", options, run_id=run_id, **given)

    async def respond(self, run_id: str, answer: Answer, options: Options) -> dict[str, Any]:
        return await self._do("respond", options, run_id=run_id, answer=answer)

    async def accept(
        self,
        run_id: str,
        criteria: list[str],
        reason: str,
        by: str,
        options: Options,
        *,
        unchanged: bool = False,
        known_red: Sequence[str] = (),
    ) -> dict[str, Any]:
        given = {"criteria": criteria, "reason": reason, "by": by, "known_red": list(known_red)}
        return await self._do("accept", options, run_id=run_id, **given)

    async def cancel(self, run_id: str, options: Options) -> dict[str, Any]:
        return await self._do("cancel", options, run_id=run_id)
