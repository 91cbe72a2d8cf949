"""Does the PRD itself ask to change, move or remove a path? English and Japanese; if in doubt, no.

A test that the PRD only claims ("make tests/test_shop.py pass") may not be changed just because it
is named.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.sentences import sentence_before
from agentrunner.verification.inputs.globs import glob_regex, is_glob
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.inputs.words_of_change import (
    ADDS,
    ANOTHER,
    BECOMES,
    BREAK,
    CHECK,
    CLAUSE,
    DENIED,
    HABIT,
    JA_NOT,
    JA_OBJECT,
    MOST,
    NEGATED,
    VERB,
    becomes_in_japanese,
    is_looked_at,
    outside_of_checks,
    wanted_gone,
)

TOKEN = lazy_regex(
    r"(?<![\w@+*~-])[\w@+*~-]*+(?:[./][\w@+*~-]+)+/?|(?<![\w@+-])[\w@+-]++/", re.ASCII
)
"""A word that may be a path: it has a folder or an ending."""
ADDED_TO = lazy_regex(r"(?i)\b(?:to|in|into|onto|for|of|about|at|on|after|before|between)\b")
"""Between a verb of adding and a path: something else is added to the path."""
JA_ADDS = lazy_regex(
    r"^[`」』\"'*_）)\s]*(?:（[^）\n]*）)?(?:を|も)([^。\n]{0,40}?)(?:追加|作成|新設|作[るりっ]|置[くいき]|書[くいき](?!換|直)|用意)([^。\n]{0,12})"
)
MOVES = lazy_regex(r"(?i)renam|mov|port|convert|migrat|replac|split|merg")
INTO = lazy_regex(r"(?i)\b(?:to|into|onto|in|with|by|as)\b")
_OWN = r"^(?!.*\b(?:tests?|specs?|cases?|snapshots?|files?|contents?|expected|golden|fixtures?)\b)"
TOWARDS = lazy_regex(rf"(?i){_OWN}.*\b(?:to|into|onto)\b(?!.*\b(?:in|at)\b)")
"""Before the object of a verb that moves nothing: something else is adapted to the path."""
PART_OF = lazy_regex(rf"(?i){_OWN}.*\bof\b")
"""Between a verb that moves and a path: something else is moved."""
JOINS = lazy_regex(
    r"[\s`'\"*_)]*+(?:,\s*(?:and|or)\b|,|\b(?:and|or|plus|as well as|including"
    r"|(?:together|along)\s+with|with(?=\s+(?:its|their)\b))\b|&)*"
    r"(?:(?:[\s`'\"*_(]++|(?<=[\s`'\"*_]))(?:its|their|the|all|both|also|any|old|own|existing|corresponding|related"
    r"|matching|accompanying|unit|test|module|suite|golden|snapshot)\b)*"
    r"(?:(?:\s++|(?<=\s))(?:tests?|specs?|files?|cases?|suites?|snapshots?|fixtures?|modules?)\b"
    r"(?:\s+(?:in|at|from|under|of)\b)?)?[\s`'\"*_(]*",
    re.IGNORECASE,
)
"""Between two paths of one list: "Delete a.py together with its tests (tests/test_a.py)"."""
SUBJECT = lazy_regex(
    r"(?i)^[`'\"*_)]*\s+(?:is|are|must|should|shall|will|has|have|can|may|covers?|checks?|shows?|tells?"
    r"|says?|asks?|describes?|expects?|fails?|decides?|defines?|proves?|verif(?:y|ies)|asserts?|stays?"
    r"|remains?|keeps?|needs?|do(?:es)?|complains?|breaks?|wants?|works?|uses?|holds?)\b"
)
"""After a path: it is the subject of another sentence, not the object of the verb before."""
REST = lazy_regex(
    r"(?i)[`'\"*_)]*(?:(?:\s*,\s*|\s+and\s+|\s+or\s+){1,2}(?:the\s+|its\s+|all\s+)?[`'\"*_(]*"
    r"[\w./-]*\w[`'\"*_)]*){0,5}"
)
"""The rest of a list after one of its paths."""
TO = lazy_regex(r"(?:[^.;:!?]|\.\S){0,40}?\b(?:to|into|as|in|with|by)\b[\s`'\"*_]*", re.IGNORECASE)
CLAIMED = lazy_regex(
    r"(?i)^[`'\"*_)]*\s*+(?:\(.*?\)\s*+)?(?:must|should|shall|has to|have to|to|now|again|then"
    r"|will|can|still|is|are|turns?|goes|stays?|remains?|keeps?|kept|left|be|\s)*"
    r"\b(?:pass|passes|passing|green|succeeds?|works?|runs?|unchanged|untouched|as\s+(?:it|they|is|are|before))\b"
)
CLAIMS = lazy_regex(r"(?i)\b(?:mak(?:e|ing)|get|let|so|so\s+that|until|till|see)\b[^.;]{0,30}$")
GONE = lazy_regex(
    r"(?i)\b(?:remove|delete|drop)\s+(?:the\s+|all\s+|any\s+|old\s+|obsolete\s+)*(?:unit\s+)?tests?"
    r"\s+(?:for|of|about|covering)\s+(?:the\s+|an?\s+)*[`\"']?([\w -]{2,60}?)[`\"']?"
    r"\s*(?:[.,;:!?\n(]|$|\band\b|\bas\b|\bsince\b)"
)
REMOVES = lazy_regex(r"(?i)delet|remov|drop|get rid")
WITH_TESTS = lazy_regex(
    r"(?i)[`'\"*_)]*,?\s+(?:and|plus|including|as\s+well\s+as|(?:(?:together|along)\s+)?with)\s+"
    r"(?:all\s+)?(?:(?:of\s+)?its|their)\s+(?:own\s+|unit\s+|old\s+)*tests?\b(?!\s+\w+ing\b)"
)
"""After something to be removed: its tests are removed as well."""
THEIR_TESTS = lazy_regex(
    r"(?i)[`'\"*_)]*,?\s+(?:and|plus|with)\s+(?:(?:the\s+)?tests?\s+(?:of|for)\s+(?:it|them|both|these)"
    r"|(?:its|their)\s+tests?),?\s*(?:\(|in\s)[`'\"*_]*"
)
"""Between something to be removed and the path of its tests."""
JA_MARKS = r"[`「」『』\"'*_（）()\s]*"
JA_JOINS = lazy_regex(
    rf"{JA_MARKS}(?:と|や|、|,|・|及び|および|並びに|ならびに|(?:と|に)?(?:共に|ともに|合わせて|あわせて))、?"
    rf"(?:(?:その|それらの|対応する|関連する|付随する)?(?:単体|ユニット)?(?:テスト|スペック|スナップショット)?"
    rf"(?:ファイル|コード)?(?:である|の)?)?{JA_MARKS}"
)
"""Between two paths of one list in Japanese."""
JA_TARGET = lazy_regex(
    r"^[`」』\"'*_）)\s]*(?:に|へ|という名前に)[^。\n、]{0,12}?(?:改名|リネーム|移動|変更|移[すし]|置き換|置換|移植)([^。\n]{0,12})"
)
JA_GONE = lazy_regex(
    r"([\w-]{2,40})\s*(?:の|に関する|用の)\s*テスト(?:ケース)?を[^。\n、]{0,10}?(?:削除|消[すし]|取り除)([^。\n]{0,10})"
)
OBLIGED = lazy_regex(
    r"(?i)^[`'\"*_)]*\s+(?:(?:must|should|shall)\s+be|(?:has|have|needs?|is|are)\s+to\s+be|needs?\s+\w+ing)\b"
)
"""After a path: it is a request, also in the passive voice."""
PUTS_INTO = lazy_regex(
    r"(?i)(?:^|\b(?:and|then|please|also|must|should)\s+)\W*(?:add|put|write|append|insert|enter|list"
    r"|register)\b[^.;:!?]{1,60}?\b(?:to|in|into)\s+(?:the\s+)?(?:file\s+)?[`'\"*_(]*$"
)
"""Before a path: something is to be put into it."""
IGNORED_BY_GIT = lazy_regex(
    r"(?i)\b(?:(?:must|should|shall|has to|have to|to)\s+be\s+(?:git-?)?ignored\b"
    r"|(?:let|have|make)\s+git\s+ignore|(?:add|put)\b[^.]{1,40}\bgitignore)|(?:git|Git)\s*(?:で|に)(?:無視|管理しない)"
)
JA_PASS = lazy_regex(
    r"^[`」』\"'*_）)\s]*(?:の[^。\n]{0,10}?)?(?:が|を|は)[^。\n]{0,10}?(?:通|成功|合格|パス|緑|グリーン)"
)
ITEM = lazy_regex(r"\n\s*(?:\n|[-*+#]|\d+\.)")
"""The start of a paragraph or list entry, as opposed to the next line of a wrapped one."""
MOST_BETWEEN = 100
"""The most characters between two paths of one list."""
MOST_NAMED = 100
"""How often a text may name one path and still be understood."""


def asked_in(prd_text: str, path: str, paths: Collection[str] = ()) -> bool:
    """Whether changing, moving or removing `path` is itself what the PRD wants.

    If `paths` (all paths of the tree) is given, a bare file name permits changing a file only if no
    other file has that name. A folder written with a slash permits changing what is in it.
    """
    text = prd_text[:MOST]
    tokens, mine = _tokens(text, path, paths)
    if any(_is_claimed(text, tokens[index]) for index in mine):
        return False
    wanted = list(requests(text, tokens))
    return (
        not {at for at, _ in wanted}.isdisjoint(mine)
        or any(
            OBLIGED.match(text[tokens[index].end() :][:60]) and _is_to_change(text, tokens, index)
            for index in mine[:MOST_NAMED]
        )
        or any(_is_test_of_removed_module(text, tokens[at], verb, path) for at, verb in wanted)
        or _is_test_to_remove(text, path)
    )


def _tokens(text: str, path: str, paths: Collection[str]) -> tuple[list[re.Match[str]], list[int]]:
    """Return what may be a path in a text, and the indexes of what means this one."""
    tokens = list(TOKEN.finditer(text))
    return tokens, [at for at, one in enumerate(tokens) if names_path(one[0], path, paths)]


def _is_test_of_removed_module(text: str, token: re.Match[str], verb: str, path: str) -> bool:
    """Whether `path` is the test of something that is to be removed together with its tests."""
    if not (REMOVES.match(verb) and WITH_TESTS.match(text[token.end() : token.end() + 100])):
        return False
    name = as_path(token[0], ()).rstrip("/").rpartition("/")[2]
    name = _stem_of(name) if family_of(name) else name.rpartition(".")[2]
    own = re.sub(r"(?i)^(?:tests?|spec)[_-]|[._-]?(?:tests?|spec)$", "", _stem_of(path))
    return own.lower() == name.lower() and own != _stem_of(path)


def _stem_of(path: str) -> str:
    """Return `slots.test` for test/slots.test.js."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def data_asked_in(prd_text: str, path: str, paths: Collection[str] = ()) -> bool:
    """Whether the PRD names a data file as one that is to be changed, in the passive voice as well.

    "The golden file tests/golden.txt is updated accordingly" permits it. A sentence that says when
    a file is written, or that it is not, does not. For code use `asked_in`, which wants a request.
    Git's list of what it ignores is never named where something is to be ignored.
    """
    text = prd_text[:MOST]
    if path.rpartition("/")[2] == ".gitignore" and IGNORED_BY_GIT.search(text):
        return True
    tokens, mine = _tokens(text, path, paths)
    if len(mine) > MOST_NAMED or any(_is_claimed(text, tokens[index]) for index in mine):
        return False
    return any(_is_to_change(text, tokens, index) for index in mine)


