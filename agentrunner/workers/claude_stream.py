"""Translates the JSON lines of `claude -p --output-format stream-json` into facts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agentrunner.workers import fact
from agentrunner.workers.base import FailureKind
from agentrunner.workers.failures import kind_of_status
from agentrunner.workers.streams import count_of, dict_of, list_of, text_of

FINAL = r'^\{"type":"result"'
RETRY = r'^\{"type":"system","subtype":"api_retry"'
SYNTHETIC = "<synthetic>"
"""The model name of Claude Code's own messages, such as the text of an error."""
_EXIT_CODE = re.compile(r"Exit code (-?\d{1,10})\b")
_ERRORS: dict[str, FailureKind] = {
    "authentication_failed": "auth",
    "billing_error": "rate_limit",
    "rate_limit": "rate_limit",
    "invalid_request": "protocol",
    "server_error": "server",
    "model_not_found": "model",
}


def facts_of(record: Mapping[str, object]) -> Iterator[fact.Fact]:
    """Yield the facts in one event. What a sub-agent does counts as this run's own."""
    kind, subtype = record.get("type"), record.get("subtype")
    if kind == "system" and subtype == "init":
        yield fact.Session(text_of(record.get("session_id")))
        yield fact.Model(text_of(record.get("model")))
        yield fact.TurnBegan()
    elif kind == "system" and subtype == "api_retry":
        status, error = record.get("error_status"), text_of(record.get("error"))
        yield fact.Retrying(f"{status or ''} {error}".strip(), kind_of(status, error))
    elif kind == "assistant":
        yield from _of_assistant(record)
    elif kind == "user":
        for part in map(dict_of, list_of(dict_of(record.get("message")).get("content"))):
            if part.get("type") == "tool_result":
                yield _result(part)
    elif kind == "result":
        yield from _of_end(record)


def kind_of(status: object, error: str) -> FailureKind | None:
    """Return the failure kind of a status, or of Claude Code's own name for an error."""
    return _ERRORS.get(error) or kind_of_status(status)


def _of_assistant(record: Mapping[str, object]) -> Iterator[fact.Fact]:
    message = dict_of(record.get("message"))
    if message.get("model") == SYNTHETIC:
        return  # the error that the result event reports, too
    for part in map(dict_of, list_of(message.get("content"))):
        if part.get("type") == "text":
            yield fact.WorkerMessage(text_of(part.get("text")))
        elif part.get("type") == "tool_use":
            name, given = text_of(part.get("name")), dict_of(part.get("input"))
            yield fact.ToolBegan(text_of(part.get("id")), _tool(name, given))


def _tool(name: str, given: Mapping[str, object]) -> fact.Tool:
    if name == "Bash":
        return fact.Tool(name, command=text_of(given.get("command")))
    if name in ("Write", "Edit", "MultiEdit", "NotebookEdit"):
        path = text_of(given.get("file_path")) or text_of(given.get("notebook_path"))
        return fact.Tool(name, path=path)
    return fact.Tool(name)


def _result(part: Mapping[str, object]) -> fact.ToolEnded:
    """Return the end of a tool. Only failures report an exit code; without one it may be any."""
    failed = part.get("is_error") is True
    code = _EXIT_CODE.match(_text_in(part.get("content"))) if failed else None
    number = int(code[1]) if code else None
    return fact.ended(text_of(part.get("tool_use_id")), failed=failed, code=number)


def _text_in(content: object) -> str:
    if isinstance(content, list):
        return "".join(text_of(dict_of(part).get("text")) for part in content)
    return text_of(content)


def _of_end(record: Mapping[str, object]) -> Iterator[fact.Fact]:
    """Yield the facts in the last event. An error of the API is a `success` with `is_error`."""
    yield fact.Session(text_of(record.get("session_id")))
    usage = dict_of(record.get("usage"))
    read = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    yield fact.Tokens(
        sum(count_of(usage.get(name)) for name in read), count_of(usage.get("output_tokens"))
    )
    usd = record.get("total_cost_usd")
    if isinstance(usd, int | float) and not isinstance(usd, bool) and 0 <= usd < 1e9:
        yield fact.Cost(float(usd))
    for denial in map(dict_of, list_of(record.get("permission_denials"))):
        yield fact.ToolDenied(text_of(denial.get("tool_name")))
    subtype, text = text_of(record.get("subtype")), text_of(record.get("result"))
    clean = subtype == "success" and record.get("is_error") is False
    if not clean:
        errors = " ".join(filter(None, map(text_of, list_of(record.get("errors")))))
        kind = kind_of_status(record.get("api_error_status"))
        yield fact.Trouble(text or errors or subtype, kind)
    yield fact.Finished(clean, text if clean and text else None)
