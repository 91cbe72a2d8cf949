"""Which code does a PRD want removed, and with it its tests? English and Japanese; in doubt, none.

Pure. "`show_old` is deprecated. Delete it and its tests": the pronoun is the code named before.
"""

from __future__ import annotations

import re

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.sentences import sentences
from agentrunner.verification.inputs.words_of_change import JA_NOT, MOST, NEGATED, outside_of_checks

_SPELT = r"(?-i:(?=[A-Za-z]\w*_\w|[A-Za-z]*[a-z0-9][A-Z])\w++|[A-Za-z_]\w*+(?=\(\)))"
_NAME = (
    r"(?:`(?P<name>[A-Za-z_][\w.:#]*)(?:\([^`\n]*\))?`"
    rf"|(?<![\w`./-])(?P<bare>{_SPELT})(?:\(\))?(?![\w`/]))"
)
NAME = lazy_regex(_NAME)
"""A name in code, alone between back quotes, or spelt as no plain word is."""
_ITS_TESTS = (
    r"[`'\"*_)]*,?\s+(?:and|plus|including|as\s+well\s+as|(?:(?:together|along)\s+)?with)\s+"
    r"(?:all\s+)?(?:(?:(?:of\s+)?its|their)\s+(?:own\s+|unit\s+|old\s+)*tests?\b(?!\s+\w+ing\b)"
    r"|the\s+(?:unit\s+)?tests?\s+(?:of|for)\s+it\b)"
)
_KIND = r"(?:function|method|class|type|struct|helper|constant|trait|interface|macro)"
_ASIDE = r"(?:,\s+(?:which|who|that)\b(?:[^.;:!?`\n]|\.\d){1,100},|\s+\([^()`\n]{1,80}\))?"
"""What a sentence says beside about a name: "which is deprecated since 0.9,"."""
REMOVES = lazy_regex(
    r"(?i)\b(?:delete|remove|drop|get\s+rid\s+of)\s+"
    rf"(?:(?:the\s+)?(?:(?:old|deprecated|unused|obsolete|dead)\s+)*(?:{_KIND}\s+)?{_NAME}"
    rf"(?:\s+{_KIND})?{_ASIDE}(?:\s+(?:from|in)\s+`?[\w./-]*[\w/-]`?)?|(?P<pronoun>it|this|that|(?:the|this|that)\s+{_KIND}))(?:{_ITS_TESTS})?"
)
"""An order to remove a name in code, or a pronoun for it. That its tests go, too, need not be said:
without it they cannot pass."""
JA_REMOVES = lazy_regex(
    rf"(?:{_NAME}|(?P<pronoun>それ|これ|(?<!\w)(?:この|その|当該)?(?:関数|メソッド|クラス|型)))"
    r"(?:\s*(?:と|、|および|及び)?\s*(?:を)?\s*(?:その|対応する|関連する)?\s*テスト"
    r"(?:ごと|も|と(?:とも|一緒)に)?)?\s*を?\s*[^。\n、]{0,10}?(?:削除|取り除|廃止)(?P<end>[^。\n]{0,12})"
)


LISTED = lazy_regex(r"\s*:[^.;!?()\n]+(?:\n(?!\s*\n)[^.;!?()\n]+)*")
"""What "it" is: "remove it: the function `to_xml`, its module"."""
ELSE = lazy_regex(
    r"(?i)\b(?:but|except|keep\w*|leav\w+|not|never|without|stays?|instead)\b|n['’]t\b"
)
OPTION_GOES = lazy_regex(
    r"(?i)\b(?:delete|remove|drop)\s+(?:the\s+)?(?:\w+\s+){0,2}`(?P<option>--[\w-]+)`"
    r"|`(?P<unwanted>--[\w-]+)`\s+(?:is|has)\s+(?:no\s+longer\s+(?:wanted|needed|used|supported)"
    r"|to\s+go)"
)
"""An order to remove an option of a command line."""


DEPRECATED_GO = lazy_regex(
    r"(?i)\b(?:delete|remove|drop|get\s+rid\s+of)"
    r"\s+(?:(?!calls|us(?:e|es|ages?)\b|warnings?|imports?|mentions?)\w+\s+){0,3}?deprecated\s+"
    r"(?:\w+\s+)?(?:functions?|methods?|class(?:es)?|types?|APIs?|code|aliases|names|things|stuff|ones)"
    r"|非推奨[^。、\n]{0,20}?を[^。、\n]{0,10}?(?:削除|取り除|廃止)"
)
"""An order to remove what is deprecated, whatever that is."""


def removed_options(prd_text: str) -> list[str]:
    """Return the options of a command line that the PRD wants removed: `--verbose`."""
    text = outside_of_checks(prd_text[:MOST])
    found = [
        hit["option"] or hit["unwanted"]
        for sentence in sentences(text)
        for hit in OPTION_GOES.finditer(sentence)
        if hit["unwanted"] or not _is_denied(sentence, hit)
    ]
    return list(dict.fromkeys(found))


def removes_deprecated(prd_text: str) -> bool:
    """Whether the PRD wants gone what the code calls deprecated, without saying its names."""
    return any(
        not _is_denied(sentence, hit) and not JA_NOT.search(sentence[hit.end() :][:12])
        for sentence in sentences(outside_of_checks(prd_text[:MOST]))
        for hit in DEPRECATED_GO.finditer(sentence)
    )


def removed_names(prd_text: str) -> set[str]:
    """Return the last names of code that the PRD wants removed.

    A pronoun stands for the only name of the nearest sentence before that names code.
    """
    text = outside_of_checks(prd_text[:MOST])
    found: set[str] = set()
    named: set[str] = set()
    for sentence in sentences(text):
        orders = [one for one in REMOVES.finditer(sentence) if not _is_denied(sentence, one)]
        orders += [one for one in JA_REMOVES.finditer(sentence) if not JA_NOT.search(one["end"])]
        for hit in orders:
            meant = _names(sentence[: hit.start()]) or named
            if name := hit["name"] or hit["bare"]:
                found.add(last_name(name))
                continue
            if listed := LISTED.match(sentence, hit.end()):
                found |= _names(ELSE.split(listed[0])[0])
            if len(meant) == 1:
                found |= meant
        named = _names(sentence) or named
    return found - {""}


def _is_denied(sentence: str, order: re.Match[str]) -> bool:
    return bool(NEGATED.search(sentence[max(order.start() - 60, 0) : order.start()]))


def name_before(text: str) -> str:
    """Return the only name of code in the nearest sentence that has some, for which a pronoun
    after it stands; "" for none."""
    named = next(filter(None, map(_names, reversed(sentences(text)))), set())
    return next(iter(named)) if len(named) == 1 else ""


def last_name(path: str) -> str:
    """Return `Show` for `money.Show`, `money::Show` or `Money#Show`."""
    return re.split(r"[.:#]", path)[-1]


def _names(text: str) -> set[str]:
    hits = NAME.finditer(text)
    return {name for hit in hits if (name := last_name(hit["name"] or hit["bare"]))}
