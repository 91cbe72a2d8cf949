"""Names that imports find elsewhere today, and that a new module of the same name would shadow."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.context import Context
from agentrunner.verification.inputs.references import References
from agentrunner.verification.inputs.tree import Tree, above, folder_of, join

KITS = {
    "pytest": "pytest _pytest py pluggy iniconfig packaging exceptiongroup tomli pygments colorama",
    "coverage": "coverage",
    "behave": "behave parse parse_type cucumber_expressions",
    "nose2": "nose2",
    "tox": "tox virtualenv",
}
"""Modules that a test tool itself consists of."""
MANIFESTS = lazy_regex(
    r"(^|/)(requirements[^/]*\.txt|pyproject\.toml|setup\.(py|cfg)|Pipfile|package\.json|Gemfile"
    r"|composer\.json|poetry\.lock|uv\.lock)$"
)
MOST_LOOKED_AT = 300
MOST_SOURCES = 500
TOOLS_IMPORT = (
    "unittest doctest argparse ast bdb code configparser faulthandler fnmatch glob importlib"
    " inspect json logging pdb platform shlex shutil site subprocess tempfile xml zipfile"
).split()
"""What Python's test tools import from the standard library, without indirect imports."""


@lru_cache(maxsize=4)
def _declared(tree: Tree) -> str:
    """Return the text of manifests near the root: what is installed from elsewhere."""
    found = [path for path in tree.paths if path.count("/") < 3 and MANIFESTS.search(path)]
    return "\n".join((tree.text(path) or "") for path in sorted(found)[:50]).lower()


def provided(context: Context, name: str) -> bool:
    """Whether an import of this name is resolved outside the tree."""
    if name in sys.stdlib_module_names or name.startswith((".", "/")):
        return not name.startswith((".", "/"))
    if any(name in names.split() for names in KITS.values()):
        return True
    plain = re.escape(name.lower()).replace("_", "[-_]")
    return bool(re.search(rf"(?<![\w-]){plain}(?![\w-])", _declared(context.tree)))


@lru_cache(maxsize=1)
def used_by_tools() -> frozenset[str]:
    """Return the standard library modules that a test tool imports, read from their sources.

    Any other module that shares its name with one there, such as `profile`, shadows nothing in use.
    """
    found: set[str] = {"sitecustomize", "usercustomize"}
    waiting, read = list(TOOLS_IMPORT), 0
    while waiting:
        name = waiting.pop()
        if name in found or name not in sys.stdlib_module_names:
            continue
        found.add(name)
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):
            continue
        origin = Path(spec.origin) if spec and spec.origin and spec.has_location else None
        if origin is None or origin.suffix != ".py":
            continue
        sources = (
            origin.parent.glob("*.py") if spec and spec.submodule_search_locations else [origin]
        )
        for source in sources:
            read += 1
            if read > MOST_SOURCES:
                return frozenset(found)
            text = source.read_text(encoding="utf-8", errors="replace")
            waiting += re.findall(r"^(?:import|from)[ \t]+(\w+)", text, re.MULTILINE)
    return frozenset(found)


def shadows_of(
    context: Context, references: References, tests: set[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return folders and names where a new module would shadow the one imported today.

    Only folders that the interpreter searches first count, and only names that something else
    provides now: the standard library, the test tool, or installed packages that the tree imports.
    """
    folders = {folder for folder in context.python_path if folder in context.tree.folders}
    python = [path for path in tests if path.endswith(".py")]
    for path in python:
        folders.add(_import_root(context.tree, path))
    for place in context.inputs:
        if place.endswith("conftest.py"):
            folders.add(folder_of(place))
    if not python and not context.python_path:
        return frozenset(), frozenset()
    names = set(used_by_tools())
    for program, modules in KITS.items():
        if program in context.programs:
            names.update(modules.split())
    reached = {
        path for test in sorted(tests)[:MOST_LOOKED_AT] for path in references.imports(test)[0]
    }
    for path in [*sorted(tests)[:MOST_LOOKED_AT], *sorted(reached)[:MOST_LOOKED_AT]]:
        names.update(name for name in references.imports(path)[1] if provided(context, name))
    return frozenset(folders & context.tree.folders), frozenset(names)


def _import_root(tree: Tree, path: str) -> str:
    """Return the folder that pytest and unittest put first on the path for a test file."""
    for folder in above(folder_of(path)):
        if join(folder, "__init__.py") not in tree.paths:
            return folder
    return ""
