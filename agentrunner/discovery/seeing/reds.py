"""The sources of tests that are red: what they ask, as it is written. Blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentrunner.discovery.seeing.safe import (
    Redact,
    clean_text,
    holds_credentials,
    is_binary,
    shown_name,
)
from agentrunner.git.snapshots import Snapshots
from agentrunner.state.run_state import RedTest
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.test_finder import find_test

MOST_TESTS = 10
MOST_CHARS = 6_000
"""Of all sources together."""
TEST_CHARS = 1_500
"""Of one test."""
AROUND = 12
"""Lines around a place in a language that is not read."""


def sources_of(
    snapshots: Snapshots,
    tree: str,
    reds: Sequence[RedTest],
    redact: Redact,
    ids: Mapping[str, str] | None = None,
    earlier: Sequence[str] = (),
) -> str:
    """Each red test with its source, as far as it is found. Raises GitFailed.

    The results tell why it is red. `ids` are what long names are called by, `earlier` are
    answers that still stand: what they have is named only.
    """
    reds = list({one.name: one for one in reds}.values())[:MOST_TESTS]
    if not reds:
        return ""
    listed = snapshots.list(tree)
    files = {one.name: _file_of(one, listed) for one in reds}
    ignored = snapshots.ignored_paths({path for path in files.values() if path})
    files = {name: "" if path in ignored else path for name, path in files.items()}
    contents = snapshots.read_many(tree, {path for path in files.values() if path})
    parts: list[str] = []
    before: list[str] = []
    left = MOST_CHARS
    for one in reds:
        path = files[one.name]
        data = contents.get(path) if path else None
        source = ""
        if path and data is not None and not is_binary(data):
            source = "" if holds_credentials(path, data) else _source(one, path, data)
        if not source:
            continue
        name = clean_text((ids or {}).get(one.name, one.name), redact)
        shown = clean_text(source, redact)
        shown = shown if len(shown) <= TEST_CHARS else f"{shown[:TEST_CHARS]}\n… (cut)"
        text = f"=== {name}\n--- {shown_name(path)}\n{shown}\n"
        if any(text in one_before for one_before in earlier):
            before.append(name)
            continue
        if len(text) > left:
            parts.append("… (further red tests are not shown)\n")
            break
        left -= len(text)
        parts.append(text)
    if before:
        parts.append(f"=== As shown before: {', '.join(before)}\n")
    return "\n".join(parts)


def _file_of(red: RedTest, listed: dict[str, tuple[str, str]]) -> str:
    """The file of the tree that the result or the name of the test names; "" for none."""
    for path in (red.file, red.name.partition("::")[0], red.name.partition(" > ")[0]):
        if path and path.removeprefix("./") in listed:
            return path.removeprefix("./")
    return ""


def _source(red: RedTest, path: str, data: bytes) -> str:
    language = language_of(path)
    found = find_test(data, language, red.name) if language else None
    if found is not None:
        return data[found.span.start : found.span.end].decode("utf-8", "replace")
    if red.line is None:
        return ""
    lines = data.decode("utf-8", "replace").splitlines()
    first = max(0, red.line - AROUND)
    return "\n".join(lines[first : red.line + AROUND])
