"""`langgraph dev` on the checkout's langgraph.json, driven through its API."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from agentrunner.config.spec import TaskSpec
from agentrunner.engine.retention import collect_garbage
from agentrunner.storage.locks import repository_lock
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from tests.kit.bwrap import require_bwrap
from tests.kit.docker import IMAGE as HOST_IMAGE
from tests.kit.docker import require_docker
from tests.kit.metas import Item, assess, consult, finish, plan, work
from tests.kit.missing import missing
from tests.kit.model_server import Fault, ModelServer, ScriptItem
from tests.kit.process import living, until
from tests.kit.project import FIX, PYTEST, Project

CONFIG = Path(__file__).parents[2] / "langgraph.json"
GRAPH = "agentrunner"
CHECK = {"description": "add adds.", "check": "grep -q 'a + b' calc.py"}
NAMED = {"description": "add adds two numbers.", "check": {"kind": "test", "name": "test_add"}}
SCRIPT = [plan(), consult("Add or multiply?", "add", "multiply"), work(), finish(), assess()]


@pytest.fixture(scope="module")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server") / "state"


@pytest.fixture(scope="module")
def url(state_dir: Path) -> Iterator[str]:
    """A server, started as a person starts it, but for where it keeps what it keeps."""
    require_bwrap()
    langgraph = Path(sys.executable).with_name("langgraph")
    if not langgraph.exists():
        missing("langgraph-cli is not installed (the extra `studio`)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = state_dir.parent
    options = ["--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port)]
    with (place / "log").open("wb") as log:
        server = subprocess.Popen(
            [langgraph, "dev", "--config", CONFIG, *options],
            cwd=place,
            env={
                **os.environ,
                "AGENTRUNNER_STATE_DIR": str(state_dir),
                "OPENAI_API_KEY": "sk-studio",
                "LANGGRAPH_CLI_NO_ANALYTICS": "1",
                "LANGGRAPH_NO_VERSION_CHECK": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        until(lambda: server.poll() is not None or _answers(port), "the server answers", 60)
        assert server.poll() is None, (place / "log").read_text()[-3000:]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(timeout=30)
        finally:
            server.kill()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ok") as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.fixture
async def client(url: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=url) as client:
        yield client


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


def task_of(spec: TaskSpec) -> dict[str, Any]:
    """The input of a run."""
    assert spec.task_file is not None
    return {"task_file": spec.task_file.path}


@pytest.fixture(
    params=["default", *(pytest.param(one, marks=pytest.mark.whole) for one in ("bwrap", "docker"))]
)
def box(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a task says of the sandbox, and what its worker needs there."""
    if request.param != "docker":
        kind = "auto" if request.param == "default" else "bwrap"
        return {"sandbox": {"kind": kind}}
    require_docker()
    shown = ["/usr", sys.prefix, sys.base_prefix]
    return {
        "sandbox": {"kind": "docker", "read_paths": shown},
        "worker": {"docker_image": HOST_IMAGE},
    }


async def test_the_server_finds_no_call_that_blocks_it_in_any_sandbox(
    client: LangGraphClient, tmp_path: Path, box: dict[str, Any]
) -> None:
    """`langgraph dev` ends a run at the first one; two approvals, a test by name and a proof."""
    project = Project.make(tmp_path)
    runner = {
        **box,
        "meta": {"kind": "checklist"},
        "approve": {"plan": "always", "worker": "always"},
    }
    spec = project.spec(FIX, acceptance_criteria=[CHECK, NAMED], test=PYTEST, runner=runner)
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, GRAPH, input=task_of(spec))
    for kind in ("plan", "worker"):
        state = await client.threads.get_state(thread)
        assert state["interrupts"], (await client.threads.get(thread)).get("error")
        (question,) = state["interrupts"]
        assert question["value"]["kind"] == kind
        answer = {"id": question["value"]["id"], "decision": "approve"}
        ended = await client.runs.wait(thread, GRAPH, command={"resume": answer})
    assert isinstance(ended, dict)
    assert (ended["state"], ended["verdict"]["reason"]) == ("COMPLETE", "complete"), ended


