"""A policy holds for everyone who may work, plan or judge, not for the first alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.policies import Desk

URL = "https://ai.example.org/v1"
ELSEWHERE = "https://elsewhere.example.org/v1"
FINE = {"kind": "codex-cli", "model": "m", "base_url": URL}
"""A first candidate that every policy here allows."""

Breach = tuple[dict[str, Any], dict[str, Any], str, str]
WORKERS: list[Breach] = [
    ({"kinds": ["codex-cli"]}, {"kind": "claude-code"}, "kind", "kinds"),
    ({"models": ["m"]}, {"model": "other"}, "model", "models"),
    ({"models": ["m"]}, {"model": "m", "models": ["m", "other"]}, "models[1]", "models"),
    ({"base_urls": [URL]}, {"base_url": ELSEWHERE}, "base_url", "base_urls"),
    ({"base_urls": [URL]}, {"base_url": f"{URL}/../x"}, "base_url", "base_urls"),
    ({"commands": ["codex"]}, {"command": "/opt/x/codex"}, "command", "commands"),
    ({"commands": ["git"]}, {"kind": "command", "command": ["my-agent"]}, "command", "commands"),
    ({"flags": ["-v"]}, {"flags": ["-v", "--yolo"]}, "flags[1]", "flags"),
    ({"models": ["m"]}, {"model": "m", "flags": ["-m", "other"]}, "flags[0]", "models"),
    ({"env": ["CI_*"]}, {"env": {"X": "env:AWS_SECRET"}}, "env.X", "env"),
    ({"login": False}, {"auth": "login"}, "auth", "login"),
]


@pytest.mark.parametrize(("caps", "worker", "setting", "cap"), WORKERS)
def test_each_worker_is_held(
    desk: Desk, caps: dict[str, Any], worker: dict[str, Any], setting: str, cap: str
) -> None:
    second = {"kind": "codex-cli", "name": "second", **worker}
    error = desk.refused({"worker": caps}, {"workers": [FINE, second]})
    assert error.path.startswith("task.yaml:")
    assert (f"{cap}:" in error.details[0][1]) and "policy.yaml" in error.details[0][1]
    assert "--set" not in error.remedy and "--worker" not in error.remedy
    alone = desk.refused({"worker": caps}, {"worker": worker | {"kind": second["kind"]}})
    assert alone.message == error.message


def test_an_image_is_that_of_every_worker(desk: Desk) -> None:
    caps = {"sandbox": {"images": ["team/worker"]}}
    other = {"kind": "mock", "docker_image": "mine"}
    desk.refused(caps, {"workers": [{"kind": "mock"}, other], "sandbox": {"kind": "docker"}})
    runner = desk.held(
        caps, {"workers": [{"kind": "mock"}, FINE], "sandbox": {"kind": "docker"}}
    ).runner
    assert [worker.docker_image for worker in runner.workers] == ["team/worker"] * 2


def test_what_workers_leave_out_is_given_to_each(desk: Desk) -> None:
    caps = {"worker": {"models": ["gpt-*", "m"], "base_urls": [URL]}}
    workers = [{"kind": "claude-code"}, {"kind": "codex-cli", "model": "gpt-5.5"}, {"kind": "mock"}]
    spec = desk.held(caps, {"workers": workers})
    assert [worker.model for worker in spec.runner.workers] == ["m", "gpt-5.5", None]
    assert [worker.base_url for worker in spec.runner.workers] == [URL, URL, None]
    assert spec.runner.worker == spec.runner.workers[0]
    assert [own.runner.worker.model for _, own in spec.candidates] == ["m", "gpt-5.5", None]


def test_a_secret_of_a_second_worker_is_not_shown(desk: Desk) -> None:
    text = (
        "version: 1\ntask: {prd: {text: x}}\nrunner:\n  workers:\n  - kind: mock\n"
        "  - {env: {TOKEN: sk-secret, X: env:AWS_SECRET}}\n"
    )
    policy = desk.policy({"worker": {"env": ["CI_*"]}})
    error = desk.breach(desk.load(text, environ={"AWS_SECRET": "y"}), policy)
    assert (error.path, error.source_line) == ("task.yaml:6", "")


PLANNER = {"kind": "openai-chat", "model": "m", "base_url": URL}
PLANNERS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"kinds": ["openai-chat"]}, {"kind": "claude-code"}, "kinds"),
    ({"models": ["m"]}, {"model": "other"}, "models"),
    ({"models": ["m*"]}, {"kind": "claude-code"}, "models"),
    ({"base_urls": [URL]}, {"base_url": ELSEWHERE}, "base_urls"),
]


@pytest.mark.parametrize("role", ["assess", "meta", "plan", "profile"])
@pytest.mark.parametrize(("caps", "planner", "cap"), PLANNERS)
def test_each_planner_is_held(
    desk: Desk, caps: dict[str, Any], planner: dict[str, Any], cap: str, role: str
) -> None:
    one = {"kind": "openai-chat", **planner}
    runner: dict[str, Any] = {"meta": PLANNER}
    if role == "assess":
        runner["assess"] = one
    else:
        name = {"profile": "assess"}.get(role, role)
        first = {"kind": "openai-chat"}
        runner["profiles"] = {name: {"candidates": [first, one]}}
    error = desk.refused({"meta": caps}, runner)
    assert f"{cap}:" in error.details[0][1]
    assert error.path.startswith(("task.yaml:", "runner.assess.model (left out)"))


def test_a_judge_of_the_planners_kind_is_held_by_what_it_writes(desk: Desk) -> None:
    caps = {"meta": {"models": ["m"], "base_urls": [URL]}}
    assert desk.held(caps, {"meta": PLANNER, "assess": {"votes": 3}}).runner.assess is not None
    desk.refused(caps, {"meta": PLANNER, "assess": {"model": "other"}})
    desk.refused(caps, {"meta": PLANNER, "assess": {"base_url": ELSEWHERE}})


def test_what_planners_leave_out(desk: Desk) -> None:
    caps = {"meta": {"models": ["gpt-*", "m"], "base_urls": [URL]}}
    profiles = {"plan": {"candidates": [{"kind": "openai-chat"}, {"kind": "claude-code"}]}}
    runner = desk.held(caps, {"profiles": profiles}).runner
    assert (runner.meta.model, runner.meta.base_url) == ("gpt-5.5", URL)
    assert runner.profiles.plan is not None
    same, other = runner.profiles.plan.candidates
    assert (same.model, same.base_url) == (None, None)  # then it is that of runner.meta
    assert (other.model, other.base_url) == ("m", URL)


def test_a_planners_login(desk: Desk) -> None:
    caps = {"meta": {"login": False}}
    login = {"auth": "login"}
    desk.refused(caps, {"meta": {"kind": "claude-code", **login}})
    candidates = [{"kind": "codex-cli", **login}]
    desk.refused(caps, {"profiles": {"meta": {"candidates": candidates}}})
    runner = desk.held(
        caps,
        {
            "meta": {"kind": "claude-code"},
            "profiles": {"plan": {"candidates": [{"kind": "codex-cli"}]}},
        },
    ).runner
    assert runner.profiles.plan is not None
    assert (runner.meta.auth, runner.profiles.plan.candidates[0].auth) == ("key", "key")
    assert desk.held(caps, {"meta": {"kind": "openai-chat"}}).runner.meta.auth is None
    allowed = desk.held({}, {"meta": {"kind": "claude-code", "auth": "login"}}).runner
    assert allowed.meta.auth == "login"


def test_a_login_goes_to_its_own_provider_only(desk: Desk) -> None:
    caps = {"meta": {"base_urls": [URL]}}
    runner = desk.held(caps, {"meta": {"kind": "claude-code", "auth": "login"}}).runner
    assert runner.meta.base_url is None


def test_kinds_left_to_the_machine_are_held_when_they_are_settled(desk: Desk) -> None:
    caps = {"worker": {"kinds": ["codex-cli"]}, "meta": {"kinds": ["checklist"]}}
    runner = desk.held(caps, {}, auto=True).runner
    assert (runner.meta.kind, runner.worker.kind) == ("auto", "auto")
    assert desk.refused({"worker": {"kinds": []}}, {}, auto=True).path.startswith("runner.worker")


def test_settings_files_are_capped_as_the_task_is(desk: Desk) -> None:
    file = desk.place / ".config" / "agentrunner" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("runner:\n  worker: {kind: codex-cli, auth: login}\n", encoding="utf-8")
    text = "version: 1\ntask: {prd: {text: x}}\n"
    spec = desk.load(text, environ={"HOME": str(desk.place)})
    error = desk.breach(spec, desk.policy({"worker": {"login": False}}))
    assert (error.path, error.source_line) == (f"{file}:2", "")
