"""The model APIs: which calls are let through, where the key is, which usage is reported.

Three providers, four formats: OpenAI's Responses and Chat Completions, Anthropic's Messages and
Gemini's generateContent. Everything here is pure; messages are only read, never changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from agentrunner.gateway.order import Wire
from agentrunner.text.lazy_regex import lazy_regex

Json = Mapping[str, Any]


class CallTokens(Struct, frozen=True):
    """The tokens of one call."""

    input: int
    """Everything read, from a cache or not."""
    output: int
    """Everything written, including thinking."""
    cached: int = 0
    """The part of `input` that came from the provider's cache."""
    cache_write: int = 0
    """The part of `input` that was written to the cache, if that has its own price."""


class Route(Struct, frozen=True):
    """A call that is let through."""

    method: str
    path: re.Pattern[str]
    metered: bool = True
    """False for calls that cost nothing: lists of models, counts of tokens."""


class WireFormat(Struct, frozen=True):
    """One provider's API."""

    name: Wire
    key_header: str
    routes: tuple[Route, ...]
    usage: Callable[[Json], Json]
    """Returns the usage fields of a reply or of one event of its stream; {} if it has none."""
    tokens: Callable[[Json], CallTokens | None]
    """Returns the counts from the usage fields of all events; None if any is missing."""
    error_body: Callable[[int, str, str], dict[str, object]]
    """Returns an error in this API's format from status, our class of error, and a sentence."""

    def route(self, method: str, path: str) -> Route | None:
        """Return which call this is; None if it is not let through."""
        if "%" in path or ".." in path:  # no spelling but the plain one
            return None
        return next(
            (
                route
                for route in self.routes
                if route.method == method and route.path.fullmatch(path)
            ),
            None,
        )

    def model(self, path: str, body: Any) -> str:
        """Return the model that a call asks for, by its own name for it; "" if it names none."""
        if found := _MODEL_IN_PATH.search(path):
            return found[1]
        named = body.get("model") if isinstance(body, dict) else None
        return named if isinstance(named, str) else ""


def credential_headers(wire: WireFormat, credential: str, *, bearer: bool) -> dict[str, str]:
    """Return the header with the key; none for an empty key."""
    if not credential:
        return {}
    if bearer or wire.key_header == "Authorization":
        return {"Authorization": f"Bearer {credential}"}
    return {wire.key_header: credential}


CREDENTIAL_HEADERS = ("Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key")
"""Where clients put their keys; each is removed before the real one is added."""
CREDENTIAL_QUERY = "key"
"""Gemini's clients may also put it into the URL."""

_ID = r"[A-Za-z0-9][\w.:@-]*"
_MODEL_IN_PATH = lazy_regex(rf"/models/({_ID}):\w+$")


def _routes(*lines: str) -> tuple[Route, ...]:
    """Parse lines "METHOD PATH", followed by `free` if the call costs nothing."""
    split = [line.split() for line in lines]
    return tuple(Route(words[0], re.compile(words[1]), "free" not in words) for words in split)


# -- OpenAI, and the many servers that speak like it -----------------------------------------------


def _openai_usage(data: Json) -> Json:
    whole = data.get("response") if isinstance(data.get("response"), dict) else data
    return _object(_object(whole).get("usage"))


def _openai_tokens(usage: Json) -> CallTokens | None:
    if "prompt_tokens" in usage:  # Chat Completions
        given, made = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        read = "prompt_tokens_details"
    else:
        given, made = _count(usage, "input_tokens"), _count(usage, "output_tokens")
        read = "input_tokens_details"
    if given is None or made is None:
        return None
    details = _object(usage.get(read))
    return CallTokens(
        input=given,
        output=made,
        cached=_count(details, "cached_tokens") or 0,
        cache_write=_count(details, "cache_write_tokens") or 0,
    )


def _openai_error(status: int, kind: str, message: str) -> dict[str, object]:
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


