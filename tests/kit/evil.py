"""A hostile repository, and a machine that is watched: canaries for whatever would run code.

Each vector touches a file of its own in a folder outside the repository, so that a test sees
which one fired. `fire` lets the user's own git do it, to show that the canaries are alive.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.kit.warm import WarmPopen, python_variables

PLAIN_GIT = ("git", "-c", "safe.directory=*", "-c", "user.name=t", "-c", "user.email=t@t.invalid")
VECTORS = (
    "fsmonitor", "hook", "filter-clean", "filter-process", "textconv", "diff-command", "external",
    "include", "nested", "hooks-path", "commondir", "worktree-config",
)  # fmt: skip

POISON = r"""
say() { printf 'touch "%s/%s"' "$CANARIES" "$1"; }
hook() { mkdir -p "$1"; for name in post-index-change pre-commit post-checkout reference-transaction
  do { echo '#!/bin/sh'; say "$2"; } > "$1/$name"; chmod 755 "$1/$name"; done; }
nest() { mkdir -p "$1/.git/objects" "$1/.git/refs/heads"; echo x > "$1/x"
  echo 'ref: refs/heads/main' > "$1/.git/HEAD"; }
top() {
  cat >> .git/config <<END
[core]
	fsmonitor = "$(say fsmonitor | sed 's/"/\\"/g'); false"
[diff]
	external = "$(say external | sed 's/"/\\"/g')"
[diff "text"]
	textconv = "$(say textconv | sed 's/"/\\"/g'); cat"
[diff "command"]
	command = "$(say diff-command | sed 's/"/\\"/g')"
[filter "clean"]
	clean = "$(say filter-clean | sed 's/"/\\"/g'); cat"
	smudge = "$(say filter-clean | sed 's/"/\\"/g'); cat"
[filter "process"]
	process = "$(say filter-process | sed 's/"/\\"/g')"
[include]
	path = ../evil.inc
END
  hook .git/hooks hook
}
below() {
  cat > evil.inc <<END
[diff "included"]
	command = "$(say include | sed 's/"/\\"/g')"
END
  printf '%s\n' '*.py filter=clean diff=text' '*.cmd diff=command' '*.inc diff=included' \
    '*.proc filter=process' > .gitattributes
  for end in cmd proc ext; do echo x > evil.$end; done
  nest sub; printf '[core]\n\tfsmonitor = "%s; false"\n' \
    "$(say nested | sed 's/"/\\"/g')" > sub/.git/config
  nest hooked; hook "$PWD/hooked/there" hooks-path
  printf '[core]\n\thooksPath = there\n' > hooked/.git/config
  nest linked; mkdir -p linked/common/objects linked/common/refs
  echo ../common > linked/.git/commondir
  cp linked/.git/HEAD linked/common/HEAD; printf '[core]\n\tfsmonitor = "%s; false"\n' \
    "$(say commondir | sed 's/"/\\"/g')" > linked/common/config
  nest tree; printf '[core]\n\trepositoryformatversion = 1\n' > tree/.git/config
  printf '[extensions]\n\tworktreeConfig = true\n' >> tree/.git/config
  printf '[core]\n\tfsmonitor = "%s; false"\n' \
    "$(say worktree-config | sed 's/"/\\"/g')" > tree/.git/config.worktree
}
"""
"""Shell functions: `top` poisons the repository's own `.git`, `below` everything beneath it."""


def poison(canaries: Path, *parts: str) -> str:
    """A shell script, for the host or for a worker, that lays the traps of these parts."""
    return f"CANARIES='{canaries}'\n{POISON}\n" + "\n".join(parts or ("below", "top")) + "\n"


def evil_repo(repo: Path, canaries: Path) -> None:
    """Poison a committed repository; each of VECTORS has a canary."""
    canaries.mkdir(exist_ok=True)
    subprocess.run(["sh", "-ec", poison(canaries)], cwd=repo, check=True)


def fire(repo: Path, canaries: Path) -> set[str]:
    """What the user's own git sets off, and nothing else: the canaries that were touched."""
    commands = (
        "status", "add evil.cmd evil.ext evil.inc", "diff --cached HEAD", "log -p -- *.py",
        "add -A", "-C sub status", "-C hooked add x", "-C linked status", "-C tree status",
    )  # fmt: skip
    for words in commands:
        subprocess.run([*PLAIN_GIT, *words.split()], cwd=repo, capture_output=True, check=False)
    return touched(canaries)


def touched(canaries: Path) -> set[str]:
    """Names of the canaries that are there."""
    return {path.name for path in canaries.iterdir()}


@dataclass(frozen=True)
class Said:
    """What a command of ours left behind."""

    code: int
    out: bytes
    err: bytes

    def __str__(self) -> str:
        return f"{self.code}\n{self.out.decode()}\n{self.err.decode()}"


def installed(*arguments: str, cwd: Path, env: Mapping[str, str]) -> Said:
    """The installed command, as a process that starts from nothing."""
    program = str(Path(sys.executable).with_name("agentrunner"))
    done = subprocess.run(
        [program, *arguments], cwd=cwd, env=env, capture_output=True, check=False, timeout=120,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


def agentrunner(*arguments: str, cwd: Path, env: Mapping[str, str], umask: int = -1) -> Said:
    """The command as a process of its own, for what it does once it is imported."""
    argv = [sys.executable, "-m", "agentrunner", *arguments]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = WarmPopen(
            argv, cwd=cwd, env={**python_variables(), **env}, umask=umask,
            stdin=subprocess.DEVNULL, stdout=out, stderr=err,
        )  # fmt: skip
        code = process.wait(120)
        out.seek(0)
        err.seek(0)
        return Said(code, out.read(), err.read())


def machine(state_dir: Path, **more: str) -> dict[str, str]:
    """The environment of a user: what a command needs, and `more`."""
    names = ("PATH", "HOME", "LANG", "CI", "AGENTRUNNER_BELL")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return {**kept, "AGENTRUNNER_STATE_DIR": str(state_dir), **more}


def files_with(needles: Mapping[str, bytes], *roots: Path) -> Iterator[str]:
    """`name in FILE` for every needle found in any file below these folders."""
    for root in roots:
        for folder, _, names in os.walk(root):
            for name in names:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    data = path.read_bytes()
                    yield from (
                        f"{what} in {path}" for what, text in needles.items() if text in data
                    )


STRANGE = "sp ace, comma: colon; 'quote\" $(touch x) é表 \u202e new\nline"

FORGE_BYTE_CODE = (
    f'{sys.executable} -c "import py_compile, pathlib, os;'
    " s = pathlib.Path('calc.py'); t = s.stat(); text = s.read_text();"
    " s.write_text(text.replace('-', '+')); os.utime(s, ns=(t.st_atime_ns, t.st_mtime_ns));"
    " py_compile.compile('calc.py', cfile='__pycache__/calc.cpython-311.pyc');"
    ' s.write_text(text); os.utime(s, ns=(t.st_atime_ns, t.st_mtime_ns))"'
)
"""Of calc.py as it would be right, and the file as it was."""
