"""T64: a repository that holds Docker's own programs, and a PATH that leads to them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.kit.docker import IN_DOCKER, require_docker
from tests.kit.evil import installed, machine, touched
from tests.kit.files import write
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST

PROGRAMS = "docker dockerd docker-init containerd runc podman docker-credential-evil git sh".split()


def test_no_program_of_the_repository_runs_on_the_host(tmp_path: Path) -> None:
    address = require_docker()
    project = Project.make(tmp_path, SMALL)
    canaries, home = tmp_path / "canaries", tmp_path / "home"
    for folder in (canaries, home / ".docker", project.repo / "bin"):
        folder.mkdir(parents=True)
    for folder in (project.repo, project.repo / "bin"):
        for name in PROGRAMS:
            program = folder / name
            text = f'#!/bin/sh\n/usr/bin/touch {canaries}/{name}\nexec /bin/{name} "$@"\n'
            write(program.parent, {program.name: text})
    (home / ".docker" / "config.json").write_text(json.dumps({"credsStore": "evil"}))
    path = f".::bin:{project.repo}/bin:{os.environ['PATH']}"
    env = machine(project.state_dir, PATH=path, HOME=str(home), DOCKER_HOST=address)

    def run(**box: str) -> tuple[int, str]:
        worker = {"docker_image": "registry.invalid/none:1"} if box else IN_DOCKER["worker"]
        runner = {
            "meta": {"kind": "checklist"},
            "worker": worker,
            "sandbox": {**IN_DOCKER["sandbox"], **box},
        }
        project.spec(FIX, test={"command": TEST}, runner=runner)
        task = str(tmp_path / "task.yaml")
        said = installed("run", task, cwd=project.repo, env=env)
        assert touched(canaries) == set()
        return said.code, said.err.decode()

    assert run()[0] == 0
    code, said = run(pull="missing")
    assert code == 5 and "error[image-helper]" in said
    build = installed("image", "build", cwd=project.repo, env=env)
    assert touched(canaries) == set()
    assert build.code == 5 and b"error[image-helper]" in build.err
