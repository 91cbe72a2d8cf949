"""A task can only be narrower than a policy: what is refused, what is filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentrunner.config.spec import TaskSpec
from agentrunner.errors import UsageError
from agentrunner.policy.check import check_loops, narrowed
from agentrunner.policy.match import covered, is_below, matches, may_reach
from agentrunner.registry import SANDBOXES
from agentrunner.sandboxes.docker import DockerSandbox
from agentrunner.sandboxes.local import LocalSandbox
from tests.kit.policies import Desk
from tests.kit.task_files import ENVIRON

DIGEST = "sha256:" + "0" * 64
COMMAND = {"kind": "command", "command": ["my-agent"]}


Breach = tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]
BREACHES: list[Breach] = [
    ({"meta": {"see": "change"}}, {"meta": {"see": "repo"}}, {}, "see"),
    ({"meta": {"see": "nothing"}}, {"meta": {"see": "change"}}, {}, "see"),
    ({"meta": {"see": "change"}}, {"meta": {"see_repo": "read"}}, {}, "see"),
    ({"sandbox": {"kinds": ["docker"]}}, {"sandbox": {"kind": "none"}}, {}, "kinds"),
    ({"sandbox": {"kinds": ["none"]}}, {"sandbox": {"kind": "auto"}}, {}, "kinds"),
    ({"sandbox": {"network": "none"}}, {"sandbox": {"network": "allowlist"}}, {}, "network"),
    ({"sandbox": {"network": "allowlist"}}, {"sandbox": {"network": "full"}}, {}, "network"),
    ({"sandbox": {"network": "allowlist"}}, {"sandbox": {"kind": "none"}}, {}, "network"),
    ({"sandbox": {"hosts": []}}, {"sandbox": {"network": "full"}}, {}, "hosts"),
    (
        {"sandbox": {"hosts": ["*.example.org:443"]}},
        {"sandbox": {"network": {"allow": ["example.org:443"]}}},
        {},
        "hosts",
    ),
    (
        {"sandbox": {"hosts": ["packages.example.org:443"]}},
        {},
        {"setup": {"command": "x", "network": ["packages.example.org:80"]}},
        "hosts",
    ),
    (
        {"sandbox": {"hosts": ["db.local:5432"]}},
        {},
        {"test": {"command": "x", "network": ["db.local:5432@10.0.0.5"]}},
        "hosts",
    ),
    (
        {"sandbox": {"network": "none"}},
        {},
        {"test": {"command": "x", "network": ["packages.example.org:443"]}},
        "network",
    ),
    (
        {"sandbox": {"hosts": ["packages.example.org:443"]}},
        {"sandbox": {"image_from": "Dockerfile", "pull": "missing"}},
        {},
        "hosts",
    ),
    (
        {"sandbox": {"images": [f"team/*@{DIGEST}"]}},
        {"worker": {"docker_image": "team/worker:latest"}},
        {},
        "images",
    ),
    ({"sandbox": {"images": ["team/*"]}}, {"sandbox": {"kind": "docker"}}, {}, "images"),
    (
        {"sandbox": {"images": ["team/worker"]}},
        {"sandbox": {"image_from": "Dockerfile"}},
        {},
        "images",
    ),
    ({"sandbox": {"read_paths": ["/usr"]}}, {"sandbox": {"read_paths": ["/opt"]}}, {}, "read_p"),
    ({"sandbox": {"read_paths": []}}, {"sandbox": {"read_paths": ["/usr"]}}, {}, "read_paths"),
    ({"sandbox": {"caches": ["go"]}}, {"sandbox": {"caches": ["go", "npm"]}}, {}, "caches"),
    ({"sandbox": {"caches": "none"}}, {"sandbox": {"caches": ["go"]}}, {}, "caches"),
    (
        {"sandbox": {"keep_files_up_to": "50m"}},
        {"sandbox": {"keep_files_up_to": "1g"}},
        {},
        "keep_files_up_to",
    ),
    ({"worker": {"kinds": ["codex-cli"]}}, {"worker": COMMAND}, {}, "kinds"),
    ({"worker": {"kinds": ["command"]}}, {}, {}, "kinds"),
    ({"worker": {"models": ["gpt-5*"]}}, {"worker": {"model": "gpt-6"}}, {}, "models"),
    ({"worker": {"models": ["gpt-5*"]}}, {}, {}, "models"),
    (
        {"worker": {"base_urls": ["https://api.openai.com/v1"]}},
        {"worker": {"base_url": "https://api.openai.com.evil.test/v1"}},
        {},
        "base_urls",
    ),
    ({"worker": {"commands": []}}, {"worker": COMMAND}, {}, "commands"),
    ({"worker": {"commands": ["my-agent"]}}, {"worker": COMMAND | {"command": "my-agent"}}, {}, ""),
    ({"worker": {"commands": []}}, {"worker": {"command": "/opt/codex"}}, {}, "commands"),
    ({"worker": {"models": ["m"]}}, {"worker": {"flags": ["-c", "model=x"]}}, {}, "models"),
    ({"worker": {"flags": ["--fast"]}}, {"worker": {"flags": ["--slow"]}}, {}, "flags"),
    (
        {"worker": {"env": ["CI_*"]}},
        {"worker": {"env": {"TOKEN": "env:AWS_SECRET"}}},
        {},
        "env",
    ),
    ({"worker": {"login": False}}, {"worker": {"auth": "login"}}, {}, "login"),
    ({"meta": {"kinds": ["checklist"]}}, {}, {}, "kinds"),
    ({"meta": {"models": ["gpt-5.5"]}}, {"meta": {"model": "gpt-6"}}, {}, "models"),
    (
        {"meta": {"base_urls": ["https://ai.example.org"]}},
        {"meta": {"base_url": "https://elsewhere.test/v1"}},
        {},
        "base_urls",
    ),
    ({"meta": {"max_loops": 3}}, {"meta": {"max_loops": 4}}, {}, "max_loops"),
    ({"budget": {"wall_sec": 60}}, {"budget": {"wall_sec": None}}, {}, "wall_sec"),
    ({"budget": {"usd": 1}}, {"budget": {"usd": 1.5}}, {}, "usd"),
    ({"budget": {"tokens": 10}}, {"budget": {"tokens": 11}}, {}, "tokens"),
    ({"budget": {"meta_calls": 0}}, {"budget": {"meta_calls": 1}}, {}, "meta_calls"),
    ({"budget": {"worker_runs": 2}}, {"budget": {"worker_runs": 3}}, {}, "worker_runs"),
    ({"completion": "evidence"}, {"completion": "judged"}, {}, "completion"),
    ({"completion": "strict"}, {"completion": "evidence"}, {}, "completion"),
]


@pytest.mark.parametrize(("caps", "runner", "task", "line"), BREACHES)
def test_what_goes_beyond_is_refused_with_the_line_of_the_policy(
    desk: Desk, caps: dict[str, Any], runner: dict[str, Any], task: dict[str, Any], line: str
) -> None:
    error = desk.refused(caps, runner, task)
    label, told = error.details[0]
    assert label == "policy"
    assert "policy.yaml:" in told
    assert line in told
    assert error.remedy


class TeamContainers(DockerSandbox):
    """A sandbox from outside that is made of an image."""

    kind = "team-containers"


def test_the_image_of_a_sandbox_from_outside_is_held_too(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SANDBOXES.own, TeamContainers.kind, f"{__name__}:TeamContainers")
    sandbox = {"sandbox": {"kind": TeamContainers.kind}}
    assert "images" in desk.refused({"sandbox": {"images": ["team/*"]}}, sandbox).details[0][1]
    held = desk.held({"sandbox": {"images": ["team/worker"]}}, sandbox)
    assert held.runner.worker.docker_image == "team/worker"
    assert held.runner.sandbox.has_image


class PlainUser(LocalSandbox):
    """A sandbox from outside that isolates nothing."""

    kind = "plain-user"


def test_a_sandbox_from_outside_that_isolates_nothing_is_no_way_out(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SANDBOXES.own, PlainUser.kind, f"{__name__}:PlainUser")
    sandbox = {"sandbox": {"kind": PlainUser.kind}}
    assert "network" in desk.refused({"sandbox": {"network": "none"}}, sandbox).details[0][1]


def test_both_lines_are_named(desk: Desk) -> None:
    error = desk.refused({"budget": {"usd": 1}}, {"budget": {"usd": 9}})
    assert (error.path, error.source_line) == ("task.yaml:7", "usd: 9")
    assert error.details == (
        ("policy", f"{desk.policy({'budget': {'usd': 1}}).path}:3     usd: 1"),
    )
    assert error.remedy == "--set runner.budget.usd=1"


def test_a_setting_that_was_left_out_is_named_as_such(desk: Desk) -> None:
    assert desk.refused({"meta": {"kinds": ["mock"]}}).path == "runner.meta.kind (left out)"


def test_a_line_of_env_is_not_shown(desk: Desk) -> None:
    env = {"A": "env:AWS_SECRET"}
    error = desk.refused({"worker": {"env": []}}, {"worker": {"env": env}})
    assert error.path.startswith("task.yaml:")
    assert error.source_line == ""


def test_a_line_that_holds_env_too_is_not_shown(desk: Desk) -> None:
    text = (
        "version: 1\ntask: {prd: {text: x}}\n"
        "runner: {worker: {model: big, env: {K: s3cret-word}}}\n"
    )
    with pytest.raises(UsageError) as refusal:
        narrowed(desk.load(text), [desk.policy({"worker": {"models": ["small"]}})], ENVIRON)
    assert (refusal.value.path, refusal.value.source_line) == ("task.yaml:3", "")


@pytest.mark.parametrize(
    ("how", "path"),
    [
        ({"options": {"sandbox": "none"}}, "--sandbox"),
        ({"overrides": ["runner.sandbox.kind=none"]}, "--set runner.sandbox.kind"),
        ({"options": {"max_loops": 9}}, "--max-loops"),
    ],
)
def test_options_are_capped_as_the_task_is(desk: Desk, how: dict[str, Any], path: str) -> None:
    caps = {"sandbox": {"kinds": ["bwrap"]}, "meta": {"max_loops": 1}}
    assert desk.refused(caps, {"meta": {"max_loops": 1}}, **how).path == path


def test_every_breach_is_told_at_once(desk: Desk) -> None:
    caps = {"sandbox": {"kinds": ["bwrap"]}, "budget": {"usd": 1}}
    error = desk.refused(caps, {"sandbox": {"kind": "docker"}, "budget": {"usd": 2}})
    assert [label for label, _ in error.details] == ["policy", "also"]


def test_a_planner_sees_no_more_than_a_policy_allows(desk: Desk) -> None:
    policy = desk.policy({"meta": {"see": "change"}})
    assert narrowed(desk.task({}, {}), [policy], ENVIRON).runner.meta.see == "change"
    less = narrowed(desk.task({"meta": {"see": "nothing"}}, {}), [policy], ENVIRON)
    assert less.runner.meta.see == "nothing"
    stored = narrowed(desk.task({"meta": {"see": "repo"}}, {}), [policy], ENVIRON, stored=True)
    assert stored.runner.meta.see == "change"


def test_what_a_task_leaves_out_is_given_by_the_policy(desk: Desk) -> None:
    caps: dict[str, Any] = {
        "sandbox": {"kinds": ["bwrap", "none"], "network": "none", "images": ["a", "b"]},
        "worker": {"models": ["gpt-*", "gpt-5.5"], "base_urls": ["https://ai.example.org/v1"]},
        "meta": {"models": ["small"], "max_loops": 2, "base_urls": ["https://ai.example.org/v1"]},
        "budget": {"wall_sec": 60, "meta_calls": 5, "worker_runs": 3, "tokens": 1000, "usd": 2.5},
        "completion": "strict",
    }
    runner = desk.held(caps).runner
    assert runner.sandbox.kind == "bwrap"
    assert runner.sandbox.network is not None
    assert runner.sandbox.network.policy == "none"
    assert runner.worker.docker_image is None  # bwrap has none
    assert (runner.worker.model, runner.meta.model) == ("gpt-5.5", "small")
    assert runner.worker.base_url == runner.meta.base_url == "https://ai.example.org/v1"
    assert runner.meta.max_loops == 2
    assert runner.budget.model_dump(include=set(caps["budget"])) == caps["budget"]
    assert runner.completion == "strict"


def test_a_narrower_task_is_left_as_it_is(desk: Desk) -> None:
    runner = {
        "completion": "strict",
        "sandbox": {
            "kind": "docker",
            "network": {"allow": ["a.example.org:443", "*.b.example.org:443"]},
            "read_paths": ["/usr/share"],
            "caches": ["go"],
        },
        "worker": {
            "model": "gpt-5.5",
            "base_url": "https://ai.example.org/v1/team",
            "docker_image": f"team/worker@{DIGEST}",
            "env": {"TOKEN": "env:CI_TOKEN", "LEVEL": "literal:env:debug"},
            "flags": ["--fast"],
        },
        "meta": {"kind": "checklist", "max_loops": 1},
        "budget": {"wall_sec": 30, "usd": 0},
    }
    caps = {
        "sandbox": {
            "kinds": ["docker"],
            "network": "allowlist",
            "hosts": ["*.example.org:443"],
            "images": ["team/*@sha256:*"],
            "read_paths": ["/usr"],
            "caches": ["go", "npm"],
        },
        "worker": {
            "kinds": ["codex-cli"],
            "models": ["gpt-5.*"],
            "base_urls": ["https://ai.example.org/v1/"],
            "commands": [],
            "flags": ["--fast"],
            "env": ["CI_*"],
            "login": False,
        },
        "meta": {"kinds": ["checklist"], "models": [], "base_urls": [], "max_loops": 1},
        "budget": {"wall_sec": 30, "usd": 0},
        "completion": "evidence",
    }
    before = desk.task(runner, {})
    after = narrowed(before, [desk.policy(caps)], ENVIRON)
    assert after.runner == before.runner
    assert [Path(source.path).name for source in after.policies] == ["policy.yaml"]


def test_auto_chooses_among_the_allowed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert desk.held({"sandbox": {"kinds": ["docker", "bwrap"]}}).runner.sandbox.kind == "auto"
    assert desk.held({"sandbox": {"kinds": ["docker"]}}).runner.sandbox.kind == "docker"
    monkeypatch.setitem(SANDBOXES.own, TeamContainers.kind, f"{__name__}:TeamContainers")
    held = desk.held({"sandbox": {"kinds": [TeamContainers.kind]}})
    assert held.runner.sandbox.kind == TeamContainers.kind


def test_the_first_image_without_a_star_is_taken(desk: Desk) -> None:
    caps = {"sandbox": {"images": ["team/*", f"team/worker@{DIGEST}"]}}
    assert desk.held(caps).runner.worker.docker_image == f"team/worker@{DIGEST}"


def test_an_image_that_a_person_built_beforehand_is_no_way_out(desk: Desk) -> None:
    caps = {"sandbox": {"network": "allowlist"}}
    box = {"sandbox": {"image_from": "Dockerfile"}}
    assert desk.held(caps, box).runner.sandbox.image_from == "Dockerfile"
    stored = {"sandbox": {"image_from": "Dockerfile", "pull": "missing"}}
    assert desk.held(caps, stored, stored=True).runner.sandbox.pull == "missing"
    assert desk.held({"sandbox": {"network": "full"}}, stored).runner.sandbox.pull == "missing"


def test_the_machines_own_endpoint_is_not_replaced_but_refused(desk: Desk) -> None:
    caps = {"meta": {"base_urls": ["https://ai.example.org"]}}
    environ = {"OPENAI_BASE_URL": "https://elsewhere.test/v1"}
    assert desk.refused(caps, environ=environ).path == "OPENAI_BASE_URL"
    allowed = {"OPENAI_BASE_URL": "https://ai.example.org/v1"}
    assert desk.held(caps, environ=allowed).runner.meta.base_url is None


def test_a_login_goes_to_its_own_provider(desk: Desk) -> None:
    caps = {"worker": {"base_urls": ["https://ai.example.org/v1"]}}
    assert desk.held(caps, {"worker": {"auth": "login"}}).runner.worker.base_url is None


def test_a_worker_without_a_model_is_told_none(desk: Desk) -> None:
    caps = {"worker": {"models": ["gpt-*"], "base_urls": []}}
    assert desk.held(caps, {"worker": COMMAND}).runner.worker.model is None


def test_each_of_several_policies_narrows(desk: Desk) -> None:
    policies = [
        desk.policy({"budget": {"usd": 10}, "sandbox": {"hosts": ["*.example.org:443"]}}, "a.yaml"),
        desk.policy({"budget": {"usd": 5}, "sandbox": {"hosts": ["a.example.org:443"]}}, "b.yaml"),
    ]
    spec = narrowed(desk.task({}, {}), policies, ENVIRON)
    assert spec.runner.budget.usd == 5
    assert [Path(source.path).name for source in spec.policies] == ["a.yaml", "b.yaml"]
    assert may_reach(spec, "a.example.org:443")
    assert not may_reach(spec, "b.example.org:443")


def test_numbers_of_a_stored_task_are_lowered_the_rest_is_refused(desk: Desk) -> None:
    runner = {"budget": {"usd": 50}, "meta": {"max_loops": 9}}
    caps = {"budget": {"usd": 1}, "meta": {"max_loops": 2}}
    spec = desk.held(caps, runner, stored=True)
    assert (spec.runner.budget.usd, spec.runner.meta.max_loops) == (1, 2)
    none = {"sandbox": {"kind": "none"}}
    error = desk.refused({"sandbox": {"kinds": ["bwrap"]}}, none, stored=True)
    assert error.remedy.startswith("start a new run")


def test_a_stored_task_keeps_its_places(desk: Desk) -> None:
    spec = desk.task({"budget": {"usd": 9}}, {})
    again = TaskSpec.model_validate_json(spec.model_dump_json())
    with pytest.raises(UsageError) as refusal:
        narrowed(again, [desk.policy({"budget": {"usd": 1}})], ENVIRON)
    assert refusal.value.path == "task.yaml:7"


def test_held_twice_is_held_once(desk: Desk) -> None:
    policy = desk.policy({"budget": {"usd": 1}, "sandbox": {"hosts": []}})
    spec = narrowed(desk.task({}, {}), [policy], ENVIRON)
    assert narrowed(spec, [policy], ENVIRON) == spec


def test_the_rounds_of_a_new_attempt_are_capped(desk: Desk) -> None:
    policy = desk.policy({"meta": {"max_loops": 2}})
    check_loops(2, [policy])
    check_loops(None, [policy])
    with pytest.raises(UsageError) as refusal:
        check_loops(3, [policy])
    assert refusal.value.path == "--max-loops"


@pytest.mark.parametrize(
    ("host", "caps", "allowed"),
    [
        ("a.example.org:443", ["*.example.org:443"], True),
        ("A.Example.org:443", ["a.example.org:443"], True),
        ("example.org:443", ["*.example.org:443"], False),
        ("evil-example.org:443", ["*.example.org:443"], False),
        ("a.example.org:444", ["*.example.org:443"], False),
        ("*.example.org:443", ["*.example.org:443"], True),
        ("*.a.example.org:443", ["*.example.org:443"], True),
        ("*.example.org:443", ["*.a.example.org:443"], False),
        ("*.example.org:443", ["a.example.org:443"], False),
        ("db.local:1@10.0.0.5", ["db.local:1@10.0.0.5"], True),
        ("db.local:1@10.0.0.6", ["db.local:1@10.0.0.5"], False),
        ("db.local:1", ["db.local:1@10.0.0.5"], False),
        ("db.local:1@10.0.0.5", ["db.local:1"], False),
        ("a.example.org:443", [], False),
    ],
)
def test_hosts_are_covered_only_by_what_means_them(
    host: str, caps: list[str], allowed: bool
) -> None:
    assert covered(host, caps) is allowed


@pytest.mark.parametrize(
    ("url", "below"),
    [
        ("https://api.test/v1", True),
        ("https://api.test:443/v1/", True),
        ("https://api.test/v1/team", True),
        ("https://api.test/v12", False),
        ("https://api.test/v1/../admin", False),
        ("https://api.test/v1/%2E%2e/admin", False),
        (r"https://api.test/v1/x\..\..\admin", False),
        ("http://api.test/v1", False),
        ("https://api.test:444/v1", False),
        ("https://api.test.evil.test/v1", False),
        ("https://api.test@evil.test/v1", False),
        ("https://user@api.test/v1", False),
        ("https://[bad/v1", False),
    ],
)
def test_an_address_is_below_only_with_the_same_origin(url: str, below: bool) -> None:
    assert is_below(url, "https://api.test/v1") is below


def test_only_the_star_is_special() -> None:
    assert matches("gpt-5.5", ["gpt-*"])
    assert not matches("gpt-5", ["gpt-?"])
    assert not matches("a", ["[a]"])
    assert matches("[a]", ["[a]"])


@pytest.mark.parametrize(
    ("cap", "written", "kept"),
    [
        ("10m", None, "10m"),
        ("1g", None, None),
        ("1g", "512m", "512m"),
        ("50m", "50m", "50m"),
    ],
)
def test_how_large_files_are_kept_is_lowered_where_a_policy_says_so(
    desk: Desk, cap: str, written: str | None, kept: str | None
) -> None:
    policy = desk.policy({"sandbox": {"keep_files_up_to": cap}}, "p.yaml")
    runner = {"sandbox": {"keep_files_up_to": written}} if written else {}
    spec = narrowed(desk.task(runner, {}), [policy], ENVIRON)
    assert spec.runner.sandbox.keep_files_up_to == kept


def test_caches_that_are_left_to_us_are_those_that_every_policy_allows(desk: Desk) -> None:
    policies = [
        desk.policy({"sandbox": {"caches": names}}, f"{'-'.join(names)}.yaml")
        for names in (["go", "npm"], ["npm"])
    ]
    spec = narrowed(desk.task({}, {}), policies, ENVIRON)
    assert (spec.runner.sandbox.caches, spec.cache_caps) == ("auto", ["npm"])
    assert desk.held({"sandbox": {"caches": "none"}}).cache_caps == []
    assert desk.held({}).cache_caps is None
