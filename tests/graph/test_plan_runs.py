"""Plans, carried out: whole runs in work trees of their own, landed on a branch."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentrunner.engine.queries import listed_runs
from agentrunner.engine.runs import accept
from agentrunner.errors import LockHeld, UsageError
from agentrunner.execution.deps import Clock
from agentrunner.plans.execution.delivery import DeliveryOptions
from agentrunner.plans.execution.plan_settings import save_settings
from agentrunner.plans.execution.status import look
from agentrunner.plans.plan import PlanTaskStatus
from agentrunner.screens.plan_events import event_line
from agentrunner.screens.plan_status import status_screen
from agentrunner.state.lifecycle import state_word
from agentrunner.storage.locks import FileLock, me, repository_lock
from tests.kit.bwrap import require_bwrap
from tests.kit.docker import IMAGE as HOST_IMAGE
from tests.kit.docker import IN_DOCKER, require_docker
from tests.kit.plan_project import AT, PlanProject, Work, answer, plan_of
from tests.kit.process import at_point, until
from tests.kit.project import Project
from tests.kit.warm import WarmPopen

START = {"a.txt": "one\n", "b.txt": "one\n"}
LATER = (
    Work("cat a.txt > c.txt", "grep -q two c.txt", needs=[1]),
    Work("echo two >> b.txt", "grep -q two b.txt"),
)
"""After a task that works at a.txt, one that needs it and one that does not."""


def test_tasks_have_what_they_depend_on_and_end_in_a_branch(tmp_path: Path) -> None:
    plan = PlanProject.make(
        tmp_path,
        [Work("echo two >> a.txt", "grep -q two a.txt"), *LATER],
        START,
    )
    head = plan.project.git("rev-parse", "HEAD")
    result = plan.carry()
    assert result["exit_code"] == 0, plan.events
    assert set(plan.statuses()) == {PlanTaskStatus.COMPLETE}
    assert result["branch"] == "agentrunner/make-it"
    assert plan.published("c.txt") == "one\ntwo\n" and plan.published("b.txt") == "one\ntwo\n"
    # The checkout is as it was, and nothing is left of the work trees.
    assert plan.project.git("status", "--porcelain").split() == ["??", ".agent-runner/"]
    note = Path(result["note"])
    assert note == plan.project.repo / ".agent-runner" / "plan-make-it.md"
    assert "gantt" in note.read_text("utf-8") and "TASK-0003" in note.read_text("utf-8")
    assert plan.project.git("rev-parse", "HEAD") == head
    assert [path for path in plan.folder.work.glob("*/*") if path.is_dir()] == []
    # All is done: nothing is run again.
    plan.events.clear()
    assert plan.carry()["exit_code"] == 0
    assert plan.told("run_started") == []


def test_tasks_of_the_same_files_are_never_at_work_together(tmp_path: Path) -> None:
    files = ["a.txt"]
    works = [Work(f"echo {n} >> a.txt", f"grep -q {n} a.txt", files=files) for n in (5, 6, 7)]
    plan = PlanProject.make(tmp_path, works, START)
    assert plan.carry(parallel=3)["exit_code"] == 0
    kinds = [e["event"] for e in plan.events if e["event"] in ("run_started", "plan_landed")]
    assert kinds == ["run_started", "plan_landed"] * 3
    assert plan.published("a.txt") == "one\n5\n6\n7\n"


def test_a_conflict_is_brought_together_in_a_second_round(tmp_path: Path) -> None:
    solve = "if grep -q '<<<<' a.txt; then printf 'x\\ny\\n' > a.txt; else echo {} > a.txt; fi"
    plan = PlanProject.make(
        tmp_path,
        [Work(solve.format(name), f"grep -q {name} a.txt") for name in ("x", "y")],
        START,
    )
    result = plan.carry(parallel=2)
    assert result["exit_code"] == 0, plan.events
    (fixing,) = plan.told("plan_fixing")
    assert "a.txt" in fixing["evidence"]
    assert plan.published("a.txt") == "x\ny\n"
    runs = {e["run_id"] for e in plan.told("run_started")}
    assert len(runs) == 3
    assert PlanTaskStatus.FIXING in {e["status"] for e in plan.told("plan_task")}


def test_what_is_red_after_the_merge_goes_into_another_round(tmp_path: Path) -> None:
    """Each is green alone; together there are three lines, until someone takes one out."""
    tidy = "echo {0} > {0}.txt; [ $(ls *.txt | wc -l) -lt 4 ] || rm b.txt"
    plan = PlanProject.make(
        tmp_path,
        [Work(tidy.format(name), f"grep -q {name} {name}.txt") for name in ("x", "y")],
        START,
    )
    settings = plan.settings(test="[ $(ls *.txt | wc -l) -lt 4 ]")
    result = plan.carry(settings=settings)
    assert result["exit_code"] == 0, plan.events
    assert len(plan.told("plan_fixing")) == 1
    assert plan.project.git("ls-tree", "--name-only", result["branch"]).split() == [
        "a.txt",
        "x.txt",
        "y.txt",
    ]


def test_who_deletes_what_another_task_proved_has_to_bring_it_back(tmp_path: Path) -> None:
    spoil = "if [ -e 2.done ]; then echo kept > a.done; else rm a.done; touch 2.done; fi"
    plan = PlanProject.make(
        tmp_path, [Work("echo x > a.done", "[ -s a.done ]"), Work(spoil, needs=[1])], START
    )
    result = plan.carry()
    assert result["exit_code"] == 0, plan.events
    assert set(plan.statuses()) == {PlanTaskStatus.COMPLETE}
    (fixing,) = plan.told("plan_fixing")
    assert fixing["task_id"] == "TASK-0002"
    assert "TASK-0001 (AC-1)" in fixing["evidence"] and "`[ -s a.done ]`" in fixing["evidence"]
    assert [e["task_id"] for e in plan.told("plan_landed")] == ["TASK-0001", "TASK-0002"]
    assert plan.published("a.done") == "kept\n" and plan.published("2.done") == ""


@pytest.mark.whole
def test_it_is_said_once_where_nothing_proves_the_merges(tmp_path: Path) -> None:
    start = {**START, "package.json": '{"scripts": {"test": "node test.js"}}'}
    plan = PlanProject.make(tmp_path, [Work(), Work()], start)
    plan.carry()
    assert plan.told("plan_started")[0]["notices"] == []
    now = plan.store.load()
    designs = {
        name: replace(design, acceptance_criteria=("is fast",))
        for name, design in now.designs.items()
    }
    bare = replace(now, designs=designs, version=now.version + 1)
    plan.store.save(bare, at=AT, kind="plan_patch", author="hana", message="no checks")
    plan.events.clear()
    plan.carry()
    (notice,) = plan.told("plan_started")[0]["notices"]
    assert "nothing of the plan proves its merges" in notice
    assert notice.endswith("--test 'npm test' would (package.json, line 1).")
    assert notice in Path(plan.result["note"]).read_text("utf-8")


@pytest.mark.whole
def test_installed_packages_that_stay_behind_are_told_with_the_set_up(tmp_path: Path) -> None:
    start = {**START, ".gitignore": "node_modules/\n", "package-lock.json": "{}"}
    plan = PlanProject.make(tmp_path, [Work()], start)
    (plan.project.repo / "node_modules").mkdir()
    plan.carry()
    (notice,) = plan.told("plan_started")[0]["notices"]
    assert notice.startswith("node_modules of your checkout is not taken along")
    assert notice.endswith("--setup 'npm ci'")


@pytest.mark.whole
def test_a_conflict_that_the_worker_leaves_is_for_a_person(tmp_path: Path) -> None:
    works = [Work(f"grep -q '<<<<' a.txt || echo {n} > a.txt", f"grep -q {n} a.txt") for n in "xy"]
    plan = PlanProject.make(tmp_path, works, START)
    result = plan.carry()
    assert result["exit_code"] == 1
    assert sorted(plan.statuses()) == [PlanTaskStatus.COMPLETE, PlanTaskStatus.FAILED]
    assert len(plan.told("plan_fixing")) == 1
    assert "<<<<" not in plan.published("a.txt")


# -- what goes wrong, and people ------------------------------------------------------------------


def test_a_failure_stops_only_what_depends_on_it_and_an_answer_goes_on(tmp_path: Path) -> None:
    """The worker does what the person says: the answer is a line for it."""
    plan = PlanProject.make(
        tmp_path,
        [Work("true", "grep -q two a.txt"), *LATER],
        START,
    )
    result = plan.carry()
    first, second, third = plan.statuses()
    assert first in (PlanTaskStatus.FAILED, PlanTaskStatus.NEEDS_REVIEW)
    assert (second, third) == (PlanTaskStatus.BLOCKED, PlanTaskStatus.COMPLETE)
    assert result["exit_code"] in (1, 3) and result["blocked"] == ["TASK-0002"]
    (question,) = result["questions"]
    assert question["task_id"] == "TASK-0001"
    # Nothing is tried again as long as nobody has said anything.
    plan.events.clear()
    assert plan.carry()["exit_code"] == result["exit_code"]
    assert plan.told("run_started") == plan.told("run_resumed") == []
    assert len(plan.result["questions"]) == 1
    answer(plan.store, "TASK-0001", "x\nDO: echo two >> a.txt", AT)
    assert plan.carry()["exit_code"] == 0, plan.events
    assert plan.published("c.txt") == "one\ntwo\n"
    assert plan.result["questions"] == []


def test_an_answer_is_heard_by_the_process_that_still_works(tmp_path: Path) -> None:
    works = [
        Work("true", "grep -q two a.txt"),
        Work("until [ -e ../../go ]; do sleep 0.05; done; touch {}.done"),
    ]
    plan = PlanProject.make(tmp_path, works, START)
    gate = plan.folder.work / "go"

    def heard(event: dict[str, Any]) -> None:
        if event["event"] == "plan_question":
            answer(plan.store, "task-0001", "x\nDO: echo two >> a.txt", AT)
        elif event["event"] == "plan_landed" and event["task_id"] == "TASK-0001":
            gate.touch()

    plan.heard = heard
    assert plan.carry()["exit_code"] == 0, plan.events


def test_a_task_that_is_named_is_tried_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    plan = PlanProject.make(tmp_path, [Work(f"cp {flag} {{}}.done || true"), Work()], START)
    plan.carry(only=("TASK-0001",))
    assert plan.result["tasks"].keys() == {"TASK-0001"} and plan.result["exit_code"] != 0
    run = plan.standings()["TASK-0001"].run_id
    flag.touch()
    assert plan.carry(only=("TASK-0001",))["exit_code"] == 0, plan.events
    assert plan.standings()["TASK-0001"].run_id == run
    assert plan.statuses()[1] == PlanTaskStatus.PENDING


@pytest.mark.whole
def test_what_a_named_task_depends_on_is_tried_again_too(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    works = [Work(f"cp {flag} {{}}.done || true"), Work(needs=[1]), Work("true")]
    plan = PlanProject.make(tmp_path, works, START)
    plan.carry()
    flag.touch()
    assert plan.carry(only=("TASK-0002",))["exit_code"] == 0, plan.events
    assert [event["waiting"] for event in plan.told("plan_started")] == [[], []]
    done = PlanTaskStatus.COMPLETE
    assert plan.statuses() == [done, done, PlanTaskStatus.FAILED]


def test_what_a_killed_process_had_under_way_in_the_clone_is_removed(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)
    (plan.folder.clone / "agentrunner.killed").mkdir(parents=True)
    assert plan.carry()["exit_code"] == 0, plan.events
    assert not list(plan.folder.clone.glob("agentrunner.*"))


def test_a_run_that_was_accepted_by_hand_is_landed(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work(criteria=["is fast"])], START)
    assert plan.carry()["exit_code"] == 3
    run = plan.standings()["TASK-0001"].run_id
    options = plan.order().options
    done = asyncio.run(accept(run, [], "I looked.", "hana", options)).as_dict()
    assert done["state"] == "COMPLETE"
    assert plan.carry()["exit_code"] == 0
    assert plan.published("1.done") == "" and plan.result["questions"] == []


class QuickClock(Clock):
    """Waits no longer than it takes to say so."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0.01)


