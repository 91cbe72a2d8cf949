"""Test tools of Python: what pytest, unittest and doctest collect and what configures them."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.python_source import python_tree
from agentrunner.verification.inputs.context import Context, Handler, handlers
from agentrunner.verification.inputs.globs import inside
from agentrunner.verification.inputs.interpreters import hand_over
from agentrunner.verification.inputs.shell import Step
from agentrunner.verification.inputs.tree import Tree, above, folder_of, join
from agentrunner.verification.results.files import table, texts
from agentrunner.verification.results.shell import simple_commands

LOADS = {
    "discover": ("start_dir", "pattern", "top_level_dir"),
    "loadTestsFromName": ("name",),
    "loadTestsFromNames": ("names",),
}
"""Methods of unittest's loader, with their parameters."""
TOOLS = ("pytest", "unittest")
OPTIONS = {"start_dir": "-s", "pattern": "-p", "top_level_dir": "-t"}
CALLED_TO_START = lazy_regex(
    r"subprocess\.\w+|asyncio\.create_subprocess_\w+"
    r"|os\.(?:system|popen|exec\w+|spawn\w+|posix_spawnp?)"
)
"""The calls of Python's library that start a program."""

Take = Callable[..., None]

PYTEST_INI = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
PYTEST_VALUES = frozenset(
    """-k -m -n -p -c -o -W -r --rootdir --confcutdir --durations --tb --maxfail --timeout --cov
    --cov-report --cov-config --junitxml --junit-xml --deselect --ignore --ignore-glob --color
    --log-level --log-cli-level --basetemp --import-mode --dist --numprocesses --config-file
    --override-ini --reruns --ds --asyncio-mode --html --capture --doctest-glob""".split()
)
INSTALLS = (
    "pyproject.toml", "setup.py", "setup.cfg", "requirements*.txt", "requirements/*.txt",
    "*requirements.txt", "constraints*.txt", "poetry.lock", "uv.lock", "pdm.lock", "Pipfile",
    "Pipfile.lock", "pylock*.toml", "uv.toml", "pip.conf", "MANIFEST.in", "environment.yml",
)  # fmt: skip
"""Where Python projects say what is installed, and from where."""
MOST_READ = 2_000
"""The most source files that are read to see whether they contain examples."""
STARTS = ("sitecustomize.py", "usercustomize.py", "*.pth")
"""What Python itself runs when it starts, if it finds it."""


def python(context: Context, step: Step, words: list[str], by: str, take: Take) -> None:
    """Follow `python -m MODULE`, `python FILE`, `python -c CODE`."""
    installs(context, step.folder)
    at = 0
    while at < len(words):
        word = words[at]
        if word == "-m" or (word.startswith("-m") and len(word) > 2):
            module = word[2:] or (words[at + 1] if at + 1 < len(words) else "")
            rest = words[at + (1 if word[2:] else 2) :]
            context.python_path.add(step.folder)
            _module(context, step, module, rest, by, take)
            return
        if word == "-c":
            context.python_path.add(step.folder)
            return
        if word in ("-W", "-X"):
            at += 1
        elif not word.startswith("-"):
            break
        at += 1
    if at >= len(words):
        return
    path = context.existing(step.folder, words[at])
    if path is None:
        return
    if path in context.tree.folders:
        path = join(path, "__main__.py")
    context.python_path.add(folder_of(path))
    rest = words[at + 1 :]
    if "execute_from_command_line" in (context.tree.text(path) or "") and rest[:1] == ["test"]:
        _django(context, path, by)
        return
    _file(context, step, path, rest, by)
    hand_over(context, replace(step, words=(words[at],)), rest, by)


def _file(context: Context, step: Step, path: str, words: list[str], by: str) -> None:
    """Follow a file of Python that is run with these words, and the test tools that it starts."""
    # Where something else decides about what it prints, it is what is tested.
    started = [] if step.feeds else tools_started(context.tree.text(path) or "", words)
    for tool, given in started:
        HANDLERS[tool](context, step, given, by)
        context.starters.add(path)
    context.execute(path, step, by)


