"""The real Codex CLI and the real Claude Code as planners, one attempt at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import TaskFailed
from agentrunner.launching.route import Cassette
from agentrunner.money.counters import read_usage
from agentrunner.planners.base import PlannerUnavailable
from agentrunner.protocol import Choices, message_schema
from tests.kit.faults import Refusal
from tests.kit.planner_host import KEY_OF, REAL_KEY, SECRET, PlannerHost, request
from tests.kit.planner_server import STRUCTURED, PlannerServer
from tests.kit.process import living
from tests.kit.scenario import Action, Shell, Turn, Use

DONE = {
    "type": "next_action",
    "version": 1,
    "payload": {
        "decision": {"action": "mark_complete", "reason": "All green."},
        "worker_call": None,
        "used_patterns": [],
        "question": None,
        "options": [],
    },
}
EVERYWHERE = [(k, b) for k in ("codex-cli", "claude-code") for b in ("bwrap", "docker", "none")]


def asked(server: PlannerServer) -> list[Mapping[str, Any]]:
    """The body of each model call."""
    return [call.body for call in server.requests if call.method == "POST"]


@pytest.mark.series(2)
@pytest.mark.parametrize("host", EVERYWHERE, indirect=True, ids="-".join)
async def test_an_answer_and_what_it_cost(host: PlannerHost) -> None:
    with PlannerServer([DONE]) as server:
        reply = await host.ask(server, number=3, model="planner-1")
    assert json.loads(reply.text) == DONE
    assert (reply.finish_reason, reply.model) == ("stop", "planner-1")
    told = server.told
    assert (reply.input_tokens, reply.output_tokens) == (told.input_tokens, told.output_tokens)
    assert reply.known == ("counted" if host.box != "none" else "reported")
    assert not reply.subscription
    counted = read_usage(host.folder.planner_dir / "0003-usage.jsonl")
    assert counted.total.calls == (1 if host.box != "none" else 0)
    (body,) = asked(server)
    assert "You decide." in str(body) and "The state." in str(body)
    assert {call.bearer for call in server.requests if call.method == "POST"} == {REAL_KEY}
    files = [path for path in host.place.rglob("*") if path.is_file()]
    assert [path for path in files if REAL_KEY.encode() in path.read_bytes()] == []
    left = [path.name for path in files if "planner" in path.parts]
    assert left in ([], ["gitconfig"])  # the box's neutral identity for git
    assert living(host.place) == {}


@pytest.mark.series(2)
async def test_prose_is_handed_on_to_be_asked_for_again(host: PlannerHost) -> None:
    with PlannerServer(["I would rather not say."]) as server:
        reply = await host.ask(server)
    assert reply.text == "I would rather not say."
    assert reply.output_tokens == server.told.output_tokens


@pytest.mark.series(2)
@pytest.mark.parametrize(
    ("refusal", "kind", "retryable"),
    [("401", "auth", False), ("404", "model", False), ("429", "rate_limit", True)],
)
async def test_a_refusal_is_told_and_hardly_repeated(
    host: PlannerHost, refusal: Refusal, kind: str, retryable: bool
) -> None:
    with PlannerServer([Turn(refusal=refusal, reset_sec=30, reset_in="header")]) as server:
        with pytest.raises(PlannerUnavailable) as caught:
            await host.ask(server, model="planner-1")
        # Of a stream that is refused with 404, Claude Code tries once without a stream.
        assert len(asked(server)) <= (2 if refusal == "404" else 1)
    failure = caught.value
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert bool(failure.reset_at) == (kind == "rate_limit")
    if kind == "rate_limit":
        assert failure.retry_after is not None and 20 < failure.retry_after <= 30
    assert failure.spent is not None and failure.spent.known == "counted"
    assert host.kind in failure.message and REAL_KEY not in failure.message


@pytest.mark.series(3)
@pytest.mark.parametrize("item", [Turn(refusal="500"), Turn("A word.", cut=True)], ids=str)
async def test_a_server_that_fails_is_worth_another_try(host: PlannerHost, item: Turn) -> None:
    with PlannerServer([item]) as server, pytest.raises(PlannerUnavailable) as caught:
        await host.ask(server)
    assert caught.value.kind in ("server", "network")
    assert caught.value.retryable


async def test_a_schema_that_is_refused_gives_way_to_a_simpler_one_for_good(
    host: PlannerHost,
) -> None:
    """The task's, the general one, none: each refusal is an attempt that is no failure."""
    narrow = message_schema("next_action", Choices(workers=("one",)))
    asking = replace(request(), schema=narrow, simpler=message_schema("next_action"))
    refused = Turn(refusal="schema")
    # Claude Code may ask again without a stream: each of its attempts is a session.
    with PlannerServer([refused]) as server:
        client, sandbox = await host.client(host.spec(server, model="planner-1"))
        try:
            for left in (1, 0):
                with pytest.raises(PlannerUnavailable) as caught:
                    await client.complete(asking)
                assert caught.value.other_form and caught.value.retryable, left
            server.serve([json.dumps(DONE)])
            for _ in range(2):
                assert json.loads((await client.complete(asking)).text) == DONE
        finally:
            await client.close()
            await sandbox.close()
    forms = list(dict.fromkeys(json.dumps(schema_sent(body)) for body in asked(server)))
    assert len(forms) == 3 and forms[-1] == "null"
    assert '"one"' in forms[0] and '"one"' not in forms[1]


