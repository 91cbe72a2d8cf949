"""T13 from inside of real boxes: the listed host and nothing else, on every back end."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from agentrunner.gateway.order import PROXY_PORT, PROXY_SOCKET, GatewayOrder
from agentrunner.gateway.process import GatewayProcess, running
from agentrunner.sandboxes.base import BoxSpec, Sandbox
from agentrunner.sandboxes.choose import make_sandbox
from agentrunner.sandboxes.conformance import run_conformance
from agentrunner.sandboxes.conformance.egress import PORT, SOCKET, egress_checks
from tests.kit.bwrap import require_bwrap


def start_proxy(
    sockets: Path, log: Path, allow: tuple[str, ...]
) -> AbstractAsyncContextManager[GatewayProcess]:
    order = GatewayOrder(sockets, log, log.with_name("usage.jsonl"), label="check", allow=allow)
    return running(order, os.environ)


async def keeps(kind: str, scratch: Path) -> None:
    def make(spec: BoxSpec) -> Sandbox:
        state = spec.home.parents[2]
        return make_sandbox(kind, spec, os.environ, Path.home(), state_root=state)

    checks = egress_checks(start_proxy)
    results = await run_conformance(make, scratch, checks=checks)
    assert [result for result in results if result.status != "passed"] == []
    assert len(results) == 6 and all(result.detail for result in results)


async def test_bwrap_lets_out_what_is_listed_and_nothing_else(tmp_path: Path) -> None:
    require_bwrap()
    await keeps("bwrap", tmp_path)


def test_the_checks_and_the_process_name_the_same_door() -> None:
    assert (PORT, SOCKET) == (PROXY_PORT, PROXY_SOCKET)
