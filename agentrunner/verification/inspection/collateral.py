"""What the work takes away or touches that nobody asked it to: code, files, what was to be left.

A worker that writes a file anew may lose what no test asks for. Code that only served what the work
changed may go with it, and what stands elsewhere now is not gone.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inspection.both_trees import BothTrees
from agentrunner.verification.syntax.emptied_functions import emptied
from agentrunner.verification.syntax.functions import Function, functions_of, normal
from agentrunner.verification.syntax.languages import Parsed, language_of, parse
from agentrunner.verification.syntax.regions import is_in_test

GONE = "`{}` of {} is gone, and the requirements do not speak of that"
IDLE = "`{}` of {} does nothing any more, and the requirements do not speak of that"
FILE_GONE = "{} is gone, and the requirements do not speak of that"
TOUCHED = "{} was changed, and the requirements say: {}"
TAKES_AWAY = lazy_regex(
    r"(?i)\b(?:remov|delet|drop|dead\b|unused|clean|refactor|simplif|replac|renam|mov(?:e|es|ed|ing)\b"
    r"|split|merg|rewrit|obsolete|deprecat|get rid|inlin|consolidat|reorgani[sz]|restructur"
    r"|migrat|convert|port\b|extract|no longer|strip|prun|retir|unif|dedup|duplicat|tid(?:y|ied)"
    r"|revert|modulari[sz]|rework|overhaul|vendor|bump|upgrade)"
    r"|削除|置き換|整理|改名|移動|廃止|リファクタ|統合|分割|書き直|移行"
)
"""Words of a text after whose work less may be there than before."""
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
KEPT_ENDINGS = (".lock", ".snap", ".pyc", ".map", ".min.js", ".log", ".sum")


def collateral(trees: BothTrees, asked: str) -> str:
    """What is gone or touched against the requirements, or beside them; else "".

    Tests that followed a name say that it was meant to go. Blocks.
    """
    for hit in STAYS.finditer(asked):
        name = next(one for one in hit.groups() if one)
        for path in trees.work:
            if path == name or path.endswith(f"/{name}") or (name[-1] == "/" and name in path):
                return TOUCHED.format(path, " ".join(hit[0].split()))
    if TAKES_AWAY.search(asked):
        return ""
    read_old, read = trees.read_old, trees.read
    new = {path: read(path) for path in trees.work}
    for path in (one for one in sorted(trees.product) if one not in trees.new):
        is_kept = not path.endswith(KEPT_ENDINGS) and posixpath.basename(path) not in asked
        if is_kept and not _stands_elsewhere(read_old(path) or b"", new.values()):
            return FILE_GONE.format(path)
    followed = [(read_old(path) or b"", read(path) or b"") for path in trees.tests]
    for path in trees.work:
        if what := _lost(path, read_old(path), new, followed, asked):
            return what
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
        word = re.compile(to_bytes(rf"(?<!\w){re.escape(name)}(?!\w)"))
        spoken_of = re.search(word.pattern.decode(), asked)
        if name.startswith("_") or spoken_of or word.search(after_all):
            continue  # its own helper, spoken of, or defined elsewhere
        if any(word.search(was) and not word.search(is_now) for was, is_now in followed):
            continue
        if _used_inside(old, one, word):
            continue
        if normal(old, one.body) in {normal(now, other.body) for other in functions_of(now)}:
            continue  # it has another name
        return GONE.format(one.name, path)
    return ""


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