def test_surroundings_that_fail_are_tried_again_later(tmp_path: Path) -> None:
    """Here a work tree that somebody else holds for a while."""
    plan = PlanProject.make(tmp_path, [Work()], START)
    clock = QuickClock()
    held: list[FileLock] = []

    def heard(event: dict[str, Any]) -> None:
        if event["event"] == "plan_opened" and not held:
            lock = repository_lock(plan.project.state_dir, Path(event["folder"]))
            lock.acquire(me("other", AT))
            held.append(lock)
        elif event["event"] == "plan_task" and event["retry_at"]:
            held[0].close()

    plan.heard = heard
    assert plan.carry(options={"clock": clock})["exit_code"] == 0, plan.events
    waited = [e for e in plan.told("plan_task") if e["retry_at"]]
    assert [e["status"] for e in waited] == ["RETRY_WAIT"]
    assert waited == [e for e in plan.told("plan_task") if e["status"] == "RETRY_WAIT"]
    assert 30.0 in clock.waits


@pytest.mark.whole
def test_surroundings_that_stay_bad_are_given_up(tmp_path: Path) -> None:
    """Here a place of runs in which nothing can be made."""
    plan = PlanProject.make(tmp_path, [Work(), Work(needs=[1])], START)
    clock = QuickClock()
    runs = plan.project.state_dir / "runs"

    def heard(event: dict[str, Any]) -> None:
        if event["event"] == "plan_opened":
            runs.write_text("no folder")

    plan.heard = heard
    assert plan.carry(options={"clock": clock})["exit_code"] == 5, plan.events
    assert [wait for wait in clock.waits if wait >= 30] == [30.0, 120.0, 600.0]
    assert plan.standings()["TASK-0001"].tries == 4
    failed = [e for e in plan.told("plan_task") if e["status"] == "RETRY_WAIT"]
    lines = [event_line(event) for event in failed]
    assert ["again at" in line for line in lines] == [True, True, True, False]
    assert len(set(lines)) == len(lines) == 4, "the same was said twice"
    runs.unlink()
    plan.heard = lambda event: None
    assert plan.carry()["exit_code"] == 0, plan.events


