"""Finds tests that stand elsewhere now, word for word. Pure, but for reading files of two trees."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.file_names import has_word
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.inputs.wanted_moves import module_of, wants_part_moved
from agentrunner.verification.results.model import ReadFile, Results, TestResult
from agentrunner.verification.results.names import PARAMETERS, own_name
from agentrunner.verification.syntax.definitions import definition, definitions
from agentrunner.verification.syntax.imports import (
    carried,
    defined,
    imported,
    lines_of_imports,
    nameless_imports,
    without_imports,
)
from agentrunner.verification.syntax.languages import SCRIPTS, language_of
from agentrunner.verification.syntax.substance import asserted_by

SCRIPT_PLACE = lazy_regex(
    r"""(?:(?:\b__DIR__|\bdirname\(\s*__FILE__\s*\))\s*\.\s*)?(["'])(/?\.{1,2}/[^"']*)\1"""
)
"""A path relative to the file that names it; in PHP it begins with a slash."""
LOADS = lazy_regex(
    r"(?i)(?:\bfrom|\bimport|\b(?:require|include)(?:_once)?|[.\w]*(?:mock|require|import)\w*)"
    r"\s*(?:<[^<>]*>)?\s*\(?\s*$"
)
"""What stands before a path by which a module is loaded, or put in the place of another."""
PYTHON_PLACE = lazy_regex(r"(?m)^from (\.+)([\w.]*)")
WORD = lazy_regex(r"\w+|\W")
PLACE_OR_NOT = lazy_regex(r"[\w./+@-]+|[^\w./+@-]")
"""A word that may be a path, or a character of none."""
QUOTED_PATH = lazy_regex(r"""["']([^"'\n]+)["']""")
"""A path that an import of JavaScript writes."""
QUOTED = lazy_regex(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`]*`")
SAYS = lazy_regex(r"\.(?:Error|Fatal|Log|Skip)f?\(\s*\Z")
"""Before a text: a test of Go hands it to its kit, as a message."""
IMPORTED = lazy_regex(r"(?m)^(from ([\w./]+)(?: (\w+))?)$")
"""Where a definition says that a name is from."""
Pair = tuple[ReadFile, ReadFile]
"""What reads the tree before the run, and what reads one after it."""
Renames = Sequence[tuple[str, str]]
"""Old and new names of what moved."""
MOST_RENAMES = 50
MOST_COMPARED = 200
"""How many lost tests, new tests and files are compared."""


def moved_to(
    lost: Sequence[str], before: Results, now: Results, cwd: str, read: Pair, renames: Renames = ()
) -> dict[str, str]:
    """Where tests went: for those of `lost` that pass under a new name with an equal definition.

    Keys are old names, values new ones. In a definition a module may have another name now
    (`renames`). A test that still has its name and is skipped is not looked for, a case keeps its
    parameters, and one new name stands for one test.
    """
    known, present = before.names, now.names
    new_tests = [test for test in now.tests if test.name not in known and test.outcome == "passed"]
    by_text: dict[tuple[str, str], list[str]] = {}
    for test in new_tests[:MOST_COMPARED]:
        if text := _definition_of(test, cwd, read[1]):
            by_text.setdefault((text, _parameters(test.name)), []).append(test.name)
    by_name = {test.name: test for test in before.tests}
    pairs = {}
    for name in lost[:MOST_COMPARED]:
        if not by_text or name not in by_name or name in present:
            continue
        if (text := _definition_of(by_name[name], cwd, read[0])) is None:
            continue
        places = [by_text.get((form, _parameters(name)), []) for form in forms_of(text, renames)]
        if names := next(filter(None, places), None):
            pairs[name] = names.pop(0)
    return pairs


def _parameters(name: str) -> str:
    """The parameters in a test's name, which say which case it is; "" for none."""
    part = PARAMETERS.search(name)
    return part[0] if part else ""


def renamed_in(text: str, names: tuple[str, str]) -> str:
    """A definition in which one module has its new name."""
    return re.sub(rf"(?<!\w){re.escape(names[0])}(?!\w)", names[1], text)


def forms_of(text: str, renames: Renames) -> Iterator[str]:
    """A definition as it was, with each name renamed, with all moved modules, and with all names
    renamed."""
    yield text
    for one in renames:
        yield renamed_in(text, one)
    for one in renames:
        if re.split(r"[/.]", one[0])[-1] == re.split(r"[/.]", one[1])[-1]:
            text = renamed_in(text, one)
    yield text
    for one in renames:
        text = renamed_in(text, one)
    yield text


def renamed_modules(deleted: Sequence[str], added: Sequence[str]) -> list[tuple[str, str]]:
    """Old and new names that modules may have: each deleted one with each added one.

    In folders they are told apart by their paths, as imports write them.
    """
    old_paths, new_paths = ([_without_ending(path) for path in paths] for paths in (deleted, added))
    pairs = [
        (old, new)
        for old in old_paths
        for new in new_paths
        if _stem(old) and _stem(new) and old != new
    ]
    alike = [(old, new) for old, new in pairs if _stem(old) == _stem(new)]
    others = [pair for pair in pairs if pair not in alike]
    stems = [(_stem(old), _stem(new)) for old, new in others]
    others = [pair for pair in others if "/" in f"{pair[0]}{pair[1]}"]
    names = [*alike, *_dotted(alike), *stems, *others, *_dotted(others)]
    return list(dict.fromkeys(names))[:MOST_RENAMES]


def _dotted(paths: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for old, new in paths:
        yield old.replace("/", "."), new.replace("/", ".")


def asked_moves(
    words: Sequence[str], text: str, deleted: Sequence[str], added: Sequence[str]
) -> list[tuple[str, str]]:
    """Old and new names, as imports write them, of modules that moved just as a PRD wants.

    `words` are the places to or from which it wants something moved. A file counts that went from
    a place that `text` names to the very same place below one of `words`.
    """
    pairs: list[tuple[str, str]] = []
    for old, new in (
        (old, new)
        for old in map(_without_ending, deleted[:MOST_COMPARED])
        for new in map(_without_ending, added[:MOST_COMPARED])
        if old != new
    ):
        for word in dict.fromkeys(form for one in words for form in (one, one.replace(".", "/"))):
            home, found, rest = f"/{new}/".partition(f"/{_without_ending(word)}/")
            rest = f"/{rest}".rstrip("/")
            # Written in full, or from a folder that it was in before: `ledger.money` below src.
            if not found or not f"/{old}".startswith(f"{home}/") or not f"/{old}".endswith(rest):
                continue
            was = f"/{old}".removesuffix(rest).strip("/")
            if was == _without_ending(word) or not has_word(_stem(was or old), text):
                continue
            pairs += _as_imported(*((was, new.removesuffix(rest)) if was else (old, new)))
    return list(dict.fromkeys(pairs))[:MOST_RENAMES]


def _as_imported(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Two places as imports write them: from the root, or from a folder that both lie in."""
    old_parts, new_parts = old.split("/"), new.split("/")
    for index in range(min(len(old_parts), len(new_parts))):
        for joint in "/.":
            yield joint.join(old_parts[index:]), joint.join(new_parts[index:])
        if old_parts[index] != new_parts[index]:
            return


def imports_follow(path: str, before: bytes, after: bytes, renames: Renames) -> bool:
    """Whether a file differs only by imports, and these only by modules that moved (`renames`)."""
    language = language_of(path)
    if language is None or not renames:
        return False
    if language in SCRIPTS and _with_places(path, before) == _with_places(path, after, renames):
        return True
    if (text := carried(before, after, language)) is None:
        return False
    if text != carried(after, after, language):
        return False
    was, now = lines_of_imports(before, language), lines_of_imports(after, language)
    if was is None or now is None:
        return False
    old_lines, new_lines = ({_placed(line, path) for line in lines} for lines in (was, now))
    only_before = old_lines - new_lines
    renamed = [{renamed_in(line, names) for names in renames} & new_lines for line in only_before]
    return all(renamed) and new_lines - old_lines <= set().union(*renamed)


def _with_places(path: str, source: bytes, renames: Renames = ()) -> str:
    """A text in which relative paths to modules, as in `mock("./cart")`, are those of before."""
    before = {new: old for old, new in renames}

    def place(hit: re.Match[str]) -> str:
        if not LOADS.search(hit.string, max(hit.start() - 60, 0), hit.start()):
            return hit[0]
        where = module_of(posixpath.normpath(posixpath.join(posixpath.dirname(path), hit[2])))
        return f"'/{before.get(where, where)}'"

    return SCRIPT_PLACE.sub(place, source.decode("utf-8", "replace"))


def parts_follow(
    path: str,
    before: bytes,
    after: bytes,
    asked: str,
    changed: Mapping[str, tuple[bytes, bytes]],
) -> bool:
    """Whether a file imports moved names from their new module, and is else the same.

    In Python and JavaScript. One counts that its old module no longer has and the new one defines,
    and that `asked` names with its new place. `changed` holds files before and after the run.
    """
    language = language_of(path)
    if language not in ("python", *SCRIPTS):
        return False
    was, now = (
        {name: one for name, one in imported(text, language).items() if name.isidentifier()}
        for text in (before, after)
    )
    bare = without_imports(before, language)
    if was.keys() != now.keys() or bare is None or bare != without_imports(after, language):
        return False
    if nameless_imports(before, language) != nameless_imports(after, language):
        return False
    moved = [name for name in was if was[name] != now[name]]
    for old, new in ((_origin(path, was[name]), _origin(path, now[name])) for name in moved):
        if old is None or new is None or old[1] != new[1]:
            return False
        name, (home, place) = old[1], (old[0], new[0])
        if not wants_part_moved(asked, name, place):
            return False
        source, target = _module(home, changed), _module(place, changed)
        if source is None or target is None or name not in defined(target[1], language):
            return False
        if name not in defined(source[0], language) or name in defined(source[1], language):
            return False
    return bool(moved)


def _origin(path: str, text: str) -> tuple[str, str] | None:
    """The module, as a path, and the name in it that an import of this file takes; None for a whole
    module. `text` is as `imported` has it."""
    place, _, name = text.rpartition(" ")
    if not place or not name.isidentifier():
        return None
    if (hit := QUOTED_PATH.search(place)) is None:
        return place.replace(".", "/"), name
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), module_of(hit[1]))), name


def _module(place: str, changed: Mapping[str, tuple[bytes, bytes]]) -> tuple[bytes, bytes] | None:
    """Return a changed module, by its name as a path, before and after."""
    for path, texts in changed.items():
        name = module_of(path)
        if language_of(path) and (name == place or name.endswith(f"/{place}")):
            return texts
    return None


def places_follow(before: bytes, after: bytes, renames: Renames) -> bool:
    """Whether a text differs only by paths, and these only by what moved (`renames`).

    For files without a grammar: `cd api` becomes `cd services/api`.
    """
    old_words, new_words = (
        PLACE_OR_NOT.findall(text.decode("utf-8", "replace")) for text in (before, after)
    )
    changed = {pair for pair in zip(old_words, new_words, strict=False) if pair[0] != pair[1]}
    if len(old_words) != len(new_words) or not changed:
        return False
    return all(
        any(
            (rest := old.removeprefix(was)) != old and rest[:1] in ("", "/") and new == now + rest
            for was, now in renames
        )
        for old, new in changed
    )


def names_follow(
    path: str,
    before: bytes,
    after: bytes,
    renames: Mapping[str, str],
    in_code_alone: Collection[str] = (),
) -> bool:
    """Whether a file differs only by names in code that changed as `renames` says.

    Names of its tests may contain them: `TestTotal` becomes `TestSum` with `Total`. Quoted text
    stays as it was, apart from calls that it quotes and from messages: `Total() = %d`. What is a
    name in code alone, and that no text of the product has, can be quoted as nothing else:
    `patch("shop.cart.total")`.
    """
    old_text, new_text = (text.decode("utf-8", "replace") for text in (before, after))
    if not renames:
        return False
    names = {old: new for old, new in renames.items() if old in in_code_alone}
    old_quotes, new_quotes = (list(QUOTED.finditer(one)) for one in (old_text, new_text))
    if len(old_quotes) != len(new_quotes) or any(
        new[0]
        not in (
            old[0],
            _text_renamed(old[0], renames, is_message=_is_message(old)),
            _text_renamed(old[0], names, is_message=not _is_key(old)),
        )
        for old, new in zip(old_quotes, new_quotes, strict=True)
    ):
        return False
    old_words, new_words = WORD.findall(old_text), WORD.findall(new_text)
    changed = {pair for pair in zip(old_words, new_words, strict=False) if pair[0] != pair[1]}
    if len(old_words) != len(new_words) or not changed:
        return False
    others = changed - set(renames.items())
    if others and not others <= _tests_renamed(path, before, after, renames):
        return False
    if (language := language_of(path)) is None:
        return family_of(path) != "shell" and all(_is_in_code(old, old_text) for old, _ in changed)
    # `t.Errorf` belongs to the tests' kit, though the product may have something of that name.
    return asserted_by(before, language) == asserted_by(after, language)


def _is_in_code(name: str, text: str) -> bool:
    """Whether a name stands in a text without a grammar as code has it alone, and nowhere as a key,
    a symbol or a plain word: these may be data.
    """
    plain = name.islower() and "_" not in name
    for hit in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", QUOTED.sub('""', text)):
        before, behind = hit.string[: hit.start()].rstrip(), hit.string[hit.end() :].lstrip()
        used = behind.startswith("(") or BEFORE_NAMES.search(before[-12:])
        if not used and (plain or before.endswith(":") or behind.startswith(":")):
            return False
    return True


BEFORE_NAMES = lazy_regex(r"(?:\.|->|::|\b(?:def|function|class|module|new|struct|enum))$")
"""What stands before the name of a function, a method or a type."""


def _is_key(quoted: re.Match[str]) -> bool:
    """Whether a quoted text is a key, or the first or last of a list."""
    text, start, end = quoted.string, quoted.start(), quoted.end()
    before, after = text[max(start - 9, 0) : start].rstrip(), text[end : end + 9].lstrip()
    return before.endswith("[") or after.startswith(("]", ":"))


def _is_message(quoted: re.Match[str]) -> bool:
    """Whether a quoted text is what a test of Go says when it fails: nothing compares it."""
    return bool(SAYS.search(quoted.string, 0, quoted.start()))


def _text_renamed(text: str, renames: Mapping[str, str], *, is_message: bool) -> str:
    """A quoted text in which calls have their new names, and a message all that it names."""
    ends = r"(?!\w)" if is_message else r"(?=\()"
    for old, new in renames.items():
        text = re.sub(rf"(?<!\w){re.escape(old)}{ends}", new, text)
    return text


def _tests_renamed(
    path: str, before: bytes, after: bytes, renames: Mapping[str, str]
) -> set[tuple[str, str]]:
    """Old and new names of tests that contain a name that changed, each still a test of its own.

    A new name that the file knew before would hide what had it.
    """
    language = language_of(path)
    known, words = (set(WORD.findall(one.decode("utf-8", "replace"))) for one in (before, after))
    was, now = (
        {own_name(name) for name in definitions(one, language)} if language else all_of
        for one, all_of in ((before, known), (after, words))
    )
    return {
        (name, new)
        for name in was - now
        for form in renames.items()
        if (new := with_part(name, *form)) in now - known
    }


def with_part(name: str, old: str, new: str) -> str:
    """A name in which a part has its new form: `TestTotal` or `test_total`, not `subtotal`."""
    forms = {old: new, old[:1].upper() + old[1:]: new[:1].upper() + new[1:]}
    for part, form in forms.items():
        start = "(?<![A-Za-z])" if part[:1].islower() else "(?<![A-Z])"
        name = re.sub(rf"{start}{re.escape(part)}(?![a-z])", form, name)
    return name


def _stem(path: str) -> str:
    return path.rpartition("/")[2]


def _without_ending(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{name.partition('.')[0]}"


def says_the_same(
    path: str, before: bytes, others: Mapping[str, bytes], renames: Renames = ()
) -> bool:
    """Whether each test of a file stands unchanged in one of `others`, or else the whole file does.

    What a test rests on is compared with it. Modules may have another name (`renames`).
    """
    language = language_of(path)
    tests = definitions(before, language) if language else {}
    if language is None or not tests:
        forms = set(forms_of(_whole(before, path), renames))
        return any(
            before == source or _whole(source, other) in forms for other, source in others.items()
        )
    found = {
        (name, _canonical(text, other))
        for other, source in others.items()
        if language_of(other) == language
        for name, text in definitions(source, language).items()
    }
    for name, text in tests.items():
        if not any((name, form) in found for form in forms_of(_canonical(text, path), renames)):
            return False
    return True


def not_moved(
    lost: Sequence[str], before: Results, now: Results, cwd: str, read: Pair, renames: Renames = ()
) -> list[str]:
    """Those of `lost` that do not pass under a new name with an equal definition."""
    moved = moved_to(lost, before, now, cwd, read, renames)
    return [name for name in lost if name not in moved]


def _definition_of(test: TestResult, cwd: str, read: ReadFile) -> str | None:
    """A test's definition with relative imports resolved; without a grammar its name and file."""
    path = posixpath.normpath(posixpath.join(cwd, test.file)) if test.file else ""
    language, source = language_of(path), read(path) if path else None
    if source is None:
        return None
    if language is None:  # without a grammar a test is what its whole file says
        return f"{own_name(test.name)}\n{_whole(source, path)}"
    text = definition(source, language, test.name)
    return text if text is None else _canonical(text, path)


def _whole(source: bytes, path: str) -> str:
    """The text of a file, with relative places as paths from the root of the repository."""
    return _placed(source.decode("utf-8", "replace"), path)


def _canonical(text: str, path: str) -> str:
    """A definition by what it means: imported from where, and `slug` for `utils.slug`."""
    text = _placed(text, path)
    lines: set[str] = set()
    for line, module, name in IMPORTED.findall(text):
        text = text.replace(f"{line}\n", "", 1)
        own = r" \. ".join((name or module).split("."))
        used = rf"{QUOTED.pattern}|(?<![\w.])(?<!\. ){own}(?P<member> \. (?P<part>\w+))?(?!\w)"
        hits = [hit for hit in re.finditer(used, text) if hit[0][0] not in "\"'`"]
        if not hits or not all(hit["part"] for hit in hits):
            lines.add(line)
            continue
        lines |= {f"from {'.'.join(filter(None, (module, name)))} {hit['part']}" for hit in hits}
        text = re.sub(used, lambda hit: hit["part"] or hit[0], text)
    return "\n".join([*sorted(lines), text])


def _placed(text: str, path: str) -> str:
    """The text of a test, with relative imports as paths from the root of the repository."""
    folder = posixpath.dirname(path)

    def python(found: re.Match[str]) -> str:
        up = "/".join([".."] * (len(found[1]) - 1))
        place = posixpath.normpath(posixpath.join(folder, up, found[2].replace(".", "/")))
        return f"from /{place}"

    def script(found: re.Match[str]) -> str:
        return f"'/{posixpath.normpath(posixpath.join(folder, found[2].lstrip('/')))}'"

    return SCRIPT_PLACE.sub(script, PYTHON_PLACE.sub(python, text))
