"""Handle unexpected exceptions: one line for the person, and a file for whoever fixes them."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from agentrunner import environment, registry
from agentrunner.commands.console import Console, Output, show_error, show_json
from agentrunner.errors import AgentRunnerError, InfraError, LockHeld
from agentrunner.errors.command_line import BadExtension
from agentrunner.errors.runs import DiskFull, StateUnwritable
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.redaction import Redactor
from agentrunner.text.times import stamp_now

_SECRET_NAME = lazy_regex(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)


def named(
    error: Exception, state_dir: str | None = None, environ: Mapping[str, str] = os.environ
) -> AgentRunnerError:
    """Return a known `error` itself; else `internal`, with the traceback in a private file."""
    if isinstance(error, AgentRunnerError):
        return error
    folder = environment.state_dir(state_dir, environ)
    if trouble := _as_machine_error(error, folder):
        return trouble
    kind, summary = AgentRunnerError, f"{type(error).__name__} in AgentRunner itself; this is a bug"
    if place := registry.extension_of(error):
        kind, summary = BadExtension, f"{type(error).__name__} in {place}: {error}"
    try:
        file = _write_traceback(error, folder, environ)
    except OSError:
        return kind(summary)
    return kind(summary, details=(("traceback", str(file)),))


def _as_machine_error(error: Exception, folder: Path) -> InfraError | None:
    """Return the error of a full disk, an unwritable state folder or a locked file: not bugs."""
    number = error.errno if isinstance(error, OSError) else None
    sqlite = str(getattr(error, "sqlite_errorname", ""))
    if environment.is_out_of_room(error) or sqlite == "SQLITE_FULL":
        return DiskFull.of(_full_folder(error, folder))
    # SQLite needs files of its own beside a database, and says only that it got none.
    if sqlite.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")) and environment.is_full(folder):
        return DiskFull.of(_full_folder(error, folder))
    named_file = os.fsdecode(getattr(error, "filename", None) or "")
    place = Path(named_file or "/")
    ours = place.is_relative_to(folder) or folder.is_relative_to(place)
    closed = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)
    # Whatever keeps the folder from being made: on /proc that is "no such file".
    unmade = named_file and ours and not os.path.isdir(folder)  # noqa: PTH112
    shut = ours and number in closed
    if sqlite.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")) or shut or unmade:
        return StateUnwritable(
            f"The state folder {folder} cannot be written: {error}",
            remedy="--state-dir DIR, or AGENTRUNNER_STATE_DIR, with a folder of your own",
        )
    if sqlite.startswith("SQLITE_BUSY"):
        return LockHeld(f"Another program holds a file below {folder}: {error}")
    return None


def _full_folder(error: Exception, state_dir: Path) -> Path:
    """Return the folder that a write found no room in: its file's, else the fullest of ours."""
    file = Path(os.fsdecode(getattr(error, "filename", None) or ""))
    if file.is_absolute():
        return file if file.is_dir() else file.parent
    return environment.fullest(state_dir, Path(tempfile.gettempdir()))


def _write_traceback(error: Exception, folder: Path, environ: Mapping[str, str]) -> Path:
    """Write frames and messages, never values of local variables; secrets are masked."""
    from agentrunner.storage.run_folder import make_private

    secrets = {name: value for name, value in environ.items() if _SECRET_NAME.search(name)}
    text = Redactor(secrets).redact("".join(traceback.format_exception(error)))
    crashes = folder / "crashes"
    make_private(crashes)
    file = crashes / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    with contextlib.suppress(FileExistsError):
        file.touch(mode=0o600, exist_ok=False)
    file.write_text(text, encoding="utf-8", errors="backslashreplace")
    return file


def failed_plan(error: AgentRunnerError) -> dict[str, object]:
    """Return the event that ends a `plan run` without a `plan_result`."""
    from agentrunner.results import PlanResult

    return {"ts": stamp_now(), "event": "plan_result", **PlanResult.of_error(error).as_dict()}


def tell(
    error: Exception, *, as_json: bool, state_dir: str | None = None, of_plan: bool = False
) -> int:
    """Report an error outside of a driven run; return the exit code.

    With `as_json` also as the one result that --json promises, or as `plan_result` of `plan run`.
    """
    known = named(error, state_dir)
    if as_json and of_plan:
        show_json(failed_plan(known))
    elif as_json:
        from agentrunner.results import Result  # models, which no error on a terminal needs

        Console(Output(json=True, quiet=True)).finish(Result.of_error(known))
    show_error(known)
    return known.exit_code
