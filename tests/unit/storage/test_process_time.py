"""How long a process has run is read from the system, its start and its imports included."""

from __future__ import annotations

import subprocess
import sys
import time

from agentrunner.storage.process_time import age_sec


def test_the_age_of_a_process_counts_from_its_start() -> None:
    code = "from agentrunner.storage.process_time import age_sec; print(age_sec())"
    began = time.monotonic()
    age = float(subprocess.check_output([sys.executable, "-c", code]))
    assert 0 < age <= time.monotonic() - began + 0.02  # a clock tick is 0.01 s
    assert age_sec() > 0
