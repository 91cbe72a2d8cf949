"""The sources of tests that are red: what they ask, as it is written. Blocking."""

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
) -> str:
    """Each red test with its message and its source, as far as it is found. Raises GitFailed.

    `ids` are what long names are called by.
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
    left = MOST_CHARS
    for one in reds:
        path = files[one.name]
        data = contents.get(path) if path else None
        source = ""
        if path and data is not None and not is_binary(data):
            source = "" if holds_credentials(path, data) else _source(one, path, data)
        name = (ids or {}).get(one.name, one.name)
        message = clean_text(f"{name}\n{one.message}".strip(), redact)
        text = f"=== {message}\n"
        if source:
            text += f"--- {shown_name(path)}\n{_cut(clean_text(source, redact), TEST_CHARS)}\n"
        if len(text) > left:
            parts.append(f"… ({len(reds) - len(parts)} more red tests are not shown)\n")
            break
        left -= len(text)
        parts.append(text)
    return "\n".join(parts)


def _file_of(red: RedTest, listed: dict[str, tuple[str, str]]) -> str:
    """The file of the tree that the result or the name of the test names; "" for none."""
    for path in (red.file, red.name.partition("::")[0], red.name.partition(" > ")[0]):
        if path and path.removeprefix("./") in listed:
            return path.removeprefix("./")
    return ""


def _source(red: RedTest, path: str, data: bytes) -> str:
    language = language_of(path)
    span = find_test(data, language, red.name) if language else None
    if span is not None:
        return data[span.start : span.end].decode("utf-8", "replace")
    if red.line is None:
        return ""
    lines = data.decode("utf-8", "replace").splitlines()
    first = max(0, red.line - AROUND)
    return "\n".join(lines[first : red.line + AROUND])


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n… (cut)"
