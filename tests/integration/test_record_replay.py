"""A whole run of the real Codex, recorded, and replayed without a network or a key."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import AgentRunnerError
from agentrunner.graph.runner import start
from agentrunner.nodes.deps import Cassette
from tests.integration.test_codex_run import KEYS, SCRIPT, TWO_ROUNDS, Codex, story
from tests.kit.codex import require_codex
from tests.kit.model_server import ModelServer
from tests.kit.project import Project, require_bwrap
from tests.kit.scenario import Scenario

TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z| [+-]\d\d:\d\d)|\d\d:\d\d:\d\d|[\d.]+ (s|min)\b")
KEYLESS = {name: value for name, value in os.environ.items() if name not in KEYS}


def codex(place: Path) -> Codex:
    require_bwrap()
    return Codex(Project.make(place), require_codex())


def told(result: Mapping[str, Any], place: Path) -> str:
    """The note, without times, places and the run's own name."""
    text = Path(result["note"]).read_text(encoding="utf-8")
    text = text.replace(str(place), "PLACE").replace(result["run_id"], "RUN")
    return re.sub(r"\d+ (bytes|B|KB)", "SIZE", TIMES.sub("TIME", text))


async def test_a_replay_is_the_same_run_without_a_network(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    first = codex(tmp_path / "first")
    with ModelServer(Scenario(TWO_ROUNDS), chat_script=SCRIPT) as server:
        spec = first.spec(server)
        options = replace(
            first.project.options(),
            environ={**os.environ, **KEYS},
            cassette=Cassette(record=tape),
        )
        recorded = await start(spec, options)
    assert recorded["state"] == "COMPLETE"
    assert not [name for name, key in KEYS.items() if key in tape.read_text(encoding="utf-8")]

    again = codex(tmp_path / "again")
    again_spec = again.spec(server)  # which is gone by now
    options = replace(again.project.options(), environ=KEYLESS, cassette=Cassette(replay=tape))
    replayed = await start(again_spec, options)
    assert replayed["state"] == "COMPLETE"
    assert story(again.project.events) == story(first.project.events)
    assert again.project.read("calc.py") == first.project.read("calc.py")
    assert told(replayed, again.place) == told(recorded, first.place)
    assert replayed["usage"] == recorded["usage"]


async def test_another_task_is_told_from_the_recorded_one(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    first = codex(tmp_path / "first")
    with ModelServer(Scenario(TWO_ROUNDS), chat_script=SCRIPT) as server:
        options = replace(
            first.project.options(),
            environ={**os.environ, **KEYS},
            cassette=Cassette(record=tape),
        )
        await start(first.spec(server), options)
    other = codex(tmp_path / "other")
    spec = other.spec(server)
    spec = spec.model_copy(update={"prd_text": "Make it fly."})
    options = replace(other.project.options(), environ=KEYLESS, cassette=Cassette(replay=tape))
    result = await start(spec, options)
    assert (result["state"], result["exit_code"]) == ("FAILED", 1)
    assert "Make it fly" in str(result) or "differs" in str(result)


async def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    tape.write_text("{}\n")
    run = codex(tmp_path / "run")
    with ModelServer() as server:
        spec = run.spec(server)
    options = replace(run.project.options(), environ=KEYLESS, cassette=Cassette(replay=tape))
    with pytest.raises(AgentRunnerError) as refused:
        await start(spec, options)
    assert refused.value.exit_code == 2
