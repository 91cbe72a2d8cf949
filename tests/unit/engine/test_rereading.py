"""A run's files, read again: as `run` reads them with the options that the run was started with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentrunner.commands.start import load_to_run
from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.spec import Landing, TaskSpec
from agentrunner.engine.attempt_run import Options
from agentrunner.engine.planner_change import with_planner, with_worker_model
from agentrunner.engine.rereading import reread
from agentrunner.errors import UsageError
from agentrunner.state.run_state import TaskContext
from tests.kit.task_files import Load

HEAD = "version: 1\ntask: {prd: {text: x}}\n"
FIRST = HEAD + (
    "runner:\n"
    "  meta: {kind: mock, max_loops: 2}\n"
    "  worker: {kind: command, command: [sh, a.sh]}\n"
    "  budget: {usd: 1}\n"
)
TWO = HEAD + (
    "runner:\n"
    "  meta: {kind: mock}\n"
    "  workers: [{kind: mock, name: a}, {kind: command, name: b, command: [sh, b.sh]}]\n"
)

Again = Callable[..., TaskSpec]


@pytest.fixture
def again(tmp_path: Path) -> Again:
    """Reads a task again, as saved with its run."""

    def read(spec: TaskSpec, **environ: str) -> TaskSpec:
        saved = TaskSpec.model_validate_json(spec.model_dump_json())
        return reread(saved, Options(tmp_path / "state", lambda _: None, environ=environ))

    return read


def test_what_the_file_says_now_is_taken(load: Load, repo: Path, again: Again) -> None:
    spec = load(FIRST)
    text = FIRST.replace("a.sh", "b.sh").replace("usd: 1", "usd: 2")
    (repo / "task.yaml").write_text(text + "  sandbox: {read_paths: [a.sh]}\n")
    runner = again(spec).runner
    assert runner.worker.command == ["sh", "b.sh"]
    assert runner.sandbox.read_paths == ["a.sh"]
    assert (runner.budget.usd, runner.meta.max_loops) == (2, 2)
    assert again(spec).places["runner.sandbox.read_paths"].endswith("task.yaml:7")


def test_a_file_that_is_read_twice_keeps_what_people_changed_in_the_run(
    load: Load, repo: Path, again: Again
) -> None:
    spec = with_planner(load(FIRST), "openai-chat", "wise")
    (repo / "task.yaml").write_text(FIRST.replace("usd: 1", "usd: 2"))
    assert again(spec).changes == again(again(spec)).changes == spec.changes != []
    assert again(again(spec)).runner.meta.model == "wise"


GIVEN: dict[str, dict[str, Any]] = {
    "a setting of the task": {"overrides": ["task.setup.command=make", "task.title=Its name"]},
    "a test command": {"options": {"test": "make check"}},
    "an entry of a table": {"overrides": ["runner.worker.env.A=1"]},
    "limits": {"options": {"max_loops": 5, "strict": True}, "overrides": ["runner.budget.usd=7"]},
    "no round more": {"options": {"max_loops": 0}},
    "another worker": {"options": {"worker": "mock"}},
    "the worker's model": {"options": {"worker": "codex", "model": "m"}},
    "approvals": {"options": {"approve": "plan,worker"}},
    "a repository": {"options": {"repo": "."}},
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_it_is_what_a_start_with_the_same_options_reads(
    load: Load, repo: Path, again: Again, given: dict[str, Any]
) -> None:
    spec = load(FIRST, **given)
    changed = (
        FIRST.replace("{prd", "{test: make test, setup: {command: 'true'}, prd")
        .replace("max_loops: 2", "max_loops: 9")
        .replace("[sh, a.sh]", "[sh, b.sh], env: {B: 2}")
        .replace("usd: 1", "usd: 2, worker_runs: 3")
    )
    (repo / "task.yaml").write_text(changed)
    new = again(spec)
    assert new == load(changed, **given)
    assert new != spec


@pytest.mark.parametrize(
    "options", [{"worker": "b"}, {"worker": "a", "model": "m"}, {"worker": "codex"}]
)
def test_of_a_list_of_workers_the_one_that_an_option_named_works(
    load: Load, repo: Path, again: Again, options: dict[str, Any]
) -> None:
    spec = load(TWO, options=options)
    changed = TWO.replace("b.sh", "c.sh").replace("name: a}", "name: a, flags: [-v]}")
    (repo / "task.yaml").write_text(changed)
    assert again(spec) == load(changed, options=options)
    assert again(spec).runner.workers == []


def test_options_that_do_not_go_with_the_changed_file_are_named(
    load: Load, repo: Path, again: Again
) -> None:
    spec = load(FIRST, options={"model": "m"}, overrides=["runner.worker.env.A=s3cret"])
    (repo / "task.yaml").write_text(TWO)
    with pytest.raises(UsageError, match="both given") as refused:
        again(spec)
    assert refused.value.details == (("begun with", "--set runner.worker.env.A, --model"),)


def test_of_a_goal_a_file_that_an_option_names_is_read_again(repo: Path, again: Again) -> None:
    (repo / "replies.yaml").write_text("[]")
    named = {"repo": str(repo), "worker": "mock", "test": "none", "meta": "script"}
    spec = load_to_run(
        TaskSource("goal", "Do it."), [f"runner.meta.script={repo}/replies.yaml"], named
    )
    (repo / "replies.yaml").write_text("[{reply: x}]")
    assert (spec.script_text, again(spec).script_text) == ("[]", "[{reply: x}]")


def test_what_this_machine_chose_stays_chosen(load: Load, repo: Path, again: Again) -> None:
    text = HEAD + "runner: {meta: {max_loops: 2}, worker: {model: m}}\n"
    spec = load(text, auto=True, options={"test": "make"})
    assert spec.runner.meta.kind == "auto"
    update = {"kind": "checklist"}
    runner = spec.runner.model_copy(update={"meta": spec.runner.meta.model_copy(update=update)})
    spec = spec.model_copy(update={"runner": runner, "chosen": {"meta": "a reason"}})
    (repo / "task.yaml").write_text(text.replace("max_loops: 2", "max_loops: 3"))
    new = again(spec, OPENAI_API_KEY="k")  # by which another one would be chosen now
    assert (new.runner.meta.kind, new.runner.meta.max_loops) == ("checklist", 3)
    assert new.chosen["meta"] == "a reason"


def test_whom_a_person_named_since_stays(load: Load, repo: Path, again: Again) -> None:
    spec = with_worker_model(load(TWO), "big", TaskContext(order=None))
    spec = with_planner(spec, "openai-chat", "wise")
    (repo / "task.yaml").write_text(TWO.replace("b.sh", "c.sh"))
    runner = again(spec).runner
    assert (runner.meta.kind, runner.meta.model) == ("openai-chat", "wise")
    assert [worker.model for worker in runner.workers] == ["big", None]
    assert runner.workers[1].command == ["sh", "c.sh"]
    assert runner.worker == runner.workers[0]


def test_a_model_named_since_goes_with_the_one_it_was_named_for(
    load: Load, repo: Path, again: Again
) -> None:
    text = FIRST.replace("kind: mock", "kind: openai-chat")
    spec = with_worker_model(load(text), "big", TaskContext(order=None))
    spec = with_planner(spec, model="wise")
    changed = text.replace("openai-chat", "codex-cli").replace("kind: command", "kind: aider")
    (repo / "task.yaml").write_text(changed.replace(", command: [sh, a.sh]", ""))
    runner = again(spec).runner
    assert (runner.meta.model, runner.worker.model) == (None, None)


def test_a_candidate_that_the_file_forces_now_goes_before_one_named_since(
    load: Load, repo: Path, again: Again
) -> None:
    spec = with_planner(load(FIRST), "checklist")
    forced = "  profiles: {meta: {candidates: [{kind: codex-cli}], force: codex-cli}}\n"
    (repo / "task.yaml").write_text(FIRST + forced)
    assert again(spec).runner.meta.kind == "mock"


@pytest.mark.parametrize(
    "after", ["workers: [{kind: codex}, {kind: mock}]", "worker: {kind: mock}"]
)
def test_another_kind_keeps_nothing_of_the_former(
    load: Load, repo: Path, again: Again, after: str
) -> None:
    spec = load(FIRST)
    old = "worker: {kind: command, command: [sh, a.sh]}"
    (repo / "task.yaml").write_text(FIRST.replace(old, after))
    new = again(spec)
    assert new.runner.worker.command is None
    assert new.runner.worker == new.candidates[0][1].runner.worker


def test_where_a_run_works_and_lands_stays(
    load: Load, repo: Path, again: Again, tmp_path: Path
) -> None:
    spec = load(FIRST)
    landing = Landing(repo=spec.repo, branch="mine", outside=True)
    spec = spec.model_copy(update={"landing": landing, "repo": str(tmp_path / "tree")})
    (repo / "task.yaml").write_text(
        FIRST.replace("usd: 1", "usd: 2").replace("{prd", "{id: x, prd")
    )
    new = again(spec)
    assert (new.landing, new.repo, new.task_id) == (landing, spec.repo, spec.task_id)
    assert new.runner.budget.usd == 2


def test_of_a_task_of_a_plan_only_files_that_its_settings_name_are_read_again(
    load: Load, repo: Path, again: Again
) -> None:
    (repo / "replies.yaml").write_text("[]")
    overrides = [f"runner.meta.script={repo}/replies.yaml", "runner.budget.usd=7"]
    options = {"repo": str(repo), "worker": "mock", "meta": "script"}
    source = TaskSource("stdin", HEAD)
    spec = load_task(source, overrides=overrides, options=options, environ={}, cwd=repo)
    left = spec.runner.budget.model_copy(update={"usd": 3})  # what the plan has left for it
    runner = spec.runner.model_copy(update={"budget": left})
    spec = spec.model_copy(update={"runner": runner, "plan_repo": str(repo)})
    (repo / "replies.yaml").write_text("[{reply: x}]")
    assert again(spec).script_text == "[{reply: x}]"
    assert again(spec).runner == runner


def test_a_file_that_settings_name_is_read_again(load: Load, repo: Path, again: Again) -> None:
    text = FIRST.replace("kind: mock, ", "kind: script, script: replies.yaml, ")
    (repo / "replies.yaml").write_text("[]")
    spec = load(text)
    (repo / "replies.yaml").write_text("[{reply: x}]")
    assert (spec.script_text, again(spec).script_text) == ("[]", "[{reply: x}]")


def test_the_front_matter_of_a_prd_is_read_again(load: Load, repo: Path, again: Again) -> None:
    front = "---\nrunner: {worker: {kind: command, command: [sh, a.sh]}}\n---\n# Do\n\nDo it.\n"
    spec = load(front, name="prd.md")
    (repo / "prd.md").write_text(front.replace("a.sh", "b.sh").replace("# Do", "# Do all"))
    new = again(spec)
    assert new.runner.worker.command == ["sh", "b.sh"]
    assert (new.title, new.task_id) == ("Do all", spec.task_id)


def test_a_test_command_that_is_to_be_found_is_found_again(
    load: Load, repo: Path, again: Again
) -> None:
    (repo / "Makefile").write_text("test:\n\ttrue\n")
    text = FIRST.replace("{prd", "{test: auto, prd")
    spec = load(text, detect_test=lambda _: "make test")
    (repo / "task.yaml").write_text(text.replace("usd: 1", "usd: 2"))
    test = again(spec).task.test
    assert test is not None and test.command == "make test"


def test_a_run_without_its_options_is_not_read_again(load: Load, again: Again) -> None:
    values = load(FIRST).model_dump(exclude={"reading", "changes"})
    with pytest.raises(UsageError, match="An older version") as refused:
        again(TaskSpec.model_validate(values))
    assert "--on-change continue" in refused.value.remedy
