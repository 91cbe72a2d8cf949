"""Test tools of JavaScript and TypeScript: what they collect and what configures them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.context import (
    Context,
    Handler,
    ShellText,
    handlers,
    positional,
)
from agentrunner.verification.inputs.globs import inside, is_glob
from agentrunner.verification.inputs.interpreters import run_interpreter
from agentrunner.verification.inputs.shell import Step
from agentrunner.verification.inputs.tree import above, folder_of, join
from agentrunner.verification.results.commands import LOADED_FIRST, Run
from agentrunner.verification.results.files import table, texts

ANY_JS = "?(c|m)[jt]s?(x)"
NODE_TESTS = (
    f"**/*.test.{ANY_JS}", f"**/*-test.{ANY_JS}", f"**/*_test.{ANY_JS}", f"**/test-*.{ANY_JS}",
    f"**/test.{ANY_JS}", f"**/test/**/*.{ANY_JS}",
)  # fmt: skip
"""What Node's own runner takes as tests in a folder that it searches."""
INSTALLS = (
    "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml",
    "pnpm-workspace.yaml", "bun.lock", "bun.lockb", ".npmrc", ".yarnrc", ".yarnrc.yml",
    ".pnpmfile.cjs", "bunfig.toml", "deno.json", "deno.jsonc", "deno.lock", "tsconfig*.json",
    "jsconfig.json", "babel.config.*", ".babelrc*", ".swcrc",
)  # fmt: skip
"""Where JavaScript projects say what is installed and how sources are translated."""
LOADED = lazy_regex(r"[\"'`]([^\"'`\n]{1,200})[\"'`]")
NAMED = lazy_regex(r"[\w./@<>-]{1,200}")
LIST_KEYS = "testMatch testRegex include spec files roots testDir test-ignore".split()


def installs(context: Context, folder: str) -> None:
    """Count what says which packages are installed, and packages where Node looks first."""
    why = "it says what is installed or how code is translated"
    context.place_above(folder, INSTALLS, why)
    why = "Node finds packages there before others"
    context.place_above(folder, ["node_modules/**"], why, "runner")


def configured(context: Context, folder: str, program: str) -> tuple[dict[str, Any], str, str]:
    """Return a tool's settings, as a table and as text, and the folder they come from.

    Files that the configuration names count as well: set-up files, reporters, environments.
    """
    context.use(program, folder, "package.json")
    tree = context.tree
    for place in above(folder):
        for path in tree.matching(inside(place, f"?(.){program}?(rc)?(.config|.workspace)*")):
            if not re.search(rf"(^|/)\.?{program}(rc|\.config|\.workspace|rc\.|\.[a-z]+$)", path):
                continue
            text = tree.text(path) or ""
            settings = tree.json(path) if path.endswith(("json", "rc")) else {}
            _count_named_files(context, place, text, path)
            return settings or _read_lists(text), text, place
        package = tree.json(join(place, "package.json"))
        if isinstance(package.get(program), dict):
            own = package[program]
            _count_named_files(context, place, str(own), join(place, "package.json"))
            return own, "", place
        if package:
            break
    return {}, "", folder


def _count_named_files(context: Context, place: str, text: str, by: str) -> None:
    """Count the files that a configuration names."""
    for found in NAMED.finditer(text):
        word = found[0].removeprefix("<rootDir>/")
        for candidate in (word, f"{word}.js", f"{word}.ts", f"{word}.cjs", f"{word}.mjs"):
            path = join(place, candidate)
            if path in context.tree.paths and path != by:
                context.add(path, f"{by} names it", "runner")


def _read_lists(text: str) -> dict[str, Any]:
    """Return the literal lists and texts of a configuration that is code."""
    found: dict[str, Any] = {}
    for key in LIST_KEYS:
        match = re.search(rf"\b{key}\b[\"']?\s*:\s*(\[[^\]]*\]|[\"'][^\"'\n]*[\"'])", text)
        if match:
            found[key] = LOADED.findall(match[1])
    return found


def _collect(context: Context, folder: str, globs: Sequence[str], why: str) -> None:
    for glob in globs:
        if not glob.startswith("!"):
            clean = glob.removeprefix("<rootDir>/").removeprefix("./")
            clean = join("", clean) if ".." not in clean else clean
            base = join(folder, clean)
            if base in context.tree.folders and not is_glob(clean):
                context.name_folder(base, why)
                clean = f"{clean}/**/*.{ANY_JS}"
            context.collect(inside(folder, clean), why)
    context.roots.add(folder)


def _positional(words: list[str], valued: str) -> list[str]:
    return [word for word in positional(words, valued.split()) if "$" not in word]