# -- boxes and repositories -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bwrap", "docker"])
def test_work_trees_below_the_state_folder_stand_in_boxes(tmp_path: Path, kind: str) -> None:
    """Git works in them, and the private clone is read-only there."""
    (require_bwrap if kind == "bwrap" else require_docker)()
    look = "git status --porcelain && ! touch $(git rev-parse --git-common-dir)/x && touch {}.done"
    plan = PlanProject.make(tmp_path, [Work(look), Work(needs=[1])], START)
    settings = plan.settings(sandbox=kind)
    if kind == "docker":
        seen = json.dumps(IN_DOCKER["sandbox"]["read_paths"])
        more = {
            "image": f"runner.worker.docker_image={HOST_IMAGE}",
            "paths": f"runner.sandbox.read_paths={seen}",
        }
        settings = settings.model_copy(update={"overrides": {**settings.overrides, **more}})
    assert plan.carry(settings=settings)["exit_code"] == 0, plan.events
    assert plan.published("2.done") == ""
    assert not (plan.folder.clone / "x").exists()


@pytest.mark.series(2)
@pytest.mark.parametrize("included", [False, True])
def test_what_is_not_committed_is_left_or_taken_along(tmp_path: Path, included: bool) -> None:
    plan = PlanProject.make(tmp_path, [Work()], {**START, ".gitignore": "*.secret\n"})
    plan.project.write({"a.txt": "changed\n", "new.txt": "new\n", "x.secret": "no\n"})
    dirty = plan.project.git("status", "--porcelain")
    assert plan.carry(include_uncommitted=included)["exit_code"] == 0, plan.events
    (notice,) = plan.told("plan_started")[0]["notices"]
    assert "a.txt, new.txt" in notice and "secret" not in notice
    assert plan.published("a.txt") == ("changed\n" if included else "one\n")
    assert plan.project.git("status", "--porcelain").replace("?? .agent-runner/\n", "") == dirty


