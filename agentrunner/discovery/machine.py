"""Which planners and workers this machine has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agentrunner import registry
from agentrunner.discovery.agents import NO_CLIS, adapter, planners
from agentrunner.workers.base import Probe


class Offer(Struct, frozen=True):
    """A kind of planner, and what it still needs ("" for nothing)."""

    kind: str
    needs: str = ""


def available_workers(repo: Path | None = None) -> dict[str, Probe]:
    """Return every worker kind that is a program, with what was found of it outside `repo`."""
    probes: dict[str, Probe] = {}
    for kind in registry.WORKERS:
        if kind not in NO_CLIS:
            try:
                probes[kind] = adapter(kind, repo).probe()
            except Exception as error:  # code of others may raise anything
                if kind in registry.WORKERS.own:
                    raise
                probes[kind] = Probe(path=None, problem=str(error) or type(error).__name__)
    return probes


def available_planners(environ: Mapping[str, str], repo: Path | None = None) -> list[Offer]:
    """Return the planners that can plan a real task, ready ones first."""
    key = "" if environ.get("OPENAI_API_KEY") else "OPENAI_API_KEY is not set"
    offers = [Offer("openai-chat", key)]
    for cli in planners(repo, environ):
        missing = "" if cli.installed else "it is not installed"
        lacks = "" if cli.ready else f"neither key nor login: {cli.cure}"
        offers.append(Offer(cli.kind, missing or lacks))
    offers.append(Offer("checklist"))
    return sorted(offers, key=lambda offer: bool(offer.needs))
