"""RUNNING | VALIDATING | FIXING: ask the planner what to do next, within the limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from langgraph.types import Command

from agentrunner.errors.replies import ReplyMissing
from agentrunner.execution.asked_back import asked_back, reason_to_ask
from agentrunner.execution.asking import ask
from agentrunner.execution.check_faults import (
    changed_checks,
    refuse_foreign_checks,
    tried_by_people,
)
from agentrunner.execution.criteria import edited_criteria
from agentrunner.execution.decisions import messages
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.planner_checks import without
from agentrunner.execution.questions import answered, question, remark
from agentrunner.execution.quota import cooling_until, free_workers
from agentrunner.execution.stuck import forgotten, leads_nowhere, ordered, stuck_end
from agentrunner.prompts import choose, own_part, worker_prompt
from agentrunner.protocol import Decision, Message, NextAction, WorkerCall
from agentrunner.state.decisions import shown
from agentrunner.state.lifecycle import LOOPS, TaskState
from agentrunner.state.people import PersonOrder
from agentrunner.state.round_reports import ORDER_CHARS
from agentrunner.state.rounds import rounds_so_far
from agentrunner.state.run_state import Baseline, Counters, Criterion, TaskContext, Verdict, updated
from agentrunner.state.summary import FROM_PERSON
from agentrunner.state.worker_runs import WorkerOrder
from agentrunner.verification.criterion_status import settle
from agentrunner.verification.verdict import end_at_limit, judge
from agentrunner.workers.member import Member
from agentrunner.workers.policy import check_call, is_kind_for_name, model_of, settings_of

BY_PERSON = "A person ordered it in the planner's place."
PEOPLE_CHARS = 8000
"""Characters of people's texts that a worker's prompt carries in full."""


async def decide(state: TaskContext, deps: Deps) -> Command[str]:
    """Get one decision: run a worker, ask for completion, ask a person, or give up."""
    replied = messages(state, deps)
    asked = updated(state, replied)
    replied |= _replied(asked)
    if _edited(asked):
        replied["baseline"] = _record_edited_plan(state, deps, replied["criteria"])
    if "remarks" in replied:
        replied["stuck"] = forgotten(state)
    tried, faulty = await tried_by_people(updated(state, replied), deps, "decide")
    replied |= tried
    if faulty is not None:
        return Command(update={**replied, "question": faulty}, goto="planner")
    state = updated(state, replied)
    if (order := state.get("person_order")) is not None:
        chosen, counters = await asyncio.to_thread(_by_person, order, deps), state["counters"]
        replied["person_order"] = None
    else:
        message, counters = await ask(
            state, deps, "next_action", state["counters"], check=allowed(state, deps)
        )
        assert isinstance(message.payload, NextAction)
        chosen = message.payload
        replied |= await changed_checks(state, deps, chosen, counters)
        state = updated(state, replied)
        if why := reason_to_ask(state, deps, chosen):
            chosen = NextAction(decision=Decision(action="mark_complete", reason=why))
    counters = counters.model_copy(update={"decisions": counters.decisions + 1})
    action, reason = chosen.decision.action, chosen.decision.reason
    deps.emit("decision", action=action, reason=reason)
    update: Update = {**replied, "counters": counters}
    match action:
        case "run_worker":
            command = _run_worker(state, deps, chosen, counters, update)
        case "mark_complete":
            command = _ask_for_completion(reason, update)
        case "ask_human":
            command = _ask_human(state, chosen, counters, update)
        case "abort":
            verdict = Verdict(
                state="FAILED", reason="aborted", text=f"The planner gave up: {reason}"
            )
            command = Command(update={**update, "verdict": verdict}, goto="note")
    _record(state, deps, chosen, command)
    return command


def _edited(state: TaskContext) -> bool:
    """Whether a person answered the plan with an edited one."""
    answer = answered(state, "plan")
    return answer is not None and bool(answer.edit)


def _by_person(order: PersonOrder, deps: Deps) -> NextAction:
    """Return what a person ordered in the planner's place, as a decision like any other. Blocks."""
    decision = Decision(action=order.action, reason=BY_PERSON)
    if order.prompt is None:
        return NextAction(decision=decision)
    prompt = deps.folder.read(order.prompt).decode("utf-8", "replace")
    call = WorkerCall(worker_type=deps.members[0].name, mode="exec", prompt=prompt)
    return NextAction(decision=decision, worker_call=call)


