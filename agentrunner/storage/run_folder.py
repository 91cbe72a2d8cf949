"""The folder of one run: all its files, in one place, for its owner only."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from agentrunner.errors import CheckpointCorrupt
from agentrunner.errors.runs import StateInRepository, UnknownRun
from agentrunner.folders import remove_tree
from agentrunner.text.lazy_regex import lazy_regex

if TYPE_CHECKING:
    # Showing a run must not wait for the import of the task models.
    from agentrunner.config.spec import TaskSpec
    from agentrunner.state.state_model import FileRef

RUN_ID = lazy_regex(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,139}$")
"""A task id, a dash and four characters; safe as a file name."""

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Base 32 after Crockford: without i, l, o, u, which are misread."""


def runs_root(state_dir: Path) -> Path:
    """Return the folder that has the folders of all runs."""
    return state_dir / "runs"


def verify_root(state_dir: Path) -> Path:
    """Return the folder of the temporary folders of `agentrunner verify`."""
    return state_dir / "verify"


def new_run_id(task_id: str, random_bytes: bytes) -> str:
    """Return `<task-id>-<4 base-32 characters>`, from the first four of `random_bytes`."""
    return f"{task_id}-" + "".join(ALPHABET[byte % 32] for byte in random_bytes[:4])


def refuse_inside(state_dir: Path, repo: Path) -> None:
    """Raise UsageError where the state folder is in the repository, which workers write to."""
    if state_dir.resolve().is_relative_to(repo.resolve()):
        raise StateInRepository(
            f"the state folder {state_dir} is inside the repository {repo}, where workers could "
            "change it",
            remedy="--state-dir with a folder elsewhere, or unset AGENTRUNNER_STATE_DIR",
        )


def make_private(folder: Path) -> None:
    """Make a folder, and missing ones above it, for its owner only."""
    if folder.is_dir():
        return
    for missing in reversed([folder, *folder.parents]):
        with contextlib.suppress(FileExistsError):
            missing.mkdir(mode=0o700)


