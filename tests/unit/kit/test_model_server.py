"""The scripted model server, asked by plain HTTP."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.kit.model_server import Fault, ModelServer, Say, ScriptItem
from tests.kit.scenario import Scenario, Shell, Turn

SHELL = {"type": "function", "name": "exec_command", "parameters": {"properties": {"cmd": {}}}}


def post(server: ModelServer, path: str, **body: Any) -> tuple[int, dict[str, str], str]:
    address = urlsplit(server.base_url)
    client = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
    try:
        headers = {"Authorization": "Bearer sk-1", "Content-Type": "application/json"}
        client.request("POST", address.path + path, json.dumps(body), headers)
        answer = client.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        client.close()


def chat(server: ModelServer, **body: Any) -> tuple[int, str]:
    status, _, text = post(server, "/chat/completions", model="m", messages=[], **body)
    return status, json.loads(text).get("choices", [{}])[0].get("message", {}).get("content", "")


def test_chat_answers_in_the_order_of_the_script() -> None:
    script: list[ScriptItem] = [
        "one",
        Say("two", finish_reason="length", input_tokens=7),
        Fault(503),
        "three",
    ]
    with ModelServer(chat_script=script) as server:
        assert chat(server) == (200, "one")
        second = json.loads(post(server, "/chat/completions", model="m", messages=[])[2])
        assert chat(server) == (503, "")
        assert chat(server) == (200, "three")
        assert server.script_left == 0
        assert chat(server) == (400, "")
    assert second["choices"][0]["finish_reason"] == "length"
    assert second["usage"]["prompt_tokens"] == 7
    assert [request.bearer for request in server.requests] == ["sk-1"] * 5


def test_a_fault_brings_its_headers_or_hangs_up() -> None:
    script = [Fault(429, "slow down", {"Retry-After": "2"}), Fault()]
    with ModelServer(chat_script=script) as server:
        status, headers, text = post(server, "/chat/completions", model="m", messages=[])
        assert (status, headers["Retry-After"]) == (429, "2")
        assert json.loads(text)["error"]["message"] == "slow down"
        with pytest.raises(http.client.RemoteDisconnected):
            post(server, "/chat/completions", model="m", messages=[])


def test_chat_streams() -> None:
    with ModelServer(chat_script=["a long enough answer"]) as server:
        text = post(server, "/chat/completions", model="m", messages=[], stream=True)[2]
    *frames, done = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    deltas = [choice["delta"] for frame in frames for choice in json.loads(frame)["choices"]]
    assert done == "[DONE]"
    assert "".join(delta.get("content", "") for delta in deltas) == "a long enough answer"


def test_the_turn_is_read_off_the_request() -> None:
    scenario = Scenario([Turn("look", [Shell("ls")]), Turn("seen")], side_reply="a title")
    said = {"role": "assistant", "content": [{"type": "output_text", "text": "look"}]}
    with ModelServer(scenario) as server:
        first = json.loads(post(server, "/responses", input=[], tools=[SHELL])[2])
        second = json.loads(post(server, "/responses", input=[said], tools=[SHELL])[2])
        side = json.loads(post(server, "/responses", input=[])[2])
    assert [item["type"] for item in first["output"]] == ["message", "function_call"]
    assert json.loads(first["output"][1]["arguments"]) == {"cmd": "ls"}
    assert second["output"][0]["content"][0]["text"] == "seen"
    assert side["output"][0]["content"][0]["text"] == "a title"


def test_a_fault_wears_off() -> None:
    with ModelServer(Scenario([Turn("late", status=500, times=1)])) as server:
        statuses = [post(server, "/responses", input=[], tools=[SHELL])[0] for _ in range(2)]
    assert statuses == [500, 200]


def test_a_tool_that_is_not_offered_is_said() -> None:
    with ModelServer(Scenario([Turn("x", [Shell("ls")])])) as server:
        tools = [{"type": "custom", "name": "other"}]
        status, _, text = post(server, "/responses", input=[], tools=tools)
    assert status == 400 and "no tool for 'ls'" in text


def test_an_answer_that_hangs_ends_with_the_server() -> None:
    server = ModelServer(Scenario([Turn(hang=True)])).start()
    address = urlsplit(server.base_url)
    client = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
    client.request("POST", "/v1/responses", json.dumps({"input": [], "tools": [SHELL]}))
    answer = client.getresponse()
    server.stop()
    with pytest.raises(http.client.IncompleteRead):
        answer.read()
    client.close()
