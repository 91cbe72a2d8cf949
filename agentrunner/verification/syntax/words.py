"""Find the names of code in a sentence that a person wrote."""

from __future__ import annotations

import keyword
import mimetypes
import re

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.sentences import sentences
from agentrunner.verification.syntax.languages import language_of

# In Japanese text names are not set apart by spaces, so `\b` and `\w` would not do.
_BEFORE = r"(?<![A-Za-z0-9_@/\\:.$-])"
_AFTER = r"(?![A-Za-z0-9_@/\\])"
_NAME = r"[A-Za-z_$][A-Za-z0-9_$]*"
_PATH = rf"{_NAME}(?:(?:\.|::|#){_NAME})*"
_TICKED = lazy_regex(r"`+([^`\n]+)`+")
_CALLED = lazy_regex(rf"{_BEFORE}({_PATH})\((?=[^()\n]*\))")
_DOTTED = lazy_regex(rf"{_BEFORE}({_NAME}(?:(?:\.|::){_NAME})+){_AFTER}")
_SINGLE = lazy_regex(rf"{_BEFORE}({_NAME}){_AFTER}")
_SIGNATURE = lazy_regex(
    rf"(?:({_PATH})(?:\.|::|#))?({_NAME})\(([^()]*)\)(?: *(?:->|:|=>)? *[\w.\[\]<>*&|, ?]*)?"
)
_PARAMETER = lazy_regex(r"[&*.]*[A-Za-z_]\w*\??(?:[ :]+[&*]*[A-Za-z_][\w.\[\]<>&*:| ]*)?(?: ?=.*)?")
_OPTION = lazy_regex(
    r"(?:-\w(?:,| |\|)? ?)?--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?:[ =][\w<>\[\]./]+)?"
)
_KIND = (
    r"(?:headers?|attributes?|keys?|fields?|propert(?:y|ies)|columns?|cookies?|elements?"
    r"|events?|parameters?)\b|属性|ヘッダ|キー|フィールド|列|プロパティ|パラメータ"
)
_WANTED = lazy_regex(
    rf"`([A-Za-z][\w-]*)`[- ]?(?:という)?(?:{_KIND})"
    rf"|\b(?:{_KIND})(?: (?:named|called))? `([A-Za-z][\w-]*)`"
    r"|\ban? `([A-Za-z]\w*(?:-\w+)+)`"
    r"|\b(?:gets?|has|have|sets?|adds?|carr(?:y|ies)|gains?|needs?|and|with)"
    r" `([A-Za-z][\w-]*)=[\"'][^`]*`",
    re.IGNORECASE,
)
"""A name in back quotes, with the word for what it names, or with the value that it gets."""
_SILENT = lazy_regex(
    r"(?i)\b(?:remov|delet|drop|obsolete|renam|replac)|\b(?:instead of|no longer|without|not|never"
    r"|e\.g\.|for (?:example|instance)|such as|like|unknown|any|other|some|if|when|where)\b|n't\b"
    r"|削除|廃止|例えば|など|ない|場合|のような"
)
"""Sentences that name what shall go, or what somebody may hand over."""
_KEYWORDS = (
    frozenset(keyword.kwlist)
    | frozenset(keyword.softkwlist)
    | {word.lower() for word in keyword.kwlist}
    | {"null", "undefined", "nil", "this", "self", "void"}
)
_TEXTS = frozenset("md rst toml yaml yml ini cfg conf lock env log sql tf proto gradle kt".split())
"""File endings that the table of media types lacks."""
_TYPES = mimetypes.MimeTypes(filenames=())


def identifiers(text: str) -> set[str]:
    """Return the names of code in a sentence, each part of a dotted name by itself.

    A name is: what stands in back quotes as a single name, what is called (`total()`), what is
    dotted (`Cart.total`), or what is spelled as no plain word is: `snake_case`, `camelCase`,
    `MAX_ITEMS`. File names, addresses, options, versions and keywords are left out.
    """
    found: set[str] = set()
    text = re.sub(r"(?i)\b[a-z][a-z0-9+.-]*://[^\s`\"'<>)]*", " ", text)
    for ticked in _TICKED.findall(text):
        whole = re.fullmatch(rf"[@.#]?({_PATH})(?:\(.*\))?;?", ticked.strip())
        if whole and not _is_file(whole.group(1)):
            found.update(_parts(whole.group(1)))
        else:
            found.update(_plain(ticked))
    found.update(_plain(_TICKED.sub(" ", text)))
    return {name for name in found if name.lower() not in _KEYWORDS and len(name) > 1}


