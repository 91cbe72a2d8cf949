"""What errors of model providers mean. The texts are theirs, as far as known."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agentrunner.gateway.upstream_errors import MAX_DETAIL, classify

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


def openai(message: str, code: str | None = None, kind: str = "invalid_request_error") -> Any:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic(kind: str, message: str) -> Any:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def gemini(code: int, status: str, message: str, **more: Any) -> Any:
    return {"error": {"code": code, "message": message, "status": status, **more}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, openai("Incorrect API key provided: sk-ab***yz.", "invalid_api_key"), "auth"),
        (401, anthropic("authentication_error", "OAuth token has expired."), "auth"),
        (403, anthropic("permission_error", "Your key may not use this resource."), "auth"),
        (403, gemini(403, "PERMISSION_DENIED", "Method doesn't allow unregistered"), "auth"),
        (400, gemini(400, "INVALID_ARGUMENT", "API key not valid. Please pass"), "auth"),
        (404, openai("The model `gpt-9` does not exist or you do not have access to it.",
                     "model_not_found"), "model"),
        (404, anthropic("not_found_error", "model: claude-9"), "model"),
        (404, gemini(404, "NOT_FOUND", "models/gemini-9 is not found for API version"), "model"),
        (400, openai("The requested model 'x' is not supported.", "model_not_found"), "model"),
        (403, openai("Project does not have access to model `o3`", "model_not_found"), "model"),
        (429, openai("Rate limit reached for gpt-5.5", "rate_limit_exceeded", "tokens"), "quota"),
        (429, openai("You exceeded your current quota, please check your plan and billing.",
                     "insufficient_quota", "insufficient_quota"), "quota"),
        (429, anthropic("rate_limit_error", "This request would exceed your limit"), "quota"),
        (400, anthropic("invalid_request_error", "Your credit balance is too low to access the "
                        "Anthropic API."), "quota"),
        (402, openai("Insufficient credits"), "quota"),
        (429, gemini(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota"), "quota"),
        (529, anthropic("overloaded_error", "Overloaded"), "overload"),
        (503, openai("That model is currently overloaded", None, "server_error"), "overload"),
        (503, gemini(503, "UNAVAILABLE", "The model is overloaded."), "overload"),
        (400, openai("This model's maximum context length is 128000 tokens. However, your "
                     "messages resulted in 200000", "context_length_exceeded"), "context"),
        (400, openai("Your input exceeds the context window of this model.",
                     "context_length_exceeded"), "context"),
        (400, anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000"),
         "context"),
        (413, anthropic("request_too_large", "Request exceeds the maximum size"), "context"),
        (400, gemini(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the "
                     "maximum number of tokens allowed (1048576)."), "context"),
        (400, openai("Invalid type for 'input': expected an array."), "request"),
        (422, openai("Unprocessable"), "request"),
        (500, openai("The server had an error while processing", None, "server_error"), "server"),
        (502, None, "server"),
        (500, anthropic("api_error", "Internal server error"), "server"),
        (504, None, "server"),
        (408, None, "network"),
        # in a stream that had begun well
        (200, anthropic("overloaded_error", "Overloaded"), "overload"),
        (200, openai("Rate limit reached", "rate_limit_exceeded", "tokens"), "quota"),
        (200, {"error": {"code": "server_error", "message": "An error occurred"}}, "server"),
        (200, {"error": {"code": "context_length_exceeded", "message": "Too long"}}, "context"),
        (200, {"error": {"message": "?"}}, "server"),
    ],
)  # fmt: skip
def test_classes(status: int, body: Any, kind: str) -> None:
    data = b"<html>Bad gateway</html>" if body is None else json.dumps(body).encode()
    assert classify(status, {}, data, NOW).kind == kind


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "20"}, {}, 20),
        ({"Retry-After": "Sat, 21 Nov 2026 10:05:00 GMT"}, {}, 300),
        ({"Retry-After-Ms": "1500"}, {}, 1.5),
        (
            {
                "x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s",
            }, {}, 360,
        ),
        ({"x-ratelimit-reset-requests": "17ms", "x-ratelimit-reset-tokens": "1.5s"}, {}, 1.5),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2026-11-21T10:01:00Z",
                "anthropic-ratelimit-tokens-remaining": "1000",
                "anthropic-ratelimit-tokens-reset": "2026-11-21T10:59:00Z",
            }, {}, 60,
        ),
        ({"anthropic-ratelimit-unified-reset": str(int(NOW.timestamp()) + 7200)}, {}, 7200),
        ({}, {"error": {"type": "usage_limit_reached", "resets_in_seconds": 3600}}, 3600),
        ({}, {"error": {"type": "usage_limit_reached",
                        "resets_at": int(NOW.timestamp()) + 60}}, 60),
        ({}, gemini(429, "RESOURCE_EXHAUSTED", "Quota.", details=[
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure"},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}]), 34.07),
        ({}, openai("Limit 30000, Used 29000. Please try again in 6m11.7s. Visit"), 371.7),
        ({}, openai("Please try again in 20s."), 20),
        ({"Retry-After": "5"}, openai("Please try again in 20s."), 5),
        ({}, openai("You exceeded your current quota"), None),
        ({"Retry-After": "soon"}, {}, None),
        ({"Retry-After": "-5"}, {}, None),
        ({"Retry-After": "nan"}, {}, None),
        ({"Retry-After": "1e300"}, {}, None),
        ({"x-ratelimit-reset-tokens": "whenever"}, {}, None),
        ({}, {"error": {"resets_at": 1e11}}, None),
        ({}, {"error": {"details": ["x", {"retryDelay": 3}], "resets_in_seconds": True}}, None),
    ],
)  # fmt: skip
def test_when_a_quota_is_there_again(
    headers: dict[str, str], body: Any, seconds: float | None
) -> None:
    error = classify(429, headers, json.dumps(body).encode(), NOW)
    assert error.kind == "quota"
    expected = None if seconds is None else NOW + timedelta(seconds=seconds)
    assert error.reset_at == expected


def test_only_what_passes_has_an_end() -> None:
    assert classify(401, {"Retry-After": "5"}, b"", NOW).reset_at is None
    assert classify(529, {"Retry-After": "5"}, b"", NOW).reset_at == NOW + timedelta(seconds=5)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (json.dumps(openai("No\n  such key.")).encode(), "No such key."),
        (b'{"error": "plain"}', "plain"),
        (b"<html>Bad  gateway</html>", "<html>Bad gateway</html>"),
        (b"\xff\xfe", "��"),
        (b'["error"]', '["error"]'),
        (b"", ""),
        (b"x" * 1_000_000, "x" * MAX_DETAIL),
    ],
)
def test_a_providers_words_are_kept_short(body: bytes, detail: str) -> None:
    assert classify(500, {}, body, NOW).detail == detail
