"""What a model server on this machine or its network reports about itself.

That is which server it is, how long its context is, and which models it has. It is queried with
GET, without a key, bypassing any proxy.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from msgspec import Struct

TIMEOUT_SEC = 5.0
MOST_BYTES = 1 << 20
MOST_MODELS = 20
SETTINGS: Mapping[str, str] = {
    "llama.cpp": "llama-server -c {n}",
    "Ollama": "OLLAMA_CONTEXT_LENGTH={n} ollama serve",
    "vLLM": "vllm serve MODEL --max-model-len {n}",
    "LM Studio": "the context length with which the model is loaded",
}
"""How to give each of these servers a longer context."""


class Server(Struct, frozen=True):
    """A model server."""

    name: str = ""
    """"" for an unknown server."""
    context: int | None = None
    """Context of the requested model in tokens; None where the server does not say."""
    models: tuple[str, ...] = ()

    def setting(self, tokens: int) -> str:
        """Return the setting that gives it a context of `tokens`."""
        return SETTINGS.get(self.name, "its setting for the context length").format(n=tokens)


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **more: Any) -> None:
        """Follow no redirects: a local server has no reason to send us elsewhere."""


def look_at(base_url: str, model: str) -> Server:
    """Query the server behind this URL; what it does not report stays empty. Blocks.

    Ollama and LM Studio report a model's context only once it is loaded.
    """
    url = urlsplit(base_url)
    root = f"{url.scheme}://{url.netloc}"
    listed = _json(f"{base_url.rstrip('/')}/models")
    entries = [entry for entry in _list(listed.get("data")) if isinstance(entry, dict)]
    models = tuple(str(entry.get("id", "")) for entry in entries)[:MOST_MODELS]
    props = _json(f"{root}/props")
    if "default_generation_settings" in props:
        return Server("llama.cpp", _first(_contexts_of_llama(props, entries)), models)
    if _json(f"{root}/api/version").get("version"):
        loaded = _list(_json(f"{root}/api/ps").get("models"))
        return Server("Ollama", _first(_values_of(loaded, model, ("context_length",))), models)
    lengths = ("loaded_context_length",)
    studio = _list(_json(f"{root}/api/v0/models").get("data"))
    if any("max_context_length" in entry for entry in studio if isinstance(entry, dict)):
        return Server("LM Studio", _first(_values_of(studio, model, lengths)), models)
    if any("max_model_len" in entry for entry in entries):
        return Server("vLLM", _first(_values_of(entries, model, ("max_model_len",))), models)
    return Server("", None, models)


def _contexts_of_llama(props: Mapping[str, Any], entries: list[Any]) -> Iterator[object]:
    settings = props["default_generation_settings"]
    yield settings.get("n_ctx") if isinstance(settings, dict) else None
    yield props.get("n_ctx")
    for entry in entries:
        meta = entry.get("meta")
        yield meta.get("n_ctx") if isinstance(meta, dict) else None


def _values_of(entries: list[Any], model: str, names: tuple[str, ...]) -> Iterator[object]:
    """Yield the values under `names` in the model's entry, or in the first if none matches."""
    known = [entry for entry in entries if isinstance(entry, dict)]
    mine = [
        entry
        for entry in known
        if model in (entry.get("id"), entry.get("name"), entry.get("model"))
    ]
    for entry in mine or known[:1]:
        yield from (entry.get(name) for name in names)


def _first(values: Iterator[object]) -> int | None:
    return next((entry for entry in values if isinstance(entry, int) and entry > 0), None)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _json(url: str) -> dict[str, object]:
    """Return the JSON object at an address; {} for anything else."""
    opener = build_opener(ProxyHandler({}), _NoRedirects)
    with contextlib.suppress(OSError, ValueError, RecursionError):
        request = Request(url, headers={"accept": "application/json"})
        with opener.open(request, timeout=TIMEOUT_SEC) as answer:
            found = json.loads(answer.read(MOST_BYTES))
            return found if isinstance(found, dict) else {}
    return {}
