"""Settings outside of a task: which wins, what a repository may set, and where each comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentrunner.config.agents import reads_repo, seen_by
from agentrunner.config.config_files import PROJECT_MAY, user_file
from agentrunner.config.load import load_settings
from agentrunner.config.mistakes import all_keys
from agentrunner.config.origins import settings_of
from agentrunner.config.spec import TaskSpec
from agentrunner.errors import UsageError
from tests.kit.task_files import Load


class Machine:
    """A repository and a home with settings in them."""

    def __init__(self, load: Load, repo: Path, home: Path) -> None:
        self._load = load
        self.repo = repo
        self.home = home
        self.own = home / ".config" / "agentrunner" / "config.yaml"

    def user(self, text: str) -> None:
        self.own.parent.mkdir(parents=True, exist_ok=True)
        self.own.write_text(text, encoding="utf-8")

    def project(self, text: str) -> None:
        (self.repo / "agentrunner.yaml").write_text(text, encoding="utf-8")

    def load(self, runner: str = "{}", **more: Any) -> TaskSpec:
        text = f"version: 1\ntask: {{prd: {{text: x}}}}\nrunner: {runner}\n"
        environ = {"HOME": str(self.home), **more.pop("environ", {})}
        return self._load(text, environ=environ, **more)

    def refused(self, runner: str = "{}", **more: Any) -> UsageError:
        with pytest.raises(UsageError) as caught:
            self.load(runner, **more)
        return caught.value


@pytest.fixture
def machine(load: Load, repo: Path, tmp_path: Path) -> Machine:
    return Machine(load, repo, tmp_path / "home")


def sight(machine: Machine, task: str = "{}", **more: Any) -> str:
    return seen_by(machine.load(task, **more).runner.meta)


def test_plain_http_is_allowed_by_the_person_alone(machine: Machine) -> None:
    plain = "{meta: {allow_plain_http: true}}"
    for error in (machine.refused(plain), machine.refused("{meta: {allow_plain_http: 'yes'}}")):
        assert "runner.meta.allow_plain_http" in error.message and "--set" in error.remedy
    option: dict[str, Any] = {"overrides": ["runner.meta.allow_plain_http=true"]}
    assert machine.load(**option).runner.meta.allow_plain_http
    assert machine.load(plain, **option).runner.meta.allow_plain_http
    machine.user(f"runner: {plain}")
    assert machine.load().runner.meta.allow_plain_http
    assert not machine.load("{meta: {allow_plain_http: false}}").runner.meta.allow_plain_http
    machine.project(f"runner: {plain}")
    assert "A repository may not set" in machine.refused().message


def test_what_a_planner_sees_is_lowered_by_a_task_and_raised_by_the_person(
    machine: Machine,
) -> None:
    option = {"overrides": ["runner.meta.see=repo"]}
    assert sight(machine) == "repo"
    assert sight(machine, "{meta: {see: nothing}}") == "nothing"
    assert sight(machine, "{meta: {see_repo: none}}") == "change"
    assert sight(machine, "{meta: {see: nothing}}", **option) == "repo"
    machine.user("runner: {meta: {see: change}}")
    assert sight(machine) == "change"
    assert sight(machine, "{meta: {see: repo}}") == "change"
    assert sight(machine, "{meta: {see: nothing}}") == "nothing"
    assert sight(machine, "{meta: {see: repo}}", **option) == "repo"
    spec = machine.load("{meta: {see: repo, see_repo: read}}")
    assert not reads_repo(spec.runner.meta)
    assert spec.places["runner.meta.see"] == f"{machine.own}:1"
    machine.user("runner: {meta: {see_repo: none}}")
    assert sight(machine, "{meta: {see: repo}}") == "change"
    machine.user("runner: {meta: {see: repo}}")
    assert sight(machine, "{meta: {see_repo: none}}") == "change"
    assert sight(machine, "{meta: {see: change}}") == "change"


def test_option_task_project_user_environment_default(machine: Machine) -> None:
    key = "runner.note.detail"
    assert machine.load().runner.note.detail == "summary"
    machine.user("runner: {note: {detail: full}}")
    assert machine.load().runner.note.detail == "full"
    machine.project("runner: {note: {detail: summary}}")
    spec = machine.load()
    assert (spec.runner.note.detail, spec.places[key]) == (
        "summary", f"{machine.repo}/agentrunner.yaml:1",
    )  # fmt: skip
    assert machine.load("{note: {detail: full}}").runner.note.detail == "full"
    spec = machine.load("{note: {detail: full}}", overrides=[f"{key}=summary"])
    assert (spec.runner.note.detail, spec.places[key]) == ("summary", "--set runner.note.detail")


def test_a_file_wins_over_the_environment(machine: Machine) -> None:
    environ = {"OPENAI_MODEL": "of-the-environment"}
    assert machine.load(environ=environ).runner.meta.model == "of-the-environment"
    machine.user("runner: {meta: {model: of-the-file}}")
    spec = machine.load(environ=environ)
    assert spec.runner.meta.model == "of-the-file"
    assert spec.places["runner.meta.model"] == f"{machine.own}:1"


def test_what_a_task_writes_empty_stays_empty(machine: Machine) -> None:
    machine.user("runner: {budget: {wall_sec: 60, usd: 3}}")
    assert machine.load("{budget: {wall_sec: null}}").runner.budget.wall_sec is None
    assert machine.load("{budget: {wall_sec: null}}").runner.budget.usd == 3


def test_a_section_is_put_together_and_a_list_is_not(machine: Machine) -> None:
    machine.user("runner: {worker: {env: {A: a, B: b}}, sandbox: {read_paths: [/usr], memory: 1g}}")
    runner = machine.load("{worker: {env: {B: c}}, sandbox: {read_paths: [/opt]}}").runner
    assert runner.worker.env == {"A": "a", "B": "c"}
    assert (runner.sandbox.read_paths, runner.sandbox.memory) == (["/opt"], "1g")


@pytest.mark.parametrize(
    ("runner", "options"),
    [("{worker: {kind: Codex}}", {}), ("{}", {"worker": "codex-cli"})],
)
def test_settings_of_one_kind_do_not_go_over_to_another(
    machine: Machine, runner: str, options: dict[str, str]
) -> None:
    machine.user("runner: {worker: {kind: claude, model: opus, auth: login, max_run_time_sec: 9}}")
    worker = machine.load(runner, options=options).runner.worker
    assert (worker.kind, worker.model, worker.auth) == ("codex-cli", None, "key")
    assert worker.max_run_time_sec == 9
    assert machine.load().runner.worker.model == "opus"
    assert machine.load("{worker: {kind: claude-code}}").runner.worker.model == "opus"


def test_workers_of_one_file_and_the_worker_of_another_are_not_mixed(machine: Machine) -> None:
    machine.user("runner: {workers: [{kind: claude-code}, {kind: codex-cli}]}")
    assert [name for name, _ in machine.load().candidates] == ["claude-code", "codex-cli"]
    assert machine.load("{worker: {kind: mock}}").runner.workers == []
    machine.user("runner: {worker: {kind: claude-code, model: m}}")
    spec = machine.load("{workers: [{kind: mock}, {kind: codex-cli}]}")
    assert [own.runner.worker.model for _, own in spec.candidates] == [None, None]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("runner:\n  wroker: {kind: mock}", "unknown-key", 2),
        ("task: {test: x}", "unknown-key", 1),
        ("runner:\n  budget: {usd: -1}", "bad-value", 2),
        ("runner:\n  worker: {kind: codx}", "unknown-kind", 2),
        ("runner:\n  worker: {env: {A: env:NOT_THERE}}", "env-missing", 2),
        ("runner:\n  patterns: p.yaml", "bad-value", 2),
        ("runner:\n  note: {template: mine.md}", "bad-value", 2),
        ("runner:\n  sandbox: {read_paths: [data]}", "bad-value", 2),
        ("runner: [", "yaml-syntax", 1),
        ("version: 2", "bad-value", 1),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_line(
    machine: Machine, text: str, code: str, line: int
) -> None:
    machine.user(text)
    error = machine.refused()
    assert (error.code, error.path) == (code, f"{machine.own}:{line}")


HARMLESS = {
    "runner.completion": "strict", "runner.approve.plan": "always",
    "runner.approve.worker": "always", "runner.approve.complete": "always",
    "runner.meta.language": "ja", "runner.meta.format": "yaml", "runner.note.language": "en",
    "runner.note.detail": "full", "runner.note.template": "architecture",
}  # fmt: skip


def written(key: str, value: object) -> str:
    """A settings file with this one setting."""
    tree: Any = value
    for part in reversed(key.split(".")):
        tree = {part: tree}
    return json.dumps(tree)


@pytest.mark.parametrize(("key", "value"), HARMLESS.items())
def test_a_repository_may_make_a_run_ask_and_prove_more(
    machine: Machine, key: str, value: str
) -> None:
    machine.project(written(key, value))
    found: Any = machine.load()
    for part in key.split("."):
        found = getattr(found, part)
    assert found == value


def test_those_are_all_that_it_may() -> None:
    assert set(HARMLESS) == set(PROJECT_MAY)


EVERYTHING_ELSE = sorted(
    key
    for key in all_keys()
    if key.startswith("runner.")
    and key not in PROJECT_MAY
    # Sections are refused for what they hold.
    and not any(other.startswith(f"{key}.") for other in all_keys())
)


TRIED = (
    *("1", ["x"], "x", {"A": "a"}, "key", "full", "read", "extend", "ask", "hard", "missing"),
    *("none", "60m", "change", "8192"),
)
"""For each setting at least one of them is a value that it takes."""


@pytest.mark.parametrize("key", EVERYTHING_ELSE)
def test_a_repository_may_set_nothing_else(machine: Machine, key: str) -> None:
    head, _, name = key.rpartition(".")
    codes = set()
    for value in ("h:1", *TRIED):
        if key.startswith("runner.workers.") or ".candidates." in key:
            machine.project(written(head, [{"kind": "mock", name: value}]))
        else:
            machine.project(written(key, [value] if name == "allow" else value))
        codes.add(machine.refused().code)
    assert "project-setting" in codes
    assert codes <= {"project-setting", "bad-value"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("runner.completion", "judged"),
        ("runner.approve.plan", "never"),
        ("runner.note.template", "notes/mine.md"),
    ],
)
def test_a_repository_may_not_ask_or_prove_less(machine: Machine, key: str, value: str) -> None:
    machine.user(written("runner.approve.plan", "always"))
    machine.project(written(key, value))
    assert machine.refused().code == "project-setting"


def test_a_link_out_of_the_repository_is_not_read(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("runner: {completion: strict}")
    (machine.repo / "agentrunner.yaml").symlink_to(tmp_path / "secret.yaml")
    assert machine.refused().code == "outside"
    (machine.repo / "agentrunner.yaml").unlink()
    (machine.repo / "agentrunner.yaml").symlink_to("nowhere")
    assert machine.refused().code == "unreadable"


def test_a_task_file_of_that_name_is_no_settings_file(machine: Machine) -> None:
    machine.project("version: 1\ntask: {prd: {text: y}}\nrunner: {worker: {kind: mock}}\n")
    assert machine.load().runner.worker.kind == "codex-cli"


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"HOME": "/h"}, "/h/.config/agentrunner/config.yaml"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/c"}, "/c/agentrunner/config.yaml"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "c"}, "/h/.config/agentrunner/config.yaml"),
        ({}, None),
    ],
)
def test_where_the_persons_own_file_is(environ: dict[str, str], path: str | None) -> None:
    assert user_file(environ) == (Path(path) if path else None)


def test_each_setting_in_force_and_where_it_comes_from(machine: Machine) -> None:
    machine.user("runner:\n  budget: {usd: 5}\n  worker:\n    env: {A: secret, B: env:HOME}\n")
    machine.project("runner: {approve: {plan: always}}")
    environ = {"HOME": str(machine.home), "OPENAI_MODEL": "m", "META_TIMEOUT_SEC": "7"}
    spec = machine.load(
        "{sandbox: {network: none}}",
        environ=environ, auto=True, overrides=["runner.stuck_after=0"],
    )  # fmt: skip
    found = {
        name: (value, where)
        for name, value, where in settings_of(spec.runner, spec.places, environ)
    }
    assert found == {
        "runner.approve.plan": ("always", f"{machine.repo}/agentrunner.yaml:1"),
        "runner.budget.usd": ("5", f"{machine.own}:2"),
        "runner.meta.model": ("m", "OPENAI_MODEL"),
        "runner.meta.timeout_sec": ("7", "META_TIMEOUT_SEC"),
        "runner.worker.env.A": ("(a text, not shown)", f"{machine.own}:4"),
        "runner.worker.env.B": ("env:HOME", f"{machine.own}:4"),
        "runner.stuck_after": ("0", "--set runner.stuck_after"),
        "runner.sandbox.network.policy": ("none", "task.yaml:3"),
        "runner.sandbox.network.allow": ("[]", "task.yaml:3"),
    }


def test_all_settings_are_shown_on_demand_and_without_a_task(machine: Machine) -> None:
    environ = {"HOME": str(machine.home)}
    machine.user("runner: {workers: [{kind: codex}, {kind: claude, model: opus}]}")
    runner, places = load_settings(machine.repo, environ, auto=True)
    short = settings_of(runner, places, environ)
    assert short == [
        ("runner.workers[0].kind", "codex-cli", f"{machine.own}:1"),
        ("runner.workers[1].kind", "claude-code", f"{machine.own}:1"),
        ("runner.workers[1].model", "opus", f"{machine.own}:1"),
    ]
    everything = settings_of(runner, places, environ, everything=True)
    assert ("runner.meta.kind", "auto", "default") in everything
    assert ("runner.workers[1].max_run_time_sec", "1800", "default") in everything
    assert set(short) < set(everything)
