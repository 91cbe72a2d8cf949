"""What a saved state is made of, and which files are believed."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from agentrunner.config.budget import BudgetSpec
from agentrunner.config.spec import Check
from agentrunner.errors import CheckpointCorrupt
from agentrunner.graph.checkpoints import (
    APPLICATION_ID,
    check_file,
    open_saver,
    serializer,
    state_types,
    thread_config,
)
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import (
    Answer,
    People,
    PersonDecision,
    PersonLine,
    PersonOrder,
    Question,
)
from agentrunner.state.run_state import (
    SCHEMA_VERSION,
    Acceptance,
    Assessment,
    Awaited,
    Baseline,
    CheckOutcome,
    Counters,
    Criterion,
    Evidence,
    Finding,
    FormerCheck,
    Proof,
    RedTest,
    RunInfo,
    TaskContext,
    TestOutcome,
    Verdict,
)
from agentrunner.state.state_model import FileRef, StateModel
from agentrunner.state.worker_runs import CommandSeen, Stuck, Wait, WorkerOrder, WorkerRun

REF = FileRef(path="prompts/1-001.md", size=7, sha256="ab" * 32)
CHECK = Check(kind="command", run="make check", timeout_sec=1.5)
RED = RedTest(name="a::b", file="a.py", line=3, message="1 ≠ 2")
TEST = TestOutcome(
    command="x", exit_code=1, passed=3, failed=1, failing=["a::b"], finding="…", output=REF,
    tail="日本 🎉", duration_sec=0.25, red=[RED], reader="pytest", results=REF, gone=["a::c"],
    known_red=["a::d"], flaky=["a::e"],
)  # fmt: skip
CHECKED = CheckOutcome(
    criterion_id="AC-1", what="x", outcome="failed", before="red", output=REF, reader="go",
    results=REF, red=[RED],
)  # fmt: skip
FINDING = Finding(
    code="tests_changed", message="m", paths=["tests/a b.py"], tests=["a::b"], blocks=False
)
PROOF = Proof(
    target="test", author="worker", grade="shown", text="x", tests=["a::b"], names=["total"],
    notes=["no canary"],
)  # fmt: skip
MODELS: list[StateModel] = [
    REF,
    RunInfo(run_id="r", task_id="t", title="日本", repo="/r", attempt=3, max_loops=0, salt="ff"),
    Counters(loops=1, meta_calls=2**63 - 1, wall_sec=0.125, messages=2),
    Criterion(
        id="AC-1",
        description="x",
        line=7,
        origin="human",
        check=CHECK,
        proof="p",
        grade="shown",
        author="planner",
        tests=["a::b"],
        tests_origin="model",
    ),
    RED,
    TEST,
    CHECKED,
    FINDING,
    PROOF,
    Baseline(
        tree="t",
        origin="o",
        test=TEST,
        checks={"AC-1": "red"},
        test_writes=["out.xml"],
        check_outcomes=[CHECKED],
        reporters={"test": 1},
    ),
    Evidence(
        tree="t",
        test=TEST,
        restored_test=TEST,
        checks=[CHECKED],
        findings=[FINDING],
        proofs=[PROOF],
        examined=True,
        allowed=["a"],
        doubts={"test": "why"},
    ),
    Assessment(tree="t", satisfied=False, summary="s", failed=["AC-1"], risks=["r"]),
    WorkerOrder(worker_run_id="1-001", worker="command", prompt=REF, env={"A": "b"}, flags=["-x"]),
    WorkerRun(worker_run_id="1-001", worker="command", loop=0, outcome="lost", output=REF),
    Question(id="0" * 12, kind="plan", text="?", subject="{}", state=TaskState.FIXING),
    Answer(id="0" * 12, kind="plan", decision="approve", edit="{}"),
    Awaited(kind="test", what="tests/test_a.py::test_b"),
    FormerCheck(what="true", outcome="passed", reason="It shows nothing.", worker_runs=1),
    PersonOrder(id="1", action="run_worker", prompt=REF, by="hana"),
    PersonDecision(id="message-1", kind="message", decision="message", text="blue", steers=True),
    PersonLine(line="round 1: blue", steers=True),
    People(
        recent=[PersonDecision(id="1", kind="plan", decision="reject", text="日本")],
        older=[PersonLine(line="x")],
        omitted=3,
    ),
    Wait(until="2026-01-01T05:00:00Z", since="2026-01-01T00:00:00Z", reason="r", role="meta"),
    Stuck(prompt="ab", prompts=2, evidence="cd", evidences=1, told=True),
    CommandSeen(command="make", exit_code=2),
    Verdict(state="NEEDS_REVIEW", reason="loop_limit", missing=["m"]),
    Acceptance(criteria=[], reason="r", by="hana", at="2026-01-01T00:00:00Z", tree="t"),
]


@pytest.fixture(autouse=True)
def _strict_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """LangGraph only warns where it blocks a type and hands on a dict in its place."""
    with caplog.at_level(logging.WARNING, logger="langgraph"):
        yield
    assert [record.getMessage() for record in caplog.get_records("call")] == []


def there_and_back(value: Any) -> Any:
    serde = serializer()
    return serde.loads_typed(serde.dumps_typed(value))


def test_there_is_a_sample_of_every_model() -> None:
    known = set(state_types().values())
    classes = {cls for cls in known if issubclass(cls, StateModel)}
    assert {type(model) for model in MODELS} == classes - {StateModel}
    assert {Check, TaskState} <= known


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_model_comes_back_as_itself(model: StateModel) -> None:
    back = there_and_back(model)
    assert type(back) is type(model)
    assert back == model


def test_a_whole_state_comes_back_as_itself() -> None:
    by_type = {type(model): model for model in MODELS}
    whole: dict[str, Any] = {
        "state": TaskState.NEEDS_REVIEW,
        "criteria": [by_type[Criterion]],
        "recent": [by_type[WorkerRun]] * 5,
        "tail": "…",
        "wants_completion": True,
        "verdict": None,
    }
    back = there_and_back(whole)
    assert back == whole
    assert isinstance(back["state"], TaskState)
    assert isinstance(back["criteria"][0].check, Check)
    assert set(whole) <= set(get_type_hints(TaskContext))


def test_a_state_of_a_version_with_other_rooms_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `agentrunner resume` reads of a run that an earlier version began."""
    state: dict[str, Any] = {"state": TaskState.RUNNING, "human": Answer(id="0" * 12, kind="plan")}
    state["verdict"] = Verdict(state="COMPLETE", reason="complete")
    with monkeypatch.context() as earlier:
        earlier.setattr(Verdict, "__module__", "agentrunner.task.context")
        earlier.setattr(Answer, "__module__", "agentrunner.state.run_state")
        earlier.setattr(TaskState, "__module__", "agentrunner.task.lifecycle")
        kind, content = serializer().dumps_typed(state)
    assert b"agentrunner.task.context" in content and b"agentrunner.task.lifecycle" in content
    assert serializer().loads_typed((kind, content)) == state


