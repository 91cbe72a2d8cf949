"""Read makefiles as far as simple reading goes: variables, includes, targets and recipes. Pure.

Both branches of a condition are read. `$(shell …)` is empty, but its text is kept: make runs it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.globs import glob_regex, is_glob
from agentrunner.verification.inputs.tree import Tree, join

NAMES = ("GNUmakefile", "makefile", "Makefile")
ASSIGN = lazy_regex(r"^(?:override\s+|export\s+)*([^\s:#=+?!]+)\s*(\+|\?|:{1,3}|!)?=\s*(.*)$", re.S)
INCLUDE = lazy_regex(r"^(?:-|s)?include\s+(.+)$")
CONDITION = lazy_regex(r"^(ifeq|ifneq|ifdef|ifndef|else|endif)\b")
RULE = lazy_regex(r"^([^:=\t][^:=]*?)(?<!\s)\s*(&?::?)(?!=)([^=].*|)$", re.S)
MOST_FILES = 50
MOST_DEPTH = 20
MOST_TEXT = 20_000
MOST_TARGETS = 500
MOST_NAME = 250


class Rule(Struct, frozen=True):
    """Targets, their prerequisites and their recipe; texts as written."""

    targets: str
    needs: str
    recipe: tuple[str, ...]
    file: str


class Makefile(Struct):
    """A makefile with everything that it includes; paths are relative to the repository."""

    tree: Tree
    folder: str
    files: dict[str, str] = field(default_factory=dict)
    """By path: why it is read."""
    variables: dict[str, str] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    shell: list[str] = field(default_factory=list)
    """Texts that make runs while it reads."""

    def read(self, path: str, why: str) -> None:
        """Read one file and its includes."""
        text = self.tree.text(path)
        if text is None or path in self.files or len(self.files) >= MOST_FILES:
            return
        self.files[path] = why
        targets = needs = ""
        recipe: list[str] = []
        is_open = False

        def close() -> None:
            if is_open:
                self.rules.append(Rule(targets, needs, tuple(recipe), path))

        for line in logical_lines(text):
            if line.startswith("\t"):
                if is_open:
                    recipe.append(line[1:])
                continue
            plain = line.split("#", 1)[0].strip()
            if not plain or CONDITION.match(plain):
                continue
            if found := INCLUDE.match(plain):
                for name in self.expand(found[1]).split():
                    for one in self.tree.expand(self.folder, name):
                        self.read(one, f"included by {path}")
            elif (found := ASSIGN.match(plain)) and not plain.startswith("\t"):
                self._assign(found[1], found[2] or "", found[3])
            elif found := RULE.match(plain):
                close()
                targets, needs = found[1], found[3]
                needs, _, first = needs.partition(";")
                recipe, is_open = [first.strip()] if first.strip() else [], True
                if private := ASSIGN.match(needs.strip()):
                    self._assign(private[1], private[2] or "", private[3])
                    is_open = False
        close()

    def _assign(self, name: str, how: str, value: str) -> None:
        if how == "+":
            self.variables[name] = f"{self.variables.get(name, '')} {value}"[:MOST_TEXT]
        elif how == "!":
            self.shell.append(value)
        elif how != "?" or name not in self.variables:
            # A variable defined by itself (`X := $(X) y`) is expanded now, or it never ends.
            itself = rf"\$[({{]{re.escape(name)}[)}}]"
            old = self.variables.get(name, "")
            self.variables[name] = re.sub(itself, lambda _: old, value)[:MOST_TEXT]

    # -- texts ------------------------------------------------------------------------------

    def expand(self, text: str, more: dict[str, str] | None = None, depth: int = 0) -> str:
        """Return a text with variables and common functions expanded."""
        if "$" not in text or depth > MOST_DEPTH:
            return text
        out: list[str] = []
        at, size = 0, 0
        while at < len(text) and size < MOST_TEXT:
            char = text[at]
            if char != "$" or at + 1 >= len(text):
                piece, at = char, at + 1
            elif text[at + 1] in "({":
                inner, at = _balanced(text, at + 2, ")" if text[at + 1] == "(" else "}")
                piece = self._reference(inner, more or {}, depth + 1)
            elif text[at + 1] == "$":
                piece, at = "$$", at + 2
            else:
                piece = self._reference(text[at + 1], more or {}, depth + 1)
                at += 2
            out.append(piece)
            size += len(piece)
        return "".join(out)

    def _reference(self, inner: str, more: dict[str, str], depth: int) -> str:
        name, _, rest = inner.partition(" ")
        if (rest and name.isidentifier()) or name == "filter-out":
            arguments = [
                part if name in ("foreach",) else self.expand(part, more, depth)
                for part in _arguments(rest)
            ]
            return self._function(name, arguments, more, depth)
        if found := re.fullmatch(r"([^:]+):([^=]*)=(.*)", inner):
            words = self._value(found[1], more, depth).split()
            old, new = self.expand(found[2], more, depth), self.expand(found[3], more, depth)
            if "%" not in old:
                old, new = f"%{old}", f"%{new}"
            return " ".join(_patsubst(word, old, new) for word in words)
        if len(inner) == 2 and inner[1] in "DF" and inner[0] in more:
            value = more[inner[0]]
            folder, _, last = value.rpartition("/")
            return (folder or ".") if inner[1] == "D" else last
        return self._value(self.expand(inner, more, depth), more, depth)

    def _value(self, name: str, more: dict[str, str], depth: int) -> str:
        if name in more:
            return more[name]
        if name in ("MAKE", "CURDIR"):
            return {"MAKE": "make", "CURDIR": "."}[name]
        return self.expand(self.variables.get(name, ""), more, depth)

    def _function(self, name: str, args: list[str], more: dict[str, str], depth: int) -> str:
        last = args[-1].split() if args else []
        match name, args:
            case "wildcard", _:
                prefix = f"{self.folder}/" if self.folder else ""
                found = [path for word in last for path in self.tree.expand(self.folder, word)]
                return " ".join(
                    path.removeprefix(prefix) for path in found if path in self.tree.paths
                )
            case "patsubst", [old, new, _]:
                return " ".join(_patsubst(word, old.strip(), new.strip()) for word in last)
            case "subst", [old, new, text]:
                return text.replace(old, new) if old else text
            case (("filter" | "filter-out"), [patterns, _]):
                keep = name == "filter"
                tests = patterns.split()
                return " ".join(w for w in last if any(_matches(t, w) for t in tests) == keep)
            case "addprefix", [prefix, _]:
                return " ".join(prefix.strip() + word for word in last)
            case "addsuffix", [suffix, _]:
                return " ".join(word + suffix.strip() for word in last)
            case "notdir", _:
                return " ".join(word.rpartition("/")[2] for word in last)
            case "dir", _:
                return " ".join((word.rpartition("/")[0] or ".") + "/" for word in last)
            case "basename", _:
                return " ".join(re.sub(r"\.[^./]*$", "", word) for word in last)
            case (("sort" | "strip" | "abspath" | "realpath"), _):
                return " ".join(last)
            case "firstword", _:
                return last[0] if last else ""
            case "foreach", [variable, words, body]:
                values = self.expand(words, more, depth).split()[:200]
                return " ".join(
                    self.expand(body, {**more, variable.strip(): value}, depth) for value in values
                )
            case (("if" | "or" | "and" | "call"), _):
                return " ".join(args[1:] if name != "or" else args)
            case "shell", _:
                self.shell.append(args[0] if args else "")
                return ""
        return ""

    # -- targets ----------------------------------------------------------------------------

    def goals(self, words: Sequence[str]) -> list[str]:
        """Return the targets that a command asks for: those it names, else the first one."""
        named = [word for word in words if not word.startswith("-") and "=" not in word]
        if named:
            return named
        for rule in self.rules:
            for target in self.expand(rule.targets).split():
                if not target.startswith(".") and "%" not in target:
                    return [target]
        return []

    def built(self, goals: Sequence[str]) -> dict[str, tuple[list[str], list[str]]]:
        """Return, by target that the goals need: its prerequisites and its recipe lines."""
        explicit: dict[str, list[Rule]] = {}
        patterns: list[tuple[str, Rule]] = []
        for rule in self.rules:
            for target in self.expand(rule.targets).split():
                if "%" in target:
                    patterns.append((target, rule))
                else:
                    explicit.setdefault(target, []).append(rule)
        done: dict[str, tuple[list[str], list[str]]] = {}
        waiting = list(goals)
        while waiting and len(done) < MOST_TARGETS:
            target = waiting.pop()
            if target not in done:
                done[target] = self._needs_and_recipe(target, explicit.get(target, []), patterns)
                waiting += done[target][0]
        return done

    def _needs_and_recipe(
        self, target: str, rules: list[Rule], patterns: list[tuple[str, Rule]]
    ) -> tuple[list[str], list[str]]:
        needs: list[str] = []
        lines: list[tuple[str, str]] = []
        for rule in rules:
            needs += self.expand(rule.needs).replace("|", " ").split()
            lines += [(line, "") for line in rule.recipe]
        if not lines and join(self.folder, target) not in self.tree.paths:
            for pattern, rule in patterns:
                stem = _stem(pattern, target)
                if not stem or len(target) > MOST_NAME:
                    continue
                further = self.expand(rule.needs).replace("|", " ").replace("%", stem).split()
                needs = [*further, *needs]
                lines = [(line, stem) for line in rule.recipe]
                break
            else:
                needs = [*self._built_in(target), *needs]
        more = {"@": target, "<": needs[0] if needs else "", "^": " ".join(needs)}
        more |= {"+": more["^"], "?": more["^"]}
        recipe = [
            self.expand(line, {**more, "*": stem}).replace("$$", "$").lstrip("@-+ ")
            for line, stem in lines
        ]
        return needs, recipe

    def _built_in(self, target: str) -> list[str]:
        """Return the source from which make's built-in rules build a target."""
        stem = target.removesuffix(".o")
        for suffix in (".c", ".cc", ".cpp", ".cxx", ".C", ".f", ".s"):
            if join(self.folder, stem + suffix) in self.tree.paths:
                return [stem + suffix]
        return []


