"""Scripts of Python that start a test tool themselves: which one, and with which words. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.python_source import python_tree
from agentrunner.verification.results.shell import simple_commands

LOADS = {
    "discover": ("start_dir", "pattern", "top_level_dir"),
    "loadTestsFromName": ("name",),
    "loadTestsFromNames": ("names",),
}
"""Methods of unittest's loader, with their parameters."""
TOOLS = ("pytest", "unittest")
OPTIONS = {"start_dir": "-s", "pattern": "-p", "top_level_dir": "-t"}
STARTS = lazy_regex(
    r"subprocess\.\w+|asyncio\.create_subprocess_\w+"
    r"|os\.(?:system|popen|exec\w+|spawn\w+|posix_spawnp?)"
)
"""The calls of Python's library that start a program."""


def tools_started(text: str, words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The test tools that a script starts, with the words that their commands would have.

    They are `pytest.main(…)`, `unittest.main(…)` of other modules than the script's own, what
    unittest's loader is asked for, `run_tests(…)` of Django, and commands of these tools that a
    call starts, or lists of words with `-m`; where they are reached when the script is run with
    these `words`. Of arguments literals are known and `sys.argv`, which are the words: in the
    place of any other stands the tool's default. Nothing for what is no Python.
    """
    tree = python_tree(text)
    if tree is None:
        return []
    names = _names(tree)
    values = {
        one.targets[0].id: one.value
        for one in ast.walk(tree)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    }
    started, parts = [], set[ast.AST]()
    for node in _reached(tree):
        if node not in parts and (found := _started(node, names, values, words)):
            started.append(found)
            parts.update(ast.walk(node))
    return started


def _reached(tree: ast.Module) -> Iterator[ast.AST]:
    """What is run with the script: functions only where what is run calls them by their names."""
    functions = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    todo: list[ast.AST] = list(reversed(tree.body))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        yield node
        todo += reversed(list(ast.iter_child_nodes(node)))
        if isinstance(node, ast.Name) and (called := functions.pop(node.id, None)):
            todo += reversed(called.body)


def _names(tree: ast.Module) -> dict[str, str]:
    """What the names that a script imports stand for, in full, and those that are given them."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                top = one.name.partition(".")[0]
                names[one.asname or top] = one.name if one.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for one in node.names:
                names[one.asname or one.name] = f"{node.module}.{one.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names.setdefault(node.targets[0].id, _full_name(node.value, names))
    return names


def _started(
    node: ast.AST,
    names: Mapping[str, str],
    values: Mapping[str, ast.expr],
    words: Sequence[str],
) -> tuple[str, list[str]] | None:
    if isinstance(node, ast.List | ast.Tuple | ast.BinOp):
        return _module(list(_texts(node, words, unknown="")))
    if not isinstance(node, ast.Call):
        return None
    called = _full_name(node.func, names)
    if STARTS.fullmatch(called):
        commands = (_command(one, values, words) for one in reversed(node.args))
        return next(filter(None, commands), None)
    keywords = {one.arg: one.value for one in node.keywords if one.arg}
    tool, method = called.partition(".")[0], called.rpartition(".")[2]
    if called == "pytest.main":
        value = node.args[0] if node.args else keywords.get("args")
        return "pytest", list(words if value is None else _texts(value, words))
    if called in ("unittest.main", "unittest.TestProgram"):
        module = node.args[0] if node.args else keywords.get("module")
        if module is None or (isinstance(module, ast.Constant) and module.value == "__main__"):
            return None  # its own tests
        argv = keywords.get("argv")
        given = words if argv is None or _is_argv(argv) else list(_texts(argv, words))[1:]
        return "unittest", [*given, *_texts(module, words)]
    if tool == "django" and method == "run_tests":
        return "unittest", ["discover"]
    if tool != "unittest" or "Loader" not in called or method not in LOADS:
        return None
    values = {**dict(zip(LOADS[method], node.args, strict=False)), **keywords}
    found = {name: list(_texts(values[name], words)) for name in LOADS[method] if name in values}
    if method != "discover":
        return "unittest", [one for texts in found.values() for one in texts]
    pairs = [(OPTIONS[name], text) for name, texts in found.items() for text in texts]
    return "unittest", ["discover", *(word for pair in pairs for word in pair)]


def _command(
    node: ast.expr, values: Mapping[str, ast.expr], words: Sequence[str]
) -> tuple[str, list[str]] | None:
    """The test tool that an argument of a call starts: a list of words, or a text for a shell."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        found = (_program(one.texts) or _module(one.texts) for one in simple_commands(node.value))
        return next(filter(None, found), None)
    known = values.get(node.id) if isinstance(node, ast.Name) else None
    texts = list(_texts(known or node, words, unknown=""))
    # The list of a name with `-m` counts where it is written.
    return _program(texts) or (None if known else _module(texts))


def _program(words: Sequence[str]) -> tuple[str, list[str]] | None:
    return (words[0], list(words[1:])) if words and words[0] in TOOLS else None


def _module(words: Sequence[str]) -> tuple[str, list[str]] | None:
    for at, word in enumerate(words[1:], start=1):
        if word in TOOLS and words[at - 1] == "-m":
            return word, list(words[at + 1 :])
    return None


def _full_name(node: ast.AST, names: Mapping[str, str]) -> str:
    """The dotted name of an expression, calls left out; it begins with "." for no plain name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute | ast.Call):
        if isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
        node = node.value if isinstance(node, ast.Attribute) else node.func
    first = names.get(node.id, node.id) if isinstance(node, ast.Name) else ""
    return ".".join([first, *parts])


def _is_argv(node: ast.expr) -> bool:
    value = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(value, ast.Attribute) and value.attr == "argv"


def _texts(node: ast.expr, words: Sequence[str], unknown: str | None = None) -> Iterator[str]:
    """The literal texts of a text or a list of texts, and the script's own words.

    What is not known is left out, or is `unknown`.
    """
    if isinstance(node, ast.BinOp):
        yield from _texts(node.left, words, unknown)
        yield from _texts(node.right, words, unknown)
        return
    for one in node.elts if isinstance(node, ast.List | ast.Tuple) else [node]:
        value = one.value if isinstance(one, ast.Starred) else one
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.value
        elif _is_argv(value):
            yield from words
        elif unknown is not None:
            yield unknown
