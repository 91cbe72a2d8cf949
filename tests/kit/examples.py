"""How many examples a property is tried with: the gate takes the first of them, a whole run all."""

from __future__ import annotations

import os

SHARE = 4
"""The gate takes each property's examples by this divisor. They are the same ones each time."""


def examples(number: int) -> int:
    """All of them under `make test-whole`, which sets WHOLE, else a share."""
    return number if os.environ.get("WHOLE") else number // SHARE
