"""The ground that a case is played on: its repository, copies of it, and commands run in them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.battery.case import Case, Entry, Files

LIMIT = 60.0
"""Seconds for one plain command."""
_IDENTITY = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.invalid",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.invalid",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


@dataclass(frozen=True)
class Said:
    """Exit status and output of a command; 124 for one that was ended."""

    code: int
    output: str

    @property
    def green(self) -> bool:
        """Exit 0."""
        return self.code == 0


class Ground:
    """A folder with the repository at `repo`. Every copy is played at that same path."""

    def __init__(self, case: Case, place: Path) -> None:
        self.case = case
        self.place = place
        self.repo = place / "repo"
        self._start = place / "start"

    def lay(self) -> None:
        """Make and commit the repository, make it ready, and keep a copy of that."""
        self.repo.mkdir(parents=True)
        write(self.repo, self.case.files)
        self._must(self.case.start)
        self._must("git init -q -b main && git add -A && git commit -q --no-verify -m start")
        self._must(self.case.ready)
        _copy(self.repo, self._start)

    def again(self) -> None:
        """Put the repository back to how it began."""
        _remove(self.repo)
        _copy(self._start, self.repo)

    def say(self, command: str, **more: str) -> Said:
        """Run a shell command in the repository, without a box."""
        home = self.place / "home"
        home.mkdir(exist_ok=True)
        return run(command, self.repo, {**surroundings(home), **more})

    def deliver(self) -> None:
        """Leave a clean checkout of what was delivered at the repository's path.

        It is made with the git folder of the beginning: no flags, filters or excludes of the
        worker's. Files that were ignored at the beginning are there as they were then.
        """
        worked, store = self.place / "worked", self.place / "store"
        for old in (worked, store):
            _remove(old)
        self.repo.rename(worked)
        _copy(self._start / ".git", store)
        (store / "index").unlink(missing_ok=True)
        git = {**_IDENTITY, **os.environ, "GIT_DIR": str(store), "GIT_WORK_TREE": str(worked)}
        self.repo.mkdir()
        told = run("git read-tree HEAD && git add -A", worked, git)
        if told.green:
            prefix = f"git checkout-index -a --prefix='{self.repo}/'"
            told = run(prefix, worked, git)
        if not told.green:
            raise RuntimeError(f"no checkout of the delivered tree: {told.output}")
        self._ignored(store)
        _copy(self._start / ".git", self.repo / ".git")

    def _ignored(self, store: Path) -> None:
        git = {**_IDENTITY, **os.environ, "GIT_DIR": str(store), "GIT_WORK_TREE": str(self._start)}
        command = (
            "git read-tree HEAD && git ls-files -o -i --exclude-standard --directory | "
            f'while read -r f; do mkdir -p "$(dirname "{self.repo}/$f")"; '
            f'cp -a "$f" "{self.repo}/${{f%/}}"; done'
        )
        run(command, self._start, git)

    def _must(self, script: str) -> None:
        if script:
            said = self.say(script)
            if not said.green:
                raise RuntimeError(f"{self.case.name} cannot be laid: {said.output}")


def write(root: Path, files: Files) -> None:
    """Write files below a folder; None removes one."""
    for name, content in files.items():
        path = root / name
        if content is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        entry = content if isinstance(content, Entry) else Entry(text=content)
        if entry.link:
            path.symlink_to(entry.link)
            continue
        text = entry.text.replace("\n", "\r\n") if entry.crlf else entry.text
        path.write_text(text, encoding="utf-8", newline="")
        if entry.program:
            path.chmod(0o755)


def surroundings(home: Path) -> dict[str, str]:
    """The environment of a plain command: this machine's tools, a home of its own."""
    kept = {
        name: os.environ[name] for name in ("PATH", "LANG", "RUSTUP_HOME") if name in os.environ
    }
    rustup = Path.home() / ".rustup"
    if rustup.is_dir():
        kept.setdefault("RUSTUP_HOME", str(rustup))
    offline = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "CARGO_NET_OFFLINE": "true"}
    # Files of one size that change within a second would be taken for their old byte code.
    python = {"PYTHONDONTWRITEBYTECODE": "1"}
    return {**kept, **_IDENTITY, **offline, **python, "HOME": str(home)}


def run(command: str, cwd: Path, environment: Mapping[str, str]) -> Said:
    """Run a shell command and, where it does not end, end it and all that it started."""
    process = subprocess.Popen(
        ["sh", "-c", command],
        cwd=cwd,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=LIMIT)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        code = 124
    return Said(code, output.decode("utf-8", "replace"))


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
