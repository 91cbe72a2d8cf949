"""Roads to a plan that says COMPLETE where it is not, and how they end: see `test_honesty`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentrunner.planning.plan import PlanTaskStatus
from tests.kit.bwrap import require_bwrap
from tests.kit.plan_project import PlanProject, Work

COMPLETE = PlanTaskStatus.COMPLETE
SUITE = {
    "check.sh": "for t in tests/*.sh; do sh $t || exit 1; done\n",
    "tests/t0.sh": "grep -q one a.txt\n",
    "a.txt": "one\n",
}
AS = "git -c user.name=w -c user.email=w@example.invalid"


@dataclass(frozen=True)
class Lie:
    """What the tasks do, and how many of them may be COMPLETE at the end."""

    works: Sequence[Work]
    complete: int
    sandbox: str = "none"


LIES = {
    "two that are green alone have tests which the other breaks": Lie(
        [
            Work("touch {}.done; echo '[ ! -e 2.done ]' > tests/t1.sh"),
            Work("touch {}.done; echo '[ ! -e 1.done ]' > tests/t2.sh"),
        ],
        1,
    ),
    "two that are green alone have checks which the other breaks": Lie(
        [
            Work(check="[ -e 1.done ] && [ ! -e 2.done ]"),
            Work(check="[ -e 2.done ] && [ ! -e 1.done ]"),
        ],
        1,
    ),
    "what runs the tests is made to say yes, and what they proved is taken away": Lie(
        [
            Work("touch {}.done; echo '[ -e 1.done ]' > tests/t1.sh"),
            Work("touch {}.done; rm 1.done; echo true > check.sh", needs=[1]),
        ],
        1,
    ),
    "a task says in the folder of notes that it is COMPLETE": Lie(
        [Work("mkdir -p .agent-runner; echo COMPLETE > .agent-runner/plan-make-it.md")], 0
    ),
    "what was true before the work": Lie([Work("touch {}.txt", "[ -e a.txt ]")], 0),
    "a boxed task writes to the plan's clone and records, and to the next one's work tree": Lie(
        [
            Work(
                f"touch {{}}.done; {AS} commit -q --allow-empty -m mine || true;"
                " git update-ref refs/heads/plan HEAD || true; git branch more || true;"
                " mkdir -p ../../TASK-0002/1 && touch ../../TASK-0002/1/2.done || true;"
                ' echo \'{"name": "x", "commit": "x"}\' > ../../../branch.json || true'
            ),
            Work("true", needs=[1]),
        ],
        1,
        "bwrap",
    ),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_only_what_is_true_of_the_branch_is_complete(tmp_path: Path, lie: Lie) -> None:
    if lie.sandbox == "bwrap":
        require_bwrap()
    plan = PlanProject.make(tmp_path, lie.works, SUITE)
    result = plan.carry(settings=plan.settings(lie.sandbox, test="sh check.sh"))
    assert plan.statuses().count(COMPLETE) == lie.complete, plan.events
    assert result["exit_code"] == 0 or lie.complete < len(lie.works)
    branches = [name for name in (result["branch"], "main") if name]
    assert plan.project.git("for-each-ref", "--format=%(refname:short)").split() == branches
    made = plan.project.git("log", "--format=%s", "main..", *branches).splitlines()
    landed = [event["task_id"] for event in plan.told("plan_landed")]
    assert sorted(made) == sorted(f"Task {int(task[5:])}" for task in landed)
    assert plan.project.git("status", "--porcelain").split() == ["??", ".agent-runner/"]


def test_what_a_worker_commits_by_itself_is_one_commit_of_the_plan(tmp_path: Path) -> None:
    commit = f"git switch -qc mine; touch {{}}.done; git add -A; {AS} commit -qm mine; git tag t"
    plan = PlanProject.make(tmp_path, [Work(commit), Work(needs=[1])], SUITE)
    result = plan.carry()
    assert plan.statuses() == [COMPLETE, COMPLETE], plan.events
    told = plan.project.git("log", "--format=%s", f"main..{result['branch']}").splitlines()
    assert told == ["Task 2", "Task 1"]
    names = plan.project.git("for-each-ref", "--format=%(refname:short)").split()
    assert names == [result["branch"], "main"]
