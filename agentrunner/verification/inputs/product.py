"""What product code imports and mentions: a file that it uses is product. Reading is bounded."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from msgspec import Struct, field

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.references import References
from agentrunner.verification.inputs.tree import Tree, folder_of, is_inside, join
from agentrunner.verification.results.files import table, texts

MOST_FILES = 1_500
MOST_BYTES = 12_000_000
"""How much product code is read to learn what it uses, in bytes; nearest to the tests first."""
MOST_ENTRIES = 100
ENTRY = lazy_regex(r"^[^\S\n]*(?:CMD|ENTRYPOINT|web:|worker:|ExecStart=)(.*)$", re.MULTILINE)
VENDORED = lazy_regex(r"(^|/)(node_modules|vendor|third_party|\.venv|venv|dist|build|target)/")


class Product(Struct, dict=True):
    """The product code of a tree, read on demand."""

    tree: Tree
    references: References
    is_test: Callable[[str], bool]
    near: tuple[str, ...] = ()
    """Folders of the tests; code near them is read first."""
    families: frozenset[str] = field(default_factory=frozenset)
    """Language families that are read."""

    @cached_property
    def sources(self) -> list[str]:
        """The product code that is read."""
        tops = {path.partition("/")[0] for path in self.near}
        found = [
            path for path in self.tree.paths
            if self.references.family(path) in self.families and not self.is_test(path)
            and not VENDORED.search(path)
        ]  # fmt: skip
        found.sort(key=lambda path: (path.partition("/")[0] not in tops, path.count("/"), path))
        self.tree.prefetch(found[:MOST_FILES])
        return found[:MOST_FILES]

    @cached_property
    def imported(self) -> dict[str, set[str]]:
        """By source file: the product files that import it."""
        found: dict[str, set[str]] = {}
        size = 0
        for path in self.sources:
            size += len(self.tree.text(path) or "")
            if size > MOST_BYTES:
                break
            for imported_path in self.references.imports(path)[0]:
                found.setdefault(imported_path, set()).add(path)
        return found

    @cached_property
    def _literals(self) -> tuple[frozenset[str], frozenset[str]]:
        """Literals with a folder or an ending, and bare words from lines that deal with paths."""
        plain: set[str] = set()
        bare: set[str] = set()
        for path in self.sources:
            for word, in_paths in self.references.words(path):
                clean = join("", word.lstrip("./"))
                if "/" in clean or "." in clean:
                    plain.add(clean)
                elif in_paths:
                    bare.add(clean)
        return frozenset(plain), frozenset(bare)

    def mentions(self, path: str) -> bool:
        """Whether product code names this file, or a folder that contains it."""
        plain, bare = self._literals
        parts = path.split("/")
        for end in range(len(parts), 0, -1):
            for start in range(end):
                word = "/".join(parts[start:end])
                if word in plain or (word in bare and "." not in word):
                    return True
        return False

    @cached_property
    def entries(self) -> dict[str, str]:
        """Files that something other than a test starts, each with the file that says so."""
        found: dict[str, str] = {}
        names = ("package.json", "Dockerfile", "Procfile", "pyproject.toml")
        telling = [path for path in self.tree.paths
                   if path.endswith((*names, ".service")) and path.count("/") < 4]  # fmt: skip
        for path in sorted(telling, key=lambda path: (path.count("/"), path))[:MOST_ENTRIES]:
            name = path.rpartition("/")[2]
            if name == "package.json" and not VENDORED.search(path):
                self._package_entries(path, found)
            elif name in ("Dockerfile", "Procfile") or name.endswith(".service"):
                for match in ENTRY.finditer(self.tree.text(path) or ""):
                    for word in re.findall(r"[\w./-]+", match[1]):
                        found.setdefault(join(folder_of(path), word), path)
            elif name == "pyproject.toml":
                project = table(self.tree.toml(path), "project")
                for target in texts(list(table(project, "scripts").values())):
                    module = target.partition(":")[0].replace(".", "/")
                    for place in ("", "src"):
                        for ending in (".py", "/__init__.py", "/__main__.py"):
                            found.setdefault(
                                join(folder_of(path), join(place, module) + ending), path
                            )
        return {one: by for one, by in found.items() if is_inside(one) and one in self.tree.paths}

    def _package_entries(self, path: str, found: dict[str, str]) -> None:
        package = self.tree.json(path)
        scripts = table(package, "scripts")
        words = [package.get("main"), package.get("module"), package.get("types")]
        words += texts(package.get("bin")) + list(table(package, "bin").values())
        words += re.findall(r"[\"']([^\"']+\.\w+)[\"']", str(package.get("exports") or ""))
        for name in ("start", "serve", "dev"):
            words += re.findall(r"[\w./-]+\.\w+", str(scripts.get(name) or ""))
        for word in words:
            if isinstance(word, str):
                for ending in ("", ".js"):
                    found.setdefault(join(folder_of(path), word + ending), path)
