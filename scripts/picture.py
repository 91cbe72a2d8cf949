"""Pictures of a terminal, for the README and the tutorial, from what real runs print.

make pictures, or: python scripts/picture.py [FOLDER]
"""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[1]
WIDTH = 88
NOTICES = re.compile(r"\x1b\][^\a\x1b]*(?:\a|\x1b\\)|\a")
"""What a terminal shows elsewhere: a title, a notification, a bell."""
FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMIT = """\
git init -q -b main && git add . &&
git -c user.name=me -c user.email=me@example.org commit -qm "A shop with two bugs"
"""


def as_seen(printed: str) -> list[str]:
    """The lines that stay: a live line is overwritten after a carriage return."""
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in NOTICES.sub("", printed).split("\n"))
    return [line.rstrip() for line in lines]


def picture(printed: str, title: str) -> str:
    """The terminal as SVG, in whatever monospaced font the reader has: nothing is fetched."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), legacy_windows=False)
    for line in as_seen(printed.strip("\r\n")):
        console.print(Text.from_ansi(line), soft_wrap=True)
    svg = console.export_svg(title=title, theme=MONOKAI, unique_id="terminal")
    svg = FONT_FACE.sub("", svg).replace("Fira Code", "ui-monospace")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def in_terminal(script: str, folder: Path, environ: Mapping[str, str]) -> str:
    """What a shell script prints in a terminal, whether it succeeds or not."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["sh", "-c", script], cwd=folder, env=environ,
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
    ):  # fmt: skip
        os.close(theirs)
        printed = b""
        while part := _read(ours):
            printed += part
    os.close(ours)
    return printed.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # its last process has ended
        return b""


def demo(home: Path, environ: Mapping[str, str]) -> str:
    """The run of `make demo`."""
    quickstart = ROOT / "examples" / "quickstart"
    src = home / "src"
    shutil.copytree(quickstart / "shop", src / "shop")
    for name in ("prd.md", "worker.py"):
        shutil.copy(quickstart / name, src)
    subprocess.run(["sh", "-c", COMMIT], cwd=src / "shop", env=environ, check=True)
    return in_terminal("agentrunner run ../prd.md", src / "shop", environ)


def tutorial(home: Path, environ: Mapping[str, str]) -> str:
    """Both runs of the tutorial: the one that is refused, and the one that is proven."""
    blocks = SHELL_BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text("utf-8"))
    printed = []
    for block in blocks:
        run = "\nagentrunner run " in f"\n{block}"
        quiet = block.replace("agentrunner undo", "agentrunner undo >/dev/null")
        quiet = quiet.replace("agentrunner diff", "true")
        if block is not blocks[0]:
            quiet = f"cd tutorial/shop\n{quiet}"
        shown = in_terminal(quiet, home, environ)
        if run:
            printed.append(f"$ agentrunner run ../prd.md\n{shown.strip()}\n")
        if len(printed) == 2:
            break
    return "\n".join(printed)


PICTURES = {
    "demo.svg": (demo, "agentrunner run prd.md"),
    "tutorial.svg": (tutorial, "A completion that is refused, then a proven one"),
}


def draw(folder: Path) -> None:
    """Make all pictures in the folder."""
    programs = Path(sys.executable).parent
    for name, (runs, title) in PICTURES.items():
        with tempfile.TemporaryDirectory() as home:
            environ = {
                "PATH": f"{programs}:{os.environ['PATH']}", "HOME": home, "LANG": "C.UTF-8",
                "COLUMNS": str(WIDTH), "TERM": "xterm-256color", "GIT_CONFIG_NOSYSTEM": "1",
            }  # fmt: skip
            (folder / name).write_text(picture(runs(Path(home), environ), title), "utf-8")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "docs" / "images")
