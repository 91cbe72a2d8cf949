"""Finds changes of tests and their data that only follow from what a PRD asks for. Pure.

No PRD names each test that imports what moves, nor the path of a snapshot.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.file_names import TEXTS
from agentrunner.verification.inputs.changes import ProofChange
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.inputs.wanted_moves import moves_in, renames_in
from agentrunner.verification.inputs.wanted_tests import (
    asked_by_kind,
    asks_to_adapt,
    differs_by_snapshots,
    says_it_becomes,
    wants_snapshots,
)
from agentrunner.verification.inputs.words_of_change import outside_of_checks
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.names import own_name
from agentrunner.verification.syntax.context import definitions_in
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.functions import normal
from agentrunner.verification.syntax.imports import places_of_imports, without_imports
from agentrunner.verification.syntax.languages import language_of, parse
from agentrunner.verification.syntax.tokens import lexical_family, tokens, without_comments
from agentrunner.verification.test_changes.adapted_tests import (
    VALUE,
    WantedValues,
    adapted_in,
    adapts_snapshots,
    exchanged_values,
    reworded_in,
)
from agentrunner.verification.test_changes.moves import (
    MOST_COMPARED,
    QUOTED,
    WORD,
    asked_moves,
    imports_follow,
    names_follow,
    parts_follow,
    places_follow,
    says_the_same,
)
from agentrunner.verification.test_changes.removed_tests import bare_tests, without_new_tests
from agentrunner.verification.trees import Changes

CODE_IN_TEXT = lazy_regex(r"__all__\s*\+?=\s*[\[(][^\])]*[\])]|[$#]\{[^{}\n]*\}")
"""Where names of code stand in quotes: what Python exports, and what a text gets put in."""
KEY = lazy_regex(r"(?m)(?:^|[{(,])[ \t]*(?:pub[ \t]+)?(\w+)[ \t]*(?::(?!:)|=(?![=>]))")
"""A field, or a value that is handed over by its name: what is written out may have that name."""

CODE_TOKEN = lazy_regex(
    r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`|\d[\w.]*|[^\W\d]\w*|\S", re.DOTALL
)
HEAD = lazy_regex(r"(?<![\w.])([A-Za-z_]\w*)[ \t]*\(((?:[^()]|\([^()]*\)){0,2000})\)")
"""A name with what is between its brackets, which may hold functions as parameters."""
NO_HEADS = frozenset(
    "if for while switch catch return assert elif and or not in match with".split()
)
"""Words before brackets that are no function."""
NAME = lazy_regex(r"[^\W\d]\w*")
LARGEST = 4_000
"""Tokens of a file that are compared."""

TOKEN = lazy_regex(r"\w+|[^\w\s]")
SPEAKS_OF_NAMES = lazy_regex(r"(?i)\brenam|\bnames?\b|\bnaming\b|改名|リネーム|名前|名称")
MOST_BYTES = 500_000
"""Bytes of a file that are compared."""

WANTED = lazy_regex(r"(?i)\bES[ -]?modules?\b|\bESM\b|\"type\":\s*\"module\"")
STRICT = lazy_regex(rb"(?m)^[ \t]*(['\"])use strict\1;?[ \t]*$")
REQUIRES = lazy_regex(
    r"(?:const|let|var)\s+(?P<names>[\w$]+|\{[^{}]*\})\s*=\s*"
    r"require\(\s*(?P<quote>['\"])(?P<module>[^'\"]+)(?P=quote)\s*\)(?:\.(?P<part>[\w$]+))?\s*;?"
)
IMPORTS = lazy_regex(
    r"import\s+(?:(?:\*\s+as\s+)?(?P<whole>[\w$]+)\s*,?\s*)?(?P<names>\{[^{}]*\})?\s*from\s*"
    r"(?P<quote>['\"])(?P<module>[^'\"]+)(?P=quote)\s*;?"
)
RENAMED = lazy_regex(r"(?P<part>[\w$]+)(?:\s*(?::|\bas\b)\s*(?P<name>[\w$]+))?")


class FollowUps(Struct, frozen=True, dict=True):
    """Finds such changes among the changed inputs of the proof."""

    wanted: str
    """The text of what was asked for."""
    judged: Sequence[ProofChange]
    was: ReadFile
    """Reads a file as it was before the run; `now` reads it as it is."""
    now: ReadFile
    total: Changes

    def of_moves(self) -> set[str]:
        """Tests and settings whose only changes follow what the PRD moves or renames.

        These are imports of modules that moved, names in code, and paths in a Makefile. Where a
        package becomes one of ES modules, files of it import what they required.
        """
        deleted, added = sorted(self.total.deleted), sorted(self.total.added)
        moves = asked_moves(moves_in(self.wanted), self.wanted, deleted, added)
        names = self._names
        found = self._moved_along(moves)
        asked, code = outside_of_checks(self.wanted), self._texts(self.total.all)
        to_es_modules = asks_for_es_modules(self.wanted)
        for path in sorted({one.path for one in self.judged} & self.total.modified):
            before, after = self.was(path), self.now(path)
            if before is None or after is None:
                continue
            if (
                to_es_modules
                and language_of(path) == "javascript"
                and modules_follow(before, after)
            ):
                found.add(path)
            elif language_of(path) is None:
                follows = names_follow(path, before, after, names, self._in_code_alone)
                if follows if family_of(path) else places_follow(before, after, moves):
                    found.add(path)
            elif (
                names_follow(path, before, after, names, self._in_code_alone)
                or self._rest_follows(path, before, after, names)
                or imports_follow(path, before, after, moves)
                or parts_follow(path, before, after, asked, code)
            ):
                found.add(path)
        return found

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """New names of code by the old ones, as the PRD wants them or as the code shows."""
        return {**renamed_in_code(self._changed_product(), self.wanted), **renames_in(self.wanted)}

    @cached_property
    def _in_code_alone(self) -> set[str]:
        """Those of the old names that the changed product had in no text and as no key."""
        tests = {one.path for one in self.judged if not one.input.region}
        quoted: set[str] = set()
        product = {*self.total.modified, *self.total.deleted} - tests
        for path in sorted(product) if self._names else ():
            text = self.was(path) or b""
            if not family_of(path):  # a template, say; not what people read
                other = "" if path.endswith(TEXTS) else text.decode("utf-8", "replace")
                quoted.update(WORD.findall(other))
                continue
            source = CODE_IN_TEXT.sub("", without_comments(path, text).decode("utf-8", "replace"))
            quoted.update(KEY.findall(source))
            for text in QUOTED.findall(source):
                quoted.update(WORD.findall(text))
        return self._names.keys() - quoted

    def without_new_tests(self, paths: Collection[str]) -> dict[str, bytes]:
        """Those of these files that have new tests or imports besides, without them."""
        found: dict[str, bytes] = {}
        for path in sorted(paths):
            language, before, after = language_of(path), self.was(path), self.now(path)
            if language is None or before is None or after is None:
                continue
            rest = without_new_tests(before, after, language, self._names)
            if rest != after and without_imports(rest, language) is not None:
                found[path] = rest
        return found

    def _rest_follows(
        self, path: str, before: bytes, after: bytes, names: Mapping[str, str]
    ) -> bool:
        """Whether a file follows new names, but for new tests and what these import."""
        bare = bare_tests(before, after, language_of(path) or "", names) if names else None
        return bare is not None and names_follow(path, *bare, names, self._in_code_alone)

    def _texts(self, paths: Sequence[str]) -> dict[str, tuple[bytes, bytes]]:
        """The first of these files with a grammar, before and after."""
        some = (path for path in paths[:MOST_COMPARED] if language_of(path) is not None)
        return {path: self._both(path) for path in some}

    def _both(self, path: str) -> tuple[bytes, bytes]:
        return self.was(path) or b"", self.now(path) or b""

    def _moved_along(self, moves: Sequence[tuple[str, str]]) -> set[str]:
        """Old and new paths of tests that went, saying the same, where the PRD wants their place.

        "Move `org.example` to `org.example.bank`" names no path.
        """
        found: set[str] = set()
        tests = {one.path for one in self.judged if one.input.kind == "test"}
        for path in sorted(tests & self.total.deleted):
            for was, now in moves:
                new = now + path.removeprefix(was)
                if not path.startswith(f"{was}/") or new not in self.total.added:
                    continue
                before, after = self.was(path), self.now(new)
                if before is None or after is None:
                    continue
                if says_the_same(path, before, {new: after}, moves):
                    found |= {path, new}
        return found

    def of_signatures(self) -> set[str]:
        """Tests and their helpers that only hand over, or take, what a function takes now."""
        paths = {one.path for one in self.judged if not one.input.region} & self.total.modified
        if not paths:
            return set()
        heads = changed_heads(list(self._changed_product().values()))
        asked = outside_of_checks(self.wanted)
        return {
            path
            for path in sorted(paths)
            if heads
            and (language := language_of(path)) is not None
            and follows_heads(*self._both(path), language, heads, asked)
        }

    def _changed_product(self) -> dict[str, tuple[bytes, bytes]]:
        """Changed files of the product with a grammar, before and after, by path."""
        paths = {one.path for one in self.judged if not one.input.region}
        return self._texts(sorted(self.total.modified - paths))

    def adapted_tests(self, run: Collection[str]) -> dict[str, set[str]]:
        """Tests that were adapted as the PRD asks in ordinary words, by their file.

        `run` are the files whose tests were reported by name before the run.
        """
        found: dict[str, set[str]] = {}
        stated: set[str] = set()
        kinds = {one.path: one.input for one in self.judged if one.path in self.total.modified}
        for path in sorted(kinds.keys() & set(run)):
            language, before, after = language_of(path), self.was(path), self.now(path)
            if language is None or before is None or after is None:
                continue
            if kinds[path].kind != "test" or kinds[path].region:
                continue
            stems = {posixpath.splitext(posixpath.basename(one))[0] for one in self.total.added}
            text = outside_of_checks(self.wanted)
            wanted = WantedValues(text, self._values_gone(), self._values_come(), stems)
            if names := adapted_in(before, after, language, wanted):
                found[path] = names
            if names := reworded_in(before, after, language, wanted):
                found[path] = names
                stated.add(path)
        every = {own_name(name) for names in found.values() for name in names}
        snapshots = all(
            adapts_snapshots(*self._both(path), language_of(path) or "") for path in found
        )
        if asks_to_adapt(self.wanted, every, snapshots=snapshots):
            return found
        return {
            path: names
            for path, names in found.items()
            if path in stated or self._follows_a_value(path)
        }

    def _follows_a_value(self, path: str) -> bool:
        """Whether the tests of a file have new values in place of old ones just as the product has,
        and the PRD says that what they belong to becomes so."""
        language = language_of(path) or ""
        pairs = exchanged_values(*self._both(path), language)
        gone, come = self._values_gone(), self._values_come()
        return bool(pairs) and all(
            was in gone and now in come and says_it_becomes(self.wanted, subject, now)
            for subject, was, now in pairs or ()
        )

    def _values_gone(self) -> set[str]:
        """Values that changed files of the product have less often than before."""
        return self._values_only_in(self.was, self.now)

    def _values_come(self) -> set[str]:
        """Values that they have more often than before."""
        return self._values_only_in(self.now, self.was)

    def _values_only_in(self, read: ReadFile, read_other: ReadFile) -> set[str]:
        found: set[str] = set()
        tests = {one.path for one in self.judged if one.input.kind == "test"}
        regions = {one.path for one in self.judged if one.input.region}
        product = self.total.modified - (tests - regions)
        for path in sorted(product)[:MOST_COMPARED]:
            texts = ((one(path) or b"").decode("utf-8", "replace") for one in (read, read_other))
            mine, others = (Counter(VALUE.findall(text)) for text in texts)
            found |= (mine - others).keys()
        return found

    def expected_data(self) -> set[str]:
        """Changed data that tests compare with, of a kind that the PRD wants changed."""
        kinds = {one.path: one.input.kind for one in self.judged if one.path in self.total.modified}
        data = [path for path, kind in kinds.items() if kind == "fixture" and not family_of(path)]
        found = asked_by_kind(self.wanted, data)
        if wants_snapshots(self.wanted):
            found |= {
                path
                for path, kind in kinds.items()
                if kind == "test" and differs_by_snapshots(*self._both(path))
            }
        return found


def asks_for_es_modules(prd_text: str) -> bool:
    """Whether a PRD speaks of ES modules.

    A package that becomes one of ES modules needs other imports in its tests, and nothing else.
    """
    return bool(WANTED.search(outside_of_checks(prd_text)))


def modules_follow(before: bytes, after: bytes) -> bool:
    """Whether a file of JavaScript imports as ES modules do what it required, and is else the same.

    Each name comes from the module that it came from, under the name that it had there.
    """
    if (bare := without_imports(before, "javascript")) is None:
        return False
    if (
        STRICT.sub(b"", bare).split()
        != STRICT.sub(b"", without_imports(after, "javascript") or b"").split()
    ):
        return False
    was, now = (
        [_bound(text) for _, _, text in places_of_imports(source, "javascript") or ()]
        for source in (before, after)
    )
    if not was or None in was or None in now:
        return False
    old, new = ({name for names in found for name in names or ()} for found in (was, now))
    return bool(old) and old == new and before != after


def _bound(text: str) -> set[tuple[str, str, str]] | None:
    """Names that an import binds, each with its module and its name there; None if unclear."""
    hit = REQUIRES.fullmatch(text.strip()) or IMPORTS.fullmatch(text.strip())
    if hit is None:
        return None
    module = re.sub(r"^node:|(?:\.[cm]?js|/index(?:\.[cm]?js)?)$", "", hit["module"])
    groups, names = hit.groupdict(), hit["names"] or ""
    whole = groups.get("whole") or ("" if names.startswith("{") else names)
    found = {(whole, module, groups.get("part") or "")} if whole else set()
    if names.startswith("{"):
        if groups.get("part"):
            return None
        for one in filter(None, map(str.strip, names[1:-1].split(","))):
            if (named := RENAMED.fullmatch(one)) is None:
                return None
            found.add((named["name"] or named["part"], module, named["part"]))
    return found


def renamed_in_code(files: Mapping[str, tuple[bytes, bytes]], wanted: str) -> dict[str, str]:
    """Return new names by old ones, where the text speaks of renaming or of one of the names.

    `files` are the changed files of the product by path, before and after. Both names are declared
    there, the one before and the other after, and what they name is the same. Beside comments and
    texts the old name stands in none of these files any more, and the new one stood in none.
    """
    old = [one for path, (text, _) in files.items() for one in _declared(path, text)]
    new = [one for path, (_, text) in files.items() for one in _declared(path, text)]
    used_before = {name for path, (text, _) in files.items() for name in _names(path, text)}
    used_after = {name for path, (_, text) in files.items() for name in _names(path, text)}
    gone = {name for name, _ in old} - used_after
    come = used_after - used_before
    if not gone or not come:
        return {}
    found: dict[str, set[str]] = {}
    for before, after in files.values():
        for was, now in _exchanged(before[:MOST_BYTES], after[:MOST_BYTES]):
            if was in gone and now in come:
                found.setdefault(was, set()).add(now)
    one_each = {was: next(iter(now)) for was, now in found.items() if len(now) == 1}
    taken = Counter(one_each.values())
    speaks = SPEAKS_OF_NAMES.search(wanted) is not None
    asked = set(NAME.findall(wanted))
    renames = {
        was: now
        for was, now in one_each.items()
        if taken[now] == 1 and (speaks or was in asked or now in asked)
    }
    return {
        was: now
        for was, now in renames.items()
        if sorted(_renamed(text, renames) for name, text in old if name == was)
        == sorted(text for name, text in new if name == now)
    }


def _declared(path: str, source: bytes) -> list[tuple[str, str]]:
    """Names that a file declares, with the text of each declaration."""
    language = language_of(path)
    parsed = parse(source, language) if language else None
    if parsed is None:
        return []
    return [(name, normal(parsed, node)) for name, node in definitions_in(parsed)]


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return NAME.sub(lambda hit: names.get(hit[0], hit[0]), text)


def _names(path: str, source: bytes) -> set[str]:
    family = lexical_family(path, source)
    found = tokens(source, family) if family else ()
    return {token.text for token in found if token.kind == "name"}


def _exchanged(before: bytes, after: bytes) -> Iterator[tuple[str, str]]:
    """Words in whose place another one stands, in lines that differ by nothing but words."""
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, after))
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "replace" or b - a != d - c:
            continue
        for was, now in zip(old[a:b], new[c:d], strict=True):
            first, second = TOKEN.findall(was), TOKEN.findall(now)
            if len(first) == len(second):
                yield from (pair for pair in zip(first, second, strict=True) if pair[0] != pair[1])


def changed_heads(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, set[str]]:
    """Functions that take more than before in changed files, and the names of what is more.

    `pairs` are the texts of files before and after. A class takes what makes it takes.

    A double has to take what the interface takes now, and a call has to hand it over. Nothing else
    may differ: what is added stands between the brackets of a function whose parameters the work
    changed, and the requirements speak of what it takes.
    """
    found: dict[str, set[str]] = {}
    for before, after in pairs:
        was, now = _heads(before), _heads(after)
        for name in was.keys() & now.keys():
            for one in now[name] - was[name]:
                if one and not any(
                    set(NAME.findall(one)) <= set(NAME.findall(o)) for o in was[name]
                ):
                    known = {word for other in was[name] for word in NAME.findall(other)}
                    found.setdefault(name, set()).update(set(NAME.findall(one)) - known)
    for name in ("__init__", "constructor", "new", "initialize", "__construct"):
        if name in found:
            for _, after in pairs:
                for made in re.findall(r"\bclass\s+(\w+)", after.decode("utf-8", "replace")):
                    found.setdefault(made, set()).update(found[name])
    return found


def follows_heads(
    before: bytes, after: bytes, language: str, heads: dict[str, set[str]], asked: str
) -> bool:
    """Whether a file differs by what functions with other heads take now, and by imports alone.

    Tests that are added at its end count as nothing. `asked` has to speak of what is taken.
    """
    words = {word.casefold() for word in NAME.findall(asked)}
    spoken = {name for name, more in heads.items() if {one.casefold() for one in more} & words}
    if not spoken:
        return False
    old, new = (CODE_TOKEN.findall(_without_imports(text, language)) for text in (before, after))
    if max(len(old), len(new)) > LARGEST:
        return False
    changed = False
    for tag, a, _b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if tag == "insert" and a == len(old):
            continue  # tests that are added
        if tag != "insert" or not _is_argument(new, c, d) or not _between_brackets(new, c, spoken):
            return False
        changed = True
    return changed


def _heads(text: bytes) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for hit in HEAD.finditer(text.decode("utf-8", "replace")):
        if hit[1] in NO_HEADS:
            continue
        found.setdefault(hit[1], set()).add(" ".join(hit[2].split()))
    return found


def _without_imports(source: bytes, language: str) -> str:
    edits = [Edit(start, end, "") for start, end, _ in places_of_imports(source, language) or ()]
    return applied(source, edits).decode("utf-8", "replace")


def _is_argument(tokens: list[str], start: int, end: int) -> bool:
    """Whether these tokens are whole arguments, between commas and brackets."""
    own = tokens[start:end]
    begins = tokens[start - 1] in "(" or own[0] == ","
    ends = own[-1] == "," or tokens[end : end + 1] in ([")"], [","])
    return start > 0 and begins and ends and not set(own) & {";", "{", "}"}


def _between_brackets(tokens: list[str], at: int, names: Collection[str]) -> bool:
    """Whether a place is inside of the brackets that follow one of these names."""
    depth = 0
    for index in range(at - 1, max(at - 200, -1), -1):
        if depth == 0 and tokens[index] in "{[;":
            return False
        if tokens[index] == ")":
            depth += 1
        elif tokens[index] == "(":
            if depth == 0:
                return index > 0 and tokens[index - 1] in names
            depth -= 1
    return False