def schema_sent(body: Mapping[str, Any]) -> Any:
    """The schema that a CLI's request holds the answer to; None where there is none."""
    tools = {str(tool.get("name")): tool for tool in body["tools"]}
    if STRUCTURED in tools:
        return tools[STRUCTURED]["input_schema"]
    return body.get("text", {}).get("format", {}).get("schema")


HANGING = [("codex-cli", "bwrap"), ("claude-code", "docker"), ("claude-code", "none")]


@pytest.mark.parametrize("host", HANGING, indirect=True, ids="-".join)
async def test_a_time_out_leaves_nothing_running(host: PlannerHost) -> None:
    slow = pytest.raises(PlannerUnavailable, match="no answer within 2 s")
    with PlannerServer([Turn("Thinking.", hang=True)]) as server, slow as caught:
        await host.ask(server, timeout_sec=2)
    assert caught.value.retryable
    assert living(host.place) == {}


@pytest.mark.series(2)
async def test_without_a_repository_it_has_no_tools(host: PlannerHost) -> None:
    with PlannerServer([DONE]) as server:
        await host.ask(server, model="gpt-5.5")
    (body,) = asked(server)
    tools = {str(tool.get("name")) for tool in body["tools"]}
    if host.kind == "claude-code":
        assert tools == {STRUCTURED}
    else:
        # What it has is of no use on an empty folder.
        assert tools <= {"apply_patch", "request_user_input", "view_image", "update_plan"}
    assert str(host.repo) not in str(body)


READING = [("codex-cli", "bwrap"), ("codex-cli", "docker"), ("claude-code", "bwrap")]


@pytest.mark.parametrize("host", READING, indirect=True, ids="-".join)
async def test_it_may_read_the_repository_and_never_write(host: PlannerHost) -> None:
    look = f"cat {host.repo}/secret.txt; env; cat /proc/[0-9]*/environ; touch {host.repo}/planted"
    action: Action = Shell(f"{look}; echo looked")
    if host.kind == "claude-code":
        action = Use("Read", {"file_path": f"{host.repo}/secret.txt"})
    with PlannerServer([Turn("Looking.", [action])]) as server:
        server.after = DONE
        reply = await host.ask(server, model="gpt-5.5", see_repo="read")
        said = str(asked(server))
    assert json.loads(reply.text) == DONE
    assert SECRET in said and REAL_KEY not in said
    if host.kind == "codex-cli":
        assert "looked" in said and "sk-agentrunner-placeholder-" in said
    assert [path.name for path in host.repo.iterdir()] == ["secret.txt"]


@pytest.mark.series(2)
async def test_a_recording_is_played_without_a_key(host: PlannerHost, tmp_path: Path) -> None:
    tape = tmp_path / "run.cassette"
    with PlannerServer([DONE]) as server:
        recorded = await host.ask(server, 2, Cassette(record=tape), model="planner-1")
    assert REAL_KEY not in tape.read_text() and str(tmp_path) not in tape.read_text()
    del host.environ[KEY_OF[host.kind]]
    replayed = await host.ask(None, 2, Cassette(replay=tape), model="planner-1")
    assert replayed == recorded
    with pytest.raises(TaskFailed) as caught:
        await host.ask(None, 3, Cassette(replay=tape), model="planner-1")
    assert caught.value.code == "replay-mismatch"
