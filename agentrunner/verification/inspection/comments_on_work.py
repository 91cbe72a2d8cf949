"""What the comments of the work say of it: nothing else was changed, or it is not done. Pure."""

from __future__ import annotations

import re

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import content_words
from agentrunner.verification.inspection.both_trees import BothTrees
from agentrunner.verification.subject_words import has_any
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.stand_ins import unwritten_branches
from agentrunner.verification.syntax.tokens import added_comments

MOST_FILES = 200
ONLY_COMMENTS = (
    "{} differs from what it was in comments and layout alone, which the requirements do not ask"
    " for: the program does what it did"
)
ABOUT_TEXT = lazy_regex(
    r"(?i)\b(?:comment|(?:java|go|rust)?doc(?:s|string|ument\w*)?\b|mention|notes?\b|typo|spell"
    r"|wording|word(?:s|ed)\b|rephras|licen[cs]e|header|copyright|format|style|white ?space|blank"
    r"|indent|layout|lint|sort|order of|tidy"
    r"|(?:remov|delet|drop|strip)\w*\s+(?:\w+\s+){0,4}?(?:todo|fixme)|translat|annotat)"
    r"|コメント|誤字|書式|ライセンス|ヘッダ|整形|空白|インデント|ドキュメント|翻訳|体裁"
)
"""Words that ask for what stands beside the code."""
UNFINISHED = lazy_regex(
    r"(?i)^\W*(?:placeholder|stub|dummy|fake|mock|temporary|temp)\W*$"
    r"|\b(?:not (?:yet )?implemented|unimplemented|not (?:yet )?(?:supported|handled|done) yet"
    r"|not yet (?:supported|handled|done)|(?:placeholder|stub|dummy|fake|mock)"
    r" (?:implementation|response|result|data|values?\b|for now|until)|(?:a|just|only a|as) stub\b"
    r"|simulat(?:e|ed|es|ing)\b|pretend\w*|hard-?coded (?:for now|until)"
    r"|(?:return|use|keep|do|just|enough|this|works?|ok|good)\b[^.\n]{0,40} for now\b"
    r"|in (?:a |the )?(?:real|full|actual)(?: |-)(?:implementation|world|app\w*|system|service"
    r"|version|code|life|project)|in production,? (?:this|we|you|it)\b"
    r"|(?:comes?|follows?|added|done|handled|supported|implemented) later\b"
    r"|(?:would|should) (?:be )?(?:normally|really|actually) \w+)"
    r"|未実装|仮実装|仮の(?:値|データ|実装)|スタブ|ダミー|(?:あと|後)で実装"
)
"""What a comment says of code that stands for other code."""
LATER = lazy_regex(r"\b(?:TODO|FIXME|XXX|TBD)\b(?:\(\w+\))?[-:\s]*(?P<what>[^.\n]*)")
NOT_YET = lazy_regex(
    r"(?i)implement(?:ed|ation)?error|not (?:yet |be )?(?:implement|support)|unsupported|todo!"
)
SAYS = "{}:{} says `{}`: the work itself calls what was asked for not done"


def only_comments(trees: BothTrees, asked: str) -> str:
    """What is wrong with work that changed comments alone; else "".

    Nothing is where the text of what was asked for speaks of wording or layout.
    """
    paths = trees.work
    return "" if not paths or ABOUT_TEXT.search(asked) else ONLY_COMMENTS.format(paths[0])


def unfinished(trees: BothTrees, asked: str) -> str:
    """A new comment by which what was asked for is not done yet, with its place; else "".

    It says that the code stands for other code, or puts off something that was asked for. What
    the requirements say themselves (a dummy, a simulation) is the work. Blocks.
    """
    words = content_words(asked)
    for path in trees.work[:MOST_FILES]:
        after = trees.read(path) or b""
        for start, raw in added_comments(path, trees.read_old(path) or b"", after):
            text = " ".join(raw.encode("latin-1").decode("utf-8", "replace").split())
            line = after.count(b"\n", 0, start) + 1
            hit = UNFINISHED.search(text)
            put_off = LATER.search(text)
            called = hit is not None and not _is_asked(hit[0], asked)
            if called or (put_off is not None and _is_of(put_off["what"], words)):
                return SAYS.format(path, line, text[:80])
    return ""


def unwritten(trees: BothTrees, asked: str) -> str:
    """What code of the work says by the language's own word to be unwritten, for what was asked;
    else "". Blocks."""
    for path in trees.work[:MOST_FILES]:
        after, language = trees.read(path), language_of(path)
        if after is None or language is None:
            continue
        for node, about in unwritten_branches(trees.read_old(path) or b"", after, language):
            text = (node.text or b"").decode("utf-8", "replace")
            if content_words(about) & content_words(asked) and not NOT_YET.search(asked):
                return SAYS.format(path, node.start_point.row + 1, text[:80])
    return ""


def _is_asked(phrase: str, asked: str) -> bool:
    words = re.findall(r"[^\W_]{4,}", phrase.casefold())
    return any(word[:6] in asked.casefold() for word in words)


def _is_of(text: str, words: set[str]) -> bool:
    """Whether at least half of what a text speaks of was asked for."""
    spoken = content_words(text)
    return bool(spoken) and 2 * sum(has_any([one], words) for one in spoken) >= len(spoken)
