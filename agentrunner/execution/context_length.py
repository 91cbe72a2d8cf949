"""How long the planner's context is, and what of it a prompt may use.

`runner.meta.context_tokens` says it, else the planner's own server, which is asked before a
question until it says something. What it said is recorded, so that a question that is asked again
has the same bytes. Blocks.
"""

from __future__ import annotations

from agentrunner.config.spec import TaskSpec
from agentrunner.execution.deps import Deps
from agentrunner.planners.endpoint import near_server
from agentrunner.planners.panel import ROLES, role_candidates
from agentrunner.planners.servers import look_at
from agentrunner.prompts import ContextBudget, budget_for, fixed_tokens
from agentrunner.prompts.context_budget import UNKNOWN
from agentrunner.state.run_state import TaskContext

RECORD = "planner_context"
ASKED = 2
"""Questions before which a server is asked in vain; Ollama says it once the model is loaded."""


def context_budget(state: TaskContext, deps: Deps) -> ContextBudget:
    """Return what a prompt of the present question may tell. May send a request to a server."""
    context = deps.spec.runner.meta.context_tokens or _of_servers(state, deps)
    return budget_for(context, fixed_tokens(deps.spec)) if context else UNKNOWN


def servers_of(spec: TaskSpec, environ: dict[str, str]) -> list[tuple[str, str]]:
    """Return the address and model of each planner with a server on this machine or near it."""
    found = []
    for role in ROLES:
        for candidate in role_candidates(spec, role)[1]:
            server = near_server(candidate.kind, candidate.base_url, candidate.model, environ)
            if server is not None:
                found.append(server)
    return list(dict.fromkeys(found))


def shortest(servers: list[tuple[str, str]]) -> int | None:
    """Return the shortest context that these servers tell; None where none tells any."""
    lengths = [look_at(url, model).context for url, model in servers]
    return min((one for one in lengths if one), default=None)


def _of_servers(state: TaskContext, deps: Deps) -> int | None:
    tape = deps.cassette
    if tape.record is not None or tape.replay is not None:
        return None  # a replay has no server to ask
    if deps.servers is None or deps.servers[0] is not deps.spec:  # a person may change planners
        deps.servers = deps.spec, servers_of(deps.spec, dict(deps.environ))
    servers = deps.servers[1]
    if not servers:
        return None
    of = [" ".join(one) for one in servers]
    key = f"{state['run'].attempt}-{state['counters'].meta_calls}"
    asked = [one for one in deps.log.records(RECORD) if one.data["of"] == of]
    known = next((int(one.data["tokens"]) for one in asked if one.data["tokens"]), 0)
    if known or len(asked) >= ASKED or any(one.key == key for one in asked):
        return known or None
    found = shortest(servers) or 0
    deps.record(state, RECORD, key, {"of": of, "tokens": found})
    return found or None
