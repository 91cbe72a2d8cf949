"""Check and ensure that git ignores the notes of runs. No git is started."""

from __future__ import annotations

from pathlib import Path

from agentrunner.errors.command_line import AlreadyExists
from agentrunner.errors.task_files import Unreadable

NOTES = ".agent-runner/"


def is_ignored(repo: Path) -> bool:
    """Whether one of the repository's own ignore files names the folder of the notes."""
    for file in (repo / ".gitignore", repo / ".git" / "info" / "exclude"):
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        name = NOTES.strip("/")
        if any(line.strip().strip("/") in (name, f"**/{name}") for line in lines):
            return True
    return False


def ignore_notes(repo: Path, wanted: bool = True) -> bool:
    """Add the folder to `.gitignore` if it is not ignored yet; raises UsageError."""
    if is_ignored(repo) or not wanted:
        return is_ignored(repo)
    file = repo / ".gitignore"
    try:
        if file.is_symlink():
            raise AlreadyExists(
                f"{file} is a link and is left alone.",
                remedy=f"add {NOTES} to it yourself",
            )
        before = file.read_bytes() if file.exists() else b""
        with file.open("ab") as stream:
            stream.write(b"\n" * bool(before and not before.endswith(b"\n")))
            stream.write(f"{NOTES}\n".encode())
    except OSError as error:
        raise Unreadable(f"{file} cannot be written: {error.strerror}.", path=str(file)) from error
    return True