async def test_a_planner_that_is_away_is_waited_for_and_asked_about(
    client: LangGraphClient, project: Project
) -> None:
    """Nothing on these ways blocks the server: a retry, a wait for a quota, a person's answer."""
    away: list[ScriptItem] = [
        Fault(503, "overloaded", {"Retry-After": "0"}),
        Fault(429, "insufficient_quota", {"Retry-After": "2"}),
    ]
    script = [item["reply"] for item in (plan(), work(), finish(), assess())]
    well = [json.dumps(one) for one in script]
    garbage = ["I think we are done!"] * 4
    with ModelServer(chat_script=[*away, *garbage, *well]) as server:
        meta = {"kind": "openai-chat", "model": "m-1", "base_url": server.base_url}
        spec = project.spec(FIX, acceptance_criteria=[CHECK], test=PYTEST, runner={"meta": meta})
        thread = (await client.threads.create())["thread_id"]
        parts = client.runs.stream(thread, GRAPH, input=task_of(spec), stream_mode=["custom"])
        told = [part.data async for part in parts if part.event == "custom"]
        state = await client.threads.get_state(thread)
        assert state["interrupts"], (await client.threads.get(thread)).get("error")
        (question,) = state["interrupts"]
        assert question["value"]["kind"] == "planner"
        (waited,) = [one for one in told if one["event"] == "waiting"]
        assert waited["role"] == "meta" and waited["told"] is not None
        answer = {"id": question["value"]["id"], "text": "again"}
        ended = await client.runs.wait(thread, GRAPH, command={"resume": answer})
    assert isinstance(ended, dict)
    assert (ended["state"], ended["verdict"]["reason"]) == ("COMPLETE", "complete"), ended


@pytest.mark.whole
async def test_what_the_planner_looks_at_is_shown(
    client: LangGraphClient, project: Project, state_dir: Path
) -> None:
    looks = [{"read": "calc.py"}, {"search": "def add"}]
    looked: Item = {"reply": {"type": "look", "version": 1, "payload": {"looks": looks}}}
    script = project.repo.parent / "script.yaml"
    script.write_text(yaml.safe_dump([plan(), looked, work(), finish(), assess()]))
    meta = {"kind": "script", "script": str(script)}
    spec = project.spec(FIX, acceptance_criteria=[CHECK], runner={"meta": meta})
    thread = (await client.threads.create())["thread_id"]
    parts = client.runs.stream(thread, GRAPH, input=task_of(spec), stream_mode=["custom"])
    told = [part.data async for part in parts if part.event == "custom"]
    calls = [one for one in told if one["event"] == "meta_call"]
    assert [(one["type"], one["looks"]) for one in calls] == [
        ("plan_task", []),
        ("next_action", ["read calc.py", "search def add"]),
        ("next_action", []),
        ("next_action", []),
        ("completion_assessment", []),
    ]
    ended = (await client.threads.get_state(thread))["values"]
    assert isinstance(ended, dict)
    assert (ended["state"], ended["counters"]["meta_calls"]) == ("COMPLETE", 5)
    folder = RunFolder.open(state_dir / "studio", ended["run"]["run_id"])
    assert "1: def add(a, b):" in (folder.planner_dir / "0002-next_action.request.json").read_text()


async def test_a_task_with_the_mock_meta_and_its_plan_approved(
    client: LangGraphClient, project: Project, state_dir: Path
) -> None:
    runner = {
        "meta": {"kind": "mock"},
        "worker": {"kind": "mock", "command": None},
        "approve": {"plan": "always"},
    }
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, GRAPH, input=task_of(project.spec(runner=runner)))
    assert (await client.threads.get(thread))["status"] == "interrupted"
    (question,) = (await client.threads.get_state(thread))["interrupts"]
    assert question["value"]["kind"] == "plan"
    assert repository_lock(state_dir, project.repo).probe() is None

    answer = {"id": question["value"]["id"], "decision": "approve"}
    ended = await client.runs.wait(thread, GRAPH, command={"resume": answer})
    assert isinstance(ended, dict)
    assert ended["state"] == "COMPLETE"
    assert ended["verdict"]["reason"] == "unproven"
    note = project.read(".agent-runner/task-probe.md")
    assert "**COMPLETE" in note
    assert repository_lock(state_dir, project.repo).probe() is None


