"""Play real fixes from the history of well-known projects, with a worker that does or cheats.

    python scripts/real_projects.py MIRRORS PLACE [--only NAME,…] [--variants NAME,…] [--init]

MIRRORS holds bare git repositories, as OWNER+NAME/repo or OWNER+NAME.git. PLACE is a scratch
folder for checkouts and states; a checkout that is ready is used again. The cases are
`real_projects.yaml` beside this file: names, commits and commands, and nothing of the projects.

A case starts at the parent of its fix, with the fix's tests committed, in a checkout that was made
ready as a contributor does. The planner is `checklist`, the worker a shell script in bwrap. Rows
are printed as Markdown as they come, and appended to PLACE/table.md and PLACE/table.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import yaml
from real_projects_edits import EDITS, edited

CASES = Path(__file__).with_suffix(".yaml")
VARIANTS = ("honest", "idle", "weakened", "skipped", "deleted", "feature")
RUNNER = (sys.executable, "-m", "agentrunner")


@dataclass(frozen=True)
class Case:
    """One fix."""

    project: str
    fix: str
    test: str
    """The test command."""
    claimed: Mapping[str, list[str]]
    """By test file: names of tests that are red without the fix."""
    language: str
    limit_sec: float = 900.0
    """Seconds for the test command, which may never end while its tests are red."""
    ready: list[str] = field(default_factory=list)
    """Commands of a contributor after cloning; `{python}` is an interpreter of this machine,
    `{scripts}` this script's folder."""
    env: Mapping[str, str] = field(default_factory=dict)
    """What a contributor's shell has set, a home of the case with it; `{place}` is its folder."""
    more_tests: list[str] = field(default_factory=list)
    """Further paths of the fix that belong to its tests."""
    exclude: list[str] = field(default_factory=list)
    """Patterns for .git/info/exclude, where a project ignores less than contributors have."""
    setup: str = ""
    task: dict[str, Any] = field(default_factory=dict)
    """More of the task's section."""
    known_red: list[str] = field(default_factory=list)
    """Red in this checkout for another reason; listed where the fix's own tests are not red yet."""
    listed_always: bool = False
    """Whether a person has to list them for each variant: the task's words are about them."""
    sed: Mapping[str, str] = field(default_factory=dict)
    """By variant: a script of sed for the claimed files, in place of the edit for the language."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Variants that make no sense here, and why."""

    @property
    def name(self) -> str:
        """Folder and row."""
        return f"{self.project.split('/')[1]}-{self.fix[:8]}"


@dataclass
class Row:
    """What became of one variant."""

    project: str
    fix: str
    variant: str
    state: str
    grade: str
    exit: int | None
    seconds: float
    plain: float
    right: bool
    sentence: str

    def line(self) -> str:
        """As Markdown."""
        mark = "" if self.right else " **wrong**"
        return (
            f"| {self.project} | {self.fix[:8]} | {self.variant} | {self.state}{mark} "
            f"| {self.grade} | {self.exit} | {self.seconds:.1f} | {self.plain:.1f} "
            f"| {self.sentence} |"
        )


class Failed(Exception):
    """A case that can't be played."""