@pytest.mark.whole
def test_a_detached_head_is_where_the_plan_begins(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)
    plan.project.git("checkout", "-q", "--detach")
    assert plan.carry()["exit_code"] == 0
    assert plan.project.git("rev-parse", f"{plan.result['branch']}~1") == plan.project.git(
        "rev-parse", "HEAD"
    )


def test_a_repository_whose_hash_is_sha256_is_as_any(tmp_path: Path) -> None:
    works = [Work("rm a.txt; touch {}.done", files=["a.txt"]), Work()]
    plan = PlanProject.make(tmp_path, works, {**START, "b.txt": "b\n"})
    git = plan.project.git
    shutil.rmtree(plan.project.repo / ".git")
    git("init", "-q", "-b", "main", "--object-format=sha256")
    git("add", "-A")
    git("commit", "-qm", "start")
    git("branch", "next")
    assert plan.carry(wishes=DeliveryOptions(squash=True, onto="next"))["exit_code"] == 0, (
        plan.events
    )
    assert git("ls-tree", "--name-only", "next").split() == ["1.done", "2.done", "b.txt"]


def test_a_name_that_is_taken_is_not(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)
    plan.project.git("commit", "-q", "--allow-empty", "-m", "mine")
    plan.project.git("branch", "agentrunner/make-it", "HEAD~1")
    assert plan.carry()["branch"] == "agentrunner/make-it-2"


