"""Scripts of Python that start a test tool themselves: which one, and with which words. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agentrunner.text.python_source import python_tree


def tools_started(text: str) -> list[tuple[str, list[str]]]:
    """The test tools that a script starts, with the words that their commands would have.

    They are `pytest.main(…)`, `unittest.main(…)` of other modules than the script's own,
    `discover(…)` of unittest's loader and `run_tests(…)` of Django. Of arguments only literals are
    known: where another word is given, the tool's default stands. Nothing for what is no Python.
    """
    tree = python_tree(text)
    if tree is None:
        return []
    names = _imported(tree)
    return [found for node in ast.walk(tree) if (found := _started(node, names)) is not None]


def _imported(tree: ast.Module) -> dict[str, str]:
    """What the names that a script imports stand for, in full."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                top = one.name.partition(".")[0]
                names[one.asname or top] = one.name if one.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for one in node.names:
                names[one.asname or one.name] = f"{node.module}.{one.name}"
    return names


def _started(node: ast.AST, names: dict[str, str]) -> tuple[str, list[str]] | None:
    if not isinstance(node, ast.Call):
        return None
    called = _full_name(node.func, names)
    keywords = {one.arg: one.value for one in node.keywords if one.arg}
    if called == "pytest.main":
        return "pytest", list(_texts(node.args[0] if node.args else keywords.get("args")))
    if called in ("unittest.main", "unittest.TestProgram"):
        module = node.args[0] if node.args else keywords.get("module")
        if module is None or (isinstance(module, ast.Constant) and module.value == "__main__"):
            return None  # its own tests
        named = [module.value] if isinstance(module, ast.Constant) and module.value else []
        words = list(_texts(keywords.get("argv")))[1:]
        return "unittest", [*words, *map(str, named)]
    imported = {name.partition(".")[0] for name in names.values()}
    if called.endswith(".run_tests") and "django" in imported:
        return "unittest", ["discover"]
    if not called.endswith(".discover") or "unittest" not in imported:
        return None
    given = dict(zip(("start_dir", "pattern", "top_level_dir"), node.args, strict=False))
    words = ["discover"]
    for name, option in (("start_dir", "-s"), ("pattern", "-p"), ("top_level_dir", "-t")):
        for value in _texts(given.get(name, keywords.get(name))):
            words += [option, value]
    return "unittest", words


def _full_name(function: ast.expr, names: dict[str, str]) -> str:
    """The dotted name of what is called; "." and the last part where it is no plain name."""
    parts: list[str] = []
    while isinstance(function, ast.Attribute):
        parts.insert(0, function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        return ".".join([names.get(function.id, function.id), *parts])
    return ".".join(["", *parts])


def _texts(value: ast.expr | None) -> Iterator[str]:
    """The literal texts of a text or a list of texts."""
    for one in value.elts if isinstance(value, ast.List | ast.Tuple) else [value]:
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value
