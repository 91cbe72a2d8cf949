"""What the first screen says of the network, the worker's endpoint and its key."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentrunner.config.spec import TaskSpec
from agentrunner.engine.attempts import first_state
from agentrunner.engine.header import header_of, left_by_others, news_of_sight, reach_of_all
from agentrunner.engine.queries import ChangedFile
from agentrunner.engine.resolve import resolve
from agentrunner.engine.resources import check_sandbox, with_image
from agentrunner.errors.sandboxes import SandboxUnavailable
from agentrunner.errors.task_files import BadReadPath
from agentrunner.execution.deps import Clock
from agentrunner.launching.route import Cassette
from agentrunner.policy.check import narrowed
from agentrunner.policy.load import load_policies
from agentrunner.storage.index import RunIndex, RunRow
from agentrunner.storage.run_folder import RunFolder
from agentrunner.workers.member import make_members
from tests.kit.project import Project

KEY = {"OPENAI_API_KEY": "sk-" + "1" * 30}


def spec_of(
    place: Path, sandbox: dict[str, Any], worker: dict[str, Any] | None = None, **task: Any
) -> TaskSpec:
    kinds = {
        "worker": {"kind": "codex-cli", "command": None, **(worker or {})},
        "meta": {"kind": "checklist"},
    }
    runner = {**kinds, "sandbox": sandbox}
    return Project.make(place).spec(runner=runner, **task)


def header(spec: TaskSpec) -> dict[str, Any]:
    return header_of(resolve(spec, KEY), sandbox="a box", state=first_state(spec, "a-1", Clock()))


@pytest.mark.parametrize(
    ("sandbox", "reach", "key"),
    [
        ({"kind": "bwrap"}, "its model alone", "OPENAI_API_KEY stays out of the sandbox"),
        (
            {"kind": "docker", "network": {"allow": ["docs.example.org:443"]}},
            "its model, docs.example.org:443",
            "OPENAI_API_KEY stays out of the sandbox",
        ),
        (
            {"kind": "bwrap", "network": "full"},
            "all that this machine reaches",
            "OPENAI_API_KEY stays out of the sandbox",
        ),
        ({"kind": "none"}, "all that this machine reaches", ""),
        ({"kind": "bwrap", "network": "none"}, "nothing", ""),
    ],
)
def test_what_is_reached_and_where_the_key_is(
    sandbox: dict[str, Any], reach: str, key: str, tmp_path: Path
) -> None:
    told = header(spec_of(tmp_path, sandbox))
    assert (told["reach"], told["key"]) == (reach, key)
    assert told["worker"].endswith(" at api.openai.com")


def test_a_worker_without_a_model_reaches_what_is_allowed(tmp_path: Path) -> None:
    worker = {"kind": "command", "command": ["sh", "-c", "true"]}
    allowed = {"kind": "bwrap", "network": {"allow": ["docs.example.org:443"]}}
    assert header(spec_of(tmp_path / "a", allowed, worker))["reach"] == "docs.example.org:443 alone"
    told = header(spec_of(tmp_path / "b", {"kind": "bwrap"}, worker))
    assert (told["reach"], told["key"], told["worker"]) == ("nothing", "", "command")


def test_the_password_of_an_endpoint_is_not_shown(tmp_path: Path) -> None:
    worker = {"base_url": "http://me:secret@models.example:8000/v1"}
    assert header(spec_of(tmp_path, {"kind": "bwrap"}, worker))["worker"].endswith(
        " at models.example:8000"
    )


def test_set_up_and_tests_have_hosts_of_their_own(tmp_path: Path) -> None:
    task: dict[str, Any] = {
        "setup": {"command": "true", "network": ["docs.example.org:443"]},
        "test": {"command": "true"},
    }
    closed = spec_of(tmp_path / "a", {"kind": "bwrap"}, **task)
    assert reach_of_all(closed, make_members(closed)) == {
        "worker": "its model alone", "set-up": "docs.example.org:443", "tests": "nothing",
    }  # fmt: skip
    opened = spec_of(tmp_path / "b", {"kind": "none"}, **task)
    assert set(reach_of_all(opened, make_members(opened)).values()) == {
        "all that this machine reaches"
    }


def test_a_key_that_goes_elsewhere_than_the_planners_is_told(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, {"kind": "bwrap"})
    elsewhere = {**KEY, "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    (said,) = [n for n in resolve(spec, elsewhere).notices if "OPENAI_BASE_URL" in n]
    assert "https://api.openai.com/v1" in said
    assert not [n for n in resolve(spec, KEY).notices if "OPENAI_BASE_URL" in n]
    own = spec_of(tmp_path / "own", {"kind": "bwrap"}, {"base_url": "http://127.0.0.1:1/v1"})
    assert not [n for n in resolve(own, elsewhere).notices if "OPENAI_BASE_URL" in n]


@pytest.mark.parametrize(("model", "told"), [("gpt-5", 0), ("my-own", 1), (None, 1)])
def test_a_budget_that_no_price_can_hold_is_told(
    model: str | None, told: int, tmp_path: Path
) -> None:
    spec = spec_of(tmp_path, {"kind": "bwrap"}, {"model": model})
    budget = spec.runner.budget.model_copy(update={"usd": 1.0})
    runner = spec.runner.model_copy(update={"budget": budget})
    priced = spec.model_copy(update={"runner": runner})
    assert len([n for n in resolve(priced, KEY).notices if "budget.usd" in n]) == told
    assert not [n for n in resolve(spec, KEY).notices if "budget.usd" in n]


def test_what_leaves_is_news_once_for_who_ran_without_it(tmp_path: Path) -> None:
    def news(run_id: str, **meta: str) -> list[str]:
        runner = {"meta": {"kind": "openai-chat", **meta}, "worker": {"kind": "mock"}}
        spec = Project.make(tmp_path / run_id).spec(runner=runner)
        return news_of_sight(spec, RunFolder.create(tmp_path / "state", run_id))

    assert news("first-1a2b") == []  # who begins reads it in the header
    (told,) = news("second-1a2b")
    assert "is shown the change and the repository" in told and "runner.meta.see=nothing" in told
    assert news("third-1a2b", see="nothing") == news("fourth-1a2b", kind="checklist") == []
    seen = RunFolder.create(tmp_path / "state", "fifth-1a2b").root / "repository.json"
    seen.write_text("{}")
    assert news("sixth-1a2b") == []


@pytest.mark.parametrize("written", [False, True])
def test_the_policy_that_leaves_one_sandbox_is_named_where_that_does_not_start(
    written: bool, tmp_path: Path
) -> None:
    settings = {"kind": "docker" if written else "auto"}
    spec = spec_of(tmp_path / "place", settings)
    if written:
        spec = spec.model_copy(update={"places": {"runner.sandbox.kind": "task.yaml:7"}})
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\nsandbox: {kinds: [docker]}\n")
    environ = {**KEY, "AGENTRUNNER_POLICY": str(file), "DOCKER_HOST": "unix:///nowhere"}
    capped = narrowed(spec, load_policies(None, environ, Path(spec.repo)), environ)
    with pytest.raises(SandboxUnavailable) as raised:
        asyncio.run(with_image(resolve(capped, environ), None))
    assert ("policy" in dict(raised.value.details)) is not written


def test_what_no_sandbox_may_show_is_refused_where_it_is_written(tmp_path: Path) -> None:
    spec = spec_of(tmp_path / "place", {"kind": "bwrap", "read_paths": [str(tmp_path / "gone")]})
    spec = spec.model_copy(update={"places": {"runner.sandbox.read_paths": "task.yaml:7"}})
    with pytest.raises(BadReadPath) as raised:
        check_sandbox(resolve(spec, KEY), tmp_path / "state")
    assert raised.value.path == "task.yaml:7"


@pytest.mark.parametrize(
    ("earlier", "told"),
    [
        ({"state": "RUNNING"}, 1),
        ({"state": "PLANNING", "waiting": "ask_human"}, 1),
        ({"state": "RUNNING", "rounds": 0}, 0),
        ({"state": "RUNNING", "part_of": "plan"}, 0),
        ({"state": "FAILED", "finished_at": "2026-11-22"}, 0),
        ({"state": "RUNNING", "undone": True}, 0),
    ],
)
def test_an_unfinished_run_whose_work_is_in_the_tree_is_told(
    earlier: dict[str, Any], told: int, tmp_path: Path
) -> None:
    runner = {"meta": {"kind": "mock"}, "worker": {"kind": "mock"}}
    spec, state = Project.make(tmp_path).spec(runner=runner), tmp_path / "state"
    for run_id, values in (("own-1a2b", {"state": "RUNNING"}), ("old-1a2b", earlier)):
        RunFolder.create(state, run_id)
        row = RunRow(run_id, "t", "T", spec.shown_repo, **{"rounds": 1, **values})
        RunIndex(state).record(row)
    work: list[ChangedFile] = [{"path": "calc.py", "kind": "modified", "added": 1, "removed": 1}]
    notices = left_by_others(spec, "own-1a2b", state, lambda _, run_id: work)
    assert len(notices) == told
    assert all("it changed calc.py" in one and "resume old-1a2b" in one for one in notices)
    assert left_by_others(spec, "own-1a2b", state, lambda _, run_id: []) == []


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"see": "repo"}, "; sees the change and the repository"),
        ({"see": "change"}, "; sees the change"),
        ({"see": "nothing"}, "; sees nothing of the code"),
        ({"kind": "checklist"}, ""),
    ],
)
def test_it_says_what_the_planner_sees(tmp_path: Path, meta: dict[str, str], words: str) -> None:
    planner = {"kind": "openai-chat", "model": "gpt-5.5", **meta}
    if planner["kind"] == "checklist":
        planner = {"kind": "checklist"}
    runner = {"worker": {"kind": "codex-cli", "command": None}, "meta": planner}
    shown = header(Project.make(tmp_path).spec(runner=runner))["planner"]
    assert shown.endswith(words) if words else "sees" not in shown


def test_the_limits_are_those_of_the_task_with_the_silence_that_ends_a_worker(
    tmp_path: Path,
) -> None:
    worker = {"idle_timeout_sec": 90, "max_run_time_sec": 300}
    limits = header(spec_of(tmp_path, {"kind": "bwrap"}, worker))["limits"]
    assert limits == {
        "max_loops": 2, "rounds_at_most": 3, "run_time_sec": 300, "idle_timeout_sec": 90,
        "wall_sec": 3600, "meta_calls": None, "worker_runs": None, "tokens": None, "usd": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("way", "judge", "told"),
    [("record", {}, True), ("replay", {}, True), ("record", {"kind": "openai-chat"}, False)],
)
def test_a_recording_of_a_run_that_asks_no_model_is_said_to_be_none(
    way: str, judge: dict[str, str], told: bool, tmp_path: Path
) -> None:
    runner = {"worker": {"kind": "mock", "command": None}, "meta": {"kind": "checklist"}}
    spec = Project.make(tmp_path).spec(runner={**runner, "assess": judge})
    file = tmp_path / "tape"
    tape = Cassette(record=file) if way == "record" else Cassette(replay=file)
    notices = resolve(spec, KEY, tape).notices
    done = {"record": "recorded in", "replay": "replayed from"}[way]
    nothing = f"Nothing is {done} {file}: neither planner nor worker asks a model."
    assert (nothing in notices) is told
