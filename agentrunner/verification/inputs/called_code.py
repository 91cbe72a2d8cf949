"""Find the code that decides for a test by what the test calls, in any language. Pure.

How an import leads to a file differs between languages. These do not: a test passes the result of
the code to a function in a statement (`same(total([5]), 5)`), and a function of that name compares
its arguments.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import takewhile

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.references import References
from agentrunner.verification.inputs.tree import folder_of
from agentrunner.verification.syntax.stated_literals import comparing_functions, functions_of_two


class Subjects:
    """By source file: the tests that import it."""

    def __init__(self, references: References, tests: Collection[str]) -> None:
        self._references = references
        self._tests = tests
        self._of: dict[str, set[str]] = {}

    def read(self, tests: Collection[str]) -> None:
        """Record what these tests import."""
        for test in tests:
            for path in self._references.imports(test)[0]:
                self._of.setdefault(path, set()).add(test)

    def __contains__(self, path: str) -> bool:
        return path in self._of

    def tests_of(self, path: str) -> set[str]:
        """Return the tests that import a file."""
        return self._of.get(path, set())

    def namesakes_of(self, path: str) -> list[str]:
        """Return the tests that import a file and are named after it.

        A test named after two files (`check_list` uses both `check` and `list`) is about the one
        that does not lie beside it.
        """
        return [
            test
            for test in self.tests_of(path)
            if paired(path, test)
            and not (
                folder_of(path) == folder_of(test)
                and any(
                    paired(one, test) and folder_of(one) != folder_of(test)
                    for one in self._references.imports(test)[0] - {path}
                )
            )
        ]

    def helps_only(self, path: str, imported: Mapping[str, set[str]]) -> bool:
        """Whether a file is a tool of tests, even if it has a test of its own.

        That is so if a test of another name uses it, that test is about code elsewhere, and no
        product code elsewhere uses anything in its folder. `imported` maps a file to the product
        code that imports it.
        """
        folder = folder_of(path)
        inner = f"{folder}/" if folder else ""
        if not inner or self._folder_is_used(inner, imported):
            return False
        others = [test for test in self.tests_of(path) if not paired(path, test)]
        aims = [self._subjects_of(test) for test in others]
        return any(aim and not any(one.startswith(inner) for one in aim) for aim in aims)

    def _folder_is_used(self, inner: str, imported: Mapping[str, set[str]]) -> bool:
        return any(
            path.startswith(inner) and any(not user.startswith(inner) for user in users)
            for path, users in imported.items()
        )

    def _subjects_of(self, test: str) -> list[str]:
        """Return what a test is about: code it is named after, else code without an own test."""
        files = [path for path in self._references.imports(test)[0] if path not in self._tests]
        named = [path for path in files if paired(path, test)]
        return named or [path for path in files if not self.namesakes_of(path)]


_CALL = (
    r"[ \t]*(?:await[ \t]+)?(?:\$?\w+(?:::|\.|->|\\))*(?P<name>\w+)!?(?:\(|[ \t]+)(?P<given>.*)$"
)
STATEMENTS = (lazy_regex(rf"(?m)^{_CALL}"), lazy_regex(rf"(?m)=>[ \t]*\{{?{_CALL}"))
"""Calls whose value is unused: whole lines, and the bodies of short functions."""
ASSERTED = lazy_regex(
    r"(?m)(?:\bif\b[ \t]+\w+[ \t]*:=(?P<first>[^;\n]*\([^;\n]*);"
    r"|\b(?:assert|ok|if|unless|expect|is|affirm)\b|\bassert\w*"
    r"|\b\w++\.(?:[Tt]rue|ok|isTrue|truthy)\b)"
    rf"!?[ \t(!]*(?:not[ \t(]+)?{_CALL}"
)
"""Calls whose value is the only thing that an assertion, or an `if`, checks."""
PIECE = lazy_regex(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[()\[\]{}]|[^()\[\]{}\"']+|.")
"""A text in quotes, a bracket, or what is neither."""
INNER = lazy_regex(r"[\w)\]]\(|\$\(|`")
"""Another call among the arguments."""
STATED = lazy_regex(r"(?:^|[(,])\s*(?:&?(?:\[|\{)|[\"'`]|-?\d)")
"""An argument that is a value in the test's own text."""
ANSWER_USED = lazy_regex(
    r"(?m)(?:[^=!<>]=|\breturn\b|\byield\b)[ \t]*(?:await[ \t]+)?(?:\w+(?:\.|::))*(?P<name>\w+)\("
    r"|^[ \t]*@(?:\w+\.)*(?P<mark>\w+)"
)
"""Calls whose value is kept or given back, and decorators."""
ASSIGNED = lazy_regex(
    r"(?m)^[ \t]*(?:(?:const|let|var|my|auto)[ \t]+)?\$?(?P<name>\w+)[ \t]*:?=(?!=)"
    r"(?!.*\b(?:(?P=name)\b|require\b|import\b))(?=.*\()"
)
"""A name that is given what a call answers, which is nothing of that name, and no module."""
ON_ITSELF = lazy_regex(
    r"(?:\b(?:self|cls|this|super\(\))\.|\$this->|\b(?:self|static|parent)::)(?P<name>\w+)\("
)
CLASS = lazy_regex(
    r"\b(?:class|trait|module)\s+(?P<name>\w+)"
    r"(?:\s*\((?P<bases>[^()]*)\)|[^{\n]*?\bextends\s+(?P<base>[\w.]+))?"
)
OWN_ASSERTION = lazy_regex(
    r"^[^\S\n]*assert\b|\bself\.assert|\bself\.fail|\bexpect\s*\(|\bassert[.(]|pytest\.raises",
    re.MULTILINE,
)
NO_CALLS = frozenset(
    """if for while until unless return let const var my our local import from use require include
    def function fn func sub class struct public private static void int echo print printf puts do
    then else elif case when switch match type interface export module package new throw raise try
    expect describe it test suite context assert with except catch end begin set source""".split()
)


