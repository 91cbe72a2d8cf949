"""What the work takes away or touches that nobody asked it to: code, files, what was to be left.

A worker that writes a file anew may lose what no test asks for. Code that only served what the work
changed may go with it, and what stands elsewhere now is not gone.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Iterable, Sequence
from typing import Any

from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.file_names import PAGES, TEXTS
from agentrunner.verification.inputs.changes import is_manifest
from agentrunner.verification.inspection.both_trees import MOST_READ, BothTrees
from agentrunner.verification.inspection.has_to_stay import Files
from agentrunner.verification.results.files import json_of, table
from agentrunner.verification.subject_words import has_any
from agentrunner.verification.syntax.emptied_functions import emptied
from agentrunner.verification.syntax.functions import Function, altered, functions_of, normal
from agentrunner.verification.syntax.languages import Parsed, is_comment, language_of, parse
from agentrunner.verification.syntax.regions import is_in_test
from agentrunner.verification.syntax.tokens import without_comments

LOOSE = (
    "no code of the project uses `{}` of {}, which is new, and what the requirements speak of"
    " ({}) is as it was"
)

GONE = "`{}` of {} is gone, and the requirements do not speak of that"
IDLE = "`{}` of {} does nothing any more, and the requirements do not speak of that"
FILE_GONE = "{} is gone, and the requirements do not speak of that"
KEY_GONE = "`{}` is gone from {}, and the requirements do not speak of that"
WORD_GONE = (
    "`{}` is gone from the code of {}, {} still shows it, and the requirements do not speak of that"
)
NO_PROGRAM = "{} cannot be run any more as the program that it was"
MODE = lazy_regex(r"(?i)chmod|executable|permission|\bmodes?\b|実行権|パーミッション")
AT_ONCE = "{} has npm run `{}` at each install ({}), and the requirements do not speak of that"
AT_INSTALL = ("preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare",
              "postprepare")  # fmt: skip
"""Scripts that npm runs without being told to."""
TOUCHED = "{} was changed, and the requirements say: {}"
TAKES_AWAY = lazy_regex(
    r"(?i)\b(?:remov|delet|drop|dead\b|unused|clean|refactor|simplif|replac|renam|mov(?:e|es|ed|ing)\b"
    r"|split|merg|rewrit|obsolete|deprecat|get rid|inlin|consolidat|reorgani[sz]|restructur"
    r"|migrat|convert|port\b|extract|no longer|strip|prun|retir|unif|dedup|duplicat|tid(?:y|ied)"
    r"|revert|modulari[sz]|rework|overhaul|vendor|bump|upgrade)"
    r"|削除|置き換|整理|改名|移動|廃止|リファクタ|統合|分割|書き直|移行"
)
"""Words of a text after whose work less may be there than before."""
IN_CODE = lazy_regex(r"`([^`\n]+)`")
NAMED_REMOVAL = lazy_regex(r"(?i)\b(?:remov|delet|drop)\w*\s+(?:(?!and\b)[\w-]+\s+){0,5}`[^`\n]+`")
"""What is to go, by its name: other code is to stay, and what used it."""
_PATH = r"(?<![\w./-])(?:[\w./-]{0,200}\w\.\w{1,20}|[\w.-]{1,100}/)"
_CHANGED = r"(?:chang|touch|modif|edit)\w*"
DOES_NOTHING = lazy_regex(r"(?i)\b(?:no-?op|nothing|disabl|turn(?:ed)? off|stub)|何もしない|無効")
NOTHINGS = frozenset(("", "pass", "return", "...", "None", "null", "undefined", "nil")) | {
    f"return {one}" for one in ("None", "null", "undefined", "nil")
}
STAYS = lazy_regex(
    rf"(?i)`?(?P<path>{_PATH})`?(?: and `?[\w./-]+`?)?"
    r"(?: must| may| should| shall| has to| have to)?"
    rf" (?:not|never) be {_CHANGED}"
    r"|\b(?:do not|don't|never|without|must not|may not|should not|not)"
    rf" {_CHANGED} (?:the |file |anything in )*`?(?P<other>{_PATH})`?"
    rf"|`?(?P<third>{_PATH})`?(?: has to| must| should)? (?:stays?|remains?)"
    r" (?:as (?:it )?is|unchanged|untouched|as it was)"
    rf"|`?(?P<ja>{_PATH})`?(?:は|を)(?:変更|編集|修正)(?:しない|してはいけない|してはならない|せず)"
)
"""Sentences by which a file is to be left as it is."""
DATA = (".json", ".toml")
HISTORY = lazy_regex(r"(?i)(?:^|/)(?:change|history|news|release)[^/]*$")
"""Pages that tell what was once."""
SPAN = lazy_regex(rb"`[^`\n]*`")
"""Code in a page, with its marks."""
SHOWN = lazy_regex(r"(?=.*[A-Za-z])[\w./:@-]{3,40}")
"""A text of code that a page may show by itself: `drop`, `/health`, `max-upload`."""
KEPT_ENDINGS = (".lock", "-lock.yaml", "-lock.json", ".snap", ".pyc", ".map", ".min.js", ".log",
                ".sum")  # fmt: skip


def collateral(trees: BothTrees, asked: str) -> str:
    """What is gone or touched against the requirements, or beside them; else "".

    Tests that followed a name say that it was meant to go. Blocks.
    """
    for hit in STAYS.finditer(asked):
        name = next(one for one in hit.groups() if one)
        for path in trees.work:
            if path == name or path.endswith(f"/{name}") or (name[-1] == "/" and name in path):
                return TOUCHED.format(path, " ".join(hit[0].split()))
    for path in trees.new.keys() & trees.old.keys() if not MODE.search(asked) else ():
        if (trees.old[path][:1], trees.new[path][:1]) == (("100755",), ("100644",)):
            return NO_PROGRAM.format(path)
    if what := _runs_by_itself(trees, asked):
        return what
    if asks_for_less(asked):
        return ""
    read_old, read = trees.read_old, trees.read
    new = {path: read(path) for path in trees.work}
    for path in (one for one in sorted(trees.product) if one not in trees.new):
        is_kept = not path.endswith(KEPT_ENDINGS) and posixpath.basename(path) not in asked
        if is_kept and not _stands_elsewhere(read_old(path) or b"", new.values()):
            return FILE_GONE.format(path)
    followed = [(read_old(path) or b"", read(path) or b"") for path in trees.tests]
    for path in trees.work:
        if (what := _lost_key(path, read_old(path), new, asked)) and _is_read(path, trees):
            return what
        if what := _lost(path, read_old(path), new, followed, asked):
            return what
    return _lost_word(trees, asked)


def _runs_by_itself(trees: BothTrees, asked: str) -> str:
    """A script that npm is to run whenever somebody installs, and that nobody asked for."""
    for path in trees.new:
        if path.rpartition("/")[2] == "package.json" and trees.new[path] != trees.old.get(path):
            was, now = (_scripts(read(path)) for read in (trees.read_old, trees.read))
            for name in AT_INSTALL:
                if now.get(name) not in (None, was.get(name)) and not re.search(alone(name), asked):
                    return AT_ONCE.format(path, now[name], name)
    return ""


def _scripts(source: bytes | None) -> dict[str, Any]:
    return table(json_of((source or b"").decode("utf-8", "replace")), "scripts")


def asks_for_less(asked: str) -> bool:
    """Whether a text has something taken away or written anew, and names no code with that."""
    return TAKES_AWAY.search(IN_CODE.sub("``", NAMED_REMOVAL.sub("", asked))) is not None


def _lost_word(trees: BothTrees, asked: str) -> str:
    """A command, a route or a setting that a page shows in code, and that no code has any more."""
    if len(trees.product) >= MOST_READ:
        return ""  # it may stand in what is not read
    pages = [one for one in trees.new if one.endswith(PAGES) and not HISTORY.search(one)]
    now = {page: SPAN.findall(trees.read(page) or b"") for page in pages[:MOST_READ]}
    spans = b"\n".join(one for each in now.values() for one in each)
    old = Files(trees.changed, trees.read_old)
    lost = {to_bytes(one) for one in old.texts if SHOWN.fullmatch(one) and one not in asked}
    lost = {one for one in lost if one in spans}
    for path in {*trees.product, *trees.work} & trees.new.keys() if lost else ():
        if not path.endswith(PAGES):
            text = without_comments(path, trees.read(path) or b"").lower()
            lost = {one for one in lost if one.lower() not in text}
    for word in sorted(lost):
        found = re.compile(to_bytes(alone(word.decode())))
        for page, shown in now.items():
            was = SPAN.findall(trees.read_old(page) or b"")
            if any(map(found.search, shown)) and any(map(found.search, was)):
                changed = (one for one in trees.changed if found.search(trees.read_old(one) or b""))
                return WORD_GONE.format(word.decode(), next(changed), page)
    return ""


def _lost(
    path: str,
    before: bytes | None,
    new: dict[str, bytes | None],
    followed: Sequence[tuple[bytes, bytes]],
    asked: str,
) -> str:
    """What is wrong with the functions of a file: one does nothing now, or one that stood for
    others to use stands nowhere."""
    language, after = language_of(path), new.get(path)
    if language is None or before is None or after is None:
        return ""
    old, now = parse(before, language), parse(after, language)
    if old is None or now is None or now.root.has_error:
        return ""
    stands = {one.name: one for one in functions_of(now)}
    for one in _own(old):
        other = stands.get(one.name)
        idle = other is not None and _does_nothing(other)
        if idle and not _does_nothing(one) and not DOES_NOTHING.search(asked):
            return IDLE.format(one.name, path)
    went = [one for one in _own(old) if one.name not in stands]
    if not went:
        return ""
    after_all = b"\n".join(text for text in new.values() if text)
    for one in went:
        name = one.last_name
        if any(_takes_route(one.name, other) for other in stands.values()):
            continue
        word = re.compile(to_bytes(rf"(?<!\w){re.escape(name)}(?!\w)"))
        if name.startswith("_") or _is_spoken_of(one, asked) or word.search(after_all):
            continue  # its own helper, spoken of, or defined elsewhere
        if any(word.search(was) and not word.search(is_now) for was, is_now in followed):
            continue
        if _used_inside(old, one, word):
            continue
        if normal(old, one.body) in {normal(now, other.body) for other in functions_of(now)}:
            continue  # it has another name
        return GONE.format(one.name, path)
    return ""


def _takes_route(name: str, other: Function) -> bool:
    """Whether a route is handed to another function now, or to the same method elsewhere: GET is no
    POST."""
    (head, _, given), (new_head, _, new_given) = (one.partition("(") for one in (name, other.name))
    same = "." not in new_head or new_head.rpartition(".")[2] == head.rpartition(".")[2]
    return bool(given) and new_given == given and same and not _does_nothing(other)


def _lost_key(path: str, before: bytes | None, new: dict[str, bytes | None], asked: str) -> str:
    """A key of a file of data that stands nowhere now: a text, a route, a setting."""
    after = new.get(path)
    if before is None or after is None or not path.endswith(DATA) or is_manifest(path):
        return ""
    try:
        gone = _keys(path, before) - _keys(path, after)
    except (ValueError, RecursionError):
        return ""
    after_all = b"\n".join(text for text in new.values() if text).decode("utf-8", "replace")
    lost = sorted(one for one in gone if one not in asked and one not in after_all)
    return KEY_GONE.format(lost[0][:100], path) if lost else ""


def _is_read(path: str, trees: BothTrees) -> bool:
    """Whether code of the product has the name of a file or of its folders in a text.

    What only tools read, such as settings of a linter, loses keys with each of their versions.
    """
    names = "|".join(map(re.escape, path.split("/")))
    word = re.compile(to_bytes(rf"[\"'`/](?:{names})[\"'`/]"))
    return any(word.search(trees.read_old(one) or b"") for one in trees.code)


def _keys(path: str, source: bytes) -> set[str]:
    todo: list[Any] = [
        tomllib.loads(source.decode()) if path.endswith(".toml") else json.loads(source)
    ]
    found: set[str] = set()
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            found |= one.keys()
            todo += one.values()
        elif isinstance(one, list):
            todo += one
    return found


def _is_spoken_of(function: Function, asked: str) -> bool:
    """Whether a text names a function, or what its head names: its class, what it belongs to."""
    source, node = function.parsed.source, function.node
    head = source[node.start_byte : function.body.start_byte].decode("utf-8", "replace")
    named = {part for text in IN_CODE.findall(asked) for part in re.findall(r"\w+", text)}
    return (
        re.search(rf"(?<!\w){re.escape(function.last_name)}(?!\w)", asked) is not None
        or not named.isdisjoint(function.name.split("."))
        or not named.isdisjoint(re.findall(r"\w+", head))
    )


def _does_nothing(function: Function) -> bool:
    text = normal(function.parsed, function.body).strip("{}; ")
    return text in NOTHINGS or emptied(function) is None


def _own(parsed: Parsed) -> list[Function]:
    """The functions of a file outside of its tests."""
    return [one for one in functions_of(parsed) if not is_in_test(parsed, one.node)]


def _used_inside(parsed: Parsed, function: Function, word: re.Pattern[bytes]) -> bool:
    """Whether a file uses a function itself: it may have served what was changed."""
    node = function.node
    rest = parsed.source[: node.start_byte] + parsed.source[node.end_byte :]
    return bool(word.search(rest))


def _stands_elsewhere(text: bytes, others: Iterable[bytes | None]) -> bool:
    """Whether most lines of a file stand in one of the others now, or it had a single one."""
    lines = {line.strip() for line in text.splitlines() if len(line.strip()) > 3}
    return len(lines) < 2 or any(
        2 * len(lines & {line.strip() for line in other.splitlines()}) >= len(lines)
        for other in others
        if other
    )


def loose_code(trees: BothTrees, asked: str) -> str:
    """What is wrong with work that consists of new code which stands beside everything; else "".

    Nothing is wrong where any old code was changed, where code of the work runs when its file is
    loaded, where something else names or uses it, or where the text speaks of nothing that was
    there. Blocks.

    "A cart above 100 euros gets 10 percent off" is not met by a function beside the cart, however
    well that is tested.
    """
    if not all(one.isascii() for one in asked if one.isalpha()):
        return ""  # code has English words: another language cannot be compared with it
    read_old, read = trees.read_old, trees.read
    code = [path for path in trees.work if not path.endswith(TEXTS)]
    added: list[tuple[str, str]] = []
    stood: set[str] = set()
    for path in code:
        before, after, language = read_old(path), read(path), language_of(path)
        new = parse(after, language) if after is not None and language else None
        old = parse(before, language) if before is not None and language else None
        if new is None or (before is not None and old is None):
            return ""
        if before is None:
            # What a new file does when it is loaded may hang it in somewhere.
            loads = any("expression" in one.type or "if_" in one.type for one in _beside(new))
            names = _names(new)
            names = [*names, re.split(r"[./]", path.removesuffix(".py"))[-1]] if names else []
        else:
            assert old is not None
            names, loads = _names_added(old, new), _differs_beside(old, new)
            stood |= {part for one in functions_of(old) for part in one.name.split(".")}
        if loads or not names:
            return ""
        added += [(name, path) for name in names]
    if not added:
        return ""
    texts = [read(path) or b"" for path in code]
    for path in [one for one in trees.product if one not in trees.work][:MOST_READ]:
        text, language = read(path), language_of(path)
        if text is None:
            continue
        texts.append(text)
        parsed = parse(text, language) if language else None
        stood |= set(_names(parsed)) if parsed is not None else set()
    spoken = [name for name in sorted(stood) if len(name) > 2 and _is_asked_for(name, asked)]
    if not spoken:
        return ""
    known = {word for name in stood for word in _words(name)}
    for name, _ in added:
        own = [word for word in _words(name) if not has_any([word], known)]
        if has_any(own, _words(asked)) or _is_asked_for(name, asked):
            return ""
    names = [name for name, _ in added]
    for name in names:
        word = re.compile(to_bytes(rf"(?<!\w){re.escape(name)}(?!\w)"))
        if sum(len(word.findall(text)) for text in texts) > 1:
            return ""  # something of the product names it beside its own head
    return LOOSE.format(*added[0], ", ".join(spoken[:3]))


def _names(parsed: Parsed) -> list[str]:
    """The names of a file's functions and classes, without what surrounds them."""
    found = {part for one in functions_of(parsed) for part in one.name.split(".")[:1]}
    return sorted(name for name in found if re.fullmatch(r"\w+", name))


