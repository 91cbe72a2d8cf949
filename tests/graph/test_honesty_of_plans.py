"""Roads to a plan that says COMPLETE where it is not, and how they end: see `test_honesty`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentrunner.engine.queries import show
from agentrunner.plans.execution.waiting_questions import waiting_questions
from agentrunner.plans.plan import PlanTaskStatus
from tests.kit.bwrap import require_bwrap
from tests.kit.plan_project import AT, PlanProject, Work, answer

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


@pytest.mark.series(3)
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


ONE = "tests/one.sh"
FIRST = Work(
    f"mkdir -p tests; echo 'grep -q one a.txt' > {ONE}; echo one > a.txt",
    f"[ -e {ONE} ] && sh {ONE}",
)


def test_who_rewrites_the_check_of_another_task_and_takes_its_work_away_asks(
    tmp_path: Path,
) -> None:
    hollow = Work(f"touch {{}}.done; echo true > {ONE}; rm a.txt", needs=[1])
    plan = PlanProject.make(tmp_path, [FIRST, hollow], {"b.txt": "x\n"})
    assert plan.carry()["exit_code"] == 3, plan.events
    assert plan.statuses() == [COMPLETE, PlanTaskStatus.NEEDS_REVIEW]
    assert plan.published("a.txt") == "one\n"
    (asked,) = waiting_questions(plan.store)
    assert ONE in asked.text and "TASK-0001 (AC-1)" in asked.text
    # The output and what to mend are for the next round, not for who says whether it is meant.
    assert "```" not in asked.text and "Keep what" not in asked.text
    # It is not asked again while nobody has answered.
    assert plan.carry()["exit_code"] == 3
    assert [question.id for question in waiting_questions(plan.store)] == [asked.id]

    answer(plan.store, str(asked.id), "yes", AT)
    assert plan.carry()["exit_code"] == 0, plan.events
    assert plan.published(ONE) == "true\n"
    assert len(plan.told("run_started")) == 2


def test_a_yes_is_about_the_checks_that_were_shown(tmp_path: Path) -> None:
    hollow = Work(f"touch {{}}.done; echo true > {ONE}; rm a.txt", needs=[1])
    later = Work(check=f"[ -e {{}}.done ] && sh {ONE}", needs=[1])
    plan = PlanProject.make(tmp_path, [FIRST, hollow, later], {"b.txt": "x\n"})
    assert plan.carry(only=("TASK-0002",))["exit_code"] == 3, plan.events
    assert plan.carry(only=("TASK-0003",))["exit_code"] == 0, plan.events
    for asked_about, exit_code in (("TASK-0001", 3), ("TASK-0003", 0)):
        (asked,) = waiting_questions(plan.store)
        assert re.findall(r"^- (\S+)", asked.text, re.MULTILINE) == [asked_about]
        answer(plan.store, str(asked.id), "yes", AT)
        assert plan.carry()["exit_code"] == exit_code, plan.events
    assert plan.statuses() == [COMPLETE] * 3


@pytest.mark.whole
def test_what_a_person_says_against_it_is_what_its_next_round_knows(tmp_path: Path) -> None:
    spoils = f"echo true > {ONE}; rm a.txt; touch ../spoiled"
    hollow = Work(f"[ -e ../spoiled ] || {{ {spoils}; }}; touch {{}}.done", needs=[1])
    plan = PlanProject.make(tmp_path, [FIRST, hollow], {"b.txt": "x\n"})
    assert plan.carry()["exit_code"] == 3, plan.events
    (asked,) = waiting_questions(plan.store)
    answer(plan.store, str(asked.id), "Leave the test as it is.", AT)
    assert plan.carry()["exit_code"] == 0, plan.events
    (fixing,) = plan.told("plan_fixing")
    assert "Leave the test as it is." in fixing["evidence"] and ONE in fixing["evidence"]
    assert plan.published(ONE) == "grep -q one a.txt\n" and plan.published("a.txt") == "one\n"


@pytest.mark.whole
def test_a_test_that_is_changed_and_still_holds_as_it_was_is_nobody_s_question(
    tmp_path: Path,
) -> None:
    more = Work(f"touch {{}}.done; echo 'test -e 2.done' >> {ONE}", needs=[1])
    plan = PlanProject.make(tmp_path, [FIRST, more], {"b.txt": "x\n"})
    assert plan.carry()["exit_code"] == 0, plan.events
    assert plan.told("plan_question") == []


CALC = "import unittest\n\nimport calc\n\n\nclass CalcTest(unittest.TestCase):\n"
OWN = "    def test_{0}(self):\n        self.assertEqual(calc.{0}(2), {1})\n"
ADD = "printf '\\n\\ndef {0}(n):\\n    return {1} * n\\n' >> calc.py"
UNITTEST = "python3 -m unittest"


def test_what_the_worker_of_an_earlier_task_wrote_shows_and_does_not_prove(tmp_path: Path) -> None:
    """A script, a new file and a test in a person's file; and tests of that person beside it."""
    script = "printf '#!/bin/sh\\ngrep -q thrice calc.py\\n' > thrice.sh"
    more = OWN.format("four", 8).replace("\n", "\\n")
    late = f"printf '{CALC}{OWN.format('five', 10)}' > later/five.py".replace("\n", "\\n")
    theirs = f"{ADD.format('twice', 2)}; {script}; printf '\\n{more}' >> later/person.py; {late}"
    works = [
        Work(theirs, "grep -q twice calc.py"),
        Work(ADD.format("thrice", 3), "sh thrice.sh", needs=[1]),
        Work(ADD.format("four", 4), f"{UNITTEST} later.person.CalcTest.test_four", needs=[2]),
        Work(ADD.format("five", 5), f"{UNITTEST} later.five", needs=[3]),
        Work(ADD.format("six", 6), f"{UNITTEST} later.person.CalcTest.test_six", needs=[4]),
    ]
    files = {
        "calc.py": "def one(n):\n    return 1\n",
        "later/__init__.py": "",
        "later/person.py": f"{CALC}{OWN.format('six', 12)}",
    }
    plan = PlanProject.make(tmp_path, works, files)
    result = plan.carry()
    assert result["exit_code"] == 0, plan.events
    runs = [show(plan.project.state_dir, one.run_id) for one in plan.standings().values()]
    found = {
        one.task_id: [(proof.grade, proof.author) for proof in one.proofs]
        for one in sorted(runs, key=lambda one: str(one.task_id))
    }
    person, worker = [("proven", "person")], [("shown", "worker")]
    assert list(found.values()) == [person, worker, worker, worker, person], found
