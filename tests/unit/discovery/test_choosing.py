"""Who plans and who works where nothing says so: what is chosen, and how it is found out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.spec import TaskSpec
from agentrunner.discovery.agents import (
    Choice,
    Cli,
    Facts,
    choose_planner,
    choose_worker,
    look,
    settle,
)
from agentrunner.errors import InfraError
from agentrunner.policy.policy_file import Policy, PolicyFile
from agentrunner.storage.index import RunIndex, RunRow
from agentrunner.storage.run_folder import RunFolder, save_spec
from tests.kit.files import put
from tests.kit.token_issuer import TokenIssuer

CODEX = Cli("codex-cli", True, "CODEX_API_KEY is set")
CLAUDE = Cli("claude-code", True, "its login on this machine", "login")
GEMINI = Cli("gemini-cli", True, "GEMINI_API_KEY is set")
BARE = Cli("codex-cli", True, cure="codex login")
ABSENT = Cli("codex-cli", False)
KEY = "OPENAI_API_KEY is set"
BY_IMAGE = "none is installed here, an image may have it"


def barring(*kinds: str) -> Callable[[str], str]:
    return lambda kind: "policy.yaml does not allow it" if kind in kinds else ""


# -- the choice -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "barred", "provable", "kind", "auth"),
    [
        (Facts((), (CLAUDE, CODEX), KEY), (), True, "openai-chat", None),
        (Facts((), (CLAUDE, CODEX)), (), True, "claude-code", "login"),
        (Facts((), (replace(CLAUDE, ready=""), CODEX)), (), True, "codex-cli", "key"),
        (Facts((), (replace(CLAUDE, installed=False), CODEX)), (), True, "codex-cli", "key"),
        (Facts((), (BARE,)), (), True, "checklist", None),
        (Facts((), (CLAUDE, CODEX), KEY), ("openai-chat",), False, "claude-code", "login"),
        (
            Facts((), (CLAUDE, CODEX), KEY),
            ("openai-chat", "claude-code"),
            False,
            "codex-cli",
            "key",
        ),
        (Facts((), (CLAUDE,)), ("claude-code",), True, "checklist", None),
    ],
)
def test_a_planner_is_the_first_that_is_ready_and_allowed(
    facts: Facts, barred: Sequence[str], provable: bool, kind: str, auth: str | None
) -> None:
    choice = choose_planner(facts, barring(*barred), provable=provable)
    assert (choice.kind, choice.auth) == (kind, auth)
    assert choice.reason


def test_without_a_planner_all_ways_are_listed() -> None:
    facts = Facts((), (replace(CLAUDE, ready="", cure="claude setup-token"), BARE))
    with pytest.raises(InfraError) as caught:
        choose_planner(facts, barring("checklist"), provable=True)
    error = caught.value
    assert (error.code, error.exit_code, error.nothing_spent) == ("no-planner", 5, True)
    assert dict(error.details) == {
        "openai-chat": "export OPENAI_API_KEY=…",
        "claude-code": "claude setup-token",
        "codex-cli": "codex login",
        "checklist": "policy.yaml does not allow it",
    }


def test_a_cli_that_is_not_installed_is_to_be_installed_first() -> None:
    """A key that is set for it is no way to plan yet, and another key would be none either."""
    keyed = replace(CLAUDE, installed=False)
    facts = Facts((), (keyed, replace(BARE, installed=False)))
    with pytest.raises(InfraError) as caught:
        choose_planner(facts, barring(), provable=False)
    ways = dict(caught.value.details)
    assert ways["claude-code"] == "install it (how: agentrunner workers)"
    assert ways["codex-cli"] == "install it (how: agentrunner workers), then codex login"


@pytest.mark.parametrize(
    ("workers", "last", "barred", "expected"),
    [
        ((CODEX,), "", (), Choice("codex-cli", "CODEX_API_KEY is set", "key")),
        (
            (BARE, CLAUDE), "", (),
            Choice("claude-code", "its login on this machine", "login"),
        ),
        (
            (CODEX, CLAUDE), "claude-code", (),
            Choice(
                "claude-code",
                "its login on this machine; used last in this repository of codex-cli, claude-code",
                "login",
            ),
        ),
        (
            (CODEX, CLAUDE), "gemini-cli", (),
            Choice("codex-cli", "CODEX_API_KEY is set; the first of codex-cli, claude-code", "key"),
        ),
        (
            (CODEX, CLAUDE), "codex-cli", ("codex-cli",),
            Choice(
                "claude-code",
                "its login on this machine; not codex-cli: policy.yaml does not allow it",
                "login",
            ),
        ),
        (
            (replace(GEMINI, installed=False), replace(CODEX, installed=False)), "", (),
            Choice("codex-cli", f"CODEX_API_KEY is set; {BY_IMAGE}", "key", ready=False),
        ),
        (
            (ABSENT, replace(GEMINI, installed=False)), "", (),
            Choice("gemini-cli", f"GEMINI_API_KEY is set; {BY_IMAGE}", "key", ready=False),
        ),
    ],
)  # fmt: skip
def test_a_worker_is_one_that_is_ready_and_allowed(
    workers: tuple[Cli, ...], last: str, barred: Sequence[str], expected: Choice
) -> None:
    facts = Facts(workers, (), last_used=last)
    assert choose_worker(facts, barring(*barred), "auto") == expected


def test_of_those_that_are_not_ready_each_is_told_with_its_cure() -> None:
    facts = Facts((BARE, replace(GEMINI, ready="", cure="export GEMINI_API_KEY=…"), CLAUDE), ())
    with pytest.raises(InfraError) as caught:
        choose_worker(facts, barring("claude-code"), "auto")
    error = caught.value
    assert (error.code, error.exit_code, error.remedy) == ("worker-not-ready", 5, "codex login")
    assert error.details == (
        ("codex-cli", "codex login"),
        ("gemini-cli", "export GEMINI_API_KEY=…"),
        ("claude-code", "policy.yaml does not allow it"),
    )


def test_with_neither_an_agent_nor_a_key_that_is_what_is_said() -> None:
    with pytest.raises(InfraError) as caught:
        choose_worker(Facts((ABSENT, Cli("claude-code", False)), ()), barring(), "auto")
    assert (caught.value.code, caught.value.exit_code) == ("worker-not-ready", 5)
    assert caught.value.message.startswith("No coding agent is installed here")


def test_with_docker_by_name_an_image_counts_more_than_what_is_installed() -> None:
    keyed = Cli("codex-cli", False, "CODEX_API_KEY is set")
    facts = Facts((keyed, replace(GEMINI, ready="", cure="a key")), ())
    assert choose_worker(facts, barring(), "docker").kind == "codex-cli"
    with pytest.raises(InfraError):
        choose_worker(facts, barring(), "auto")


# -- looking --------------------------------------------------------------------------------------


class Machine:
    """Programs, a home, a repository and a state folder."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bin, self.home, self.repo = place / "bin", place / "home", place / "repo"
        self.state = place / "state"
        for folder in (self.bin, self.home, self.repo):
            folder.mkdir()
        monkeypatch.setenv("PATH", str(self.bin))
        for name in ("AGENTRUNNER_CODEX", "AGENTRUNNER_CLAUDE"):
            monkeypatch.delenv(name, raising=False)

    def install(self, *names: str) -> None:
        put(self.bin, *names, text="#!/bin/sh\nexit 1\n")  # nothing is started to look

    def environ(self, more: Mapping[str, str]) -> dict[str, str]:
        return {"HOME": str(self.home), **more}

    def task(self, runner: str = "{}", test: str = "null", **environ: str) -> TaskSpec:
        (self.repo / "t.yaml").write_text(
            f"version: 1\ntask: {{prd: {{text: x}}, test: {test}}}\nrunner: {runner}\n"
        )
        source = TaskSource("file", "t.yaml")
        return load_task(source, environ=self.environ(environ), cwd=self.repo, auto=True)

    def look(self, runner: str = "{}", **environ: str) -> Facts:
        spec = self.task(runner, **environ)
        return look(self.repo, spec.runner, self.environ(environ), self.state)

    def ready(self, runner: str = "{}", **environ: str) -> dict[str, str]:
        return {one.kind: one.ready for one in self.look(runner, **environ).workers if one.ready}

    def settle(self, spec: TaskSpec, *caps: Mapping[str, Any], **environ: str) -> TaskSpec:
        policies = [Policy(PolicyFile(version=1, **cap), Path("/p.yaml"), "") for cap in caps]
        done, missing = settle(spec, policies, self.environ(environ), self.state)
        if missing:
            raise missing[0]
        return done

    def used(self, number: int, kind: str, rounds: int = 1) -> None:
        """A run of this repository that had this worker."""
        run_id = f"t-000{number}"
        folder = RunFolder.create(self.state, run_id, self.repo)
        save_spec(folder, self.task(f"{{worker: {{kind: {kind}}}}}"))
        row = RunRow(
            run_id=run_id, task_id="t", title="T", repo=str(self.repo), state="COMPLETE",
            started_at=f"2026-11-21T05:00:0{number}Z", rounds=rounds,
        )  # fmt: skip
        RunIndex(self.state).record(row)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_what_is_installed_and_what_has_a_key(machine: Machine) -> None:
    machine.install("codex", "gemini")
    facts = machine.look(GEMINI_API_KEY="k")
    assert [one.kind for one in facts.workers if one.installed] == ["codex-cli", "gemini-cli"]
    assert [one.kind for one in facts.workers if one.installed and one.ready] == ["gemini-cli"]
    assert [(one.kind, one.installed) for one in facts.planners] == [
        ("claude-code", False), ("codex-cli", True),
    ]  # fmt: skip
    codex = facts.workers[0]
    assert codex.cure.startswith(
        "export CODEX_API_KEY=…, or export OPENAI_API_KEY=…, or `codex login"
    )


