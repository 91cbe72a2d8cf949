"""What tests read and product code does not: their folders, helpers, golden files and tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.called_code import (
    OWN_ASSERTION,
    Subjects,
    asserted_calls,
    assigned_names,
    called_as_statements,
    called_on_itself,
    classes_in,
    comparing,
    inherited_by,
    paired,
    used_answers,
)
from agentrunner.verification.inputs.context import Context
from agentrunner.verification.inputs.globs import inside, is_glob, literal
from agentrunner.verification.inputs.helper_code import Asked
from agentrunner.verification.inputs.model import Input
from agentrunner.verification.inputs.named_types import used_by_type
from agentrunner.verification.inputs.product import Product
from agentrunner.verification.inputs.references import GO_IMPORT, References
from agentrunner.verification.inputs.tree import above, folder_of
from agentrunner.verification.syntax.stated_literals import (
    comparing_functions,
    defined_functions,
    functions_of_two,
)

ASSERTS = lazy_regex(
    r"\bassert\b|AssertionError|\.fail\(|\bexpect\(|self\.assert|t\.(?:Error|Fatal)"
)
CALLED = lazy_regex(
    r"^(?:[ \t]+|[ \t]*(?:test|it|specify)\b.{0,300}?=>\s*\{?\s*)(?:await\s+)?(?:(\w+)\.)?(\w+)\(",
    re.MULTILINE,
)
"""Calls that are a statement, or the whole body of a test, so that their return value is unused."""
TEST_KITS = frozenset(
    """pytest unittest node:test vitest @jest/globals mocha chai jest ava rspec minitest
    test""".split()
)
"""What code imports that is about tests, by the first part of its name."""
RESOLVED = frozenset({"python", "javascript", "c", "ruby", "php", "perl", "shell"})
"""Languages whose imports are followed; only for these is it known what product code uses."""
FOLLOWED = RESOLVED | {"go"}
"""With one whose imports lead to whole packages."""
MOST_TESTS = 1_500
SAMPLE = 200
"""How many tests of a folder are examined to learn what the folder is for."""
MOST_CODE = 400
"""The most source files of a folder that are examined; a folder with more is taken as product."""
MOST_FIXTURES = 5_000
MOST_ROUNDS = 4
"""How many levels of helpers of helpers are followed."""


@dataclass
class Fixtures:
    """Works out what belongs to the tests besides the test files themselves."""

    context: Context
    references: References
    tests: set[str]
    """Test files: collected, or executed and found to be tests."""
    unsure: dict[str, str] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    """Folders that hold tests and nothing of the product, and why."""
    used: dict[str, str] = field(default_factory=dict)
    """Files in such folders that the product uses, and what uses them."""
    asked: Asked = field(default_factory=lambda: Asked(""))
    compares: set[str] = field(default_factory=set)
    """Files with a function that compares for a test."""
    _asked_for: dict[str, bool] = field(default_factory=dict)
    """By path: whether what was asked for names it. Each file is read once for all tests."""
    _defined: dict[str, frozenset[str]] = field(default_factory=dict)
    """By path: the functions that it defines."""

    def __post_init__(self) -> None:
        runners = [path for path, one in self.context.inputs.items() if one.kind == "runner"]
        self._by_pattern = frozenset(
            path
            for one in runners
            if is_glob(one, self.context.tree.paths)
            for path in self.context.tree.matching(one)
        )
        """What a tool loads beside tests, by a pattern: `**/conftest.py`."""
        self.product = Product(
            self.context.tree,
            self.references,
            self._belongs,
            tuple(sorted(map(folder_of, self.tests)))[:200],
            frozenset(filter(None, map(self.references.family, self.tests))),
        )
        self._subjects = Subjects(self.references, self.tests)

    def _belongs(self, path: str) -> bool:
        known = path in self.tests or path in self.context.inputs or path in self._by_pattern
        return known or (
            path not in self.used
            and any(folder in self.folders for folder in above(folder_of(path)))
        )

    def find(self, also: Sequence[str] = ()) -> None:
        """Add folders, helpers and fixtures to the context.

        `also` are programs that may be tests; for these only find the files that compare.
        """
        tests = sorted(self.tests)[:MOST_TESTS]
        self.context.tree.prefetch(tests)
        self._subjects.read(tests)
        for folder in sorted({*map(folder_of, self.tests), *self.context.named}):
            self._take_test_folders(folder)
        for folder, why in self.folders.items():
            if any(place in self.folders for place in above(folder_of(folder))):
                continue
            self.context.inputs.setdefault(
                inside(folder, "**"), Input(inside(folder, "**"), why, "fixture", old_only=True)
            )
        done: set[str] = set()
        for _ in range(MOST_ROUNDS):  # a helper leads to further ones
            readers = [reader for reader in self._readers() if reader not in done]
            self.context.tree.prefetch(readers)
            for reader in readers:
                self._helpers(reader)
                self._between(reader)
            done.update(readers)
        for reader in [*sorted(done), *also]:
            self._by_use(reader)
        for reader in list(self._readers()):
            self._mentions(reader)

    def _readers(self) -> Iterator[str]:
        """Yield test files and the code that belongs to them, bounded."""
        found = set(self.tests)
        for folder in self.folders:
            found.update(
                path for path in self.context.tree.under(folder) if self.references.family(path)
            )
        found.update(
            path for path, one in self.context.inputs.items()
            if one.kind in ("fixture", "runner", "test") and not one.region
            and path in self.context.tree.paths and self.references.family(path)
        )  # fmt: skip
        found.update(filter(self.references.family, self._by_pattern))
        return iter(sorted(found)[:MOST_TESTS])

    @property
    def reached(self) -> set[str]:
        """The code that tests import, or name as a file."""
        found: set[str] = set()
        for test in sorted(self.tests)[:MOST_TESTS]:
            found |= self.references.imports(test)[0]
            found.update(
                path for path in self.references.mentioned(test) if self.references.family(path)
            )
        return found

    # -- folders ----------------------------------------------------------------------------

    def _take_test_folders(self, folder: str) -> None:
        """Take the folders above some tests that hold only tests and helpers, up to the topmost."""
        chain = list(above(folder))
        if any(place in self.folders for place in chain):
            return
        named = [place for place in chain if place in self.context.named]
        tests_only = named and self._only_tests(named[-1], named=True, first=True)
        if tests_only and not self._holds_subjects(named[-1]):
            self._take(named[-1], self.context.named[named[-1]])
            return
        first = True
        for place in chain:
            if not place or place in self.folders:
                return
            if not self._only_tests(place, named=False, first=first):
                return
            first = False
            self._take(place, "it holds tests and no product code")

    def _holds_subjects(self, place: str) -> bool:
        """Whether code in a named folder has a test named after it in a test folder further down.

        `pytest shop/cart` names a package whose tests are in `shop/cart/tests`.
        """
        with_tests = set(map(folder_of, self.tests))
        for path in self.context.tree.under(place):
            if path in self.tests or folder_of(path) in with_tests:
                continue
            inner = f"{folder_of(path)}/"
            for test in self._subjects.namesakes_of(path):
                if (
                    test.startswith(inner)
                    and not self._helps_only(path)
                    and self._only_tests(folder_of(test), named=False, first=True)
                ):
                    return True
        return False

    def _helps_only(self, path: str) -> bool:
        return self._subjects.helps_only(path, self.product.imported)

    def _take(self, place: str, why: str) -> None:
        """Record a test folder; what the product uses in it stays product."""
        self.folders[place] = f"it lies in {place}/: {why}"
        inner = f"{place}/"
        for path in self.context.tree.under(place):
            if path not in self.tests and self._is_used_by_product(path, inner):
                self.used[path] = f"the product uses it: {min(self.product.imported[path])}"

    def _only_tests(self, place: str, *, named: bool, first: bool) -> bool:
        code = [path for path in self.context.tree.under(place) if self.references.family(path)]
        others = [path for path in code if path not in self.tests and not self._belongs(path)]
        if not (self.tests & set(code)) and not named:
            return False
        if len(others) > MOST_CODE or (
            others
            and not named
            and not all(self.references.family(path) in RESOLVED for path in code)
        ):
            return False
        inner = f"{place}/"
        if named:
            return self._mostly_leads_outside(place, inner)
        for path in others:
            users = self.product.imported.get(path, set())
            if any(not user.startswith(inner) for user in users) or path in self.product.entries:
                return False
            tests, helps = self._subjects.tests_of(path), self._helps_only(path)
            own = self._subjects.namesakes_of(path)
            if own and not helps:
                return False
            if any(not self._leads_outside(test, inner) for test in tests.difference(own)):
                return False
            if not first and not helps and not self._decides(path):
                return False
            if not tests and not users and not self._is_empty(path):
                return False
        return True

    def _mostly_leads_outside(self, place: str, inner: str) -> bool:
        """Whether most of a folder's tests that reach any code reach some outside the folder."""
        tests = [path for path in self.context.tree.under(place) if path in self.tests]
        if not all(self.references.family(path) in RESOLVED for path in tests):
            return True  # its tool has a separate folder for tests
        inside_only = leads_out = 0
        for test in tests[:: len(tests) // SAMPLE + 1]:
            if self._leads_outside(test, inner):
                leads_out += 1
            elif self.references.imports(test)[0]:
                inside_only += 1
        return leads_out >= inside_only

    def _is_used_by_product(self, path: str, inner: str) -> bool:
        """Whether tested code outside a folder uses a file in it."""
        users = self.product.imported.get(path, set())
        return any(user in self._subjects for user in users if not user.startswith(inner))

    def _leads_outside(self, test: str, inner: str) -> bool:
        """Whether a test reaches code outside the folder, which is then what it is about."""
        files, missing = self.references.imports(test)
        if any(not path.startswith(inner) for path in files):
            return True
        if any(self.is_new_module(name) for name in missing):
            return True
        return any(
            self.references.family(path) and not path.startswith(inner)
            for path in self.references.mentioned(test)
        )

    def is_new_module(self, name: str) -> bool:
        """Whether an import that resolves to nothing asks for code that is still to be written."""
        from agentrunner.verification.inputs.shadows import provided

        return not provided(self.context, name)

    def _is_empty(self, path: str) -> bool:
        """Whether a file only makes its folder a package."""
        text = self.context.tree.text(path) or ""
        bare = re.sub(r"(?m)^\s*#.*$", "", text).strip()
        return path.endswith("/__init__.py") and len(bare) < 40

    def _decides(self, path: str) -> bool:
        """Whether a helper decides: it uses a test kit, asserts, or is nearly empty."""
        text = self.context.tree.text(path) or ""
        kits = TEST_KITS | self.context.programs
        words = set(re.findall(r"(?:import|from|require\b)[\s(]*[\"']?([\w:@/-]+)", text))
        words |= {word.partition("/")[0] for word in words}
        return not words.isdisjoint(kits) or bool(ASSERTS.search(text)) or self._is_empty(path)

    # -- helpers ----------------------------------------------------------------------------

    def _helpers(self, test: str) -> None:
        """Add modules outside test folders that only tests import, and that decide for them."""
        text = self.context.tree.text(test) or ""
        files = self.references.imports(test)[0] | self.context.loaded
        for path in sorted(files):
            if self._belongs(path) or self.product.imported.get(path):
                continue
            if path in self.product.entries or paired(path, test):
                continue
            decides = self._asserts_for(path, text, files) or self._is_table(path, text, files)
            if decides or self._uses_kit(path):
                why = f"imported by {test} and by no product file"
                self.context.add(path, why, "fixture")

    def _between(self, reader: str) -> None:
        """Add code that a test reaches but no product code uses and nothing asked for names.

        A test must also reach other code, which is what it is about. A helper need not, unless
        tests reach no other code: then it loads what they are about, as a set-up file does.
        """
        if not self.asked:
            return
        reached = self._reached(reader)
        product = self._product_of(reached)
        if reader in self.tests and not product:
            return
        loads_all = not product and not self._tests_reach_beyond(reached)
        for path in sorted(reached.keys() - product):
            if loads_all and not self._decides(path):
                continue
            why = f"{reader} uses it, no product file does, and nothing that was asked for names it"
            self.context.add(path, why, "fixture")

    def _tests_reach_beyond(self, reached: Collection[str]) -> bool:
        """Whether any test uses code that is not among these files."""
        return any(self._reached(test).keys() - set(reached) for test in sorted(self.tests))

    def _reached(self, reader: str) -> dict[str, frozenset[str]]:
        """Return the code that a file uses, even indirectly: by path, what each one imports.

        A module is found anywhere in the tree if it is the only one of its name.
        """
        files, missing = self.references.imports(reader)
        todo = {
            *files,
            *(self.context.loaded if reader in self.tests else ()),
            *(path for path in self.references.mentioned(reader) if self.references.family(path)),
        }
        todo.update(path for name in missing for path in self.references.only_file(name, reader))
        found: dict[str, frozenset[str]] = {}
        while todo and len(found) < MOST_CODE:
            path = todo.pop()
            if path not in found and not self._belongs(path):
                found[path] = self.references.imports(path)[0]
                todo.update(found[path])
        return found

    def _product_of(self, reached: Mapping[str, frozenset[str]]) -> set[str]:
        """Return which of these files are product.

        Product is a file that what was asked for names, that other code uses or starts, or that a
        test is named after; also a file that imports product, or that product imports.
        """
        found = {
            path
            for path in reached
            if path in self.product.entries
            or self._subjects.namesakes_of(path)
            or any(
                user not in reached and not self._belongs(user)
                for user in self.product.imported.get(path, ())
            )
            or self._is_asked_for(path)
        }
        size = -1
        while size != len(found):
            size = len(found)
            found |= {path for path, uses in reached.items() if not found.isdisjoint(uses)}
            found |= {used for path in found for used in reached[path] if used in reached}
        return found

    def _by_use(self, test: str) -> None:
        """Add files that compare for a test, no matter how the test loads them.

        Tests that assert nothing themselves call them; other tests assert their answer. The latter
        kind may be what the test is about, so a function that a person mentions is not an input.
        """
        text = self.context.tree.text(test) or ""
        own = comparing_functions(text) | functions_of_two(text) | assigned_names(text)
        names = called_as_statements(text) - own - self._answering
        asserted = asserted_calls(text) - own if self.asked else set()
        asserted = {name for name in asserted if not self.asked.names_code(name)}
        family = self.references.family(test)
        if not names and not asserted:
            return
        code = [
            path
            for path in sorted(self.context.tree.paths)
            if self.references.family(path) == family
            and path not in self.tests
            and not self._belongs(path)
        ]
        if len(code) > MOST_CODE:
            return
        self.context.tree.prefetch(code)
        called = names | asserted
        texts = (
            (path, self.context.tree.text(path) or "")
            for path in code
            if not called.isdisjoint(self._defined_in(path))
        )
        own_calls = called_on_itself(text)
        for name, path in sorted(comparing(texts, names, each_other=asserted).items()):
            # What a test calls on itself and inherits is the test's, also in its namesake.
            if not paired(path, test) or (name in own_calls and self._is_base_in(path)):
                why = f"{test} calls {name} of it, which compares what it is given"
                self.context.add(path, why, "fixture", compares=name)
                self.compares.add(path)

    def _is_asked_for(self, path: str) -> bool:
        if path not in self._asked_for:
            self._asked_for[path] = self.asked.names(path, self.context.tree.text(path) or "")
        return self._asked_for[path]

    def _defined_in(self, path: str) -> frozenset[str]:
        if path not in self._defined:
            self._defined[path] = defined_functions(self.context.tree.text(path) or "")
        return self._defined[path]

    def _is_base_in(self, path: str) -> bool:
        """Whether some class of the tests inherits from one of this file."""
        return not self._bases.isdisjoint(classes_in(self.context.tree.text(path) or ""))

    @cached_property
    def _bases(self) -> frozenset[str]:
        """The names of classes from which classes of tests inherit."""
        texts = (self.context.tree.text(reader) or "" for reader in self._readers())
        return frozenset(name for text in texts for name in inherited_by(text))

    @cached_property
    def _answering(self) -> frozenset[str]:
        """Functions of which tests mostly use the answer, so that they are what is tested."""
        texts = (self.context.tree.text(test) or "" for test in sorted(self.tests)[:MOST_TESTS])
        return frozenset(used_answers(texts))

    def _uses_kit(self, path: str) -> bool:
        text = self.context.tree.text(path) or ""
        if self.references.family(path) == "go":  # the standard library's own test kit
            return "testing" in GO_IMPORT.findall(text)
        kits = TEST_KITS | (self.context.programs - {"python", "node"})
        words = re.findall(
            r"^\s*(?:import|from)\s+([\w:@/-]+)|(?:from|require\()\s*[\"']([\w:@/-]+)", text, re.M
        )
        return any(one in kits for pair in words for one in pair if one)

    def _asserts_for(self, path: str, test_text: str, files: frozenset[str]) -> bool:
        """Whether a test that asserts nothing itself leaves that to this module."""
        if len(files) < 2 or OWN_ASSERTION.search(test_text):
            return False
        text = self.context.tree.text(path) or ""
        if not ASSERTS.search(text) and "throw" not in text:
            return False
        stem = path.rpartition("/")[2].partition(".")[0]
        defined = set(re.findall(r"(?:\b(?:def|function|const|func)\s+|\bexports\.)(\w+)", text))
        called = CALLED.findall(test_text)
        return any(name in defined and owner in ("", stem) for owner, name in called)

    def _is_table(self, path: str, test_text: str, files: frozenset[str]) -> bool:
        """Whether a module holds only data, and a test compares with it or loops over it."""

        def data_alone(one: str) -> bool:
            text = self.context.tree.text(one) or ""
            plain = re.sub(r"(?m)^\s*(#|//).*$", "", text)
            return "=" in plain and not re.search(
                r"\b(def|class|lambda|function|import|from|require|for|while)\b|=>|\w\s*\(", plain
            )

        others = [one for one in files if one != path and not self._belongs(one)]
        if not data_alone(path) or all(data_alone(one) for one in others):
            return False
        text = self.context.tree.text(path) or ""
        names = re.findall(
            r"^\s*(?:(?:export\s+)?(?:const|let|var)\s+|exports\.)?(\w+)\s*=", text, re.M
        )
        bound = "|".join(map(re.escape, names[:100]))
        used = rf"(?:==|<=?|>=?|,|\w=|\bin)\s*(?:\w+\.)?(?:{bound})\s*(?:[),:\]]|$)"
        return bool(bound) and bool(re.search(used, test_text, re.M))

    # -- what is mentioned ------------------------------------------------------------------

    def _mentions(self, reader: str) -> None:
        tree = self.context.tree
        found = list(self.references.mentioned(reader))
        files, missing = self.references.imports(reader)
        has_subject = bool(
            any(not self._belongs(path) for path in files)
            or any(self.is_new_module(name) for name in missing)
            or any(self.references.family(path) and not self._belongs(path) for path in found)
            or self.references.family(reader) not in RESOLVED
        )
        for path in found:
            if path in tree.folders:
                self._folder(path, reader)
            elif not self.references.family(path) and not self._belongs(path):
                self._file(path, reader, has_subject)

    def _folder(self, folder: str, reader: str) -> None:
        tree = self.context.tree
        if any(one in self.folders for one in above(folder)) or f"{folder}/" in f"{reader}/":
            return
        if reader.startswith(f"{folder}/") or any(t.startswith(f"{folder}/") for t in self.tests):
            return
        files = tree.under(folder)
        plain = [path for path in files if not self.references.family(path)]
        if not plain or len(files) > MOST_FIXTURES or self.product.mentions(folder):
            return
        code = [path for path in files if self.references.family(path)]
        if any(self.product.imported.get(p) or p in self._subjects for p in code[:MOST_CODE]):
            return
        if any(path in self.product.entries for path in code):
            return
        if self._is_used_by_type(folder, code[:MOST_CODE]):
            return
        if _holds_manifest(files, folder):
            return
        why = f"read by {reader} and by no product file"
        self.context.collect(f"{literal(folder)}/**", why, "fixture")

    def _is_used_by_type(self, folder: str, code: list[str]) -> bool:
        """Whether code elsewhere uses a type of a folder, where imports are not followed."""
        unfollowed = [one for one in code if self.references.family(one) not in FOLLOWED]
        inner = f"{folder}/"
        users = (
            one for one in (*sorted(self.tests), *self.product.sources) if not one.startswith(inner)
        )
        return bool(unfollowed) and used_by_type(self.references, unfollowed, users)

    def _file(self, path: str, reader: str, has_subject: bool) -> None:
        if self.product.mentions(path) or path in self.product.entries:
            return
        if has_subject:
            self.context.add(path, f"read by {reader} and by no product file", "fixture")
        else:
            self.unsure.setdefault(path, f"{reader} checks what it says")


def _holds_manifest(files: list[str], folder: str) -> bool:
    """Whether a folder is a project of its own."""
    names = {path[len(folder) + 1 :] for path in files}
    return not names.isdisjoint(
        {"package.json", "pyproject.toml", "setup.py", "Cargo.toml", "go.mod", "pom.xml"}
    )