def _replied(state: TaskContext) -> Update:
    """Return the update that a person's answer makes, for the next decision to read."""
    if answered(state, "ask_human"):
        message = FROM_PERSON + "the answer to your question; it stands under `people`."
        return {"answer": None, "remarks": remark(state, message)}
    if answered(state, "worker"):
        message = FROM_PERSON + "no to that worker run; it stands under `people`."
        return {"answer": None, "order": None, "remarks": remark(state, message)}
    if answer := answered(state, "plan"):
        run = state["run"].model_copy(update={"plan_open": False})
        update: Update = {"answer": None, "run": run}
        if answer.edit:
            update["criteria"] = edited_criteria(answer.edit)
        elif answer.decision == "approve":  # a person approved the mapping to tests
            update["criteria"] = [
                criterion.model_copy(update={"tests_origin": "human"})
                if criterion.tests
                else criterion
                for criterion in state["criteria"]
            ]
        if state["state"] == TaskState.PLANNING:
            update["state"] = TaskState.RUNNING
        return update
    return {}


def _record_edited_plan(
    state: TaskContext, deps: Deps, criteria: list[Criterion]
) -> Baseline | None:
    """Record a plan that a person edited; return the baseline without outcomes of its checks."""
    deps.emit("plan", acceptance_criteria=criteria)
    deps.record(state, "plan", "plan", {"criteria": [c.model_dump(mode="json") for c in criteria]})
    baseline = state.get("baseline")
    return (
        without(baseline, {criterion.id for criterion in criteria})
        if baseline is not None
        else None
    )


def allowed(state: TaskContext, deps: Deps) -> Callable[[Message], None]:
    """Return a check that refuses what the task does not allow; the planner is asked again."""
    back = asked_back(state, deps)

    def check(message: Message) -> None:
        chosen = message.payload
        assert isinstance(chosen, NextAction)
        if chosen.worker_call is not None:
            check_call(chosen.worker_call, deps.members)
        if (
            chosen.decision.action == "ask_human"
            and not (chosen.question or chosen.decision.reason).strip()
        ):
            raise ReplyMissing("question", "ask_human needs a question")
        refuse_foreign_checks(chosen, state["criteria"])
        back(chosen)

    return check


def _run_worker(
    state: TaskContext, deps: Deps, chosen: NextAction, counters: Counters, update: Update
) -> Command[str]:
    """Save the worker run in the state, so that the next node starts it and never this one."""
    target = _state_for_worker(state)
    if (state["state"], target) in LOOPS:
        if counters.loops >= state["run"].max_loops:
            return Command(update={**update, "verdict": at_limit(state, deps)}, goto="note")
        counters = counters.model_copy(update={"loops": counters.loops + 1})
    order = _order(state, deps, chosen, counters)
    if leads_nowhere(state, order.prompt.sha256, deps.spec.runner.stuck_after):
        verdict = stuck_end(state, at_limit(state, deps))
        return Command(update={**update, "verdict": verdict}, goto="note")
    update |= {
        "counters": counters,
        "order": order,
        "stuck": ordered(state, order.prompt.sha256),
        "state": target,
        "wants_completion": False,
        "remarks": [],
        "refused_tree": "",
    }
    if deps.spec.runner.approve.worker == "always":
        asked = updated(state, {"state": target})
        update["question"] = question(
            "worker",
            f"Start the worker {order.worker}? Why: {order.reason}",
            {"order": order.model_dump(mode="json")},
            asked,
        )
        return Command(update=update, goto="approve")
    return Command(update=update, goto="run_worker")


def _state_for_worker(state: TaskContext) -> TaskState:
    """Return FIXING if evidence is red or the last worker did not end `completed`, else RUNNING."""
    if state["state"] != TaskState.VALIDATING:
        return state["state"]
    evidence, recent = state.get("evidence"), state.get("recent", [])
    broken = bool(recent) and recent[-1].outcome != "completed"
    return TaskState.FIXING if broken or (evidence and evidence.red) else TaskState.RUNNING


