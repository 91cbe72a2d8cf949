"""The planner as judge: its judgement of each criterion, and what of it counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from agentrunner.config.agents import AssessSpec
from agentrunner.discovery.seeing.safe import shown_name
from agentrunner.errors.replies import ReplyInvalid, ReplyQuestioned
from agentrunner.execution.asking import ask
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.seeing import Seeing, seeing
from agentrunner.prompts import Quotes
from agentrunner.protocol import CompletionAssessment, Message
from agentrunner.protocol.looks import AT_ONCE
from agentrunner.protocol.schema import SHORT_CHARS
from agentrunner.state.run_state import Assessment, Counters, Criterion, TaskContext

MOST_RISKS = 20

MOST_UNSEEN = 20
"""How many files are named as not seen; the state has to stay small."""


async def assess(state: TaskContext, deps: Deps) -> Update:
    """Ask the judge, as often as the task wants; of several votes the more negative counts.

    Raises what `ask` raises where no judge answers.
    """
    evidence = state["evidence"]
    assert evidence is not None
    judge, counters = deps.spec.runner.assess or AssessSpec(), state["counters"]
    votes, by_code = [], deps.panel.role_candidates("assess").by_code
    for number in range(judge.votes):
        view = seeing(state, deps)
        message, counters = await ask(
            state, deps, "completion_assessment", counters, view=view, vote=number,
            check=clear_verdict(state["criteria"], view, by_code),
        )  # fmt: skip
        vote = assessment_of(message, state["criteria"], evidence.tree)
        vote = without_doubt(vote, message, state["criteria"])
        vote = as_seen(vote, state["criteria"], view)
        if judge.quotes:
            vote, counters = await quoted(state, deps, vote, view, counters, number)
        votes.append(vote)
    assessment = merged(votes)
    by_criterion: dict[str, str] = dict.fromkeys(assessment.passed, "passed")
    by_criterion |= dict.fromkeys(assessment.failed, "failed")
    deps.emit(
        "assessment", satisfied=assessment.satisfied, summary=assessment.summary,
        by_criterion=by_criterion,
    )  # fmt: skip
    deps.record(state, "assessment", f"{counters.meta_calls}-{evidence.tree[:12]}", assessment)
    return {"assessment": assessment, "counters": counters}


def assessment_of(message: Message, criteria: list[Criterion], tree: str) -> Assessment:
    """Return the judge's claim as our own model; the more negative statement wins."""
    claim = message.payload
    assert isinstance(claim, CompletionAssessment)
    critical = [criterion.id for criterion in criteria if criterion.critical]
    known = {criterion.id for criterion in criteria}
    failed = set(claim.failed_ids()) & known
    passed = (set(claim.passed_ids()) & known) - failed
    if claim.all_criteria_satisfied and not failed and not passed:
        passed = known
    return Assessment(
        tree=tree,
        satisfied=claim.satisfied(critical),
        summary=claim.summary[:4000],
        failed=sorted(failed),
        passed=sorted(passed),
        comments={
            v.id: v.comment[:SHORT_CHARS] for v in claim.by_criterion if v.comment and v.id in known
        },
        risks=[risk[:SHORT_CHARS] for risk in claim.remaining_risks[:20]],
    )


def clear_verdict(
    criteria: list[Criterion], view: Seeing, by_code: bool
) -> Callable[[Message], None]:
    """Return a check of a judge's messages that refuses what may only be hasty.

    A judge that passes a critical criterion is asked to look at the files that are cut, again as
    long as fewer are left each time. One that fails what tests or checks have shown, and names
    nothing of it, is asked once whether it means that; a program (`by_code`) is not.
    """
    fewest_left = math.inf
    was_asked = by_code

    def check(message: Message) -> None:
        nonlocal fewest_left, was_asked
        claim = message.payload
        assert isinstance(claim, CompletionAssessment)
        critical = [one.id for one in criteria if one.critical and one.status == "unknown"]
        passes = [id_ for id_ in critical if claim.satisfied([id_])]
        left = view.to_look_at
        if passes and 0 < len(left) < fewest_left:
            fewest_left = len(left)
            names = ", ".join(map(shown_name, left[:AT_ONCE]))
            text = f"the change is shown in part; look at what is cut first: {names}"
            raise ReplyInvalid("looks", text)
        shown = {one.id for one in criteria if one.critical and one.status == "passed"}
        unsaid = [one.id for one in claim.unexplained_failures() if one.id in shown]
        if unsaid and not was_asked:
            was_asked = True
            raise ReplyQuestioned(
                "by_criterion",
                f"you failed {', '.join(unsaid)}, which what was run has shown, without a comment:"
                " say in its comment what of it is not met, or pass it",
            )

    return check