def _module(
    context: Context, step: Step, module: str, rest: list[str], by: str, take: Take
) -> None:
    name = module.partition(".")[0]
    if module == "doctest":
        for word in rest:
            if path := context.file(step.folder, word):
                context.add(path, f"{by} runs its examples", "test", region=True)
        return
    found = module.replace(".", "/")
    for place in (step.folder, join(step.folder, "src")):
        for path in (join(place, f"{found}.py"), join(place, f"{found}/__main__.py")):
            if path in context.tree.paths:
                _file(context, step, path, rest, by)
                return
    # Running a tool's module does the same as its command.
    take(context, replace(step, words=(name.replace("_", "-"), *rest)), by, depth=1)


def installs(context: Context, folder: str) -> None:
    """Count what says which packages are installed, and what Python runs when it starts."""
    context.place_above(folder, INSTALLS, "it says which packages are installed")
    context.place_above(folder, STARTS, "Python runs it at its start", "runner")


def pytest(context: Context, step: Step, words: list[str], by: str) -> None:
    """pytest collects files, folders or testpaths by python_files; conftest and ini files count."""
    tree, folder = context.tree, step.folder
    installs(context, folder)
    named, options = _arguments(words)
    settings, rootdir = _pytest_settings(tree, folder, named, options)
    why = "configuration that pytest reads"
    context.programs.update(("pytest", "coverage"))
    bases = [join(folder, word.partition("::")[0]) for word in named]
    for base in (folder, *bases):
        names = (*PYTEST_INI, "tox.ini", "setup.cfg", "pyproject.toml", ".coveragerc")
        context.place_above(base, names, why)
    for option, value in options:
        path = context.existing(folder, value) if value else None
        if option in ("-c", "--config-file") and path:
            context.add(path, f"{by} names it", "config")
        elif option == "-p":
            _plugin(context, folder, value)
    for value in _words(settings.get("addopts")):
        _plugin(context, rootdir, value)
    patterns = _words(settings.get("python_files")) or ["test_*.py", "*_test.py"]
    places = [join(rootdir, place) for place in _words(settings.get("pythonpath"))]
    context.python_path.update(places)
    if not bases:
        start = [join(rootdir, path) for path in _words(settings.get("testpaths"))]
        bases = [path for base in start for path in tree.expand("", base)]
        for base in bases:
            context.name_folder(base, "testpaths names it")
        bases = bases or [folder]
        reason = "testpaths names it" if start else "pytest collects it"
    else:
        reason = f"{by} names it"
    given = [*words, *_words(settings.get("addopts"))]
    for base in bases:
        _pytest_base(context, base, patterns, reason, by, "--doctest-modules" in given)
        for name, value in options:
            if name == "--doctest-glob":
                context.collect(inside(base, f"**/{value}"), "pytest runs its examples")


def _pytest_base(
    context: Context, base: str, patterns: list[str], reason: str, by: str, doctests: bool
) -> None:
    tree = context.tree
    for place in above(base if base in tree.folders else folder_of(base)):
        context.place(join(place, "conftest.py"), "pytest loads it before the tests", "runner")
    if base in tree.paths:
        context.collect(base, f"{by} names it")
        context.roots.add(folder_of(base))
        return
    if base.endswith(".py"):  # it is named but does not exist yet
        context.place(base, f"{by} names it", "test")
        return
    context.roots.add(base)
    if reason != "pytest collects it":
        context.name_folder(base, reason)
    for pattern in patterns:
        context.collect(inside(base, f"**/{pattern}"), f"pytest collects {pattern} by its rules")
    context.collect(inside(base, "**/conftest.py"), "pytest loads it before the tests", "runner")
    if doctests:
        for path in [one for one in tree.under(base) if one.endswith(".py")][:MOST_READ]:
            if ">>>" in (tree.text(path) or ""):
                context.add(path, "pytest runs its examples", "test", region=True)


