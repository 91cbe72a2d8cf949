"""Merges several judgements of one tree into one: the more negative one wins."""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.state.run_state import Assessment

MOST_RISKS = 20


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
