"""Copies of what git ignores, as it was before the first worker."""

import os
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from agentrunner.git.snapshots import Snapshots
from agentrunner.sandboxes.homes import written_caches
from agentrunner.verification.rooms import sealed
from agentrunner.verification.rooms.sealed import Sealed, SealedFolder, copy_folder, fits
from tests.kit.files import write
from tests.kit.project import Project
from tests.kit.repository import uncommitted


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    files = {".gitignore": "node_modules/\nbuild/\n", "app.js": "1\n", "build/out": "made\n"}
    return uncommitted(tmp_path / "repo", {**files, "node_modules/left-pad/index.js": "good\n"})


def snapshots_of(repo: Path, store: Path) -> Snapshots:
    """They know of ignored folders once they have looked."""
    snapshots = Snapshots(store, repo)
    snapshots.take()
    return snapshots


def test_a_copy_does_not_change_with_the_repository(repo: Path, tmp_path: Path) -> None:
    kept = Sealed(tmp_path / "sealed", repo)
    assert not kept.made and kept.folders() == []
    kept.seal(snapshots_of(repo, tmp_path / "store"))
    (repo / "node_modules" / "left-pad" / "index.js").write_text("bad\n")
    places = {one.name: (one, place) for one, place in kept.folders()}
    assert kept.made and set(places) == {"node_modules", "build"}
    one, place = places["node_modules"]
    assert one == SealedFolder("node_modules", copied=True, packages=True, place=place.name)
    assert (place / "left-pad" / "index.js").read_text() == "good\n"
    assert not places["build"][0].packages


def test_another_copy_takes_the_place_of_the_first(repo: Path, tmp_path: Path) -> None:
    kept, snapshots = Sealed(tmp_path / "sealed", repo), snapshots_of(repo, tmp_path / "store")
    kept.seal(snapshots)
    (repo / "build" / "out").write_text("made again\n")
    kept.seal(snapshots)
    places = {one.name: place for one, place in kept.folders()}
    assert (places["build"] / "out").read_text() == "made again\n"


def test_a_copy_that_an_older_version_made_is_read(repo: Path, tmp_path: Path) -> None:
    kept = Sealed(tmp_path / "sealed", repo)
    write(tmp_path / "sealed", {sealed.MANIFEST: '[{"name":"a","copied":true,"packages":false}]'})
    assert [place for _, place in kept.folders()] == [tmp_path / "sealed" / "0"]


def test_what_another_set_up_made_takes_the_place_of_the_copy(repo: Path, tmp_path: Path) -> None:
    kept, room = Sealed(tmp_path / "sealed", repo), tmp_path / "room"
    kept.seal(snapshots_of(repo, tmp_path / "store"))
    write(room, {"tree/build/out": "made again\n", "home/rc": "set\n"})
    kept.replace(room / "tree", room / "home", ["build", "node_modules"])
    ((one, place),) = kept.folders()
    assert one.name == "build" and (place / "out").read_text() == "made again\n"
    assert (kept.home / "rc").read_text() == "set\n" and kept.files_seen() is not None
    assert [path for path in (tmp_path / "sealed").iterdir() if path.is_dir()] == [place]


