"""T48: AgentRunner as a user without rights, who may use Docker: all that is made is theirs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import agentrunner
from tests.kit.docker import IN_DOCKER
from tests.kit.files import write
from tests.kit.own_engine import OwnEngine, own_engine
from tests.kit.runs import SMALL, TEST

UID, GID = 4321, 4322


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[OwnEngine]:
    """An engine whose socket that user may open."""
    with own_engine(tmp_path) as engine:
        engine.run.chmod(0o711)
        os.chown(engine.run / "docker.sock", UID, GID)
        yield engine


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of that user; pytest's own are closed to others."""
    folder = Path("/var/tmp") / f"agentrunner-user-{os.getpid()}"
    folder.mkdir()
    os.chown(folder, UID, GID)
    yield folder
    shutil.rmtree(folder)


def as_user(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=cwd, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **env}, user=UID,
        group=GID, extra_groups=[], umask=0o022, capture_output=True, text=True, check=False,
    )  # fmt: skip


def installed(place: Path) -> str:
    """A Python of the system's with what is tested; skips where that user cannot start it."""
    made = as_user(
        "/usr/bin/python3", "-m", "venv", "--without-pip", str(place / "venv"), cwd=place
    )
    python = place / "venv/bin/python"
    if made.returncode == 0:
        (libraries,) = place.glob("venv/lib/python*/site-packages")
        ours = f"{Path(agentrunner.__file__).parents[1]}\n{sysconfig.get_path('platlib')}\n"
        (libraries / "tested.pth").write_text(ours)
    tried = as_user(str(python), "-m", "agentrunner", "--version", cwd=place)
    if made.returncode or tried.returncode:
        pytest.skip(f"no Python that an ordinary user can start: {made.stderr or tried.stderr}")
    return str(python)


def test_nothing_belongs_to_another(engine: OwnEngine, place: Path, tmp_path: Path) -> None:
    """Its PATH begins with a folder that this user may not look into."""
    ours = [installed(place), "-m", "agentrunner"]
    repo = write(place / "repo", {**SMALL, ".gitignore": "ignored/\n"})
    for path in (repo, *repo.rglob("*")):
        os.chown(path, UID, GID)
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "start")):
        assert as_user("git", *words, cwd=repo).returncode == 0
    worker = "sed -i 's/a - b/a + b/' calc.py; mkdir ignored; touch ignored/x; id -u; id -g"
    task = {
        "version": 1,
        "task": {"id": "probe", "prd": {"text": "It adds."}, "test": {"command": TEST}},
        "runner": {
            "meta": {"kind": "checklist"},
            "worker": {"kind": "command", "command": ["sh", "-c", worker], **IN_DOCKER["worker"]},
            "sandbox": {"kind": "docker", "read_paths": ["/usr"]},
        },
    }
    (place / "task.yaml").write_text(yaml.safe_dump(task))
    state = place / "state"
    said = as_user(
        *ours, "run", str(place / "task.yaml"), "--json", "--repo", str(repo), cwd=repo,
        DOCKER_HOST=engine.address, AGENTRUNNER_STATE_DIR=str(state),
        PATH=f"{tmp_path}:{os.environ['PATH']}",
    )  # fmt: skip
    crashes = [path.read_text() for path in state.glob("crashes/*")]
    assert said.returncode == 0, (said.stderr, *crashes)
    assert json.loads(said.stdout.splitlines()[-1])["state"] == "COMPLETE"
    (stdout,) = state.glob("runs/*/workers/1-001/stdout")
    assert stdout.read_text().split() == [str(UID), str(GID)]
    owners = {(path.lstat().st_uid, path.lstat().st_gid) for path in place.rglob("*")
              if path.name not in ("task.yaml", "tested.pth")}  # fmt: skip
    assert owners == {(UID, GID)}
    assert (repo / "ignored/x").exists()
