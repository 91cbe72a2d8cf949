from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrunner.workers.base import Failure, FailureKind
from agentrunner.workers.failures import (
    classify,
    failure_of,
    kind_of_status,
    reset_time,
    unknown_flag,
)

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Missing environment variable: `AR_MODEL_KEY`.", "auth"),
        ("unexpected status 403 Forbidden", "auth"),
        ("Not logged in · Please run /login", "auth"),
        ('[API Error: {"error":{"code":401,"status":"UNAUTHENTICATED"}}]', "auth"),
        ("litellm.AuthenticationError: OpenAIException - bad key", "auth"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limit"),
        ("You exceeded your current quota, please check your plan", "rate_limit"),
        ("5-hour limit reached ∙ resets 3pm", "rate_limit"),
        ("Claude AI usage limit reached|1795274400", "rate_limit"),
        ("Your credit balance is too low", "rate_limit"),
        ("API Error: 529 Overloaded", "rate_limit"),
        ("Your input exceeds the context window of this model", "context"),
        ("Prompt is too long · this conversation", "context"),
        ("The model `x` does not exist or you do not have access to it", "model"),
        ("There's an issue with the selected model (x)", "model"),
        ("We’re currently experiencing high demand", "server"),
        ("API Error: 500 oops", "server"),
        ("idle timeout waiting for SSE", "network"),
        ("stream disconnected before completion", "network"),
        ("getaddrinfo ENOTFOUND api.openai.com", "network"),
        ("unexpected status 418", "protocol"),
        ("API returned an empty or malformed response (HTTP 200)", "protocol"),
        ("[API Error: Incomplete JSON segment at the end]", "protocol"),
        ("Model stream ended without a finish reason.", "protocol"),
        ("request ended without sending any chunks", "protocol"),
        ("litellm.InternalServerError: Empty or invalid response from LLM endpoint", "protocol"),
        ("something else", None),
        ("", None),
    ],
)
def test_what_a_message_is_about(message: str, kind: FailureKind | None) -> None:
    assert classify(message) == kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "auth"), (402, "rate_limit"), (403, "auth"), (404, "model"), (413, "context"),
        (400, "protocol"), (429, "rate_limit"), (500, "server"), (503, "server"),
        (529, "rate_limit"), (200, None), (None, None), ("401", None), (True, None), (999, None),
    ],
)  # fmt: skip
def test_what_a_status_is_about(status: object, kind: FailureKind | None) -> None:
    assert kind_of_status(status) == kind


def test_a_code_wins_over_words_but_a_refusal_may_be_of_any_kind() -> None:
    assert failure_of("no rate limit here", NOW, kind="server") == Failure(
        "server", "no rate limit here"
    )
    long = "prompt is too long: 2 > 1"
    assert failure_of(long, NOW, kind="protocol") == Failure("context", long)
    assert failure_of("nonsense", NOW, kind="protocol") == Failure("protocol", "nonsense")
    assert failure_of("nonsense", NOW) is None


@pytest.mark.parametrize(
    ("message", "reset"),
    [
        ("Please try again in 5s", "2026-11-21T12:00:05Z"),
        ("Please try again in 1m30s.", "2026-11-21T12:01:30Z"),
        ("Try again in 2 hours and 3 minutes", "2026-11-21T14:03:00Z"),
        ("Please retry in 12.4s.", "2026-11-21T12:00:13Z"),
        ("retry after 30 seconds", "2026-11-21T12:00:30Z"),
        ("Retry-After: 30s", "2026-11-21T12:00:30Z"),
        ("quota resets in 1 day", "2026-11-22T12:00:00Z"),
        ("resets at 2026-11-21T15:00:00Z", "2026-11-21T15:00:00Z"),
        ("resets at 2026-11-21 15:00+01:00", "2026-11-21T14:00:00Z"),
        ("Claude AI usage limit reached|1795284000", "2026-11-21T18:00:00Z"),
        ('{"resets_at":1795284000}', "2026-11-21T18:00:00Z"),
        ("5-hour limit reached ∙ resets 3pm", "2026-11-21T15:00:00Z"),
        ("resets 3am (UTC)", "2026-11-22T03:00:00Z"),
        ("resets at 14:30", "2026-11-21T14:30:00Z"),
        ("resets 12am", "2026-11-22T00:00:00Z"),
        # No time that could be waited for.
        ("try again later", ""),
        ("try again in 900 days", ""),
        ("resets at 2020-01-01T00:00:00Z", ""),
        ("resets at 2026-99-99T00:00:00Z", ""),
        ("resets 25:00", ""),
        ("again 7", ""),
    ],
)
def test_when_a_quota_is_there_again(message: str, reset: str) -> None:
    assert reset_time(message, NOW) == reset


def test_only_a_quota_has_a_reset() -> None:
    assert failure_of("429: try again in 5s", NOW) == Failure(
        "rate_limit", "429: try again in 5s", "2026-11-21T12:00:05Z"
    )
    assert failure_of("500: try again in 5s", NOW) == Failure("server", "500: try again in 5s")


@pytest.mark.parametrize(
    ("stderr", "flag"),
    [
        ("error: unexpected argument '--frob' found\n\nUsage: codex", "--frob"),
        ("error: unknown option '--frobnicate'", "--frobnicate"),
        ("error: invalid value 'x' for '--sandbox <SANDBOX_MODE>'", "--sandbox"),
        ("error: option '--permission-mode <mode>' argument 'x' is invalid", "--permission-mode"),
        ("Unknown argument: frob", "frob"),
        ("Unknown arguments: skip-trust, skipTrust", "skip-trust"),
        ("aider: error: unrecognized arguments: --frob", "--frob"),
        ("Error: No such option: --frob", "--frob"),
        ("No such option '--frob'", "--frob"),
        ("Error: something else", ""),
        ("", ""),
    ],
)
def test_a_flag_that_is_gone_is_named(stderr: str, flag: str) -> None:
    assert unknown_flag(stderr) == flag


@given(st.text() | st.from_regex(r"(try again in|resets|\|)[ \d.:smhd-]{0,40}"))
def test_no_words_break_it(message: str) -> None:
    found = reset_time(message, NOW)
    assert found == "" or datetime.fromisoformat(found) >= NOW
    unknown_flag(message)
