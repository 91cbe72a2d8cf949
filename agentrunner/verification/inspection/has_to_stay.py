"""What the requirements want kept and is gone: an old name beside a new one, an option, a file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.text.sentences import sentences
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.wanted_moves import module_of, renames_in
from agentrunner.verification.inspection.both_trees import BothTrees
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.calls import names_declared
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.name_scopes import is_local_name, is_outer_name
from agentrunner.verification.syntax.tokens import (
    Token,
    content,
    lexical_family,
    tokens,
    without_comments,
)

VALUE = r"(?:<[^>\n]*>|\[[^\]\n]*\]|[A-Z][A-Z_]+)"
OPTION = r"-{1,2}[\w-]+"
BEFORE = rf"(?:^\s*(?:{OPTION}(?:[ =]{VALUE})?\s*[,|/]?\s*)*|[\[(|]\s*)"
AFTER = rf"(?=\s*$|\s*[=,|/\])]|\s+{VALUE}|\s{{2,}})"
"""What stands around an option in a list of options or a line of usage, and not in prose."""


class Files(Struct, frozen=True, dict=True):
    """Files of one tree."""

    paths: Collection[str]
    read: ReadFile

    @cached_property
    def tokens(self) -> dict[str, tuple[Token, ...]]:
        found = {}
        for path in self.paths:
            source = self.read(path) or b""
            family = lexical_family(path, source)
            found[path] = tokens(source, family) if family is not None else ()
        return {path: each for path, each in found.items() if each}

    @property
    def texts(self) -> Iterator[str]:
        """What stands in their strings."""
        for each in self.tokens.values():
            for one in each:
                if one.kind == "string":
                    yield content(one.text)

    @property
    def unread(self) -> Iterator[bytes]:
        """Files without tokens, as they are without comments."""
        for path in self.paths:
            if path not in self.tokens:
                yield without_comments(path, self.read(path) or b"")


GONE = "{} is gone, and the requirements say: {}"
MUST = (
    r"(?:(?:also|still|must|should|shall|will|has\s+to|have\s+to|needs?\s+to|is\s+to|are\s+to)\s+)*"
)
STAYS = (
    rf"{MUST}(?:stays?|remains?|keeps?\s+(?:on\s+)?working|continues?\s+to\s+(?:work|exist)"
    r"|goes\s+on\s+working|go\s+on\s+working|works?(?=\s+(?:as\s+before|still|too|as\s+well))"
    r"|(?<=still\s)works?|(?:is|are|be)\s+(?:kept|retained|preserved)"
    r"|(?:(?:is|are)\s+still|(?<=still\s)be)\s+"
    r"(?:accepted|allowed|available|callable|importable|supported|understood|usable))\b"
)
KEEPS = r"(?:keep(?:s|ing)?|leav(?:e|es|ing)|retain(?:s|ing)?|preserv(?:e|es|ing))"
NAMED = r"`(?P<name>-{0,2}[A-Za-z_][\w./:-]*)(?:\(\))?`"
REMOVE = r"(?:remove|delete|drop|rename|lose)"
GO = (
    r"(?:be\s+(?:removed|deleted|dropped|renamed|lost)|disappear|vanish|go\s+away"
    r"|stop\s+working|break)"
)
NOT_REMOVED = lazy_regex(
    rf"(?i)(?:\b(?:do|must|should|may|shall|can)\s*not|n['’]t|\bnever|\bwithout)\s+"
    rf"{REMOVE[:-1]}|removing|deleting|dropping|renaming|losing)\s+(?:the\s+)?(?:\w+\s+)?{NAMED}"
)
NAMED_NOT_REMOVED = lazy_regex(
    rf"(?i){NAMED}\s+(?:(?:must|should|may|shall|can)\s*not|(?:must|should|may)\s+never)\s+{GO}\b"
)
PLACE = lazy_regex(r"[^`.;]{0,30}\b(?:from|in|of|at|through|via)\s+`(?P<place>[\w./:-]+)`")
"""Where a name has to stay, after it: "stays importable from `shop.cart`"."""
NAMED_STAYS = lazy_regex(rf"(?i){NAMED}\s+{STAYS}")
KEEPS_NAMED = lazy_regex(
    rf"(?i)\b{KEEPS}\s+(?:the\s+)?(?:\w+\s+)?{NAMED}(?!\s+(?:out|away|off|from)\b)"
)
OLD_NAME = lazy_regex(
    rf"(?i)\bold\s+(?:\w+\s+)?(?:names?|spellings?)\s+{STAYS}"
    rf"|\b{KEEPS}\s+(?:the\s+)?old\s+(?:\w+\s+)?(?:names?|spellings?)\b"
    r"|\b(?:the\s+)?old\s+(?:\w+\s+)?names?\s+as\s+an?\s+(?:\w+\s+)?alias"
    r"|(?:旧名|古い名前|元の名前|以前の名前)[^。\n]{0,20}(?:残[すし]|使え|別名|エイリアス)"
)
"""What a request to rename says of the name that is renamed."""
MAKES = "def|class|func|function|fn|const|let|var|type|struct|sub|enum"
DENIED = lazy_regex(r"(?i)\b(?:no|not|never|without|if|unless|nothing|nobody)\b|n['’]t\b")
STAR = lazy_regex(rb"\bimport\s*\*|\bexport\s*\*|\brequire\b")
"""A module that hands on all that another one has."""
JA_DENIED = lazy_regex(r"残さ|ない|不要|ません")


class Kept(Struct, frozen=True):
    """What has to stay by a text."""

    name: str
    shown: str
    """The sentence that says so."""
    place: str = ""
    """The module in which it has to stay, as the sentence writes it."""


def gone_though_kept(trees: BothTrees, wanted: str) -> str:
    """What the text wants kept that the old product has and the new one has not; else "".

    Blocks. Raises GitFailed and OSError.
    """
    for one in _kept_in(wanted):
        name, shown = one.name, one.shown
        if name in trees.old or "/" in name:
            if name in trees.old and (name not in trees.new or _is_emptied(name, trees)):
                return GONE.format(name, shown)
            continue
        word = re.split(r"[.:]", name)[-1]
        if modules := [path for path in trees.code if _is_module(path, name, trees.read_old)]:
            if not any(_offers_names_of(path, modules, trees) for path in (*modules, *trees.work)):
                return GONE.format(f"`{name}`", shown)
            continue
        home = [path for path in trees.changed if one.place and _is_of(path, one.place)]
        if home and not is_lost(word, Files(home, trees.read_old), Files((), trees.read)):
            home = []  # it was never there
        there = [path for path in trees.work if not home or _is_of(path, one.place)]
        if is_lost(word, Files(home or trees.changed, trees.read_old), Files(there, trees.read)):
            others = () if home else set(trees.code).difference(trees.changed)
            if not any(_declares(word, path, trees.read) for path in others):
                return GONE.format(f"`{name}`", shown)
    return ""


def _is_emptied(path: str, trees: BothTrees) -> bool:
    """Whether a file had content, and has nothing but comments now."""
    was, now = (
        without_comments(path, read(path) or b"").strip() for read in (trees.read_old, trees.read)
    )
    return bool(was) and not now


def _is_of(path: str, place: str) -> bool:
    """Whether a file is the module of this name: `shop.cart`, `shop/cart.py`, `./cart`."""
    name = module_of(place.removeprefix("./"))
    forms = {name, name.replace(".", "/"), name.replace("::", "/")}
    return any(f"/{module_of(path)}".endswith(f"/{form}") for form in forms)


def _is_module(path: str, name: str, read: ReadFile) -> bool:
    """Whether a name is that of this module, and of nothing that the module makes itself."""
    return _is_of(path, name) and ("." in name or not _declares(name, path, read))


def _offers_names_of(path: str, modules: Sequence[str], trees: BothTrees) -> bool:
    """Whether a file stands for one of these modules, and has some of its names, if it had any."""
    if path not in trees.new or module_of(path) not in map(module_of, modules):
        return False
    had = {
        name
        for one in modules
        for name in names_declared(trees.read_old(one) or b"", language_of(one) or "")
    }
    there, everything = Files([path], trees.read), without_comments(path, trees.read(path) or b"")
    return not had or bool(STAR.search(everything)) or any(has_outer(one, there) for one in had)


def _kept_in(wanted: str) -> Iterator[Kept]:
    """What has to stay by a text."""
    renamed = renames_in(wanted)
    for sentence in sentences(wanted, semicolons=True):
        shown = " ".join(sentence.split())[:120].rstrip(".")
        hits = [*NAMED_STAYS.finditer(sentence), *KEEPS_NAMED.finditer(sentence)]
        hits = [one for one in hits if not DENIED.search(sentence[: one.end()])]
        for hit in (*hits, *NOT_REMOVED.finditer(sentence), *NAMED_NOT_REMOVED.finditer(sentence)):
            place = PLACE.match(sentence, hit.end())
            yield Kept(hit["name"], shown, place["place"] if place else "")
        hit_old = OLD_NAME.search(sentence)
        if (
            hit_old
            and not DENIED.search(sentence[: hit_old.end()])
            and not JA_DENIED.search(sentence[hit_old.start() :])
        ):
            yield from (Kept(name, shown) for name in renamed)


def _declares(name: str, path: str, read: ReadFile) -> bool:
    """Whether a file may be the one that makes a name."""
    word = alone(name)
    made = rf"\b(?:{MAKES})\b[^\n]*{word}|{word}\s*[:=]"
    return bool(re.search(to_bytes(made), without_comments(path, read(path) or b"")))


def is_lost(name: str, old: Files, new: Files) -> bool:
    """Whether old files offer a name or an option to others, and new ones do not."""
    if name.startswith("-"):
        return _is_option_lost(name, old, new)
    if not has_outer(name, old):
        offered = [path for path in old.paths if not _is_local(name, path, old.read)]
        return _says(name, Files(offered, old.read)) and not _says(name, new)
    # A new text that is the name makes it when it is asked for; an old one is a use, or a list.
    is_made = sum(one == name for one in new.texts) > sum(one == name for one in old.texts)
    return not (has_outer(name, new) or is_made or _is_in_unread(name, new))


def _is_option_lost(name: str, old: Files, new: Files) -> bool:
    """An option is offered by a text that lists options, or by its name without dashes."""
    if any(_lists(name, one) for one in old.texts):
        return not any(_lists(name, one) for one in new.texts) and not _is_in_unread(name, new)
    if _stands_alone(name, old):
        return not _stands_alone(name, new)
    bare = name.lstrip("-")
    return any(one == bare for one in old.texts) and not any(one == bare for one in new.texts)


def _lists(option: str, text: str) -> bool:
    return bool(re.search(BEFORE + re.escape(option) + AFTER, text, re.MULTILINE))


def _stands_alone(name: str, files: Files) -> bool:
    word = re.compile(to_bytes(alone(name)))
    return any(word.search(without_comments(one, files.read(one) or b"")) for one in files.paths)


def has_outer(name: str, files: Files) -> bool:
    """Whether a name stands in one of these files outside of functions."""
    for path in files.paths:
        language, source = language_of(path), files.read(path)
        if language is not None and source is not None and is_outer_name(source, language, name):
            return True
    return False


def _is_local(name: str, path: str, read: ReadFile) -> bool:
    """Whether a file has a name only as variables of functions, which nobody else can use."""
    language, source = language_of(path), read(path)
    return language is not None and source is not None and is_local_name(source, language, name)


def _says(name: str, files: Files) -> bool:
    """Whether the code of a file has a name, itself or as a whole text: `{"old": new}`.

    What a longer text or a comment says of a name makes none.
    """
    shown = to_bytes(name).decode("latin-1")  # as tokens have it
    return (
        any(one == shown for one in files.texts)
        or any(one.text.lstrip("$@") == shown for each in files.tokens.values() for one in each)
        or _is_in_unread(name, files)
    )


def _is_in_unread(name: str, files: Files) -> bool:
    """Whether a file without a grammar has it: one of another language, or without tokens."""
    word = re.compile(to_bytes(alone(name)))
    others = [one for one in files.tokens if language_of(one) is None]
    code = (without_comments(one, files.read(one) or b"") for one in others)
    return any(word.search(one) for one in (*files.unread, *code))
