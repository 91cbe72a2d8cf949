"""Names of tests: makes them safe to show, reduces them to what is stable, and compares runs."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.model import Results, TestOutcomeKind, TestResult

MOST_NAME = 1_000
MOST_MESSAGE = 2_000
OUTCOMES: frozenset[str] = frozenset({"passed", "failed", "error", "skipped", "xfailed", "xpassed"})
CONTROL = lazy_regex(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
ESCAPES = lazy_regex(r"\x1b\[[0-9;]*[A-Za-z]")
MESSAGE_CONTROL = lazy_regex(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

CHANGING_PART = lazy_regex(
    r"""
      [0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}   # uuid
    | \b0x[0-9a-fA-F]{4,}                                                           # address
    | (?:/private)?(?:/var)?/tmp/[^\s'"\])},:]+ | /var/folders/[^\s'"\])},:]+       # temp path
    | \d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?     # date
    | \b\d\d:\d\d:\d\d(?:[.,]\d+)?                                                  # time of day
    | \(\s*\d+(?:\.\d+)?\s*(?:ns|us|µs|ms|s|sec|secs|seconds|min|m)\s*\)            # (12 ms)
    | \(line\ \d+\)                                                                 # of a doctest
    | \b[0-9a-f]{32,}\b                                                             # hash
    """,
    re.VERBOSE,
)
CASE_OF_TEST = lazy_regex(r"^((?:\S+\.py::\S+|\w+(?:\.\w+)+)) (?:\[.*\](?: \(.*\))?|\(.*\))$")
PARAMETERS = lazy_regex(r"(?<=\w)\[.*\]$|(?<=\w)\[[^\[\]]*\](?= \[|\s*\()", re.DOTALL)
TITLES = lazy_regex(r"\s[>›]\s")
"""Between titles: our own sign and Jest's."""
OF_CRATE = lazy_regex(r"^\S+ \S+\.rs (?=\S+$)")
"""The package and the file that a name of Cargo's begins with."""
INNERMOST = lazy_regex(r"\[[^\[\]()]*\]|\([^\[\]()]*\)")
CASE = lazy_regex(r"(?<=\w)[\[(]")
"""Where the parameters of a case begin."""
IN_BRACKETS = lazy_regex(r"^\w+ \(([\w.]+)\)$")
"""What could not be set up: `setUpClass (tests.test_db.DbTest)`."""
HOOK = lazy_regex(r' > "(?:before|after) (?:all|each)" hook[^>]*$')
"""The hook of a group, as Mocha names it."""
NUMBERED = lazy_regex(r"(?<=[\[-])([^\W\d]\w*?)(\d+)(?=[\]-])")
"""Pytest's own id of a value that has no text: the argument's name and its place in the list."""
NUMBER_AS_NAME = lazy_regex(r"(?<= > )\d+$")
"""The number of a TAP test without a description, which changes with the tests before it."""
BRACKETED = lazy_regex(r" with data set (?:#\d+|\".*\")$|(?<=\w)\(.*\)(?:\[\d+\])?$", re.DOTALL)

ROW = lazy_regex(r" -- @\d.*$|(?<=\w)\{.*$|/\d+$")
"""What Behave puts behind the name of a scenario for a row of its table, Surefire and GoogleTest
behind that of a test for a case."""


def parts_of(name: str) -> list[str]:
    """The parts of a test's name, innermost last, the parameters of a case with the last.

    Titles are parts where a tool joins them by " > ", whatever stands in them; of other names the
    words between "::" and ".", which is a point of a number where a digit follows.
    """
    if _has_titles(name):
        return TITLES.split(name)
    case = CASE.search(name)
    head = name[: case.start()] if case else name
    parts = re.split(r"::|\.(?!\d)", head)
    return [*parts[:-1], parts[-1] + name[len(head) :]]


def _has_titles(name: str) -> bool:
    return TITLES.search(_without_brackets(name)) is not None


def _without_brackets(name: str) -> str:
    """The name without what is in brackets: `order() > sorts` has titles, `test[a > b]` none."""
    number = 1
    while number:
        name, number = INNERMOST.subn("", name)
    return name


def own_name(name: str) -> str:
    """The last part of a test's name, as every tool reports it."""
    return parts_of(name)[-1]


def is_called(name: str, short: str) -> bool:
    """Whether a test, or a case of it, has just this name, or a longer one that ends with it."""
    short = short if " " in name else short.replace(" ", "_")  # as Go spells it
    name = _within_crate(name, short)
    titles = _has_titles(name)
    wanted = TITLES.split(short) if titles else parts_of(short)
    own = parts_of(name)
    if own[-len(wanted) :] == wanted or (name.endswith(f"/{short}") and not titles):
        return True
    if titles and any(_joined(own[start:]) == _joined(wanted) for start in range(len(own))):
        return True
    wanted = _words_of(short, titles=titles)
    return not _is_case(short) and _words_of(name)[-len(wanted) :] == wanted


def _within_crate(name: str, short: str) -> str:
    """A name of Cargo's without package and file, unless `short` says these as well."""
    return name if OF_CRATE.match(short) else OF_CRATE.sub("", name)


def _joined(titles: Iterable[str]) -> str:
    """Titles as the tools that run them by their names take them: one behind the other."""
    return " ".join(" ".join(titles).split())


def belongs_to(test: TestResult, short: str) -> bool:
    """Whether a test is one of this name, a case of it, or one of a group that has this name.

    A module of that name is no such group: it may hold any tests. A file is one by its path.
    """
    is_path = posixpath.splitext(short)[1] and f"/{test.file}".endswith(f"/{short}")
    if is_path or is_called(test.name, short):
        return True
    words_of, titles = parts_of if _is_case(short) else _words_of, _has_titles(test.name)
    wanted, own = TITLES.split(short) if titles else words_of(short), words_of(test.name)
    if not titles:  # Cargo's names begin with a package and a target, each where it is known.
        wanted[:1], own[:1] = wanted[0].split(" "), own[0].split(" ")
    outside, stem = 0, posixpath.splitext(test.file)[0]
    if test.file and test.name.startswith(test.file):
        outside = 1 if titles else len(words_of(test.file))
    elif stem and test.name.startswith(f"{stem.replace('/', '.')}."):
        outside = len(stem.split("/"))
    ends = range(max(outside + 1, len(wanted)), len(own) + 1)
    if any(own[end - len(wanted) : end] == wanted for end in ends):
        return True
    inside, text = own[outside:], _joined(wanted)
    return titles and any(
        _joined(inside[start:end]) == text
        for start in range(len(inside))
        for end in range(start + 1, len(inside) + 1)
    )


def _is_case(short: str) -> bool:
    return _without_case(short) != short


def _without_case(name: str) -> str:
    return ROW.sub("", BRACKETED.sub("", function_of(name)))


def _words_of(name: str, *, titles: bool = False) -> list[str]:
    """The parts of a name without its case, also what stands between "/" and "#" but for numbers.

    `Many/Sum.Adds/0` and `Sum/1.Adds` are cases of `Sum.Adds`.
    """
    if titles or _has_titles(name):
        return TITLES.split(_without_case(name))
    parts = parts_of(_without_case(name))
    words = [word for part in parts for word in re.split("[/#]", part) if not word.isdigit()]
    return words or parts


def only_of_name(results: Results, short: str) -> tuple[Results, bool]:
    """The results of the tests that are called so, and whether these passed where others are red.

    Tools also run what only contains a name. What could not be loaded stays, since it may hold the
    test. Results that may lack some stay as they are, and so do those read from printed text in
    which one is called so: the product may have printed it.
    """
    if not results.complete:
        return results, False
    kept = tuple(one for one in results.tests if one.unloaded or belongs_to(one, short))
    if results.weak and kept:
        return results, False
    others_red = len(replace(results, tests=kept).red) < len(results.red)
    passed = bool(kept) and all(one.outcome == "passed" for one in kept)
    return replace(results, tests=kept), others_red and passed


def test_of_case(name: str) -> str:
    """The name of the test of Python that reports this case by itself (`subTest`), or the name."""
    hit = CASE_OF_TEST.match(name)
    return hit[1] if hit else name


def all_pass(names: Iterable[str], results: Results) -> bool:
    """Whether these tests pass; a case may be missing, as its values can be others by now."""
    names = set(names)
    tests = {test_of_case(name) for name in names if test_of_case(name) != name}
    return all(
        results.passed(name)
        or (name not in results.names and test_of_case(name) in tests & results.names.keys())
        for name in names
    ) and not any(test.red and test_of_case(test.name) in tests for test in results.tests)


def function_of(name: str) -> str:
    """The name without what tells one case of a test from another."""
    return PARAMETERS.sub("", test_of_case(name))


def is_of_others(name: str, names: Iterable[str]) -> bool:
    """Whether this is the name of a file or group that contains tests of `names`.

    Tools report such a name where the file could not be loaded, or the group itself fails.
    """
    return any(one.startswith((f"{name}.", f"{name}:", f"{name} > ")) for one in names)


def stands_for(one: TestResult, test: TestResult) -> bool:
    """Whether `one`, which could not be loaded, stands for this test.

    By the file, or by a name that begins with its own: of a module, package or class, which a
    set-up names in brackets, or of the group whose hook failed.
    """
    if one.file and test.file:
        folder = one.file.removesuffix("/__init__.py")
        if test.file == one.file or test.file.startswith(f"{folder}/"):
            return True
    inside = IN_BRACKETS.search(one.name)
    hook = HOOK.search(one.name)
    name = inside[1] if inside else one.name[: hook.start()] if hook else one.name
    # A file that unittest is given and that is not there is named as it was given: tests/test_a.
    dotted = is_of_others(name.replace("/", "."), [test.name.replace("/", ".")])
    return test.file in one.files or dotted


def uncoloured(text: str) -> str:
    """What a tool printed, without colours and other escapes of terminals."""
    return ESCAPES.sub("", text)


def clean(name: str) -> str:
    """A name that fits on a line: control characters escaped, at most 1,000 characters."""
    if not name.isascii() or not name.isprintable():
        name = CONTROL.sub(lambda hit: f"\\x{ord(hit[0]):02x}", name)
    if len(name) <= MOST_NAME:
        return name
    return f"{name[: MOST_NAME - 20]}…{name[-19:]}"


def made(
    name: str, outcome: str, file: str = "", line: int | None = None, message: str = ""
) -> TestResult:
    """A result with safe texts; an unknown outcome becomes an error."""
    kind: TestOutcomeKind = outcome if outcome in OUTCOMES else "error"  # type: ignore[assignment]
    text = ""
    if message and kind in ("failed", "error"):
        text = MESSAGE_CONTROL.sub("?", message[: MOST_MESSAGE + 1].strip())[:MOST_MESSAGE]
    return TestResult(clean(name), kind, clean(file), line, text)


def unloaded(name: str, file: str = "", line: int | None = None, message: str = "") -> TestResult:
    """A result that stands for a file or package that could not be loaded."""
    return replace(made(name, "error", file, line, message), unloaded=True)


def below(folder: str, started: str) -> str:
    """The path of `folder` below `started`, where the command started; "" for that folder itself.

    A folder elsewhere, or an unknown one, counts as that folder.
    """
    if not folder or not started or folder == started:
        return ""
    path = posixpath.relpath(folder, started)
    return "" if path.startswith("..") or path == "." else path


def stable(name: str) -> str:
    """The part of a name that stays from run to run: without parameters and changing parts."""
    name = CHANGING_PART.sub("*", name)
    name = PARAMETERS.sub("[*]", name)
    name = NUMBER_AS_NAME.sub("*", name)
    return BRACKETED.sub("(*)", name)


def without_case(name: str) -> str:
    """A test's name without what says which of its cases it is."""
    return ROW.sub("", BRACKETED.sub("", PARAMETERS.sub("", name)))


def has_as_many_cases(name: str, before: Results, now: Results) -> bool:
    """Whether the test that a name is a case of has as many cases as before, all of them green."""
    test = without_case(name)
    was, there = (
        [one for one in results.tests if without_case(one.name) == test]
        for results in (before, now)
    )
    return len(there) >= len(was) and all(one.outcome == "passed" for one in there)


def passes(name: str, results: Results) -> bool:
    """Whether a test passes, by what stays of its name if that changes from run to run."""
    kept = stable(name)
    if results.named(name) or kept == name:
        return results.passed(name)
    return any(stable(one) == kept and results.passed(one) for one in results.names)


def _sorted_words(name: str) -> str:
    """The words of a name's stable part, sorted: the items of a hash or folder have no order."""
    return " ".join(sorted(stable(name).split()))


def settled(name: str) -> str:
    """A name without what changes from run to run: temporary paths, addresses, times."""
    return CHANGING_PART.sub("*", name)


def changing(results: Results) -> set[str]:
    """Names with such a changing part, which differ between two runs of one tree."""
    return {name for name in results.names if settled(name) != name}


def unstable_names(one: Results, other: Results) -> set[str]:
    """The names that occur more often in one of two runs of one tree than in the other."""
    first, second = one.names, other.names
    return set((first - second) | (second - first))


def gone(before: Results, now: Results, unstable: Collection[str] = ()) -> list[str]:
    """Names that passed before and are now missing, skipped or expected to fail, in their order.

    Red names are not among them, since they did run. A name that occurs several times is compared
    by how often it ran. Names in `unstable` differ between two runs of one tree; they and all names
    that share their stable part, in any order of its words, are compared by that part and its
    number, and reported by it. A case that only has another place in its list than before, where no
    other case has its old place, is not gone.
    """
    parts = {_sorted_words(name) for name in unstable}
    shown: dict[str, str] = {}

    def key(name: str) -> str:
        if not parts or (part := _sorted_words(name)) not in parts:
            return name
        shown.setdefault(part, stable(name))
        return part

    still_run = Counter(
        key(test.name) for test in now.tests if test.outcome == "passed" or test.red
    )
    lost = []
    for test in before.tests:
        if test.outcome != "passed":
            continue
        wanted = key(test.name)
        if still_run[wanted] > 0:
            still_run[wanted] -= 1
        else:
            lost.append(wanted)
    numbered = _numbered_arguments(before) & _numbered_arguments(now)
    by_case = Counter[str]()
    for name, number in still_run.items():
        by_case[_without_places(name, numbered)] += number
    present = {test.name for test in now.tests}  # a test that is skipped now did not move
    missing = (
        name for name in lost if name in present or not _takes_other_place(name, numbered, by_case)
    )
    return list(dict.fromkeys(shown.get(name, name) for name in missing))


def put_aside(before: Results, now: Results) -> list[str]:
    """Names that were red before and are only skipped or expected to fail now.

    None where no other test passes that did not before: then there is nothing they stand beside.
    """
    if all(before.passed(test.name) for test in now.tests if test.outcome == "passed"):
        return []
    return [
        name
        for name in dict.fromkeys(test.name for test in before.red)
        if (found := now.named(name))
        and not any(test.outcome == "passed" or test.red for test in found)
    ]


def _takes_other_place(name: str, numbered: set[str], by_case: Counter[str]) -> bool:
    """Whether the case has another place in its list now; that place is then used up."""
    wanted = _without_places(name, numbered)
    if wanted == name or by_case[wanted] <= 0:
        return False
    by_case[wanted] -= 1
    return True


def _numbered_arguments(results: Results) -> set[str]:
    """Arguments of tests whose numbers are places in a list: they are 0, 1, 2 and so on, all there.

    An id that somebody wrote ("utf8") also ends in a number, but says which case it is.
    """
    numbers: dict[str, set[int]] = {}
    for test in results.tests:
        for argument in NUMBERED.finditer(test.name) if test.name.endswith("]") else ():
            argument_of = test.name.partition("[")[0] + "\0" + argument[1]
            numbers.setdefault(argument_of, set()).add(int(argument[2][:9]))
    return {
        argument_of for argument_of, found in numbers.items() if found == set(range(len(found)))
    }


def _without_places(name: str, numbered: set[str]) -> str:
    if not numbered or not name.endswith("]"):
        return name
    test = name.partition("[")[0]
    return NUMBERED.sub(
        lambda hit: f"{hit[1]}#" if f"{test}\0{hit[1]}" in numbered else hit[0], name
    )
