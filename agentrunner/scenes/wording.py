"""Format an answer to a scene in one line, for people. Pure."""

from __future__ import annotations

from agentrunner.plans.proposal import Proposal
from agentrunner.scenes.rules import Given

SHOWN = 300
"""Most characters of an answer that are kept."""


def in_a_line(given: Given) -> str:
    """Return the answer in one line, cut if it is long."""
    text = " ".join(_in_words(given).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _in_words(given: Given) -> str:
    if given.action is not None:
        chosen = given.action
        prompt = chosen.worker_call.prompt if chosen.worker_call else chosen.question
        return f"{chosen.decision.action}: {prompt or chosen.decision.reason}"
    if given.assessment is not None:
        judged = given.assessment
        passed, failed = ", ".join(judged.passed) or "none", ", ".join(judged.failed) or "none"
        return f"passed: {passed}; failed: {failed}; {judged.summary}"
    if given.proposal is not None:
        return _plan_in_words(given.proposal)
    return "; ".join(f"{one.id} {one.description}" for one in given.criteria)


def _plan_in_words(proposal: Proposal) -> str:
    plan = proposal.after
    titles = "; ".join(f"{name} {plan.design_of(name).title}" for name in plan.task_order())
    asked = f"; asks: {' / '.join(proposal.questions)}" if proposal.questions else ""
    return f"{titles or 'no task'}{asked}"
