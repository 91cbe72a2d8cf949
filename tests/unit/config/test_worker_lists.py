"""`runner.workers`: several who may work, each checked like the only one, at its own place."""

from __future__ import annotations

from typing import Any

import pytest

from agentrunner.config.agents import OF_ONE_KIND, AssessSpec, PlannerSpec, WorkerSpec
from agentrunner.config.layers import KINDS
from agentrunner.config.spec import TaskSpec
from agentrunner.errors import UsageError
from tests.kit.task_files import Load

HEAD = "version: 1\ntask: {prd: {text: x}}\n"
TWO = (
    HEAD + "runner:\n  workers:\n    - {kind: claude, model: opus}\n    - {kind: codex, name: b}\n"
)


def refused(load: Load, text: str, **more: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load(text, **more)
    return caught.value


def test_candidates_in_order_with_names_and_kinds(load: Load) -> None:
    spec = load(TWO)
    assert [(name, own.runner.worker.kind) for name, own in spec.candidates] == [
        ("claude-code", "claude-code"), ("b", "codex-cli"),
    ]  # fmt: skip
    assert spec.runner.worker == spec.runner.workers[0]
    assert TaskSpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    ("items", "code", "place"),
    [
        ("[{kind: mock}, {kind: codx}]", "unknown-kind", "runner.workers[1].kind"),
        ("[{kind: mock}, {kind: auto}]", "unknown-kind", "runner.workers[1].kind"),
        ("[{kind: mock}, {kind: command}]", "missing-key", "runner.workers[1].command"),
        ("[{kind: mock}, {kind: mock, modle: x}]", "unknown-key", "runner.workers[1].modle"),
        ("[{kind: mock}, {env: {A: env:GONE}}]", "env-missing", "runner.workers[1].env.A"),
        ("[{name: a}, {kind: mock, name: a}]", "duplicate-id", "the name a"),
        ("[{kind: mock}, {kind: codex-cli, name: mock}]", "duplicate-id", "the name mock"),
        ("[{}, {}, {kind: mock, name: codex-cli-2}]", "duplicate-id", "the name codex-cli-2"),
        ("[{kind: mock}, {kind: mock, max_run_time_sec: 0}]", "bad-value", "runner.workers[1]"),
        ("codex-cli", "bad-value", "runner.workers must be a list"),
    ],
)
def test_a_mistake_is_told_at_its_place(load: Load, items: str, code: str, place: str) -> None:
    error = refused(load, HEAD + f"runner:\n  retention_days: 3\n  workers: {items}\n")
    assert (error.code, error.path) == (code, "task.yaml:5")
    assert place in error.message


def test_a_secret_of_a_candidate_is_not_shown(load: Load) -> None:
    error = refused(load, HEAD + "runner: {workers: [{env: {A-B: sk-secret}}]}\n")
    assert error.code == "bad-value"
    nested = HEAD + "runner:\n  workers:\n  - env:\n      KEY:\n        sk-secret: x\n"
    assert "sk-secret" not in refused(load, nested).source_line


def test_one_worker_and_several_are_not_both_given(load: Load) -> None:
    error = refused(load, TWO + "  worker: {kind: claude, model: opus}\n")
    assert (error.code, error.path) == ("bad-value", "task.yaml:7")
    error = refused(load, TWO, overrides=["runner.worker.model=x"])
    assert (error.code, error.path) == ("bad-value", "--set runner.worker.model")


@pytest.mark.parametrize(
    ("wanted", "kind", "model"),
    [
        ("b", "codex-cli", None),
        ("claude-code", "claude-code", "opus"),
        ("Claude", "claude-code", "opus"),
        ("mock", "mock", None),
    ],
)
def test_an_option_takes_one_of_them(load: Load, wanted: str, kind: str, model: str | None) -> None:
    runner = load(TWO, options={"worker": wanted}).runner
    assert (runner.worker.kind, runner.worker.model, runner.workers) == (kind, model, [])


OF_A_COMMAND = (
    "runner:\n"
    "  worker: {kind: command, command: [sh, -c, 'true'], env: {A: b}, idle_timeout_sec: 9}\n"
    "  meta: {kind: chat, model: 'a:b', max_loops: 2}\n"
)


