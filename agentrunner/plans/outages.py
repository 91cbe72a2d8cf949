"""A planner that is away while people talk about a plan: wait for it, or say what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentrunner.config.spec import TaskSpec
from agentrunner.errors import AgentRunnerError
from agentrunner.errors.planners import NoPlannerAnswer, PlannerAway, PlannerRefused
from agentrunner.execution.deps import Clock
from agentrunner.execution.failover import FIXED_BY_A_PERSON, AllAway
from agentrunner.execution.outages import (
    ASKED_FOR,
    is_too_long,
    remedy_of,
    sleep_until,
    waited_sec,
)
from agentrunner.planners.base import PlannerUnavailable
from agentrunner.planners.faults import reason_of, words_of_failure
from agentrunner.planners.panel import Candidate, RoleCandidates
from agentrunner.protocol.message import MessageType
from agentrunner.state.worker_runs import Wait
from agentrunner.text.times import moment


class PlannerWaits:
    """Waits until a planner may answer again; for one message, at most `budget.wait_sec`."""

    def __init__(
        self,
        candidates: RoleCandidates,
        spec: TaskSpec,
        environ: Mapping[str, str],
        clock: Clock,
        record: Callable[[Wait], None] = lambda _: None,
    ) -> None:
        self._candidates = candidates
        self._spec = spec
        self._environ = environ
        self._clock = clock
        self._record = record
        self.made: list[Wait] = []
        """The waits for the present message."""
        self.on_wait: Callable[[Wait], None] | None = None
        """Called as a wait begins, to show it."""

    def begin(self) -> None:
        """Count the waits of another message from here on."""
        self.made = []

    async def wait(self, away: AllAway, asked_for: MessageType) -> None:
        """Wait until a candidate may answer again.

        Raises PlannerAway where all waits for the message would be longer than allowed together.
        """
        wait, limit = away.wait, self._spec.runner.budget.wait_sec
        if is_too_long(wait, self.made, limit):
            failed = self._candidates.named(wait.candidate)
            sentence = self._sentence(away.trouble, failed, asked_for)
            waited = waited_sec(self.made)
            known = f"It is known to be back at {wait.until}. " if wait.told else ""
            raise PlannerAway(
                f"{sentence} It was waited for {waited:g} s. "
                f"{known}runner.budget.wait_sec allows {limit:g} s in all. The plan is as it was.",
                remedy=self._remedy(reason_of(away.failure), failed),
            )
        self._record(wait)
        if self.on_wait is not None:
            self.on_wait(wait)
        await sleep_until(moment(wait.until) or self._clock.now(), self._clock)
        self.made.append(wait)

    def refusal(self, failure: PlannerUnavailable, asked_for: MessageType) -> AgentRunnerError:
        """Return the error for a failure that no wait helps: PlannerRefused for a key or a model
        that the provider refuses, else NoPlannerAnswer.
        """
        failed = self._candidates.named(failure.candidate)
        by_person = failure.kind in FIXED_BY_A_PERSON
        sentence = self._sentence(words_of_failure(failure), failed, asked_for)
        return (PlannerRefused if by_person else NoPlannerAnswer)(
            f"{sentence} The plan is as it was.",
            remedy=self._remedy(reason_of(failure), failed),
            details=() if by_person else (("the planner", failure.message),),
        )

    def _sentence(self, trouble: str, failed: Candidate, asked_for: MessageType) -> str:
        who = failed.client.describe()
        return f"The planner ({who}) was asked for {ASKED_FOR[asked_for]}, and {trouble}."

    def _remedy(self, reason: str, failed: Candidate) -> str:
        return remedy_of(
            reason,
            failed,
            self._spec,
            self._environ,
            verb="use",
            model="--planner-model NAME",
            again="say it again",
        )
