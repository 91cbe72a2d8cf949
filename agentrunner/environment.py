"""Environment variables and defaults, read when needed and never at import."""

from __future__ import annotations

import errno
import math
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

TRACING = (
    "LANGSMITH_TRACING_V2",
    "LANGSMITH_TRACING",
    "LANGCHAIN_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_HANDLER",
)
"""Variables with which a shell makes LangChain send every prompt to a tracing service."""
MIN_FREE_BYTES = 1 << 20
"""SQLite shares an index of its log through a file beside it, also for reading, and needs room for
it."""
_ignored: list[str] = []
"""Variables that `quiet_libraries` found switched on and removed."""


def state_dir(option: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """Return where runs are kept: option, AGENTRUNNER_STATE_DIR, else the XDG state home."""
    env = os.environ if environ is None else environ
    named = option or env.get("AGENTRUNNER_STATE_DIR")
    if named:
        return Path(named).expanduser().absolute()
    base = env.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser().absolute() / "agentrunner"


def loads_code(variable: str) -> bool:
    """Whether programs load code by it before they start: also a sandbox's helper outside of it."""
    return variable.startswith("LD_") or variable in ("GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH")


def fullest(*folders: Path) -> Path:
    """Return the folder with the least free room, its parent where it is not there; else the first.

    For errors that do not say which folder they are about.
    """
    return min(folders, key=_free_bytes)


def is_full(folder: Path, needs: int = MIN_FREE_BYTES) -> bool:
    """Whether that many bytes are not free there; by default what a database needs beside it."""
    return _free_bytes(folder) < needs


def _free_bytes(folder: Path) -> float:
    place = next((one for one in (folder, *folder.parents) if one.is_dir()), folder)
    try:
        return shutil.disk_usage(place).free
    except OSError:
        return math.inf


def is_out_of_room(error: BaseException) -> bool:
    """Whether an error is the system's for a disk or a quota that is full."""
    return getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)


def home_of(environ: Mapping[str, str]) -> Path:
    """Return the person's home: HOME, else the system's answer."""
    return Path(environ.get("HOME") or Path.home())


def user_name() -> str:
    """Return the name of the user, which is kept with their decisions and commits."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())  # a uid without a name, as in many containers


def how_to_add(extra: str) -> str:
    """The command that adds one of our extras. No registry has the package, only a checkout."""
    return f"uv tool install '.[{extra}]' or pip install '.[{extra}]' in AgentRunner's folder"


def find_program(
    name: str, *, avoid: Path | None = None, environ: Mapping[str, str] | None = None
) -> Path | None:
    """Return the absolute path of a program, by PATH if `name` is a bare word.

    A repository may contain a program of that name, and PATH may contain `.`: neither decides what
    runs. Relative names, relative or empty PATH entries, and all that is inside `avoid`, also
    through a link, are skipped.
    """
    env = os.environ if environ is None else environ
    if "/" in name:
        candidates = [Path(name)]
    else:
        candidates = [Path(folder) / name for folder in env.get("PATH", "").split(":")]
    return next((path for path in candidates if _is_usable(path, avoid)), None)


def _is_usable(path: Path, avoid: Path | None) -> bool:
    # Access is checked first, because is_file raises for a path that may not be examined.
    if not path.is_absolute() or not os.access(path, os.X_OK) or not path.is_file():
        return False
    return avoid is None or not leads_through(path, avoid)


_MOST_LINKS = 40
"""Linux follows no more in one path."""


def leads_through(path: Path, folder: Path) -> bool:
    """Whether an absolute path begins, passes or ends in a folder, by any of its links."""
    real = folder.resolve()
    return any(place.is_relative_to(real) for place in _places_on_the_way(path))


def _places_on_the_way(path: Path) -> Iterator[Path]:
    """Yield the path as it is after each of its links, and where each link really is."""
    for _ in range(_MOST_LINKS):
        yield path
        links = (place for place in (*reversed(path.parents), path) if place.is_symlink())
        link = next(links, None)
        # Nothing above the first link is one, so that `..` there means what it says.
        yield Path(os.path.normpath(link or path))
        if link is None:
            return
        path = link.parent / link.readlink() / path.relative_to(link)


@cache
def own_process(module: str, *, packages: bool) -> tuple[str, ...]:
    """Return the command that runs `main` of a module of ours; its own words follow it.

    It is isolated from the folder that it is started in, and finds us even where we are not
    installed. Without `packages` it has the standard library only, and starts in half the time.
    """
    python = sys.executable
    # A command's environment may name a locale in which paths are something else.
    options = ["-I", "-X", "utf8"]
    if not packages:
        python = getattr(sys, "_base_executable", None) or python
        options.append("-S")
    # What an import makes stays. Looking through it for cycles took a sixth of a supervisor's CPU.
    start = (
        "import gc, sys\ngc.disable()\nsys.path.append(sys.argv[1])\n"
        f"from {module} import main\ngc.freeze()\ngc.enable()\nsys.exit(main())"
    )
    return (python, *options, "-c", start, str(Path(__file__).resolve().parents[1]))


def quiet_libraries() -> None:
    """Set what LangGraph reads at import: strict deserialisation, no tracing.

    Must be called before the first import of langgraph. Without strict msgpack a checkpoint can
    make the loader import and call anything; with tracing, a shell variable would send PRDs
    elsewhere.
    """
    os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
    if os.environ.get("AGENTRUNNER_TRACE") != "1":
        for name in TRACING:
            if os.environ.pop(name, "").lower() not in ("", "0", "false") and name not in _ignored:
                _ignored.append(name)
        os.environ["LANGSMITH_TRACING"] = "false"


def ignored_tracing() -> tuple[str, ...]:
    """Return variables that asked for tracing and were ignored; a person should know."""
    return tuple(_ignored)


def prices_file(environ: Mapping[str, str]) -> Path | None:
    """Return the person's own price file: AGENTRUNNER_PRICES, else `prices.yaml` among their
    settings; None if there is none.
    """
    if named := environ.get("AGENTRUNNER_PRICES"):
        return Path(named).expanduser().absolute()
    base = environ.get("XDG_CONFIG_HOME") or "~/.config"
    usual = Path(base).expanduser() / "agentrunner" / "prices.yaml"
    return usual if usual.is_file() else None


def user_file(environ: Mapping[str, str]) -> Path | None:
    """Return the path of the person's settings, existing or not: in XDG_CONFIG_HOME, else
    ~/.config.

    None if the environment sets neither.
    """
    base, home = environ.get("XDG_CONFIG_HOME"), environ.get("HOME")
    if base and Path(base).is_absolute():
        return Path(base) / "agentrunner" / "config.yaml"
    return Path(home) / ".config" / "agentrunner" / "config.yaml" if home else None
