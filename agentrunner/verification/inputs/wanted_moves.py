"""What does the PRD want moved or renamed: paths, modules, names in code? If in doubt, nothing.

Pure. Of paths Japanese is understood as well.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import pairwise

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.sentences import sentence_before, sentences
from agentrunner.verification.inputs.globs import is_glob
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.inputs.wanted_changes import (
    MOST_NAMED,
    TOKEN,
    as_path,
    names_path,
    requests,
)
from agentrunner.verification.inputs.wanted_removals import last_name, name_before
from agentrunner.verification.inputs.words_of_change import JA_NOT, MOST, NEGATED, outside_of_checks

KEEPS_TEXT = lazy_regex(r"(?i)renam|mov(?!ed? away)|[^。\n]*(?:改名|リネーム|移動|移[すし](?!植))")
"""The verbs among `MOVES` that leave a file's text as it is."""
NOW_CALLED = lazy_regex(r"[`'\"*_)]*\s+(?:becomes?|turns\s+into|→|->|=>)\s+[`'\"*_(]*")
"""Between a path and the path that it becomes."""
RENAMES = lazy_regex(
    r"(?i)\brenam(?:e|es|ed|ing)\b(?:[^.;:!?`]|\.\S){0,60}?`(?P<old>[A-Za-z_][\w.:#]*)(?:\(\))?`"
    r"(?:[^.;:!?`]|\.\S|`[^`\n]*[./][^`\n]*`){0,60}?\s(?:to|into|as)\s+`(?P<new>[A-Za-z_][\w.:#]*)"
)
"""A name in code, and its new name."""
ONE_MORE = lazy_regex(
    r"(?:\(\))?`(?:,|,?\s+and)(?:\s+(?!not\b|never\b)[a-z]+){0,3}\s+`(?P<old>[A-Za-z_][\w.:#]*)(?:\(\))?`"
    r"\s+(?:to|into|as)\s+`(?P<new>[A-Za-z_][\w.:#]*)"
)
"""Behind them: "and its method `put` to `add`"."""
MOVES_PARTS = lazy_regex(
    r"(?i)\b(?:mov(?:e|es|ed|ing)|extract(?:s|ed|ing)?|split(?:s|ting)?|relocat(?:e|es|ed|ing)"
    r"|(?:pull|factor)(?:s|ed|ing)?\s+out)\b|移動|移[すし]|切り出|分割"
)
"""A verb by which code goes to another module."""
STAYS = lazy_regex(
    r"(?i)(?<!nothing )(?<!none )"
    r"\b(?:stays?|remains?|unchanged|must not|out of scope|keep(?:s|ing)?)\b"
)
"""What a sentence says of code that goes nowhere, unless nothing stays."""
BARE_RENAMES = lazy_regex(
    r"\b(?:[Rr]enam(?:e|es|ed|ing)|(?P<more>and))\s+(?:the\s+)?"
    r"(?:(?P<kind>function|method|class|type)\s+)?"
    r"(?P<old>[A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w*)*)(?:\(\))?\s+(?:to|into|as)\s+"
    r"(?P<new>[A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w*)*)(?:\(\))?(?![\w/]|\.\w)"
)
"""The same without back quotes, where the kind is said, or both are spelt as no plain word is:
`byTag`, `by_tag`, `calc.plus`."""
RENAMES_IT = lazy_regex(
    r"\b[Rr]enam(?:e|es|ed|ing)\s+(?:it|this|that|(?:the|this|that)\s+(?:function|method|class|type))"
    r"\s+(?:to|into|as)\s+(?:`(?P<new>[A-Za-z_][\w.:#]*)(?:\(\))?`|(?P<bare>\w+)(?:\(\))?(?![\w/]|\.\w))"
)
"""The same of what was named before: "`Fmt` is a bad name. Rename it to `Format`"."""
CODE_NAME = lazy_regex(r"(?=\w*(?:[a-z0-9][A-Z]|[A-Za-z0-9]_\w))\w+")


