"""How to ask a LangChain chat model of any provider for an answer that follows a schema.

Each provider's package knows how its API wants that and binds it as call options. Only these
options are taken from it: our own code reads the raw answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

METHOD = "json_schema"
"""The provider holds the answer's text to the schema; the other methods use a tool call."""


def schema_options(
    chat: BaseChatModel, name: str, schema: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return call options that request the schema; None where the provider's package has none."""
    from langchain_core.runnables import RunnableBinding

    titled = {"title": name, "description": "The reply.", **schema}
    try:
        reader = chat.with_structured_output(titled, method=METHOD)
    except Exception:  # noqa: BLE001  (each package refuses differently, and the prompt's words are enough)
        return None
    asked = getattr(reader, "first", None)
    if not isinstance(asked, RunnableBinding) or asked.bound is not chat:
        return None
    options = {key: value for key, value in asked.kwargs.items() if not key.startswith("ls_")}
    if not options or "tools" in options:
        return None
    return _bypass_client(chat, name, schema, options)


def _bypass_client(
    chat: BaseChatModel, name: str, schema: Mapping[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Hide the schema from OpenAI's client, which would parse the answer and raise if it is cut."""
    form = options.get("response_format")
    if not isinstance(form, Mapping) or "extra_body" not in type(chat).model_fields:
        return options
    exact = {"name": name, "schema": dict(schema), "strict": True}
    form = {"type": METHOD, METHOD: exact}
    if getattr(chat, "use_responses_api", False):  # this API's name for it is known
        return {**options, "response_format": form}
    rest = {key: value for key, value in options.items() if key != "response_format"}
    return {**rest, "extra_body": {"response_format": form}}