def _plugin(context: Context, folder: str, name: str) -> None:
    module = name.replace(".", "/")
    for place in (folder, *context.python_path):
        for path in (join(place, f"{module}.py"), join(place, f"{module}/__init__.py")):
            if path in context.tree.paths:
                context.add(path, "pytest loads it as a plug-in", "runner")


def _arguments(words: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    named, options, at = [], [], 0
    while at < len(words):
        word = words[at]
        if word in PYTEST_VALUES and at + 1 < len(words):
            options.append((word, words[at + 1]))
            at += 1
        elif word.startswith("-"):
            name, _, value = word.partition("=")
            if re.match(r"-[pc]\w", word):
                name, value = word[:2], word[2:]
            options.append((name, value))
        elif "$" not in word and "\1" not in word:
            named.append(word)
        at += 1
    return named, options


def _pytest_settings(
    tree: Tree, folder: str, named: list[str], options: list[tuple[str, str]]
) -> tuple[dict[str, object], str]:
    """Return the settings that pytest finds, and the folder of its ini file."""
    for option, value in options:
        if option in ("-c", "--config-file"):
            path = join(folder, value)
            return _settings_of(tree, path), folder_of(path)
    start = join(folder, named[0].partition("::")[0]) if len(named) == 1 else folder
    for place in above(start if start in tree.folders else folder_of(start)):
        for name in (*PYTEST_INI, "pyproject.toml", "tox.ini", "setup.cfg"):
            path = join(place, name)
            found = _settings_of(tree, path)
            if found or (name in PYTEST_INI and tree.exists(path)):
                return found, place
    return {}, folder


def _settings_of(tree: Tree, path: str) -> dict[str, object]:
    if path.endswith(".toml"):
        settings = tree.toml(path)
        if path.endswith("pyproject.toml"):
            tool = table(settings, "tool", "pytest")
            return {**{k: v for k, v in tool.items() if k != "ini_options"},
                    **table(tool, "ini_options")}  # fmt: skip
        return table(settings, "pytest") or settings
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(tree.text(path) or "")
    except configparser.Error:
        return {}
    section = "tool:pytest" if path.endswith("setup.cfg") else "pytest"
    return dict(parser[section]) if parser.has_section(section) else {}


def _words(value: object) -> list[str]:
    return value.split() if isinstance(value, str) else texts(value)


def unittest(context: Context, step: Step, words: list[str], by: str) -> None:
    """unittest: `discover -s -p`, or modules and files by name."""
    folder, tree = step.folder, context.tree
    installs(context, folder)
    context.programs.add("unittest")
    plain = [word for word in words if not word.startswith("-")]
    if plain and plain[0] != "discover":
        for word in plain:
            _unittest_name(context, folder, word, by)
        return
    values = {"-s": ".", "-p": "test*.py", "-t": ""}
    positional: list[str] = []
    at = 0
    words = [word for word in words if word != "discover"]
    while at < len(words):
        word = words[at]
        name, _, value = word.partition("=")
        short = {"--start-directory": "-s", "--pattern": "-p", "--top-level-directory": "-t"}.get(
            name, name
        )
        if short in values:
            if not value and at + 1 < len(words):
                value = words[at + 1]
                at += 1
            values[short] = value
        elif word == "-k":
            at += 1
        elif not word.startswith("-"):
            positional.append(word)
        at += 1
    values.update(zip(("-s", "-p", "-t"), positional, strict=False))
    start = join(folder, values["-s"])
    if start not in tree.folders:
        start = join(folder, values["-s"].replace(".", "/"))
    context.python_path.add(join(folder, values["-t"] or values["-s"]))
    context.roots.add(start)
    if start:
        context.name_folder(start, f"{by} names it")
    context.collect(inside(start, f"**/{values['-p']}"), f"unittest collects {values['-p']}")
    for path in tree.matching(inside(start, "**/__init__.py")):
        if "load_tests" in (tree.text(path) or ""):
            context.add(path, "unittest asks it for tests", "runner")


def _unittest_name(context: Context, folder: str, word: str, by: str) -> None:
    parts = word.removesuffix(".py").replace("/", ".").split(".")
    missing = next((i for i, part in enumerate(parts) if not part.islower()), len(parts))
    new = join(folder, "/".join(parts[:missing]))
    while parts:
        path = join(folder, "/".join(parts))
        if f"{path}.py" in context.tree.paths:
            context.collect(f"{path}.py", f"{by} names it")
            context.roots.add(folder_of(path))
            return
        if path in context.tree.folders and path:
            context.name_folder(path, f"{by} names it")
            context.collect(inside(path, "**/test*.py"), f"{by} names its package")
            break
        parts.pop()
    if new not in context.tree.folders:
        context.place(f"{new}.py", f"{by} names it", "test")


def _django(context: Context, path: str, by: str) -> None:
    context.add(path, f"{by} runs it", "runner")
    context.python_path.add(folder_of(path))
    context.collect(inside(folder_of(path), "**/test*.py"), "Django collects test*.py")
    for found in context.tree.matching(inside(folder_of(path), "**/tests/__init__.py")):
        context.add(found, "Django loads it with the tests", "runner")


def behave(context: Context, step: Step, words: list[str], by: str) -> None:
    """behave collects features, their steps and environment."""
    installs(context, step.folder)
    context.use("behave", step.folder, ".behaverc", "setup.cfg", "tox.ini", "pyproject.toml")
    named = context.named_by(step, words)
    bases = {path if path in context.tree.folders else folder_of(path) for path in named}
    bases = bases or {join(step.folder, "features")}
    for base in bases:
        top = next((one for one in above(base) if f"{one}/steps" in context.tree.folders), base)
        context.name_folder(top, "behave collects it")
        context.collect(inside(top, "**/*.feature"), "behave collects it")
        context.collect(inside(top, "**/steps/**"), "behave runs these steps")
        context.collect(inside(top, "**/environment.py"), "behave loads it", "runner")


def _tool_with_pyproject(program: str) -> Handler:
    def handler(context: Context, step: Step, words: list[str], by: str) -> None:
        """Count the configuration of a tool that reads pyproject.toml, setup.cfg, tox.ini too."""
        context.use(program, step.folder, "pyproject.toml", "setup.cfg", "tox.ini", f".{program}")
        for path in context.files_of(step, words, "--config", "--config-file", "--rcfile", "-c"):
            context.add(path, f"{by} configures {program} with it", "config")

    return handler


HANDLERS = handlers(
    ("pytest py.test pytest-3", pytest),
    ("unittest", unittest),
    ("behave", behave),
    *((name, _tool_with_pyproject(name)) for name in
      """ruff mypy flake8 pylint black isort pyright nose2 ward bandit ty import-linter lint-imports
      coverage""".split()),
)  # fmt: skip


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
        return _module_of(list(_texts(node, words, unknown="")))
    if not isinstance(node, ast.Call):
        return None
    called = _full_name(node.func, names)
    if CALLED_TO_START.fullmatch(called):
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
        found = (
            _program(one.texts) or _module_of(one.texts) for one in simple_commands(node.value)
        )
        return next(filter(None, found), None)
    known = values.get(node.id) if isinstance(node, ast.Name) else None
    texts = list(_texts(known or node, words, unknown=""))
    # The list of a name with `-m` counts where it is written.
    return _program(texts) or (None if known else _module_of(texts))


def _program(words: Sequence[str]) -> tuple[str, list[str]] | None:
    return (words[0], list(words[1:])) if words and words[0] in TOOLS else None


def _module_of(words: Sequence[str]) -> tuple[str, list[str]] | None:
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
