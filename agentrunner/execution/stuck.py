"""Runs that go in circles: repeated orders and failures, counted over worker runs. Pure.

Two counts over worker runs in a row: the same prompt that changed nothing; and exactly the same
tests and checks red, or none red and nothing changed, whatever the prompts. When either reaches
`runner.stuck_after`, the planner gets a remark. If it orders the same once more, or another worker
run again leaves all as it was, the run goes to a person. It may still do everything else, so that
the evidence can complete the run.
"""

from __future__ import annotations

import hashlib

from agentrunner.execution.deps import Update
from agentrunner.execution.questions import remark
from agentrunner.state.run_state import Evidence, TaskContext, TestOutcome, Verdict
from agentrunner.state.summary import NOTICED
from agentrunner.state.worker_runs import Stuck, WorkerRun
from agentrunner.text.lazy_regex import lazy_regex

UNCHANGED = "unchanged"
"""In place of a digest of what is red: nothing is, and the worker has changed nothing."""
_NAMES = 5
"""How many red tests and checks a remark names."""
_VOLATILE = [
    (lazy_regex(pattern), word)
    for pattern, word in (
        (r"\b\d+(?:\.\d+)?\s?(?:ms|µs|us|ns|s|sec|seconds?|m|min)\b", "<duration>"),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?Z?)?", "<time>"),
        (r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?", "<time>"),
        (r"\b0x[0-9a-fA-F]+", "<address>"),
        (r"(?:/var)?/tmp/[^\s\"':,]*", "<tmp>"),
        (r"(?<=:)\d+\b|(?<=line )\d+", "<line>"),
    )
]
"""What differs in the output of one and the same failure, and its replacement."""


def after_worker(state: TaskContext, stuck_after: int) -> Update:
    """Return the counts with the latest worker run added once, and a remark if it led nowhere."""
    recent = state.get("recent", [])
    before = state.get("stuck") or Stuck()
    if not recent or recent[-1].worker_run_id == before.run:
        return {}
    run = recent[-1]
    now = _counted(before, run, failing(state.get("evidence")))
    words = [_did_nothing(run)] if run.outcome == "no_op" else []
    if stuck_after and max(now.prompts, now.evidences) >= stuck_after:
        now = now.model_copy(update={"told": True})
        words += _repeated(now, state, stuck_after)
    update: Update = {"stuck": now}
    if words:
        update["remarks"] = remark(state, NOTICED + " ".join(words))
    return update


def ordered(state: TaskContext, prompt: str) -> Stuck:
    """Return the counts when a worker is ordered; `prompt` is the digest of its prompt."""
    before = state.get("stuck") or Stuck()
    if prompt == before.prompt:
        return before
    return before.model_copy(update={"prompt": prompt, "prompts": 0})


def leads_nowhere(state: TaskContext, prompt: str, stuck_after: int) -> bool:
    """Whether this prompt would only repeat what failed, although the planner was warned."""
    stuck = state.get("stuck")
    if not stuck_after or stuck is None or not stuck.told:
        return False
    same_prompt = prompt == stuck.prompt and stuck.prompts >= stuck_after
    return same_prompt or stuck.evidences > stuck_after


def forgotten(state: TaskContext) -> Stuck | None:
    """Return the counts reset: a person wrote a message, or started another attempt."""
    stuck = state.get("stuck")
    return Stuck(run=stuck.run) if stuck else None


def stuck_end(state: TaskContext, at_limit: Verdict) -> Verdict:
    """Return the verdict that leaves the run to a person, with what `at_limit` says is missing."""
    stuck = state.get("stuck") or Stuck()
    if stuck.prompts >= stuck.evidences:
        text = f"The same worker prompt changed nothing {stuck.prompts} times, and came again."
    elif stuck.evidence == UNCHANGED:
        text = f"{stuck.evidences} worker runs in a row changed nothing."
    else:
        text = f"{stuck.evidences} worker runs in a row left exactly the same failing."
    return at_limit.model_copy(update={"state": "NEEDS_REVIEW", "reason": "stuck", "text": text})


def failing(evidence: Evidence | None) -> str:
    """Return a digest of what is red and how, whatever the tree; "" where nothing is."""
    if evidence is None or not evidence.red:
        return ""
    parts = [_red_test(evidence.test)] if evidence.test and not evidence.test.green else []
    parts += [
        f"{check.criterion_id} {check.exit_code} {_steady(check.detail)}"
        for check in evidence.checks
        if check.outcome == "failed"
    ]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def _red_test(test: TestOutcome) -> str:
    counts = f"{test.exit_code} {test.passed} {test.failed} {test.skipped}"
    return "\0".join([counts, test.finding, *sorted(test.failing), _steady(test.tail)])


def _steady(text: str) -> str:
    for pattern, word in _VOLATILE:
        text = pattern.sub(word, text)
    return text


def _counted(before: Stuck, run: WorkerRun, red: str) -> Stuck:
    nothing = run.changed_files == 0 and run.tree_before == run.tree_after
    stands = red or (UNCHANGED if nothing else "")
    same = bool(stands) and stands == before.evidence
    return Stuck(
        prompt=before.prompt,
        prompts=before.prompts + 1 if nothing and before.prompt else 0,
        evidence=stands,
        evidences=before.evidences + 1 if same else int(bool(stands)),
        run=run.worker_run_id,
    )


def _did_nothing(run: WorkerRun) -> str:
    who = run.member or run.worker
    return f"the latest worker run, of {who}, did nothing: no file changed, no command run."


def _repeated(stuck: Stuck, state: TaskContext, stuck_after: int) -> list[str]:
    words = []
    if stuck.prompts >= stuck_after:
        words.append(
            f"the same worker prompt was given {stuck.prompts} times in a row and changed nothing."
        )
    if stuck.evidences >= stuck_after and stuck.evidence == UNCHANGED:
        if not words:
            words.append(f"{stuck.evidences} worker runs in a row changed nothing.")
    elif stuck.evidences >= stuck_after:
        words.append(
            f"after each of the last {stuck.evidences} worker runs exactly the same was failing: "
            f"{_red_names(state.get('evidence'))}."
        )
    last = stuck.evidences > stuck_after
    return [*words, _NO_MORE if last else _CHANGE]


_CHANGE = (
    "Change the approach: another cause, a smaller step, another worker, or a question to a "
    "person. If it comes to the same once more, no further worker is started and the run ends "
    "for a person to look at."
)
_NO_MORE = (
    "No further worker will be started: ask a person, or, where the evidence allows it, for "
    "completion. Ordering a worker ends the run."
)


def _red_names(evidence: Evidence | None) -> str:
    if evidence is None:
        return "nothing"
    test = evidence.test
    names = []
    if test is not None and not test.green:
        names = list(test.failing) or [f"`{test.command}`, exit code {test.exit_code}"]
    names += [check.criterion_id for check in evidence.checks if check.outcome == "failed"]
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more