def only_gets_more(prd_text: str, path: str, paths: Collection[str] = ()) -> bool:
    """Whether the PRD wants something put into a file, and nothing in it changed."""
    text = prd_text[:MOST]
    tokens, mine = _tokens(text, path, paths)
    return (
        any(_is_put_into(text, tokens[index]) for index in mine[:MOST_NAMED])
        and not any(_becomes_another(text, tokens, index) for index in mine[:MOST_NAMED])
        and not asked_in(prd_text, path, paths)
    )


def wanted_new(prd_text: str, path: str) -> bool:
    """Whether the PRD asks by name for a file to be added; naming it in checks alone is not enough.

    "Add tests to a.py" does not ask for a.py.
    """
    text = outside_of_checks(prd_text[:MOST])
    tokens, mine = _tokens(text, path, ())
    if not mine:
        return False
    added = {index for index, _ in requests(text, tokens, ADDS)}
    if not added.isdisjoint(mine):
        return True
    behind = (text[tokens[index].end() :][:100] for index in mine[:MOST_NAMED])
    return any((found := JA_ADDS.match(one)) and not JA_NOT.search(found[2]) for one in behind)


def named_new(prd_text: str) -> list[str]:
    """Return paths that the PRD names and asks to add, change or move, in its order, each once."""
    text = outside_of_checks(prd_text[:MOST])
    words = dict.fromkeys(as_path(one[0], ()) for one in TOKEN.finditer(text))
    few = [word for word in words if not is_glob(word)][:MOST_NAMED]
    return [word for word in few if wanted_new(text, word) or asked_in(text, word)]