async def quoted(
    state: TaskContext, deps: Deps, vote: Assessment, view: Seeing, counters: Counters, number: int
) -> tuple[Assessment, Counters]:
    """Return the judgement without passes for which the judge quotes no line, and the counters.

    It is asked once more, for all criteria that it passed and that nothing else decides: weak
    judges pass what is not there, and seldom find a line that does it. Code looks whether the line
    is there. Raises what `ask` raises.
    """
    open_ = [one for one in state["criteria"] if one.status == "unknown" and one.id in vote.passed]
    if not open_ or not view.quotes or not view.whole_change:
        return vote, counters
    keys = ("id", "description", "detail")
    views = (one.model_dump(include=set(keys)) for one in open_)
    quotes = Quotes(
        criteria=tuple({key: one[key] for key in keys if one[key]} for one in views),
        change=view.whole_change,
        looked="\n\n".join(view.answers),
    )
    message, counters = await ask(
        state, deps, "completion_assessment", counters, view=view, vote=number, quotes=quotes
    )
    claim = message.payload
    assert isinstance(claim, CompletionAssessment)
    found = {one.id for one in claim.quotes if view.shows(one.quote)} - set(claim.failed_ids())
    missing = {one.id for one in open_} - found
    if not missing:
        return vote, counters
    why = "the judge passed it, and found no line that meets it when it was asked for one"
    return _failed(vote, missing, state["criteria"], why), counters


def without_doubt(vote: Assessment, message: Message, criteria: list[Criterion]) -> Assessment:
    """Return the judgement without passes that rest on it alone, where the judge contradicts
    itself: it passes each criterion by name, and says of its own accord that not all are met.

    The more negative statement counts.
    """
    claim = message.payload
    assert isinstance(claim, CompletionAssessment)
    open_ = {one.id for one in criteria if one.status == "unknown"}
    passes_all = {one.id for one in criteria} <= set(claim.passed_ids())
    if not open_ or not passes_all or claim.all_criteria_satisfied is not False:
        return vote
    return _failed(vote, open_, criteria, "the judge passed it and said that not all is met")


def as_seen(vote: Assessment, criteria: list[Criterion], view: Seeing) -> Assessment:
    """Return the judgement with what the judge has not seen.

    A judge who did not look at each file that was cut cannot pass a critical criterion that rests
    on the judgement alone: else a large harmless file would push the bad part of a change out of
    sight.
    """
    missing = view.missing
    vote = vote.model_copy(
        update={"unseen": [shown_name(one) for one in missing[:MOST_UNSEEN]],
                "unseen_count": len(missing), "blind": view.blind}
    )  # fmt: skip
    if not view.to_look_at:
        return vote
    open_ = {one.id for one in criteria if one.critical and one.status == "unknown"}
    unproven = open_ & set(vote.passed)
    if not unproven:
        return vote
    why = "the change was shown in part, and the judge did not look at all that was cut"
    return _failed(vote, unproven, criteria, why)


def _failed(
    vote: Assessment, ids: Collection[str], criteria: list[Criterion], why: str
) -> Assessment:
    """Return the judgement with these criteria as failed."""
    critical = {one.id for one in criteria if one.critical}
    return vote.model_copy(
        update={
            "satisfied": vote.satisfied and critical.isdisjoint(ids),
            "passed": sorted(set(vote.passed).difference(ids)),
            "failed": sorted({*vote.failed, *ids}),
            "comments": {**vote.comments, **dict.fromkeys(ids, why)},
        }
    )


def merged(votes: Sequence[Assessment]) -> Assessment:
    """One judgement made of at least one judge's vote.

    A criterion that any judge calls failed has failed; it has passed where all say so. The result
    is satisfied only if every judge is. The summary is that of the first judge who is not.
    """
    against = [vote for vote in votes if not vote.satisfied]
    first = (against or votes)[0]
    failed = set().union(*(vote.failed for vote in votes))
    passed = set(votes[0].passed).intersection(*(vote.passed for vote in votes)) - failed
    # Of a criterion's comments take one that says what is wrong, else the first.
    comments = {name: text for vote in reversed(votes) for name, text in vote.comments.items()}
    for vote in reversed(votes):
        comments |= {name: text for name, text in vote.comments.items() if name in vote.failed}
    risks = dict.fromkeys(risk for vote in votes for risk in vote.risks)
    most = max(votes, key=lambda vote: vote.unseen_count)
    split = f"{len(votes) - len(against)} of {len(votes)} judges are satisfied. "
    return Assessment(
        tree=first.tree,
        satisfied=not against,
        summary=((split if against and len(votes) > 1 else "") + first.summary)[:4000],
        failed=sorted(failed),
        passed=sorted(passed),
        comments=comments,
        risks=list(risks)[:MOST_RISKS],
        unseen=most.unseen,
        unseen_count=most.unseen_count,
        blind=any(vote.blind for vote in votes),
    )
