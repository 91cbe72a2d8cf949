"""Go compiles what no run changes once, on the tree before the run; no command can forge that."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentrunner.sandboxes.base import Sandbox, SandboxOrder
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.storage.run_folder import RunFolder
from agentrunner.verification.rooms.decision_sandbox import (
    CommandOutcome,
    CopyOfRepo,
    DecisionSandbox,
)
from tests.kit.bwrap import require_bwrap
from tests.kit.docker import docker, require_docker
from tests.kit.reporting import need

FILES = {
    "go.mod": "module example.com/shop\n\ngo 1.18\n",
    "price/price.go": "package price\n\nfunc Twice(a int) int { return a + a }\n",
    "cart/cart.go": (
        'package cart\n\nimport "example.com/shop/price"\n\n'
        "func Total(a int) int { return price.Twice(a) }\n"
    ),
    "cart/cart_test.go": (
        'package cart\n\nimport (\n\t"os/exec"\n\t"testing"\n)\n\n'
        "func TestTotal(t *testing.T) {\n"
        '\tif Total(2) != 4 || exec.Command("sh", "../ready.sh").Run() != nil {\n'
        "\t\tt.Fatal()\n\t}\n}\n"
    ),
    "ready.sh": "true\n",
}
TEST = "go test -v ./..."


class Rooms:
    """Commands in copies of a repository, as clean rooms are."""

    def __init__(self, place: Path, kind: str) -> None:
        self.folder = RunFolder(place / "state/runs/r")
        self.repo, self._place = place / "repo", place
        for folder in (self.folder.sandbox_dir, self.folder.checks_dir):
            folder.mkdir(parents=True)
        for name, text in FILES.items():
            (self.repo / name).parent.mkdir(parents=True, exist_ok=True)
            (self.repo / name).write_text(text)
        order = SandboxOrder(repo=self.repo, home=self.folder.sandbox_dir)
        self.sandbox: Sandbox = (
            docker(order)
            if kind == "docker"
            else BwrapSandbox(
                order,
                environ={"PATH": os.environ["PATH"]},
                host_home=place,
                overlays=kind == "overlays",
            )
        )
        self.decides = DecisionSandbox(self.sandbox, self.repo, self.folder, str, {})

    async def run(self, shell: str, **changed: str) -> CommandOutcome:
        copy = self._place / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.repo, copy)
        for name, text in changed.items():
            (copy / name.replace("__", "/").replace("_", ".")).write_text(text)
        return await self.decides.run(shell, copy=CopyOfRepo(copy, ()))


@pytest.fixture(params=["overlays", "copies", "docker"])
async def rooms(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rooms]:
    need("go")
    if request.param == "docker":
        await asyncio.to_thread(require_docker)
    else:
        require_bwrap()
    found = Rooms(tmp_path, request.param)
    await found.sandbox.open()
    yield found
    await found.sandbox.close()


async def test_what_the_run_does_not_change_is_not_compiled_again(rooms: Rooms) -> None:
    compiled = "go test -x ./... 2>&1 | grep -c 'compile -o .*/price.go'"
    await asyncio.to_thread(rooms.decides.warm)
    assert (await rooms.run(TEST)).exit_code == 0
    await asyncio.to_thread(rooms.decides.seal, ())
    assert (await rooms.run(compiled)).tail == "0\n"
    changed = await rooms.run(compiled, cart__cart_go=FILES["cart/cart.go"] + "\nvar New = 1\n")
    assert changed.tail == "0\n"
    price = "package price\n\nfunc Twice(a int) int { return 2 * a }\n"
    assert (await rooms.run(compiled, price__price_go=price)).tail == "1\n"
    await asyncio.to_thread(rooms.decides.forget)
    assert (await rooms.run(compiled)).tail == "1\n"


async def test_a_test_that_had_passed_runs_again(rooms: Rooms) -> None:
    """Go does not see that the script which the test starts has changed."""
    await asyncio.to_thread(rooms.decides.warm)
    assert (await rooms.run(TEST)).exit_code == 0
    again = await rooms.run(TEST)
    assert "(cached)" in again.tail, "the tree before the run may be as it was"
    await asyncio.to_thread(rooms.decides.seal, ())
    for _ in range(2):
        assert "(cached)" not in (await rooms.run(TEST)).tail
    assert (await rooms.run(TEST, ready_sh="exit 1\n")).exit_code == 1


async def test_what_a_command_writes_into_it_is_thrown_away(rooms: Rooms) -> None:
    await asyncio.to_thread(rooms.decides.warm)
    await rooms.run(TEST)
    await asyncio.to_thread(rooms.decides.seal, ())
    place = rooms.folder.root / "go-build"
    before = sorted(path.stat().st_mtime_ns for path in place.rglob("*"))
    await rooms.run('for f in "$GOCACHE"/*/*; do echo forged > "$f"; done; rm -r "$GOCACHE"/0*')
    assert sorted(path.stat().st_mtime_ns for path in place.rglob("*")) == before
    assert (await rooms.run(TEST)).exit_code == 0


async def test_a_repository_without_a_module_has_none(rooms: Rooms) -> None:
    (rooms.repo / "go.mod").unlink()
    await asyncio.to_thread(rooms.decides.warm)
    assert (await rooms.run("echo ${GOCACHE-none}")).tail == "none\n"


@pytest.mark.parametrize(
    "files",
    [
        {"price/c.go": 'package price\n\n// #include "../rate.h"\nimport "C"\n'},
        {"price/c.go": 'package price\n\nimport (\n\t"fmt"\n\t"C" // above\n)\n'},
        {"price/add_amd64.s": '#include "../rate.h"\n'},
        {"Makefile": "test:\n\tgo test -toolexec=./around ./...\n"},
    ],
)
async def test_where_go_does_not_look_at_all_files_there_is_none(
    rooms: Rooms, files: dict[str, str]
) -> None:
    for name, text in files.items():
        (rooms.repo / name).write_text(text)
    await asyncio.to_thread(rooms.decides.warm)
    assert (await rooms.run("echo ${GOCACHE-none}")).tail == "none\n"


async def test_nor_for_a_command_with_a_program_before_the_compiler(rooms: Rooms) -> None:
    await asyncio.to_thread(rooms.decides.warm)
    assert (await rooms.run("echo ${GOCACHE-none} # -toolexec=./around")).tail == "none\n"
    assert (await rooms.run("echo ${GOCACHE-none}")).tail != "none\n"


async def test_the_task_s_own_place_is_used(rooms: Rooms) -> None:
    await asyncio.to_thread(rooms.decides.warm)
    copy = CopyOfRepo(rooms.repo, ())
    ran = await rooms.decides.run("echo $GOCACHE", env={"GOCACHE": "/tmp/mine"}, copy=copy)
    assert ran.tail == "/tmp/mine\n"