def _is_to_change(text: str, tokens: list[re.Match[str]], index: int) -> bool:
    """Whether a sentence says that a path, alone or in a list of paths, is to change."""
    return _is_put_into(text, tokens[index]) or _becomes_another(text, tokens, index)


def _is_put_into(text: str, token: re.Match[str]) -> bool:
    """Whether a sentence wants something put into a file."""
    before = sentence_before(text, token.start(), 500)
    return bool(PUTS_INTO.search(before)) and not ANOTHER.search(before)


def _becomes_another(text: str, tokens: list[re.Match[str]], index: int) -> bool:
    """Whether a sentence of which a path is the subject says that it changes."""
    before = sentence_before(text, tokens[index].start(), 500)
    last = index
    while last + 1 < min(len(tokens), index + 20):
        gap = text[tokens[last].end() : tokens[last + 1].start()]
        if len(gap) > MOST_BETWEEN or "\n\n" in gap or not (gap.strip() and JOINS.fullmatch(gap)):
            break
        last += 1
    behind = text[tokens[last].end() :][:250]
    if found := BECOMES.match(behind):
        clause = CLAUSE.split(before)[-1] if last == index else before
        return not any((HABIT.search(before), DENIED.search(clause), HABIT.search(found[1])))
    return becomes_in_japanese(before, behind)


