"""Merges are examined in the kind of box, and on the image, that the task's run had: in Docker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentrunner.plans.execution.merging.merge_verdict import MergeVerdict
from agentrunner.sandboxes.docker import owners
from agentrunner.sandboxes.docker.engine import Engine
from tests.kit.docker import IMAGE, IN_DOCKER, require_docker
from tests.kit.merges import Trees, needs


@pytest.fixture(autouse=True)
def _engine() -> None:
    require_docker()


async def test_tests_and_checks_of_a_commit_run_in_one_container_that_is_set_up_once(
    tmp_path: Path,
) -> None:
    """Set-up and tests leave their marks in the checkout, and `auto` would have no image here."""
    trees = Trees.make(tmp_path)
    trees.sandbox = {**IN_DOCKER["sandbox"], "kind": "auto"}
    trees.environ = dict(os.environ)
    trees.setup = "echo x >> set-ups; test ! -f bad.txt"
    trees.test = "test -e /.dockerenv && touch tested"
    proofs = (
        needs("tested", "T-2"),
        needs("", "T-2", run="test -e /.dockerenv && test $(wc -l < set-ups) = 1"),
        needs("ignored", "T-2"),
    )
    box = ("docker", IMAGE)
    first = trees.commit(trees.base, "a.txt")
    found = await trees.look(first, trees.base, proofs=proofs, sandbox=box)
    assert found == MergeVerdict(doubts=(needs("ignored", "T-2"),)), found.evidence
    trees.living.append("T-2")
    bad = trees.commit(first, "bad.txt")
    found = await trees.look(bad, first, task_id="T-3", sandbox=box)
    assert found.evidence.startswith("The set-up command fails") and "box: Docker" in found.evidence
    assert not (trees.folder / "tree").exists() and await left_of(tmp_path) == []


async def left_of(place: Path) -> list[str]:
    """Containers of a plan whose folder that is."""
    engine = await Engine.connect(os.environ)
    wanted = {"label": f"{owners.RUN}={place.name}"}
    try:
        found = await engine.call("list", lambda api: api.containers(all=True, filters=wanted))
        return [one["Id"] for one in found]
    finally:
        engine.close()
