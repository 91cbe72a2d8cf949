"""For a file that partly affects the proof: the new file with that part as it was. Pure.

Each kind of file has a function from (before, after) to a `Kept`. The additions that it accepts
without a question are a closed list; everything else stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.model import Input, Inputs


class KeptPart(Struct, frozen=True):
    """The file to verify with."""

    content: bytes
    understood: str = ""
    """What was added, if nothing else changed: "a new source in a list of sources"."""
    restored: bytes | None = None
    """The new file without what was understood; None if that is the old file."""


class Surrounding(Struct, frozen=True):
    """What a function may know besides the two texts."""

    path: str
    inputs: Inputs
    entry: Input
    exists: Callable[[str], bool]
    """Whether a path is in the tree after the run."""
    takes_place: Callable[[str], bool]
    """Whether a source defines functions that another one, which stood before, defines as well."""

    def is_product(self, path: str) -> bool:
        """Whether a path exists after the run and is not an input of the proof."""
        return self.exists(path) and self.inputs.input_at(path) is None


Keep = Callable[[str, str, Surrounding], KeptPart]


def whole(after: str, why: str, restored: bytes | None = None) -> KeptPart:
    """Accept the new file: everything that changed is understood."""
    return KeptPart(to_bytes(after), why, restored)


def old(before: str) -> KeptPart:
    """Keep the old file: nothing is understood."""
    return KeptPart(to_bytes(before))
