"""What functions refused and refuse no more: errors that they raised, answers that said no.

A worker that writes a function anew may lose a check that no test asks for, or take one out that
is in its way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.text.sentences import sentences
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inspection.both_trees import BothTrees
from agentrunner.verification.inspection.restored_lines import (
    CATCHES,
    QUOTED,
    LostCode,
    caught_again,
    lost_imports,
    put_back,
)
from agentrunner.verification.inspection.same_functions import Part, same_functions
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.functions import Function, functions_of
from agentrunner.verification.syntax.languages import language_of, parse, walk
from agentrunner.verification.syntax.refusals import Refusal, bodies_of, refusals_in
from agentrunner.verification.syntax.tokens import lexical_family, without_comments

LOST = "{} of {} no longer refuses with `{}`, and the requirements do not speak of that"
ACCEPTS = lazy_regex(
    r"(?i)\b(?:accept(?!ance\b)|allow|permit|tolerat|lenient|no longer|remov|deprecat|optional"
    r"|(?:is|are|be) ignored|fall(?:s|ing)? ?back|refactor|schema|validat\w+ (?:moves?|by|in)\b"
    r"|(?:not|n['’]t|never|without) (?:\w+ )?(?:rais|throw|fail|crash|panic|refus|reject"
    r"|complain|exit))|許可|許容|受け付け|エラーに(?:しない|せず)|外[すしせ]"
)
"""Words of a text by whose work less may be refused, or elsewhere."""
REFUSES = lazy_regex(
    r"(?i)fail|abort|reject|den(?:y|ied)|forbid|invalid|assert|invariant|throwif"
    r"|require(?!\(?[\s\"'])|validat|schema|\.(?:ok_or|map_err|expect\()"
    r"|(?-i:\berr\(|\bErr[A-Z]|(?<![A-Z])[A-Z]\w*Error ?\{)"
)
"""What is in names and texts of code that says no in another way, by a function for that."""
CHECKS = lazy_regex(
    r"(?m)^[ \t]*(?:@(?:\w+\.)*|(?P<call>(?:await )?(?:(?:self|\$?this)(?:\.|->|::))?))"
    r"([A-Za-z_]\w*)(?(call)[ \t]*\()"
)
"""A statement that calls a function or an own method and leaves its answer, and a decorator."""
OPERAND = lazy_regex(
    rb"(?<![\w.$])(?!(?:if|elif|unless|not|and|or|in|is)\b)[A-Za-z_$][\w.$]*+(?!\()"
)
"""A value in a condition."""
IN_CODE = lazy_regex(r"`([^`\n]+)`")
STATUS = lazy_regex(rb"\b4\d\d\b")
CALLED = lazy_regex(rb"(?<!\w)([A-Za-z]\w*)[!?]?[ \t]*\(")
KEPT = lazy_regex(r"\b(\w++)[ \t]*(?:[-+|&]?=(?![=>])|:=|\+\+)")
"""A name that gets a value."""
HANDED = lazy_regex(
    rb"(?P<call>(?<![\w.$])[\w.$]++\([ \t]*(?P<quote>[\"'`])[^\"'`\n]*(?P=quote)),(?P<rest>[^\n]*)"
)
"""A call with a text first, as a route is, and what else it gets in this line."""
CONDITIONS = ("if_", "conditional", "switch", "match_", "ternary")
MOST_TRIED = 3
"""So many refusals are put back, two runs each."""
SHORTEST = 4


def lost_refusals(trees: BothTrees, asked: str) -> list[LostCode]:
    """The first that functions which stand do not refuse any more, and the text does not speak of.

    A function that has another name or file now stands, too. One that says no as often as before
    may do so in other words, and one whose refusal stands elsewhere now has it from there. Blocks.
    """
    if allows_more(asked):
        return []
    allows = _allowing(asked)
    found = chain(_lost(trees, asked, allows), _lost_before_routes(trees, asked, allows))
    return [*islice(found, MOST_TRIED)]


def allows_more(asked: str) -> bool:
    """Whether a text lets less be refused, and names no code with that."""
    return any(not IN_CODE.search(one) for one in _allowing(asked))


def _allowing(asked: str) -> list[str]:
    return [one for one in sentences(asked) if ACCEPTS.search(IN_CODE.sub("", one))]


def _lost(trees: BothTrees, asked: str, allows: Sequence[str]) -> Iterator[LostCode]:
    before, after = (
        {one: read(one) or b"" for one in trees.work} for read in (trees.read_old, trees.read)
    )
    checks = _checks(trees, before, after)
    all_before, all_after = (
        Counter(one.kind for path, text in each.items() for one in _refusals(text, path, checks))
        for each in (before, after)
    )
    if not all_before:
        return
    known = {path: bodies_of(path, text) for path, text in before.items()}
    for old, now in same_functions(before, after, known):
        path, name, body, new_body = old.path, old.name, old.text, now.text
        was, still = ([*_refusals(one.own, one.path, checks)] for one in (old, now))
        kinds = Counter(one.kind for one in still)
        gained = Counter(map(_key, still)) - Counter(map(_key, was))
        named = Counter(
            one.kind for one in still if gained[_key(one)] and _is_spoken_of(one, asked)
        )
        named &= Counter([kind for kind, _ in gained.elements()])
        wanted = named.total()
        if len(still) - wanted >= len(was) or _may_refuse_less(old, allows, known):
            continue
        words = [_refusing_words(path, one) for one in (body, new_body)]
        catches = [len(CATCHES.findall(without_comments(path, one))) for one in (body, new_body)]
        lost = [
            one
            for one in was
            if kinds[one.kind] <= named[one.kind]
            and all_after[one.kind] - named[one.kind] < all_before[one.kind]
            and not (one.again and catches[1] < catches[0])
            and not (
                _is_spoken_of(one, asked, by_name=not named[one.kind])
                or (b"$#" in new_body and one.kind.startswith("${"))
                or (wanted and _keeps_condition(one, body, new_body))
                or (
                    named[one.kind]
                    and any(
                        _operands(one, body) & _operands(other, new_body)
                        for other in still
                        if gained[_key(other)] and other.kind == one.kind
                    )
                )
            )
            and not _is_in_a_name(one, body, new_body, after, trees)
        ]
        if not lost or words[1] - words[0] or _is_left_to_others(old, now, before, after, trees):
            continue
        shown = f"`{name}`" if name != path else "it"
        imports = lost_imports(before[path], after[now.path], body)
        for one in lost:
            back = caught_again if one.again else put_back
            texts = (
                back(body, new_body, one.line),
                None if name == path else body.decode("utf-8", "replace"),
            )
            yield LostCode(
                LOST.format(shown, path, one.kind),
                one.kind,
                now.path,
                tuple(
                    (*imports, Edit(now.start, now.start + len(new_body), text))
                    for text in texts
                    if now.start >= 0 and text is not None
                ),
            )


def _refusing_words(path: str, body: bytes) -> Counter[str]:
    """Words by which code may say no in another way, but for names of what it only counts or
    keeps: `failed = 0`."""
    text = without_comments(path, body).decode("latin-1")
    kept = {*KEPT.findall(text)}
    return Counter(
        REFUSES.findall(re.sub(r"\w+", lambda hit: "" if hit[0] in kept else hit[0], text))
    )


def _may_refuse_less(
    part: Part, allows: Sequence[str], known: Mapping[str, Mapping[str, tuple[int, bytes]]]
) -> bool:
    """Whether a sentence that lets less be refused may mean a function: it names it, one that it
    uses or that uses it, or none."""
    bodies = [
        (one.rpartition(".")[2], text) for each in known.values() for one, (_, text) in each.items()
    ]
    own = part.name.rpartition(".")[2]
    for sentence in allows:
        words = {word for code in IN_CODE.findall(sentence) for word in re.findall(r"\w+", code)}
        named = [(name, text) for name, text in bodies if name in words]
        if not named or any(
            name == own
            or re.search(alone(name), part.text.decode("latin-1"))
            or re.search(alone(own), text.decode("latin-1"))
            for name, text in named
        ):
            return True
    return False


def _is_left_to_others(
    old: Part,
    now: Part,
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    trees: BothTrees,
) -> bool:
    """Whether a function, or a line that calls it or hands it over, names another that refuses
    more often than before: a helper, or what stands before it on a route."""
    named = []
    for part, texts in ((old, before), (now, after)):
        own = part.name.rpartition(".")[2]
        route = part.name.partition("(")[2].rstrip(")") or own
        near = re.compile(rb"\.use\(|(?<!\w)" + re.escape(to_bytes(route)) + rb"(?!\w)")
        lines = [
            line
            for path, text in texts.items()
            for line in without_comments(path, text).split(b"\n")
            if b"(" in line and near.search(line)
        ]
        text = QUOTED.sub("", b"\n".join([part.text, *lines]).decode("latin-1"))
        named.append(Counter(re.findall(r"(\.|->|::)?\b(\w+[?!]?)", text)))
    gained = {one for _, one in named[1] - named[0]} - {own}
    plain = {one for of, one in named[1] - named[0] if not of and len(one) >= SHORTEST} - {own}
    if any(_refuses(path, text, gained) for path, text in after.items()):
        return True
    defined = re.compile(rb"\b(?:def|fn|func|function|sub|const) (\w+[?!]?)")
    others = ((path, trees.read(path) or b"") for path in trees.code if path not in after)
    return any(
        _refuses(path, text, plain)
        for path, text in others
        if any(one.decode() in plain for one in defined.findall(text))
    )


def _is_in_a_name(
    one: Refusal,
    body: bytes,
    new_body: bytes,
    after: Mapping[str, bytes],
    trees: BothTrees,
) -> bool:
    """Whether a function that is called now has the number of a refusal in its name, as
    `get_or_404` has: one of a library, or one that refuses."""
    numbers = STATUS.findall(body.split(b"\n")[one.line])
    called = {*CALLED.findall(new_body)}.difference(CALLED.findall(body)) if numbers else ()
    names = {to_bytes(alone(name.decode())): name.decode() for name in called
             if any(number in name for number in numbers)}  # fmt: skip
    if not names:
        return False
    texts = {**{path: trees.read(path) or b"" for path in trees.code}, **after}
    any_name = b"(?:" + b"|".join(names) + b")"
    set_here = any_name + rb"[ \t]*(?:=|:[^:])"  # or brought in, or put there, under this name
    set_here += rb"|(?:\bas[ \t]+|(?<!:):[ \t]*|[\"'`])" + any_name + rb"(?![ \t]*\()"
    return not any(re.search(set_here, text) for text in texts.values()) and all(
        any(refusals_in(text, path))
        for path, source in texts.items()
        for name, (_, text) in bodies_of(path, source).items()
        if name.rpartition(".")[2] in names.values()
    )


def _refuses(path: str, source: bytes, names: Collection[str]) -> bool:
    """Whether a file has a function of one of these names that refuses something."""
    return any(
        name.rpartition(".")[2] in names and any(_refusals(body, path))
        for name, (_, body) in bodies_of(path, source).items()
    )


def _condition(one: Refusal, body: bytes) -> bytes:
    """What leads to a refusal: what stands before it in its line, or the line above."""
    lines = body.split(b"\n")
    condition = re.split(rb"\b(?:raise|throw|return)\b", lines[one.line])[0].strip()
    return condition or lines[max(one.line - 1, 0)].strip()


def _keeps_condition(one: Refusal, body: bytes, new_body: bytes) -> bool:
    """Whether what led to a refusal stands still: another one that is asked for follows it now."""
    condition = _condition(one, body)
    return len(condition) > SHORTEST and condition in new_body


def _operands(one: Refusal, body: bytes) -> set[bytes]:
    """What is asked before a refusal: another one that asks the same may stand for it."""
    return set(OPERAND.findall(_condition(one, body)))


def _key(one: Refusal) -> tuple[str, tuple[str, ...]]:
    return one.kind, one.texts


def _is_spoken_of(one: Refusal, asked: str, *, by_name: bool = True) -> bool:
    """Whether a text speaks of it: by its name, its number or its words."""
    return any(text in asked for text in one.texts) or bool(
        by_name and re.search(alone(one.kind), asked)
    )


def _lost_before_routes(trees: BothTrees, asked: str, allows: Sequence[str]) -> Iterator[LostCode]:
    """Yield functions that only refuse, and are not handed over beside a route any more."""
    for path in trees.work:
        old, new = trees.read_old(path) or b"", trees.read(path) or b""
        if lexical_family(path, new) is None:
            continue
        calls = {one["call"]: one for one in HANDED.finditer(new)}
        for hit in HANDED.finditer(old):
            if (now := calls.get(hit["call"])) is None:
                continue
            was, still = (
                {*re.findall(r"\w+", one["rest"].decode("latin-1"))} for one in (hit, now)
            )
            used = {
                name
                for name in was - still
                if not re.search(alone(name), asked)
                and not re.search(rb"\.use\([^\n]*" + to_bytes(alone(name)), new)
                and not _may_refuse_less(Part(path, name, 0, hit[0], hit[0]), allows, {})
            }
            for name in sorted(_that_only_refuse(trees, {path: new}, used) if used else ()):
                line = hit[0].decode("utf-8", "replace")
                yield LostCode(
                    LOST.format(f"`{hit['call'].decode('utf-8', 'replace')})`", path, name),
                    name,
                    path,
                    (
                        (Edit(now.end("call"), now.end("call"), f", {name}"),),
                        (Edit(now.start(), now.end(), line),),
                    ),
                )


def _checks(trees: BothTrees, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> set[str]:
    """Names of functions that do nothing but refuse, or decorate others with that, and are used as
    such more or less often than before."""
    was, now = (
        Counter(hit[2] for text in each.values() for hit in CHECKS.finditer(text.decode("latin-1")))
        for each in (before, after)
    )
    used = {*(was - now), *(now - was)}
    return _that_only_refuse(trees, after, used) if was - now else set()


def _that_only_refuse(
    trees: BothTrees, after: Mapping[str, bytes], used: Collection[str]
) -> set[str]:
    """Which of these names are those of functions that do nothing but refuse."""
    found: dict[str, bool] = {}
    for path in dict.fromkeys([*trees.code, *after]):
        language = language_of(path)
        for source in (trees.read_old(path), after.get(path)) if language else ():
            parsed = parse(source, language or "")
            for one in functions_of(parsed) if parsed is not None else ():
                if one.last_name in used:
                    known = found.get(one.last_name, True)
                    found[one.last_name] = known and _only_refuses(one, path)
    return {name for name in found if found[name]}


def _only_refuses(function: Function, path: str) -> bool:
    """Whether a function consists of conditions, values for them, functions inside, and errors."""
    source = function.parsed.source[function.body.start_byte : function.body.end_byte]
    kinds = ("if_", "raise", "throw", "function", "lexical", "variable", "let_", "return")
    decides = any(one.type.startswith(CONDITIONS) for one in walk(function.body))
    return (
        decides
        and any(_refusals(source, path))
        and all(
            one.type.startswith(kinds)
            or (one.named_children and one.named_children[0].type.startswith(("assignment", "if_")))
            for one in function.work
        )
    )


def _refusals(source: bytes, path: str, checks: Collection[str] = ()) -> Iterator[Refusal]:
    """Yield what a source refuses, also by calling one of `checks`, which only refuse."""
    for hit in CHECKS.finditer(source.decode("latin-1")) if checks else ():
        if hit[2] in checks:
            yield Refusal(hit[2], (), source.count(b"\n", 0, hit.start(2)))
    yield from refusals_in(source, path)
