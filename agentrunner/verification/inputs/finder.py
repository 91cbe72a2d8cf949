"""Find the inputs of the proof: the files that decide what the verifying commands say."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.text.unicode import to_text
from agentrunner.verification.inputs.context import Context, ShellText
from agentrunner.verification.inputs.executed_files import follow_all
from agentrunner.verification.inputs.fixtures import RESOLVED, Fixtures
from agentrunner.verification.inputs.globs import glob_regex, is_glob, matches
from agentrunner.verification.inputs.helper_code import Asked
from agentrunner.verification.inputs.inline_programs import STEM, for_people, written_out
from agentrunner.verification.inputs.model import Input, Inputs
from agentrunner.verification.inputs.programs import Programs
from agentrunner.verification.inputs.recipes import LIFE_CYCLE
from agentrunner.verification.inputs.references import References, family_of
from agentrunner.verification.inputs.shadows import shadows_of
from agentrunner.verification.inputs.tree import ReadMany, Tree, folder_of, join
from agentrunner.verification.inputs.words_of_change import outside_of_checks
from agentrunner.verification.results.model import ReadFile

KNOWN = (RESOLVED | {"go"}) - {"shell", "c"}
"""Languages for which it is known what product code uses."""
STARTED = lazy_regex(r"^#!|__name__\s*==|require\.main\b|import\.meta\.main\b|^func main\(", re.M)
"""What makes a file a program of its own."""
QUOTED_GLOB = lazy_regex(r"[\"']([^\"'\s]*\*[^\"'\s]*)[\"']")
"""A pattern of paths in quotes."""
MOST = 200
"""The most files of a folder that tests find by a pattern."""


def find_inputs(
    shell_commands: Sequence[tuple[str, str]],
    paths: Collection[str],
    read: ReadFile,
    *,
    declared_tests: Sequence[str] = (),
    declared_product: Sequence[str] = (),
    results_files: Collection[str] = (),
    read_many: ReadMany | None = None,
    wanted: str = "",
) -> Inputs:
    """Return what decides about the commands, each a pair of shell text and folder. Pure, never
    raises.

    `paths` are all files of the tree before the run and `read` returns their content; only files
    that commands and tests lead to are read. `declared_tests` and `declared_product` are globs
    declared by a person, which take precedence. `results_files` are files that a report named as
    test files. `read_many` reads many files at once, for readers where single reads are costly.
    `wanted` is the text of everything that was asked for: code that it mentions is what the tests
    are about, even if the tests only assert its answer.
    """
    commands, inline = _with_programs(shell_commands)
    if inline:
        paths, read, read_many = [*paths, *inline], _laid_over(inline, read), None
    tree = Tree(paths, read, read_many)
    context = Context(tree)
    several = len(commands) > 1
    for index, (shell, cwd) in enumerate(commands):
        by = "the test command" if not index else f"check {index}" if several else "the command"
        context.follow(ShellText(shell, join("", cwd), by))
    follow_all(context)
    reported = dict.fromkeys(sorted(results_files), "tests of it were run before")
    for path, why in {**reported, **dict.fromkeys(inline, "it stands in the command")}.items():
        if path in tree.paths:
            context.collected[path] = why
            context.add(path, why, "test")
    for path, text in inline.items():
        _collect_globs(context, folder_of(path), to_text(text), reported)
    references = References(tree, context.python_path)
    found = _assemble(context, references, declared_tests, declared_product, wanted)
    return _without_files(inline, found) if inline else found


def _collect_globs(context: Context, folder: str, text: str, reported: Collection[str]) -> None:
    """Collect what a command's own program finds by a pattern, if tests ran that it finds so."""
    for word in QUOTED_GLOB.findall(text):
        glob = join(folder, word)
        if any(matches(path, [glob]) for path in reported):
            context.collect(glob, f"the command names {word}")


def _with_programs(
    shell_commands: Sequence[tuple[str, str]],
) -> tuple[list[tuple[str, str]], dict[str, bytes]]:
    """Return the commands with the programs in their text moved to files, and these files.

    What such a program imports and reads decides in the same way as for a program in the tree.
    """
    commands: list[tuple[str, str]] = []
    inline: dict[str, bytes] = {}
    for index, (shell, cwd) in enumerate(shell_commands):
        result = written_out(shell, cwd, f"{STEM}{index}_")
        commands.append((result.shell if result else shell, cwd))
        inline.update(result.files if result else {})
    return commands, inline


def _laid_over(files: Mapping[str, bytes], read: ReadFile) -> ReadFile:
    return lambda path: files[path] if path in files else read(path)


def _without_files(files: Collection[str], found: Inputs) -> Inputs:
    """Return the inputs without files that no tree has.

    What only such a program reads, and no code outside it, is what the program is about.
    """

    def kept(items: Sequence[Input]) -> list[Input]:
        return [replace(one, why=for_people(one.why)) for one in items if one.path not in files]

    return replace(
        found,
        deciding=kept(found.deciding),
        product=kept(found.product),
        unsure=kept([one for one in found.unsure if STEM not in one.why]),
        possible=kept(found.possible),
        before=frozenset(found.before).difference(files),
        beside=found.beside.difference(files),
    )


