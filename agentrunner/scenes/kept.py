"""The saved part of an interrupted trial, from which it resumes."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path

from agentrunner import __version__, prompts
from agentrunner.config.spec import TaskSpec
from agentrunner.scenes.playing import Played
from agentrunner.storage.run_folder import make_private
from agentrunner.storage.run_log import append_line, read_lines

FOLDER = "planner-trials"


class TrialRecord:
    """The file of one planner with these settings and prompts."""

    def __init__(self, state_dir: Path, settled: TaskSpec) -> None:
        """Compute the file's path; nothing is created."""
        planner = settled.runner.meta.model_dump_json()
        key = hashlib.sha256(f"{__version__}\n{planner}\n{_prompts()}".encode()).hexdigest()[:16]
        self._folder = state_dir / FOLDER
        self._file = self._folder / f"{key}.jsonl"

    def read(self) -> dict[str, Played]:
        """Return the played scenes by their digests; a torn line is left out."""
        found = {}
        for line in read_lines(self._file):
            values = dict(line["played"])
            values |= {name: tuple(one) for name, one in values.items() if isinstance(one, list)}
            found[str(line["scene"])] = Played(**values)
        return found

    def add(self, scene: str, played: Played) -> None:
        """Add a played scene; raises OSError."""
        make_private(self._folder)
        append_line(self._file, {"scene": scene, "played": asdict(played)}, sync=False)

    def forget(self) -> None:
        """Delete the file: the trial is over."""
        self._file.unlink(missing_ok=True)


def _prompts() -> str:
    """Return a digest of all that the prompts are made of: another text is another trial."""
    folder = Path(prompts.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".jinja", ".yaml", ".py"):
            digest.update(path.read_bytes())
    return digest.hexdigest()