def called_as_statements(text: str) -> set[str]:
    """Return functions to which a test passes the result of another call and a further value."""
    return {
        hit["name"]
        for form in STATEMENTS
        for hit in form.finditer(text)
        if _hands_over(hit) and not OWN_ASSERTION.search(_block(text, hit.start("name")))
    }


def used_answers(texts: Iterable[str]) -> set[str]:
    """Return functions whose answers tests use more often than they call them for nothing.

    These are what is tested; nobody asks them for a verdict alone.
    """
    used, alone = Counter[str](), Counter[str]()
    for text in texts:
        used.update(hit["name"] or hit["mark"] for hit in ANSWER_USED.finditer(text))
        alone.update(hit["name"] for form in STATEMENTS for hit in form.finditer(text))
    return {name for name, times in used.items() if times > alone[name]}


def assigned_names(text: str) -> set[str]:
    """Return names that a test gives an answer itself: they are no functions of another file."""
    return {hit["name"] for hit in ASSIGNED.finditer(text)}


def asserted_calls(text: str) -> set[str]:
    """Return functions to which a test passes the same, and whose answer is all that it asserts."""
    return {hit["name"] for hit in ASSERTED.finditer(text) if _hands_over(hit)}


def called_on_itself(text: str) -> set[str]:
    """Return methods that a test calls on its own object: it has them itself, or inherits them."""
    return {hit["name"] for hit in ON_ITSELF.finditer(text)}


def inherited_by(text: str) -> set[str]:
    """Return the names that stand as bases in the heads of a file's classes."""
    heads = ((hit["bases"] or "", hit["base"] or "") for hit in CLASS.finditer(text))
    return {word for bases in heads for one in bases for word in re.findall(r"\w+", one)}


def classes_in(text: str) -> set[str]:
    """Return the names of a file's classes."""
    return {hit["name"] for hit in CLASS.finditer(text)}


def comparing(
    paths: Iterable[tuple[str, str]], wanted: Iterable[str], *, each_other: Iterable[str] = ()
) -> dict[str, str]:
    """Return, by name, the one file whose function of that name compares its arguments.

    `paths` holds pairs of path and text. Functions in `each_other` must compare two parameters.
    """
    several, pairs = set(wanted), set(each_other)
    found: dict[str, list[str]] = {}
    for path, text in paths:
        if any(name in text for name in several | pairs):
            for name in comparing_functions(text, several) | functions_of_two(text, pairs):
                found.setdefault(name, []).append(path)
    return {name: places[0] for name, places in found.items() if len(set(places)) == 1}


def _hands_over(hit: re.Match[str]) -> bool:
    name, given = hit["name"], _arguments(hit)
    several = "," in given or re.search(r"[\"')]\s+\S", given)
    inner = INNER.search(given) or hit.groupdict().get("first") or _hands_over_answer(hit, given)
    special = name in NO_CALLS or (name.startswith("__") and name.endswith("__"))
    return not special and bool(several) and bool(inner)


def _hands_over_answer(hit: re.Match[str], given: str) -> bool:
    """Whether a name among the arguments holds an answer, and another argument is a stated value or
    more is called on the call (`.toBe(true)`).

    Two answers are what a function that is tested itself may be given.
    """
    decides = INNER.search(hit["given"]) or STATED.search(given)
    return bool(decides) and not assigned_names(hit.string).isdisjoint(re.findall(r"\w+", given))


def _arguments(hit: re.Match[str]) -> str:
    """Return what stands between a call's brackets on its line; all of it where it has none."""
    given = hit["given"]
    if hit.string[hit.start("given") - 1] != "(":
        return given
    depth = 0
    for piece in PIECE.finditer(given):
        depth += (piece[0] in "([{") - (piece[0] in ")]}")
        if depth < 0:
            return given[: piece.start()]
    return given


def _block(text: str, at: int) -> str:
    """Return the lines around a place with at least its indentation: usually one test."""
    start = text.rfind("\n", 0, at) + 1
    depth = len(text[start:]) - len(text[start:].lstrip(" \t"))
    if not depth:
        return text
    inside = re.compile(rf"[ \t]{{{depth}}}|\s*$")
    before, after = text[:start].split("\n")[:-1], text[start:].split("\n")
    above = takewhile(inside.match, reversed(before))
    return "\n".join([*above, *takewhile(inside.match, after)])


def paired(path: str, test: str) -> bool:
    """Whether a test is named after a source file: `greet.test.js` and `greet.js`."""
    stem = path.rpartition("/")[2].partition(".")[0]
    name = test.rpartition("/")[2].partition(".")[0]
    parts = [part for part in re.split(r"[_\-.]", test.rpartition("/")[2]) if part]
    named = name in (stem, f"{stem}Test", f"{stem}Spec", f"Test{stem}")
    return len(stem) > 1 and (named or (stem in parts and len(parts) <= 3))
