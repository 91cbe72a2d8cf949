"""Repositories of every shape that people have: a run works in each as git does, and undo too."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agentrunner.engine.queries import show, undo
from agentrunner.errors import UsageError
from agentrunner.git.private_clone import CloneStore
from agentrunner.screens.summary import summary_screen
from tests.kit.landing_run import SCRIPT, outside
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run

AT_ONCE = {"meta": {"max_loops": 0}}
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 12345\n" % (b"a" * 64)
LONG = "/".join(["d" * 99] * 3) + "/" + "f" * 120


def made(place: Path, files: dict[str, str] | None = None) -> Project:
    return Project.make(place, files or SMALL)


def clone(place: Path, *options: str) -> Project:
    """A clone of a repository with two commits, as `git clone` with these options makes it."""
    origin = made(place / "origin", {**SMALL, "docs/guide.md": "Read me.\n"})
    origin.write({"docs/guide.md": "Read me again.\n"})
    origin.git("commit", "-q", "-a", "-m", "second")
    origin.git("config", "uploadpack.allowFilter", "true")
    target = place / "clone"
    command = ["git", "clone", "-q", *options, f"file://{origin.repo}", str(target)]
    subprocess.run(command, check=True, capture_output=True)
    return Project(target, place / "state")


def subfolder(place: Path) -> Project:
    project = made(place, {f"packages/a/{name}": text for name, text in SMALL.items()})
    project.write({"packages/b/index.js": "1\n"})
    return Project(project.repo / "packages" / "a", project.state_dir)


def submodule(place: Path) -> Project:
    inner, project = made(place / "inner", {"lib.py": "x = 1\n"}), made(place)
    allow = ("-c", "protocol.file.allow=always")
    project.git(*allow, "submodule", "add", "-q", str(inner.repo), "vendored")
    project.git("commit", "-q", "-m", "with a submodule")
    return project


def lfs(place: Path) -> Project:
    """Pointers, as a checkout without the program has them; its filter is required."""
    project = made(place)
    project.write({".gitattributes": "*.psd filter=lfs diff=lfs merge=lfs -text\n"})
    (project.repo / "big.psd").write_bytes(LFS)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "pointers")
    project.git("config", "filter.lfs.clean", "no-such-lfs clean -- %f")
    project.git("config", "filter.lfs.smudge", "no-such-lfs smudge -- %f")
    project.git("config", "filter.lfs.required", "true")
    return project


TURNED = "tr a-zA-Z n-za-mN-ZA-M"


def filtered(place: Path) -> Project:
    """Files that a program turns on the way in and out, which is there and required."""
    project = made(place)
    for way in ("clean", "smudge"):
        project.git("config", f"filter.turned.{way}", TURNED)
    project.git("config", "filter.turned.required", "true")
    project.write({".gitattributes": "*.turned filter=turned\n", "a.turned": "hello\n"})
    project.write({"b.turned": "good bye\n"})
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "turned")
    assert project.git("cat-file", "-p", "HEAD:a.turned") == "uryyb\n"
    return project


def crlf(place: Path) -> Project:
    project = made(place)
    project.write({".gitattributes": "*.txt text eol=crlf\n*.py text eol=lf\nmixed -text\n"})
    (project.repo / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (project.repo / "mixed").write_bytes(b"one\r\ntwo\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "line ends")
    return project


def sparse(place: Path) -> Project:
    project = clone(place)
    project.git("sparse-checkout", "set", "--no-cone", "/*", "!/docs/")
    assert not (project.repo / "docs").exists()
    return project


def linked(place: Path) -> Project:
    project = made(place)
    project.git("worktree", "add", "-q", "../linked")
    return Project(place / "linked", project.state_dir)


def names(place: Path) -> Project:
    """Names that are no UTF-8, that differ in case alone, with line breaks, and very long paths."""
    project = made(place)
    root = os.fsencode(project.repo)
    (project.repo / LONG).parent.mkdir(parents=True)
    for name in (b"\xff\xfe", b"README", b"readme", b"Readme", b"two\nlines", b"tab\t", b'"q"',
                 b"back\\slash", b" ", b"-n", LONG.encode()):  # fmt: skip
        Path(os.fsdecode(root + b"/" + name)).write_bytes(name)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "names")
    return project


def links(place: Path) -> Project:
    """Links out of the tree, to nowhere, to themselves, to a folder and to a file."""
    project = made(place)
    (place / "outside").mkdir()
    (place / "outside" / "secret").write_text("s")
    for name, target in (("out", "../outside"), ("gone", "/nowhere"), ("loop", "loop"),
                         ("folder", "tests"), ("file", "calc.py"), ("up", "..")):  # fmt: skip
        (project.repo / name).symlink_to(target)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "links")
    return project


def nested(place: Path) -> Project:
    """A repository inside that git knows nothing of, and one that it ignores."""
    project = made(place)
    project.write({".gitignore": "cloned/\n"})
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "ignore")
    for name in ("cloned", "experiment"):
        inner = made(place / name, {"inner.py": "x\n"})
        inner.repo.rename(project.repo / name)
    return project


def special(place: Path) -> Project:
    """A pipe and a socket."""
    project = made(place)
    os.mkfifo(project.repo / "pipe")
    os.mknod(project.repo / "socket", stat.S_IFSOCK)
    return project


def closed(place: Path) -> Project:
    """Folders and files that nobody may write to."""
    project = made(place, {**SMALL, "golden/a.txt": "a\n"})
    (project.repo / "golden" / "a.txt").chmod(0o444)
    (project.repo / "golden").chmod(0o555)
    return project


def shallow(place: Path) -> Project:
    return clone(place, "--depth=1")


def partial(place: Path) -> Project:
    return clone(place, "--filter=blob:none")


SHAPES: dict[str, tuple[Callable[[Path], Project], str]] = {
    "subfolder": (subfolder, "echo x > new"),
    "submodule": (submodule, "echo 'y = 2' >> vendored/lib.py"),
    "lfs": (lfs, "printf changed > big.psd"),
    "filtered": (filtered, "grep -q hello a.turned && printf changed > b.turned; rm a.turned"),
    "crlf": (crlf, "printf 'three\\r\\n' >> a.txt; printf 'three\\n' >> mixed"),
    "sparse": (sparse, "echo x > new"),
    "shallow": (shallow, "echo x >> docs/guide.md"),
    "partial": (partial, "echo x >> docs/guide.md"),
    "linked": (linked, "echo x > new"),
    "names": (names, "rm README; printf x > readme; mv 'two\nlines' 'three\nlines'; rm ' '"),
    "links": (links, "rm loop; ln -s calc.py loop; rm out; printf x > out"),
    "nested": (nested, "printf y >> experiment/inner.py"),
    "special": (special, "rm pipe; printf x > pipe2"),
    "closed": (closed, "echo x > new"),
}


LEFT_IN = {"submodule": ("NEEDS_REVIEW", "loop_limit", 3)}
"""How a run ends whose work is not all in what is handed over."""


def portrait(repo: Path) -> dict[bytes, tuple[int, bytes]]:
    """Mode and content of each file and link, without the note; what git keeps is not looked at."""
    found = {}
    for place, folders, files in os.walk(repo):
        folders[:] = [name for name in folders if name not in (".git", ".agent-runner")]
        for name in [*files, *folders]:
            path = Path(place, name)
            if path.is_symlink():
                found[bytes(path)] = (0o120000, bytes(path.readlink()))
            elif path.is_file() and name != ".git":
                found[bytes(path)] = (path.lstat().st_mode, path.read_bytes())
    return found


def status_of(project: Project) -> list[str]:
    """What git says of the checkout, without the note; its filters are not to be had here."""
    no_lfs = ("-c", "filter.lfs.clean=cat", "-c", "filter.lfs.required=false")
    said = project.git(*no_lfs, "status", "--porcelain", "-z").split("\0")
    return [line for line in said if ".agent-runner" not in line]


@pytest.mark.series(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_works_and_is_taken_back_byte_for_byte(shape: str, tmp_path: Path) -> None:
    make, more = SHAPES[shape]
    project = make(tmp_path)
    before, status = portrait(project.repo), status_of(project)
    run = Run(project)
    run.start(SCRIPT, f"{FIX}; {more}", test=TEST, runner=AT_ONCE)
    seen = (run.result["text"], run.result["missing"], run.result["findings"])
    ending = LEFT_IN.get(shape, ("COMPLETE", "complete", 0))
    assert run.ending == ending, seen
    if shape in LEFT_IN:
        (finding,) = run.result["findings"]
        assert finding["code"] == "submodule_changed" and "+y = 2" in finding["diff"]
        assert "git -C vendored push && git add vendored" in finding["remedy"]
        screen = summary_screen(show(project.state_dir, run.id), all_rows=True)
        assert "+y = 2" in screen and "agentrunner diff" in screen
    assert portrait(project.repo) != before
    told = undo(project.state_dir, run.id)
    assert told.refused == []
    assert portrait(project.repo) == before
    assert status_of(project) == status


@pytest.mark.parametrize(
    ("shape", "code"), [("partial", "partial-clone"), ("subfolder", "no-repository")]
)
def test_what_cannot_end_in_a_commit_is_refused_before_anything_is_there(
    shape: str, code: str, tmp_path: Path
) -> None:
    project = SHAPES[shape][0](tmp_path)
    with pytest.raises(UsageError) as caught:
        outside(project).start()
    assert caught.value.code == code and caught.value.remedy
    if shape == "partial":
        project.git("fetch", "-q", "--refetch", "--no-filter")
        assert CloneStore(tmp_path / "store", project.repo).fetch()


def test_a_file_for_a_filter_is_not_committed_and_that_is_said_twice(tmp_path: Path) -> None:
    """Git would have its program turn it into a pointer."""
    project = lfs(tmp_path)
    run = outside(project)
    run.start(worker=f"{FIX}; printf changed > big.psd", runner=AT_ONCE)
    assert run.ending == ("COMPLETE", "complete", 0) and run.result["commit"] is None
    assert "filtered-file" in [one["code"] for one in project.told("warning")]
    (started,) = project.told("run_started")
    assert any("filter lfs" in notice for notice in started["header"]["notices"])


def test_pointers_that_nobody_changed_keep_nothing_from_being_committed(tmp_path: Path) -> None:
    run = outside(lfs(tmp_path))
    run.start(runner=AT_ONCE)
    assert run.result["commit"] is not None