def _names_added(old: Parsed, new: Parsed) -> list[str]:
    """The outermost names of functions that are new, none where an old function was changed."""
    before = {one.name for one in functions_of(old)}
    changed = altered(old, new)
    after = {one.name for one in functions_of(new)}
    if any(one.name in before for one in changed) or not before <= after:
        return []
    if any(one.name.split(".")[0] in {name.split(".")[0] for name in before} for one in changed):
        return []  # a method of a class that stood
    return sorted({one.name.split(".")[0] for one in changed})


def _differs_beside(old: Parsed, new: Parsed) -> bool:
    """Whether statements beside functions and imports differ."""
    before, after = ([" ".join(p.text(one).split()) for one in _beside(p)] for p in (old, new))
    return before != after


def _beside(parsed: Parsed) -> list[Node]:
    """The top-level statements that are no functions, classes, imports or comments."""
    kinds = ("function", "class", "import", "method", "package", "decorated", "func", "impl")
    return [
        one
        for one in parsed.root.named_children
        if not is_comment(one)
        and not any(kind in one.type for kind in kinds)
        and not is_in_test(parsed, one)
        and not (one.type == "expression_statement" and "string" in one.named_children[0].type)
    ]


def _is_asked_for(name: str, asked: str) -> bool:
    return bool(re.search(rf"(?i)(?<![^\W_]){re.escape(name)}s?(?![^\W_])", asked))


def _words(text: str) -> list[str]:
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).replace("_", " ")
    return [one.casefold() for one in re.findall(r"[^\W\d_]{3,}", parts)]
