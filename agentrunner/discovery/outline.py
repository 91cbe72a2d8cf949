"""The outline of a repository: heads of classes and functions, small files whole. Blocks.

Sources may be hostile. A child process parses them, with no keys, little memory and, where the
kernel allows it, no network. A file that is too slow or too large for it has no outline.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from select import select
from typing import Any

from agentrunner.discovery.seeing.safe import (
    Redact,
    clean_text,
    is_hidden,
    shown_name,
    shown_text,
)
from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import Snapshots
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.syntax.languages import language_of

MOST_TOKENS = 4_000
"""Limit for the outline of a repository."""
LEAST_TOKENS = 40
"""Remaining tokens below which no further file is added."""
BATCH = 50
"""Files that one child process reads."""
MOST_FILES = 400
"""Most files that are read."""
FILE_CHARS = 2_000
"""Limit for the outline of one file."""
WHOLE_CHARS = 1_200
"""A file up to this size is shown whole."""
MOST_BYTES = 256 << 10
"""Largest file that is read."""
FILE_SEC = 2.0
"""Time limit of the child for one file."""
ALL_SEC = 20.0
"""Time limit for all files."""
MOST_STARTS = 3
"""How often a child is started; a file that kills one is left out."""
MEMORY = 256 << 20
"""Memory limit of the child."""
_TEST = lazy_regex(r"(?:^|[/_.])(?:tests?|spec|__tests__|fixtures|testdata|vendor)(?:[/_.]|$)")
"""Paths of files that come last, since names of tests are shown elsewhere."""

Outline = dict[str, Any]


def outline_of(
    snapshots: Snapshots, tree: str, redact: Redact, asked: str = "", most: int = MOST_TOKENS
) -> Outline | None:
    """Return what the files of a tree define, within `most` tokens; None if there is nothing.

    Files that `asked` names come first, then those near the top. Files that git ignores, credential
    files and links are left out. Raises GitFailed.
    """
    from agentrunner.text.cut import tokens

    listed = snapshots.list(tree)
    ranked = _ranked(listed, asked)
    ignored = snapshots.ignored_paths(ranked)
    sizes = snapshots.sizes(tree, ranked)
    paths = [
        path for path in ranked if path not in ignored and 0 < sizes.get(path, 0) <= MOST_BYTES
    ]
    texts = _texts(snapshots, tree, paths, redact)
    shown: dict[str, str] = {}
    left = most
    for path, text in texts:
        size = tokens(f"{path}{text}") + 4
        if size <= left:
            left -= size
            shown[shown_name(path)] = text
        if left < LEAST_TOKENS:
            break
    if not shown:
        return None
    more = sum(map(_has_code, listed)) - sum(map(_has_code, shown))
    return {"files": shown, **({"further_files": more} if more > 0 else {})}


def _has_code(path: str) -> bool:
    return language_of(path) is not None


def _ranked(listed: dict[str, Entry], asked: str) -> list[str]:
    """Return code files and named files: named ones first, tests and deep paths last."""
    words = set(re.findall(r"[\w.\-/]*\w", asked))

    def named(path: str) -> bool:
        name = path.rpartition("/")[2]
        return path in words or ("." in name and name in words)

    files = [path for path, (mode, _) in listed.items() if mode.startswith("100")]
    wanted = [path for path in files if _has_code(path) or named(path)]
    wanted.sort(key=lambda p: (not named(p), bool(_TEST.search(p.lower())), p.count("/"), p))
    return wanted[:MOST_FILES]


def _texts(
    snapshots: Snapshots, tree: str, paths: Sequence[str], redact: Redact
) -> Iterator[tuple[str, str]]:
    """Yield each readable file with its text: small files whole, others as their heads."""
    until = time.monotonic() + ALL_SEC
    for at in range(0, len(paths), BATCH):  # read only as many as there is room for
        read = snapshots.read_many(tree, paths[at : at + BATCH])
        batch = [
            (path, read[path])
            for path in paths[at : at + BATCH]
            if path in read and not is_hidden(path, read[path])
        ]
        long = [one for one in batch if len(one[1]) > WHOLE_CHARS and _has_code(one[0])]
        heads = _heads(long, until)
        for path, data in batch:
            if len(data) <= WHOLE_CHARS:
                yield path, shown_text(data, redact).rstrip()
            elif lines := heads.get(path):
                text = clean_text("\n".join(lines), redact)
                yield path, text if len(text) <= FILE_CHARS else f"{text[:FILE_CHARS]}\n…"


# -- the child -------------------------------------------------------------------------------------


def _heads(sources: Sequence[tuple[str, bytes]], until: float) -> dict[str, list[str]]:
    """Return the heads of each file, found by child processes; files that kill one are left out."""
    found: dict[str, list[str]] = {}
    left = list(sources)
    for _ in range(MOST_STARTS):
        if not left:
            break
        done = _run_child(left, found, until)
        left = left[done + 1 :]  # the file that killed the child is left out
    return found


def _run_child(
    sources: Sequence[tuple[str, bytes]], found: dict[str, list[str]], until: float
) -> int:
    """Return how many files one child finished; their heads are added to `found`."""
    with start_child() as child:
        try:
            for number, (path, data) in enumerate(sources):
                lines = ask_child(child, language_of(path) or "", data, until)
                if lines is None:
                    return number
                found[path] = lines
            return len(sources)
        finally:
            child.kill()


def start_child() -> subprocess.Popen[bytes]:
    """Start a process that parses sources."""
    command = [sys.executable, "-I", "-m", "agentrunner.discovery.outline_child", str(MEMORY)]
    environ = {"PATH": os.defpath, "LANG": "C.UTF-8"}  # without any key
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environ, cwd="/",
    )  # fmt: skip


def ask_child(
    child: subprocess.Popen[bytes], language: str, data: bytes, until: float
) -> list[str] | None:
    """Return the heads of one file from the child; None if it died or takes too long."""
    assert child.stdin is not None and child.stdout is not None
    order = json.dumps({"language": language, "source": data.decode("utf-8", "replace")})
    try:
        child.stdin.write(to_bytes(order) + b"\n")
        child.stdin.flush()
    except OSError:
        return None
    answer = b""
    # The first answer includes the child's start.
    end = min(until, time.monotonic() + FILE_SEC + ALL_SEC / 4)
    while not answer.endswith(b"\n"):
        ready, _, _ = select([child.stdout], [], [], max(0.0, end - time.monotonic()))
        part = os.read(child.stdout.fileno(), 1 << 16) if ready else b""
        if not part or len(answer) > 4 * MOST_BYTES:
            return None
        answer += part
    lines = json.loads(answer)
    return [str(line) for line in lines] if isinstance(lines, list) else None
