"""How a chat model of LangChain is asked for an answer of a schema, whoever provides it.

Each provider's package knows how its own interface wants that, and binds it as options of the
call. Only these are taken from it: the answer is read here, as it comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

METHOD = "json_schema"
"""The provider holds the text of the answer to the schema; other ways make it a call of a tool."""


def schema_options(
    chat: BaseChatModel, name: str, schema: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Options of a call that ask for this; None where the provider's package has none."""
    from langchain_core.runnables import RunnableBinding

    titled = {"title": name, "description": "The reply.", **schema}
    try:
        reader = chat.with_structured_output(titled, method=METHOD)
    except Exception:  # noqa: BLE001  (each says no in its own way, and words do as well)
        return None
    asked = getattr(reader, "first", None)
    if not isinstance(asked, RunnableBinding) or asked.bound is not chat:
        return None
    options = {key: value for key, value in asked.kwargs.items() if not key.startswith("ls_")}
    if not options or "tools" in options:
        return None
    return _past_the_client(chat, name, schema, options)


def _past_the_client(
    chat: BaseChatModel, name: str, schema: Mapping[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """OpenAI's client would read the answer itself, and raise for one that was cut."""
    form = options.get("response_format")
    if not isinstance(form, Mapping) or "extra_body" not in type(chat).model_fields:
        return options
    exact = {"name": name, "schema": dict(schema), "strict": True}
    form = {"type": METHOD, METHOD: exact}
    if getattr(chat, "use_responses_api", False):  # there it has another name, which it knows
        return {**options, "response_format": form}
    rest = {key: value for key, value in options.items() if key != "response_format"}
    return {**rest, "extra_body": {"response_format": form}}