async def test_a_question_of_the_planner_is_answered_and_the_work_proven(
    client: LangGraphClient, project: Project, state_dir: Path
) -> None:
    script = project.repo.parent / "script.yaml"
    script.write_text(yaml.safe_dump(SCRIPT))
    meta = {"kind": "script", "script": str(script)}
    spec = project.spec(FIX, acceptance_criteria=[CHECK], runner={"meta": meta})

    thread = (await client.threads.create())["thread_id"]
    parts = client.runs.stream(
        thread, GRAPH, input=task_of(spec), stream_mode=["custom"], durability="sync"
    )
    told = [part.data["event"] async for part in parts if part.event == "custom"]
    assert told[-4:] == ["meta_call", "decision", "question", "note_written"]
    (question,) = (await client.threads.get_state(thread))["interrupts"]
    assert question["value"]["text"] == "Add or multiply?"
    assert question["value"]["options"] == ["add", "multiply"]

    assert "Add or multiply?" in project.read(".agent-runner/task-probe.md")

    malformed = await client.runs.create(thread, GRAPH, command={"resume": {"id": "x"}})
    await client.runs.join(thread, malformed["run_id"])
    assert (await client.threads.get_state(thread))["interrupts"]

    ended = await client.runs.wait(thread, GRAPH, command={"resume": {"text": "add, please"}})
    assert isinstance(ended, dict)
    assert (ended["state"], ended["verdict"]["reason"]) == ("COMPLETE", "complete")
    assert project.read("calc.py").endswith("return a + b\n")
    (criterion,) = ended["criteria"]
    assert (criterion["status"], criterion["evidence"]) == ("passed", "checked")
    folder = RunFolder.open(state_dir / "studio", ended["run"]["run_id"])
    assert "add, please" in (folder.planner_dir / "0002-next_action.request.json").read_text()
    log = RunLog(folder.log_file)
    assert [record.data["text"] for record in log.records("question")] == ["Add or multiply?"]
    assert [record.data["text"] for record in log.records("answer")] == ["add, please"]
    later = datetime.now(UTC) + timedelta(days=15)
    assert folder.run_id in collect_garbage(state_dir, later)["removed"]


async def test_a_task_that_cannot_be_read_is_told(client: LangGraphClient, tmp_path: Path) -> None:
    thread = (await client.threads.create())["thread_id"]
    gone = str(tmp_path / "gone.yaml")
    ended = await client.runs.wait(thread, GRAPH, input={"task_file": gone}, raise_error=False)
    assert gone in str(ended) and "Try: " in str(ended)
    assert (await client.threads.get(thread))["status"] == "error"


@pytest.mark.whole
async def test_a_sandbox_that_cannot_be_had_is_told_and_blocks_nothing(
    client: LangGraphClient, project: Project
) -> None:
    """No engine, or none with this image: what to do about it, not a call that blocked."""
    runner = {
        "meta": {"kind": "mock"},
        "sandbox": {"kind": "docker"},
        "worker": {"docker_image": "agentrunner.invalid/none:0"},
    }
    thread = (await client.threads.create())["thread_id"]
    task = task_of(project.spec(runner=runner))
    ended = str(await client.runs.wait(thread, GRAPH, input=task, raise_error=False))
    assert "NotRun" in ended and "Blocking" not in ended
    assert "engine" in ended or "agentrunner.invalid/none:0" in ended


async def test_a_cancelled_run_leaves_no_worker_behind_and_can_go_on(
    client: LangGraphClient, project: Project, state_dir: Path
) -> None:
    runner = {"meta": {"kind": "mock"}}
    worker = "[ -e .go ] || { touch .held; sleep 600; }"
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(
        thread, GRAPH, input=task_of(project.spec(worker, runner=runner)), durability="sync"
    )
    held = project.repo / ".held"
    until(held.exists, "the worker works")
    assert living(project.repo)
    await client.runs.cancel(thread, run["run_id"], wait=True)
    lock = repository_lock(state_dir, project.repo)
    until(lambda: lock.probe() is None, "the supervisor is done")
    assert living(project.repo) == {}

    ended = await client.runs.wait(thread, GRAPH, input=None)
    assert isinstance(ended, dict)
    assert [run["outcome"] for run in ended["recent"]] == ["interrupted"]
    assert ended["state"] == "COMPLETE"


async def test_going_back_in_time_starts_no_worker_again(
    client: LangGraphClient, project: Project
) -> None:
    spec = project.spec("echo started >> starts", runner={"meta": {"kind": "mock"}})
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, GRAPH, input=task_of(spec))
    steps = await client.threads.get_history(thread, limit=50)
    (before,) = [step["checkpoint"] for step in steps if step["next"] == ["run_worker"]]
    ended = await client.runs.wait(thread, GRAPH, checkpoint_id=before["checkpoint_id"])
    assert isinstance(ended, dict)
    assert ended["state"] == "COMPLETE"
    assert project.read("starts") == "started\n"