@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize(
    ("of", "step"),
    [(sealed, "copy_folder"), (sealed, "remove_tree"), (Path, "replace"), (Path, "rename")],
)
def test_whoever_is_stopped_while_the_copy_is_replaced_leaves_a_whole_one(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: object, step: str, at: int
) -> None:
    """At any step: what is there is the earlier copy or the new one, and the next replaces it."""
    kept, room = Sealed(tmp_path / "sealed", repo), tmp_path / "room"
    write(tmp_path, {"set-up-home/rc": "old\n", "set-up-home.caches/npm": "old\n"})
    kept.seal(snapshots_of(repo, tmp_path / "store"))
    new = {"tree/build/out": "made again\n", "home/rc": "set\n", "home.caches/npm": "set\n"}
    write(room, new)
    real, calls = getattr(of, step), count()

    def stopped(*words: object, **more: object) -> object:
        if next(calls) == at:
            raise KeyboardInterrupt
        return real(*words, **more)

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        patched.setattr(of, step, stopped)
        kept.replace(room / "tree", room / "home", ["build"])
    kept = Sealed(tmp_path / "sealed", repo)
    found = {one.name: (place / "out").exists() for one, place in kept.folders()}
    home = kept.home_seen
    assert home is not None
    of_home = {(home / "rc").read_text(), (written_caches(home) / "npm").read_text()}
    whole = [({"build": True, "node_modules": False}, {"old\n"}), ({"build": True}, {"set\n"})]
    assert (found, of_home) in whole
    write(room, new)
    kept.replace(room / "tree", room / "home", ["build"])
    ((_, place),) = kept.folders()
    assert [path for path in (tmp_path / "sealed").iterdir() if path.is_dir()] == [place]
    homes = sorted(path.name for path in tmp_path.glob("set-up-home*"))
    assert homes == ["set-up-home", "set-up-home.caches"]


def test_what_remotes_of_submodules_have_is_kept_as_it_was(tmp_path: Path) -> None:
    inner = Project.make(tmp_path / "inner", {"lib.py": "x = 1\n"})
    made = Project.make(tmp_path, {"app.js": "1\n", ".gitignore": "build/\n", "build/out": "1\n"})
    allow = ("-c", "protocol.file.allow=always")
    made.git(*allow, "submodule", "add", "-q", str(inner.repo), "lib")
    kept, had = Sealed(tmp_path / "sealed", made.repo), inner.git("rev-parse", "HEAD").strip()
    assert kept.remotes() == {}
    kept.seal(snapshots_of(made.repo, tmp_path / "store"))
    forged = made.repo / ".git/modules/lib/refs/remotes/origin/other"
    forged.write_text(f"{'1' * 40}\n")
    (tmp_path / "home").mkdir()
    kept.replace(made.repo, tmp_path / "home", ["build"])
    assert {name: set(commits) for name, commits in kept.remotes().items()} == {"lib": {had}}


def test_the_copy_is_the_owners(repo: Path, tmp_path: Path) -> None:
    Sealed(tmp_path / "sealed", repo).seal(snapshots_of(repo, tmp_path / "store"))
    assert (tmp_path / "sealed").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "sealed" / sealed.MANIFEST).stat().st_mode & 0o777 == 0o600


def test_a_large_folder_stays_where_it_is(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed, "MOST_BYTES", 4)
    assert not fits(repo / "node_modules")
    kept = Sealed(tmp_path / "sealed", repo)
    kept.seal(snapshots_of(repo, tmp_path / "store"))
    assert {(one.copied, place) for one, place in kept.folders()} == {
        (False, repo / "node_modules"),
        (False, repo / "build"),
    }


def test_many_files_are_as_large_as_many_bytes(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fits(repo / "node_modules")
    monkeypatch.setattr(sealed, "MOST_FILES", 0)
    assert not fits(repo / "node_modules")
    assert fits(repo / "gone")


def test_modes_times_and_links_are_copied(tmp_path: Path) -> None:
    source = tmp_path / "source"
    write(source, {"bin/tool": "#!/bin/sh\n"})
    os.utime(source / "bin/tool", (1000, 1000))
    (source / "link").symlink_to("/nowhere")
    copy_folder(source, tmp_path / "deep" / "target")
    copied = tmp_path / "deep" / "target" / "bin" / "tool"
    assert (copied.stat().st_mode & 0o777, copied.stat().st_mtime) == (0o755, 1000)
    assert (tmp_path / "deep" / "target" / "link").readlink() == Path("/nowhere")


def test_a_folder_is_copied_into_the_place_of_one_that_is_there(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "bin").mkdir(parents=True)
    target.mkdir()
    copy_folder(source, target)
    assert [path.name for path in target.iterdir()] == ["bin"]


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="source"):
        copy_folder(tmp_path / "source", tmp_path / "target")
