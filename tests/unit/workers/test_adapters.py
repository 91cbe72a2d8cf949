"""What every adapter promises, whatever its CLI is."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrunner.config.agents import WorkerSpec
from agentrunner.registry import WORKERS
from agentrunner.workers.base import Ended, Worker, WorkerRequest
from agentrunner.workers.cli import LOGIN_PROMPT
from agentrunner.workers.member import make_worker
from tests.kit.readings import STREAMS

ALL = sorted(STREAMS.iterdir())
KINDS = sorted(WORKERS)
HOME = Path("/state/box")
SECRET = "sk-secret-0123456789"


def adapter(kind: str) -> Worker:
    """Typed as the Protocol, so that mypy holds each adapter to it."""
    command = ["agent"] if kind == "command" else None
    return make_worker(WorkerSpec(kind=kind, command=command, model="some-model"))


def call(prompt: str = "do it", **changes: Any) -> WorkerRequest:
    fields: dict[str, Any] = {
        "worker_run_id": "w1",
        "prompt": prompt,
        "workdir": Path("/src/repo"),
        "home": HOME,
        "prompt_file": HOME / "prompt.md",
        "new_session_id": "00000000-0000-4000-8000-000000000001",
    }
    return WorkerRequest(**fields | changes)


@pytest.mark.parametrize("kind", KINDS)
def test_an_adapter_says_what_it_is(kind: str) -> None:
    worker = adapter(kind)
    assert worker.kind == kind
    assert worker.verified
    assert bool(worker.provider_url) == bool(worker.wire)
    assert not worker.wire or worker.key_names
    for rule in (*worker.flag_rules.values(), *worker.tool_rules.values()):
        re.compile(rule)
    assert re.fullmatch(r"(\d+[mg])?", worker.memory)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_binary_is_a_problem_with_a_cure(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for name in ("CODEX", "CLAUDE", "GEMINI", "QWEN", "OPENCODE", "COPILOT", "CURSOR"):
        monkeypatch.delenv(f"AGENTRUNNER_{name}", raising=False)
    probe = adapter(kind).probe()
    if probe.problem:
        assert probe.path is None and (probe.cure or kind == "command")


@pytest.mark.parametrize("kind", KINDS)
def test_patterns_of_the_watch_are_regular_expressions_over_bytes(kind: str) -> None:
    watch = adapter(kind).command(call()).watch
    for pattern in (watch.final, watch.retry, watch.login):
        re.compile(pattern.encode())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sandboxed", [True, False])
def test_a_call_stays_in_its_folder_and_shows_no_secret(
    kind: str, sandboxed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = adapter(kind)
    for name in worker.key_names:
        monkeypatch.setenv(name, SECRET)
    if not sandboxed and not worker.confines_itself:
        pytest.skip("never run without a sandbox of ours")
    command = worker.command(call(sandboxed=sandboxed))
    for path in (*command.folders, *command.files):
        assert path.is_relative_to(HOME)
    assert SECRET not in repr(command)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prompt", ["--help", "-c x=y", "\n", "$(touch x)", "日本語 \u2028"])
def test_a_prompt_is_no_option(kind: str, prompt: str) -> None:
    made, usual = (adapter(kind).command(call(text)) for text in (prompt, "do it"))
    assert len(made.argv) == len(usual.argv)
    for word, other in zip(made.argv, usual.argv, strict=True):
        assert word == other or (word != prompt or not prompt.startswith("-"))


@pytest.mark.parametrize("kind", KINDS)
def test_no_stream_of_another_cli_breaks_a_reader(kind: str) -> None:
    worker = adapter(kind)
    for path in ALL:
        data = path.read_bytes()
        reader = worker.events()
        parts = (data[at : at + 997] for at in range(0, len(data), 997))
        pieces = [event for part in parts for event in reader.feed(part)]
        assert pieces == worker.events().feed(data), path.name
        stopped = Ended(0, "interrupted", path, path.with_name("none"))
        assert not worker.read(stopped).completed, path.name


WORDS = sorted(
    {word for path in ALL for word in re.findall(r'"(\w[\w.]{1,30})"', path.read_text()[:60_000])}
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([*WORDS, "", "'", "a\ud800", "x" * 5_000]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=12,
)
RECORDS = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=5)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(
    records=st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS), RECORDS), max_size=5)
)
def test_nothing_that_is_printed_breaks_a_reader(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    records: list[tuple[str, str, dict[str, Any]]],
) -> None:
    stdout = tmp_path_factory.mktemp("run") / "stdout"
    lines = (json.dumps({**rest, "type": name, "subtype": sub}) for name, sub, rest in records)
    stdout.write_text("".join(f"{line}\n" for line in lines))
    worker = adapter(kind)
    facts: list[Any] = [event.fields for event in worker.events().feed(stdout.read_bytes())]
    facts.append(asdict(worker.read(Ended(1, "exited", stdout, stdout.with_name("none")))))
    for fact in facts:
        json.dumps(fact, ensure_ascii=False).encode()


@pytest.mark.parametrize("kind", KINDS)
def test_importing_an_adapter_reads_nothing(kind: str) -> None:
    module, _, name = WORKERS[kind].partition(":")
    assert getattr(import_module(module), name).kind == kind


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("Please log in to continue", True),
        ("Enter the verification code: ", True),
        ("Waiting for authentication...", True),
        ("1. Open this link in your browser and sign in to your account", True),
        ("2. Enter this one-time code (expires in 15 minutes)", True),
        ("Visit https://auth.example.com/device and enter the code ABCD-1234", True),
        ("did not open, navigate to this URL to authenticate:", True),
        ('{"type":"assistant","text":"Please log in to continue"}', False),
        ('  {"text":"not logged in"}', False),
        ("wrote login.html", False),
        ("visit counter: go to login.html", False),
        ("exit code 1; entered the codebase", False),
    ],
)
def test_only_the_cli_itself_asks_to_log_in(line: str, asks: bool) -> None:
    assert bool(re.search(LOGIN_PROMPT.encode(), line.encode())) == asks