@pytest.mark.parametrize(
    ("options", "overrides", "command", "model"),
    [
        ({"worker": "mock"}, [], None, None),
        ({}, ["worker.kind=claude-code"], None, None),
        ({"worker": "codex", "model": "m"}, ["worker.command=/bin/codex"], "/bin/codex", "m"),
        ({"worker": "Command"}, [], ["sh", "-c", "true"], None),
        ({}, ["worker.model=m"], ["sh", "-c", "true"], "m"),
    ],
)
def test_what_a_file_sets_for_one_kind_is_not_given_to_another(
    load: Load,
    options: dict[str, str],
    overrides: list[str],
    command: object,
    model: str | None,
) -> None:
    runner = load(HEAD + OF_A_COMMAND, options=options, overrides=overrides).runner
    assert (runner.worker.command, runner.worker.model) == (command, model)
    assert runner.worker.env == ({"A": "b"} if isinstance(command, list) else {})
    assert runner.worker.idle_timeout_sec == 9 and runner.meta.model == "a:b"
    runner = load(HEAD + OF_A_COMMAND, options={"meta": "mock", "worker": "mock"}).runner
    assert (runner.meta.kind, runner.meta.model, runner.meta.max_loops) == ("mock", None, 2)


def test_each_setting_that_belongs_to_a_kind_is_one() -> None:
    sections: dict[str, Any] = {"meta": PlannerSpec, "assess": AssessSpec, "worker": WorkerSpec}
    assert set(OF_ONE_KIND) == set(sections)
    for section, names in OF_ONE_KIND.items():
        assert set(names) <= set(sections[section].model_fields)
    assert set(KINDS) <= set(OF_ONE_KIND)


def test_its_settings_keep_their_lines(load: Load) -> None:
    assert load(TWO, options={"worker": "claude"}).places["runner.worker.model"] == "task.yaml:5"


def test_who_is_forced_must_be_there(load: Load) -> None:
    force = "  profiles: {worker: {force: c}}\n"
    error = refused(load, TWO + force)
    assert (error.code, error.path) == ("unknown-candidate", "task.yaml:7")
    assert "There is b, claude-code." in error.message
    assert load(TWO + force.replace("c}", "b}")).runner.profiles.worker.force == "b"


@pytest.mark.parametrize(
    "runner",
    [
        "assess: {kind: auto}",
        "assess: {kind: gpt}",
        "profiles: {plan: {candidates: [{kind: checklist}, {kind: auto}]}}",
        "profiles: {assess: {candidates: [{kind: openai}]}}",
    ],
)
def test_planners_beside_the_first_are_of_a_kind(load: Load, runner: str) -> None:
    assert refused(load, HEAD + f"runner: {{{runner}}}\n").code == "unknown-kind"


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("codex", "codex-cli"), ("CLAUDE", "claude-code"), ("Claude_Code", "claude-code"),
        ("cursor-agent", "cursor-cli"), ("Mock", "mock"),
    ],
)  # fmt: skip
def test_workers_have_aliases(load: Load, written: str, kind: str) -> None:
    assert load(HEAD + f"runner: {{worker: {{kind: {written}}}}}\n").runner.worker.kind == kind


def test_planners_have_aliases(load: Load) -> None:
    text = HEAD + (
        "runner: {meta: {kind: Codex}, assess: {kind: claude},"
        " profiles: {plan: {candidates: [{kind: OpenAI_Chat}]}}}\n"
    )
    runner = load(text).runner
    assert runner.assess is not None and runner.profiles.plan is not None
    kinds = (runner.meta.kind, runner.assess.kind, runner.profiles.plan.candidates[0].kind)
    assert kinds == ("codex-cli", "claude-code", "openai-chat")


@pytest.mark.parametrize(
    ("runner", "kinds"),
    [
        ("", ("auto", "auto")),
        ("meta: {max_loops: 2}, worker: {idle_timeout_sec: 3}", ("auto", "auto")),
        ("meta: {kind: mock}, worker: {kind: mock}", ("mock", "mock")),
        ("meta: {model: gpt-5.5}, worker: {model: gpt-5.5}", ("openai-chat", "codex-cli")),
        ("worker: {command: /usr/bin/codex}", ("auto", "codex-cli")),
        ("workers: [{kind: mock}]", ("auto", "mock")),
    ],
)
def test_what_is_left_to_the_machine(load: Load, runner: str, kinds: tuple[str, str]) -> None:
    text = HEAD + f"runner: {{{runner}}}\n"
    found = load(text, auto=True).runner
    assert (found.meta.kind, found.worker.kind) == kinds
    usual = load(text).runner
    assert "auto" not in (usual.meta.kind, usual.worker.kind)


def test_auto_has_no_command(load: Load) -> None:
    text = HEAD + "runner: {worker: {kind: auto, command: [x]}}\n"
    assert refused(load, text).code == "bad-value"