def read_makefile(tree: Tree, folder: str, named: str = "") -> Makefile:
    """Read the makefile that make finds in a folder, or the one that `-f` names."""
    makefile = Makefile(tree, folder)
    for name in [named] if named else NAMES:
        path = join(folder, name)
        if tree.exists(path):
            makefile.read(path, "the command runs it")
            break
    return makefile


def logical_lines(text: str) -> list[str]:
    """Return the lines with continuations joined; a recipe line keeps its first tab."""
    return re.sub(r"\\\r?\n[ \t]*", " ", text.replace("\r\n", "\n")).split("\n")


def _balanced(text: str, at: int, closing: str) -> tuple[str, int]:
    start, depth, opening = at, 1, {")": "(", "}": "{"}[closing]
    while at < len(text):
        if text[at] == opening:
            depth += 1
        elif text[at] == closing:
            depth -= 1
            if depth == 0:
                return text[start:at], at + 1
        at += 1
    return text[start:], len(text)


def _arguments(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "({":
            depth += 1
        elif char in ")}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _stem(pattern: str, word: str) -> str | None:
    before, _, behind = pattern.partition("%")
    fits = word.startswith(before) and word.endswith(behind)
    if not fits or len(word) < len(before) + len(behind):
        return None
    return word[len(before) : len(word) - len(behind)]


def _patsubst(word: str, old: str, new: str) -> str:
    if "%" not in old:
        return new if word == old else word
    stem = _stem(old, word)
    return word if stem is None else new.replace("%", stem, 1)


def _matches(pattern: str, word: str) -> bool:
    if "%" in pattern:
        return _stem(pattern, word) is not None
    return bool(glob_regex(pattern).match(word)) if is_glob(pattern) else pattern == word
