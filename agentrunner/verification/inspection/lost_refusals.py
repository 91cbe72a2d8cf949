"""What functions refused and refuse no more: errors that they raised, answers that said no.

A worker that writes a function anew may lose a check that no test asks for, or take one out that
is in its way.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import accumulate

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.verification.inspection.both_trees import BothTrees
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.functions import Function, functions_of
from agentrunner.verification.syntax.languages import language_of, parse
from agentrunner.verification.syntax.text_functions import text_functions
from agentrunner.verification.syntax.tokens import content, lexical_family, tokens

LOST = "{} of {} refuses nothing with `{}` any more, and the requirements do not speak of that"
ACCEPTS = lazy_regex(
    r"(?i)\b(?:accept|allow|permit|tolerat|lenient|no longer|remov|deprecat"
    r"|(?:not|n['’]t|never|without) (?:\w+ )?(?:rais|throw|fail|crash|panic|refus|reject"
    r"|complain|exit))|許可|許容|受け付け"
)
"""Words of a text by whose work less may be refused."""
_NAMES = r"(?:(?:new|\\|\.|::) |[A-Za-z_]\w* (?=\.|::|\\))*+"
REFUSAL = lazy_regex(
    rf"\b(?:raise|throw) (?:{_NAMES}(?P<kind>[A-Z]\w*)|{_NAMES}TEXT)"
    r"|(?P<error>\b[A-Z]\w*(?:Error|Exception)) \("
    r"|(?:\b(?:Err \(|errors \. New|fmt \. Errorf|(?:bail|ensure) !))"
    r"|\bpanic !?|\b(?:die|croak) (?:\( )?TEXT"
    r"|(?:\bexit (?:\( )?[1-9]\d*|\b(?:sys|process) \. exit|\bos \. Exit)"
    r"|(?:(?<![\w.] )\b4[0-2]\d\b)|(?:\breturn - [1-9]\d*)|(?:\bset - \w*e)"
)
"""A refusal in the tokens of a source, whatever its language is: `TEXT` stands for each string."""
REFUSES = lazy_regex(r"(?i)fail|err\b|abort|reject|warn|den(?:y|ied)|forbid|invalid")
"""What is in names and texts of code that says no in another way, by a function for that."""
CHECKS = lazy_regex(
    r"(?m)^[ \t]*(?:@(?:\w+\.)*|(?P<call>(?:await )?(?:[\w$]+(?:\.|->|::))*))([A-Za-z_]\w*)"
    r"(?(call)[ \t]*\()"
)
"""A statement that calls something and leaves its answer, and a decorator."""
UNWRITTEN = frozenset({"NotImplementedError"})
SHORTEST = 4
ENDS_A_BLOCK = lazy_regex(r"\s*(?:[})\]]|end\b|fi\b|$)")


class Refusal(Struct, frozen=True):
    """A way in which a function said no."""

    kind: str
    """The name of what it raises, its number, or what makes it: `Forbidden`, `404`, `exit 2`."""
    texts: tuple[str, ...] = ()
    """What it says, in the parts that stand in the source."""
    line: int = 0
    """Where it stands in its function, counted from 0."""
    shown: str = ""
    path: str = ""
    restored: tuple[Edit, ...] = ()
    """What puts it back into the new file: the lines that its function lost, or all of that."""


def lost_refusals(trees: BothTrees, asked: str) -> list[Refusal]:
    """What functions that stand do not refuse any more, and the text does not speak of. Blocks.

    A function that says no as often as before may do so in other words, and one whose refusal
    stands elsewhere now has it from there.
    """
    if ACCEPTS.search(asked):
        return []
    before, after = (
        {one: read(one) or b"" for one in trees.work} for read in (trees.read_old, trees.read)
    )
    checks = _checks(trees, before, after)
    all_before, all_after = (
        Counter(one.kind for path, text in each.items() for one in _refusals(text, path, checks))
        for each in (before, after)
    )
    found: list[Refusal] = []
    for path in trees.work if all_before - all_after else ():
        old, now = _bodies(path, before[path]), _bodies(path, after[path])
        for name, (_, body) in ((name, old[name]) for name in old if name in now):
            start, new_body = now[name]
            was, still = (list(_refusals(one, path, checks)) for one in (body, new_body))
            words = [len(REFUSES.findall(one.decode("latin-1"))) for one in (body, new_body)]
            if len(still) >= len(was) or words[1] > words[0]:
                continue
            kinds = {one.kind for one in still}
            shown = f"`{name}`" if name != path else "it"
            found += [
                Refusal(
                    one.kind,
                    one.texts,
                    one.line,
                    LOST.format(shown, path, one.kind),
                    path,
                    tuple(
                        Edit(start, start + len(new_body), text)
                        for text in (
                            _put_back(body, new_body, one.line),
                            body.decode("utf-8", "replace"),
                        )
                        if start >= 0 and text is not None
                    ),
                )
                for one in was
                if one.kind not in kinds and all_after[one.kind] < all_before[one.kind]
            ]
    return [one for one in found if not _is_spoken_of(one, asked)]


def _is_spoken_of(one: Refusal, asked: str) -> bool:
    """Whether a text speaks of it: by its name, its number or its words."""
    return any(text in asked for text in one.texts) or bool(re.search(alone(one.kind), asked))


def _put_back(before: bytes, after: bytes, line: int) -> str | None:
    """A new text with a line of the old one and what stands around it: lines that went with it, or
    of those that others stand for now the ones up to the end of its block. None where it stands."""
    old, new = (one.decode("utf-8", "replace").splitlines(True) for one in (before, after))
    depths = [len(one) - len(one.lstrip()) for one in old]
    for kind, first, last, at, _ in SequenceMatcher(None, old, new, False).get_opcodes():
        if not (kind in ("delete", "replace") and first <= line < last):
            continue
        if kind == "replace":
            above = [n for n in range(first, line) if depths[n] < depths[line]]
            top = above[-1] if above and not ENDS_A_BLOCK.match(old[above[-1]]) else line
            end = top + 1
            while end < last and (depths[end] > depths[top] or ENDS_A_BLOCK.match(old[end])):
                end += 1
            last = end
        return "".join([*new[:at], *old[first:last], *new[at:]])
    return None


def _checks(trees: BothTrees, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> set[str]:
    """Names of functions that do nothing but refuse, or decorate others with that, and are used as
    such more or less often than before."""
    was, now = (
        Counter(hit[2] for text in each.values() for hit in CHECKS.finditer(text.decode("latin-1")))
        for each in (before, after)
    )
    used = {*(was - now), *(now - was)}
    found = set()
    for path in dict.fromkeys([*trees.code, *after]) if was - now else ():
        language = language_of(path)
        for source in (trees.read_old(path), after.get(path)) if language else ():
            parsed = parse(source, language or "")
            for one in functions_of(parsed) if parsed is not None else ():
                if one.last_name in used and _only_refuses(one, path):
                    found.add(one.last_name)
    return found


def _only_refuses(function: Function, path: str) -> bool:
    """Whether a function consists of conditions, values for them, functions inside, and errors."""
    source = function.parsed.source[function.body.start_byte : function.body.end_byte]
    kinds = ("if_", "raise", "throw", "function", "lexical", "variable", "let_", "return")
    return any(_refusals(source, path)) and all(
        one.type.startswith(kinds)
        or (one.named_children and one.named_children[0].type.startswith(("assignment", "if_")))
        for one in function.work
    )


def _bodies(path: str, source: bytes) -> dict[str, tuple[int, bytes]]:
    """The functions of a file by name: where they begin, -1 for several of one name, and their
    text. A script of a shell is one by itself."""
    language, family = language_of(path), lexical_family(path, source)
    parsed = parse(source, language) if language else None
    if family == "shell":
        return {path: (0, source)}
    bodies: Iterable[tuple[str, int, bytes]] = ()
    if parsed is not None:
        nodes = [(one.name, _decorated(one.node) or one.body) for one in functions_of(parsed)]
        bodies = ((n, one.start_byte, source[one.start_byte : one.end_byte]) for n, one in nodes)
    elif family is not None:
        bodies = ((one.name, one.start, one.body) for one in text_functions(source, family))
    found: dict[str, tuple[int, bytes]] = {}
    for name, at, text in bodies:
        start = len(source[:at].rstrip(b" \t"))  # all of its first line
        body = source[start:at] + text
        found[name] = (-1, found[name][1] + body) if name in found else (start, body)
    return found


def _decorated(function: Node) -> Node | None:
    """A function of Python with what decorates it, None where nothing does."""
    around = function.parent
    return around if around is not None and around.type == "decorated_definition" else None


def _refusals(source: bytes, path: str, checks: Collection[str] = ()) -> Iterator[Refusal]:
    for hit in CHECKS.finditer(source.decode("latin-1")) if checks else ():
        if hit[2] in checks:
            yield Refusal(hit[2], (), source.count(b"\n", 0, hit.start(2)))
    family = lexical_family(path, source)
    found = tokens(source, family) if family is not None else ()
    words = ["TEXT" if one.kind == "string" else one.text for one in found]
    starts = list(accumulate((len(one) + 1 for one in words), initial=0))
    for hit in REFUSAL.finditer(" ".join(words)):
        plain = re.sub(r" ([.!]) ?", r"\1", re.sub(r"[( ]*(TEXT)?$|(?<=-) ", "", hit[0]))
        kind = hit["kind"] or hit["error"] or plain
        if kind in UNWRITTEN:
            continue
        first, last = bisect(starts, hit.start()) - 1, bisect(starts, hit.end()) + 3
        texts_of = [content(one.text) for one in found[first:last] if one.kind == "string"][:1]
        parts = [part for one in texts_of for part in re.split(r"[#$]?\{[^}]*\}|\$\w+|%\w|\n", one)]
        words_of = tuple(one for one in parts if len(one.strip()) >= SHORTEST)
        yield Refusal(kind, words_of, found[first].line - 1)