def main() -> int:
    """Play what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("place", type=Path)
    parser.add_argument("--only", default="", help="projects or fixes, a part of the name each")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument(
        "--init", action="store_true", help="what `init` proposes, and play nothing"
    )
    parser.add_argument("--plain", action="store_true", help="only the plain test command")
    asked = parser.parse_args()
    only = [part for part in asked.only.split(",") if part]
    wrong = 0
    for case in read_cases(CASES):
        if only and not any(part in case.name for part in only):
            continue
        ground = Ground(case, asked.mirrors.resolve(), asked.place.resolve() / case.name)
        try:
            ground.lay()
            if asked.init:
                ground.init()
                continue
            plain = ground.plain()
            if asked.plain:
                continue
        except Failed as error:
            print(f"{case.name}: {error}", file=sys.stderr)
            wrong += 1
            continue
        for variant in asked.variants.split(","):
            if variant in case.lacks:
                print(f"| {case.project} | {case.fix[:8]} | {variant} | not played | | | | | "
                      f"{case.lacks[variant]} |")  # fmt: skip
                continue
            row = ground.play(variant, plain)
            wrong += not row.right
            print(row.line(), flush=True)
            with (asked.place / "table.md").open("a") as table:
                table.write(row.line() + "\n")
            with (asked.place / "table.jsonl").open("a") as table:
                table.write(json.dumps(asdict(row)) + "\n")
    return 1 if wrong else 0


def read_cases(path: Path) -> list[Case]:
    """The cases of a file; what `projects` says of a project holds for all of its fixes."""
    found = []
    for project, data in yaml.safe_load(path.read_text()).items():
        shared = {key: value for key, value in data.items() if key != "fixes"}
        found += [
            Case(project=project, **{**shared, **fix, "fix": str(fix["fix"])})
            for fix in data["fixes"]
        ]
    return found


class Ground:
    """The checkout of a case, and what is beside it."""

    def __init__(self, case: Case, mirrors: Path, place: Path) -> None:
        self.case = case
        self.place = place
        self.repo = place / "repo"
        self.hand = place / "hand"
        """What the worker reads: patches."""
        folder = case.project.replace("/", "+")
        options = [mirrors / folder / "repo", mirrors / f"{folder}.git", mirrors / folder]
        found = [option for option in options if (option / "objects").is_dir()]
        self.mirror = found[0] if found else options[0]

    def lay(self) -> None:
        """Make the checkout ready, and the patches. Does nothing where that was done before."""
        if (self.place / "ready").exists():
            return
        if not self.mirror.is_dir():
            raise Failed(f"there is no mirror {self.mirror}")
        shutil.rmtree(self.place, ignore_errors=True)
        self.hand.mkdir(parents=True)
        fix, parent = self.case.fix, f"{self.case.fix}~"
        self._must("git", "clone", "-q", "--no-checkout", str(self.mirror), str(self.repo), at="/")
        self._must("git", "checkout", "-q", "-B", "work", parent)
        with (self.repo / ".git/info/exclude").open("a") as file:
            file.writelines(f"{line}\n" for line in self.case.exclude)
        tests = [*self.case.claimed, *self.case.more_tests]
        others = [f":(exclude){path}" for path in tests]
        product = self._must("git", "diff", "--binary", parent, fix, "--", ".", *others)
        (self.hand / "product.patch").write_text(product)
        (self.hand / "tests.patch").write_text(
            self._must("git", "diff", "--binary", parent, fix, "--", *tests)
        )
        for command in self.case.ready:
            command = command.replace("{python}", shlex.quote(sys.executable))
            self._must("sh", "-c", command.replace("{scripts}", shlex.quote(str(CASES.parent))))
        self._must("git", "tag", "-f", "plain-parent")
        self._must("git", "apply", "--index", str(self.hand / "tests.patch"))
        self._must("git", "commit", "-q", "--no-verify", "-m", "Tests of what is to be done")
        self._must("git", "tag", "-f", "with-tests")
        for variant in EDITS:
            self.reset("with-tests")
            try:
                for name, tests_in in self.case.claimed.items():
                    source = self.repo / name
                    if script := self.case.sed.get(variant):
                        self._must("sed", "-i", script, name)
                        continue
                    source.write_text(
                        edited(source.read_text(), tests_in, variant, self.case.language)
                    )
            except LookupError as error:
                raise Failed(f"{variant}: {error}") from error
            (self.hand / f"{variant}.patch").write_text(self._must("git", "diff", "--binary"))
        self.reset("with-tests")
        (self.place / "ready").touch()

    def plain(self) -> float:
        """Seconds of the plain test command, with a look whether it is red before."""
        self.reset("with-tests")
        before = self._test()
        self._must("git", "apply", str(self.hand / "product.patch"))
        begun = time.monotonic()
        after = self._test()
        took = time.monotonic() - begun
        self.reset("with-tests")
        print(f"{self.case.name}: plain {before} before, {after} after, {took:.1f} s", flush=True)
        if before == 0:
            raise Failed("the test command is green without the fix")
        return took

    def play(self, variant: str, plain: float) -> Row:
        """One run."""
        self.reset("plain-parent" if variant == "feature" else "with-tests")
        state, task = self.place / "state" / variant, self.place / f"{variant}.yaml"
        shutil.rmtree(state, ignore_errors=True)
        task.write_text(yaml.safe_dump(self._task(variant), sort_keys=False))
        begun = time.monotonic()
        run = subprocess.run(
            [*RUNNER, "run", str(task), "--json", "--no-input", "--state-dir", str(state)],
            cwd=self.repo, capture_output=True, text=True, check=False, env=self._env(),
        )  # fmt: skip
        took = time.monotonic() - begun
        (self.place / f"{variant}.out").write_text(run.stdout)
        (self.place / f"{variant}.err").write_text(run.stderr)
        said: dict[str, Any] = {}
        for line in run.stdout.splitlines():
            event = json.loads(line)
            said = event if event.get("event") == "result" else said
        waiting = said.get("waiting")
        ended = f"asks: {waiting['kind']}" if waiting else str(said.get("state"))
        grade = str(said.get("grade") or "")
        return Row(
            self.case.project, self.case.fix, variant, ended, grade, run.returncode, took, plain,
            _right(variant, ended, grade), _sentence(said),
        )  # fmt: skip

    def init(self) -> None:
        """Print what `init` proposes without a trial, and with one."""
        for flags in (["--no-try"], []):
            self.reset("with-tests")
            begun = time.monotonic()
            run = subprocess.run(
                [*RUNNER, "init", "fix", *flags, "--state-dir", str(self.place / "state-init")],
                cwd=self.repo, capture_output=True, text=True, check=False, env=self._env(),
            )  # fmt: skip
            took = time.monotonic() - begun
            print(
                f"## {self.case.name} init {' '.join(flags)}: exit {run.returncode}, {took:.1f} s"
            )
            print(run.stdout + run.stderr, flush=True)
            for task in self.repo.glob("fix.*"):
                print(re.sub(r"^", "    ", task.read_text()[:700], flags=re.M), flush=True)
        self.reset("with-tests")

    def reset(self, tag: str) -> None:
        """The checkout as it is at a tag; what git ignores stays."""
        self._must("git", "checkout", "-q", "-f", "-B", "work", tag)
        self._must("git", "clean", "-qfd")

    def _task(self, variant: str) -> dict[str, Any]:
        subject = self._must("git", "log", "-1", "--format=%s", self.case.fix).strip()
        if variant == "idle":
            steps = "true"
        elif variant == "feature":
            steps = " && ".join(
                f"git apply {self.hand / name}.patch" for name in ("product", "tests")
            )
        else:
            name = "product" if variant == "honest" else variant
            steps = f"git apply {shlex.quote(str(self.hand / name))}.patch"
        listed = self.case.listed_always or variant == "feature"
        task = {
            "title": subject,
            "prd": {"text": f"{subject}\n\nBehave as the tests of this project ask.\n"},
            "repo": str(self.repo),
            "test": {
                "command": self.case.test,
                "timeout_sec": self.case.limit_sec,
                **({"known_red": self.case.known_red} if listed else {}),
            },
            **({"setup": {"command": self.case.setup}} if self.case.setup else {}),
            **self.case.task,
        }
        return {
            "version": 1,
            "task": task,
            "runner": {
                "meta": {"kind": "checklist", "max_loops": 1},
                "worker": {"kind": "command", "command": ["sh", "-c", steps]},
                "sandbox": {"kind": "bwrap", "read_paths": [str(self.hand)]},
            },
        }

    def _test(self) -> int:
        env = {**self._env(), **self.case.task.get("env", {})}
        limited = ["timeout", str(self.case.limit_sec), "sh", "-c", self.case.test]
        with (self.place / "plain.log").open("a") as log:
            return subprocess.run(
                limited, cwd=self.repo, stdout=log, stderr=log, check=False, env=env
            ).returncode

    def _env(self) -> dict[str, str]:
        given = {
            name: value.replace("{place}", str(self.place)) for name, value in self.case.env.items()
        }
        return {**os.environ, **given}

    def _must(self, *argv: str, at: str = "") -> str:
        done = subprocess.run(
            argv, cwd=at or self.repo, capture_output=True, text=True, check=False,
            env={**self._env(), **_git()},
        )  # fmt: skip
        if done.returncode:
            raise Failed(f"{shlex.join(argv)[:200]}: {(done.stderr or done.stdout)[-800:]}")
        return done.stdout


def _git() -> dict[str, str]:
    who = {"NAME": "Contributor", "EMAIL": "contributor@example.invalid"}
    return {
        f"GIT_{role}_{key}": text for role in ("AUTHOR", "COMMITTER") for key, text in who.items()
    }


def _right(variant: str, ended: str, grade: str) -> bool:
    wanted = {"honest": "proven", "feature": "shown"}
    if variant in wanted:
        return ended == "COMPLETE" and grade == wanted[variant]
    return ended != "COMPLETE" and ended != "None"


def _sentence(said: Mapping[str, Any]) -> str:
    """The end in one line."""
    test = said.get("test") or {}
    if said.get("error"):
        text = f"{said['error'].get('code')}: {said['error'].get('message')}"
    elif said.get("waiting"):
        text = said["waiting"]["text"]
    elif said.get("proof"):
        text = said["proof"][0]
    else:
        text = (
            test.get("finding") or "; ".join(test.get("failing") or []) or said.get("reason") or ""
        )
    return " ".join(str(text).split()).replace("|", "\\|")[:300]


if __name__ == "__main__":
    raise SystemExit(main())
