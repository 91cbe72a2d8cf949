"""Record the planner's HTTP exchanges on a cassette, or answer requests from one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentrunner.gateway.cassette import Exchange, Player, Recorder
from agentrunner.gateway.wires import OPENAI, parse

if TYPE_CHECKING:
    import httpx2


class Recording:
    """Records one exchange after the other; called by hooks of the planner's HTTP client."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: Exchange | None = None

    async def begin(self, request: httpx2.Request) -> None:
        """Start an exchange for an outgoing request."""
        body = await request.aread()
        path = request.url.path
        self._open = self._recorder.begin(
            request.method, path, OPENAI.model(path, parse(body)), body, metered=True
        )

    def end(self, response: httpx2.Response, chunks: Sequence[bytes]) -> None:
        """End the exchange with its response; `chunks` are the body, decompressed."""
        if self._open is not None:
            headers = {
                name.lower(): value
                for name, value in response.headers.items()
                if name.lower() != "content-encoding"
            }
            self._recorder.end(self._open, response.status_code, headers, chunks)
            self._open = None

    def give_up(self, why: str) -> None:
        """End the open exchange, if any, as one without a response."""
        if self._open is not None:
            self._recorder.end(self._open, 0, {}, (), why)
            self._open = None


def replay_transport(player: Player) -> httpx2.AsyncBaseTransport:
    """Return a transport that replaces the network; raises Mismatch for a request not recorded."""
    import httpx2

    class Replay(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            body = await request.aread()
            exchange = player.answer(request.method, request.url.path, body, metered=True)
            if not exchange.status:
                raise httpx2.ConnectError(exchange.broken)
            return httpx2.Response(
                exchange.status,
                headers=dict(exchange.headers),
                content=b"".join(player.chunks(exchange)),
            )

    return Replay()