def _named(
    context: Context,
    step: Step,
    words: list[str],
    by: str,
    forms: Sequence[str] | Callable[[str], Sequence[str]],
) -> bool:
    """Collect the files and folders that the command names; return whether there was one.

    `forms` are the globs that the tool collects in a folder, or a function that returns them.
    """
    known = False
    for word in words:
        if re.search(r"\.([cm]?[jt]sx?)$", word) and not is_glob(word):
            context.place(join(step.folder, word), f"{by} names it", "test")
        path = join(step.folder, word)
        if path in context.tree.paths:
            context.collect(path, f"{by} names it")
        elif path in context.tree.folders and path:
            context.name_folder(path, f"{by} names it")
            for form in forms(path) if callable(forms) else forms:
                context.collect(inside(path, form), f"{by} names its folder")
        elif is_glob(word):
            context.collect(inside(step.folder, word), f"{by} names {word}")
        else:
            continue
        known = True
    return known


def _names_only_new_tests(context: Context, named: Sequence[str]) -> bool:
    """Whether a command names only test files that do not exist yet, so that it runs no others."""
    files = [word.removeprefix("./") for word in named]
    return bool(files) and not any(
        is_glob(file) or not re.search(r"\.[cm]?[jt]sx?$", file)
        or any(file in path for path in context.tree.paths)
        for file in files
    )  # fmt: skip


def _node_globs(folder: str) -> Sequence[str]:
    """Return what `node --test FOLDER` runs: by name, or everything if it is called test."""
    return [f"**/*.{ANY_JS}"] if folder.rpartition("/")[2] == "test" else NODE_TESTS


def node(context: Context, step: Step, words: list[str], by: str) -> bool:
    """`node --test` collects tests; return False if node runs a script instead."""
    if not any(word == "--test" or word.startswith("--test=") for word in words):
        return False
    installs(context, step.folder)
    for path in context.files_of(step, words, "-r", "--require", "--import", "--loader"):
        context.add(path, "it is loaded before the tests", "runner")
    named = _positional(words, "-r --require --import --loader --test-name-pattern --env-file")
    if _named(context, step, named, by, _node_globs) or _names_only_new_tests(context, named):
        return True
    globs = [form.replace(ANY_JS, "?(c|m)[jt]s") for form in NODE_TESTS]
    _collect(context, step.folder, globs, "node --test collects it by its rules")
    return True


def _node(context: Context, step: Step, words: list[str], by: str) -> None:
    if node(context, step, words, by):
        return
    installs(context, step.folder)
    found = Run(("node", *words), step.folder).tool(TEST_TOOLS)
    if found is None:
        run_interpreter(context, step, words, by)
        return
    tool, position = found
    for path in context.files_of(step, words[: position - 1], *LOADED_FIRST):
        context.add(path, "it is loaded before the tests", "runner")
    HANDLERS[tool](context, step, words[position:], by)


def jest(context: Context, step: Step, words: list[str], by: str) -> None:
    """jest collects testMatch or testRegex, snapshots, mocks and set-up files."""
    installs(context, step.folder)
    settings, _, place = configured(context, step.folder, "jest")
    for path in context.files_of(step, words, "-c", "--config"):
        context.add(path, f"{by} names it", "config")
        text = context.tree.text(path) or ""
        settings, place = context.tree.json(path) or _read_lists(text), folder_of(path)
        _count_named_files(context, place, text, path)
    globs = texts(settings.get("testMatch"))
    for pattern in texts(settings.get("testRegex")):
        _by_regex(context, place, pattern, "jest collects it by testRegex")
        globs = globs or ["!"]
    usual = [f"**/__tests__/**/*.{ANY_JS}", f"**/?(*.)+(spec|test).{ANY_JS}"]
    named = _positional(words, "-t -c --config --testNamePattern")
    if not _names_only_new_tests(context, named):
        _collect(context, place, globs or usual, "jest collects it by its rules")
    _named(context, step, named, by, usual)
    context.collect(inside(place, "**/__snapshots__/**"), "jest compares with it", "fixture")
    context.collect(inside(place, "**/__mocks__/**"), "jest puts it in place of modules", "fixture")


def _by_regex(context: Context, place: str, pattern: str, why: str) -> None:
    try:
        regex = re.compile(pattern)
    except re.error:
        return
    for path in context.tree.under(place)[:100_000]:
        if "node_modules/" not in path and len(path) < 300 and regex.search(f"/{path}"):
            context.collect(path, why)


def vitest(context: Context, step: Step, words: list[str], by: str) -> None:
    """vitest collects `include` and snapshots; vite's own configuration counts as well."""
    installs(context, step.folder)
    settings, text, place = configured(context, step.folder, "vitest")
    vite, _, where = configured(context, step.folder, "vite")
    if not text:
        settings, place = vite, where
    globs = texts(settings.get("include")) or [f"**/*.{{test,spec}}.{ANY_JS}"]
    words = [word for word in words if word not in ("run", "watch", "related")]
    named = _positional(words, "-t -c --config -r --root")
    if not _names_only_new_tests(context, named):
        _collect(context, place, globs, "vitest collects it by its rules")
    context.collect(inside(place, "**/__snapshots__/**"), "vitest compares with it", "fixture")
    context.collect(inside(place, "**/__mocks__/**"), "vitest puts it in place", "fixture")
    _named(context, step, named, by, globs)


