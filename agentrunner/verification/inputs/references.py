"""What a source file refers to: what it imports, and which paths its literals name. Pure.

It is read with patterns, not with parsers. A comment or a text may be taken for an import, which
only means that more files are examined.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.globs import WILD
from agentrunner.verification.inputs.tree import Tree, above, folder_of, is_inside, join

FAMILIES = {
    "python": ("py", "pyi", "pyx"),
    "javascript": ("js", "cjs", "mjs", "jsx", "ts", "cts", "mts", "tsx", "vue", "svelte"),
    "c": ("c", "h", "cc", "cpp", "cxx", "hpp", "hh", "m", "mm"),
    "ruby": ("rb",),
    "php": ("php",),
    "perl": ("pl", "pm", "t"),
    "go": ("go",),
    "rust": ("rs",),
    "jvm": ("java", "kt", "kts", "scala", "groovy", "clj"),
    "dotnet": ("cs", "fs", "vb"),
    "shell": ("sh", "bash", "bats", "zsh"),
    "other": ("swift", "ex", "exs", "lua", "dart", "hs", "jl", "r", "R", "zig", "nim", "erl", "ml"),
}
"""Endings of source files, grouped by what can import each other."""
FAMILY_OF = {ending: family for family, endings in FAMILIES.items() for ending in endings}

PYTHON_FROM = lazy_regex(
    r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n#;]*)", re.MULTILINE
)
PYTHON_IMPORT = lazy_regex(r"^[ \t]*import[ \t]+([\w., \t]+)", re.MULTILINE)
JS_IMPORT = lazy_regex(
    r"(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\(|\.(?:mock|resolve)\s*\()\s*[\"'`]([^\"'`\n]+)"
)
C_INCLUDE = lazy_regex(r"^[ \t]*#[ \t]*include[ \t]*\"([^\"\n]+)\"", re.MULTILINE)
RUBY_REQUIRE = lazy_regex(r"\b(require_relative|require|load)[ \t(]+[\"']([^\"'\n]+)")
PHP_REQUIRE = lazy_regex(
    r"\b(?:require|include)(?:_once)?[ \t(]*(?:__DIR__[ \t]*\.[ \t]*"
    r"|dirname\([^)]*\)[ \t]*\.[ \t]*)?"
    r"[\"']([^\"'\n]+)"
)
PHP_USE = lazy_regex(r"^[ \t]*use[ \t]+([\w\\]+)", re.MULTILINE)
PERL_USE = lazy_regex(r"^[ \t]*(?:use|require)[ \t]+([A-Z][\w:]*)", re.MULTILINE)
GO_IMPORT = lazy_regex(
    r"^[ \t]*(?:import[ \t]+)?(?:[\w.]+[ \t]+)?\"([\w./~-]+)\"[ \t]*(?://[^\n]*)?$", re.MULTILINE
)
GO_PACKAGE = lazy_regex(r"^package[ \t]+(\w+)", re.MULTILINE)
GO_DEFINES = lazy_regex(r"^(?:func|type|var|const)[ \t]+(\w+)", re.MULTILINE)
"""What a Go file defines for its package, except methods."""
MOST_BESIDE = 200
"""The most files of one package for which it is worked out which of them are used."""
GO_MODULE = lazy_regex(r"^[ \t]*module[ \t]+\"?([^\s\"]+)", re.MULTILINE)
LITERAL = lazy_regex(r"\"([^\"\n\\]{1,200})\"|'([^'\n\\]{1,200})'|`([^`\n\\]{1,200})`")
PATHLIKE = lazy_regex(r"[\w./@+~-][\w./@+~ -]*")
LEADING = lazy_regex(r"^(?:[$#]?\{[^{}]*\}|\$\w+)/")
"""A computed folder before a path: `${__dirname}/../spec`, f"{ROOT}/spec/a.csv"."""
PUT_TOGETHER = lazy_regex(r"\s*[/,]\s*[fr]?")
"""Text between parts of a path: `ROOT / "golden" / "a.py"`, `join(here, "golden", "a.py")`."""
IN_PATHS = lazy_regex(
    r"(?i)open|path|join|read|load|file|__dirname|resource|template|static|dir\b|folder|include|embed|/\s*[\"'f]"
)
"""A line that deals with paths, in which a bare word may name a folder."""
PASSING = lazy_regex(r"(?i)tmp|temp|write|mkdir|touch")
"""A line that creates files of its own; what it names is not something in the tree."""
JS_ENDINGS = ("", ".js", ".ts", ".mjs", ".cjs", ".jsx", ".tsx", ".mts", ".cts", ".json",
              "/index.js", "/index.ts", "/index.mjs", "/index.tsx", "/index.jsx")  # fmt: skip
ENDING = lazy_regex(r"[\"'`](?P<any>(?:\*\*/)?\*)?(?P<ending>\.\w[\w.]*)[\"'`]")
MOST_LITERALS = 5_000
MOST_PLAIN = 1_000
"""The most files without an ending whose first line is read."""
MOST_FITTING = 200
"""The most files with one ending; beyond that a pattern says nothing about any of them."""


def family_of(path: str) -> str:
    """Return the language family of a source file by its ending; "" for anything else."""
    return FAMILY_OF.get(path.rpartition("/")[2].rpartition(".")[2], "") if "." in path else ""


@dataclass
class References:
    """Resolves imports and literals against one tree."""

    tree: Tree
    python_path: Collection[str] = ()

    def __post_init__(self) -> None:
        self._imports: dict[str, tuple[frozenset[str], frozenset[str]]] = {}

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.tree.paths:
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return found

    @cached_property
    def _programs(self) -> dict[str, str]:
        """Programs without a file ending, and the language family that their first line names."""
        plain = [path for path in self.tree.paths if "." not in path.rpartition("/")[2]]
        plain = sorted(plain, key=lambda path: (path.count("/"), path))[:MOST_PLAIN]
        self.tree.prefetch(plain)
        found = {path: family_by_first_line(self.tree.text(path) or "") for path in plain}
        return {path: family for path, family in found.items() if family}

    def family(self, path: str) -> str:
        """Return the language family of a source file or program; "" for anything else."""
        return family_of(path) or self._programs.get(path, "")

    def imports(self, path: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the source files that a file imports, and the top-level names not in the tree."""
        if path not in self._imports:
            text = self.tree.text(path) or ""
            files: set[str] = set()
            missing: set[str] = set()
            for name, found in self._resolved(path, text):
                files.update(found)
                if not found and name:
                    missing.add(name)
            files.discard(path)
            self._imports[path] = frozenset(files), frozenset(missing)
        return self._imports[path]

    def each_import(self, path: str) -> list[set[str]]:
        """Return the source files that each import of a file leads to, in its order."""
        return [files for _, files in self._resolved(path, self.tree.text(path) or "")]

    def _resolved(self, path: str, text: str) -> Iterator[tuple[str, set[str]]]:
        folder = folder_of(path)
        match family_of(path) or family_by_first_line(text):
            case "python":
                yield from self._python_imports(folder, text)
            case "javascript":
                for found in JS_IMPORT.finditer(text):
                    yield from self._javascript_import(folder, found[1])
            case "c":
                for found in C_INCLUDE.finditer(text):
                    yield found[1], self._c_includes(folder, found[1])
            case "ruby":
                for found in RUBY_REQUIRE.finditer(text):
                    places = [folder, *(join(one, "lib") for one in above(folder)), ""]
                    names = (found[2], f"{found[2]}.rb")
                    hit = self._first_existing(places, names)
                    yield "", hit
            case "php":
                for found in PHP_REQUIRE.finditer(text):
                    yield "", self._first_existing([folder, ""], (found[1].lstrip("/"),))
                for found in PHP_USE.finditer(text):
                    yield "", self._files_of_class(found[1].split("\\"), ".php")
            case "go":
                for found in GO_IMPORT.finditer(text):
                    yield "", self._go_package_files(found[1])
                yield "", self._beside_in_go(path, text)
            case "perl":
                for found in PERL_USE.finditer(text):
                    name = found[1].replace("::", "/") + ".pm"
                    places = [place for one in above(folder) for place in (one, join(one, "lib"))]
                    yield "", self._first_existing(places, (name,))

    @cached_property
    def _names(self) -> frozenset[str]:
        """Every name of a folder or source file; an import of any other name leads nowhere."""
        found = {folder.rpartition("/")[2] for folder in self.tree.folders}
        found.update(path.rpartition("/")[2].partition(".")[0] for path in self.tree.paths)
        return frozenset(found)

    def _python_imports(self, folder: str, text: str) -> Iterator[tuple[str, set[str]]]:
        roots = [place for one in above(folder) for place in (one, f"{one}/src" if one else "src")]
        roots += [place for place in self.python_path if place not in roots]
        for found in PYTHON_FROM.finditer(text):
            dots, module = found[1], found[2]
            names = re.findall(r"(\w+)(?:\s+as\s+\w+)?", found[3])
            bases = roots
            if dots:
                base = folder
                for _ in dots[1:]:
                    base = folder_of(base)
                bases = [base]
            yield from self._python_module(bases, module, names, relative=bool(dots))
        for found in PYTHON_IMPORT.finditer(text):
            for part in found[1].split(","):
                words = part.split()
                if words:
                    yield from self._python_module(roots, words[0], [], relative=False)

    def _python_module(
        self, bases: list[str], module: str, names: list[str], *, relative: bool
    ) -> Iterator[tuple[str, set[str]]]:
        place = module.replace(".", "/")
        if module.partition(".")[0] not in self._names and not relative:
            yield module.partition(".")[0], set()
            return
        for base in bases:
            target = "/".join(part for part in (base, place) if part)
            files: set[str] = set()
            if target in self.tree.folders:
                below = f"{target}/" if target else ""
                for name in names:
                    files |= self._package_or_module(f"{below}{name}")
            files |= self._package_or_module(target)
            if files:
                yield "", files
                return
            if place and target in self.tree.folders and target != "":
                yield "", set()
                return
        yield ("" if relative else module.partition(".")[0]), set()

    def _package_or_module(self, place: str) -> set[str]:
        """The file that Python takes: of a package and a module of one name the package."""
        return self._first_existing([""], (f"{place}/__init__.py", f"{place}.py"))

    def _javascript_import(self, folder: str, word: str) -> Iterator[tuple[str, set[str]]]:
        if word.startswith("."):
            stem = join(folder, word)
            endings = [stem + ending for ending in JS_ENDINGS]
            if stem.endswith((".js", ".mjs", ".cjs", ".jsx")):  # its TypeScript source
                bare = stem.rpartition(".")[0]
                endings += [bare + ending for ending in (".ts", ".tsx", ".mts", ".cts")]
            hit = [path for path in endings if path in self.tree.paths][:1]
            yield "" if hit else word, set(hit)
            return
        bare = re.sub(r"^(@|~|#)/", "", word)
        for root in above(folder):
            for base in (root, join(root, "src")):
                for ending in JS_ENDINGS[1:]:
                    path = join(base, bare + ending)
                    if bare != word and path in self.tree.paths:
                        yield "", {path}
                        return
        yield "", set()

    @cached_property
    def _go_modules(self) -> dict[str, str]:
        """By module name: the folder of the module."""
        found = {}
        for path in self._by_name.get("go.mod", []):
            if name := GO_MODULE.search(self.tree.text(path) or ""):
                found[name[1]] = folder_of(path)
        return found

    def _go_package_files(self, name: str) -> set[str]:
        """Return all files of an imported package except its tests."""
        for module, root in self._go_modules.items():
            if name == module or name.startswith(f"{module}/"):
                folder = join(root, name[len(module) + 1 :])
                return {
                    path for path in self.tree.paths
                    if folder_of(path) == folder and path.endswith(".go")
                    and not path.endswith("_test.go")
                }  # fmt: skip
        return set()

    @cached_property
    def _go_packages(self) -> dict[tuple[str, str], list[str]]:
        """By folder and package name: the files of Go packages, except tests."""
        found: dict[tuple[str, str], list[str]] = {}
        for path in self.tree.paths:
            if path.endswith(".go") and not path.endswith("_test.go"):
                name = GO_PACKAGE.search(self.tree.text(path) or "")
                found.setdefault((folder_of(path), name[1] if name else ""), []).append(path)
        return found

    def _beside_in_go(self, path: str, text: str) -> set[str]:
        """Return the files of the same package from which a file uses something by name."""
        name = GO_PACKAGE.search(text)
        beside = self._go_packages.get((folder_of(path), name[1] if name else ""), [])
        if len(beside) > MOST_BESIDE:
            return set()
        words = set(re.findall(r"\w+", text))
        texts = {one: self.tree.text(one) or "" for one in beside}
        return {one for one in beside if not words.isdisjoint(GO_DEFINES.findall(texts[one]))}

    def _c_includes(self, folder: str, word: str) -> set[str]:
        places = [folder, *(place for one in above(folder) for place in (one, join(one, "include"),
                  join(one, "src")))]  # fmt: skip
        headers = self._first_existing(places, (word,))
        found = set(headers)
        for header in headers:  # a header leads to the source file of the same name
            stem = header.rpartition(".")[0]
            name = stem.rpartition("/")[2]
            for ending in (".c", ".cc", ".cpp", ".cxx"):
                found |= self._first_existing([""], (stem + ending,))
                found.update(self._by_name.get(name + ending, [])[:3])
        return found

    def _files_of_class(self, parts: list[str], ending: str) -> set[str]:
        fitting = self._by_name.get(parts[-1] + ending, [])
        return set(fitting[:3])

    def only_file(self, name: str, reader: str) -> list[str]:
        """Return the source file of this name in the reader's language, if there is only one."""
        stem = name.rpartition("/")[2].partition(".")[0]
        fitting = [
            path
            for ending in FAMILIES.get(self.family(reader), ())
            for path in self._by_name.get(f"{stem}.{ending}", [])
        ]
        return fitting if len(fitting) == 1 else []

    def _first_existing(self, places: list[str], names: tuple[str, ...]) -> set[str]:
        for place in places:
            for name in names:
                if (path := join(place, name)) in self.tree.paths:
                    return {path}
        return set()

    def words(self, path: str) -> Iterator[tuple[str, bool]]:
        """Yield literals that may name a path, and whether their line deals with paths."""
        text = self.tree.text(path) or ""
        count = 0
        for line in text.split("\n"):
            if '"' not in line and "'" not in line and "`" not in line:
                continue
            words = list(_path_words(line[:2_000]))
            count += len(words)
            if count > MOST_LITERALS:
                return
            if words:
                in_paths = bool(IN_PATHS.search(line)) and not PASSING.search(line)
                yield from ((word, in_paths) for word in words)

    def mentioned(self, path: str) -> Iterator[str]:
        """Yield paths of the tree that a file's literals name."""
        own = folder_of(path)
        seen: set[str] = set()
        yield from self._patterns(path)
        for word, in_paths in self.words(path):
            deep = "/" in word.strip("/")
            plain = deep or "." in word.strip(".")
            if word in seen or not (plain or in_paths) or not word.strip("./"):
                continue
            seen.add(word)
            for base in above(own):
                place = join(base, word.lstrip("/") if base != own else word)
                if base != own and not (deep or in_paths):
                    break  # a bare name is not searched for further up
                if is_inside(place) and (place in self.tree.paths or place in self.tree.folders):
                    yield place
                    break

    def _patterns(self, path: str) -> Iterator[str]:
        """Yield files that a literal means by ending: `*.json`, or `.want` for its neighbour."""
        stem = path.rpartition(".")[0]
        for found in ENDING.finditer(self.tree.text(path) or ""):
            beside = {f"{stem}{found['ending']}", f"{path}{found['ending']}"}
            yield from sorted(beside & self.tree.paths - {path})
            if found["any"]:
                fitting = [one for one in self.tree.paths if one.endswith(found["ending"])]
                yield from sorted(fitting) if len(fitting) <= MOST_FITTING else ()


def family_by_first_line(text: str) -> str:
    """Return the language family of the interpreter in a program's first line; "" for none."""
    first = text.split("\n", 1)[0]
    if not first.startswith("#!"):
        return ""
    for word, family in (("python", "python"), ("node", "javascript"), ("ruby", "ruby"),
                         ("perl", "perl"), ("php", "php"), ("sh", "shell")):  # fmt: skip
        if word in first:
            return family
    return ""


def _path_words(line: str) -> Iterator[str]:
    """Yield words from the line's literals that may be paths; adjacent parts also as one path."""
    parts: list[str] = []
    end = 0
    for found in LITERAL.finditer(line):
        word = LEADING.sub("", found[1] or found[2] or found[3])
        if cut := WILD.search(word) or re.search(r"[%$]", word):
            word = word[: cut.start()].rpartition("/")[0]
        if not word or not PATHLIKE.fullmatch(word):
            parts = []
            continue
        yield word
        parts = [*parts, word] if parts and PUT_TOGETHER.fullmatch(line, end, found.start()) else []
        parts = parts or [word]
        end = found.end()
        if len(parts) > 1:
            yield "/".join(parts)
