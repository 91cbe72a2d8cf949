"""Who could plan and who could work on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentrunner import registry
from agentrunner.task.crew import WorkerSpec
from agentrunner.workers.base import Probe, Worker

_EXAMPLES = frozenset({"command", "mock"})
"""Workers that are always there because they are whatever a task says."""


@dataclass(frozen=True)
class Offer:
    """A kind of meta-agent, and what it still needs (""  for nothing)."""

    kind: str
    needs: str = ""


def available_workers(repo: Path | None = None) -> dict[str, Probe]:
    """Every worker kind that is a program of its own, with what was found of it outside `repo`."""
    probes: dict[str, Probe] = {}
    for kind in registry.WORKERS:
        if kind not in _EXAMPLES:
            adapter = registry.load(registry.WORKERS, kind, "worker")
            worker: Worker = adapter(WorkerSpec(kind=kind), repo)
            probes[kind] = worker.probe()
    return probes


def available_metas(environ: Mapping[str, str]) -> list[Offer]:
    """Meta-agents that can plan a real task, the ready ones first."""
    key = "" if environ.get("OPENAI_API_KEY") else "OPENAI_API_KEY is not set"
    offers = [Offer("openai-chat", key), Offer("checklist")]
    return sorted(offers, key=lambda offer: bool(offer.needs))