def as_path(token: str, paths: Collection[str]) -> str:
    """Return a token as a path, without marks of emphasis, unless the tree has a path with them."""
    word = token.removeprefix("./").rstrip(".")
    if is_glob(token) or word in paths:
        return token if is_glob(token) else word
    word = token.strip("`'\"*").removeprefix("./").rstrip(".")
    marks = re.match(r"_*", word)
    if marks and marks[0] and word.endswith(marks[0]):
        word = word.removeprefix(marks[0])
    return word if word in paths or not word.endswith("_") else word.rstrip("_")


def names_path(token: str, path: str, paths: Collection[str]) -> bool:
    """Whether a token means a path of the tree, by its name, its folder or as a glob."""
    word = as_path(token, paths)
    if word == path:
        return True
    if is_glob(word):
        return "/" in word and bool(glob_regex(word.removeprefix("./")).match(path))
    if word.endswith("/"):
        return path.startswith(word) and len(word) > 1
    if "/" in word:  # a folder may be written without its slash
        return "." not in word.rpartition("/")[2] and path.startswith(f"{word}/")
    same = path.rpartition("/")[2] == word
    return same and (not paths or sum(one.rpartition("/")[2] == word for one in paths) == 1)


def _is_claimed(text: str, token: re.Match[str]) -> bool:
    """Whether a path is named as something that has to pass or stay."""
    behind, before = text[token.end() : token.end() + 80], text[: token.start()][-60:]
    if CLAIMED.match(behind) or JA_PASS.match(behind):
        return True
    passes = re.match(r"[`'\"*_)\s]*pass|[`'\"*_)\s]*(?:go|turn)?\s*green", behind, re.IGNORECASE)
    if passes and CLAIMS.search(before):
        return True
    line = text.rfind("\n", 0, token.start()) + 1
    return any(
        found.start() + line <= token.start() < found.end() + line
        and token[0].removeprefix("./") not in wanted_gone(found[0])
        and not is_looked_at(found["command"], token[0])
        for found in CHECK.finditer(text[line : token.end() + 200])
    )


