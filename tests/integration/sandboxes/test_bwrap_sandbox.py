"""What only bwrap is asked: real toolchains, worktrees, limits, its own failures."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sys
import threading
import venv
from pathlib import Path

import pytest

from agentrunner.errors import SandboxUnavailable, UsageError
from agentrunner.sandboxes.base import CommandResult, ErrorKind, Request, SandboxError
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.choose import AutoSandbox, make_sandbox, open_sandbox
from tests.kit.files import write
from tests.kit.missing import missing
from tests.kit.repository import git
from tests.kit.sandbox_place import Place, start_helper


async def run(place: Place, *command: str, **fields: object) -> CommandResult:
    """One command in a box made for it; `fields` are those of a SandboxOrder."""
    box = place.box("bwrap", **{"programs": (command[0],), **fields})
    try:
        return await box.run(Request(command=command, workdir=place.repo, timeout_sec=60))
    finally:
        await box.close()


async def test_the_interpreter_we_run_on_starts(place: Place) -> None:
    """pyenv, a virtual environment or the system's: whatever this test runs on."""
    result = await run(place, sys.executable, "-c", "import ssl, pytest; print(pytest.__file__)")
    assert result.exit_code == 0, result.stderr
    assert "pytest" in result.stdout.decode()


async def test_a_venv_in_the_repository_starts_and_its_scripts_too(place: Place) -> None:
    venv.create(place.repo / ".venv", symlinks=True)
    hello = f"#!{place.repo}/.venv/bin/python\nimport sys; print(sys.prefix)\n"
    write(place.repo, {".venv/bin/hello": hello})
    for command in (("hello",), ("python", "-c", "import sys; print(sys.prefix)")):
        result = await run(place, *command)
        assert result.stdout.decode().strip() == str(place.repo / ".venv"), result.stderr


@pytest.mark.parametrize("program", ["node", "git", "python3"])
async def test_programs_of_the_system(place: Place, program: str) -> None:
    if shutil.which(program) is None:
        missing(f"{program} is not installed")
    assert (await run(place, program, "--version")).exit_code == 0


async def test_java_starts_compiles_and_has_its_configuration(place: Place) -> None:
    """Debian's has its configuration in /etc, where links of the JVM lead."""
    if shutil.which("javac") is None:
        missing("javac is not installed (default-jdk-headless)")
    source = """class Hello {
        public static void main(String[] a) throws Exception {
            java.security.MessageDigest.getInstance("SHA-256");
            System.out.println("providers " + java.security.Security.getProviders().length);
        }
    }"""
    (place.repo / "Hello.java").write_text(source)
    version = await run(place, "java", "-version")
    assert version.exit_code == 0, version.stderr
    built = await run(place, "sh", "-c", "javac Hello.java && java -cp . Hello")
    assert built.stdout.decode().startswith("providers "), built.stderr


@pytest.mark.parametrize(
    ("program", "words", "said"),
    [
        ("mvn", ("--version",), "Apache Maven"),
        ("php", ("-r", "echo php_ini_loaded_file();"), "/etc/php"),
        ("ruby", ("-e", "puts 1"), "1"),
    ],
)
async def test_a_tool_whose_configuration_debian_keeps_in_etc(
    place: Place, program: str, words: tuple[str, ...], said: str
) -> None:
    if shutil.which(program) is None:
        missing(f"{program} is not installed")
    result = await run(place, program, *words)
    assert result.exit_code == 0, result.stderr + result.stdout
    assert said in result.stdout.decode()


@pytest.mark.parametrize("shown", ["now/lib", "now", "now/inner/lib"])
async def test_a_read_path_behind_a_link_of_the_toolchain(place: Place, shown: str) -> None:
    """`now` leads to the folder of a version, as many package managers have it."""
    version = place.user / "tools/v1"
    for name in ("lib", "other/lib"):
        (version / name).mkdir(parents=True)
        (version / name / "x").write_text("seen")
    (version / "inner").symlink_to("other")
    now = place.user / "tools/now"
    now.symlink_to("v1")
    path = now.parent / shown
    for name in ("agentrunner-tool", "inner/agentrunner-more"):
        write(version, {name: f"#!/bin/sh\ncat {path}/x {path}/lib/x 2>/dev/null; :\n"})
    environ = {"PATH": f"{now}:{now}/inner:/usr/bin:/bin"}
    programs = ("agentrunner-tool", "agentrunner-more")
    spec = place.spec(programs=programs, read_paths=(path,))
    box = make_sandbox("bwrap", spec, environ, place.user, state_root=place.root / "state")
    try:
        for word in programs:
            done = await box.run(Request(command=(word,), workdir=place.repo, timeout_sec=60))
            assert (done.stdout, done.exit_code) == (b"seen", 0), done.stderr
    finally:
        await box.close()


