"""T13 from inside of real boxes: the listed host and nothing else, on every back end."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from agentrunner.gateway.gateway_process import GatewayProcess, proxy_starter
from agentrunner.gateway.order import PROXY_PORT, PROXY_SOCKET
from agentrunner.sandboxes.base import CommandResult, OnOutput, Request, Sandbox, SandboxOrder
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.choose import make_sandbox
from agentrunner.testing.sandboxes import run_conformance
from agentrunner.testing.sandboxes.egress import HOST, PORT, SOCKET, StartProxy, egress_checks
from agentrunner.testing.sandboxes.workbench import Make
from tests.kit.bwrap import require_bwrap
from tests.kit.engine import connected

start_proxy = proxy_starter(os.environ)


def box(kind: str, spec: SandboxOrder) -> Sandbox:
    state = spec.home.parents[2]
    if kind == "docker":
        # An empty image, which stands on this machine's own programs.
        paths = (*spec.read_paths, Path("/usr"))
        spec = replace(spec, image="agentrunner/worker:hostusr", read_paths=paths)
    return make_sandbox(kind, spec, os.environ, Path.home(), state_root=state)


async def keeps(kind: str, scratch: Path) -> None:
    checks = egress_checks(start_proxy)
    results = await run_conformance(partial(box, kind), scratch, checks=checks)
    assert [result for result in results if result.status != "passed"] == []
    assert len(results) == 6 and all(result.detail for result in results)


async def test_bwrap_lets_out_what_is_listed_and_nothing_else(tmp_path: Path) -> None:
    require_bwrap()
    await keeps("bwrap", tmp_path)


async def test_docker_lets_out_what_is_listed_and_nothing_else(tmp_path: Path) -> None:
    async with connected():
        await keeps("docker", tmp_path)


class Leaking(BwrapSandbox):
    """Has the host's network."""

    def __init__(self, spec: SandboxOrder) -> None:
        super().__init__(replace(spec, network="full"), environ=os.environ, host_home=Path.home())

    async def run(self, request: Request, on_output: OnOutput | None = None) -> CommandResult:
        return await super().run(replace(request, network="full", door=None), on_output)


class Shut(BwrapSandbox):
    """Has no door."""

    def __init__(self, spec: SandboxOrder) -> None:
        super().__init__(spec, environ=os.environ, host_home=Path.home())

    async def run(self, request: Request, on_output: OnOutput | None = None) -> CommandResult:
        return await super().run(replace(request, door=None), on_output)


@asynccontextmanager
async def lenient_proxy(
    sockets: Path, log: Path, allow: tuple[str, ...]
) -> AsyncIterator[GatewayProcess]:
    """Lets anything below model.test through."""
    port = allow[0].partition("@")[0].rpartition(":")[2]
    async with start_proxy(sockets, log, (*allow, f"{HOST}.evil.test:{port}@127.0.0.1")) as proxy:
        yield proxy


@pytest.mark.parametrize(
    ("make", "start", "check", "said"),
    [
        (Leaking, start_proxy, "nothing_goes_around_the_proxy", "reached: ['0 curl -k"),
        (Shut, start_proxy, "allowed_host_is_reached", "curl"),
        (Shut, start_proxy, "other_hosts_are_refused", "tells nothing"),
        (Shut, start_proxy, "plain_http_is_refused", "it was told"),
        (Shut, start_proxy, "proxy_may_crash_and_come_back", "it ended before"),
        (partial(box, "bwrap"), lenient_proxy, "other_hosts_are_refused", "tells nothing"),
    ],
)
async def test_a_way_out_that_is_too_wide_or_shut_is_noticed(
    tmp_path: Path, make: Make, start: StartProxy, check: str, said: str
) -> None:
    require_bwrap()
    chosen = [each for each in egress_checks(start) if each.__name__ == check]
    (result,) = await run_conformance(make, tmp_path, checks=chosen)
    assert result.status == "failed" and said in result.detail, result


def test_the_checks_and_the_process_name_the_same_door() -> None:
    assert (PORT, SOCKET) == (PROXY_PORT, PROXY_SOCKET)