def write_private(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Replace a file in one step, mode 0600; the old one stays whole if the disk is full.

    Without `sync` the new one may be lost when the machine (not the process) dies soon after.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    _write(temporary, data, sync=sync)
    try:
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_new(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write a file that no one reads before this returns; `sync` as in write_private.

    It needs no temporary name and no rename. A file that a crash has left there is replaced.
    """
    try:
        _write(path, data, sync=sync)
    except FileExistsError:
        write_private(path, data, sync=sync)


def overwrite(path: Path, text: str) -> None:
    """Write a small text, at most a page, over that of a file; a missing one is made.

    It is one write of at least the same length, so that a reader finds the old text or the new one,
    with spaces after it. It costs a tenth of replacing the file, and nothing is synced.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        write_private(path, text.encode().ljust(512), sync=False)
        return
    try:
        size = os.fstat(fd).st_size
        with open(fd, "wb", buffering=0, closefd=False) as file:
            file.write(text.encode().ljust(size))
    finally:
        os.close(fd)


def _write(path: Path, data: bytes, *, sync: bool) -> None:
    """Create a file that does not exist, and leave none where that fails."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(fd)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


class RunFolder:
    """One run's folder. It holds no secrets.

    Sandboxes see only these parts of it: `box` and `sock`, byte code, build caches and copies of
    the repository (`bytecode`, `go-build`, `cargo-build`, `ccache`, `copies`), a worker's index and
    objects of git (`git`), layers that are copies (`layers`), an identity for git and empty things
    (`gitconfig`, `empty`), and, in the sandbox of a planner that is a program, that planner's own
    files in `planner`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.run_id = root.name
        self.spec_file = root / "spec.json"
        self.checkpoints = root / "checkpoints.sqlite"
        self.log_file = root / "log.jsonl"
        self.events_file = root / "events.jsonl"
        self.planner_dir = root / "meta"
        self.workers_dir = root / "workers"
        self.checks_dir = root / "checks"
        self.snapshots_dir = root / "snapshots"
        self.prompts_dir = root / "prompts"
        self.sandbox_dir = root / "box"
        self.sock_dir = root / "sock"
        self.note_file = root / "note.md"
        self.sandbox_file = root / "box.json"
        self.traceback_file = root / "traceback.txt"
        self.run_lock = root / "run.lock"
        self.index_file = root / "index.json"

    @classmethod
    def create(cls, state_dir: Path, run_id: str, repo: Path | None = None) -> RunFolder:
        """Make the folder of a new run.

        Raises UsageError for an unsafe id or a state folder inside `repo`, FileExistsError if there
        is such a run.
        """
        if not RUN_ID.match(run_id) or ".." in run_id:
            raise UnknownRun(f"{run_id!r} is not a run id")
        if repo is not None:
            refuse_inside(state_dir, repo)
        make_private(runs_root(state_dir))
        folder = cls(runs_root(state_dir) / run_id)
        folder.root.mkdir(mode=0o700)
        for part in (
            folder.planner_dir,
            folder.workers_dir,
            folder.checks_dir,
            folder.snapshots_dir,
            folder.prompts_dir,
            folder.sandbox_dir,
            folder.sock_dir,
        ):
            part.mkdir(mode=0o700)
        return folder

    @classmethod
    def open(cls, state_dir: Path, run_id: str) -> RunFolder:
        """Return the folder of an existing run; raise UsageError (`unknown-run`), never create."""
        root = runs_root(state_dir) / run_id
        if not RUN_ID.match(run_id) or ".." in run_id or not root.is_dir():
            raise UnknownRun(
                f"there is no run {run_id!r}",
                remedy="agentrunner list --all",
            )
        return cls(root)

    def _inside(self, name: str) -> Path:
        path = Path(name)
        if not path.parts or path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{name!r} is not a path inside a run's folder")
        return self.root / path

    def ref(self, path: Path) -> FileRef:
        """Return a reference to a file of this folder with its present content."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
        from agentrunner.state.state_model import FileRef

        return FileRef(path=path.relative_to(self.root).as_posix(), size=size, sha256=digest)

    def write(
        self, name: str, data: bytes | str, *, sync: bool = True, new: bool = False
    ) -> FileRef:
        """Write a file by its relative name, whole or not at all; `sync` as in write_private.

        `new` is for a name that no one reads before this returns; see write_new.
        """
        raw = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
        path = self._inside(name)
        make_private(path.parent)
        (write_new if new else write_private)(path, raw, sync=sync)
        from agentrunner.state.state_model import FileRef

        return FileRef(path=name, size=len(raw), sha256=hashlib.sha256(raw).hexdigest())

    def read(self, ref: FileRef) -> bytes:
        """Return the bytes of a reference; raise CheckpointCorrupt if they are gone or changed."""
        try:
            data = self._inside(ref.path).read_bytes()
        except OSError as error:
            raise CheckpointCorrupt(
                f"{ref.path} of run {self.run_id} can't be read: {error}"
            ) from error
        if ref.sha256 and hashlib.sha256(data).hexdigest() != ref.sha256:
            raise CheckpointCorrupt(f"{ref.path} of run {self.run_id} is not what was written")
        return data

    def remove(self) -> None:
        """Delete the run, including folders that a tool made read-only in `box`.

        Raises OSError for what cannot be deleted.
        """
        remove_tree(str(self.root))
        with contextlib.suppress(FileNotFoundError):  # as it is, but for a reason not to be deleted
            shutil.rmtree(self.root)


def save_spec(folder: RunFolder, spec: TaskSpec) -> None:
    """Save the task that a run was made from."""
    folder.write(folder.spec_file.name, spec.model_dump_json(indent=1))


def load_spec(folder: RunFolder) -> TaskSpec:
    """Return the task a run was made from; raise CheckpointCorrupt if it is gone or damaged."""
    from pydantic import ValidationError

    from agentrunner.config.spec import TaskSpec

    try:
        return TaskSpec.model_validate_json(folder.spec_file.read_bytes())
    except (OSError, ValidationError) as error:
        raise CheckpointCorrupt(
            f"the task of run {folder.run_id} can't be read", path=str(folder.spec_file)
        ) from error


def keep_sandbox(folder: RunFolder, kind: str, image: str) -> None:
    """Save the kind and image of the sandbox in which the baseline started; the run keeps them."""
    folder.write(folder.sandbox_file.name, json.dumps({"kind": kind, "image": image}))


def kept_sandbox(folder: RunFolder) -> tuple[str, str]:
    """Return kind and image of the sandbox the run works in; empty before its baseline."""
    try:
        facts = json.loads(folder.sandbox_file.read_bytes())
        return str(facts["kind"]), str(facts["image"])
    except (OSError, ValueError, KeyError):
        return "", ""
