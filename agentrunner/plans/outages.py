"""A planner that is away while people talk about a plan: wait for it, or say what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from agentrunner.config.kinds import planner_kind
from agentrunner.config.load import model_variable
from agentrunner.config.spec import TaskSpec
from agentrunner.errors import AgentRunnerError
from agentrunner.errors.planners import NoPlannerAnswer, PlannerAway, PlannerRefused
from agentrunner.execution.deps import Clock
from agentrunner.execution.outages import (
    ASKED_FOR,
    asked_again_at,
    ends_by_itself,
    setting_with_origin,
    sleep_until,
)
from agentrunner.execution.planner_candidates import FIXED_BY_A_PERSON
from agentrunner.execution.quota import seconds_of
from agentrunner.planners.base import MessageType, PlannerUnavailable
from agentrunner.planners.faults import reason_of, words_of_failure
from agentrunner.planners.panel import Candidate, RoleCandidates
from agentrunner.state.worker_runs import Wait
from agentrunner.text.times import stamp

ADDRESS = "runner.meta.base_url"
OPENAI = "openai-chat"
"""The kind of planner whose model a variable can name."""


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
        self.told: Callable[[Wait], None] | None = None
        """Called as a wait begins, to show it."""

    async def wait(
        self, failure: PlannerUnavailable, asked_for: MessageType, before: Sequence[Wait]
    ) -> Wait:
        """Wait after a failure, and return the wait; `before` are those for the same message.

        Raises PlannerRefused for a key or a model that the provider refuses, PlannerAway where all
        waits together would be longer than allowed, and NoPlannerAnswer where no wait helps.
        """
        failed = self._candidate(failure)
        if not ends_by_itself(failed.client, failure):
            raise self._refusal(failure, failed, asked_for)
        now = self._clock.now()
        until, told = asked_again_at(failure, len(before), now)
        wait = Wait(
            until=stamp(until),
            since=stamp(now),
            reason=f"the planner {failed.name} could not answer, {words_of_failure(failure)}",
            role="meta",
            candidate=failed.name,
            told=told,
        )
        waited, limit = sum(map(seconds_of, before)), self._spec.runner.budget.wait_sec
        if waited + seconds_of(wait) > limit:
            known = f"It is known to be back at {wait.until}. " if told else ""
            raise PlannerAway(
                f"{self._sentence(failure, failed, asked_for)} It was waited for {waited:g} s. "
                f"{known}runner.budget.wait_sec allows {limit:g} s in all. The plan is as it was.",
                remedy=self._fix(reason_of(failure), failed),
            )
        self._record(wait)
        if self.told is not None:
            self.told(wait)
        await sleep_until(until, self._clock)
        return wait

    def _candidate(self, failure: PlannerUnavailable) -> Candidate:
        candidates = self._candidates.candidates
        return next((one for one in candidates if one.name == failure.candidate), candidates[-1])

    def _sentence(
        self, failure: PlannerUnavailable, failed: Candidate, asked_for: MessageType
    ) -> str:
        who = failed.client.describe()
        fault = words_of_failure(failure)
        return f"The planner ({who}) was asked for {ASKED_FOR[asked_for]}, and {fault}."

    def _refusal(
        self, failure: PlannerUnavailable, failed: Candidate, asked_for: MessageType
    ) -> AgentRunnerError:
        by_person = failure.kind in FIXED_BY_A_PERSON
        sentence = self._sentence(failure, failed, asked_for)
        return (PlannerRefused if by_person else NoPlannerAnswer)(
            f"{sentence} The plan is as it was.",
            remedy=self._fix(reason_of(failure), failed),
            details=() if by_person else (("the planner", failure.message),),
        )

    def _fix(self, reason: str, failed: Candidate) -> str:
        """Return what a person may do, in a sentence."""
        kind = failed.name.partition(":")[0]
        key = str(getattr(failed.client, "key_name", ""))
        if reason == "auth":
            return f"set {key} to a key that is good" if key else "log in again, or give it a key"
        if reason in ("quota", "rate_limit"):
            return "raise the quota or wait, then say it again"
        model = self._setting("runner.meta.model")
        if reason == "model":
            variable = model_variable(self._environ) if kind == OPENAI else ""
            also = f", or {variable}" if variable and variable not in model else ""
            address = setting_with_origin(ADDRESS, self._spec, self._environ)
            where = f"; its address is {address}" if address != ADDRESS else ""
            return f"name one that the provider has: --planner-model NAME ({model}{also}){where}"
        if reason in ("context", "filter", "cut"):
            return f"another model may do better: --planner-model NAME ({model})"
        has_address = bool(planner_kind(kind).url_variable)
        if has_address and reason in ("network", "server", "overload"):
            return f"see whether its server is up ({self._setting(ADDRESS)})"
        return "agentrunner doctor --planner"

    def _setting(self, name: str) -> str:
        return setting_with_origin(name, self._spec, self._environ)