def _assemble(
    context: Context,
    references: References,
    declared_tests: Sequence[str],
    declared_product: Sequence[str],
    wanted: str,
) -> Inputs:
    tree, asked = context.tree, Asked(wanted)
    for pattern in declared_tests:
        for path in tree.paths:
            if matches(path, [pattern]):
                context.collected.setdefault(path, f"task.test.paths says so ({pattern})")
    declared_as_product = {path for path in tree.paths if matches(path, declared_product)}
    tests = {path for path in context.collected if not matches(path, declared_product)}
    first = Fixtures(context, references, set(tests))
    in_words = Asked(outside_of_checks(wanted))
    programs = Programs(context, references, first.product, in_words)
    executed, product, unsure = programs.tests, programs.product, programs.unsure
    for run in context.executed:
        if run.path not in executed:
            continue
        context.roots.add(folder_of(run.path))
        if run.step.feeds and run.step.fed:
            context.add(run.path, "what is compared goes through it", "fixture")
        else:
            runner = family_of(run.path) in ("", "shell")
            context.add(run.path, f"{run.by} runs it", "runner" if runner else "test")
        for word in run.step.globs:
            glob = join(run.step.folder, word)
            if is_glob(glob) and glob_regex(glob).match(run.path):
                context.collect(glob, f"{run.by} runs what lies there")
    fixtures = Fixtures(context, references, tests | executed, asked=asked)
    fixtures.find(also=tuple(unsure))
    unsure = {**fixtures.unsure, **unsure}
    product = {path: why for path, why in product.items() if path not in fixtures.compares}
    product.update(fixtures.used)
    for path, how in context.data.items():
        if path not in context.inputs and path not in tests and path not in product:
            unsure.setdefault(path, how)
    folders, names = shadows_of(context, references, tests | executed)
    unsure = {path: why for path, why in unsure.items() if path not in tests | executed}
    listed = [
        one for one in context.inputs.values()
        if one.path not in unsure and one.path not in product
        and not matches(one.path, declared_product)
    ]  # fmt: skip
    declared = [Input(one, f"task.test.paths says so ({one})", "test") for one in declared_tests]
    return Inputs(
        deciding=declared + listed,
        product=[
            *(Input(one, f"task.test.product says so ({one})", "test") for one in declared_product),
            *(Input(path, why, "test") for path, why in sorted(product.items())),
        ],
        unsure=[
            Input(path, f"taken as product; {why}, so it shows but does not prove", "test")
            for path, why in sorted(unsure.items())
            if not matches(path, [*declared_product, *declared_tests])
        ],
        programs=frozenset(context.programs),
        possible=list(context.places.values()),
        import_folders=folders,
        provided_names=names,
        declared_tests=tuple(declared_tests),
        declared_product=tuple(declared_product),
        before=tree.paths,
        scripts=frozenset(context.scripts) | LIFE_CYCLE,
        beside=used_by_tests_alone(fixtures, asked) - declared_as_product,
    )


def used_by_tests_alone(fixtures: Fixtures, asked: Asked) -> frozenset[str]:
    """Return such files; none if nothing that was asked for names code of the product.

    A driver that calls the code, and an example that a test finds by a pattern, look like library
    modules. What was asked for tells them apart, if it names other code and not them. Nothing is
    put back because of this: such code may change along with the work, but its change proves
    nothing.
    """
    product = fixtures.product
    if not asked or not product.families & KNOWN:
        return frozenset()
    texts = {path: fixtures.context.tree.text(path) or "" for path in product.sources}
    by_pattern, excused = _found_by_pattern(fixtures, asked, texts)
    named = {path for path in texts if path not in by_pattern and asked.names(path, texts[path])}
    if not named:
        return frozenset()
    unnamed = texts.keys() - named - excused
    found = {
        path
        for path in unnamed
        if family_of(path) in KNOWN
        and path not in product.entries
        and (path in by_pattern or not STARTED.search(texts[path]))
        and not fixtures.context.product_programs & {path}
    }
    reached = fixtures.reached | by_pattern
    size = -1
    while size != len(found):
        size = len(found)
        users = {path: product.imported.get(path, set()) for path in found}
        found = {
            path for path in found if users[path] <= found and (users[path] or path in reached)
        }
    return frozenset(found)


def _found_by_pattern(
    fixtures: Fixtures, asked: Asked, texts: dict[str, str]
) -> tuple[set[str], set[str]]:
    """Return code in folders that only tests name, and code that product code or the PRD names.

    For a file, a passing word in the PRD is not enough: its whole name must occur.
    """
    tree = fixtures.context.tree
    found: set[str] = set()
    excused: set[str] = set()
    for test in sorted(fixtures.tests):
        for folder in fixtures.references.mentioned(test):
            name = folder.rpartition("/")[2]
            if folder not in tree.folders or f"{test}/".startswith(f"{folder}/"):
                continue
            code = {path for path in tree.under(folder) if path in texts}
            word = re.compile(alone(name))
            others = [text for path, text in texts.items() if folder_of(path) != folder]
            if asked.speaks_of(name) or len(code) > MOST or any(map(word.search, others)):
                excused |= code
            else:
                found |= code
    return {path for path in found if not asked.writes_out(path)} - excused, excused
