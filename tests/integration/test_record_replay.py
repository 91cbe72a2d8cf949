"""A whole run with the real Codex, recorded, then played in another folder without a model."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.engine.runs import start
from agentrunner.errors import UsageError
from agentrunner.gateway.cassette import read_cassette
from agentrunner.launching.route import Cassette
from tests.kit.bwrap import require_bwrap
from tests.kit.codex import require_codex
from tests.kit.codex_project import FIX, JUDGEMENT, KEYS, PLAN, Codex
from tests.kit.metas import DONE, assess, finish, plan, work
from tests.kit.model_server import ModelServer
from tests.kit.project import BROKEN, PYTEST, Project
from tests.kit.project import FIX as MENDED
from tests.kit.runs import SMALL, TEST
from tests.kit.scenario import Scenario, Shell, Turn
from tests.kit.stories import story

TURNS = (Turn("I add.", [Shell("sed -i 's/a - b/a + b/' calc.py")]), Turn("It adds."))
SCRIPT = (PLAN, FIX, DONE, JUDGEMENT)
KEYLESS = {name: value for name, value in os.environ.items() if name not in KEYS}
TIMES = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?|\d\d:\d\d|\d+\.\d+ s\b|\b\d+ ms\b|probe-\w{4}"
)
"""What a note of another run of the same task differs in: times, and the run's name."""


def made(place: Path) -> Codex:
    require_bwrap()
    return Codex(Project.make(place, SMALL), require_codex(), test=TEST)


async def run(
    codex: Codex, server: ModelServer, environ: Mapping[str, str], cassette: Cassette
) -> dict[str, Any]:
    options = replace(codex.project.options(), environ=environ, cassette=cassette)
    return (await start(codex.spec(server), options)).as_dict()


def note_of(codex: Codex) -> str:
    (note,) = (codex.project.repo / ".agent-runner").glob("*.md")
    return TIMES.sub("…", note.read_text())


async def test_the_same_decisions_edits_and_note_without_network_and_keys(tmp_path: Path) -> None:
    one, tape = made(tmp_path / "one"), tmp_path / "run.cassette"
    with ModelServer(Scenario(TURNS), chat_script=SCRIPT) as server:
        recorded = await run(one, server, {**KEYLESS, **KEYS}, Cassette(record=tape))
    assert recorded["state"] == "COMPLETE", recorded
    channels = [(exchange.channel, exchange.number) for exchange in read_cassette(tape)]
    assert channels == [
        ("meta", 1), ("meta", 2), ("1-001", 1), ("1-001", 2), ("meta", 3), ("meta", 4),
    ]  # fmt: skip
    assert not any(key in tape.read_text() for key in KEYS.values())

    other = made(tmp_path / "quite" / "another")
    replayed = await run(other, server, KEYLESS, Cassette(replay=tape))
    assert replayed["state"] == "COMPLETE", replayed
    assert story(other.project.events) == story(one.project.events)
    assert other.project.read("calc.py") == one.project.read("calc.py")
    assert replayed["usage"] == recorded["usage"]
    assert note_of(other) == note_of(one)

    changed = made(tmp_path / "changed")
    changed.project.write({"calc.py": "def add(a, b):\n    return a - b - 1\n"})
    astray = await run(changed, server, KEYLESS, Cassette(replay=tape))
    assert astray["state"] == "FAILED"
    assert "differs from the recorded one at messages" in json.dumps(astray)


LOOKED_AT = "\n".join(f"{n}: a line of the table" for n in range(400))
LOOK = {"type": "look", "version": 1, "payload": {"looks": [{"read": "table.txt", "to": 300}]}}


async def test_a_look_is_recorded_and_answered_from_the_repository_at_hand(tmp_path: Path) -> None:
    require_bwrap()
    tape = tmp_path / "run.cassette"
    script = [plan(), work(), finish(), assess()]
    replies = [json.dumps(item["reply"]) for item in script]
    replies.insert(2, json.dumps(LOOK))

    async def played(
        place: str, server: ModelServer, environ: Mapping[str, str], cassette: Cassette, text: str
    ) -> tuple[Project, dict[str, Any]]:
        project = Project.make(tmp_path / place, {**BROKEN, "table.txt": text})
        meta = {"kind": "openai-chat", "model": "m-1", "base_url": server.base_url}
        spec = project.spec(MENDED, test=PYTEST, runner={"meta": meta})
        options = replace(project.options(), environ=environ, cassette=cassette)
        return project, (await start(spec, options)).as_dict()

    with ModelServer(chat_script=replies) as server:
        keyed = {**KEYLESS, **KEYS}
        one, recorded = await played("one", server, keyed, Cassette(record=tape), LOOKED_AT)
        assert recorded["state"] == "COMPLETE", recorded
        asked = [exchange.request for exchange in read_cassette(tape)]
        assert len(asked) == 5 and "399: a line" not in str(asked)

        other, replayed = await played("two", server, KEYLESS, Cassette(replay=tape), LOOKED_AT)
        assert replayed["state"] == "COMPLETE", replayed
        looks = [call["looks"] for call in one.told("meta_call")]
        assert looks == [[], [], ["read table.txt to 300"], [], []]
        assert [call["looks"] for call in other.told("meta_call")] == looks
        assert story(other.events) == story(one.events)
        assert replayed["usage"] == recorded["usage"]

        changed = LOOKED_AT.replace("250: a line", "250: another line")
        _, astray = await played("three", server, KEYLESS, Cassette(replay=tape), changed)
    assert astray["state"] == "FAILED"
    assert "differs from the recorded one at messages" in json.dumps(astray)


async def test_a_worker_without_a_gateway_is_not_recorded(tmp_path: Path) -> None:
    codex, tape = made(tmp_path), tmp_path / "run.cassette"
    with ModelServer() as server:
        spec = codex.spec(server).with_sandbox(kind="none")
        options = replace(
            codex.project.options(), environ={**KEYLESS, **KEYS}, cassette=Cassette(record=tape)
        )
        with pytest.raises(UsageError, match="recorded and replayed at the gateway"):
            await start(spec, options)
    assert server.requests == [] and not tape.exists()
