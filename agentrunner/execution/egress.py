"""What may leave the box: the policy in force, the worker's gateway, and questions about hosts."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from agentrunner.environment import prices_file
from agentrunner.errors.command_line import ReplayMismatch
from agentrunner.execution.budget_questions import allowance
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.questions import answered, question, remark, subject_of
from agentrunner.gateway.egress_log import read_egress
from agentrunner.gateway.order import (
    GATEWAY_PORT,
    GATEWAY_SOCKET,
    PROXY_PORT,
    PROXY_SOCKET,
    GatewayOrder,
    Upstream,
)
from agentrunner.gateway.usage import Usage, read_usage
from agentrunner.policy.match import may_reach
from agentrunner.sandboxes.base import Door
from agentrunner.sandboxes.environment import proxy_environment
from agentrunner.state.run_state import Question, TaskContext, WorkerOrder, WorkerRun

ASK_AFTER = 8
"""Refusals of one host in one worker run, from which on it is more than a CLI's small talk."""
EGRESS_LOG = "egress.jsonl"
USAGE_LOG = "usage.jsonl"
"""In a worker run's folder."""


@dataclass(frozen=True)
class EgressRoute:
    """A worker's way out: what stands at it, what leads to it, and what the worker is told."""

    order: GatewayOrder | None = None
    door: Door | None = None
    base_url: str | None = None
    """Where the worker finds its model; None where it is not told another place."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead programs to the proxy."""
        if self.door is None or PROXY_SOCKET not in self.door.ports.values():
            return {}
        return proxy_environment(PROXY_PORT)


def exit_for(
    state: TaskContext, deps: Deps, order: WorkerOrder, upstream: Upstream | None
) -> EgressRoute:
    """The way out of one worker run; `upstream` is where its model calls go, with the real key."""
    member = deps.member(order.member)
    network = member.network
    if not deps.sandbox.isolates or network.policy == "none":
        return EgressRoute()
    ports: dict[int, str] = {}
    allow = None
    if network.policy == "allowlist":
        # What a person allowed before a policy came may be too much today.
        granted = (host for host in state.get("allowed_hosts", []) if may_reach(deps.spec, host))
        allow = (*network.allow, *granted)
        ports[PROXY_PORT] = PROXY_SOCKET
    if upstream is not None:
        # With the host's network the loopback is the host's, where others listen, too.
        port = GATEWAY_PORT if network.policy == "allowlist" else _free_port()
        ports[port] = GATEWAY_SOCKET
    if not ports:
        return EgressRoute()
    gateway = GatewayOrder(
        sockets=deps.folder.sock_dir,
        egress_log=deps.folder.root / EGRESS_LOG,
        usage_log=deps.ledger.dir(order.worker_run_id) / USAGE_LOG,
        label=order.worker_run_id,
        allow=allow,
        ask_after=ASK_AFTER if allow is not None else 0,
        upstream=upstream,
        allowance=allowance(member.spec, state, state["counters"], subscribed=member.subscribed),
        prices=prices_file(deps.environ),
        record=deps.cassette.record,
        replay=deps.cassette.replay,
        workdir=deps.spec.repo,
        secrets=deps.secrets,
    )
    return EgressRoute(
        order=gateway,
        door=Door(deps.folder.sock_dir, ports),
        base_url=f"http://127.0.0.1:{port}" if upstream else None,
    )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def usage_of(deps: Deps, worker_run_id: str) -> Usage:
    """What the gateway of a worker run counted; nothing where there was none."""
    return read_usage(deps.ledger.dir(worker_run_id) / USAGE_LOG)


def refuse_unrecorded(used: Usage) -> None:
    """Raise TaskFailed where a replayed run asked for something that was not recorded."""
    last = used.last_error
    if last is not None and last.error == "replay":
        raise ReplayMismatch(last.detail, remedy="record the run again")


# -- hosts that were refused ----------------------------------------------------------------------


def refused_hosts(deps: Deps, worker_run_id: str = "") -> list[str]:
    """Whom a worker run, else all of the run, asked for and never reached, as `host:port`."""
    used = read_egress(deps.folder.root / EGRESS_LOG, worker_run_id)
    return [f"{use.host}:{use.port}" for use in used if use.refused and not use.allowed]


def host_question(state: TaskContext, deps: Deps, run: WorkerRun, host: str) -> Question | None:
    """Whether a host may be reached; None where a person said no already, or may not say yes."""
    if host in state.get("refused_hosts", []) or not may_reach(deps.spec, host):
        return None
    text = (
        f"The worker keeps asking for {host}, which is not on the allow-list. Allow it in this run?"
    )
    return question("network", text, {"host": host, "worker_run": run.worker_run_id}, state)


def answered_about_host(state: TaskContext) -> Update:
    """What a person said about a host, for the next worker run and the next decision."""
    answer = answered(state, "network")
    if answer is None:
        return {}
    host = str(subject_of(state)["host"])
    if answer.decision == "approve":
        message = f"A person allowed the worker to reach {host}. Run it again where it needs that."
        allowed = [*state.get("allowed_hosts", []), host]
        return {"answer": None, "allowed_hosts": allowed, "remarks": remark(state, message)}
    message = (
        f"A person refused the worker {host}: {answer.text or 'no reason given'}. Do without it."
    )
    refused = [*state.get("refused_hosts", []), host]
    return {"answer": None, "refused_hosts": refused, "remarks": remark(state, message)}
