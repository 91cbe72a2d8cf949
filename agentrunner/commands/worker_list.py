"""`workers`: what is installed, what each needs, and what each can report."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from agentrunner.commands import options as opt
from agentrunner.commands.console import show, show_json, width_of
from agentrunner.commands.which_run import here
from agentrunner.environment import home_of


@opt.with_file
def workers(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> int:
    """Every worker CLI: version, what its sandbox needs, what it reports, key and login."""
    from agentrunner.screens.worker_table import workers_screen

    rows = list_workers(here(), os.environ)
    if as_json:
        for row in rows:
            show_json(row)
        return 0
    show(workers_screen(rows, os.environ.get("HOME", ""), width_of(sys.stdout)))
    return 0


def list_workers(repo: Path, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the facts of each kind, also of those that others add; only `--version` is run."""
    from agentrunner.discovery.agents import NO_CLIS
    from agentrunner.registry import WORKERS

    return [_facts(kind, repo, environ) for kind in WORKERS if kind not in NO_CLIS]


def _facts(kind: str, repo: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what is known of a kind; of an added one that does not load, why it does not."""
    from agentrunner.discovery.agents import adapter
    from agentrunner.errors import AgentRunnerError
    from agentrunner.registry import LOGINS, WORKERS
    from agentrunner.workers.login import login_for

    added = None if kind in WORKERS.own else WORKERS[kind]
    try:
        worker = adapter(kind, repo)
        probe = worker.probe()
    except Exception as error:  # code of others may raise anything, and hides no other worker
        if added is None:
            raise
        remedy = error.remedy if isinstance(error, AgentRunnerError) else ""
        reason = str(error) or type(error).__name__
        return {"kind": kind, "from": added, "path": None, "problem": reason, "cure": remedy}
    login = login_for(kind, environ, home_of(environ)) if kind in LOGINS else None
    state = login.describe() if login else None
    return {
        "kind": kind,
        "from": added,
        "path": str(probe.path) if probe.path else None,
        "version": probe.version,
        "tested": probe.tested,
        "verified": worker.verified,
        "problem": probe.problem,
        "cure": probe.cure,
        "needs": {
            "memory": worker.memory,
            "hosts": list(worker.hosts),
            "sandbox": not worker.confines_itself,
        },
        "reports": asdict(worker.reports),
        "keys": {name: bool(environ.get(name)) for name in worker.key_names},
        "login": asdict(state) if state else None,
    }
