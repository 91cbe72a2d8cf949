"""`agentrunner plan run` and `plan status` as people see them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest

from agentrunner import cli
from agentrunner.events import event_schema
from agentrunner.plans.execution.plan_settings import save_settings
from tests.kit.plan_project import AT, PlanProject, Work
from tests.kit.terminals import Terminal
from tests.kit.warm import warm_run


@pytest.fixture
def plan(tmp_path: Path) -> PlanProject:
    made = PlanProject.make(tmp_path, [Work(), Work(needs=[1]), Work("true")], {"a.txt": "a\n"})
    save_settings(made.folder, made.settings())
    return made


def said(plan: PlanProject, *words: str) -> subprocess.CompletedProcess[str]:
    """What a command of `agentrunner plan` prints."""
    argv = [sys.executable, "-m", "agentrunner", "plan", *words]
    environ = {**os.environ, "AGENTRUNNER_STATE_DIR": str(plan.project.state_dir)}
    return warm_run(argv, cwd=plan.project.repo, env=environ)


def test_run_tells_how_it_goes_and_how_it_stands(plan: PlanProject) -> None:
    done = said(plan, "run")
    assert done.returncode == 1, done.stderr
    assert "TASK-0001 is part of the plan's branch." in done.stderr
    assert "2 of 3 tasks complete" in done.stdout and "branch agentrunner/make-it" in done.stdout
    assert "plan answer ID TEXT" in done.stdout
    found = json.loads(said(plan, "status", "--json").stdout)
    assert found["tasks"]["TASK-0003"]["status"] == "FAILED" and not found["running"]
    assert found["questions"][0]["task_id"] == "TASK-0003"
    assert said(plan, "status").stdout == done.stdout
    assert found["tasks"]["TASK-0003"]["detail"].startswith("AC-1 failed"), "FAILED is said already"


def test_the_note_has_what_talking_about_the_plan_cost(plan: PlanProject) -> None:
    assert said(plan, "add one more", "--planner", "mock", "--yes").returncode == 0
    said(plan, "run", "--only", "1")
    note = plan.project.repo / ".agent-runner" / "plan-make-it.md"
    assert "| planning | mock | 1 |" in note.read_text("utf-8")


def test_a_dry_run_shows_the_order_and_starts_nothing(plan: PlanProject) -> None:
    done = said(plan, "run", "--dry-run", "--json", "--parallel", "2")
    assert done.returncode == 0, done.stderr
    waves = json.loads(done.stdout)["waves"]
    assert waves == [["TASK-0001", "TASK-0003"], ["TASK-0002"]]
    assert not (plan.project.state_dir / "runs").exists()


def test_mistakes_are_told_before_anything_starts(plan: PlanProject) -> None:
    done = said(plan, "run", "--only", "TASK-0042")
    assert (done.returncode, "TASK-0042" in done.stderr) == (2, True)
    done = said(plan, "run", "--worker", "nobody-cli")
    assert done.returncode == 2 and "nobody-cli" in done.stderr
    assert said(plan, "run", "--dry-run").returncode == 0, "a mistake was kept with the plan"


@dataclass
class Here:
    """`agentrunner plan run` of one plan, within this process."""

    plan: PlanProject
    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> tuple[int, str]:
        """The exit code, and what was on stdout."""
        code = cli.call(cli.app, ["plan", "run", *words], "agentrunner")
        return code, self.capture.readouterr().out


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Here:
    made = PlanProject.make(tmp_path, [Work("echo mine > {}.done")], {"a.txt": "a\n"})
    save_settings(made.folder, made.settings())
    monkeypatch.chdir(made.project.repo)
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(made.project.state_dir))
    return Here(made, capsys)


def test_json_has_one_result_where_the_work_cannot_be_handed_over(here: Here) -> None:
    git = here.plan.project.git
    git("checkout", "-q", "-b", "theirs")
    here.plan.project.write({"1.done": "theirs\n"})
    git("add", "-A")
    git("commit", "-qm", "theirs")
    git("checkout", "-q", "main")
    events = here.plan.project.state_dir.parent / "events.jsonl"
    code, out = here("--json", "--onto", "theirs", "--events", str(events))
    lines = [json.loads(line) for line in out.splitlines()]
    results = [line for line in lines if line["event"] == "plan_result"]
    assert [result["error"]["code"] for result in results] == ["onto-conflict"]
    assert results[0]["exit_code"] == code == 1
    jsonschema.validate(results[0], event_schema())
    assert [json.loads(line) for line in events.read_text().splitlines()] == lines


def test_json_has_one_result_where_it_ends_in_the_middle(here: Here) -> None:
    (here.plan.folder.root / "note.md").mkdir()  # neither place takes the note
    (here.plan.project.repo / ".agent-runner").write_text("mine")
    code, out = here("--json")
    results = [json.loads(line) for line in out.splitlines() if '"plan_result"' in line]
    assert [result["exit_code"] for result in results] == [code] and code != 0
    assert results[0]["error"] is not None
    jsonschema.validate(results[0], event_schema())


def test_who_is_done_is_told_how_to_take_the_work_over(here: Here) -> None:
    code, out = here()
    assert (code, out.splitlines()[-1]) == (0, "  git merge agentrunner/make-it   takes it over")
    here.plan.project.git("branch", "next")
    code, out = here("--onto", "next")
    assert (code, out.splitlines()[-1]) == (0, "  It is part of next.")


def test_a_key_in_an_answer_is_kept_nowhere(
    plan: PlanProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = plan.store.ask("Which key?", AT)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-that-is-long-enough")
    done = said(plan, "answer", str(number), "Use sk-a-key-that-is-long-enough.")
    assert done.returncode == 0, done.stderr
    assert [q.answer for q in plan.store.questions()] == ["Use [OPENAI_API_KEY redacted]."]


def test_a_branch_that_somebody_moved_is_left_alone_and_said(plan: PlanProject) -> None:
    assert "part of the plan's branch" in said(plan, "run", "--only", "1").stderr
    git = plan.project.git
    git("update-ref", "refs/heads/agentrunner/make-it", git("rev-parse", "HEAD").strip())
    done = said(plan, "run", "--only", "2")
    assert "agentrunner/make-it was moved since" in done.stderr
    assert git("rev-parse", "agentrunner/make-it") == git("rev-parse", "HEAD")
    git("branch", "-m", "agentrunner/make-it", "mine")
    assert said(plan, "run", "--only", "2").returncode == 0
    assert git("show", "agentrunner/make-it:2.done") == ""


def asked(plan: PlanProject, *keys: str) -> tuple[int, str]:
    """`plan run` in a terminal, where a question is answered; the exit code, and all it showed."""
    environ = {name: value for name, value in os.environ.items() if name != "CI"}
    environ["AGENTRUNNER_STATE_DIR"] = str(plan.project.state_dir)
    command = [sys.executable, "-m", "agentrunner", "plan", "run"]
    with Terminal(command, plan.project.repo, environ) as terminal:
        for key in keys:
            terminal.until("> ")
            terminal.type(f"{key}\r")
        code = terminal.end()
        return code, terminal.seen.decode()


def test_in_a_terminal_a_person_chooses_how_to_go_on_without_git(tmp_path: Path) -> None:
    plan = PlanProject.make(tmp_path, [Work()], {"a.txt": "a\n"})
    save_settings(plan.folder, plan.settings())
    shutil.rmtree(plan.project.repo / ".git")
    code, seen = asked(plan, "q")
    assert (code, "Nothing was started." in seen) == (0, True)
    assert "[g] make it a git repository" in seen and "[i] work without git" in seen
    assert [path.name for path in plan.project.repo.iterdir()] == ["a.txt"]
    code, seen = asked(plan, "x", "G")
    assert (code, "One of g, i, q > " in seen) == (0, True), seen
    assert plan.project.git("show", "agentrunner/make-it:1.done") == ""
    assert plan.project.git("ls-tree", "--name-only", "main") == "a.txt\n"
