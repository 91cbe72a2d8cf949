"""Recipes: make, just, npm scripts, tox and similar tools, followed to what they run."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes, to_text
from agentrunner.verification.inputs.context import Context, ShellText, handlers
from agentrunner.verification.inputs.inline_programs import (
    VARIABLE,
    ProgramPlace,
    without_unread,
    written_out,
)
from agentrunner.verification.inputs.make import NAMES, read_makefile
from agentrunner.verification.inputs.shell import Step, steps_of
from agentrunner.verification.inputs.tools_js import bun_test
from agentrunner.verification.inputs.tools_other import minitest_plugins
from agentrunner.verification.inputs.tree import above, folder_of, join
from agentrunner.verification.inputs.words_of_change import outside_of_checks
from agentrunner.verification.results.commands import (
    HOOKED,
    HOOKS,
    SESSIONS,
    hook_commands,
    session_commands,
)
from agentrunner.verification.results.files import table, texts
from agentrunner.verification.syntax.languages import program_language

RECIPE = lazy_regex(r"(?m)^\t[@+ \t]*(?P<shell>[^\s@+-](?:[^\n\\]|\\(?:.|\n))*)")
"""A recipe line whose exit code counts, with its continuation lines."""
MOST_BYTES = 200_000


@dataclass(frozen=True)
class Carrier:
    """A file that contains programs.

    They are written out like those inside a command, and put back where they were.
    """

    path: str
    kind: str
    """"make", "json" or "sh"."""
    source: str
    text: str
    """The source with calls of files where its programs were."""
    files: Mapping[str, bytes]
    places: tuple[ProgramPlace, ...]
    blind: str
    """The source with `false` in place of programs that the shell changes before they run."""

    @property
    def unread(self) -> bool:
        """Whether there is such a program."""
        return self.blind != self.source

    def put_back(self, text: str, files: Mapping[str, bytes]) -> str:
        """Return a version of the file with these texts of its programs where they were."""
        head = ""
        for one in self.places:
            program = to_text(files[one.path])
            made = one.with_text(program)
            if self.kind == "make" and "\n" in made:
                name = re.sub(r"\W", "_", one.path)
                head += f"define {name}\n{_written(program, 'make')}\nendef\nexport {name}\n"
                made = f'{one.before} "${name}"'
            text = text.replace(_written(one.call, self.kind), _written(made, self.kind))
        return head + text

    def failing(self, paths: Collection[str]) -> str:
        """Return the file with `false` in place of some of its programs."""
        text = self.text
        for one in self.places:
            if one.path in paths:
                text = text.replace(_written(one.call, self.kind), "false ")
        return self.put_back(text, self.files)

    def only(self, paths: Collection[str]) -> Carrier:
        """Return the same carrier with only some of its programs."""
        places = tuple(one for one in self.places if one.path in paths)
        others = tuple(one for one in self.places if one.path not in paths)
        text = replace(self, places=others).put_back(self.text, self.files)
        files = {path: source for path, source in self.files.items() if path in paths}
        return replace(self, text=text, files=files, places=places)


MAKES = frozenset({"make", "gmake"})
MAKEFILE = lazy_regex(r"(?:.*/)?(?:GNUmakefile|[mM]akefile|[^/]*\.(?:mk|mak|make))")
WORD = lazy_regex(r"[A-Za-z][\w-]*")
MOST_LINES = 5_000

MOST_PACKAGES = 300
JUSTFILES = ("justfile", "Justfile", ".justfile")
JUST_RULE = lazy_regex(r"^@?([\w-]++)([^:\n]*):(?!=)([^\n]*)\n((?:[ \t]+[^\n]*\n?|\n)*)", re.M)
LIFE_CYCLE = frozenset(
    """preinstall install postinstall preprepare prepare postprepare prepublish prepack postpack
    dependencies prebuild""".split()
)
"""Package scripts that run on installation without being asked for."""
NPM_COMMANDS = frozenset(
    """install i ci add exec x dlx audit pack publish link view init config cache version why
    outdated update rebuild prune""".split()
)


def make(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow make: its files, the recipes of the targets that are needed, and what they build."""
    folder, named, rest = step.folder, "", []
    variables: dict[str, str] = {}
    at = 0
    while at < len(words):
        word, value = words[at], words[at + 1] if at + 1 < len(words) else ""
        if word in ("-C", "--directory") or word.startswith(("-C", "--directory=")):
            is_separate = word in ("-C", "--directory")
            folder = join(
                folder, value if is_separate else word.removeprefix("-C").partition("=")[2]
            )
            at += is_separate
        elif word in ("-f", "--file", "--makefile"):
            named = value
            at += 1
        elif word.startswith(("--file=", "--makefile=")):
            named = word.partition("=")[2]
        elif word in ("-j", "-l", "-o", "-W", "-I"):
            at += value.isdigit() or word in ("-o", "-W", "-I")
        elif "=" in word and not word.startswith("-"):
            variables[word.partition("=")[0].rstrip(":+?")] = word.partition("=")[2]
        else:
            rest.append(word)
        at += 1
    makefile = read_makefile(context.tree, folder, named)
    makefile.variables.update(variables)
    goals = makefile.goals(rest)
    built = makefile.built(goals)
    main = next(iter(makefile.files), "")
    for path, why in makefile.files.items():
        why = f"{by} runs its targets" if path == main else why
        context.add(path, why, "recipe")
        for target in built:
            context.add(path, why, "recipe", part=target)
    for name in NAMES:
        if not named:
            context.place(join(folder, name), "make reads it", "recipe")
    _programs(context, folder, built)
    for goal in makefile.goals([]):
        if goal not in goals:
            for path in _sources(context, folder, goal, makefile.built([goal])):
                context.product_programs.add(path)
    for _, recipe in built.values():
        for line in recipe:
            context.follow(ShellText(line, folder, main or "make"))
    for shell in makefile.shell[:50]:
        context.follow(ShellText(f": $({shell})", folder, main))


