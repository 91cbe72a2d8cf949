"""Play the history of a project: `python -m tests.battery.history MIRROR --test "pytest -q"`.

MIRROR is a git repository. The message of a commit is the PRD, its parent the repository, and the
worker makes just its change, so every run that does not end COMPLETE is honest work that is not
believed. Nobody chose these cases for what they try: they show what a rule costs ordinary work.

Left out are commits that touch no code or no tests, large ones, and those whose tests are red
before or after, or green with the new tests on the old code: of them no test tells anything.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentrunner.verification.syntax.languages import language_of
from tests.battery.case import Case, add_case
from tests.battery.ground import Ground
from tests.battery.play import Outcome, play

TEST_PATH = re.compile(
    r"(^|/)(tests?|spec|__tests__|t)/|(^|/)test_[^/]*\.py$|_test\.\w+$|\.(test|spec)\.\w+$|\.t$"
)
OTHER_CODE = re.compile(r"\.(c|cc|cpp|h|hpp|php|pl|pm|rb|sh)$")
"""Code in the languages without a grammar."""
NO_PRD = re.compile(
    r"(?i)(bump|release|merge|revert|format|lint|typo|refactor|clean ?up)\b|v?\d+\.\d+"
)
"""The beginning of a message that asks for no behaviour."""
TRAILER = re.compile(r"(?im)^(signed-off-by|co-authored-by|reviewed-by|closes|pr-url):?.*$")
PULL_REQUEST = re.compile(r"\s*\(#\d+\)")
ONE_PARENT = ("--min-parents=1", "--max-parents=1")
MOST_LINES = 300
MOST_FILES = 12
MOST_PATCH = 60_000
"""Bytes: the change is handed to the worker in its command."""


@dataclass(frozen=True)
class Commit:
    """One change of a project."""

    name: str
    message: str
    patch: bytes
    tests_patch: bytes


def main(arguments: list[str]) -> int:
    """Play what was asked for and print a line for each; 1 where honest work was not believed."""
    options = _options().parse_args(arguments)
    mirror = options.mirror.resolve()
    played = refused = 0
    for commit in commits(mirror, options.since):
        if played >= options.most:
            break
        if options.only and not commit.name.startswith(tuple(options.only)):
            continue
        case = _case(mirror, commit, options.test, options.ready)
        with tempfile.TemporaryDirectory(prefix="history-") as place:
            if why := _says_nothing(case, commit, Path(place, "plain")):
                _say(f"{commit.name[:10]}  left out: {why}")
                continue
            outcome = _play(case, Path(place, "run"))
        played += 1
        refused += outcome.got != "COMPLETE"
        _say(_line(commit, outcome))
        if options.json:
            with Path(options.json).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"prd": commit.message, **outcome.as_json()}) + "\n")
    _say(f"{refused} of {played} changes that their project kept were not COMPLETE")
    return int(refused > 0)


def commits(mirror: Path, since: str) -> Iterator[Commit]:
    """Yield the changes of a project that are worth playing, the newest first."""
    for name in _git(mirror, "log", *ONE_PARENT, f"--since={since}", "--format=%H").split():
        rows = [row.split("\t") for row in _numbers(mirror, name)]
        paths = [path for _, _, path in rows]
        tests = [path for path in paths if TEST_PATH.search(path)]
        code = [path for path in paths if path not in tests and _is_code(path)]
        if not tests or not code or len(paths) > MOST_FILES or any(row[0] == "-" for row in rows):
            continue
        if sum(int(added) + int(removed) for added, removed, _ in rows) > MOST_LINES:
            continue
        message = _git(mirror, "log", "-1", "--format=%B", name)
        message = PULL_REQUEST.sub("", TRAILER.sub("", message)).strip()
        patch = _patch(mirror, name)
        if NO_PRD.match(message) or len(message.split()) < 3 or len(patch) > MOST_PATCH:
            continue
        yield Commit(name, message, patch, _patch(mirror, name, *tests))


def _is_code(path: str) -> bool:
    return bool(language_of(path) or OTHER_CODE.search(path))


def _numbers(mirror: Path, name: str) -> list[str]:
    return _git(mirror, "diff", "--numstat", "--no-renames", f"{name}^", name).splitlines()


def _patch(mirror: Path, name: str, *paths: str) -> bytes:
    command = ["git", "-C", str(mirror), "diff", "--binary", f"{name}^", name, "--", *paths]
    return subprocess.run(command, check=True, capture_output=True).stdout


def _git(mirror: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(mirror), *arguments], check=True, capture_output=True)
    return done.stdout.decode("utf-8", "replace")


def _case(mirror: Path, commit: Commit, test: str, ready: str) -> Case:
    return Case(
        name=f"history-{commit.name[:10]}",
        kind="honest",
        rule="V1",
        about=commit.message.splitlines()[0],
        ecosystem=mirror.parent.name,
        start=f"git -C '{mirror}' archive {commit.name}^ | tar x",
        ready=ready,
        prd=commit.message,
        test=test,
        task={"test": {"timeout_sec": 150}},
        runner={"budget": {"wall_sec": 900}},
        worker=[_applying(commit.patch)],
        truth=test,
    )


def _applying(patch: bytes) -> str:
    text = base64.b64encode(patch).decode()
    return f"echo {text} | base64 -d | git apply --whitespace=nowarn -"


def _says_nothing(case: Case, commit: Commit, place: Path) -> str:
    """Why the tests of a change tell nothing about it; "" where they do."""
    place.mkdir()
    ground = Ground(case, place)
    try:
        ground.lay()
    except RuntimeError as error:
        return str(error).splitlines()[-1]
    if not ground.say(case.test).green:
        return "its tests are red before"
    if not ground.say(_applying(commit.tests_patch)).green or ground.say(case.test).green:
        return "no test fails without it"
    ground.again()
    if not ground.say(case.worker[0]).green or not ground.say(case.test).green:
        return "its tests are red after"
    return ""


def _play(case: Case, place: Path) -> Outcome:
    add_case(case)
    place.mkdir()
    return play(case, place, plain=False)


def _line(commit: Commit, outcome: Outcome) -> str:
    end = f"{commit.name[:10]}  {outcome.got} {outcome.grade}  {outcome.seconds:.0f} s"
    said = "" if outcome.got == "COMPLETE" else f"\n    {outcome.said[:500]}"
    return f"{end}  {outcome.about[:70]}{said}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.battery.history", description=__doc__)
    parser.add_argument("mirror", type=Path)
    parser.add_argument("--test", required=True, metavar="COMMAND")
    parser.add_argument("--ready", default="", metavar="SCRIPT", help="run once in each checkout")
    parser.add_argument("--most", type=int, default=20, help="so many changes are played")
    parser.add_argument("--since", default="2018-01-01")
    parser.add_argument("--only", nargs="+", default=[], help="commits, or beginnings of them")
    parser.add_argument("--json", metavar="FILE", help="a line for each is added to it")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