async def test_the_rest_of_etc_and_its_keys_stay_outside(place: Place) -> None:
    look = "for f in /etc/shadow /etc/ssl/private /etc/ssh; do test ! -e $f || echo $f; done"
    assert (await run(place, "sh", "-c", look)).stdout == b""


async def test_a_tool_below_the_home_comes_without_the_home(place: Place) -> None:
    root = place.user / ".nvm/versions/node/v1.2.3"
    write(root, {"bin/agentrunner-tool": '#!/bin/sh\nls -A "$1"\n'})
    (place.user / ".ssh").mkdir()
    (place.user / ".nvm/versions/node/v9.9.9").mkdir()
    environ = {"PATH": f"{root}/bin:/usr/bin:/bin"}
    spec = place.spec(programs=("agentrunner-tool",))
    box = make_sandbox("bwrap", spec, environ, place.user, state_root=place.root / "state")
    seen = {}
    for folder in (place.user, place.user / ".nvm/versions/node"):
        command = ("agentrunner-tool", str(folder))
        seen[folder.name] = (await box.run(Request(command, place.repo))).stdout.decode().split()
    assert seen == {"user": [".nvm"], "node": ["v1.2.3"]}


async def test_no_byte_code_lands_in_the_repository(place: Place) -> None:
    (place.repo / "module.py").write_text("")
    forged = place.repo / "__pycache__"
    assert (await run(place, "python3", "-c", "import module")).exit_code == 0
    assert not forged.exists()


async def test_git_works_in_a_worktree_and_cannot_be_written(place: Place) -> None:
    tree = place.root / "tree"
    git(place.repo, "worktree", "add", "-q", str(tree))
    box = place.box(repo=tree)
    script = "git log --oneline && git status --short; echo x >> .git; mv .git y"
    result = await box.run(Request(("sh", "-c", script), tree))
    assert b"first" in result.stdout and result.exit_code != 0
    common = f"echo x > {place.repo}/.git/worktrees/tree/config.worktree"
    result = await box.run(Request(("sh", "-c", common), tree))
    assert result.exit_code != 0
    assert "gitdir" in (tree / ".git").read_text().splitlines()[-1]


async def test_a_link_as_git_folder_is_refused(place: Place) -> None:
    (place.repo / ".git").rename(place.root / "moved")
    (place.repo / ".git").symlink_to(place.root / "moved")
    with pytest.raises(SandboxError) as caught:
        await run(place, "true")
    assert caught.value.kind is ErrorKind.INVALID_REQUEST


async def test_a_path_with_everything_in_it(place: Place) -> None:
    odd = place.root / "a:b, c\n'd' 日本"
    odd.mkdir()
    box = place.box(repo=odd)
    result = await box.run(Request(("sh", "-c", "touch made; pwd"), odd))
    assert result.stdout.decode() == f"{odd}\n"
    await box.close()
    assert [file.name for file in odd.iterdir()] == ["made"]


async def test_the_network_of_the_host_only_by_name(place: Place) -> None:
    box = place.box(network="full")
    assert "on demand" in box.describe()
    link = ("readlink", "/proc/self/ns/net")
    own = os.readlink("/proc/self/ns/net")  # noqa: PTH115
    shared = await box.run(Request(link, place.repo, network="full"))
    apart = await box.run(Request(link, place.repo))
    assert shared.stdout.decode().strip() == own != apart.stdout.decode().strip()


async def test_a_box_that_cannot_be_made_is_not_a_result(place: Place) -> None:
    box = place.box()
    await box.open()
    shutil.rmtree(place.home)
    with pytest.raises(SandboxError) as caught:
        await box.run(Request(("true",), place.repo))
    assert caught.value.kind is ErrorKind.INFRA
    assert str(place.home) in caught.value.cause