def requests(
    text: str, tokens: list[re.Match[str]], verbs: re.Pattern[str] = VERB
) -> Iterator[tuple[int, str]]:
    """Yield the index of each token that is object or target of a verb of change, and the verb."""
    starts = [token.start() for token in tokens]
    for verb in verbs.finditer(text):
        line = text.rfind("\n", 0, verb.start()) + 1
        if NEGATED.search(sentence_before(text[line:], verb.start() - line, 60)):
            continue
        at = verb.end()
        index = bisect_left(starts, at)
        if index == len(starts) or starts[index] - at > 80:
            continue
        between = text[at : starts[index]]
        if BREAK.search(between) or "\n\n" in between or len(between.split()) > 8:
            continue
        moved = bool(MOVES.match(verb[0]))
        if verbs is VERB and _changes_something_else(text, between, tokens[index], moved):
            continue
        if verbs is ADDS and ADDED_TO.search(between):
            continue
        yield index, verb[0]
        while index + 1 < len(tokens):
            gap = text[tokens[index].end() : tokens[index + 1].start()]
            target = moved and TO.fullmatch(gap) and not ANOTHER.search(gap)
            target = target and len(INTO.findall(gap)) == 1
            listed = target or _continues_list(text, gap, tokens[index + 1])
            if REMOVES.match(verb[0]):
                listed = listed or bool(THEIR_TESTS.fullmatch(gap))
            if ITEM.search(gap) or not listed:
                break
            index += 1
            yield index, verb[0]
    if verbs is ADDS:
        return
    for index, token in enumerate(tokens):
        behind = text[token.end() : token.end() + 100]
        for found in (JA_OBJECT.match(behind), JA_TARGET.match(behind)):
            if found and not JA_NOT.search(found[found.re.groups]):
                yield index, found[0]
                first = index
                while first and _is_list_before(text, tokens[first - 1], tokens[first]):
                    first -= 1
                    yield first, found[0]


def _continues_list(text: str, gap: str, token: re.Match[str]) -> bool:
    """Whether a path continues a list of paths, with only `gap` before it."""
    if not gap.strip() or len(gap) > MOST_BETWEEN or not JOINS.fullmatch(gap):
        return False
    return not _is_subject(text, token)


def _is_subject(text: str, token: re.Match[str]) -> bool:
    """Whether a path, alone or with the rest of its list, is the subject of a sentence."""
    behind = text[token.end() : token.end() + 200]
    if SUBJECT.match(behind):
        return True
    rest = REST.match(behind)
    return bool(rest and SUBJECT.match(behind[rest.end() :]))


def _changes_something_else(text: str, between: str, token: re.Match[str], moved: bool) -> bool:
    """Whether something other than the path after a verb is what the verb changes."""
    if ANOTHER.search(between) or (between.strip(" `'\"*_(") and _is_subject(text, token)):
        return True
    return bool((PART_OF if moved else TOWARDS).search(between))


def _is_list_before(text: str, before: re.Match[str], after: re.Match[str]) -> bool:
    """Whether two paths are in one list in Japanese, where the verb comes last."""
    gap = text[before.end() : after.start()]
    return len(gap) <= MOST_BETWEEN and "\n" not in gap and bool(JA_JOINS.fullmatch(gap))


def _is_test_to_remove(text: str, path: str) -> bool:
    """Whether the PRD removes this test file by its topic: `remove the test for discounts`."""
    stem = path.rpartition("/")[2].partition(".")[0].lower()
    parts = [part for part in re.split(r"[_\-\s]|test|spec", stem) if part]
    if not parts or not re.search("test|spec", path.lower()):
        return False
    for found in GONE.finditer(text):
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if NEGATED.search(line[-60:]):
            continue
        if [word for word in re.split(r"[_\-\s]+", found[1].lower()) if word] == parts:
            return True
    return any(
        re.split(r"[_-]", found[1].lower()) == parts and not JA_NOT.search(found[2])
        for found in JA_GONE.finditer(text)
    )
