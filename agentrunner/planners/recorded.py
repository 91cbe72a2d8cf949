"""The planner's exchanges on a cassette: recorded as they happen, or answered from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentrunner.gateway.cassette import Exchange, Player, Recorder
from agentrunner.gateway.wires import OPENAI, parse

if TYPE_CHECKING:
    import httpx2


class Recording:
    """Keeps one exchange after the other; hooks of the planner's HTTP client call it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: Exchange | None = None

    async def begin(self, request: httpx2.Request) -> None:
        """A request goes out."""
        body = await request.aread()
        path = request.url.path
        self._open = self._recorder.begin(
            request.method, path, OPENAI.model(path, parse(body)), body, metered=True
        )

    def end(self, response: httpx2.Response, chunks: Sequence[bytes]) -> None:
        """Its reply is there, with the body as it came but for its compression."""
        if self._open is not None:
            headers = {
                name.lower(): value
                for name, value in response.headers.items()
                if name.lower() != "content-encoding"
            }
            self._recorder.end(self._open, response.status_code, headers, chunks)
            self._open = None

    def give_up(self, why: str) -> None:
        """There is no reply to what went out; nothing is done where there is one."""
        if self._open is not None:
            self._recorder.end(self._open, 0, {}, (), why)
            self._open = None


def replay_transport(player: Player) -> httpx2.AsyncBaseTransport:
    """What stands in the place of the network: raises Mismatch for a request not recorded."""
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
