"""New files that no text names, where tools look for settings: does the result need them?

Which files a tool reads by itself no list tells. What the work itself reads, it names somewhere.
"""

from __future__ import annotations

import asyncio
import posixpath
from pathlib import PurePosixPath

from agentrunner.verification.case import Case
from agentrunner.verification.examination import Examination
from agentrunner.verification.findings import tests_changed
from agentrunner.verification.old_inputs import differs
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.world import InputChange

WHY = "it is new, nothing in the repository or the task names it, and the result needs it"
MOST_READ = 2_000
"""Files that are searched for a name; in a larger tree only those that were changed."""


async def hold_without_unnamed(exam: Examination, case: Case) -> bool:
    """Whether the command says the same without such files; else a finding is added.

    Raises what runs in rooms raise.
    """
    paths = await asyncio.to_thread(_unnamed, exam, case)
    if not paths:
        return True
    world = exam.world
    tree = await asyncio.to_thread(
        exam.verifier.snapshots.combine, world.new, dict.fromkeys(paths, None)
    )
    without = await exam.run(case.target, tree)
    problem = await asyncio.to_thread(differs, exam, case, without)
    if not problem:
        return True
    changes = [InputChange(path, WHY, "added") for path in paths]
    finding = tests_changed(case.target, changes, problem, cut=False)
    return not exam.report.stopped_by(finding, case.target.id)


def _unnamed(exam: Examination, case: Case) -> list[str]:
    """New files that are no code, where a tool would look, and that nothing names. Blocks."""
    world, snapshots = exam.world, exam.verifier.snapshots
    home = PurePosixPath(posixpath.normpath(case.target.cwd))
    looked = {".", str(home), *map(str, home.parents)}
    added = [
        path
        for path in world.product
        if path not in world.old_paths
        and path not in world.allowed
        and language_of(path) is None
        and (path.rpartition("/")[2].startswith(".") or (posixpath.dirname(path) or ".") in looked)
    ]
    if not added:
        return []
    read = snapshots.reader(world.new)
    paths = list(snapshots.list(world.new))
    texts = [exam.verifier.spec.prd_text, case.target.shell]
    texts += [f"{c.description}\n{c.detail}" for c in exam.criteria]
    for path in paths if len(paths) <= MOST_READ else world.product:
        if path not in added:
            texts.append((read(path) or b"").decode("utf-8", "replace"))
    names = {path: path.rpartition("/")[2] for path in added}
    return [path for path in added if not any(names[path] in text for text in texts)]