def test_one_process_carries_a_plan_out(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)
    with contextlib.closing(plan.folder.lock()) as lock:
        lock.acquire(me("", AT))
        with pytest.raises(LockHeld, match="this plan"):
            plan.carry()


@pytest.mark.whole
def test_a_plan_without_tasks_and_tasks_that_are_none_are_refused(tmp_path: Path) -> None:
    plan = PlanProject(Project.make(tmp_path, START))
    with pytest.raises(UsageError) as caught:
        plan.carry()
    assert caught.value.code == "no-plan"
    plan.store.save(plan_of([Work()]), at=AT, kind="decompose", author="hana", message="x")
    with pytest.raises(UsageError) as caught:
        plan.carry(only=("TASK-0009",))
    assert caught.value.code == "unknown-task"


def test_a_plan_that_is_changed_meanwhile_is_what_is_carried_out(tmp_path: Path) -> None:
    plan = PlanProject.make(
        tmp_path, [Work("until [ -e ../../go ]; do sleep 0.05; done; touch {}.done")], START
    )
    grown = plan_of([Work(), Work()])

    def heard(event: dict[str, Any]) -> None:
        if event["event"] == "plan_opened" and event["task_id"] == "TASK-0001":
            now = replace(grown, version=plan.store.load().version + 1)
            plan.store.save(now, at=AT, kind="plan_patch", author="hana", message="more")
        elif event["event"] == "plan_opened":
            (plan.folder.work / "go").touch()

    plan.heard = heard
    assert plan.carry()["exit_code"] == 0, plan.events
    assert list(plan.result["tasks"].values()) == ["COMPLETE", "COMPLETE"]


# -- stopping and going on ------------------------------------------------------------------------

WAITS = "touch ../../{}.here; until [ -e ../../go ]; do sleep 0.02; done; echo x >> {}.done"


