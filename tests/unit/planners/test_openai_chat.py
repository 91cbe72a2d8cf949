"""The OpenAI-compatible planner against a server that does everything wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from agentrunner import environment
from agentrunner.config.agents import DEFAULT_PLANNER_MODEL
from agentrunner.errors import AgentRunnerError, InfraError, UsageError
from agentrunner.planners.base import PlannerUnavailable, Reply
from agentrunner.planners.openai_chat import MAX_BODY_BYTES, OpenAIChatPlanner
from agentrunner.protocol import message_schema
from tests.kit.asked_planner import KEY, ask, fail, request
from tests.kit.fault_server import Fault, FaultServer, MakeSpec, completion


async def test_what_goes_over_the_wire(make_spec: MakeSpec, server: FaultServer) -> None:
    server.script = [completion("{}")]
    assert await ask(make_spec, server, model="m-1") == Reply(
        text="{}",
        finish_reason="stop",
        input_tokens=3,
        output_tokens=4,
        model="some-model-0613",
        known="counted",
        near=True,
    )
    sent = server.requests[0]
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert sent["model"] == "m-1"
    assert sent["messages"] == [
        {"role": "system", "content": "Decide."},
        {"role": "user", "content": "The state."},
    ]
    assert sent["response_format"] == {
        "type": "json_schema",
        "json_schema": {
            "name": "next_action",
            "schema": message_schema("next_action"),
            "strict": True,
        },
    }
    assert "max_tokens" not in sent and "max_completion_tokens" not in sent


async def test_yaml_replies_are_not_constrained(make_spec: MakeSpec, server: FaultServer) -> None:
    server.script = [completion("type: next_action")]
    assert (await ask(make_spec, server, format="yaml")).text == "type: next_action"
    assert "response_format" not in server.requests[0]


async def test_a_limit_is_sent(make_spec: MakeSpec, server: FaultServer) -> None:
    server.script = [completion("{}")]
    client = OpenAIChatPlanner(make_spec(base_url=server.url), {"OPENAI_API_KEY": KEY})
    await client.complete(request(max_output_tokens=8192))
    await client.close()
    assert server.requests[0]["max_completion_tokens"] == 8192


@pytest.mark.parametrize("format_", ["json", "yaml"])
@pytest.mark.parametrize(
    ("answer", "text", "finish_reason"),
    [
        (completion("Sure! Here it is."), "Sure! Here it is.", "stop"),
        (completion('{"type": "next_ac', "length"), '{"type": "next_ac', "length"),
        (completion(None, refusal="I won't."), "I won't.", "refusal"),
        (completion("", "content_filter"), "", "content_filter"),
        (completion(None, reasoning_content='{"type": "next_action"}'), "", "stop"),
    ],
    ids=["prose", "cut", "refusal", "filter", "reasoning-only"],
)
async def test_answers_that_are_none_keep_their_text(
    make_spec: MakeSpec,
    server: FaultServer,
    answer: Fault,
    text: str,
    finish_reason: str,
    format_: str,
) -> None:
    server.script = [answer]
    reply = await ask(make_spec, server, format=format_)
    assert (reply.text, reply.finish_reason) == (text, finish_reason)


async def test_a_cut_answer_keeps_its_usage(make_spec: MakeSpec, server: FaultServer) -> None:
    server.script = [completion("{", "length")]
    reply = await ask(make_spec, server)
    assert (reply.input_tokens, reply.output_tokens) == (3, 4)


async def test_blocks_of_the_responses_api_are_joined(
    make_spec: MakeSpec, server: FaultServer
) -> None:
    text = {"type": "output_text", "text": '{"a": 1}', "annotations": []}
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5-pro",
        "status": "completed",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [text],
            },
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 5,
            "output_tokens": 6,
            "total_tokens": 11,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }
    server.script = [Fault(body=json.dumps(body))]
    reply = await ask(make_spec, server, model="gpt-5-pro", format="yaml")
    assert server.paths == ["/v1/responses"]
    assert (reply.text, reply.finish_reason) == ('{"a": 1}', "stop")
    assert (reply.input_tokens, reply.output_tokens) == (5, 6)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
async def test_the_callers_fault_is_final(
    make_spec: MakeSpec, server: FaultServer, status: int
) -> None:
    server.script = [Fault(status, '{"error": {"message": "no such thing"}}')]
    failure = await fail(make_spec, server)
    assert str(failure) == f"OpenAI API error: {status} no such thing"
    assert not failure.retryable
    assert len(server.paths) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
async def test_the_servers_fault_may_pass_and_is_tried_once_here(
    make_spec: MakeSpec, server: FaultServer, status: int
) -> None:
    server.script = [Fault(status, "busy", {"retry-after": "7"})]
    failure = await fail(make_spec, server)
    assert failure.retryable and failure.retry_after == 7
    assert str(failure) == f"OpenAI API error: {status} busy"
    assert len(server.paths) == 1


async def test_a_long_error_is_capped(make_spec: MakeSpec, server: FaultServer) -> None:
    server.script = [Fault(500, "x" * 100_000)]
    assert len(str(await fail(make_spec, server))) < 2_200


async def test_a_refused_format_is_left_out_from_then_on(
    make_spec: MakeSpec, server: FaultServer
) -> None:
    refusal = '{"error": {"message": "response_format json_schema is not supported"}}'
    server.script = [Fault(400, refusal), completion("{}"), completion("{}")]
    client = OpenAIChatPlanner(make_spec(base_url=server.url), {"OPENAI_API_KEY": KEY})
    with pytest.raises(PlannerUnavailable) as caught:
        await client.complete(request())
    assert caught.value.retryable and caught.value.retry_after == 0
    await client.complete(request())
    await client.complete(request())
    await client.close()
    assert ["response_format" in sent for sent in server.requests] == [True, False, False]


async def test_a_provider_gets_the_runs_schema_and_a_simpler_one_where_it_takes_none(
    make_spec: MakeSpec, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentrunner.planners.endpoint.is_near", lambda host: False)
    refusal = '{"error": {"message": "Invalid schema for response_format"}}'
    server.script = [completion("{}"), *[Fault(400, refusal)] * 3, completion("{}")]
    client = OpenAIChatPlanner(make_spec(base_url=server.url), {"OPENAI_API_KEY": KEY})
    schemas = {"alike": {"title": "run"}, "schema": {"title": "task"}, "simpler": {"title": "any"}}
    await client.complete(request(**schemas))
    for _ in range(3):
        with pytest.raises(PlannerUnavailable) as caught:
            await client.complete(request(**schemas))
        assert caught.value.other_form
    await client.complete(request(**schemas))
    await client.close()
    forms = [sent.get("response_format", {}).get("json_schema", {}) for sent in server.requests]
    asked = [(form.get("name"), form.get("schema", {}).get("title")) for form in forms]
    assert asked == [
        ("reply", "run"), ("reply", "run"), ("next_action", "task"), ("next_action", "any"),
        (None, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "fault", [Fault(reset=True), Fault(body="{", cut=True)], ids=["reset", "cut"]
)
async def test_a_lost_connection_may_come_back(
    make_spec: MakeSpec, server: FaultServer, fault: Fault
) -> None:
    server.script = [fault]
    failure = await fail(make_spec, server)
    assert failure.retryable
    assert "cannot be reached" in str(failure)


async def test_nobody_listens(make_spec: MakeSpec, server: FaultServer) -> None:
    server.close()
    assert (await fail(make_spec, server)).retryable


async def test_a_silent_server_is_not_waited_for(make_spec: MakeSpec, server: FaultServer) -> None:
    server.script = [Fault(stall=True)]
    failure = await fail(make_spec, server, timeout_sec=0.3)
    assert failure.retryable
    assert "no answer within 0.3 s" in str(failure)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault(body='{"choices": []}'), "no choices returned from LLM"),
        (Fault(body='{"choices": null}'), "no choices returned from LLM"),
        (Fault(body="{}"), "no choices returned from LLM"),
        (
            Fault(body="<html>Sign in</html>", headers={"content-type": "text/html"}),
            "OpenAI API error: 200 <html>Sign in</html>",
        ),
        (Fault(body="<html>"), "OpenAI API error: 200 <html>"),
        (Fault(body='{"error": "quota"}'), "OpenAI API error: 200 quota"),
        (Fault(body='{"choices": [{}]}'), "OpenAI API error: 200 "),
        (Fault(body="[" * 100_000), "OpenAI API error: 200 [["),
    ],
)
@pytest.mark.parametrize("format_", ["json", "yaml"])
async def test_a_200_that_is_no_completion(
    make_spec: MakeSpec, server: FaultServer, fault: Fault, says: str, format_: str
) -> None:
    server.script = [fault]
    failure = await fail(make_spec, server, format=format_)
    assert str(failure).startswith(says)
    assert not failure.retryable


async def test_an_endless_body_ends(make_spec: MakeSpec, server: FaultServer) -> None:
    server.script = [Fault(body="x" * (MAX_BODY_BYTES + 1))]
    assert str(await fail(make_spec, server)) == "The planner's server sent more than 8 MiB."


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_does_not_carry_the_key_away(
    make_spec: MakeSpec, server: FaultServer, second_server: FaultServer, status: int
) -> None:
    server.script = [Fault(status, headers={"location": f"{second_server.url}/chat/completions"})]
    second_server.script = [completion("{}")]
    second_server.pages = None  # 301 and 302 are followed by GET
    failure = await fail(make_spec, server)
    assert str(failure).startswith(f"OpenAI API error: {status}")
    assert not failure.retryable
    assert second_server.paths == []


async def test_a_proxy_does_not_see_what_goes_to_this_machine(
    make_spec: MakeSpec,
    server: FaultServer,
    second_server: FaultServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = second_server.url.removesuffix("/v1")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "OPENAI_PROXY"):
        monkeypatch.setenv(name, proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    server.script = [completion("{}")]
    second_server.script = [completion("{}")]
    await ask(make_spec, server)
    assert second_server.paths == []


async def test_tracing_stays_off(
    make_spec: MakeSpec,
    server: FaultServer,
    second_server: FaultServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second_server.script = [Fault(body="{}")]
    monkeypatch.setattr(environment, "_ignored", [])  # of this process, which runs other tests, too
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGCHAIN_TRACING_V2", "true")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", second_server.url)
    monkeypatch.setenv("LANGSMITH_API_KEY", "ls-key")
    server.script = [completion("{}")]
    await ask(make_spec, server)
    assert second_server.paths == []


# -- settings -----------------------------------------------------------------------------------


def test_no_key_costs_nothing(make_spec: MakeSpec) -> None:
    with pytest.raises(InfraError) as caught:
        OpenAIChatPlanner(make_spec(), {})
    error = caught.value
    assert (error.code, error.exit_code, error.nothing_spent) == ("no-planner-key", 5, True)
    assert "OPENAI_API_KEY" in str(error)


def described(make_spec: MakeSpec, environ: dict[str, str], **meta: Any) -> str:
    return OpenAIChatPlanner(make_spec(**meta), {"OPENAI_API_KEY": KEY, **environ}).describe()


def test_which_setting_wins(make_spec: MakeSpec) -> None:
    everything = {
        "AGENTRUNNER_META_MODEL": "ours",
        "OPENAI_MODEL": "theirs",
        "OPENAI_BASE_URL": "https://env.example/v1",
    }
    from_file = {"model": "file", "base_url": "https://file.example:8443/v1"}
    assert described(make_spec, everything, **from_file) == "openai-chat file at file.example:8443"
    assert described(make_spec, everything) == "openai-chat ours at env.example"
    assert (
        described(make_spec, {"OPENAI_MODEL": "theirs"}) == "openai-chat theirs at api.openai.com"
    )
    assert described(make_spec, {}) == f"openai-chat {DEFAULT_PLANNER_MODEL} at api.openai.com"


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example/v1",
        "http://127.0.0.1.example/v1",
        "http://localhost.example/v1",
        "ftp://api.example/v1",
        "api.example/v1",
        "https://user:pass@api.example/v1",
        "http://[::2]/v1",
        "http://[bad/v1",
    ],
)
@pytest.mark.parametrize("source", ["file", "environment"])
def test_base_urls_that_are_refused(make_spec: MakeSpec, url: str, source: str) -> None:
    wanted: type[AgentRunnerError] = UsageError if source == "file" else InfraError
    environ = {"OPENAI_API_KEY": KEY, **({"OPENAI_BASE_URL": url} if source != "file" else {})}
    spec = make_spec(base_url=url if source == "file" else None)
    with pytest.raises(wanted) as caught:
        OpenAIChatPlanner(spec, environ)
    assert caught.value.code == "base-url-refused" and caught.value.nothing_spent


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8091/v1", "http://localhost/v1", "http://[::1]:1/v1", "https://a/v1"]
)
def test_base_urls_that_are_fine(make_spec: MakeSpec, url: str) -> None:
    assert described(make_spec, {}, base_url=url)


PRIVATE = ["10.1.2.3", "172.31.0.1", "192.168.1.20:8080", "169.254.0.9", "[fd00::1]", "[fe80::1]"]
FOREIGN = ["8.8.8.8", "172.32.0.1", "[fc00::1]", "[::ffff:10.0.0.1]", "10.0.0.1.example", "box.lan"]


@pytest.mark.parametrize("host", [*PRIVATE, *FOREIGN])
def test_plain_http_stays_in_the_persons_own_network(make_spec: MakeSpec, host: str) -> None:
    url = f"http://{host}/v1"
    with pytest.raises(UsageError) as caught:
        described(make_spec, {}, base_url=url)
    named = "runner.meta.allow_plain_http=true" in caught.value.remedy
    assert named == (host in PRIVATE)
    if host in PRIVATE:
        told = described(make_spec, {}, base_url=url, allow_plain_http=True)
        assert told.endswith(host.strip("[]"))
        return
    with pytest.raises(UsageError):
        described(make_spec, {}, base_url=url, allow_plain_http=True)


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf"])
def test_a_timeout_that_is_none(make_spec: MakeSpec, text: str) -> None:
    with pytest.raises(InfraError, match="META_TIMEOUT_SEC"):
        described(make_spec, {"META_TIMEOUT_SEC": text})


async def test_the_environments_timeout_counts(make_spec: MakeSpec, server: FaultServer) -> None:
    server.script = [Fault(stall=True)]
    environ = {"OPENAI_API_KEY": KEY, "META_TIMEOUT_SEC": "0.2"}
    client = OpenAIChatPlanner(make_spec(base_url=server.url), environ)
    with pytest.raises(PlannerUnavailable, match=r"within 0\.2 s"):
        await client.complete(request())
    await client.close()


def test_importing_it_costs_no_langchain() -> None:
    code = (
        "import sys, agentrunner.planners.openai_chat as m;"
        "sys.exit(any(name.startswith(('langchain', 'openai')) for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
