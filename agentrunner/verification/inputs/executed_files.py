"""From a command to what it executes: unwrap wrappers, ask interpreters for their script."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs import (
    recipes,
    tools_compiled,
    tools_js,
    tools_other,
    tools_python,
)
from agentrunner.verification.inputs.context import Context, Handler, ShellText, positional
from agentrunner.verification.inputs.globs import is_glob
from agentrunner.verification.inputs.interpreters import INTERPRETERS, hand_over, run_interpreter
from agentrunner.verification.inputs.shell import (
    ALSO_LOOK,
    COMPARES,
    LOOKS,
    PASSES_ON,
    Step,
    steps_of,
)
from agentrunner.verification.inputs.tree import folder_of, join

TAKES_VALUE = frozenset(
    """-n -u -s -k -p --package --python --group --extra --with --with-editable --only-group
    --directory --project --env-file --index --signal --kill-after --user -c --call -E --adjustment
    --only --without""".split()
)
"""Options of wrappers that are followed by a value."""
WRAPPERS = frozenset(
    """env exec time nice timeout npx bunx pnpx command sudo xvfb-run nohup ionice stdbuf setsid
    cross-env dotenv xargs faketime catchsegv valgrind strace unbuffer chronic busybox""".split()
)
RUNNERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys("uv poetry pdm pipenv hatch rye coverage conda pixi".split(), ("run",)),
    **dict.fromkeys(("bundle", "direnv"), ("exec",)),
    **dict.fromkeys(("npm", "mise"), ("exec", "x")),
    **dict.fromkeys(("pnpm", "yarn"), ("exec", "dlx")),
    "bun": ("x",),
}
"""Programs that run another one after one of their subcommands."""
SHELLS = lazy_regex(r"^(sh|bash|dash|zsh|ksh|ash|source|\.)$")
PYTHON = lazy_regex(r"^(python|pypy)[\d.]*t?$")
RUNS = lazy_regex(
    r"(?<![\w./-])(?:python[\d.]*|node|ruby|perl|php|lua|java|go|cargo|make|npm|npx|(?:ba|da)?sh)\s"
)
"""What would run code anywhere in a text: after `xargs`, in an awk program."""
READS_PATTERNS = frozenset("grep egrep fgrep rg jq".split())
"""Programs whose `-f FILE` lists what they look for; `test -f` asks whether a file exists."""
PATH_TEST = lazy_regex(r"(test|\[\[?)( !)? -[adefhLrswx] [^\s\0\1$]+( \]\]?)?")
"""What `test` asks about a path; a substitution would run something."""
BUILDS = frozenset("cc gcc g++ c++ clang clang++ rustc ld tcc javac kotlinc".split())

HANDLERS: dict[str, Handler] = {
    **recipes.HANDLERS,
    **tools_python.HANDLERS,
    **tools_js.HANDLERS,
    **tools_compiled.HANDLERS,
    **tools_other.HANDLERS,
}


def follow_all(context: Context) -> None:
    """Process everything that the queued texts lead to."""
    for step, text in context.steps():
        take(context, step, text.by)


def take(context: Context, step: Step, by: str, *, depth: int = 0) -> None:
    """Process one simple command."""
    words = list(step.words)
    if not words or depth > 8:
        return
    program = words[0].rpartition("/")[2]
    _environment(context, step)
    if step.into == "read":
        _case_tables(context, step, words[1:], by)
    for path in step.reads:
        if program == "read":
            context.add(path, f"{by} takes its cases from it", "fixture")
        elif context.tree.exists(path):
            context.data.setdefault(path, f"{by} hands it to {program}")
    if program in ("hatch", "pdm", "rye") and recipes.python_scripts(context, step, words[1:], by):
        return
    rest = _unwrapped(program, words[1:])
    if rest is not None:
        if rest and program == "coverage":
            context.use("coverage", step.folder)
            rest = ["python", *rest]
        if program in ("npx", "bunx", "pnpx", "npm", "pnpm", "yarn") and rest:
            rest[0] = rest[0].partition("@")[0] or rest[0]
        take(context, replace(step, words=tuple(rest)), by, depth=depth + 1)
        return
    own = context.file(step.folder, words[0]) if "/" in words[0] else None
    if own and program not in ("gradlew", "mvnw"):
        _run_file(context, own, step, words[1:], by)
    elif SHELLS.match(program):
        _shell(context, step, words[1:], by)
    elif PYTHON.match(program):
        tools_python.python(context, step, words[1:], by, take)
    elif handler := HANDLERS.get(program):
        handler(context, step, words[1:], by)
    elif INTERPRETERS.match(program):
        run_interpreter(context, step, words[1:], by)
    elif (built := join(step.folder, words[0])) in context.built:
        for source in context.built[built]:
            context.execute(source, step, by)
        hand_over(context, step, words[1:], by)
    elif program == "cp":
        _copied(context, words[1:])
    elif program in COMPARES:
        _compared(context, step, words[1:], by)
    elif program == "java":
        _java(context, step, words[1:], by)
    elif program in BUILDS:
        _build(context, step, words[1:])
    elif program in LOOKS:
        if program in READS_PATTERNS:
            _pattern_files(context, step, words[1:], by)
    elif re.fullmatch(r"[\w.+-]+", program):
        context.use(program, step.folder)
        _options(context, step, words[1:], by)


def _environment(context: Context, step: Step) -> None:
    """Count files named in a command's environment, and note where Python then looks."""
    for name, value in step.env:
        for word in re.split(r"[\s:=,]+", value):
            if path := context.file(step.folder, word):
                context.add(path, f"the command names it in {name}", "config")
        if name == "PYTHONPATH":
            places = [join(step.folder, place) for place in value.split(":") if place]
            context.python_path.update(places)


