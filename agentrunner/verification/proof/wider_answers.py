"""Whether the worker's tests accept other values beside the one that people name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.proof.other_tests import run_changed_tests
from agentrunner.verification.syntax.alternatives import narrowed
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.target import Run, Target
from agentrunner.verification.world import SnapshotTrees

ACCEPTS_MORE = "it passes by a value that it accepts beside the one that the task names"


async def find_wider_answers(
    run: Run,
    target: Target,
    snapshots: Snapshots,
    world: SnapshotTrees,
    places: Mapping[str, Sequence[str]],
    asked: str,
) -> dict[str, str]:
    """Tests at `places`, by path, that fail where they accept only what `asked` names; and why.

    Raises what running in rooms raises.
    """

    def narrow(path: str, text: bytes) -> bytes:
        language = language_of(path)
        return text if language is None else narrowed(text, language, asked)

    made = await run_changed_tests(run, target, snapshots, world, places, narrow)
    if made is None:
        return {}
    ran, names = made
    red = {test.name for test in ran.results.red} if ran.results is not None else set()
    return {name: ACCEPTS_MORE for name in names if name in red}