def test_a_program_of_the_repository_is_not_taken(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(machine.repo, "codex", text="#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{machine.repo}:.")
    assert not any(one.installed for one in machine.look().workers)


def test_keys_of_the_task_count_for_workers_and_not_for_planners(machine: Machine) -> None:
    machine.install("codex")
    runner = "{worker: {env: {CODEX_API_KEY: env:TEAM_KEY}}}"
    facts = machine.look(runner, TEAM_KEY="k")
    assert facts.workers[0].ready == "CODEX_API_KEY is set"
    assert facts.planners[1].ready == ""


def test_a_login_counts_where_there_is_no_key(machine: Machine) -> None:
    machine.install("codex", "claude")
    with TokenIssuer() as issuer:
        issuer.write_login(machine.home / ".codex" / "auth.json")
    codex, claude = machine.look(CLAUDE_CODE_OAUTH_TOKEN="t").workers[:2]
    assert (codex.ready, codex.auth) == ("its login on this machine", "login")
    assert (claude.ready, claude.auth) == ("its login on this machine", "login")
    assert machine.look(CODEX_API_KEY="k").workers[0].auth == "key"


def test_a_worker_that_needs_more_than_the_box_gives_is_not_ready(machine: Machine) -> None:
    machine.install("cursor-agent", "agent", "aider")
    environ = {"CURSOR_API_KEY": "k", "OPENAI_API_KEY": "k"}
    assert "cursor-cli" not in machine.ready(**environ)
    assert "cursor-cli" in machine.ready("{sandbox: {network: full}}", **environ)
    hosts = machine.look(**environ)
    cursor = next(one for one in hosts.workers if one.kind == "cursor-cli")
    assert cursor.cure.startswith("runner.sandbox.network: {allow: [")
    allowed = cursor.cure.removeprefix("runner.sandbox.network: {allow: [").removesuffix("]}")
    quoted = ", ".join(f'"{host}"' for host in allowed.split(", "))
    assert "cursor-cli" in machine.ready(
        f"{{sandbox: {{network: {{allow: [{quoted}]}}}}}}", **environ
    )
    assert "aider" in machine.ready(**environ)
    assert "aider" not in machine.ready("{sandbox: {kind: none}}", **environ)


def test_the_last_used_is_the_newest_run_that_had_a_worker(machine: Machine) -> None:
    machine.install("codex", "claude")
    keys = {"CODEX_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    assert machine.look(**keys).last_used == ""
    machine.used(1, "codex-cli")
    machine.used(2, "claude-code")
    machine.used(3, "command, command: [x]")
    machine.used(4, "codex-cli", rounds=0)
    machine.used(5, "codex-cli")
    (machine.state / "runs" / "t-0005" / "spec.json").write_text("damaged")
    assert machine.look(**keys).last_used == "claude-code"
    assert machine.look(CODEX_API_KEY="k").last_used == ""  # with one there is nothing to ask


# -- settling -------------------------------------------------------------------------------------


def test_a_task_gets_concrete_kinds_with_reasons(machine: Machine) -> None:
    machine.install("claude")
    spec = machine.settle(machine.task(test="make test"), ANTHROPIC_API_KEY="k", OPENAI_API_KEY="k")
    assert (spec.runner.meta.kind, spec.runner.worker.kind) == ("openai-chat", "claude-code")
    assert spec.runner.meta.model == "gpt-5.5"
    assert spec.chosen == {"meta": "OPENAI_API_KEY is set", "worker": "ANTHROPIC_API_KEY is set"}
    assert TaskSpec.model_validate_json(spec.model_dump_json()) == spec


def test_what_is_named_is_obeyed_whatever_is_there(machine: Machine) -> None:
    spec = machine.task("{meta: {kind: openai-chat}, worker: {kind: codex-cli}}")
    assert machine.settle(spec) is spec


def test_a_login_is_chosen_with_the_kind(machine: Machine) -> None:
    machine.install("claude")
    token = {"CLAUDE_CODE_OAUTH_TOKEN": "t"}
    runner = machine.settle(machine.task(), **token).runner
    assert (runner.worker.auth, runner.meta.kind, runner.meta.auth) == (
        "login", "claude-code", "login",
    )  # fmt: skip
    no_logins = {"worker": {"login": False}, "meta": {"login": False}}
    with pytest.raises(InfraError) as caught:
        machine.settle(machine.task(test="x"), no_logins, **token)
    assert caught.value.code == "worker-not-ready"
    keyed = machine.task("{worker: {auth: key}}", test="x")
    with pytest.raises(InfraError):
        machine.settle(keyed, **token)


def test_a_written_login_is_no_key(machine: Machine) -> None:
    machine.install("claude")
    spec = machine.task("{worker: {auth: login}}", test="x")
    with pytest.raises(InfraError):
        machine.settle(spec, ANTHROPIC_API_KEY="k")


def test_checks_alone_can_plan(machine: Machine) -> None:
    machine.install("codex")
    unchecked = machine.task()
    criteria = "{prd: {text: x}, acceptance_criteria: ['a (check: `true`)']}"
    text = f"version: 1\ntask: {criteria}\n"
    (machine.repo / "t.yaml").write_text(text)
    checked = load_task(
        TaskSource("file", "t.yaml"), environ=machine.environ({}), cwd=machine.repo, auto=True
    )
    plans = {"meta": {"kinds": ["checklist", "openai-chat"]}}
    spec = machine.settle(checked, plans, CODEX_API_KEY="k")
    assert spec.runner.meta.kind == "checklist"
    with pytest.raises(InfraError) as caught:
        machine.settle(unchecked, plans, CODEX_API_KEY="k")
    assert caught.value.code == "no-planner"


def test_a_replayed_run_needs_no_key(machine: Machine) -> None:
    machine.install("codex")
    spec, missing = settle(machine.task(), [], machine.environ({}), machine.state, replays=True)
    runner = spec.runner
    assert not missing
    assert (runner.meta.kind, runner.worker.kind) == ("openai-chat", "codex-cli")


def test_what_cannot_be_chosen_is_told_together(machine: Machine) -> None:
    machine.install("codex")
    spec, missing = settle(machine.task(), [], machine.environ({}), machine.state)
    assert [error.code for error in missing] == ["no-planner", "worker-not-ready"]
    assert (spec.runner.meta.kind, spec.runner.worker.kind) == ("openai-chat", "codex-cli")