def _order(state: TaskContext, deps: Deps, chosen: NextAction, counters: Counters) -> WorkerOrder:
    call = chosen.worker_call
    assert call is not None
    patterns, unknown = choose(deps.patterns, chosen.used_patterns)
    if unknown:
        deps.warn(state, "unknown-pattern", f"No such pattern: {', '.join(unknown)}")
    run_id = f"{state['run'].attempt}-{counters.decisions:03d}"
    member = check_call(call, deps.members)
    if is_kind_for_name(call, member):
        remark = f"worker_call.worker_type: {call.worker_type!r} is taken as {member.name!r}"
        deps.warn(state, "reply-taken", remark)
    if (other := _in_place_of(member, state, deps)) is not None:
        deps.warn(state, "fail-over", f"{member.name} cannot work. {other.name} takes over.")
        member = other
        # What a planner may set differs between workers, so another candidate gets none of it.
        call = call.model_copy(update={"model": None, "flags": [], "env": {}, "tool_specific": {}})
    model = model_of(call, member)
    if call.model and not model:
        remark = f"worker_call.model: {member.name} is given no model; {call.model!r} is left out"
        deps.warn(state, "reply-taken", remark)
    people = shown(state.get("people"), steering=True, most=PEOPLE_CHARS)
    text = worker_prompt(call.prompt, state["criteria"], patterns, deps.spec.language, people)
    begins, ends = own_part(text, patterns, deps.spec.language)
    return WorkerOrder(
        worker_run_id=run_id,
        worker=member.worker.kind,
        member=member.name,
        mode="resume" if call.mode == "resume" else "exec",
        prompt=deps.keep(f"prompts/{run_id}.md", text),
        own_begins=begins,
        own_ends=ends,
        model=model or member.spec.runner.worker.model,
        flags=list(call.flags),
        env=dict(call.env),
        tool_specific=settings_of(call),
        reason=chosen.decision.reason[:600],
        loop=counters.loops,
        round=rounds_so_far(state) + 1,
    )


def _in_place_of(member: Member, state: TaskContext, deps: Deps) -> Member | None:
    """Return the candidate to order where this one cannot work; None where it can, or none is free.

    It is found out once: a planner that goes on naming it would have it started in every round.
    """
    cooling, now = state.get("cooling", {}), deps.clock.now()
    if cooling_until(cooling, "unable", member.name, now) is None:
        return None
    free = free_workers(cooling, [one.name for one in deps.members], now)
    return deps.member(free[0]) if free else None


def _ask_for_completion(reason: str, update: Update) -> Command[str]:
    """Return the command that requests completion; `validate` grants or refuses it."""
    update |= {
        "state": TaskState.VALIDATING,
        "wants_completion": True,
        "completion_reason": reason[:2000],
        "assessment": None,  # every request is assessed anew, also for the same tree
    }
    return Command(update=update, goto="validate")


def _ask_human(
    state: TaskContext, chosen: NextAction, counters: Counters, update: Update
) -> Command[str]:
    counters = counters.model_copy(update={"questions": counters.questions + 1})
    text = chosen.question or chosen.decision.reason
    subject = {"number": counters.questions, "question": text, "options": chosen.options}
    asked = question("ask_human", text, subject, state, options=list(chosen.options))
    return Command(update={**update, "counters": counters, "question": asked}, goto="ask_human")


def at_limit(state: TaskContext, deps: Deps) -> Verdict:
    """Return how the run ends when it would need another loop and none is left."""
    spec, evidence = deps.spec, state.get("evidence")
    acceptances = state.get("acceptances", [])
    criteria = settle(
        state["criteria"], evidence, state.get("assessment"), spec.task.test, acceptances
    )
    if evidence is None:
        return Verdict(state="FAILED", reason="loop_limit", text="No worker run ended in time.")
    judgement = judge(
        criteria,
        evidence,
        spec.completion,
        approved=state.get("approved", []),
        acceptances=acceptances,
        trial=spec.is_trial,
    )
    return end_at_limit(criteria, evidence, judgement, "loop_limit")


def _record(state: TaskContext, deps: Deps, chosen: NextAction, command: Command[str]) -> None:
    update = command.update if isinstance(command.update, dict) else {}
    counters: Counters = update.get("counters", state["counters"])
    order: WorkerOrder | None = update.get("order")
    deps.record(
        {**state, "counters": counters},
        "decision",
        str(counters.decisions),
        {
            "number": counters.decisions,
            "action": chosen.decision.action,
            "reason": chosen.decision.reason,
            "loop": counters.loops,
            "worker_run_id": order.worker_run_id if order else None,
            "used_patterns": list(chosen.used_patterns),
            "prompt": chosen.worker_call.prompt[:ORDER_CHARS] if chosen.worker_call else "",
        },
    )
