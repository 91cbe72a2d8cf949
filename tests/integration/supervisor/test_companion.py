"""A gateway's place beside a worker: there before it, again after its own death, gone after it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentrunner.gateway.gateway_process import GatewayCommand
from agentrunner.supervisor.client import read_result
from tests.kit.stage import Stage, marked

SECRET = "sk-of-the-gateway-0123456789"

SCRIPT = """\
import json, os, sys
length = int(sys.stdin.buffer.readline())
order = json.loads(sys.stdin.buffer.read(length))
with open(order["log"], "a") as log:
    print(os.getpid(), order["secret"] == "{secret}", file=log, flush=True)
    {before}
    print(json.dumps({{"event": "ready"}}), flush=True)
    {after}
    sys.stdin.buffer.read()
    print("end", file=log)
""".replace("{secret}", SECRET)


def beside(stage: Stage, *, before: str = "pass", after: str = "pass") -> GatewayCommand:
    """A stand-in for a gateway that writes its story into `told`."""
    order = f'{{"log": "{stage.root / "told"}", "secret": "{SECRET}"}}'
    script = SCRIPT.format(before=before, after=after)
    env = {"MARKER": stage.marker}
    return GatewayCommand((sys.executable, "-I", "-S", "-c", script), env, order.encode())


def told(stage: Stage) -> list[str]:
    """What the stand-ins wrote."""
    return (stage.root / "told").read_text().splitlines()


async def test_it_is_ready_before_the_worker_and_ended_in_order_after_it(stage: Stage) -> None:
    order = stage.order(f"cat '{stage.root}/told'; echo x > b", companion=beside(stage))
    result = await stage.run(order)
    assert (result.outcome, result.exit_code, result.leftovers) == ("exited", 0, 0)
    seen = stage.text("w1")
    assert seen.split()[1:] == ["True"]
    assert told(stage) == [seen.strip(), "end"]
    assert not marked(stage.marker)


async def test_one_that_is_killed_is_started_again(stage: Stage) -> None:
    script = f"""
        kill -9 $(sed -n 's/ True//p' '{stage.root}/told')
        while [ "$(grep -c True '{stage.root}/told')" -lt 2 ]; do :; done"""
    result = await stage.run(stage.order(script, companion=beside(stage)))
    assert (result.outcome, result.exit_code) == ("exited", 0)
    first, second, end = told(stage)
    assert first != second and end == "end"
    assert not marked(stage.marker)


async def test_a_host_that_is_refused_again_and_again_stops_the_worker(stage: Stage) -> None:
    stop = 'print(json.dumps({"event": "stop", "reason": "example.org:443"}), flush=True)'
    order = stage.order("sleep 1000", companion=beside(stage, after=stop))
    result = await stage.run(order)
    assert (result.outcome, result.error) == ("egress", "example.org:443")
    assert not marked(stage.marker)


@pytest.mark.parametrize("fault", ["sys.exit(3)", "os.close(1)"])
async def test_without_it_no_worker_runs(stage: Stage, fault: str) -> None:
    order = stage.order(f"touch '{stage.root}/ran'", companion=beside(stage, before=fault))
    result = await stage.run(order)
    assert result.outcome == "infra" and "gateway" in result.error
    assert not (stage.root / "ran").exists()
    assert not marked(stage.marker)


async def test_its_secret_is_in_no_file(stage: Stage) -> None:
    result = await stage.run(stage.order("true", companion=beside(stage)))
    assert result.outcome == "exited"
    files = [p for p in Path(stage.root).rglob("*") if p.is_file()]
    assert files and not [p for p in files if SECRET.encode() in p.read_bytes()]
    assert read_result(stage.ledger, "w1", stage.ledger.look("w1")).outcome == "exited"
