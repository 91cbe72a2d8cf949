"""The bubblewrap that the product would use."""

from __future__ import annotations

import os
from pathlib import Path

from agentrunner.errors import SandboxUnavailable
from agentrunner.sandboxes.bwrap_program import find_bwrap
from tests.kit.missing import missing


def require_bwrap() -> Path:
    """The system's, or the packaged one; skips or fails the test where there is neither."""
    try:
        return find_bwrap(os.environ, Path("/nowhere"))
    except SandboxUnavailable as error:
        missing(error.message)
