"""After a worker run that could not work: the next try, a wait, or a question to a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from langgraph.types import Command

from agentrunner.environment import home_of
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.failure_policy import (
    TROUBLES,
    AskPerson,
    Continue,
    FailureFacts,
    StartAfresh,
    UseAnother,
    WaitUntil,
    cool_until,
    next_step,
    trouble_of,
    waited_so_far,
    waits_in_a_row,
)
from agentrunner.execution.questions import answered, question, subject_of
from agentrunner.execution.quota import Cause, cooled, seconds_of
from agentrunner.execution.tries import begun_again, ordered_as
from agentrunner.launching.access import worker_key
from agentrunner.state.people import Question
from agentrunner.state.run_state import TaskContext, Verdict, updated
from agentrunner.state.worker_runs import WorkerOrder, WorkerRun
from agentrunner.text.times import stamp
from agentrunner.workers.login import login_for
from agentrunner.workers.member import Member


def recovered(
    state: TaskContext, deps: Deps, order: WorkerOrder, run: WorkerRun, update: Update
) -> Command[str] | None:
    """Return the step that replaces `validate` after a failed worker run; None where there is none.

    `update` is what the run has changed in the state. The order that the command puts into the
    state is the one that is started next, under a new id.
    """
    facts = _facts(state, deps, order, run)
    step = next_step(facts)
    if isinstance(step, Continue):
        return None
    working: Update = {**update, "state": state["state"]}
    now, cooling = facts.now, state.get("cooling", {})
    again = _next_try(order)
    match step:
        case StartAfresh():
            deps.warn(state, "session-lost", "The worker's session is gone; it starts afresh.")
            working["order"] = again.model_copy(update={"mode": "exec"})
            return Command(update=working, goto="run_worker")
        case UseAnother():
            message = f"{run.member}: {trouble_of(run)}. {step.member} takes over."
            deps.warn(state, "fail-over", message)
            again = _for_member(again, deps.member(step.member), update)
            working["order"] = again.model_copy(update={"mode": "exec"})
            cause: Cause = "worker" if run.outcome == "rate_limit" else "unable"
            working["cooling"] = cooled(cooling, cause, run.member, step.until, now)
            return _approved(state, deps, order, working)
        case WaitUntil():
            if run.outcome == "rate_limit":
                own = step.wait.until if step.member == run.member else stamp(cool_until(facts))
                working["cooling"] = cooled(cooling, "worker", run.member, own, now)
            again = _for_member(again, deps.member(step.member), update)
            working["order"] = again.model_copy(
                update={
                    "waits": waits_in_a_row(facts) + 1,
                    "waited_sec": waited_so_far(facts) + seconds_of(step.wait),
                }
            )
            after = _approved(state, deps, order, working)
            wait = step.wait.model_copy(update={"back_to": after.goto})
            return Command(update={**cast("Update", after.update), "wait": wait}, goto="wait")
        case AskPerson():
            again = _for_member(again, deps.member(order.member), update)
            again = again.model_copy(update={"waits": 0, "waited_sec": 0})
            working |= {"order": again, "cooling": _looked_at(cooling, order.member)}
            working["question"] = _question(updated(state, working), deps, again, run, step.why)
            return Command(update=working, goto="approve")


def _approved(state: TaskContext, deps: Deps, order: WorkerOrder, working: Update) -> Command[str]:
    """Start the next try. Where worker runs need approval, another candidate's needs its own."""
    again = working["order"]
    assert again is not None
    if deps.spec.runner.approve.worker != "always" or again.member == order.member:
        return Command(update=working, goto="run_worker")
    text = f"Start the worker {again.member} in place of {order.member}? Why: {order.reason}"
    subject = {"order": again.model_dump(mode="json")}
    asked = question("worker", text, subject, updated(state, working))
    return Command(update={**working, "question": asked}, goto="approve")


def given_up(state: TaskContext) -> Command[str] | None:
    """Return the end of the run where a person refused another try; else None."""
    answer = answered(state, "worker_failed")
    if answer is None or answer.decision == "approve":
        return None
    subject = subject_of(state)
    message = f" A person gave up: {answer.text}" if answer.text else " A person gave up."
    verdict = Verdict(
        state="FAILED", reason=str(subject["code"]), text=f"{subject['why']}.{message}"
    )
    return Command(update={"answer": None, "order": None, "verdict": verdict}, goto="note")


def as_answered(state: TaskContext, deps: Deps, order: WorkerOrder) -> WorkerOrder:
    """Return the order as a person's answer changes it: its prompt, or a failed one's model."""
    edited = answered(state, "worker")
    if edited is not None and edited.edit:
        # The node may run again: the same text under the same name.
        prompt = deps.folder.write(f"prompts/{order.worker_run_id}-edited.md", edited.edit)
        return order.model_copy(update={"prompt": prompt, "own_begins": 0, "own_ends": 0})
    answer = answered(state, "worker_failed")
    model = deps.member(order.member).spec.runner.worker.model
    if answer is None or model is None or answer.text != tries_model(model):
        return order
    return order.model_copy(update={"model": model})


