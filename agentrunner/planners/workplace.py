"""What a run provides to a planner that is a program: its folder, and the kind of its sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from pathlib import Path

    from agentrunner.sandboxes.base import Sandbox
    from agentrunner.storage.run_folder import RunFolder
    from agentrunner.text.redaction import Redactor


class Workplace(Struct, frozen=True):
    """The run's folder, sandbox and redactor."""

    folder: RunFolder
    state_dir: Path
    sandbox: Sandbox
    """The run's sandbox, for its kind and image only: a planner gets a sandbox of its own."""
    redactor: Redactor
    """Learns the planner's secrets before they are used."""
