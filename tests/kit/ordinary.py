"""The sandboxes as an ordinary user has them, where the tests run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import agentrunner
from tests.kit.missing import missing

UID = 65534
PYTHON = Path("/usr/bin/python3")
NEW_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 11))"


@dataclass(frozen=True)
class Ordinary:
    """A user without rights, with a folder of their own and a copy of the sandboxes in it."""

    folder: Path

    def python(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a script; it can import `agentrunner.sandboxes` and the control server's stand-in."""
        return subprocess.run(
            [PYTHON, "-c", script, *words],
            user=UID,
            group=UID,
            extra_groups=[],
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "TMPDIR": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@contextmanager
def ordinary_user(name: str) -> Iterator[Ordinary]:
    """Become one; skips where only root could, or its Python is too old."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", NEW_ENOUGH], check=False).returncode:
        missing("no /usr/bin/python3 of at least 3.11, which an ordinary user can start")
    # A linker that root runs with `-o /dev/null`, as probes of build tools do, closes it to others.
    if Path(os.devnull).stat().st_mode & 0o666 != 0o666:
        Path(os.devnull).chmod(0o666)
    # pytest's own folders are closed to others.
    folder = Path("/var/tmp") / f"agentrunner-{name}-{os.getpid()}"
    folder.mkdir()
    try:
        package = Path(agentrunner.__file__).parent
        kit = Path(__file__).parent / "control_server.py"
        for part in (
            "__init__.py",
            "environment.py",
            "errors",
            "folders.py",
            "registry.py",
            "sandboxes",
            "testing",
            "text",
        ):
            source = package / part
            target = folder / "agentrunner" / part
            target.parent.mkdir(exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        shutil.copy(kit, folder / kit.name)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, UID, UID)
        yield Ordinary(folder)
    finally:
        shutil.rmtree(folder)