def _case_tables(context: Context, step: Step, words: list[str], by: str) -> None:
    """Read `cat cases.txt | while read …`: the cases of a check."""
    for word in words:
        if not word.startswith("-") and (path := context.file(step.folder, word)):
            context.add(path, f"{by} takes its cases from it", "fixture")


def _unwrapped(program: str, rest: list[str]) -> list[str] | None:
    """Return the command that a wrapper runs; None if `program` is not a wrapper."""
    if program in RUNNERS:
        while rest and rest[0].startswith("-"):
            rest = rest[2:] if rest[0] in TAKES_VALUE else rest[1:]
        if not rest or rest[0] not in RUNNERS[program]:
            return None
        rest = rest[1:]
    elif program not in WRAPPERS:
        return None
    while rest:
        word = rest[0]
        if word == "--":
            return rest[1:]
        if word.startswith("-"):
            if program == "coverage" and word == "-m":
                return rest
            rest = rest[2:] if word in TAKES_VALUE else rest[1:]
        elif re.match(r"[A-Za-z_]\w*=", word) or re.fullmatch(r"[\d.]+[smhd]?", word):
            rest = rest[1:]
        else:
            return rest
    return rest


def _shell(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow `sh -c TEXT`, `sh FILE`, `. FILE`."""
    while words and words[0].startswith("-") and words[0] != "-":
        if re.fullmatch(r"-\w*c", words[0]) and len(words) > 1:
            shell = words[1]
            context.follow(ShellText(shell, step.folder, by))
            return
        words = words[2:] if words[0] in ("-o", "--rcfile", "--init-file") else words[1:]
    if words and (path := context.existing(step.folder, words[0])):
        _run_shell(context, path, step, words[1:], by)


def _run_shell(context: Context, path: str, step: Step, words: list[str], by: str) -> None:
    context.execute(path, step, by)
    hand_over(context, step, words, by)
    if not step.feeds:
        text = context.tree.text(path) or ""
        context.follow(ShellText(text, step.folder, path, folder_of(path), tuple(words)))


def _run_file(context: Context, path: str, step: Step, words: list[str], by: str) -> None:
    """Follow a file of the tree that is run by its path."""
    text = context.tree.text(path) or ""
    first = text.split("\n", 1)[0]
    if re.match(r"#!.*\b(sh|bash|dash|zsh|ksh)\b", first) or path.endswith((".sh", ".bash")):
        _run_shell(context, path, step, words, by)
        return
    if re.match(r"#!.*\bpython", first):
        tools_python.python(context, step, [step.words[0], *words], by, take)
        return
    context.execute(path, step, by)
    hand_over(context, step, words, by)


def _only_looks(command: str) -> bool:
    """Whether a command runs only programs that look at files: the files are its subject."""
    steps = steps_of(command)
    looking = LOOKS | COMPARES | PASSES_ON | ALSO_LOOK
    return (
        bool(steps)
        and all(step.program in looking for step in steps if step.words)
        and not RUNS.search(command)
    )


def only_reads(command: str) -> bool:
    """Whether a command only looks at files, and none of them says what it looks for."""
    return _only_looks(command) and not any(
        step.into == "read"
        or step.program in COMPARES
        or (
            step.program in READS_PATTERNS
            and any(re.match(r"-\w*f|--file", word) for word in step.words[1:])
        )
        or (step.words[0].endswith("sum") and not {"-c", "--check"}.isdisjoint(step.words))
        for step in steps_of(command)
        if step.words
    )


def asks_for_paths(command: str) -> bool:
    """Whether a command only asks which files exist: `test -f NEW && ! test -e OLD`."""
    steps = steps_of(command)
    return bool(steps) and all(PATH_TEST.fullmatch(" ".join(step.words)) for step in steps)


def _copied(context: Context, words: list[str]) -> None:
    """Record `cp FILE COPY`, `cp FILE FOLDER`."""
    named = [word for word in words if not word.startswith("-")]
    if len(named) == 2:
        source, copy = named
        within = f"{copy.rstrip('/')}/{source.rpartition('/')[2]}"
        context.copies |= {copy: source, within: source}


def _compared(context: Context, step: Step, words: list[str], by: str) -> None:
    """Count the files that output is compared with, unless the commands themselves wrote them.

    A copy that they made stands for its source. If the source is on both sides, the command asks
    whether the file stays unchanged, and another text in it would be on both sides as well.
    """
    compared = [context.copies.get(word, word) for word in words]
    for word in compared:
        place = join(step.folder, word)
        if not word.startswith(("-", "/")) and is_glob(word) and place not in context.tree.paths:
            context.collect(place, f"{by} compares with it", "fixture")  # a folder of a loop
            continue
        path = None if word.startswith("-") else context.existing(step.folder, word)
        if not path or path in context.written:
            continue
        if path in context.tree.folders:
            context.collect(f"{path}/**", f"{by} compares with it", "fixture")
        else:
            itself = compared.count(word) > 1
            context.add(path, f"{by} compares with it", "fixture", itself=itself)


def _pattern_files(context: Context, step: Step, words: list[str], by: str) -> None:
    """Count what `grep -f FILE` looks for; everything else passed to it is the product."""
    for option, value in pairwise(words):
        if re.fullmatch(r"-\w*f|--file", option) and (path := context.existing(step.folder, value)):
            context.add(path, f"{by} looks for what it lists", "fixture")


def _build(context: Context, step: Step, words: list[str]) -> None:
    sources = [join(step.folder, word) for word in words if not word.startswith("-")]
    output = "a.out"
    for option, value in pairwise(words):
        if option == "-o":
            output = value
    found = tuple(path for path in sources if path in context.tree.paths)
    if found:
        context.built.setdefault(join(step.folder, output), found)


def _java(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow `java -cp out CheckTill`, `java Check.java` to the source of the class that is run."""
    valued = ("-cp", "-classpath", "--class-path", "-p", "--module-path")
    for word in positional(words, valued)[:1]:
        name = word.rpartition("/")[2].removesuffix(".java").rpartition(".")[2]
        compiled = {path for sources in context.built.values() for path in sources}
        if path := context.file(step.folder, word):
            compiled.add(path)
        place = f"/{word.replace('.', '/')}.java"
        if not any(f"/{source}".endswith(place) for source in compiled):
            # `javac $(find src test -name '*.java')`, `javac @sources.txt`: any may be meant.
            compiled |= {one for one in sorted(context.tree.paths) if one.endswith(".java")}
        for source in sorted(compiled):
            if source.rpartition("/")[2] == f"{name}.java":
                _main_class(context, source, compiled - {source}, step, by)


def _main_class(context: Context, source: str, others: set[str], step: Step, by: str) -> None:
    """Count a class that is run as a test if it uses other classes and can fail."""
    text = context.tree.text(source) or ""
    stems = [other.rpartition("/")[2].partition(".")[0] for other in others]
    uses = any(re.search(rf"\b{re.escape(stem)}\b", text) for stem in stems)
    if uses and not step.feeds and re.search(r"\bassert\b|\bthrow\b|System\.exit", text):
        context.collect(source, f"{by} runs it")


def _options(context: Context, step: Step, words: list[str], by: str) -> None:
    """For an unknown tool: count the files that its options name as configuration."""
    for index, word in enumerate(words):
        value = ""
        if word.startswith("-"):
            value = word.partition("=")[2]
            if not value and re.fullmatch(r"-c|-C|--conf(ig)?(-file)?|--rcfile|--settings", word):
                value = words[index + 1] if index + 1 < len(words) else ""
        if path := context.file(step.folder, value):
            context.add(path, f"{by} configures {step.words[0]} with it", "config")
