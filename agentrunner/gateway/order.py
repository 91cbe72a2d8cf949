"""The order of a gateway process: JSON through its stdin, never written anywhere.

One process serves one command in a sandbox. It listens on Unix sockets in the run's `sock` folder:
`gateway.sock` for model calls, `proxy.sock` for CONNECT, and `control.sock`, where a sandbox hands
over a listener that it made inside (one JSON line `{"socket": "proxy.sock"}` with the file
descriptor as ancillary data).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

GATEWAY_SOCKET = "gateway.sock"
PROXY_SOCKET = "proxy.sock"
CONTROL_SOCKET = "control.sock"

GATEWAY_PORT = 8787
PROXY_PORT = 3128
"""Where a sandbox finds them, on its own loopback."""

Wire = Literal["openai", "anthropic", "gemini"]
_PLACEHOLDER_BYTES = 32


def new_placeholder() -> str:
    """Return a placeholder: worthless elsewhere, as long as a real key, recognisable."""
    return f"sk-agentrunner-placeholder-{secrets.token_hex(_PLACEHOLDER_BYTES)}"


@dataclass(frozen=True)
class Upstream:
    """A model provider, and how calls for it are let through."""

    wire: Wire
    base_url: str
    """The provider's, including a path prefix: "https://api.openai.com/v1"."""
    credential: str = field(repr=False)
    """The real key or access token; "" for a server that needs none."""
    placeholder: str
    """What the sandbox sends instead of it; a call with anything else is refused."""
    scheme: Literal["key", "bearer"] = "key"
    """`key`: in the wire's own header (x-api-key, x-goog-api-key, for openai Authorization).
    `bearer`: always Authorization, as a login's access token is sent."""


@dataclass(frozen=True)
class Allowance:
    """What may still be spent. None is unlimited, 0 is nothing at all."""

    tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True)
class GatewayOrder:
    """Everything one gateway process needs."""

    sockets: Path
    """The run's `sock` folder."""
    egress_log: Path
    """The proxy appends one JSON line per decision to it."""
    usage_log: Path
    """The gateway appends one JSON line per call to it; read with `usage.read_calls`."""
    label: str = ""
    """The worker run or command that it serves, for the logs."""
    allow: tuple[str, ...] | None = None
    """Hosts as people write them, see `hosts`; None opens no proxy, () refuses every host."""
    setting: str = "runner.sandbox.network.allow"
    """The setting that `allow` comes from, for messages to a refused program."""
    ask_after: int = 0
    """After how many refusals of one host a stop is requested; 0 never requests it."""
    upstream: Upstream | None = None
    """None opens no gateway."""
    allowance: Allowance = field(default_factory=Allowance)
    prices: Path | None = None
    """A file of the user's own prices, which override the built-in table."""
    record: Path | None = None
    replay: Path | None = None
    workdir: str = ""
    """The working folder, which a recording must not depend on."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Name to value; none of them gets into a file."""

    def to_json(self) -> bytes:
        """Return the order for the process's stdin."""
        return json.dumps(asdict(self), default=str).encode()

    @classmethod
    def from_json(cls, data: bytes) -> GatewayOrder:
        """Return the order that `to_json` wrote; raises ValueError or ValidationError else."""
        # Not decoded by msgspec, which takes no half characters: a name need not be UTF-8.
        return msgspec.convert(json.loads(data), cls, dec_hook=lambda path, text: path(text))
