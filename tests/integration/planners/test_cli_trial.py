"""The real CLIs as planners play scenes, each in a sandbox of its own, as in a run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agentrunner.protocol.message import MessageType
from agentrunner.protocol.schema import message_schema
from agentrunner.scenes.playing import play_all
from agentrunner.scenes.scene import load_scenes
from agentrunner.scenes.verdict import summed
from tests.kit.planner_host import KEY_OF, REAL_KEY, PlannerHost, require
from tests.kit.planner_server import PlannerServer
from tests.kit.process import living


def filled_in(
    asked: MessageType, payload: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    """The keys of the message's schema alone, to which a CLI holds; a look has all of its own."""
    looks = [{"from": 0, "to": 0, **look} for look in payload.get("looks", [])]
    whole = {**answer, **payload, "looks": looks} if looks else payload
    keys = message_schema(asked, looks=True)["properties"]["payload"]["properties"]
    return {key: value for key, value in whole.items() if key in keys}


@pytest.mark.series(2)
@pytest.mark.parametrize("kind", ["codex-cli", "claude-code"])
async def test_a_cli_plays_scenes(kind: str, tmp_path: Path) -> None:
    host = PlannerHost(kind, "bwrap", tmp_path, require(kind, "bwrap"))
    host.repo.mkdir()
    scenes = load_scenes(only=["look-at-what-did-not-change.ja", "split-too-vague.en"])
    items = [
        {"type": asks, "version": 1, "payload": filled_in(asks, payload, one.scene.answer[-1])}
        for one in scenes
        for asks in (one.scene.asks,)
        for payload in one.scene.answer
    ]
    with PlannerServer(items) as server:
        environ = {**os.environ, KEY_OF[kind]: REAL_KEY, "HOME": str(tmp_path)}
        spec = host.spec(server, model="planner-1")
        played = [one async for one in play_all(scenes, spec, environ)]
    found = [(one.grade, one.why, one.looks) for one in played]
    assert found == [("right", "", 1), ("right", "", 0)]
    trial = summed(played)
    assert trial.input_tokens == server.told.input_tokens and trial.calls == 3
    assert trial.met and not trial.usable and living(tmp_path) == {}
