"""Test tools of Python: what pytest, unittest and doctest collect and what configures them."""

from __future__ import annotations

import configparser
import re
from collections.abc import Callable
from dataclasses import replace

from agentrunner.verification.inputs.context import Context, Handler, handlers, positional
from agentrunner.verification.inputs.globs import inside
from agentrunner.verification.inputs.interpreters import hand_over
from agentrunner.verification.inputs.runner_scripts import tools_started
from agentrunner.verification.inputs.shell import Step
from agentrunner.verification.inputs.tree import Tree, above, folder_of, join
from agentrunner.verification.results.files import table, texts

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
    take(context, replace(step, words=(name, *rest)), by, depth=1)


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
            if path.endswith(".py") and ">>>" in (tree.text(path) or ""):
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
    found = (word.partition(":")[0] for word in positional(words))
    named = [path for word in found if (path := context.existing(step.folder, word))]
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