_VALUE = lazy_regex(r"\"[^\"\n]*\"|'[^'\n]*'|-?\d+(?:\.\d+)?")
_EXAMPLE = lazy_regex(
    r"(?<![\w.])(?P<name>[A-Za-z_]\w*)\((?P<of>[^()\n]+)\)`?\s*"
    r"(?:(?:is|are|gives|returns|yields|must\s+(?:be|return|give)|(?:has\s+to|should)\s+(?:be|return|give))\b|==?|->|=>|→)"
    r"\s*`?(?P<value>\"[^\"\n]+\"|'[^'\n]+'|-?\d+(?:\.\d+)?)(?![\w%])(?!\.\d)"
)
_BARE_SIGNATURE = lazy_regex(
    r"(?<![\w.`])[A-Za-z_]\w*\((?!e?s\))[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*\)"
)
"""A function with its parameters in plain text; `item(s)` is none."""


def signatures(text: str, *, bare: bool = False) -> dict[str, str]:
    """Names of functions that a text writes in back quotes with their parameters; and how.

    With `bare` also those without back quotes.
    `percent(n)` and `cart.Discount(cents, percent int) int` are signatures. What is called with
    values or with nothing may be anybody's: `exit()`, `slug("A b")`.
    """
    found: dict[str, str] = {}
    plain = [hit[0] for hit in _BARE_SIGNATURE.finditer(_TICKED.sub(" ", text))]
    for ticked in [*_TICKED.findall(text), *(plain if bare else [])]:
        hit = _SIGNATURE.fullmatch(ticked.strip())
        if hit is None or hit[2].lower() in _KEYWORDS:
            continue
        given = [one.strip() for one in hit[3].split(",")]
        names = [one for one in given if _PARAMETER.fullmatch(one)]
        if names and len(names) == len(given) and not any(one in _KEYWORDS for one in given):
            found.setdefault(hit[2], ticked.strip())
    return found


def examples(text: str) -> list[tuple[str, str]]:
    """Calls with values that a text states with what they give, and that: `("f(2)", "4")`."""
    found = []
    for hit in _EXAMPLE.finditer(text):
        given = [
            one.strip()
            for one in re.split(r",(?=(?:[^\"']*[\"'][^\"']*[\"'])*[^\"']*$)", hit["of"])
        ]
        if all(_VALUE.fullmatch(one) for one in given):
            found.append((f"{hit['name']}({hit['of']})", hit["value"]))
    return found


def options(text: str) -> dict[str, str]:
    """Names of options that a text writes alone in back quotes, without dashes; and how."""
    hits = [(_OPTION.fullmatch(one.strip()), one.strip()) for one in _TICKED.findall(text)]
    return {hit[1]: one for hit, one in hits if hit is not None}


def things(text: str) -> dict[str, str]:
    """Names in back quotes that a text calls an attribute, a header, a key or the like; and how.

    Hyphenated names after "a" or "an" are among them, and attributes that get a value. Sentences
    that take something away, give an example or a condition are left out.
    """
    found: dict[str, str] = {}
    for sentence in sentences(text):
        if not _SILENT.search(sentence):
            for hit in _WANTED.findall(sentence):
                found |= {name: name for name in hit if len(name) > 1}
    return found


def _plain(text: str) -> set[str]:
    """Return the names in a text without back quotes."""
    found: set[str] = set()
    for path in _CALLED.findall(text):
        found.update(_parts(path))
    for path in _DOTTED.findall(text):
        parts = _parts(path)
        if not _is_file(path) and all(len(part) > 1 for part in parts):
            found.update(parts)
    for name in _SINGLE.findall(text):
        if _is_spelt_as_code(name):
            found.add(name)
    return found


def _parts(path: str) -> list[str]:
    return [part for part in re.split(r"\.|::|#", path) if part]


def _is_file(name: str) -> bool:
    """Whether a dotted name is a file name, judging by its ending."""
    ending = name.rpartition(".")[2].lower()
    if "::" in name or "." not in name:
        return False
    return ending in _TEXTS or bool(language_of(name) or _TYPES.guess_type(f"x.{ending}")[0])


def _is_spelt_as_code(name: str) -> bool:
    """Whether a name has an inner underscore, or a capital after small letters, unlike plain words.

    `CamelCase` alone does not count: it can be the name of a product ("GitHub").
    """
    bare = name.strip("_$")
    if "_" in bare:
        return True
    return bool(re.match(r"[a-z]{2}[a-z0-9]*(?:[A-Z][a-z0-9]|[A-Z]{3})", bare))
