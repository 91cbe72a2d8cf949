"""Decisions that a planner is asked about once before they hold, and what code does in its place.

Small models ask a person what the PRD says, and order again, or ask a person, after evidence has
met each criterion. None of this grants anything: a request for completion is verified and judged
whoever makes it.
"""

from __future__ import annotations

from collections.abc import Callable

from agentrunner.errors.replies import ReplyQuestioned
from agentrunner.execution.deps import Deps
from agentrunner.protocol import NextAction
from agentrunner.state.decisions import shown
from agentrunner.state.run_state import TaskContext

_MET = (
    "all that is executed passes, some of it failed before, and each critical criterion is passed:"
    " ask for completion (mark_complete), or, where words of the PRD are not met yet, order a"
    " worker for just these (run_worker)"
)
_UNSAID = (
    "a person is asked only what neither the PRD nor the repository says: where they say it, order"
    " a worker with that (run_worker); where they do not, or contradict each other, ask"
)
_RED = (
    "a test or check is red, and completion is refused while it is: order a worker for what is red"
    " (run_worker); ask for completion only where it is red by chance"
)
_WHY = (
    "The last worker run changed nothing, nothing is red, and each critical criterion has passed:"
    " asked for by code, in place of another worker run. The planner's reason for that was: {}"
)
_FOUND_NOTHING = ("completed", "no_op")
"""Ends of a worker that looked and had nothing to change; one that failed may not have looked."""


def asked_back(state: TaskContext, deps: Deps) -> Callable[[NextAction], None]:
    """Return a check of a decision that refuses, once, a question to a person, work where all is
    met, and a request for completion where something is red.

    A planner that keeps to it has its way; a program means what it says. An order that code takes
    the place of is not refused, nor anything where another order would end the run.
    """
    was_asked = deps.panel.role_candidates("meta").by_code or _order_would_end_it(state)
    met = not was_asked and _all_met(state, deps)
    evidence = state.get("evidence")
    red = evidence is not None and evidence.red

    def check(chosen: NextAction) -> None:
        nonlocal was_asked
        action = chosen.decision.action
        doubt = {"ask_human": _MET if met else _UNSAID}.get(action, "")
        if action == "run_worker" and met and not _is_idle(state, chosen):
            doubt = _MET
        elif action == "mark_complete" and red:
            doubt = _RED
        if was_asked or not doubt:
            return
        was_asked = True
        words = f" ({chosen.question or chosen.decision.reason})" if action == "ask_human" else ""
        raise ReplyQuestioned("decision.action", f"you wanted {action}{words}, but {doubt}")

    return check


def reason_to_ask(state: TaskContext, deps: Deps, chosen: NextAction) -> str:
    """Return why code asks for completion in place of this order of a worker; "" where it does not.

    That is where all is met and the latest worker has found nothing to change.
    """
    is_idle = _is_idle(state, chosen) and _all_met(state, deps)
    return _WHY.format(chosen.decision.reason) if is_idle else ""


def _order_would_end_it(state: TaskContext) -> bool:
    """Whether a worker order would end the run: the planner was told so, or no loop is left."""
    stuck, counters = state.get("stuck"), state["counters"]
    return (stuck is not None and stuck.told) or counters.loops >= state["run"].max_loops


def _is_idle(state: TaskContext, chosen: NextAction) -> bool:
    """Whether it orders a worker right after one that changed nothing."""
    ran = state.get("recent", [])[-1:]
    idle = any(
        one.outcome in _FOUND_NOTHING
        and not one.changed_files
        and one.tree_before == one.tree_after
        for one in ran
    )
    return idle and chosen.decision.action == "run_worker"


def _all_met(state: TaskContext, deps: Deps) -> bool:
    """Whether all that is executed says that the task is done, and nothing speaks against it.

    Not where people said more than the criteria do, where completion was refused for this tree, or
    where a program answers.
    """
    evidence, critical = state.get("evidence"), [c for c in state["criteria"] if c.critical]
    return (
        evidence is not None
        and bool(evidence.proof)
        and not (evidence.red or evidence.stale or evidence.findings)
        and bool(critical)
        and all(c.status == "passed" and c.evidence in ("tested", "checked") for c in critical)
        and state.get("refused_tree") != evidence.tree
        and not shown(state.get("people"), steering=True)
        and not deps.panel.role_candidates("meta").by_code
    )
