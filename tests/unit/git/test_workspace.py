"""Work outside of the checkout: cloned, committed, merged and published, and nothing obeyed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from agentrunner.errors import UsageError
from agentrunner.errors.repositories import GitFailed
from agentrunner.git.private_clone import CloneStore
from agentrunner.git.scratch import room
from tests.kit.files import write
from tests.kit.repository import AT, WHO, committed, git


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return committed(tmp_path / "shop", {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"}, "first")


@pytest.fixture
def store(repo: Path, tmp_path: Path) -> CloneStore:
    return CloneStore(tmp_path / "clone.git", repo)


def work(store: CloneStore, place: Path) -> tuple[str, Path]:
    """The head, and a folder that is at it."""
    head, folder = store.fetch(), place / "work"
    store.check_out(folder, head)
    return head, folder


def commit(store: CloneStore, folder: Path, parent: str, *paths: str) -> str:
    return store.commit(folder, paths, parents=(parent,), message="m\n", author=WHO, at=AT)


def test_a_folder_is_at_the_head_and_the_checkout_stays_as_it_is(
    store: CloneStore, repo: Path, tmp_path: Path
) -> None:
    (repo / "b.txt").write_text("edited\n")
    before = sorted(path.name for path in (repo / ".git").rglob("*"))
    head, folder = work(store, tmp_path)
    assert head == git(repo, "rev-parse", "HEAD").strip()
    assert (folder / "b.txt").read_text() == "b\n"
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "log", "--format=%s") == "first\n"
    assert sorted(path.name for path in (repo / ".git").rglob("*")) == before
    store.remove(folder)
    assert not folder.exists()
    store.check_out(folder, head)


def test_each_file_of_a_commit_is_read_once(store: CloneStore) -> None:
    read = store.reader(store.fetch())
    assert [read("b.txt"), read("gone")] == [b"b\n", None]
    shutil.rmtree(store.git.git_dir)
    assert [read("b.txt"), read("gone")] == [b"b\n", None]


def test_what_is_not_committed_can_be_taken_along(
    store: CloneStore, repo: Path, tmp_path: Path
) -> None:
    (repo / "a.txt").unlink()
    (repo / "new").mkdir()
    (repo / "new" / "c.txt").write_text("c")
    (repo / "new" / "c.txt").chmod(0o755)
    (repo / "link").symlink_to("/etc/passwd")
    _, folder = work(store, tmp_path)
    store.carry_over(folder, ["a.txt", "new/c.txt", "link"])
    assert not (folder / "a.txt").exists()
    assert (folder / "new" / "c.txt").stat().st_mode & 0o111
    assert (folder / "link").readlink() == Path("/etc/passwd")


def test_a_link_in_the_commit_is_not_written_through(
    store: CloneStore, repo: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (repo / "dir").symlink_to(outside)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a link")
    (repo / "dir").unlink()
    (repo / "dir").mkdir()
    (repo / "dir" / "x").write_text("x")
    _, folder = work(store, tmp_path)
    store.carry_over(folder, ["dir", "dir/x"])
    assert list(outside.iterdir()) == []
    assert (folder / "dir" / "x").read_text() == "x"


def test_a_commit_holds_the_named_files_and_nothing_behind_a_link(
    store: CloneStore, tmp_path: Path
) -> None:
    head, folder = work(store, tmp_path)
    (folder / "a.txt").write_text("changed\n")
    (folder / "b.txt").unlink()
    write(folder, {"tool": "#!/bin/sh\n"})
    (folder / "left-out").write_text("x")
    (folder / "etc").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    made = commit(store, folder, head, "a.txt", "b.txt", "tool", "etc/passwd", "pipe")
    assert store.changed(head, made) == ("a.txt", "b.txt", "tool")
    listed = store.git.run("ls-tree", "-r", made).decode()
    assert "100755" in listed
    assert "passwd" not in listed
    said = store.git.run("log", "-1", "--format=%an <%ae> %cI %s", made).decode()
    assert said == "Hana <hana@example.org> 2026-01-01T00:00:00+00:00 m\n"


def test_nothing_that_a_worker_planted_is_run(store: CloneStore, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    head, folder = work(store, tmp_path)
    (folder / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    run = f"touch {canary}"
    evil = f'[filter "evil"]\n clean = {run}\n smudge = {run}\n[core]\n fsmonitor = {run}\n'
    (store.git.git_dir / "config").write_text(evil + f'[merge "evil"]\n driver = {run}\n')
    write(store.git.git_dir / "hooks", {"reference-transaction": f"#!/bin/sh\n{run}\n"})
    (folder / "a.txt").write_text("evil\n")
    with pytest.raises(UsageError, match="filter evil"):
        commit(store, folder, head, "a.txt", ".gitattributes")
    (folder / ".gitattributes").write_text("* diff=evil merge=evil\n")
    made = commit(store, folder, head, "a.txt", ".gitattributes")
    store.branch("task", made)
    store.merge(head, made)
    store.check_out(tmp_path / "other", made)
    store.publish(made, "agentrunner/task")
    assert not canary.exists()


def test_merges_name_what_both_changed(store: CloneStore, tmp_path: Path) -> None:
    head = store.fetch()
    made = []
    for name, text in (
        ("x", "ONE\ntwo\nthree\n"),
        ("y", "one\ntwo\nTHREE\n"),
        ("z", "1\ntwo\nthree\n"),
    ):
        folder = tmp_path / name
        store.check_out(folder, head)
        (folder / "a.txt").write_text(text)
        made.append(commit(store, folder, head, "a.txt"))
    clean = store.merge(made[0], made[1])
    assert clean.conflicts == ()
    assert store.git.run("cat-file", "-p", f"{clean.tree}:a.txt") == b"ONE\ntwo\nTHREE\n"
    clash = store.merge(made[0], made[2])
    assert clash.conflicts == ("a.txt",)
    assert b"<<<<<<<" in store.git.run("cat-file", "-p", f"{clash.tree}:a.txt")
    both = store.commit_tree(
        clean.tree, parents=(made[0], made[1]), message="both", author=WHO, at=AT
    )
    assert store.contains(both, made[1])
    assert not store.contains(made[0], made[1])


def test_a_branch_is_put_into_the_repository_and_never_over_anothers(
    store: CloneStore, repo: Path, tmp_path: Path
) -> None:
    head, folder = work(store, tmp_path)
    (folder / "a.txt").write_text("changed\n")
    made = commit(store, folder, head, "a.txt")
    store.publish(made, "agentrunner/shop")
    store.publish(made, "agentrunner/shop")
    assert git(repo, "show", "agentrunner/shop:a.txt") == "changed\n"
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "rev-parse", "--abbrev-ref", "HEAD") == "main\n"
    with pytest.raises(UsageError) as refused:
        store.publish(head, "agentrunner/shop")
    assert refused.value.code == "branch-exists"
    store.publish(head, "agentrunner/shop", replaces=made)
    for name in ("a..b", "-x", "x.lock", "a b"):
        with pytest.raises(UsageError) as refused:
            store.publish(made, name)
        assert refused.value.code == "branch-name"


def test_what_has_nothing_to_branch_from_is_said(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError) as refused:
        CloneStore(tmp_path / "c1", empty).fetch()
    assert refused.value.code == "no-repository"
    git(empty, "init", "-q")
    with pytest.raises(UsageError) as refused:
        CloneStore(tmp_path / "c2", empty).fetch()
    assert refused.value.code == "no-commit"


def test_worktrees_detached_heads_and_shallow_clones_are_repositories(
    repo: Path, tmp_path: Path
) -> None:
    (repo / "b.txt").write_text("second\n")
    git(repo, "commit", "-qam", "second")
    git(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "shallow")
    for place in (tmp_path / "tree", tmp_path / "shallow"):
        store = CloneStore(tmp_path / f"{place.name}.git", place)
        head = store.fetch()
        folder = tmp_path / f"{place.name}-work"
        store.check_out(folder, head)
        (folder / "a.txt").write_text(place.name)
        made = commit(store, folder, head, "a.txt")
        store.publish(made, "done")
        assert git(place, "show", "done:a.txt") == place.name


NAMING_COMMANDS = {
    "another transport": '[url "ssh://x/"]\n insteadOf = /\n[core]\n sshCommand = touch {mark};\n',
    "a helper": '[url "ext::touch {mark} "]\n\tinsteadOf = /\n[protocol "ext"]\n\tallow = always\n',
    "references of others": "[core]\n\talternateRefsCommand = touch {mark}\n",
    "monitor and hooks": "[core]\n\tfsmonitor = touch {mark}\n\thooksPath = {hooks}\n",
}


@pytest.mark.parametrize("settings", NAMING_COMMANDS.values(), ids=NAMING_COMMANDS.keys())
def test_no_setting_of_the_repository_that_names_a_command_is_obeyed(
    settings: str, store: CloneStore, repo: Path, tmp_path: Path
) -> None:
    mark, hooks, other = tmp_path / "mark", tmp_path / "hooks", tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (repo / ".git/objects/info/alternates").write_text(f"{other}/.git/objects\n")
    write(hooks, {"reference-transaction": f"#!/bin/sh\ntouch {mark}\n"})
    with (repo / ".git" / "config").open("a") as config:
        config.write(settings.format(mark=mark, hooks=hooks))
    head, folder = work(store, tmp_path)
    (folder / "a.txt").write_text("done\n")
    made = commit(store, folder, head, "a.txt")
    store.publish(made, "result")
    assert not mark.exists()
    (repo / ".git" / "config").write_text("")
    assert git(repo, "show", "result:a.txt") == "done\n"


def test_what_is_given_is_readable_for_whom_the_repository_is(
    store: CloneStore, repo: Path, tmp_path: Path
) -> None:
    git(repo, "config", "core.sharedRepository", "group")
    head, folder = work(store, tmp_path)
    (folder / "a.txt").write_text("done\n")
    made = commit(store, folder, head, "a.txt")
    store.publish(made, "result")
    (given,) = (repo / ".git/objects" / made[:2]).glob(made[2:])
    assert given.stat().st_mode & 0o040
    assert not list(store.git.git_dir.glob("agentrunner.*"))


def test_a_commit_has_the_line_ends_and_encodings_that_attributes_say(
    store: CloneStore, repo: Path, tmp_path: Path
) -> None:
    (repo / ".gitattributes").write_text("*.bat text eol=crlf\n")
    (repo / "x.bat").write_bytes(b"one\r\ntwo\r\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "attributes")
    head, folder = work(store, tmp_path)
    (folder / "x.bat").write_bytes((folder / "x.bat").read_bytes() + b"three\r\n")
    (folder / "sub").mkdir()
    (folder / "sub" / ".gitattributes").write_text("*.u text working-tree-encoding=UTF-16\n")
    (folder / "sub" / "a.u").write_bytes("ä\n".encode("utf-16"))
    (folder / ".gitattributes").unlink()
    os.mkfifo(folder / ".gitattributes")
    made = commit(store, folder, head, "x.bat", "sub/a.u", "sub/.gitattributes")
    assert store.read(made, "x.bat") == b"one\ntwo\nthree\n"
    assert store.read(made, "sub/a.u") == "ä\n".encode()


def test_what_is_taken_along_is_not_all_in_memory_at_once(
    store: CloneStore, repo: Path, tmp_path: Path
) -> None:
    names = [f"{number}.bin" for number in range(8)]
    for name in names:
        (repo / name).write_bytes(bytes(4 << 20))
    _, folder = work(store, tmp_path)
    tracemalloc.start()
    try:
        store.carry_over(folder, names)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
    assert (folder / "7.bin").stat().st_size == 4 << 20


@pytest.mark.parametrize("path", ["lib", "lib/new.txt"])
def test_no_file_takes_the_place_of_a_submodule(
    path: str, store: CloneStore, repo: Path, tmp_path: Path
) -> None:
    head = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{head},lib")
    git(repo, "commit", "-qm", "with a submodule")
    _, folder = work(store, tmp_path)
    (folder / "lib").rmdir()
    (folder / path).parent.mkdir(exist_ok=True)
    (folder / path).write_text("new\n")
    (folder / "library").write_text("new\n")
    with pytest.raises(UsageError) as refused:
        commit(store, folder, store.fetch(), path, "library")
    assert refused.value.code == "in-submodule"
    made = commit(store, folder, store.fetch(), "library")
    assert store.submodules(made) == ["lib"]


@pytest.mark.parametrize("place", ["included", "config", "HEAD"])
def test_what_git_can_never_read_to_its_end_ends_with_a_name(
    place: str, store: CloneStore, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.fetch()
    monkeypatch.setattr("agentrunner.git.process.ANSWER_SEC", 0.3)
    if place == "included":
        git(repo, "config", "include.path", "pipe")
        pipe = repo / ".git" / "pipe"
    else:
        pipe = repo / ".git" / place
        pipe.unlink()
    os.mkfifo(pipe)
    for read in (store.fetch, lambda: store.fetch_branch("main"), lambda: store.publish("x", "y")):
        with pytest.raises(GitFailed) as told:
            read()
        assert (told.value.code, told.value.exit_code) == ("git-timeout", 5)
        assert str(repo / ".git") in told.value.message


def test_a_repository_whose_hash_is_sha256_is_worked_on_as_any(tmp_path: Path) -> None:
    place = tmp_path / "shop"
    place.mkdir()
    git(place, "init", "-q", "-b", "main", "--object-format=sha256")
    (place / "a.txt").write_text("one\n")
    (place / "b.txt").write_text("b\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    store = CloneStore(tmp_path / "clone.git", place)
    head, folder = work(store, tmp_path)
    (folder / "a.txt").write_text("two\n")
    (folder / "b.txt").unlink()
    made = commit(store, folder, head, "a.txt", "b.txt")
    assert store.changed(head, made) == ("a.txt", "b.txt")
    other = commit(store, place, head)
    merged = store.merge(made, other)
    assert merged.conflicts == ()
    store.publish(made, "done")
    assert git(place, "show", "done:a.txt") == "two\n"
    assert git(place, "ls-tree", "--name-only", "done") == "a.txt\n"


def test_what_a_killed_process_had_under_way_is_swept_and_nothing_of_others(
    store: CloneStore,
) -> None:
    store.fetch()
    place = store.git.git_dir
    killed = place / "agentrunner.killed"
    killed.mkdir()
    (killed / "index").touch()
    (place / "agentrunner.1a2b-feed.pack").touch()
    with room(place) as others:
        store.sweep()
        assert others.is_dir() and killed.is_dir()
    store.sweep()
    assert list(place.glob("agentrunner.*")) == []
    assert store.resolve("refs/agentrunner/head")


def test_a_process_that_is_killed_gives_its_rooms_up(store: CloneStore) -> None:
    store.fetch()
    place = store.git.git_dir
    hold = (
        "import sys, time; from pathlib import Path; from agentrunner.git.scratch import room\n"
        "with room(Path(sys.argv[1])) as place: print(place, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", hold, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        store.sweep()
        assert held.is_dir()
        holder.kill()
    store.sweep()
    assert not held.exists()


@pytest.mark.parametrize("left", [["refs", "HEAD"], ["refs", "HEAD", "config"], []])
def test_a_clone_whose_beginning_was_cut_short_is_begun_again(
    store: CloneStore, repo: Path, left: list[str]
) -> None:
    """`kill -9` in the middle of `git init`, which makes its parts one after another."""
    place = store.git.git_dir
    git(repo, "init", "-q", "--bare", "--template=", str(place))
    for part in place.iterdir():
        if part.name not in left:
            shutil.rmtree(part) if part.is_dir() else part.unlink()
    assert store.fetch() == git(repo, "rev-parse", "HEAD").strip()


def test_references_that_a_killed_git_left_locked_can_be_moved_again(store: CloneStore) -> None:
    head = store.fetch()
    store.branch("plan", head)
    place = store.git.git_dir
    for lock in ("refs/heads/plan.lock", "refs/agentrunner/head.lock", "packed-refs.lock"):
        (place / lock).touch()
    with pytest.raises(GitFailed):
        store.branch("plan", head, before="0" * 40)
    store.sweep()
    store.branch("plan", store.fetch())


def test_a_work_tree_that_a_killed_git_left_half_made_is_made_anew(
    store: CloneStore, tmp_path: Path
) -> None:
    head, folder = store.fetch(), tmp_path / "work"
    known = store.git.git_dir / "worktrees"
    store.check_out(folder, head)
    shutil.rmtree(folder)
    (known / "work" / "locked").write_text("initializing")
    store.check_out(folder, head)
    assert (folder / "a.txt").exists()
    (known / "work" / "locked").write_text("initializing")
    store.sweep()
    store.remove(folder)
    assert not known.exists()
