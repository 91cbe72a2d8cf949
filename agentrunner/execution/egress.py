"""What may leave a worker's sandbox: network policy, gateway, and questions about hosts."""

from __future__ import annotations

from pathlib import Path

from agentrunner.environment import prices_file
from agentrunner.errors.command_line import ReplayMismatch
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.questions import answered, question, remark, subject_of
from agentrunner.gateway.egress_log import read_egress
from agentrunner.gateway.order import GatewayOrder, Upstream
from agentrunner.launching.route import EGRESS_LOG, EgressRoute, route_of
from agentrunner.money.counters import Usage, allowance, read_usage
from agentrunner.policy.match import may_reach
from agentrunner.state.people import Question
from agentrunner.state.run_state import TaskContext
from agentrunner.state.worker_runs import WorkerOrder, WorkerRun

ASK_AFTER = 8
"""A person is asked after so many refusals of one host in one worker run. CLIs contact some hosts
routinely."""
USAGE_LOG = "usage.jsonl"
"""File name, in a worker run's folder."""


def exit_for(
    state: TaskContext, deps: Deps, order: WorkerOrder, upstream: Upstream | None
) -> EgressRoute:
    """Return the network route of a worker run.

    `upstream` is its model's endpoint, with the real key.
    """
    member = deps.member(order.member)
    network = member.network
    if not deps.sandbox.isolates or network.policy == "none":
        return EgressRoute()
    allow = None
    if network.policy == "allowlist":
        # A policy may be newer than a person's permission, and forbid the host now.
        granted = (host for host in state.get("allowed_hosts", []) if may_reach(deps.spec, host))
        allow = (*network.allow, *granted)
    gateway = GatewayOrder(
        sockets=deps.folder.sock_dir,
        egress_log=deps.folder.root / EGRESS_LOG,
        usage_log=deps.ledger.dir(order.worker_run_id) / USAGE_LOG,
        label=order.worker_run_id,
        allow=allow,
        ask_after=ASK_AFTER if allow is not None else 0,
        upstream=upstream,
        allowance=allowance(
            member.spec,
            state.get("grants", {}),
            state["counters"],
            subscribed=member.subscribed,
        ),
        prices=prices_file(deps.environ),
        record=deps.cassette.record,
        replay=deps.cassette.replay,
        workdir=deps.spec.repo,
        secrets=deps.secrets,
    )
    return route_of(gateway, own_loopback=network.policy == "allowlist")


def usage_of(deps: Deps, worker_run_id: str) -> Usage:
    """Return what the gateway of a worker run counted; nothing where there was no gateway."""
    return read_usage(usage_log(deps, worker_run_id))


def usage_log(deps: Deps, worker_run_id: str) -> Path:
    """Return the file where the gateway of a worker run logs its calls, if it has one."""
    return deps.ledger.dir(worker_run_id) / USAGE_LOG


def refuse_unrecorded(used: Usage) -> None:
    """Raise TaskFailed where a replayed run made a call that was not recorded."""
    last = used.last_error
    if last is not None and last.error == "replay":
        raise ReplayMismatch(last.detail, remedy="record the run again")


# -- hosts that were refused ----------------------------------------------------------------------


def refused_hosts(deps: Deps, worker_run_id: str = "") -> list[str]:
    """Return hosts that a worker run, or the whole run, asked for in vain, as `host:port`."""
    used = read_egress(deps.folder.root / EGRESS_LOG, worker_run_id)
    return [f"{use.host}:{use.port}" for use in used if use.refused and not use.allowed]


def host_question(state: TaskContext, deps: Deps, run: WorkerRun, host: str) -> Question | None:
    """Return the question about a host, or None if a person said no or policy forbids a yes."""
    if host in state.get("refused_hosts", []) or not may_reach(deps.spec, host):
        return None
    text = (
        f"The worker keeps asking for {host}, which is not on the allow-list. Allow it in this run?"
    )
    return question("network", text, {"host": host, "worker_run": run.worker_run_id}, state)


def answered_about_host(state: TaskContext) -> Update:
    """Return the update of a person's answer about a host, for the next worker run and decision."""
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
