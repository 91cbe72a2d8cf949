"""A real test command run as the verifier runs it: instrumented, and its results read."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentrunner.verification.results.model import ReadFile, Results
from agentrunner.verification.results.registry import instrument, read_results, select
from tests.kit.files import write
from tests.kit.missing import missing

TOOLS = Path(__file__).parents[2] / ".tools"
CLEAN = ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTHONPATH", "NODE_OPTIONS", "PYTEST_VERSION",
         "PYTEST_XDIST_WORKER", "PYTHONWARNINGS")  # fmt: skip


@dataclass
class Seen:
    """What came of one command."""

    results: Results | None
    exit_code: int
    stdout: str
    stderr: str
    place: Path

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        """Name and outcome of each result in order."""
        assert self.results is not None, self.stdout + self.stderr
        return [(test.name, test.outcome) for test in self.results.tests]

    @property
    def passing(self) -> list[str]:
        """The name of each result, of a command whose tests all pass."""
        assert {outcome for _, outcome in self.outcomes} == {"passed"}
        return [name for name, _ in self.outcomes]


def need(*programs: str) -> None:
    """Skip where a program is not there; under CI fail."""
    for program in programs:
        if shutil.which(program) is None:
            missing(f"{program} is not installed: scripts/install-test-tools.sh")


def reading(tree: Path) -> ReadFile:
    """The files of a folder."""

    def read(path: str) -> bytes | None:
        file = tree / path
        return file.read_bytes() if file.is_file() else None

    return read


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """This process's, without what our own pytest has set."""
    kept = {name: value for name, value in os.environ.items() if name not in CLEAN}
    # Without the many plug-ins of this environment pytest starts much faster.
    fixed = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return kept | fixed | dict(more)


def plain(
    tree: Path, shell: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command as it stands."""
    return subprocess.run(
        ["sh", "-c", shell], cwd=tree, capture_output=True, text=True, check=False,
        env=environment(env or {}), stdin=subprocess.DEVNULL, errors="replace",
    )  # fmt: skip


def reported(
    tree: Path, shell: str, *, cwd: str = ".", means: int = 0, env: Mapping[str, str] | None = None
) -> Seen:
    """The command made to report, run and read."""
    place = tree.parent / f"{tree.name}-place"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    read = reading(tree)
    made = instrument(shell, cwd, read, str(place), means)
    assert not made.env
    write(place, dict(made.files))
    ran = plain(tree / cwd, made.shell, env)
    paths = [path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()]
    results = read_results(
        shell, cwd, read, place, ran.stdout, ran.stderr, ran.returncode, means, paths
    )
    return Seen(results, ran.returncode, ran.stdout, ran.stderr, place)


def narrowed(tree: Path, shell: str, *names: str, env: Mapping[str, str] | None = None) -> Seen:
    """The command narrowed to the tests of these names, run and read."""
    found = select(shell, names, ".", reading(tree))
    assert found is not None
    return reported(tree, found, env=env)
