"""Go packages below vendor/: which of them only tests import. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.tree import Tree, folder_of, join

IMPORT = lazy_regex(r"^\s*(?:import\s+)?\(?\s*(?:[\w.]+\s+)?\"([^\"\s]+)\"", re.MULTILINE)
DECLARATION = lazy_regex(r"^(?:func|type|var|const)\b", re.MULTILINE)
MOST_FILES = 5_000
"""The most source files that are read; nothing is returned for a larger module."""


def only_for_tests(tree: Tree, module: str) -> list[str]:
    """Return the folders of vendored packages that only a module's tests need, sorted.

    `module` is the folder that contains go.mod and vendor/; "" is the root.
    """
    vendor = join(module, "vendor")
    sources = [path for path in tree.under(module) if path.endswith(".go")]
    if len(sources) > MOST_FILES:
        return []
    tree.prefetch(sources)
    packages: dict[str, list[str]] = {}
    needed: dict[bool, set[str]] = {True: set(), False: set()}
    for path in sources:
        is_test = path.endswith("_test.go")
        if not path.startswith(f"{vendor}/"):
            needed[is_test] |= _imported(tree, vendor, path)
        elif not is_test:
            packages.setdefault(folder_of(path), []).append(path)
    product = _with_imports(tree, vendor, packages, needed[False])
    return sorted(_with_imports(tree, vendor, packages, needed[True]) - product)


def _imported(tree: Tree, vendor: str, path: str) -> set[str]:
    text = tree.text(path) or ""
    end = DECLARATION.search(text)
    head = text[: end.start()] if end else text
    return {f"{vendor}/{name}" for name in IMPORT.findall(head)}


def _with_imports(
    tree: Tree, vendor: str, packages: Mapping[str, Iterable[str]], first: set[str]
) -> set[str]:
    """Return these packages with everything that they import themselves."""
    found: set[str] = set()
    waiting = list(first)
    while waiting:
        package = waiting.pop()
        if package in found or package not in packages:
            continue
        found.add(package)
        for path in packages[package]:
            waiting += _imported(tree, vendor, path)
    return found
