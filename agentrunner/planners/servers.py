"""What a model server on this machine or in its network says of itself.

Which server it is, how long its context is, and which models it has. It is asked with GET, without
a key and past any proxy.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

TIMEOUT_SEC = 5.0
MOST_BYTES = 1 << 20
MOST_MODELS = 20
SETTINGS: Mapping[str, str] = {
    "llama.cpp": "llama-server -c {n}",
    "Ollama": "OLLAMA_CONTEXT_LENGTH={n} ollama serve",
    "vLLM": "vllm serve MODEL --max-model-len {n}",
    "LM Studio": "the context length with which the model is loaded",
}
"""How each of them is given a longer context."""


@dataclass(frozen=True)
class Server:
    """A model server."""

    name: str = ""
    """"" where it is none that we know."""
    context: int | None = None
    """Tokens, of the model that is asked; None where it does not say."""
    models: tuple[str, ...] = ()

    def setting(self, tokens: int) -> str:
        """What gives it a context of so many tokens."""
        return SETTINGS.get(self.name, "its setting for the context length").format(n=tokens)


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **more: Any) -> None:
        """A server of ours sends nobody elsewhere."""


def look_at(base_url: str, model: str) -> Server:
    """What the server behind this URL says of itself; nothing where it says nothing. Blocks.

    Ollama and LM Studio tell the context of a model once it is loaded.
    """
    url = urlsplit(base_url)
    root = f"{url.scheme}://{url.netloc}"
    listed = _json(f"{base_url.rstrip('/')}/models")
    entries = [one for one in _list(listed.get("data")) if isinstance(one, dict)]
    models = tuple(str(one.get("id", "")) for one in entries)[:MOST_MODELS]
    props = _json(f"{root}/props")
    if "default_generation_settings" in props:
        return Server("llama.cpp", _first(_contexts_of_llama(props, entries)), models)
    if _json(f"{root}/api/version").get("version"):
        loaded = _list(_json(f"{root}/api/ps").get("models"))
        return Server("Ollama", _first(_of(loaded, model, ("context_length",))), models)
    lengths = ("loaded_context_length",)
    studio = _list(_json(f"{root}/api/v0/models").get("data"))
    if any("max_context_length" in one for one in studio if isinstance(one, dict)):
        return Server("LM Studio", _first(_of(studio, model, lengths)), models)
    if any("max_model_len" in one for one in entries):
        return Server("vLLM", _first(_of(entries, model, ("max_model_len",))), models)
    return Server("", None, models)


def _contexts_of_llama(props: Mapping[str, Any], entries: list[Any]) -> Iterator[object]:
    settings = props["default_generation_settings"]
    yield settings.get("n_ctx") if isinstance(settings, dict) else None
    yield props.get("n_ctx")
    for one in entries:
        meta = one.get("meta")
        yield meta.get("n_ctx") if isinstance(meta, dict) else None


def _of(entries: list[Any], model: str, names: tuple[str, ...]) -> Iterator[object]:
    """What the entry of a model says under these names; of the only one where none is called so."""
    known = [one for one in entries if isinstance(one, dict)]
    mine = [one for one in known if model in (one.get("id"), one.get("name"), one.get("model"))]
    for one in mine or known[:1]:
        yield from (one.get(name) for name in names)


def _first(values: Iterator[object]) -> int | None:
    return next((one for one in values if isinstance(one, int) and one > 0), None)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _json(url: str) -> dict[str, object]:
    """The object at an address; an empty one for anything else."""
    opener = build_opener(ProxyHandler({}), _Stay)
    with contextlib.suppress(OSError, ValueError, RecursionError):
        request = Request(url, headers={"accept": "application/json"})
        with opener.open(request, timeout=TIMEOUT_SEC) as answer:
            found = json.loads(answer.read(MOST_BYTES))
            return found if isinstance(found, dict) else {}
    return {}