def mocha(context: Context, step: Step, words: list[str], by: str) -> None:
    """mocha collects its spec, or ./test."""
    installs(context, step.folder)
    settings, text, place = configured(context, step.folder, "mocha")
    if text and not settings:
        settings = {
            "spec": re.findall(r"^\s*(?:-\s*|spec:\s*)[\"']?([^\s\"':#]+\.\w+)", text, re.M)
        }
    for path in context.files_of(step, words, "-r", "--require", "--file", "--config"):
        context.add(path, "mocha loads it before the tests", "runner")
    deep = "--recursive" in words or settings.get("recursive")
    form = f"{'**/' if deep else ''}*.{ANY_JS}"
    named = _positional(words, "-r --require --file -R --reporter -t --timeout -g --grep --config")
    if _named(context, step, named, by, [form]) or _names_only_new_tests(context, named):
        return
    if globs := texts(settings.get("spec")):
        _collect(context, place, globs, "mocha collects it by its spec")
        return
    context.name_folder(join(step.folder, "test"), "mocha collects it")
    _collect(context, step.folder, [f"test/{form}"], "mocha collects it by its rules")


def _simple(program: str, *globs: str) -> Handler:
    def handler(context: Context, step: Step, words: list[str], by: str) -> None:
        """Collect a tool's globs, those of its configuration first."""
        installs(context, step.folder)
        settings, _, place = configured(context, step.folder, program)
        wanted = [one for key in ("files", "spec", "testDir", "include")
                  for one in texts(settings.get(key))]  # fmt: skip
        words = [word for word in words if word not in ("test", "run")]
        named = _positional(words, "-c --config -g -t")
        if not (_named(context, step, named, by, globs) or _names_only_new_tests(context, named)):
            _collect(context, place, wanted or globs, f"{program} collects it by its rules")
        context.collect(
            inside(place, "**/*-snapshots/**"), f"{program} compares with it", "fixture"
        )

    return handler


def bun_test(context: Context, step: Step, words: list[str], by: str) -> None:
    """`bun test` collects its usual globs."""
    _simple("bun", f"**/*[._]{{test,spec}}.{ANY_JS}")(context, step, words, by)


def deno(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow `deno test`, `deno task` and `deno run`."""
    installs(context, step.folder)
    if words[:1] == ["test"]:
        globs = (f"**/{{*_,*.,}}test.{ANY_JS}", f"**/__tests__/**/*.{ANY_JS}")
        _simple("deno", *globs)(context, step, words[1:], by)
    elif words[:1] == ["task"]:
        for name in ("deno.json", "deno.jsonc"):
            shell = table(context.tree.json(join(step.folder, name)), "tasks").get(
                words[1] if len(words) > 1 else ""
            )
            if isinstance(shell, str):
                context.add(join(step.folder, name), f"{by} runs its tasks", "recipe")
                context.follow(ShellText(shell, step.folder, name))
    else:
        run_interpreter(context, step, words, by)


def tsc(context: Context, step: Step, words: list[str], by: str) -> None:
    """tsc and source linters: count what configures them."""
    installs(context, step.folder)
    context.use("eslint", step.folder, ".eslintignore")
    for path in context.files_of(step, words, "-p", "--project", "-c", "--config"):
        context.add(path, f"{by} names it", "config")


HANDLERS = handlers(
    ("node nodejs tsx ts-node", _node),
    ("deno", deno),
    ("jest react-scripts", jest),
    ("vitest", vitest),
    ("mocha _mocha", mocha),
    ("ava", _simple("ava", "test.?(c|m)js", "{src,source}/test.?(c|m)js",
                    "**/__tests__/**/*.?(c|m)js", "**/*.test.?(c|m)[jt]s",
                    "**/test-*.?(c|m)[jt]s", "**/{test,tests}/**/*.?(c|m)[jt]s")),
    ("tap", _simple("tap", f"**/{{test,tests,__tests__}}/**/*.{ANY_JS}",
                    f"**/*.{{test,spec}}.{ANY_JS}", f"**/test.{ANY_JS}")),
    ("tape", _simple("tape", "test/**/*.js")),
    ("jasmine", _simple("jasmine", "spec/**/*[sS]pec.?(m)js", "spec/support/**",
                        "spec/helpers/**")),
    ("playwright", _simple("playwright", f"**/*.@(spec|test).{ANY_JS}")),
    ("cypress", _simple("cypress", "cypress/**")),
    ("uvu", _simple("uvu", "tests/**", "test/**")),
    ("cucumber-js", _simple("cucumber", "features/**")),
    ("tsc eslint", tsc),
)  # fmt: skip
TEST_TOOLS = HANDLERS.keys() - {"node", "nodejs", "tsx", "ts-node", "deno"}
"""Tools that Node may be told to run by their file."""
