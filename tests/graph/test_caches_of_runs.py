"""A whole run of a Go project whose packages are where Go keeps them, with no network anywhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kit.caches import SECRET, go, serving, write
from tests.kit.metas import assess, finish, plan, work
from tests.kit.project import Project
from tests.kit.runs import Run

APP = """\
package app

import "example.test/greet"

func Word() string { return greet.Word() + "?" }
"""
TEST = """\
package app

import "testing"

func TestApp(t *testing.T) {
\tif Word() != "hi" {
\t\tt.Fatal(Word())
\t}
}
"""
WORK = """
sed -i 's/ + "?"//' app.go && git mv notes.txt NOTES && git add app.go && git status --short
if git commit -qm done; then exit 9; fi
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    project = Project.make(tmp_path, {"notes.txt": "notes\n"})
    user = tmp_path / "user"
    user.mkdir()
    with serving(tmp_path / "served") as server:
        go(user, project.repo, server)
    (project.repo / "app_test.go").unlink()
    write(project.repo, {"app.go": APP, "word_test.go": TEST})
    project.git("add", ".")
    project.git("commit", "-qm", "app")
    run = Run(project)
    run.environ = {"HOME": str(user), "PATH": os.environ["PATH"]}
    return run


# Go compiles its library in each room, 15 s; what a sandbox shows of caches is in test_caches.
@pytest.mark.whole
def test_it_is_complete_with_nothing_but_the_user_s_cache(run: Run) -> None:
    before = run.project.git("rev-parse", "HEAD"), run.project.git("diff", "--cached")
    script = [plan(), work(), finish(), assess()]
    run.start(script, WORK, test="go test -v ./...")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert (run.project.repo / "NOTES").exists()
    assert before == (run.project.git("rev-parse", "HEAD"), run.project.git("diff", "--cached"))
    header = run.project.told("run_started")[0]["header"]
    assert "package caches of go" in header["box"]
    assert any("left out as they hold credentials" in notice for notice in header["notices"])
    kept = [file for file in run.folder.root.rglob("*") if file.is_file()]
    assert not [file for file in kept if SECRET.encode() in file.read_bytes()]


def test_without_the_cache_nobody_is_paid(run: Run) -> None:
    run.start([plan()], WORK, test="go test ./...", runner={"sandbox": {"caches": "none"}})
    assert run.result["worker_runs"] == 0
