"""Any chat model of LangChain as the planner: here OpenAI's, whose package is always there."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import AgentRunnerError, InfraError, UsageError
from agentrunner.launching.route import Cassette
from agentrunner.planners.base import PlannerUnavailable
from agentrunner.planners.chat import schema_options
from agentrunner.planners.factory import make_planner
from tests.kit.asked_planner import KEY, ask, fail, request
from tests.kit.fault_server import Fault, FaultServer, MakeSpec, completion
from tests.kit.missing import missing


@pytest.fixture(autouse=True)
def langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        import langchain.chat_models  # noqa: F401  (whether it is there)
    except ImportError:
        missing("langchain is not installed (the extra chat).")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


CHAT: dict[str, Any] = {"kind": "chat", "model": "openai:m-1"}


async def test_what_goes_over_the_wire(make_spec: MakeSpec, server: FaultServer) -> None:
    server.script = [completion("{}")]
    reply = await ask(make_spec, server, **CHAT)
    assert (reply.text, reply.finish_reason, reply.known) == ("{}", "stop", "counted")
    assert (reply.input_tokens, reply.output_tokens) == (3, 4)
    assert reply.model == "some-model-0613"
    (sent,) = server.requests
    assert sent["model"] == "m-1"
    assert [message["content"] for message in sent["messages"]] == ["Decide.", "The state."]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_the_schema_is_held_to_and_gives_way_where_it_is_refused(
    make_spec: MakeSpec, server: FaultServer
) -> None:
    refused = Fault(
        status=400, body='{"error": {"message": "Invalid schema for response_format \'reply\'"}}'
    )
    cut = completion("{}", finish_reason="length")
    server.script = [refused, refused, cut]
    spec = make_spec(kind="chat", model="openai:m-1", base_url=server.url)
    client = make_planner(spec, {"OPENAI_API_KEY": KEY})
    narrow, general = ({"type": "object", "properties": {x: {"type": "null"}}} for x in "ab")
    asking = replace(request(), schema=narrow, simpler=general)
    for _ in range(2):
        with pytest.raises(PlannerUnavailable) as caught:
            await client.complete(asking)
        assert caught.value.other_form and caught.value.retryable
    assert (await client.complete(asking)).finish_reason == "length"
    await client.close()
    forms = [sent.get("response_format", {}).get("json_schema", {}) for sent in server.requests]
    assert [form.get("schema") for form in forms] == [narrow, general, None]
    assert forms[0] == {"name": "next_action", "schema": narrow, "strict": True}


def test_each_package_knows_how_a_schema_is_asked_for() -> None:
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.output_parsers import JsonOutputParser

    class Held(GenericFakeChatModel):
        def with_structured_output(self, schema: Any, **how: Any) -> Any:
            return self.bind(format=schema, ls_of="x") | JsonOutputParser()

    class Called(GenericFakeChatModel):
        def with_structured_output(self, schema: Any, **how: Any) -> Any:
            return self.bind(tools=[schema]) | JsonOutputParser()

    schema = {"type": "object", "properties": {}}
    found = schema_options(Held(messages=iter([])), "plan", schema)
    assert found == {"format": {"title": "plan", "description": "The reply.", **schema}}
    for without in (Called, GenericFakeChatModel):
        assert schema_options(without(messages=iter([])), "plan", schema) is None


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (401, "auth", False),
        (404, "model", False),
        (429, "rate_limit", True),
        (500, "server", True),
        (400, "protocol", False),
    ],
)
async def test_an_error_is_told_once(
    make_spec: MakeSpec, server: FaultServer, status: int, kind: str, retryable: bool
) -> None:
    server.script = [Fault(status=status, body="{}", headers={"Retry-After": "7"})]
    failure = await fail(make_spec, server, **CHAT)
    assert (failure.kind, failure.retryable, failure.retry_after) == (kind, retryable, 7)
    assert bool(failure.reset_at) == (status == 429)
    assert len(server.paths) == 1


async def test_nobody_there(make_spec: MakeSpec, server: FaultServer) -> None:
    server.script = [Fault(reset=True)]
    failure = await fail(make_spec, server, **CHAT)
    assert (failure.kind, failure.retryable) == ("network", True)


async def test_too_slow(make_spec: MakeSpec, server: FaultServer) -> None:
    server.script = [Fault(stall=True, body="{}")]
    failure = await fail(make_spec, server, timeout_sec=0.3, **CHAT)
    assert "within 0.3 s" in failure.message or failure.kind == "network"
    assert failure.retryable


def refusal(make_spec: MakeSpec, **meta: Any) -> AgentRunnerError:
    with pytest.raises(AgentRunnerError) as caught:
        make_planner(make_spec(kind="chat", **meta), {})
    return caught.value


@pytest.mark.parametrize("model", [None, "gpt-5.5", ":m", "openai:"])
def test_a_model_without_a_provider(make_spec: MakeSpec, model: str | None) -> None:
    error = refusal(make_spec, model=model)
    assert isinstance(error, UsageError)
    assert (error.code, error.path) == ("chat-model", "runner.meta.model")


def test_an_unknown_provider(make_spec: MakeSpec) -> None:
    error = refusal(make_spec, model="nobody:m-1")
    assert isinstance(error, UsageError)
    assert '"nobody"' in error.message


def test_a_provider_whose_package_lacks(
    make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "langchain_fireworks", None)
    error = refusal(make_spec, model="fireworks:m-1")
    assert isinstance(error, InfraError)
    assert (error.code, error.remedy) == ("chat-missing", "pip install langchain-fireworks")


def test_without_langchain(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    error = refusal(make_spec, model="openai:m-1")
    assert isinstance(error, InfraError)
    assert "'.[chat]' in AgentRunner's folder" in error.remedy


def test_without_a_key(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    error = refusal(make_spec, model="openai:m-1")
    assert (error.code, error.remedy) == ("no-planner-key", "export OPENAI_API_KEY=…")


def test_a_key_crosses_no_network_in_the_clear(make_spec: MakeSpec) -> None:
    error = refusal(make_spec, model="openai:m-1", base_url="http://example.invalid/v1")
    assert error.code == "base-url-refused"


def test_it_is_not_recorded(make_spec: MakeSpec, tmp_path: Path) -> None:
    spec = make_spec(kind="chat", model="openai:m")
    with pytest.raises(UsageError, match="neither recorded nor replayed"):
        make_planner(spec, {}, Cassette(record=tmp_path / "tape"))
    with pytest.raises(UsageError, match="neither recorded nor replayed"):
        make_planner(spec, {}, Cassette(replay=tmp_path / "tape"))
