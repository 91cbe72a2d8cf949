"""Throw-away layers in bubblewrap: the kernel's overlay where it works here, or else a copy."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agentrunner.sandboxes.base import Mount
from agentrunner.sandboxes.toolchain import SYSTEM_ROOTS

TRY_SEC = 20.0
_WRITE_SCRIPT = (
    "echo new >/try/file && rm -r /try/folder && mkdir /try/folder && touch /try/folder/new"
)
_EMPTY_SCRIPT = ":"


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
