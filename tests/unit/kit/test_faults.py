"""Scripted refusals are understood as what they are, and every answer is on the books."""

from __future__ import annotations

import http.client
import json
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from urllib.parse import urlsplit

import pytest

from agentrunner.gateway.upstream_errors import classify
from tests.kit.faults import Provider, Refusal, ResetIn, refused
from tests.kit.model_server import ModelServer, Served
from tests.kit.scenario import Scenario, Turn
from tests.kit.wire import Usage

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MEANING = {
    "401": "auth", "404": "model", "429": "quota", "500": "server", "overload": "overload",
    "context": "context", "schema": "request",
}  # fmt: skip
PATHS: dict[str, dict[str, Any]] = {
    "/v1/responses": {"input": []},
    "/v1/chat/completions": {"messages": []},
    "/v1/messages": {"messages": []},
    "/v1beta/models/m:generateContent": {"contents": []},
}


@pytest.mark.parametrize("provider", get_args(Provider))
@pytest.mark.parametrize("name", get_args(Refusal))
def test_a_refusal_means_the_same_with_every_provider(provider: Provider, name: Refusal) -> None:
    error = refused(name, provider, "m-1", NOW)
    seen = classify(error.status, error.headers, json.dumps(error.body).encode(), NOW)
    assert (seen.kind, seen.reset_at) == (MEANING[name], None)


@pytest.mark.parametrize("provider", get_args(Provider))
@pytest.mark.parametrize("reset_in", ["header", "body"])
def test_a_spent_quota_tells_when_it_is_back(provider: Provider, reset_in: ResetIn) -> None:
    error = refused("429", provider, "m-1", NOW, reset_sec=7, reset_in=reset_in)
    seen = classify(error.status, error.headers, json.dumps(error.body).encode(), NOW)
    assert seen.reset_at == NOW + timedelta(seconds=7)


def ask(server: ModelServer, path: str, **body: Any) -> tuple[int, Any]:
    client = http.client.HTTPConnection("127.0.0.1", urlsplit(server.address).port, timeout=10)
    try:
        tools = [{"type": "function", "name": "x", "input_schema": {}, "function": {"name": "x"},
                  "functionDeclarations": [{"name": "x"}]}]  # fmt: skip
        client.request("POST", path, json.dumps({"model": "m", "tools": tools, **body}))
        answer = client.getresponse()
        return answer.status, answer.read()
    finally:
        client.close()


@pytest.mark.parametrize("path", PATHS)
def test_every_wire_can_fail_and_every_answer_is_booked(path: str) -> None:
    turn = Turn("Hello.", refusal="429", reset_in="header", times=1)
    with ModelServer(Scenario([turn])) as server:
        assert ask(server, path, **PATHS[path])[0] == 429
        assert ask(server, path, **PATHS[path])[0] == 200
    assert server.served == [Served(path, "m", 429), Served(path, "m", 200, Usage(1200, 34))]
    assert server.told == Usage(1200, 34)


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_that_is_cut_tells_no_tokens(path: str) -> None:
    server = ModelServer(Scenario([Turn("Hello.", cut=True)]))
    with server, pytest.raises(http.client.IncompleteRead):
        ask(server, path, **PATHS[path])
    assert server.served == [Served(path, "m", 200)]
