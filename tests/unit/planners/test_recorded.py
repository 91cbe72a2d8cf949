"""The planner's exchanges on a cassette: the same decisions again, without a server and a key."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import InfraError, UsageError
from agentrunner.gateway.cassette import META, read_cassette
from agentrunner.launching.route import Cassette
from agentrunner.planners.base import (
    ChatMessage,
    PlannerClient,
    PlannerRequest,
    PlannerUnavailable,
    Reply,
)
from agentrunner.planners.factory import make_planner
from agentrunner.protocol import message_schema
from tests.kit.asked_planner import KEY
from tests.kit.fault_server import Fault, FaultServer, MakeSpec, completion

KEYED = {"OPENAI_API_KEY": KEY}
REQUEST = PlannerRequest(
    type="next_action",
    messages=(ChatMessage("user", "The state at 2026-11-21T10:00:00Z of /repo."),),
    schema=message_schema("next_action"),
    facts={},
    call_number=0,
)
LATER = replace(
    REQUEST, messages=(ChatMessage("user", "The state at 2027-01-02T03:04:05Z of /repo."),)
)
OTHER = replace(REQUEST, messages=(ChatMessage("user", "Another state."),))


async def answers(
    client: PlannerClient, *requests: PlannerRequest
) -> list[Reply | PlannerUnavailable]:
    """What each request brings, be it a failure."""
    found: list[Reply | PlannerUnavailable] = []
    try:
        for request in requests:
            try:
                found.append(await client.complete(request))
            except PlannerUnavailable as failure:
                found.append(failure)
    finally:
        await client.close()
    return found


async def test_a_recording_answers_without_server_and_key(
    make_spec: MakeSpec, server: FaultServer, tmp_path: Path
) -> None:
    tape = tmp_path / "run.cassette"
    server.script = [completion('{"a": 1}'), completion('{"b": 2}')]
    spec = make_spec(base_url=server.url)
    recorded = await answers(make_planner(spec, KEYED, Cassette(record=tape)), REQUEST, OTHER)
    asked = len(server.paths)
    assert [exchange.channel for exchange in read_cassette(tape)] == [META, META]
    assert KEY not in tape.read_text()
    assert await answers(make_planner(spec, {}, Cassette(replay=tape)), LATER, OTHER) == recorded
    assert len(server.paths) == asked


async def test_failures_are_played_too(
    make_spec: MakeSpec, server: FaultServer, tmp_path: Path
) -> None:
    tape = tmp_path / "run.cassette"
    refused = json.dumps({"error": {"message": f"No: {KEY}"}})
    server.script = [
        Fault(status=429, body=refused, headers={"Retry-After": "7"}),
        Fault(reset=True),
        Fault(status=200, body="no completion"),
        completion("{}"),
    ]
    spec = make_spec(base_url=server.url)
    requests = [REQUEST] * 4
    recorded = await answers(make_planner(spec, KEYED, Cassette(record=tape)), *requests)
    replayed = await answers(make_planner(spec, {}, Cassette(replay=tape)), *requests)
    assert (
        recorded[3]
        == replayed[3]
        == Reply(
            text="{}",
            input_tokens=3,
            output_tokens=4,
            model="some-model-0613",
            known="counted",
            near=True,
        )
    )
    pairs: list[tuple[Any, Any]] = list(zip(recorded[:3], replayed[:3], strict=True))
    for then, now in pairs:
        assert (now.retryable, now.retry_after) == (then.retryable, then.retry_after)
    assert pairs[0][1].retry_after == 7
    assert "[OPENAI_API_KEY redacted]" in str(pairs[0][1])
    assert KEY not in tape.read_text()


async def test_another_request_ends_the_replay_with_a_sentence(
    make_spec: MakeSpec, server: FaultServer, tmp_path: Path
) -> None:
    tape = tmp_path / "run.cassette"
    server.script = [completion("{}")]
    spec = make_spec(base_url=server.url)
    await answers(make_planner(spec, KEYED, Cassette(record=tape)), REQUEST)
    (failure,) = await answers(make_planner(spec, {}, Cassette(replay=tape)), OTHER)
    assert isinstance(failure, PlannerUnavailable) and not failure.retryable
    assert str(failure) == (
        "Replay: request 1 of 'meta' ('Another state.') differs from the recorded one at "
        'messages[0].content: "The state at <date> of <workdir>." then, "Another state." now.'
    )


def test_without_a_replay_a_key_is_needed(make_spec: MakeSpec, tmp_path: Path) -> None:
    with pytest.raises(InfraError):
        make_planner(make_spec(), {}, Cassette(record=tmp_path / "run.cassette"))


def test_a_file_that_cannot_be_played_is_refused_at_once(
    make_spec: MakeSpec, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        make_planner(make_spec(), {}, Cassette(replay=tmp_path / "none"))
    assert caught.value.code == "cassette-invalid"


def test_who_asks_no_server_needs_no_recording(make_spec: MakeSpec, tmp_path: Path) -> None:
    spec = make_spec(kind="checklist", test="true")
    assert make_planner(spec, {}, Cassette(replay=tmp_path / "none")).kind == "checklist"
