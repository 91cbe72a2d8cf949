"""Test tools of Ruby, PHP, Perl and the shell."""

from __future__ import annotations

import re

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.context import Context, ShellText, handlers
from agentrunner.verification.inputs.globs import inside
from agentrunner.verification.inputs.interpreters import run_interpreter
from agentrunner.verification.inputs.references import family_by_first_line, family_of
from agentrunner.verification.inputs.shell import Step
from agentrunner.verification.inputs.tree import above, folder_of, join

GEMS = ("Gemfile", "Gemfile.lock", ".rspec", ".ruby-version", "*.gemspec")
COMPOSER = ("composer.json", "composer.lock")


def rspec(context: Context, step: Step, words: list[str], by: str) -> None:
    """RSpec collects spec/, with its helpers."""
    context.place_above(step.folder, GEMS, "configuration that RSpec or bundler reads")
    named = context.named_by(step, words)
    folders = [path for path in named if path in context.tree.folders]
    for path in [*named, *([] if folders else [join(step.folder, "spec")])]:
        context.collect_named(path, "RSpec", by, "**/*_spec.rb")
        if path not in context.tree.paths:
            why = "RSpec loads it before the tests"
            context.collect(inside(path, "**/*_helper.rb"), why, "runner")


def ruby(context: Context, step: Step, words: list[str], by: str) -> None:
    """ruby runs a script; quoted globs in its arguments name tests."""
    for name in GEMS:
        context.place(inside(step.folder, name), "it says which gems are installed")
    minitest_plugins(context, step)
    run_interpreter(context, step, words, by)
    for word in re.findall(r"[\"']([\w./*{},-]+\*[\w./*{},-]*\.rb)[\"']", " ".join(words)):
        context.collect(join(step.folder, word), f"{by} names {word}")


def minitest_plugins(context: Context, step: Step) -> None:
    """Minitest loads plug-ins from wherever Ruby finds libraries."""
    context.place(
        inside(step.folder, "**/minitest/*_plugin.rb"), "Minitest loads it as a plug-in", "runner"
    )


PHP_QUIET = lazy_regex(
    r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|/\*.*?\*/|//[^\n]*|\#\[[^\]]*\]|\#[^\n]*", re.S
)
"""Strings, comments and attributes of PHP."""
PHP_DECLARES = lazy_regex(
    r"(?:namespace\s+[\w\\]+|use\s[^()]+|declare\s*\(\s*strict_types\s*=\s*\d\s*\)"
    r"|(?P<code>(?:(?:abstract|final|readonly)\s+)*(?:class|interface|trait|enum)\s+[\w\\\s,:]+"
    r"|function\s+&?\s*\w+\s*\([^{};]*))",
    re.I,
)
"""A statement of PHP, without its block, that runs nothing."""


PHP_TOOL = lazy_regex(r"\bPHPUnit\b")
PHP_LOADS = lazy_regex(
    r"(?m)^[ \t]*(?:require|include)(?:_once)?\b[ \t(]*(?:__DIR__[ \t]*\.[ \t]*)?"
    r"['\"]/?(?P<path>[\w./-]+\.php)['\"][ \t)]*;"
)
"""A statement of PHP that loads another file, by its path from this one."""
PHPUNIT_VALUES = frozenset("-c --configuration --bootstrap --filter --group --testsuite".split())
MOST_PHP = 500
"""So many files of PHP are searched for one that loads a bootstrap as well."""


def phpunit(context: Context, step: Step, words: list[str], by: str) -> None:
    """PHPUnit collects the test suites of its configuration, or the folders that are named."""
    tree = context.tree
    for name in (*COMPOSER, "phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"):
        context.place(join(step.folder, name), "configuration that PHPUnit reads")
    configs = [join(step.folder, name) for name in ("phpunit.xml", "phpunit.xml.dist")]
    bootstraps = [*context.files_of(step, words, "--bootstrap")]
    for path in context.files_of(step, words, "-c", "--configuration"):
        configs.insert(0, path)
        context.add(path, f"{by} names it", "config")
    named = [path for path in context.named_by(step, words, PHPUNIT_VALUES) if path not in configs]
    config = next((path for path in configs if path in tree.paths), "")
    text = tree.text(config) or ""
    place = folder_of(config) if config else step.folder
    if found := re.search(r"bootstrap=\"([^\"]+)\"", text):
        bootstraps.append(join(place, found[1]))
    suites = "".join(re.findall(r"<testsuites?\b.*?</testsuites?>", text, re.S))
    folders = [
        join(place, found.strip()) for found in re.findall(r"<directory[^>]*>([^<]+)<", suites)
    ]
    for path in re.findall(r"<file>([^<]+)</file>", text):
        context.collect(join(place, path.strip()), f"{config} names it")
    for path in named or folders or [join(step.folder, "tests")]:
        if path in tree.paths or path in tree.folders:
            context.collect_named(path, "PHPUnit", by, "**/*Test.php", "**/*.phpt")
    if re.search(r"pest", step.words[0]):
        context.collect(inside(step.folder, "tests/**"), "Pest collects it")
    for path in bootstraps:  # once it is known what is a test
        _bootstrap(context, path)


