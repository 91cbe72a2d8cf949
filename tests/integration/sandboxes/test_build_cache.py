"""What no run changes is compiled once, on the tree before the run; no command can forge that."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from agentrunner.sandboxes.base import Mount, Sandbox, SandboxOrder
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.storage.run_folder import RunFolder
from agentrunner.verification.rooms.build_cache import TOOLS
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

    def __init__(
        self, place: Path, kind: str, files: Mapping[str, str] = FILES, home: Path | None = None
    ) -> None:
        self.folder = RunFolder(place / "state/runs/r")
        self.repo, self._place = place / "repo", place
        self.shown: list[Mount] = []
        for folder in (self.folder.sandbox_dir, self.folder.checks_dir):
            folder.mkdir(parents=True)
        for name, text in files.items():
            (self.repo / name).parent.mkdir(parents=True, exist_ok=True)
            (self.repo / name).write_text(text)
        order = SandboxOrder(repo=self.repo, home=self.folder.sandbox_dir)
        self.sandbox: Sandbox = (
            docker(order)
            if kind == "docker"
            else BwrapSandbox(
                order,
                environ={"PATH": os.environ["PATH"]},
                host_home=home or place,
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
        return await self.decides.run(shell, copy=CopyOfRepo(copy, ()), mounts=self.shown)


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


IN_RUST = {
    "Cargo.toml": (
        '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n\n'
        '[dependencies]\nrate = "1.0"\n'
    ),
    "src/lib.rs": "pub fn total(a: i32) -> i32 { a * rate::of() }\n#[test]\n"
    "fn doubles() { assert_eq!(total(2), 4); }\n",
    ".cargo/config.toml": (
        '[source.crates-io]\nreplace-with = "kept"\n\n[source.kept]\ndirectory = "/opt/kept"\n'
    ),
}
LIBRARY = {
    "Cargo.toml": '[package]\nname = "rate"\nversion = "1.0.0"\nedition = "2021"\n',
    "src/lib.rs": "pub fn of() -> i32 { 2 }\n",
    ".cargo-checksum.json": '{"files": {}, "package": null}',
}


@pytest.fixture(params=["overlays", "copies"])
def bwrap(request: pytest.FixtureRequest) -> str:
    require_bwrap()
    return str(request.param)


async def test_cargo_compiles_libraries_once_and_the_repository_s_own_packages_each_time(
    bwrap: str, tmp_path: Path
) -> None:
    need("cargo")
    rooms = Rooms(tmp_path, bwrap, IN_RUST, Path.home())
    for name, text in LIBRARY.items():
        (tmp_path / "kept/rate" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "kept/rate" / name).write_text(text)
    rooms.shown = [Mount(tmp_path / "kept", Path("/opt/kept"))]
    await rooms.sandbox.open()
    test = "cargo test 2>&1 | grep -oE 'Compiling [a-z]+|[1-9] (passed|failed)'"
    version = (await rooms.run("cargo --version")).tail.split()[1]
    if tuple(map(int, version.split(".")[:2])) < (1, 91):
        pytest.skip(f"Cargo {version} keeps what it compiles in the repository")
    await asyncio.to_thread(rooms.decides.warm)
    whole = "Compiling rate\nCompiling shop\n1 passed\n"
    assert (await rooms.run(test)).tail == whole
    await asyncio.to_thread(rooms.decides.seal, ())
    assert (await rooms.run(test)).tail == "Compiling shop\n1 passed\n"
    # As old as it may be: the tree's own packages are compiled from what lies there.
    old = f"touch -d 2001-01-01 src/lib.rs; {test}"
    changed = IN_RUST["src/lib.rs"].replace("a *", "1 + a *")
    assert (await rooms.run(old, src__lib_rs=changed)).tail == "Compiling shop\n1 failed\n"
    forged = 'find "$CARGO_BUILD_BUILD_DIR" -type f -exec sh -c \'echo forged > "$1"\' - {} ";"'
    await rooms.run(forged)
    assert (await rooms.run(test)).tail == "Compiling shop\n1 passed\n"
    await rooms.sandbox.close()


@pytest.mark.parametrize(
    "text", ["ls target/debug/deps\n", "std::env::current_exe()", 'Command::cargo_bin("shop")']
)
async def test_a_tree_that_names_cargo_s_own_files_has_no_build_cache(
    bwrap: str, tmp_path: Path, text: str
) -> None:
    rooms = Rooms(tmp_path, bwrap, IN_RUST)
    await rooms.sandbox.open()
    await asyncio.to_thread(rooms.decides.warm)
    assert (await rooms.run("echo ${CARGO_BUILD_BUILD_DIR-none}")).tail != "none\n"
    await asyncio.to_thread(rooms.decides.seal, ())
    looks = await rooms.run("echo ${CARGO_BUILD_BUILD_DIR-none}", src__more_rs=text)
    assert looks.tail == "none\n", "where only the work looks for them"
    (rooms.repo / "check.sh").write_text(text)
    await asyncio.to_thread(rooms.decides.warm)
    assert (await rooms.run("echo ${CARGO_BUILD_BUILD_DIR-none}")).tail == "none\n"
    await rooms.sandbox.close()


def test_cargo_s_own_packages_are_forgotten_wherever_it_keeps_them(tmp_path: Path) -> None:
    places = ["debug/build/shop/1a", "debug/.fingerprint/shop-1a", "debug/incremental/shop-1a"]
    for place in [*places, "debug/build/rate/1a"]:
        (tmp_path / place).mkdir(parents=True)
    cargo = next(tool for tool in TOOLS if tool.folder == "cargo-build")
    cargo.seal(tmp_path, frozenset({"shop"}))
    assert not any((tmp_path / place).exists() for place in places)
    assert (tmp_path / "debug/build/rate/1a").exists()


IN_C = {
    "shop.c": '#include "rate.h"\nint total(int a) { return a * RATE; }\n',
    "other.c": "int other(void) { return 1; }\n",
    "test.c": "int total(int a);\nint main(void) { return total(2) == 4 ? 0 : 1; }\n",
    "rate.h": "#define RATE 2\n",
    "Makefile": "test: shop.o other.o test.o\n\t$(CC) -o $@ $^ && ./$@\n",
}
COMPILED = (
    "ccache -z > /dev/null; make -s > /dev/null 2>&1; echo $?; ccache --print-stats"
    " | grep -E '^(cache_miss|preprocessed_cache_hit)' | sort | cut -f 2"
)


async def test_with_ccache_what_is_as_it_was_is_not_compiled_again(
    bwrap: str, tmp_path: Path
) -> None:
    need("ccache")
    rooms = Rooms(tmp_path, bwrap, IN_C)
    await rooms.sandbox.open()
    await asyncio.to_thread(rooms.decides.warm)
    assert (await rooms.run(COMPILED)).tail == "0\n3\n0\n", "three compiled"
    await asyncio.to_thread(rooms.decides.seal, ())
    assert (await rooms.run(COMPILED)).tail == "0\n0\n3\n", "none compiled"
    # A header decides what a file is made of, also one that comes first only now.
    assert (await rooms.run(COMPILED, rate_h="#define RATE 3\n")).tail == "2\n1\n2\n"
    first = "mkdir first; echo '#define RATE 3' > first/rate.h; rm rate.h; export CPATH=first"
    assert (await rooms.run(f"{first}; {COMPILED}")).tail == "2\n1\n2\n"
    await rooms.run('find "$CCACHE_DIR" -type f -exec sh -c \'echo forged > "$1"\' - {} ";"')
    assert (await rooms.run(COMPILED)).tail == "0\n0\n3\n"
    await rooms.sandbox.close()


@pytest.mark.parametrize("name", ["more.S", "more.c"])
async def test_a_tree_with_assembly_is_compiled_each_time(
    bwrap: str, tmp_path: Path, name: str
) -> None:
    text = 'asm(".include \\"more.inc\\"");\n'
    rooms = Rooms(tmp_path, bwrap, {**IN_C, name: text})
    await rooms.sandbox.open()
    await asyncio.to_thread(rooms.decides.warm)
    assert (await rooms.run("echo ${CCACHE_DIR-none}")).tail == "none\n"
    await rooms.sandbox.close()
