"""What workers of earlier tasks wrote, so that it is not taken for a person's. Blocks."""

from __future__ import annotations

from agentrunner.config.spec import EarlierWork
from agentrunner.git.private_clone import CloneStore
from agentrunner.verification.syntax.definitions import definitions
from agentrunner.verification.syntax.languages import language_of


def earlier_work(clone: CloneStore, base: str, commit: str) -> EarlierWork | None:
    """Return the files that came since `base`, and the tests that came or changed in others.

    None where nothing did, and where there is no `base`: the user's history may have begun anew.
    """
    if not base:
        return None
    files, tests = [], {}
    there = clone.modes(base)
    for path in clone.changed(base, commit):
        if path not in there:
            files.append(path)
        elif language := language_of(path):
            before = definitions(clone.read(base, path), language)
            after = definitions(clone.read(commit, path), language)
            if names := [name for name, text in after.items() if before.get(name) != text]:
                tests[path] = names
        else:
            files.append(path)
    return EarlierWork(files=files, tests=tests) if files or tests else None