def tries_model(name: str) -> str:
    """Return the answer to a failed worker that tries its order with another model."""
    return f"model: {name}"


def cure_of(deps: Deps, order: WorkerOrder, run: WorkerRun) -> str:
    """Return what a person may do, in one or two sentences."""
    member = deps.member(order.member)
    if run.outcome == "auth":
        return _cure_of_credential(member, deps)
    if run.outcome == "model":
        named = order.model or member.spec.runner.worker.model
        origin = "" if order.model else member.spec.places.get("runner.worker.model", "")
        which = f"the model {named}" if named else "its model"
        which += f" (runner.worker.model, from {origin})" if origin else ""
        return (
            f"Give its account {which}, then approve. With another model: "
            "`agentrunner resume --model NAME`."
        )
    if run.outcome == "rate_limit":
        return "Raise the quota, or wait; then approve, and it is tried again."
    if run.outcome == "failed":
        place = member.spec.places.get("runner.worker.command", "")
        what = f"what its command starts ({place})" if place else "what it needs in its sandbox"
        return f"Put right {what}, then approve, and it is tried again."
    what = member.worker.provider_url or "its provider"
    return f"See whether {what} is up; then approve, and it is tried again."


def _cure_of_credential(member: Member, deps: Deps) -> str:
    worker, spec = member.worker, member.spec
    if spec.runner.worker.auth == "login":
        home = home_of(deps.environ)
        login = login_for(worker.kind, deps.environ, home)
        cure = login.describe().cure if login else ""
        cure = cure or f"{worker.kind.removesuffix('-cli')} login"
        return f"Log in with its CLI again ({cure}), then approve."
    name = worker_key(spec, worker, deps.environ)[0] or next(iter(worker.key_names), "")
    what = f"Set {name} to a key that is good" if name else "Give it a credential that is good"
    return f"{what}, and approve from a shell that has it."


def _looked_at(cooling: Mapping[str, str], member: str) -> dict[str, str]:
    """Return the channel `cooling` for after a person has looked at this candidate.

    It is tried again, and so is every one that cannot work; the quotas of others are still spent.
    """
    return {
        key: at
        for key, at in cooling.items()
        if key != f"worker:{member}" and not key.startswith("unable:")
    }


def _facts(state: TaskContext, deps: Deps, order: WorkerOrder, run: WorkerRun) -> FailureFacts:
    recent = state.get("recent", [])
    return FailureFacts(
        run=run,
        order=order,
        earlier=earlier_tries(recent, order),
        latest={earlier.member: earlier for earlier in recent},
        candidates=[member.name for member in deps.members],
        cooling=state.get("cooling", {}),
        profile=deps.spec.runner.profiles.worker,
        wait_sec=deps.spec.runner.budget.wait_sec,
        now=deps.clock.now(),
    )


def earlier_tries(runs: list[WorkerRun], order: WorkerOrder) -> list[WorkerRun]:
    """Return those of the runs that were tries of this very order."""
    wanted = ordered_as(order.worker_run_id)
    return [run for run in runs if ordered_as(run.worker_run_id) == wanted]


def _next_try(order: WorkerOrder) -> WorkerOrder:
    """Return the next try of an order, under an id that no earlier try had."""
    tries = order.tries + 1
    name = begun_again(order.worker_run_id, tries)
    return order.model_copy(update={"worker_run_id": name, "tries": tries})


def _for_member(order: WorkerOrder, member: Member, update: Update) -> WorkerOrder:
    """Return the order for this candidate, in the session it has for the order, else a new one.

    What a planner may set differs between workers, so another candidate gets none of it.
    """
    sessions = [run for run in earlier_tries(update["recent"], order) if run.member == member.name]
    begun = any(run.session_id for run in sessions)
    if order.member == member.name:
        return order.model_copy(update={"mode": "resume" if begun else order.mode})
    return order.model_copy(
        update={
            "worker": member.worker.kind,
            "member": member.name,
            "mode": "resume" if begun else "exec",
            "model": member.spec.runner.worker.model,
            "flags": [],
            "env": {},
            "tool_specific": {},
            "waits": 0,
        }
    )


def _question(
    state: TaskContext, deps: Deps, order: WorkerOrder, run: WorkerRun, why: str
) -> Question:
    subject = {
        "why": why,
        "code": TROUBLES[run.outcome].code,
        "order": order.model_dump(mode="json"),
    }
    return question("worker_failed", f"{why}. {cure_of(deps, order, run)}", subject, state)
