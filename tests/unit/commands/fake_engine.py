"""An engine that does nothing but say what it was told to say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentrunner import api
from agentrunner.config.spec import TaskSpec
from agentrunner.engine.attempt_run import Options
from agentrunner.results import Result
from agentrunner.state.people import Answer, Question
from tests.kit.screen_samples import result, story_events

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

    answer: Result = field(default_factory=result)
    error: Exception | None = None
    asked: list[tuple[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=story_events)
    question: Question | None = None
    """Asked inline before the end; the answer is remembered under `inline`."""

    def replace_api(self, put: Callable[[object, str, object], None] = setattr) -> None:
        """Answer in place of the verbs of the API that drive runs."""
        for verb in ("run", "resume", "respond", "accept", "cancel"):
            put(api, verb, getattr(self, verb))

    async def _do(self, verb: str, options: Options, **given: Any) -> Result:
        self.asked.append((verb, given))
        for event in self.events:
            options.on_event(event)
        if self.question is not None and options.ask is not None:
            self.asked.append(("inline", options.ask(self.question)))
        if self.error is not None:
            raise self.error
        return self.answer

    async def run(self, task: TaskSpec, how: Options) -> Result:
        return await self._do("start", how, spec=task)

    async def resume(
        self,
        run_id: str,
        how: Options,
        *,
        max_loops: int | None = None,
        message: str | None = None,
        on_change: str | None = None,
        budget: Sequence[str] = (),
        planner: str | None = None,
        planner_model: str | None = None,
        model: str | None = None,
        by: str = "",
    ) -> Result:
        given = {
            "max_loops": max_loops,
            "message": message,
            "on_change": on_change,
            "budget": list(budget),
        }
        return await self._do("resume", how, run_id=run_id, **given)

    async def respond(
        self,
        run_id: str,
        decision: Literal["answer", "approve", "reject"],
        text: str = "",
        *,
        question: str = "",
        edit: str = "",
        by: str = "",
        how: Options,
    ) -> Result:
        said = Answer(id=question, kind="ask_human", decision=decision, text=text, edit=edit, by=by)
        return await self._do("respond", how, run_id=run_id, answer=said)

    async def accept(
        self,
        run_id: str,
        reason: str,
        *,
        criteria: Sequence[str] = (),
        known_red: Sequence[str] = (),
        unchanged: bool = False,
        by: str = "",
        how: Options,
    ) -> Result:
        given = {
            "criteria": list(criteria),
            "reason": reason,
            "by": by,
            "known_red": list(known_red),
        }
        return await self._do("accept", how, run_id=run_id, **given)

    async def cancel(self, run_id: str, how: Options) -> Result:
        return await self._do("cancel", how, run_id=run_id)
