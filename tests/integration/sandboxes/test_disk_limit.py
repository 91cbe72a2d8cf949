"""A command that fills the disk, with and without a box (the bytes are real, but few)."""

from __future__ import annotations

import time

import pytest

from agentrunner.sandboxes.base import Ending, Request, ResourceLimit
from tests.kit.sandbox_place import Place

LIMITS = ResourceLimit(disk="16m")
SLOWLY = "for i in $(seq 1000); do head -c 2m /dev/zero {to}; sleep 0.05; done"
WAYS = {
    "in the repository": SLOWLY.format(to=">> fill"),
    "in the run folder": SLOWLY.format(to=">> '{home}/fill'"),
    "in files without a name": f"exec 3> fill; rm fill; {SLOWLY.format(to='>&3')}",
    "by files without content": "for i in $(seq 200000); do > $i; done",
}


@pytest.mark.parametrize("kind", ["bwrap", "none"])
@pytest.mark.parametrize("way", WAYS)
async def test_who_fills_the_disk_is_ended(place: Place, kind: str, way: str) -> None:
    box = place.box(kind, limits=LIMITS)
    assert box.isolation()["disk"] == "16m, watched"
    script = WAYS[way].replace("{home}", str(place.home))
    start = time.monotonic()
    result = await box.run(Request(("bash", "-c", script), place.repo))
    assert (result.ending, result.exit_code) == (Ending.DISK_LIMIT, 137)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("kind", ["bwrap", "none"])
async def test_a_large_file_with_nothing_in_it_is_no_harm(place: Place, kind: str) -> None:
    script = "truncate -s 10G sparse; head -c 10m /dev/zero > file; sleep 0.3; rm file sparse"
    result = await place.box(kind, limits=LIMITS).run(Request(("sh", "-c", script), place.repo))
    assert (result.ending, result.exit_code) == (Ending.EXITED, 0)
