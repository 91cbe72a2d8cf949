"""`scripts/setup.sh` on machines whose Python lacks what a virtual environment is made with."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "setup.sh"
TOOLS = "sh env dirname mkdir rm id cat cp sleep ls".split()
PYTHON = """#!/bin/sh
echo "python $*" >> "$LOG"
case "$*" in
    *sys.executable*) echo "$BARE" ;;
    *sys.version_info*) ;;
    "-m venv --without-pip "*) mkdir -p "$4/bin" && cp "$BARE" "$4/bin/python" ;;
    "-m pip --version" | "-m pip install "*) [ -e "$HOME/pip" ] ;;
    */pip" install --quiet --no-index "*) : > "$HOME/pip" ;;
    *) exit 1 ;;
esac
"""
"""Debian's bare python3: `-m venv` fails without ensurepip, and there is no pip."""
APT = """#!/bin/sh
echo "apt-get $*" >> "$LOG"
case "$*" in
    *update*) : > "$HOME/lists" ;;
    *download*python3-pip-whl) [ -e "$HOME/lists" ] && : > pip.deb ;;
esac
"""
DPKG = """#!/bin/sh
mkdir -p usr/share/python-wheels && : > usr/share/python-wheels/pip-23.0.1-py3-none-any.whl
"""


class Machine:
    """A checkout, and a PATH with these programs alone."""

    def __init__(self, place: Path) -> None:
        self.home, self.log, self.bin = place / "home", place / "log", place / "bin"
        self.checkout = place / "checkout"
        for folder in (self.home, self.bin, self.checkout / "scripts"):
            folder.mkdir(parents=True)
        shutil.copy(SCRIPT, self.checkout / "scripts")
        self.log.write_text("")
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name) or "")
        self.add("python3", PYTHON)

    def add(self, name: str, script: str = "#!/bin/sh\nexit 1\n") -> None:
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def set_up(self) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": str(self.bin), "HOME": str(self.home), "LOG": str(self.log)}
        return subprocess.run(
            ["sh", "scripts/setup.sh", "runtime"],
            cwd=self.checkout,
            env={**environ, "BARE": str(self.bin / "python3"), "LANG": os.environ.get("LANG", "C")},
            capture_output=True,
            text=True,
        )


@pytest.mark.parametrize("has_lists", [True, False])
def test_where_python_has_no_pip_apt_fetches_it_without_root(
    tmp_path: Path, has_lists: bool
) -> None:
    machine = Machine(tmp_path)
    machine.add("apt-get", APT)
    machine.add("dpkg-deb", DPKG)
    if has_lists:
        (machine.home / "lists").touch()
    done = machine.set_up()
    assert done.returncode == 0, done.stderr
    log = machine.log.read_text()
    assert ("update" in log) == (not has_lists)
    asked = [line for line in log.splitlines() if line.startswith("apt-get ")]
    assert asked and not any(" install " in line for line in asked)
    wheel = "usr/share/python-wheels/pip-23.0.1-py3-none-any.whl"
    assert f"{wheel}/pip install --quiet --no-index" in log
    assert log.rstrip().endswith("pip install --quiet --editable .[sandbox]")
    assert sorted(path.name for path in (machine.checkout / ".venv").iterdir()) == ["bin"]


@pytest.mark.parametrize(
    ("installer", "command"),
    [
        ("apt-get", "sudo apt install python3-venv"),
        ("dnf", "sudo dnf install python3-pip"),
        ("apk", "sudo apk add py3-pip"),
        ("zypper", "sudo zypper install python3-pip"),
        ("pacman", "sudo pacman -S python-pip"),
        ("", "install uv, which brings a Python of its own"),
    ],
)
def test_where_that_cannot_be_the_message_is_the_one_command_of_the_system(
    tmp_path: Path, installer: str, command: str
) -> None:
    machine = Machine(tmp_path)
    if installer:
        machine.add(installer)
    done = machine.set_up()
    assert done.returncode == 1
    assert "it has neither ensurepip nor pip.\n" in done.stderr
    assert done.stderr.endswith(f"  try: {command}\n")
    assert not (machine.checkout / ".venv").exists()
