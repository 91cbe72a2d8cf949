"""What a provider answers when it will not answer, in each provider's own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

Refusal = Literal["401", "404", "429", "500", "overload", "context", "schema"]
ResetIn = Literal["header", "body", ""]
Provider = Literal["openai", "anthropic", "gemini"]


@dataclass(frozen=True)
class HttpError:
    """An answer with an error status."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


def refused(
    name: Refusal,
    provider: Provider,
    model: str,
    now: datetime,
    *,
    reset_sec: int = 5,
    reset_in: ResetIn = "",
) -> HttpError:
    """The answer of this provider. A 429 tells in the named place that it is over in `reset_sec`.

    Anthropic has no place in the body for it: there it is the header of the limit itself.
    """
    status, kind, message = _WORDS[provider][name]
    headers = {}
    error: dict[str, Any] = {"message": message.format(model=model)}
    if name == "429" and reset_in == "header":
        headers["Retry-After"] = str(reset_sec)
    if provider == "openai":
        code, error_type = kind.split()
        error |= {"type": error_type, "param": None, "code": None if code == "-" else code}
        if name == "429" and reset_in == "body":
            error["message"] += f" Please try again in {reset_sec}s."
        return HttpError(status, {"error": error}, headers)
    if provider == "anthropic":
        if name == "429" and reset_in == "body":
            headers["anthropic-ratelimit-requests-remaining"] = "0"
            end = now + timedelta(seconds=reset_sec)
            headers["anthropic-ratelimit-requests-reset"] = end.isoformat(timespec="seconds")
        body = {"type": "error", "error": {"type": kind, **error}, "request_id": "req_fault"}
        return HttpError(status, body, headers)
    error |= {"code": status, "status": kind}
    if name == "429" and reset_in == "body":
        retry = "type.googleapis.com/google.rpc.RetryInfo"
        error["details"] = [{"@type": retry, "retryDelay": f"{reset_sec}s"}]
    return HttpError(status, {"error": error}, headers)


_WORDS: Mapping[Provider, Mapping[Refusal, tuple[int, str, str]]] = {
    "openai": {
        "401": (401, "invalid_api_key invalid_request_error", "Incorrect API key provided."),
        "404": (
            404,
            "model_not_found invalid_request_error",
            "The model `{model}` does not exist or you do not have access to it.",
        ),
        "429": (
            429,
            "rate_limit_exceeded requests",
            "Rate limit reached for {model} on requests per min (RPM): Limit 3, Used 3.",
        ),
        "500": (
            500,
            "- server_error",
            "The server had an error while processing your request. Sorry about that!",
        ),
        "overload": (
            503,
            "server_is_overloaded service_unavailable_error",
            "Our servers are currently overloaded. Please try again later.",
        ),
        "context": (
            400,
            "context_length_exceeded invalid_request_error",
            "Your input exceeds the context window of this model. Please adjust your input and "
            "try again.",
        ),
        "schema": (
            400,
            "invalid_json_schema invalid_request_error",
            "Invalid schema for response_format 'codex_output_schema': In context=('properties', "
            "'payload'), 'anyOf' is not permitted.",
        ),
    },
    "anthropic": {
        "401": (401, "authentication_error", "invalid x-api-key"),
        "404": (404, "not_found_error", "model: {model}"),
        "429": (
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 50 requests per minute.",
        ),
        "500": (500, "api_error", "Internal server error"),
        "overload": (529, "overloaded_error", "Overloaded"),
        "context": (
            400,
            "invalid_request_error",
            "prompt is too long: 210345 tokens > 200000 maximum",
        ),
        "schema": (
            400,
            "invalid_request_error",
            "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft "
            "2020-12.",
        ),
    },
    "gemini": {
        "401": (401, "UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
        "404": (
            404,
            "NOT_FOUND",
            "models/{model} is not found for API version v1beta, or is not supported for "
            "generateContent.",
        ),
        "429": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota."),
        "500": (500, "INTERNAL", "An internal error has occurred. Please retry."),
        "overload": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        "context": (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1100000) exceeds the maximum number of tokens allowed "
            "(1048575).",
        ),
        "schema": (
            400,
            "INVALID_ARGUMENT",
            "Invalid value at 'generation_config.response_schema': the schema has too many states.",
        ),
    },
}
"""Status, code (OpenAI: code and type) and message; OpenAI has no 529, its 503 says the same."""
