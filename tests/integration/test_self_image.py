"""AgentRunner in a container: the image is built, and the wrapper script runs in it for real.

Building takes minutes, and an index of packages that it reaches; so what needs the image is run by
`make test-self-image` (and `make test-whole`):

    scripts/engine.sh up; eval "$(scripts/engine.sh env)"; make test-self-image
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrunner import __version__, cli
from agentrunner.sandboxes.docker.images import find_image
from tests.kit.base_image import make_base
from tests.kit.docker import IMAGE, require_docker
from tests.kit.engine import connected
from tests.kit.files import write
from tests.kit.missing import missing
from tests.kit.repository import git, uncommitted

WRAPPER = Path(__file__).parents[2] / "scripts/agentrunner-docker"
STRANGER = 12345
"""The id of a user that no group of the socket has."""
TASK = """\
version: 1
task:
  id: greet
  title: Greet
  prd: {text: "The file says hello."}
  acceptance_criteria:
    - {description: It says hello, check: "grep -q hello greeting.txt"}
runner:
  meta: {kind: checklist}
  worker: {kind: command, command: ["sh", "-c", "echo hello > greeting.txt"], docker_image: IMAGE}
  sandbox: {kind: docker, read_paths: [/usr]}
"""


async def _based(name: str) -> None:
    async with connected() as engine:
        await make_base(engine, name)


async def _removed(name: str) -> None:
    async with connected() as engine:
        if await find_image(engine, name):
            await engine.call("tidy up", lambda api: api.remove_image(name, force=True))


@pytest.fixture(scope="module")
def own_image() -> Iterator[str]:
    """This AgentRunner in an image; its packages come from where pip gets them on this machine."""
    require_docker()
    base = f"agentrunner-test/base:{secrets.token_hex(4)}"
    name = f"agentrunner-test/self:{secrets.token_hex(4)}"
    words = ["image", "build", "--self", "--base", base, "--tag", name]
    try:
        asyncio.run(_based(base))
        code = cli.call(cli.app, words, "agentrunner")
        if code:
            missing("the image of AgentRunner could not be built here: pip in a build has no index")
        yield name
    finally:
        for made in (name, base):
            asyncio.run(_removed(made))


def run(repo: Path, image: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    own = {**os.environ, "AGENTRUNNER_IMAGE": image, "HOME": str(repo.parent / "home"), **env}
    own["AGENTRUNNER_STATE_DIR"] = str(repo.parent / "state")
    return subprocess.run(
        [str(WRAPPER), *words],
        cwd=repo, env=own, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return uncommitted(tmp_path / "shop", {})


@pytest.fixture
def no_docker(tmp_path: Path) -> Path:
    """A folder with a `docker` that answers as one whose socket may not be used."""
    text = '#!/bin/sh\necho "permission denied while trying to connect" >&2; exit 1\n'
    return write(tmp_path / "bin", {"docker": text})


@pytest.mark.whole
@pytest.mark.timeout(900)
def test_a_run_in_the_container_ends_as_on_the_host(own_image: str, repo: Path) -> None:
    (repo / "t.yaml").write_text(TASK.replace("IMAGE", IMAGE))
    told = run(repo, own_image, "--version")
    assert told.stdout.strip() == f"agentrunner {__version__}", told.stderr
    done = run(repo, own_image, "run", "t.yaml", "--json")
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["state"], done.returncode) == ("COMPLETE", 0), done.stderr
    assert (repo / "greeting.txt").read_text() == "hello\n"
    assert (repo / "greeting.txt").stat().st_uid == os.getuid()
    undone = run(repo, own_image, "undo")
    assert undone.returncode == 0, undone.stderr
    assert not (repo / "greeting.txt").exists()


@pytest.mark.whole
@pytest.mark.timeout(900)
def test_a_socket_that_is_refused_inside_is_said_before_anything_is_spent(
    own_image: str, repo: Path
) -> None:
    """The script may use the engine, and whoever the container runs as may not."""
    (repo / "t.yaml").write_text(TASK.replace("IMAGE", IMAGE))
    words = run(repo, own_image, "run", "t.yaml", AGENTRUNNER_DOCKER_PRINT="1").stdout.splitlines()
    at = words.index("--group-add")
    del words[at : at + 2]
    if os.getuid() == 0:
        words[words.index("--user") + 1] = f"{STRANGER}:{STRANGER}"
        for place in (repo.parent, *repo.parent.rglob("*")):
            os.chown(place, STRANGER, STRANGER, follow_symlinks=False)
    done = subprocess.run(
        words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    said = " ".join(done.stderr.split())
    assert done.returncode == 5, said
    assert "error[sandbox-unavailable]" in said and "ermission denied" in said, said
    assert "try: " in said, said
    assert not (repo / "greeting.txt").exists()


def test_files_that_are_named_are_seen_and_the_repository_of_a_work_tree(repo: Path) -> None:
    require_docker()
    aside, tree, home = repo.parent / "as ide", repo.parent / "tree", repo.parent / "home"
    aside.mkdir()
    for file in (aside / "fix.md", home / "fix.md", repo / "fix.md"):
        file.touch()
    git(repo, "commit", "-q", "--allow-empty", "-mx")
    git(repo, "worktree", "add", "-q", str(tree))
    files = (
        "../as ide/fix.md",
        "../home/fix.md",
        "../shop/fix.md",
        "../as ide/fix.md",
        "/usr/bin/env",
    )
    words = run(tree, IMAGE, "run", *files, AGENTRUNNER_DOCKER_PRINT="1").stdout.splitlines()
    mounted = [words[i + 1] for i, word in enumerate(words) if word == "--volume"]
    assert {f"{repo}/.git:{repo}/.git", f"{repo}:{repo}:ro", f"{aside}:{aside}:ro"} < set(mounted)
    assert f"{home}/fix.md:{home}/fix.md:ro" in mounted and len(mounted) == 7
    assert words[-len(files) - 2 :] == [IMAGE, "run", *files]


def test_a_socket_that_is_refused_is_said(repo: Path, no_docker: Path) -> None:
    done = run(repo, "x", "list", PATH=f"{no_docker}:{os.environ['PATH']}")
    assert done.returncode == 5
    assert "you may not use the engine at" in done.stderr and "  try: " in done.stderr


def test_an_engine_elsewhere_is_refused(repo: Path) -> None:
    if not any((Path(entry) / "docker").exists() for entry in os.environ["PATH"].split(":")):
        missing("no `docker` command")
    done = run(repo, "x", "list", DOCKER_HOST="tcp://build.example:2376")
    assert done.returncode == 5
    assert "is not on this machine" in done.stderr


def test_what_the_container_gets_can_be_read(repo: Path) -> None:
    """No value of a secret is on the command line, and nothing but the named folders is mounted."""
    require_docker()
    secret = secrets.token_hex(8)
    told = run(
        repo, IMAGE, "show", "a b", AGENTRUNNER_DOCKER_PRINT="1", OPENAI_API_KEY=secret,
        AGENTRUNNER_META_MODEL="m",
    )  # fmt: skip
    words = told.stdout.splitlines()
    assert words[:3] == ["docker", "run", "--rm"] and words[-3:] == [IMAGE, "show", "a b"]
    assert secret not in told.stdout and "OPENAI_API_KEY" in words
    assert "AGENTRUNNER_META_MODEL" in words
    mounted = [words[i + 1].split(":")[0] for i, word in enumerate(words) if word == "--volume"]
    assert {str(repo), str(repo.parent / "state")} < set(mounted) and len(mounted) == 3
    assert f"{os.getuid()}:{os.getgid()}" in words
    assert sys.platform == "linux" and "--tty" not in words