def test_what_a_class_has_no_more_is_left_out() -> None:
    class Former(Baseline):
        exact: tuple[str, ...] = ()

    Former.__name__, Former.__module__ = Baseline.__name__, Baseline.__module__
    saved = serializer().dumps_typed({"baseline": Former(tree="a", exact=("AC-1",))})
    assert serializer().loads_typed(saved) == {"baseline": Baseline(tree="a")}


def test_a_class_that_is_no_state_is_not_made() -> None:
    """The error is one of those that mean: this file is damaged."""
    with pytest.raises(ValueError, match="ext_hook"):
        there_and_back({"counters": BudgetSpec()})


def test_pickle_is_neither_written_nor_read() -> None:
    serde = serializer()
    with pytest.raises(TypeError):
        serde.dumps_typed(lambda: None)
    with pytest.raises(NotImplementedError):
        serde.loads_typed(("pickle", b"cos\nsystem\n(S'true'\ntR."))


def test_strict_mode_is_on_whatever_the_shell_says() -> None:
    code = (
        "import agentrunner.graph.builder, os;"
        "from langgraph.checkpoint.serde import _msgpack;"
        "print(_msgpack.STRICT_MSGPACK_ENABLED, os.environ['LANGSMITH_TRACING'])"
    )
    environ = {
        **os.environ,
        "LANGGRAPH_STRICT_MSGPACK": "false",
        "LANGSMITH_TRACING": "true",
        "LANGCHAIN_TRACING_V2": "true",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "false"]


