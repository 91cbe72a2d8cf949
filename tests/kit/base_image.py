"""A base for image builds where no registry can be reached: this machine's own programs.

Debian's list of files says which ones belong to a shell, git, Python, Node.js and npm.
"""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import BinaryIO

from agentrunner.sandboxes.docker.engine import Engine
from tests.kit.missing import missing

SEED = (
    "base-files", "bash", "ca-certificates", "coreutils", "dash", "findutils", "git", "grep",
    "libc-bin", "libstdc++6", "nodejs", "npm", "python3", "python3-venv", "sed",
)  # fmt: skip
WHOLE = ("etc/alternatives", "etc/ssl/certs", "usr/lib/node_modules/npm")
"""Folders of which a package's list does not tell all; npm's may have been upgraded by itself."""
SINGLE = ("etc/group", "etc/ld.so.cache", "etc/passwd", "usr/bin/awk", "usr/bin/npm")
LINKS = ("bin", "sbin", "lib", "lib64")
LEFT_OUT = ("usr/share/doc/", "usr/share/man/", "usr/share/locale/", "usr/lib/node_modules/")
STATUS = Path("/var/lib/dpkg/status")


async def make_base(engine: Engine, name: str) -> None:
    """Import it under this name, as `name:tag`; skips or fails the test where it can't be made."""
    if not STATUS.exists() or not Path("/usr/bin/npm").exists():
        missing("no Debian with Node.js and npm, of which a base for images could be made")
    repository, _, tag = name.partition(":")
    # Where this machine trusts a certificate of its own, npm in the build must do so, too.
    trusted = "ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt"
    with tempfile.TemporaryFile() as file:
        _write(file, _packages())
        file.seek(0)
        data = file.read()
    await engine.call(
        "import a base",
        lambda api: api.import_image_from_data(data, repository, tag, [trusted]),
    )


def _packages() -> list[str]:
    """SEED and all that it needs."""
    needs: dict[str, list[str]] = {}
    provided: dict[str, str] = {}
    for block in STATUS.read_text("utf-8").split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", block, re.MULTILINE))
        if "installed" not in fields.get("Status", ""):
            continue
        depends = ", ".join((fields.get("Depends", ""), fields.get("Pre-Depends", "")))
        needs[fields["Package"]] = [_name(one) for one in re.split("[,|]", depends)]
        for one in fields.get("Provides", "").split(","):
            provided.setdefault(_name(one), fields["Package"])
    found: set[str] = set()
    waiting = list(SEED)
    while waiting:
        wanted = waiting.pop()
        package = wanted if wanted in needs else provided.get(wanted, "")
        if package and package not in found:
            found.add(package)
            waiting += needs[package]
    return sorted(found)


def _name(text: str) -> str:
    return text.partition("(")[0].partition(":")[0].strip()


def _write(file: BinaryIO, packages: list[str]) -> None:
    listed = subprocess.run(["dpkg", "-L", *packages], capture_output=True, text=True, check=True)
    names = {_place(line) for line in listed.stdout.splitlines()}
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in LINKS:
            archive.add(f"/{name}", name)
        for name in ("proc", "sys", "dev", "root", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            archive.addfile(folder)
        for name in sorted(filter(_wanted, names)):
            archive.add(f"/{name}", name, recursive=False)
        for name in filter(_exists, (*WHOLE, *SINGLE)):
            archive.add(f"/{name}", name)


def _place(line: str) -> str:
    """As it is named where /bin, /lib and so on are links into /usr."""
    name = os.path.normpath(line).lstrip("/")
    return f"usr/{name}" if name.split("/")[0] in LINKS and "/" in name else name


def _wanted(name: str) -> bool:
    return (
        name.startswith(("usr/", "etc/"))
        and not name.startswith((*LEFT_OUT, *(f"{whole}/" for whole in WHOLE)))
        and name not in (*WHOLE, *SINGLE)
        and _exists(name)
    )


def _exists(name: str) -> bool:
    return os.path.lexists(f"/{name}")
