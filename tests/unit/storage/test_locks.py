from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agentrunner.errors import LockHeld
from agentrunner.storage.locks import OUTSIDE, FileLock, Holder, me, repository_lock, run_lock
from agentrunner.storage.run_folder import RunFolder

HOLD = """
import sys
from pathlib import Path
from agentrunner.storage.locks import FileLock, me
lock = FileLock(Path(sys.argv[1]))
lock.acquire(me("other-1", "2026-01-01T00:00:00Z"))
print("held", flush=True)
sys.stdin.read()
"""


def holding(path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def here() -> Holder:
    return me("t-0000", "2026-01-01T00:00:00Z")


def test_the_second_is_refused_and_told_who_holds_it_until_that_one_is_killed(
    tmp_path: Path,
) -> None:
    lock = FileLock(tmp_path / "lock", "the repository")
    other = holding(lock.path)
    try:
        with pytest.raises(LockHeld, match="the repository is held by run other-1") as caught:
            lock.acquire(here())
        assert caught.value.exit_code == 5
        assert caught.value.remedy == "agentrunner watch other-1, or agentrunner cancel other-1"
        assert ("process", f"{other.pid} on {here().host}") in caught.value.details
        held = lock.probe()
        assert held is not None and (held.run_id, held.pid) == ("other-1", other.pid)
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert lock.probe() is None
        lock.acquire(here())
        assert lock.probe() == here()
    finally:
        end(other)
        lock.close()


def test_a_lock_is_left_with_the_same_run_only(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    other = holding(lock.path)
    try:
        lock.acquire_or_leave(me("other-1", "2026-01-01T00:00:00Z"))
        assert not lock.held
        with pytest.raises(LockHeld):
            lock.acquire_or_leave(here())
        end(other)
        lock.acquire_or_leave(here())
        assert lock.held
    finally:
        end(other)
        lock.close()


def test_a_child_that_inherits_the_lock_keeps_it_after_we_close_it(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.acquire(here())
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(lock.fd,))
    stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        lock.close()
        assert lock.probe() == here()
        end(child)
        # The stranger was started while we held it, and did not get it.
        assert lock.probe() is None
    finally:
        end(child)
        end(stranger)


def test_closing_twice_and_asking_for_no_lock_are_harmless_and_refused(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.probe() is None and not lock.path.exists()
    lock.acquire(here())
    lock.close()
    lock.close()
    with pytest.raises(ValueError, match="not locked"):
        _ = lock.fd


def test_probing_never_refuses_a_claimant(tmp_path: Path) -> None:
    watcher, lock = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    over = threading.Event()

    def probe_on() -> None:
        while not over.is_set():
            watcher.probe()

    thread = threading.Thread(target=probe_on)
    thread.start()
    try:
        for _ in range(200):
            lock.acquire(here())
            lock.close()
    finally:
        over.set()
        thread.join()


def test_a_lock_in_a_folder_that_was_removed_meanwhile_is_no_lock(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "gone" / "lock")
    with pytest.raises(FileNotFoundError):
        lock.acquire(here())
    assert not (tmp_path / "gone").exists()


def test_all_names_of_a_repository_are_one_lock(tmp_path: Path) -> None:
    repo, alias = tmp_path / "repo", tmp_path / "alias"
    repo.mkdir()
    alias.symlink_to(repo)
    lock = repository_lock(tmp_path / "state", repo)
    assert repository_lock(tmp_path / "state", alias / ".." / "repo").path == lock.path
    assert repository_lock(tmp_path / "state", tmp_path).path != lock.path
    lock.acquire(here())
    with pytest.raises(LockHeld):
        repository_lock(tmp_path / "state", alias).acquire(here())
    lock.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="bind mounts need root")
def test_a_bind_mounted_alias_is_the_same_repository(tmp_path: Path) -> None:
    for name in ("repo", "alias"):
        (tmp_path / name).mkdir()
    show = (
        "from pathlib import Path; import sys; "
        "from agentrunner.storage.locks import repository_lock;"
        "print(*(repository_lock(Path(sys.argv[1]), Path(p)).path for p in sys.argv[2:]))"
    )
    script = f'mount --bind repo alias && exec "{sys.executable}" -c "$1" state repo alias'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", show],
        cwd=tmp_path,
        capture_output=True,
        check=True,
        text=True,
    )
    first, second = done.stdout.split()
    assert first == second


def test_the_run_lock_is_in_the_run_folder(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "t-0000")
    lock = run_lock(folder)
    lock.acquire(here())
    with pytest.raises(LockHeld, match="run t-0000 is at work in another process") as caught:
        run_lock(folder).acquire(here())
    assert caught.value.remedy == "agentrunner watch t-0000, or agentrunner cancel t-0000"
    lock.close()


@pytest.mark.parametrize(
    ("holder", "of_run", "of_repository"),
    [
        ("", "agentrunner watch t-0000, or agentrunner cancel t-0000", OUTSIDE),
        (
            "other-1",
            "agentrunner watch other-1, or agentrunner cancel other-1",
            f"agentrunner watch other-1, or agentrunner cancel other-1; or {OUTSIDE}",
        ),
    ],
)
def test_who_holds_a_lock_is_looked_at_or_ended_or_worked_beside(
    tmp_path: Path, holder: str, of_run: str, of_repository: str
) -> None:
    folder = RunFolder.create(tmp_path, "t-0000")
    locks = {of_run: run_lock(folder), of_repository: repository_lock(tmp_path, tmp_path)}
    for remedy, held in locks.items():
        held.acquire(me(holder, "2026-01-01T00:00:00Z"))
        with pytest.raises(LockHeld) as caught:
            FileLock(held.path, held.what, run_id=held.run_id, remedy=held.remedy).acquire(here())
        assert caught.value.remedy == remedy
        held.close()


def test_a_run_whose_process_was_killed_is_taken_over_from_the_worker_that_holds_its_lock(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lock"
    hold = (
        "import subprocess, sys; from pathlib import Path;"
        "from agentrunner.storage.locks import FileLock, me;"
        "lock = FileLock(Path(sys.argv[1])); lock.acquire(me('other-1', ''));"
        "child = subprocess.Popen(['cat'], stdin=0, stdout=subprocess.DEVNULL, pass_fds=[lock.fd]);"
        "print('held', flush=True); child.wait()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", hold, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == b"held\n"
    process.kill()
    process.wait()
    try:
        with pytest.raises(LockHeld) as caught:
            FileLock(path, "the repository").acquire(here())
        assert caught.value.remedy == "agentrunner resume other-1, or agentrunner cancel other-1"
    finally:
        process.stdin.close()  # the child reads to its end
        process.stdout.close()