def _bootstrap(context: Context, path: str) -> None:
    """A file that only declares is code that the tests reach; any other one sets them up."""
    loaded = _loaded_by_product(context, path)
    if only_declares(context.tree.text(path) or ""):
        context.loaded.add(path)
    elif loaded:
        context.loaded.update(loaded)
    else:
        context.add(path, "PHPUnit loads it before the tests", "runner")


def _loaded_by_product(context: Context, path: str) -> list[str]:
    """Return what a bootstrap loads that loads and declares only, and that product code loads too.

    [] for any other one, such as one that starts something, or is there for tests alone.
    """
    tree, text = context.tree, context.tree.text(path) or ""
    loaded = [join(folder_of(path), one["path"]) for one in PHP_LOADS.finditer(text)]
    rest = PHP_LOADS.sub("", text)
    if not loaded or not all(one in tree.paths for one in loaded) or PHP_TOOL.search(text):
        return []
    if rest.strip() != "<?php" and not only_declares(rest):
        return []
    if not all(_is_plain(tree.text(one) or "") for one in loaded):
        return []
    others = [
        one
        for one in tree.paths
        if one.endswith(".php")
        and one not in (path, *loaded, *context.collected)
        and context.named.keys().isdisjoint(above(folder_of(one)))
    ]
    for other in sorted(others)[:MOST_PHP]:
        found = PHP_LOADS.finditer(tree.text(other) or "")
        if any(join(folder_of(other), one["path"]) == path for one in found):
            return loaded
    return []


def _is_plain(source: str) -> bool:
    return only_declares(source) and not PHP_TOOL.search(source)


def only_declares(source: str) -> bool:
    """Whether a file of PHP declares classes and functions and runs nothing; if in doubt, no."""
    text = source.lstrip()
    if not text.startswith("<?php") or "?>" in text or "<<<" in text:
        return False
    text = PHP_QUIET.sub(lambda found: "''" if found[0][0] in "'\"" else " ", text[5:])
    size = -1
    while size != len(text):
        size = len(text)
        text = re.sub(r"\{[^{}]*\}", ";", text)
    statements = [one.strip() for one in text.split(";") if one.strip()]
    declared = [PHP_DECLARES.fullmatch(one) for one in statements]
    return all(declared) and any(one and one["code"] for one in declared)


def prove(context: Context, step: Step, words: list[str], by: str) -> None:
    """prove collects t/*.t, or what is named."""
    context.place(join(step.folder, ".proverc"), "configuration that prove reads")
    for name in ("cpanfile", "Makefile.PL", "Build.PL", "dist.ini"):
        context.place(join(step.folder, name), "it says what is installed or built")
    valued = ("-j", "-e", "-I", "-P", "--exec", "-a", "--formatter", "-M")
    deep = "**/" * any(re.fullmatch(r"-\w*r\w*|--recurse", word) for word in words)
    for path in context.named_by(step, words, valued) or [join(step.folder, "t")]:
        context.collect_named(path, "prove", by, f"{deep}*.t")
        is_file = path in context.tree.paths
        glob = inside(path, f"{deep}*.t")
        for found in [path] if is_file else context.tree.matching(glob):
            _follow_script(context, step, found)
    context.place(
        inside(step.folder, "lib/Test/**"), "Perl finds it before Test:: modules", "runner"
    )


def _follow_script(context: Context, step: Step, path: str) -> None:
    """Follow a test that is a shell script to what it runs, as if a shell were to run it."""
    text = context.tree.text(path) or ""
    if "shell" in (family_by_first_line(text), family_of(path)):
        context.follow(ShellText(text, step.folder, path, folder_of(path)))


def bats(context: Context, step: Step, words: list[str], by: str) -> None:
    """bats collects the files and folders that are named."""
    for path in context.named_by(step, words):
        context.collect_named(path, "bats", by, "**/*.bats")


def cucumber(context: Context, step: Step, words: list[str], by: str) -> None:
    """cucumber collects features/ with its steps."""
    context.use("cucumber", step.folder)
    context.name_folder(join(step.folder, "features"), "cucumber collects it")
    context.collect(inside(step.folder, "features/**"), "cucumber collects it")


def shellspec(context: Context, step: Step, words: list[str], by: str) -> None:
    """shellspec and busted collect spec/."""
    program = step.program
    context.use(program, step.folder, f".{program}")
    for path in context.named_by(step, words) or [join(step.folder, "spec")]:
        context.name_folder(path, f"{program} collects it")
        context.collect(inside(path, "**/*_spec.*"), f"{program} collects *_spec")


HANDLERS = handlers(
    ("rspec", rspec),
    ("ruby", ruby),
    ("phpunit pest paratest", phpunit),
    ("prove", prove),
    ("bats", bats),
    ("cucumber", cucumber),
    ("shellspec busted", shellspec),
)
