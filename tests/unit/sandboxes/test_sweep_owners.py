from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import docker.errors
import pytest
import requests

from agentrunner.sandboxes.docker.engine import Engine, EngineError, Traits
from agentrunner.sandboxes.docker.owners import (
    OWNER_BOOT,
    OWNER_PID,
    OWNER_SPACE,
    OWNER_START,
    RUN,
    of_dead_owners,
    owner_labels,
    remove_dead,
)
from tests.kit.engine import quiet_address

ELSEWHERE = "pid:[1]"


class Boxes:
    """The part of an engine's API that a sweep uses, with boxes that were put there."""

    def __init__(self, **boxes: dict[str, str]) -> None:
        self.boxes = boxes
        self.removed: list[str] = []
        self.failure = 0

    def containers(
        self,
        *,
        all: bool,  # noqa: A002 - as it is called
        filters: dict[str, str],
    ) -> list[dict[str, Any]]:
        assert all, "a box that has ended is left, too"
        return [
            {"Id": name, "Names": [f"/{name}"], "Labels": labels}
            for name, labels in self.boxes.items()
            if filters["label"] in labels
        ]

    def remove_container(self, box: str, *, v: bool, force: bool) -> None:
        assert v and force
        if self.failure:
            answer = requests.Response()
            answer.status_code = self.failure
            raise docker.errors.APIError("no", answer)
        self.removed.append(box)

    def engine(self) -> Engine:
        return Engine(quiet_address(), self, Traits())  # type: ignore[arg-type]


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])
    process.wait()
    return process.pid


def seeded() -> Boxes:
    mine = {RUN: "shop-7f3a", **owner_labels()}
    incomplete = {name: value for name, value in mine.items() if name != OWNER_START}
    return Boxes(
        own_live=mine,
        own_dead={**mine, OWNER_PID: str(dead_process())},
        pid_reused={**mine, OWNER_START: str(int(mine[OWNER_START]) + 1)},
        before_the_reboot={**mine, OWNER_BOOT: "another"},
        of_another_container={**mine, OWNER_PID: str(dead_process()), OWNER_SPACE: ELSEWHERE},
        rebooted_container={**mine, OWNER_BOOT: "another", OWNER_SPACE: ELSEWHERE},
        without_a_start=incomplete,
        with_nonsense={**mine, OWNER_PID: "-1"},
        foreign={"com.docker.compose.project": "shop"},
        foreign_with_a_run={RUN: "shop-7f3a"},
        unlabelled={},
    )


async def test_exactly_the_boxes_of_dead_owners_are_removed() -> None:
    boxes = seeded()
    dead = ["own_dead", "pid_reused", "before_the_reboot", "rebooted_container"]
    assert await remove_dead(boxes.engine()) == dead
    assert boxes.removed == dead


def test_an_owner_that_is_only_waited_for_is_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1)
    labels = {**owner_labels(), OWNER_PID: str(process.pid)}
    with open(f"/proc/{process.pid}/stat", "rb") as file:  # noqa: PTH123 - as the kernel has it
        labels[OWNER_START] = file.read().rpartition(b")")[2].split()[19].decode()
    assert of_dead_owners([{"Labels": labels}]) == []
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert len(of_dead_owners([{"Labels": labels}])) == 1
    process.communicate()


@pytest.mark.parametrize("status", [404, 409])
async def test_a_box_that_another_sweep_removes_is_none_of_ours(status: int) -> None:
    boxes = seeded()
    boxes.failure = status
    assert await remove_dead(boxes.engine()) == []


async def test_a_box_that_cannot_be_removed_is_told() -> None:
    boxes = seeded()
    boxes.failure = 500
    with pytest.raises(EngineError, match="remove a sandbox"):
        await remove_dead(boxes.engine())


async def test_a_box_without_labels_in_the_answer_is_left_alone() -> None:
    assert of_dead_owners([{"Id": "x", "Labels": None}, {"Id": "y"}]) == []