# -- files --------------------------------------------------------------------------------------


async def saved(path: Path) -> Path:
    async with open_saver(path, new=True):
        pass
    return path


async def test_a_new_file_is_the_owners_and_sound(tmp_path: Path) -> None:
    path = await saved(tmp_path / "a?b #%20.sqlite")
    assert path.stat().st_mode & 0o777 == 0o600
    check_file(path)
    async with open_saver(path, new=False):
        pass


async def set_pragma(path: Path, name: str, value: int) -> None:
    await saved(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"pragma {name} = {value}")
        database.commit()


@pytest.mark.parametrize(
    ("pragma", "value", "why"),
    [
        ("application_id", 0, "not written by AgentRunner"),
        ("user_version", SCHEMA_VERSION + 1, "newer AgentRunner"),
    ],
)
async def test_foreign_and_newer_files_are_refused(
    tmp_path: Path, pragma: str, value: int, why: str
) -> None:
    path = tmp_path / "checkpoints.sqlite"
    await set_pragma(path, pragma, value)
    with pytest.raises(CheckpointCorrupt, match=why):
        check_file(path)


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100, b"SQLite format 3\0"])
async def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "checkpoints.sqlite"
    path.write_bytes(content)
    with pytest.raises(CheckpointCorrupt):
        async with open_saver(path, new=False):
            raise AssertionError
    assert path.read_bytes() == content


async def test_a_missing_file_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    with pytest.raises(CheckpointCorrupt):
        check_file(path)
    assert not path.exists()


def test_every_attempt_has_a_thread_of_its_own() -> None:
    threads = {thread_config("r", n)["configurable"]["thread_id"] for n in (1, 2)}
    assert threads == {"r#1", "r#2"}


def test_the_mark_in_the_file_is_readable() -> None:
    assert APPLICATION_ID.to_bytes(4, "big") == b"AGRU"


def test_a_full_disk_damages_nothing(tmp_path: Path) -> None:
    """SQLite writes beside a log that it reads; a small file system stands for the disk."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("only root may mount a file system of its own")
    program = (
        "import pathlib, sqlite3, subprocess, sys\n"
        "from agentrunner.graph.checkpoints import APPLICATION_ID, check_file\n"
        "from agentrunner.errors.runs import DiskFull\n"
        "place = pathlib.Path(sys.argv[1])\n"
        "subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', place], check=True)\n"
        "database = sqlite3.connect(place / 'state')\n"
        "database.execute('pragma journal_mode = wal')\n"
        "database.execute(f'pragma application_id = {APPLICATION_ID}')\n"
        "database.close()\n"
        "try:\n"
        "    with (place / 'fill').open('wb', buffering=0) as fill:\n"
        "        while fill.write(bytes(4096)): pass\n"
        "except OSError: pass\n"
        "try:\n"
        "    check_file(place / 'state')\n"
        "except DiskFull as error: print(error.code)\n"
    )
    asked = ["unshare", "-m", sys.executable, "-c", program, str(tmp_path)]
    ended = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.returncode) == ("disk-full\n", 0), ended.stderr