def _programs(context: Context, folder: str, built: dict[str, tuple[list[str], list[str]]]) -> None:
    """Record the sources of the programs that a makefile builds."""
    for target in built:
        sources = _sources(context, folder, target, built)
        if sources and join(folder, target) not in context.tree.paths:
            context.built.setdefault(join(folder, target), tuple(sources))


def _sources(
    context: Context, folder: str, target: str, built: dict[str, tuple[list[str], list[str]]]
) -> list[str]:
    found: list[str] = []
    waiting, seen = [target], set()
    while waiting:
        one = waiting.pop()
        if one in seen or one not in built:
            continue
        seen.add(one)
        for need in built[one][0]:
            path = join(folder, need)
            if path in context.tree.paths:
                found.append(path)
            else:
                waiting.append(need)
    return found


def just(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow just: the named recipes, with their dependencies."""
    for place in above(step.folder):
        for name in JUSTFILES:
            path = join(place, name)
            text = context.tree.text(path)
            if text is None:
                continue
            rules = {found[1]: (found[3].split(), found[4]) for found in JUST_RULE.finditer(text)}
            waiting = [word for word in words if word in rules] or list(rules)[:1]
            done: set[str] = set()
            while waiting:
                target = waiting.pop()
                if target in done or target not in rules:
                    continue
                done.add(target)
                needs, body = rules[target]
                waiting += [need.strip("()") for need in needs]
                context.add(path, f"{by} runs its recipes", "recipe", part=target)
                lines = [line.strip().lstrip("@-") for line in body.split("\n")]
                context.follow(ShellText("\n".join(lines), place, path))
            for found in re.finditer(r"^(?:import|mod)\s+['\"]([^'\"]+)", text, re.M):
                context.add(join(place, found[1]), f"included by {path}", "recipe")
            return


def package_scripts(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow npm, pnpm, yarn and bun: the named script, and those before and after it."""
    program = step.program
    folder, at = step.folder, 0
    names: list[str] = []
    rest: list[str] = []
    while at < len(words):
        word = words[at]
        if word == "--":
            rest = words[at + 1 :]
            break
        if word in ("--prefix", "-C", "--cwd", "--dir", "--filter", "-F", "-w", "--workspace"):
            value = words[at + 1] if at + 1 < len(words) else ""
            if value in context.tree.folders or join(folder, value) in context.tree.folders:
                folder = join(folder, value)
            at += 1
        elif not word.startswith("-"):
            (rest if names and names != ["run"] else names).append(word)
            if names[:1] in (["run"], ["run-script"]) and len(names) == 1:
                names = []
        at += 1
    name = {"t": "test", "tst": "test", "start": "start"}.get(names[0], names[0]) if names else ""
    if not name or name in NPM_COMMANDS:
        return
    if {"-r", "--recursive", "-ws", "--workspaces"} & set(words):
        _in_every_package(context, folder, name, by)
    if program == "bun" and name == "test" and "run" not in words:
        bun_test(context, step, rest, by)
        return
    for place in above(folder):
        path = join(place, "package.json")
        if context.tree.exists(path):
            scripts = table(context.tree.json(path), "scripts")
            if name not in scripts and program != "npm":
                shell = shlex.join([name, *rest])  # yarn jest, pnpm vitest: an installed program
                context.follow(ShellText(shell, folder, by))
            _run_scripts(context, path, name, rest, by)
            break
    configs = (".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml")
    context.place_above(folder, configs, f"configuration that {program} reads")


def _in_every_package(context: Context, folder: str, name: str, by: str) -> None:
    """Follow a script in every package below a folder."""
    found = [path for path in context.tree.under(folder)
             if path.endswith("package.json") and "node_modules/" not in path]  # fmt: skip
    for path in found[:MOST_PACKAGES]:
        if name in table(context.tree.json(path), "scripts"):
            _run_scripts(context, path, name, [], by)


def workspaces(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow turbo, nx and lerna: a script in every package."""
    program = step.program
    context.use(program, step.folder, "package.json", f"{program}.json")
    for word in words:
        if not word.startswith("-") and word not in ("run", "run-many"):
            _in_every_package(context, step.folder, word.rpartition(":")[2], by)


def _run_scripts(context: Context, path: str, name: str, rest: list[str], by: str) -> None:
    scripts = table(context.tree.json(path), "scripts")
    for script in (f"pre{name}", name, f"post{name}"):
        text = scripts.get(script)
        context.scripts.add(script)
        context.add(path, f"{by} runs its scripts", "recipe", part=script)
        if isinstance(text, str):
            more = " ".join(rest) if script == name else ""
            context.follow(ShellText(f"{text} {more}".strip(), folder_of(path), path))


def run_scripts_by_pattern(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow npm-run-all, run-s, run-p, concurrently: scripts by name, or whole commands."""
    path = join(step.folder, "package.json")
    names = list(table(context.tree.json(path), "scripts"))
    for word in words:
        plain = word.removeprefix("npm:")
        stem = plain.split("*", 1)[0]
        wanted = [name for name in names if name == plain or ("*" in plain and stem and
                  name.startswith(stem))]  # fmt: skip
        for name in wanted:
            _run_scripts(context, path, name, [], by)
        if not wanted and " " in word:
            context.follow(ShellText(word, step.folder, by))


def tox(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow tox: the commands of its environments."""
    context.use("tox", step.folder, "setup.cfg", "pyproject.toml")
    for place in above(step.folder):
        text = context.tree.text(join(place, "tox.ini"))
        if text is None:
            continue
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(text)
        except configparser.Error:
            return
        for section in parser.sections():
            if section.startswith("testenv"):
                for key in ("commands_pre", "commands", "commands_post"):
                    shell = re.sub(r"\{[^}]*\}", "", parser.get(section, key, fallback=""))
                    lines = [line.strip().lstrip("-") for line in shell.split("\n")]
                    context.follow(ShellText("\n".join(lines), place, join(place, "tox.ini")))
        return


def nox(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow nox and invoke: the commands written as texts in their file."""
    path = join(step.folder, SESSIONS[step.program])
    context.add(path, f"{step.program} runs it", "runner")
    for text in session_commands(context.tree.text(path) or ""):
        context.follow(ShellText(text, step.folder, path))


def pre_commit(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow pre-commit: the hooks that the repository itself defines."""
    path = join(step.folder, HOOKS)
    context.add(path, f"{by} runs its hooks", "config")
    for text in hook_commands(context.tree.text(path) or ""):
        context.follow(ShellText(text, step.folder, path))


def task(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow go-task and similar tools: the whole file counts, with every command in it."""
    for name in ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "Taskfile.dist.yml"):
        path = join(step.folder, name)
        if text := context.tree.text(path):
            context.add(path, f"{by} runs its tasks", "recipe")
            for found in re.finditer(r"^\s*-\s*(?:cmd:\s*)?([^\n#:]+)$", text, re.M):
                context.follow(ShellText(found[1].strip("'\" "), step.folder, path))


def composer(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow composer: the named script."""
    path = join(step.folder, "composer.json")
    scripts = table(context.tree.json(path), "scripts")
    for word in words:
        for name in (f"pre-{word}-cmd", word, f"post-{word}-cmd"):
            for text in texts(scripts.get(name)):
                context.scripts.add(name)
                context.add(path, f"{by} runs its scripts", "recipe", part=name)
                shell = text.removeprefix("@php ")
                if shell.startswith("@"):
                    shell = f"composer {shell[1:]}"
                context.follow(ShellText(shell, step.folder, path))


def rake(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow rake: its file, and the test patterns that it names."""
    minitest_plugins(context, step)
    for name in ("Rakefile", "rakefile", "Rakefile.rb"):
        path = join(step.folder, name)
        text = context.tree.text(path)
        if text is None:
            continue
        context.add(path, f"{by} runs its tasks", "runner")
        globs = re.findall(
            r"[\"']([\w./*{},-]*(?:\*|_test|_spec|test_)[\w./*{},-]*\.rb)[\"']", text
        )
        for glob in globs or ["test/**/*_test.rb", "test/**/test_*.rb"]:
            context.collect(join(step.folder, glob), f"{path} collects {glob}")
        if "rspec" in text.lower() or "RSpec" in text:
            context.follow(ShellText("rspec", step.folder, path))
        return


def python_scripts(context: Context, step: Step, words: list[str], by: str) -> bool:
    """Follow scripts of pyproject.toml (hatch, pdm, poe, taskipy); return whether one was found."""
    for place in above(step.folder):
        path = join(place, "pyproject.toml")
        tool = table(context.tree.toml(path), "tool")
        tables = [
            table(tool, "pdm", "scripts"),
            table(tool, "poe", "tasks"),
            table(tool, "taskipy", "tasks"),
            table(tool, "rye", "scripts"),
            table(tool, "hatch", "scripts"),
            *(table(env, "scripts") for env in table(tool, "hatch", "envs").values()),
        ]
        for word in words:
            name = word.rpartition(":")[2]
            for scripts in tables:
                value = scripts.get(name)
                value = value.get("cmd") if isinstance(value, dict) else value
                commands = texts(value)
                for command in commands:
                    context.add(path, f"{by} runs its scripts", "recipe", part=name)
                    context.scripts.add(name)
                    context.follow(ShellText(command, place, path))
                if commands:
                    return True
    return False


def python_runner(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow poe and task: scripts of pyproject.toml, or else go-task's file."""
    if not python_scripts(context, step, words, by):
        task(context, step, words, by)


HANDLERS = handlers(
    ("make gmake", make),
    ("just", just),
    ("npm pnpm yarn bun", package_scripts),
    ("npm-run-all run-s run-p concurrently", run_scripts_by_pattern),
    ("turbo nx lerna", workspaces),
    ("tox", tox),
    (" ".join(SESSIONS), nox),
    (" ".join(HOOKED), pre_commit),
    ("task poe", python_runner),
    ("composer", composer),
    ("rake", rake),
)


def targets_of(command: str) -> set[str]:
    """Return the targets that a command passes to make."""
    return {
        word
        for step in steps_of(command)
        if step.words and step.program in MAKES
        for word in step.words[1:]
        if WORD.fullmatch(word)
    }


def is_wanted(prd_text: str, targets: Collection[str], stood: Collection[bytes] = ()) -> bool:
    """Whether a PRD mentions each of these as a make target, outside its checks.

    One that the makefiles before the run have (`stood`, their texts) has to be one whose makefile
    the PRD names.
    """
    text = outside_of_checks(prd_text)
    mark = r"[`'\"*]*"
    names_makefile = re.search(r"(?i)\b(?:GNU)?makefile\b", text)
    for one in targets:
        head = re.compile(to_bytes(rf"(?m)^{re.escape(one)}[ \t]*:(?!=)"))
        if not names_makefile and any(head.search(makefile) for makefile in stood):
            return False
    return bool(targets) and all(
        re.search(
            rf"(?i)\b(?:make|targets?|ターゲット)\s*{mark}{re.escape(one)}\b"
            rf"|(?<![\w-]){re.escape(one)}{mark}\s*(?:という)?(?:make\s+)?(?:の)?\s*(?:targets?\b|ターゲット)",
            text,
        )
        for one in targets
    )


def idle(before: str, after: str) -> str | None:
    """Return `after` with its new recipe lines doing nothing; None if it has no new ones."""
    old_lines, new_lines = before.splitlines(), after.splitlines()
    if max(len(old_lines), len(new_lines)) > MOST_LINES:
        return None
    new = [index for index in _added(old_lines, new_lines) if new_lines[index].startswith("\t")]
    for index in new:
        new_lines[index] = "\t@:"
    return "\n".join([*new_lines, ""]) if new else None


def _added(old_lines: list[str], new_lines: list[str]) -> Iterator[int]:
    for tag, _, _, start, end in SequenceMatcher(
        None, old_lines, new_lines, autojunk=False
    ).get_opcodes():
        if tag in ("insert", "replace"):
            yield from range(start, end)


def carrier_of(path: str, source: bytes, stem: str) -> Carrier | None:
    """Return what a recipe or script contains, its programs in files named after `stem`."""
    if len(source) > MOST_BYTES:
        return None
    kind = "make" if MAKEFILE.fullmatch(path) else ""
    kind = kind or ("json" if path.rpartition("/")[2] == "package.json" else "")
    if not kind and program_language(path, source) == "sh":
        kind = "sh"
    if not kind:
        return None
    whole = text = blind = to_text(source)
    files: dict[str, bytes] = {}
    places: list[ProgramPlace] = []
    for number, (piece, shell) in enumerate(_pieces(whole, kind)):
        blind = blind.replace(piece, _written(without_unread(shell), kind))
        made = written_out(shell, folder_of(path), f"{stem}{number}_")
        if made is not None and made.files:
            text = text.replace(piece, _written(made.shell, kind))
            files |= made.files
            places += made.places
    if not files and blind == whole:
        return None
    return Carrier(path, kind, whole, text, files, tuple(places), blind)


def _pieces(text: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the shell texts in a file: as written there, and as the shell gets them."""
    if kind == "sh":
        yield text, text
    elif kind == "make":
        for hit in RECIPE.finditer(text):
            shell = hit["shell"].replace("$$", "\0").replace("$", VARIABLE).replace("\0", "$")
            yield hit["shell"], shell
    else:
        try:
            scripts = json.loads(text).get("scripts", {})
            several = [one for one in scripts.values() if isinstance(one, str)]
        except (ValueError, AttributeError):
            return
        for one in several:
            if _written(one, kind) in text:
                yield _written(one, kind), one


def _written(shell: str, kind: str) -> str:
    """Return a shell text as it is written in such a file."""
    if kind == "make":
        return shell.replace("$", "$$").replace(VARIABLE, "$")
    return json.dumps(shell, ensure_ascii=False)[1:-1] if kind == "json" else shell
