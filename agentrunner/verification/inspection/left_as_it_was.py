"""What the requirements want changed and the work left as it was: files, modules, values, callers.

"Document it in README.md" is not met where that file is as before, "migrate to argparse" not where
the other module is still imported, and "from 10 to 25" not where the 10 stands where it stood.
"Use it in `save`" is not met where that function is the same.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.text.sentences import sentences
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.file_names import PAGES
from agentrunner.verification.inputs.references import JS_IMPORT, PYTHON_FROM, PYTHON_IMPORT
from agentrunner.verification.inputs.wanted_removals import removed_options
from agentrunner.verification.inputs.words_of_change import ARTICLE, NAMED_FILE, UNSURE
from agentrunner.verification.inspection.both_trees import MOST_READ, BothTrees
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.emptied_functions import changed_functions
from agentrunner.verification.syntax.functions import functions_of
from agentrunner.verification.syntax.languages import language_of, parse
from agentrunner.verification.syntax.tokens import lexical_family, tokens, without_comments
from agentrunner.verification.syntax.words import quoted_lists

STILL_HERE = "{} is still there, and the requirements say: {}"
STILL_CALLED = "{} still calls `{}`, and the requirements say: {}"
GOES = lazy_regex(
    rf"(?i)\b(?:delet|remov|drop)(?:e|es|ed|ing|s|ped|ping)?\s+{ARTICLE}{NAMED_FILE}[`'\"]*"
    r"(?=\s*(?:$|[,.;:)]|\b(?:and|as|since|because|which|afterwards|then)\b))"
)
"""An order to remove a file."""
CALLS_GO = lazy_regex(
    r"(?i)\b(?:delete|remove|drop|get\s+rid\s+of)\s+(?:the|all|all\s+the|every|any|remaining)\s+"
    r"`(?P<call>[A-Za-z_][\w.]*)(?:\(\))?`\s+(?:calls?|statements?|usages?|uses)\b"
)
"""An order to call something no more."""

UNTOUCHED = "{} is as it was, and the requirements say: {}"
STILL_USED = "{} still imports `{}`, and the requirements say: {}"
STILL_THERE = "{} is still all that stood for it in the code, and the requirements say: {}"
NOT_USED = "`{}` is as it was, and the requirements say: {}"
_VERSION = lazy_regex(r"[\d.]+|\w\.\w")
ORDER = lazy_regex(
    r"(?i)(?:^|[,;:]\s|\b(?:and|also|please|then|must|should)\s)\s*(?:[-*]\s+(?:\[.\]\s+)?)?"
    r"(?:please\s+|also\s+|then\s+|be\s+)*"
    r"(?:(?:document|describe|mention|explain|note|add|put|write|list|record)(?:ed)?\b"
    rf"(?:(?!\b(?:from|for)\b)[^.;:!?\n]|\.\w){{0,80}}?\s(?:in|into|to)\s+{ARTICLE}"
    rf"|(?:update|extend|amend|revise|adapt)\s+{ARTICLE}){NAMED_FILE}"
    rf"|{NAMED_FILE.replace('path', 'ja')}[`」]?\s*(?:に|にも|を|も)"
    r"[^。\n、]{0,20}(?:記載|追記|更新)"
)
"""An order to write into a file, or to bring it up to date."""
FURTHER = lazy_regex(
    r"(?i)[`'\"]*(?:\s*\([^()\n]*\))?(?:\s*,|\s+and\b|\s+as\s+well\s+as\b)+\s+"
    rf"(?:(?:also|in|into|to)\s+)*{ARTICLE}{NAMED_FILE}"
    r"(?=[`'\"]*\s*(?:$|\.(?!\w)|[,;:()]|\b(?:and|as(?!\s+(?:needed|necessary|appropriate|required))|with|too|accordingly)\b))"
)
"""A further file of such an order, with which nothing else begins."""
USED_IN = lazy_regex(
    r"(?i)\b(?:use|call|apply)\s+(?:it|this|that|them|these|both)\s+(?:(?:from\s+)?(?:in|for|from)"
    r"|(?:with)?in)\s+`(?P<where>[^`\n]+)`(?:\s+(?:in|of)\s+`(?P<file>[^`\n]+)`)?"
)
"""An order to use what is new in code that is there."""
_MODULE = r"`?(?P<{}>[A-Za-z_][\w.@/-]*\w)`?"
REPLACES = lazy_regex(
    rf"(?i)\b(?:migrat\w+|switch\w*|mov\w+|port\w*|chang\w+)\b(?:(?!\bfrom\b)[^.;:!?\n]|\.\w){{0,60}}?"
    rf"\bfrom\s+{ARTICLE}{_MODULE.format('old')}(?:\s+module)?\s+to\s+{ARTICLE}{_MODULE.format('new')}"
    rf"|\breplac\w+\s+{ARTICLE}{_MODULE.format('gone')}\s+(?:by|with)\s+{ARTICLE}{_MODULE.format('come')}"
)
"""A module that gives way to another one."""
_VALUE = r"(?<![\w.])[`\"']?(?P<{}>\d+(?:\.\d+)?)[`\"']?(?![\w%]|\.\d)"
BECOMES = lazy_regex(
    rf"(?i)\b(?:chang|rais|lower|increas|decreas|reduc|set)\w*\b[^.;:!?\n]{{0,60}}?"
    rf"\bfrom\s+{_VALUE.format('was')}\s+(?:\w+\s+)?to\s+{_VALUE.format('now')}"
)


def left_as_it_was(trees: BothTrees, asked: str) -> str:
    """What the text wants changed that is as it was in the new tree; else "".

    Blocks. Raises GitFailed and OSError.
    """
    old, new, read_old, read = trees.old, trees.new, trees.read_old, trees.read
    for row in quoted_lists(asked):
        same = [path for path in row if path in new and old.get(path) == new[path]]
        if set(row) <= set(trees.product) and 0 < len(same) < len(row):
            return UNTOUCHED.format(same[0], ", ".join(row))
    for sentence in sentences(asked, semicolons=True):
        if UNSURE.search(sentence):
            continue
        shown = " ".join(sentence.split())[:120]
        for hit in USED_IN.finditer(sentence):
            if where := _left_alone(hit, trees):
                return NOT_USED.format(where, shown)
        for path in _to_change(sentence, old):
            # An empty line or a space more says nothing.
            if path in new and (read_old(path) or b"").split() == (read(path) or b"").split():
                return UNTOUCHED.format(path, shown)
        for module in _to_go(sentence):
            named = [one for one in old if posixpath.basename(one) in sentence] or list(
                trees.product
            )
            for path in named[:MOST_READ]:
                before = _imported(path, read_old) if language_of(path) else set()
                if module in before and module in _imported(path, read):
                    return STILL_USED.format(path, module, shown)
        for value in (hit["was"] for hit in BECOMES.finditer(sentence)):
            stood = sum(_numbers(one, read_old)[value] for one in trees.code)
            lost = any(
                _numbers(one, read)[value] < _numbers(one, read_old)[value] for one in trees.changed
            )
            if trees.changed and stood and not lost:
                return STILL_THERE.format(value, shown)
    return ""


def _left_alone(order: re.Match[str], trees: BothTrees) -> str:
    """The file or function that something new is to be used in, where it is as it was; else "".

    A function counts as changed where one that it names is. What is new may be told by its path.
    """
    read_old, read, code = trees.read_old, trees.read, trees.code
    named = [one for one in (order["file"], order["where"]) if one]
    for name in named:
        fitting = [path for path in code if path == name or path.endswith(f"/{name}")]
        if len(fitting) == 1 and fitting[0] in trees.new:
            return fitting[0] if read_old(fitting[0]) == read(fitting[0]) else ""
    if not (hit := re.fullmatch(r"(?:[\w.:#]*[.:#])?([A-Za-z_]\w*)(?:\([^)]*\))?", order["where"])):
        return ""
    stands, changed = False, set()
    bodies = b""
    for path in code:
        before, after, language = read_old(path), read(path), language_of(path)
        if before is None or after is None or language is None:
            continue
        changed |= {one.last_name for one in changed_functions(before, after, language)}
        parsed = parse(before, language)
        for one in functions_of(parsed) if parsed is not None else ():
            if one.last_name == hit[1]:
                stands = True
                bodies += before[one.node.start_byte : one.node.end_byte]
    if not stands or hit[1] in changed:
        return ""
    words = set(re.findall(r"\w+", bodies.decode("utf-8", "replace")))
    return "" if words & changed else hit[1]


def _to_change(sentence: str, paths: Collection[str]) -> Iterator[str]:
    """Existing code and documents that a sentence orders to be changed."""
    names = []
    for hit in ORDER.finditer(sentence):
        names.append(hit["path"] or hit["ja"])
        while more := FURTHER.match(sentence, hit.end()):
            names.append(more["path"])
            hit = more
    for name in names:
        bare = "." not in name
        fitting = [
            path
            for path in paths
            if path == name
            or posixpath.basename(path) == name
            or (bare and posixpath.splitext(path)[0].lower() == name.lower())
        ]
        if len(fitting) == 1 and (fitting[0].endswith(PAGES) or language_of(fitting[0]) or bare):
            yield fitting[0]


def _to_go(sentence: str) -> Iterator[str]:
    """Modules that a sentence wants replaced by others."""
    for hit in REPLACES.finditer(sentence):
        name = hit["old"] or hit["gone"]
        if not _VERSION.fullmatch(name):
            yield name


def _imported(path: str, read: ReadFile) -> set[str]:
    """Names of modules that a file of Python or JavaScript imports."""
    text = (read(path) or b"").decode("utf-8", "replace")
    if path.endswith((".py", ".pyi")):
        found = {hit[2] for hit in PYTHON_FROM.finditer(text)}
        for hit in PYTHON_IMPORT.finditer(text):
            found |= {part.split()[0] for part in hit[1].split(",") if part.split()}
        return found
    return {hit[1] for hit in JS_IMPORT.finditer(text)}


def _numbers(path: str, read: ReadFile) -> Counter[str]:
    """How often each number stands in the code of a file."""
    source = read(path) or b""
    family = lexical_family(path, source)
    if family is None:
        return Counter()
    return Counter(one.text for one in tokens(source, family) if one.kind == "number")


def still_there(trees: BothTrees, asked: str) -> str:
    """What the text wants removed that the new tree has; else "".

    Blocks. Raises GitFailed and OSError.
    """
    for sentence in sentences(asked, semicolons=True):
        shown = " ".join(sentence.split())[:120]
        for option in removed_options(sentence):
            was, now = (_mentions(option, trees.code, one) for one in (trees.read_old, trees.read))
            if was and now >= was:
                return STILL_HERE.format(f"`{option}`", shown)
        if UNSURE.search(sentence):
            continue
        for path in (hit["path"] for hit in GOES.finditer(sentence)):
            if path in trees.old and path in trees.new:
                return STILL_HERE.format(path, shown)
        for call in (hit["call"] for hit in CALLS_GO.finditer(sentence)):
            for path in trees.changed:
                if _calls(call, path, trees.read_old) and _calls(call, path, trees.read):
                    return STILL_CALLED.format(path, call, shown)
    return ""


def _calls(name: str, path: str, read: ReadFile) -> bool:
    """Whether the code of a file calls a function."""
    called = re.compile(to_bytes(rf"(?<![\w.]){re.escape(name)}\s*\("))
    return bool(called.search(without_comments(path, read(path) or b"")))


def _mentions(text: str, paths: Collection[str], read: ReadFile) -> int:
    """How often files have a text that stands alone."""
    found = re.compile(to_bytes(alone(text)))
    return sum(len(found.findall(read(path) or b"")) for path in paths)