async def test_a_command_cannot_speak_for_bwrap(place: Place) -> None:
    text = "bwrap: execvp x: No such file or directory"
    result = await run(place, "sh", "-c", f"echo '{text}' >&2; exit 1")
    assert result.exit_code == 1 and result.stderr.decode() == f"{text}\n"


async def test_open_explains_itself(place: Place) -> None:
    broken = place.root / "bin/bwrap"
    text = '#!/bin/sh\necho "bwrap: setting up uid map: Permission denied" >&2\nexit 1\n'
    write(broken.parent, {broken.name: text})
    environ = {"PATH": str(broken.parent)}
    for kind in ("auto", "bwrap"):
        with pytest.raises(SandboxUnavailable) as caught:
            await open_sandbox(
                kind, place.spec(), environ, place.user, state_root=place.root / "state"
            )
        assert "user namespace" in caught.value.message
        assert "AppArmor" in caught.value.remedy


async def test_auto_says_what_it_chose(place: Place) -> None:
    environ = {"PATH": os.environ["PATH"], "DOCKER_HOST": "unix:///nonexistent/docker.sock"}
    chosen = await open_sandbox(
        "auto", place.spec(), environ, place.user, state_root=place.root / "state"
    )
    assert isinstance(chosen, AutoSandbox)
    assert chosen.kind == "bwrap" and chosen.describe().startswith("bwrap 0.")
    assert (
        "the first that starts here; docker: " in chosen.reason
        and "docker" not in chosen.describe()
    )
    await chosen.close()


def test_what_cannot_be_is_refused_by_name(place: Place) -> None:
    with pytest.raises(UsageError, match="Known: docker, bwrap"):
        place.box("bwarp")
    with pytest.raises(UsageError, match="credentials"):
        place.box(read_paths=(place.user,))


def test_mounts_show_neither_home_nor_state(place: Place) -> None:
    mounts = place.box(programs=("python3", "git", "node")).mounts()
    writable = [mount.target for mount in mounts if not mount.read_only]
    assert set(writable) == {place.repo, place.home}
    for mount in mounts:
        assert not Path.home().is_relative_to(mount.source)
        assert not place.user.is_relative_to(mount.source)


def test_it_can_be_driven_from_a_thread(place: Place) -> None:
    """--die-with-parent follows the thread that forked; the loop's thread lives long enough."""
    outcome: list[int] = []

    def drive() -> None:
        outcome.append(asyncio.run(run(place, "sh", "-c", "sleep 0.2; exit 4")).exit_code)

    thread = threading.Thread(target=drive)
    thread.start()
    thread.join()
    assert outcome == [4]


async def test_a_gigabyte_of_output_needs_no_memory(place: Place) -> None:
    box = place.box()
    request = Request(
        ("head", "-c", str(1 << 30), "/dev/zero"), place.repo, timeout_sec=120, stop_bytes=2 << 30
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await box.run(request)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.stdout_bytes == 1 << 30
    assert grown < 30 * 1024, f"{grown} KiB more"


async def test_a_library_cannot_be_loaded_into_the_helper(place: Place) -> None:
    """LD_PRELOAD would run in bwrap, on the host, before there is a box."""
    request = Request(("true",), place.repo, env={"LD_PRELOAD": str(place.repo / "evil.so")})
    with pytest.raises(SandboxError, match="outside the sandbox"):
        await place.box().run(request)


def test_what_the_command_leaves_is_gone_with_sigkill_of_the_helper(place: Place) -> None:
    box = BwrapSandbox(place.spec(), environ={"PATH": os.environ["PATH"]}, host_home=place.user)
    launch = box.launch(Request(("sh", "-c", "setsid sleep 1000 & echo on; wait"), place.repo))
    helper, read = start_helper(launch)
    assert helper.stdout is not None and helper.stdout.readline() == b"on\n"
    helper.kill()
    helper.wait()
    # Both ends close only when the last process of the box is gone.
    assert helper.stdout.read() == b""
    helper.stdout.close()
    os.close(read)
    asyncio.run(box.close())