def begun(plan: PlanProject, *more: str, **environ: str) -> subprocess.Popen[str]:
    """`agentrunner plan run` as a process of its own."""
    save_settings(plan.folder, plan.settings())
    command = [
        sys.executable,
        "-m",
        "agentrunner",
        "plan",
        "run",
        "--parallel",
        "2",
        "--json",
        *more,
    ]
    return WarmPopen(
        command,
        cwd=plan.project.repo,
        env={**os.environ, "AGENTRUNNER_STATE_DIR": str(plan.project.state_dir), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.series(2)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_ends_in_the_middle_is_gone_on_with(
    tmp_path: Path, number: signal.Signals
) -> None:
    plan = PlanProject.make(
        tmp_path,
        [Work(WAITS, "grep -q x {}.done"), Work(WAITS, "grep -q x {}.done"), Work(needs=[1, 2])],
        START,
    )
    work = plan.folder.work
    with begun(plan) as process:
        until(lambda: (work / "1.here").exists() and (work / "2.here").exists(), "both work")
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == (-9 if number == signal.SIGKILL else 130), err
    first = {name: one.run_id for name, one in plan.standings().items()}
    found = look(plan.project.state_dir, plan.folder, datetime.now(UTC))
    seen = status_screen(found, width=80)
    assert seen.count("  stopped  round 1") == 2 and "0 of 3 tasks complete · 2 stopped" in seen
    rows = [asdict(row) for row in listed_runs(plan.project.state_dir)]
    assert [state_word(row) for row in rows] == ["stopped", "stopped"]
    (work / "go").touch()
    with begun(plan) as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    assert {e["run_id"] for e in events if e["event"] == "run_resumed"} == set(first.values())
    assert [e["task_id"] for e in events if e["event"] == "run_started"] == ["TASK-0003"]
    assert events[-1]["event"] == "plan_result"
    plan.result = events[-1]
    # A run that was killed is taken over where its worker is, and one that was stopped goes on.
    assert plan.published("1.done").startswith("x\n") and plan.published("3.done") == ""


@pytest.mark.parametrize("point", ["landing_before_move", "landing_after_move"])
def test_a_process_that_is_killed_while_it_lands_lands_once(tmp_path: Path, point: str) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)
    with begun(plan, **at_point(point)) as process:
        process.communicate(timeout=60)
    assert process.returncode == -9
    assert plan.carry()["exit_code"] == 0, plan.events
    assert plan.told("run_started") == plan.told("run_resumed") == []
    log = plan.project.git("log", "--format=%s", plan.result["branch"]).splitlines()
    assert log == ["Task 1", "start"]


def test_a_branch_is_known_again_after_two_processes_were_killed_on_its_way(
    tmp_path: Path,
) -> None:
    """The one had moved it and not said so; the other had said so and not moved it."""
    plan = PlanProject.make(tmp_path, [Work(), Work(needs=[1]), Work(needs=[2])], START)
    for point in ("publish_after", "publish_before"):
        with begun(plan, **at_point(point)) as process:
            process.communicate(timeout=60)
        assert process.returncode == -9
    assert plan.carry()["exit_code"] == 0, plan.events
    assert plan.told("warning") == []
    assert plan.published("3.done") == ""
    assert plan.project.git("branch", "--list", "agentrunner/*").split() == ["agentrunner/make-it"]


def test_status_tells_of_a_plan_that_another_process_carries_out(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work(WAITS, "grep -q x {}.done"), Work(needs=[1])], START)
    with begun(plan) as process:
        until(lambda: (plan.folder.work / "1.here").exists(), "it works")
        found = look(plan.project.state_dir, plan.folder, datetime.now(UTC))
        (plan.folder.work / "go").touch()
        process.communicate(timeout=60)
    one, two = found.tasks.values()
    assert found.driven and one.at_work and one.rounds == 1 and one.seconds > 0
    assert two.status == PlanTaskStatus.BLOCKED
    screen = status_screen(found, width=80)
    assert "0 of 2 tasks complete · 1 at work" in screen and "round 1/2" in screen
    assert "agentrunner plan status -f" in screen
    assert "agentrunner plan" not in status_screen(found, width=80, chat=True)
    after = look(plan.project.state_dir, plan.folder, datetime.now(UTC))
    assert not after.driven and after.branch == "agentrunner/make-it"
    assert json.loads(json.dumps(after.as_dict()))["tasks"]["TASK-0002"]["status"] == "COMPLETE"


def test_what_is_taken_out_of_the_plan_while_at_work_is_not_landed(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], START)

    def heard(event: dict[str, Any]) -> None:
        if event["event"] == "plan_task" and event["status"] == "RUNNING":
            plan.store.undo(at=AT, author="hana", force=True)

    plan.heard = heard
    result = plan.carry()
    assert not plan.told("plan_landed") and result["branch"] is None
    assert plan.told("plan_task")[-1]["detail"] == "is no part of the plan any more"
