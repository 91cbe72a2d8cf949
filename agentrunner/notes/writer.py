"""Write the note's file without following anything that a worker may have planted.

An agent had access to the repository: the note's folder may be a link, the note a pipe or a hard
link to something precious, or each of them in turn. Everything is opened by its name in a folder
that is already open, never through a link, and the old note is replaced, never written into.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from agentrunner.config.naming import TASK_ID
from agentrunner.errors import UsageError
from agentrunner.errors.runs import BadNoteFolder, NoteNotWritten
from agentrunner.errors.task_files import BadTaskId
from agentrunner.git.user_index import IndexDamaged, read_index
from agentrunner.notes.render import MARKER
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HEAD_BYTES = 1024
_OURS = ".agent-runner"
_NOTE_NAME = lazy_regex(r"^(task|plan)-.*\.md$")
_MAX_OLD_NOTES = 10_000


class WrittenNote(Struct, frozen=True):
    """The note's path, and a warning about it for people ("" if none)."""

    path: Path
    warning: str = ""


def write_note(
    repo: Path, note_dir: str, task_id: str, run_id: str, text: str, *, fallback: Path
) -> WrittenNote:
    """Write the note to `repo/note_dir/task-<task_id>.md`, or else to the file `fallback`.

    A note of another run is kept as `task-<task_id>.<n>.md`; the same run's note is replaced where
    it is. Raises UsageError for a task id that is no file name, InfraError if neither place can be
    written.
    """
    return write_marked(repo, note_dir, ("task", task_id), run_id, text, fallback=fallback)


def write_marked(
    repo: Path, note_dir: str, name: tuple[str, str], owner: str, text: str, *, fallback: Path
) -> WrittenNote:
    """Like `write_note`, to `<kind>-<id>.md` for any (kind, id); the marker names `owner`."""
    kind, identifier = name
    if not TASK_ID.fullmatch(identifier) or ".." in identifier:
        raise BadTaskId(f"{identifier!r} is no {kind} id")
    try:
        parts = note_parts(note_dir)
        place = _write(repo, parts, _stem(kind, identifier), owner, text)
        return WrittenNote(repo.joinpath(*parts, place))
    except (OSError, UsageError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    try:
        with _open_folder(fallback.parent, (), make=False) as folder:
            _replace(folder, fallback.name, text)
    except OSError as error:
        raise NoteNotWritten(
            f"the {kind} note can be written neither to {repo / note_dir} ({why}) "
            f"nor to {fallback} ({error.strerror})",
        ) from error
    warning = f"{why}: the note could not be written to {repo / note_dir}; it is {fallback}"
    return WrittenNote(fallback, warning)


def note_name(repo: Path, note_dir: str, task_id: str, run_id: str) -> str:
    """Return the file name of a run's note in `repo/note_dir`; "" if it has none there."""
    try:
        with _open_folder(repo, note_parts(note_dir), make=False) as folder:
            return _own_name(folder, _stem("task", task_id), run_id) or ""
    except (OSError, UsageError):
        return ""


def remove_note(repo: Path, note_dir: str, task_id: str, run_id: str, text: bytes) -> None:
    """Remove a run's note, also under a number, where it still is exactly `text`.

    A note that somebody has edited, or has taken into git, is theirs.
    """
    with contextlib.suppress(OSError, UsageError):
        parts = note_parts(note_dir)
        with _open_folder(repo, parts, make=False) as folder:
            name = _own_name(folder, _stem("task", task_id), run_id)
            if name is None or _is_tracked(repo, "/".join((*parts, name))):
                return
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
                if file.read(len(text) + 1) != text:
                    return
            os.unlink(name, dir_fd=folder)


def _is_tracked(repo: Path, path: str) -> bool:
    """Whether git has the file, or may have it."""
    git = repo / ".git"
    if not os.path.lexists(git):
        return False
    try:
        index = read_index(os.fsencode(git / "index"))
    except IndexDamaged:
        return True
    return to_bytes(path) in index.tracked if index else not git.is_dir()


def note_parts(note_dir: str) -> tuple[str, ...]:
    """Return the folders from the repository to the notes; raises UsageError if they leave it."""
    folder = PurePosixPath(note_dir)
    inside = not folder.is_absolute() and ".." not in folder.parts and "\0" not in note_dir
    if not inside or any(part.lower() == ".git" for part in folder.parts):
        raise BadNoteFolder(
            f"{note_dir!r} is no folder inside the repository",
            path="runner.note.dir",
        )
    return folder.parts


def check_note_dir(repo: Path, note_dir: str) -> None:
    """Refuse a folder for notes that holds anything else; raises UsageError (`note-dir`).

    Snapshots leave the folder out, so other files in it would not be watched.
    """
    folder = repo.joinpath(*note_parts(note_dir))
    if note_dir == _OURS:
        return
    if folder == repo:
        others = ["."]
    elif folder.is_dir() and not folder.is_symlink():
        others = [name.name for name in folder.iterdir() if not _NOTE_NAME.match(name.name)]
    else:
        others = []
    if others:
        raise BadNoteFolder(
            f"{note_dir} holds more than task notes ({sorted(others)[0]}).",
            path="runner.note.dir",
            remedy="name a folder of its own",
        )


def _write(root: Path, parts: tuple[str, ...], stem: str, owner: str, text: str) -> str:
    """Write below `root`, verify that the file is there, and return its name."""
    with _open_folder(root, parts, make=True) as folder:
        name = _own_name(folder, stem, owner)
        if name is None:
            name = f"{stem}.md"
            _keep_old(folder, name, stem)
        written = _replace(folder, name, text)
    # The folder may have been swapped meanwhile: only what a fresh walk finds counts.
    with _open_folder(root, parts, make=False) as folder:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not os.path.samestat(found, written):
            raise OSError(errno.ESTALE, "the folder was exchanged while the note was written")
    return name


@contextlib.contextmanager
def _open_folder(root: Path, parts: tuple[str, ...], *, make: bool) -> Iterator[int]:
    """Yield a descriptor of the folder `parts` below `root`, reached without following links."""
    folder = os.open(root, _FOLDER)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=folder)
            below = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


