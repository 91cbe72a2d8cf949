"""A planner's server in a process of its own, so that its work is in nobody's figure.

    with Server(loops=20) as server:
        …  server.environ  …
        server.first_request()

It answers the first request with a plan and every other one with "run the worker".
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from benchmarks.measure import Child
from benchmarks.planner import next_action, plan
from tests.kit.model_server import LoggedRequest, ModelServer

KEY = "sk-benchmark"


class Server(Child):
    """The server's process, from entering to leaving."""

    def __init__(self, loops: int) -> None:
        super().__init__("benchmarks.server", str(loops))

    @property
    def environ(self) -> Mapping[str, str]:
        """What a client needs to find it."""
        return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": self.told}

    def first_request(self) -> float:
        """When the first request came in, on the clock of time.monotonic(). Blocks until then."""
        return float(self.line())


class _Timed(ModelServer):
    """Says when the first request came in."""

    def record(self, request: LoggedRequest) -> None:
        if not self.requests:
            print(time.monotonic(), flush=True)
        super().record(request)


def main(loops: int) -> None:
    """Serve until stdin is closed."""
    script = [plan(), *[next_action()] * (loops + 2)]
    with _Timed(chat_script=script) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