def moved_in(prd_text: str, path: str, paths: Collection[str] = ()) -> bool:
    """Whether the PRD wants a path to be moved or renamed, and nothing else done to it."""
    text = prd_text[:MOST]
    tokens = list(TOKEN.finditer(text))
    verbs = [
        verb for index, verb in requests(text, tokens) if names_path(tokens[index][0], path, paths)
    ]
    return bool(verbs) and all(map(_is_move, verbs))


def moves_in(prd_text: str) -> list[str]:
    """Return paths and modules that the PRD wants moved or renamed, and those that they become."""
    text = prd_text[:MOST]
    tokens = list(TOKEN.finditer(text))
    places = [index for index, verb in requests(text, tokens) if _is_move(verb)]
    for index, (before, after) in enumerate(pairwise(tokens)):
        if NOW_CALLED.fullmatch(text[before.end() : after.start()]):
            places += [index, index + 1]
    words = dict.fromkeys(as_path(tokens[index][0], ()).rstrip("/") for index in places)
    return [word for word in words if not is_glob(word)][:MOST_NAMED]


def wants_part_moved(prd_text: str, name: str, module: str) -> bool:
    """Whether a sentence of the PRD wants code of this name to go to this module, a path.

    No PRD names each file that imports it.
    """
    return any(
        name in re.findall(r"\w+", sentence)
        and any(module == one or module.endswith(f"/{one}") for one in _modules_in(sentence))
        and _wants_code_moved(sentence)
        for sentence in sentences(outside_of_checks(prd_text[:MOST]), points=False)
    )


def module_of(path: str) -> str:
    """Return a file's path without its ending, or that of its folder where it stands for this."""
    return re.sub(r"(?:/index|/__init__)?\.(?:py|[cm]?[jt]sx?)$", "", path)


def _modules_in(sentence: str) -> set[str]:
    """Paths of what may be modules, written as paths or with dots."""
    paths = {module_of(word.rstrip(".")) for word in re.findall(r"[\w./-]+", sentence)}
    return paths | {path.replace(".", "/") for path in paths}


def _wants_code_moved(sentence: str) -> bool:
    return not STAYS.search(sentence) and any(
        not NEGATED.search(sentence[: hit.start()])
        and not JA_NOT.search(sentence[hit.end() :][:12])
        for hit in MOVES_PARTS.finditer(sentence)
    )


def renames_in(prd_text: str) -> dict[str, str]:
    """Return names in code that the PRD wants changed, new by old: `render` to `render_text`."""
    found: dict[str, str] = {}
    text = outside_of_checks(prd_text[:MOST])
    bare = [
        hit
        for hit in BARE_RENAMES.finditer(text)
        if hit["kind"] or all(_is_code(hit[one]) for one in ("old", "new"))
    ]
    of_it = [one for one in RENAMES_IT.finditer(text) if one["new"] or _is_code(one["bare"])]
    for hit in [*bare, *RENAMES.finditer(text), *of_it]:
        before, named = sentence_before(text, hit.start(), 60), hit.groupdict()
        it = named.get("old") or name_before(text[: hit.start()])
        old, new = (last_name(name) for name in (it, named.get("new") or named.get("bare") or ""))
        if named.get("more") and not re.search(r"(?i)\brenam", before):
            continue
        if old and old != new and not NEGATED.search(before):
            found[old] = new
            end = hit.end()
            while further := ONE_MORE.match(text, end):
                found[last_name(further["old"])] = last_name(further["new"])
                end = further.end()
    return found


def _is_code(name: str) -> bool:
    """Whether a word is spelt as a name in code, and not as a file's."""
    return not family_of(name) and bool(last_name(name) != name or CODE_NAME.fullmatch(name))


def _is_move(verb: str) -> bool:
    return bool(KEEPS_TEXT.match(verb))