def _stem(kind: str, identifier: str) -> str:
    return identifier if identifier.startswith(f"{kind}-") else f"{kind}-{identifier}"


def _own_name(folder: int, stem: str, owner: str) -> str | None:
    """Return the name of this run's or plan's own note, if there is one."""
    own = re.compile(rf"{re.escape(stem)}(\.\d+)?\.md")
    names = [name for name in os.listdir(folder) if own.fullmatch(name)]
    for name in sorted(names, key=len)[:_MAX_OLD_NOTES]:
        if _owner_of(folder, name) == owner:
            return name
    return None


def _owner_of(folder: int, name: str) -> str | None:
    """Return the run or plan id in a note's first line; None if the file is no note."""
    try:
        # NONBLOCK: opening a pipe without a writer would wait forever.
        file = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
        )
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        first = os.read(file, _HEAD_BYTES).split(b"\n")[0].decode("utf-8", "replace")
    finally:
        os.close(file)
    if not (first.startswith(MARKER) and first.endswith(" -->")):
        return None
    try:
        facts = json.loads(first.removeprefix(MARKER).removesuffix(" -->"))
    except ValueError:
        return None
    owner = facts.get("run_id") or facts.get("plan_id") if isinstance(facts, dict) else None
    return owner if isinstance(owner, str) else None


def _keep_old(folder: int, name: str, stem: str) -> None:
    """Give a file at the note's place a numbered name; links, pipes and devices are not kept."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        return
    taken = set(os.listdir(folder))
    for number in range(1, _MAX_OLD_NOTES):
        kept = f"{stem}.{number}.md"
        if kept not in taken:
            os.rename(name, kept, src_dir_fd=folder, dst_dir_fd=folder)
            return
    raise OSError(errno.EEXIST, "too many old notes")


def _replace(folder: int, name: str, text: str) -> os.stat_result:
    """Put a new file with this text in the place of `name`, whatever that is now."""
    temporary = f".{name}.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
            written = os.fstat(file.fileno())
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)
    return written