OPENAI = WireFormat(
    name="openai",
    key_header="Authorization",
    routes=_routes(
        "POST /responses",
        "POST /responses/compact",
        "POST /responses/input_tokens free",
        "POST /chat/completions",
        "GET /models free",
        rf"GET /models/(?:{_ID}/)*{_ID} free",
    ),
    usage=_openai_usage,
    tokens=_openai_tokens,
    error_body=_openai_error,
)


# -- Anthropic ------------------------------------------------------------------------------------


def _anthropic_usage(data: Json) -> Json:
    if data.get("type") == "message_start":
        start = _object(_object(data.get("message")).get("usage"))
        # What the reply has written is only reported at its end.
        return {name: value for name, value in start.items() if name != "output_tokens"}
    return _object(data.get("usage"))


def _anthropic_tokens(usage: Json) -> CallTokens | None:
    fresh, made = _count(usage, "input_tokens"), _count(usage, "output_tokens")
    if fresh is None or made is None:
        return None
    cached = _count(usage, "cache_read_input_tokens") or 0
    written = _count(usage, "cache_creation_input_tokens") or 0
    return CallTokens(
        input=fresh + cached + written, output=made, cached=cached, cache_write=written
    )  # fmt: skip


_ANTHROPIC_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
}


def _anthropic_error(status: int, kind: str, message: str) -> dict[str, object]:
    name = _ANTHROPIC_ERRORS.get(status, "api_error")
    return {"type": "error", "error": {"type": name, "message": message}}


ANTHROPIC = WireFormat(
    name="anthropic",
    key_header="X-Api-Key",
    routes=_routes(
        "POST /v1/messages",
        "POST /v1/messages/count_tokens free",
        "GET /v1/models free",
        f"GET /v1/models/{_ID} free",
    ),
    usage=_anthropic_usage,
    tokens=_anthropic_tokens,
    error_body=_anthropic_error,
)


# -- Gemini ---------------------------------------------------------------------------------------


def _gemini_usage(data: Json) -> Json:
    candidates = data.get("candidates") or []
    if candidates and not any(_object(c).get("finishReason") for c in candidates):
        return {}  # every event has a running total; only the last one counts
    return _object(data.get("usageMetadata"))


def _gemini_tokens(usage: Json) -> CallTokens | None:
    given = _count(usage, "promptTokenCount")
    if given is None:
        return None
    thoughts = _count(usage, "thoughtsTokenCount") or 0
    return CallTokens(
        input=given + (_count(usage, "toolUsePromptTokenCount") or 0),
        output=(_count(usage, "candidatesTokenCount") or 0) + thoughts,
        cached=_count(usage, "cachedContentTokenCount") or 0,
    )


_GEMINI_ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    502: "UNAVAILABLE",
}


def _gemini_error(status: int, kind: str, message: str) -> dict[str, object]:
    name = _GEMINI_ERRORS.get(status, "INTERNAL")
    return {"error": {"code": status, "message": message, "status": name}}


GEMINI = WireFormat(
    name="gemini",
    key_header="X-Goog-Api-Key",
    routes=_routes(
        rf"POST /v1(?:alpha|beta)?/models/{_ID}:(?:generateContent|streamGenerateContent)",
        rf"POST /v1(?:alpha|beta)?/models/{_ID}:countTokens free",
        "GET /v1(?:alpha|beta)?/models free",
        f"GET /v1(?:alpha|beta)?/models/{_ID} free",
    ),
    usage=_gemini_usage,
    tokens=_gemini_tokens,
    error_body=_gemini_error,
)

WIRES: Mapping[Wire, WireFormat] = {wire.name: wire for wire in (OPENAI, ANTHROPIC, GEMINI)}


def parse(data: bytes) -> Any:
    """Return a body as JSON; None if it is not JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _count(usage: Json, name: str) -> int | None:
    value = usage.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value
