"""An engine that a test may kill, stop and open to others: nobody else uses it."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.missing import missing

SCRIPT = Path(__file__).parents[2] / "scripts" / "engine.sh"


@dataclass(frozen=True)
class OwnEngine:
    """Started by scripts/engine.sh; it has the image of the host's /usr."""

    state: Path
    run: Path

    @property
    def address(self) -> str:
        """For DOCKER_HOST."""
        return f"unix://{self.run}/docker.sock"

    def script(self, *words: str) -> None:
        """Let engine.sh do something; skips or fails the test where it cannot."""
        env = {
            "PATH": os.environ["PATH"],
            "AR_ENGINE_STATE": str(self.state),
            "AR_ENGINE_RUN": str(self.run),
        }
        done = subprocess.run([SCRIPT, *words], env=env, cwd="/", capture_output=True, check=False)
        if done.returncode:
            missing(done.stderr.decode())

    def signal(self, number: signal.Signals) -> None:
        """Kill it, stop it or let it go on."""
        os.kill(int((self.run / "dockerd.pid").read_text()), number)


@contextmanager
def own_engine(place: Path) -> Iterator[OwnEngine]:
    """One with its data in `place`, gone at the end of the block."""
    if os.geteuid() != 0:
        missing("only root can start an engine")
    # A socket's path must be short, and others may not look into pytest's folders.
    engine = OwnEngine(place / "engine", Path("/tmp") / f"ar-{uuid.uuid4().hex[:8]}")
    engine.script("up")
    try:
        engine.script("hostusr")
        yield engine
    finally:
        engine.script("down", "--purge")
