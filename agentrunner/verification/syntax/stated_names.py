"""Names that a sentence wants to have in the code, whatever they are names of. Pure.

An exception that is to be raised, a variable of the environment, a file that is written, a function
or a library that is to be used, a service that is to be asked. A report of what goes wrong names
such things, too, and so does an example: sentences of these kinds ask for nothing.
"""

from __future__ import annotations

import re
from http import HTTPStatus

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.text.sentences import sentences, with_gaps

_NAME = r"[A-Za-z_]\w*"
_EXCEPTION = rf"`?(?P<name>(?:{_NAME}(?:\.|::))*[A-Z]\w*(?:Error|Exception|Warning))`?"
_RAISED = lazy_regex(
    rf"(?i:\b(?:refuse[ds]?|reject(?:s|ed)?|ends?|answered|answers)(?: \w+)? (?:with|by) (?:an? )?"
    rf"|\b(?:is|are|means?|gives?|gets?|becomes?) (?:an? |the )"
    rf"|\b(?:must|should|shall|has to|have to|raises?|throws?|emits?|issues?)(?: \w+)?(?: with)?"
    rf"(?: (?:raise|throw|be))? (?:an? |the )?){_EXCEPTION}"
)
_CAPITALS = r"(?<![A-Z0-9_])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
_VARIABLE = lazy_regex(
    r"(?i:\b(?:variables?|settings?|constants?|env(?:ironment)?|keys?)(?: (?:named|called|of|is))?)"
    rf" `?\$?(?P<name>{_CAPITALS})`?"
    rf"|`?\$?(?P<other>{_CAPITALS})`?(?i: (?:\w+ )?(?:variables?|settings?|env\w*))"
)
_ENDINGS = (
    "json|yaml|yml|toml|ini|cfg|conf|csv|tsv|xml|html|md|txt|sql|db|sqlite|log|env|lock|service|pdf"
)
_FILE = lazy_regex(
    r"(?i:\b(?:in|into|to|from|as|writes?|reads?|creates?|adds?|an?|saves?|loads?|called|named))"
    rf" (?:the |a |an )?(?:file )?`(?P<name>[\w./-]*\w\.(?:{_ENDINGS}))`"
)
_USED = lazy_regex(
    rf"(?i:\b(?:us(?:e|es|ing|ed)|through|by means of|based on|calls?)) (?i:the |an? )?"
    rf"`(?P<name>{_NAME}(?:(?:\.|::|/)@?{_NAME})*)(?:\(\))?`"
)
_ROUTE = lazy_regex(
    r"(?i:\b(?:from|to|at|via|calls?|asks?|fetch(?:es)?|GET|POST|PUT|PATCH|DELETE)) (?:the )?"
    r"`(?:[A-Z]+ )?(?P<name>/[a-z][\w-]*(?:/[a-z][\w-]*)*)[^`]*`"
)
_SERVICE = lazy_regex(
    r"(?i:\b(?:from|to|at|via|through|calls?|asks?|fetch(?:es)?|gets?|posts?|GET|POST|PUT|DELETE))"
    r" (?:the )?`?https?://(?P<name>[\w-]+(?:\.[\w-]+)+)"
)
_OF_HTTP = lazy_regex(
    r"\b(?:GET|POST|PUT|PATCH|DELETE|HTTP)\b|(?i:\b(?:status|endpoint|route|request)\b)|`/\w"
)
_STATUS = lazy_regex(
    r"(?i:\b(?:answer(?:s|ed)?|respon(?:ds?|se)|returns?|status|code|gives?|gets?|with|http))"
    r"(?: (?:an?|the|with|by|of|code|status|is)){0,3} `?(?P<name>[1-5]\d\d)`?(?![\w%]|[.,]\d)"
)
_NO_STATUS = lazy_regex(
    r"(?i)\b(?:not|never|no longer|instead of|rather than|currently|at the moment|today|wrong\w*"
    r"|bugs?|crash\w*|fail(?:s|ed|ing)?|without|e\.g\.|for example|for instance|such as|like|see)\b"
    r"|n't\b"
)
"""Before an answer of HTTP: it is what is wrong, or an example."""
BEFORE = 60
"""So many characters before a name are read for that."""
LEAST = 3
"""So many texts in quotes are a list."""
_QUOTED = lazy_regex(r"\"([^\"\n]{2,60})\"")
_ROW = lazy_regex(r"\"[^\"\n]{2,60}\"(?:,? (?:and |or )?\"[^\"\n]{2,60}\"){2,}")
_TICKED_ROW = lazy_regex(r"`[^`\n]{1,40}`(?:,? (?:and |or )?`[^`\n]{1,40}`){2,}")
_TICKED = lazy_regex(r"`([^`\n]{1,40})`")
_SUBJECT = lazy_regex(r"(?i:the (?:\w+ )?)?`([A-Za-z_]\w{2,})(?:\(\))?`(?! (?:or|and) )")
_NUMBERED = lazy_regex(r"\s*[-*+] (?:\[.\] )?`?(\d{3,})(?![\w.])")
"""A point of a list that begins with a number of several digits, such as an answer of HTTP."""
_POINT = lazy_regex(r"\s*(?:[-*+]|\d+[.)]) ")
_FAULT = lazy_regex(
    r"(?i)\b(?:fails?|failed|failing|crash\w*|dies|died|breaks?|broken|currently|at the moment"
    r"|right now|today|wrong\w*|bug|traceback|report(?:s|ed)?|stack|see|cf|described|documented"
    r"|remov\w+|delet\w+|drop\w*|obsolete|renam\w+|replac\w+|instead of|rather than|no longer"
    r"|without|never|not|e\.g\.|for example|for instance|such as|like|any|other|some)\b|n't\b"
)
_NOW = lazy_regex(r"(?i)\b(?:now|as of now)\b|今は|いまは|現在|現状")
_MODAL = lazy_regex(r"(?i)\b(?:must|should|shall|has to|have to|needs? to|please|wants?)\b")
"""Without one of these, what happens "now" is what is wrong."""
_RAISES = lazy_regex(r"(?i)\b(?:raises|throws|gives|gets|panics|dies)\b")
_MENDS = lazy_regex(
    r"(?i)\b(?:instead|expected|but|should|must|has to|have to|fix(?:es|ed)?"
    r"|return (?:none|null|nil|0|an? empty))\b|べき|すること|してください"
)
"""What follows on a report of what goes wrong."""
_BROKEN = lazy_regex(r"(?i)\b(?:bug|crash\w*|broken|wrong\w*|fix(?:es|ed)?|fail\w*)\b|不具合|バグ")
_UNWANTED = lazy_regex(
    r"(?i)\b(?:not wanted|unwanted|out of scope|non-?goals?|instead of|rather than|no such|unlike"
    r"|can't|cannot|can not|don't|do not|won't|mustn't|must not use|as in|as with|like in)\b"
    r"|不要|対象外|ではなく|使わない"
)
_HEADING = lazy_regex(r"(?m)^(#{1,6})[ \t]+(.*)$")


def _is_report(sentence: str) -> bool:
    """Whether a sentence says how things are, or takes something away, and wishes for nothing."""
    happens_now = _NOW.search(sentence) and not _MODAL.search(sentence)
    return bool(_FAULT.search(sentence) or happens_now)


def _wishes(text: str) -> list[str]:
    """The sentences of a text that wish for something.

    "`load('')` raises an IndexError. Return None instead." wishes for no IndexError: what is raised
    without a "must" is what goes wrong, where the text before or after says that something does.
    """
    found, all_ = [], sentences(text, semicolons=True)
    for before, sentence, after in zip(["", *all_], all_, [*all_[1:], ""], strict=False):
        hit = _RAISES.search(sentence)
        plain = hit is not None and not _MODAL.search(sentence[: hit.start()])
        rest = f"{sentence[hit.end() :]} {after}" if hit is not None else ""
        goes_wrong = plain and (_MENDS.search(rest) or _BROKEN.search(before))
        if not (goes_wrong or _is_report(sentence)):
            found.append(sentence)
    return found


def without_unwanted(text: str) -> str:
    """The sentences of a text that may ask for what they name, and its other sections.

    Left out is what is not wanted: "Out of scope: a `--force` option".
    """
    kept, level = [], 0
    for part in re.split(r"(?m)^(?=#{1,6}[ \t])", text):
        head = _HEADING.match(part)
        if head is not None and level and len(head[1]) > level:
            continue
        level = len(head[1]) if head is not None and _UNWANTED.search(head[2]) else 0
        if not level:
            kept += [one for one in with_gaps(part) if not _UNWANTED.search(one)]
    return "".join(kept)


def stated_names(text: str) -> dict[str, str]:
    """What has to stand in the code as a text states, as patterns, and how the text writes it.

    Of a dotted name it is the last part, of an address its host; an answer of HTTP may stand by its
    name. Where a list of texts in quotes is wanted, each of them.
    """
    found: dict[str, str] = {}
    of_http = _OF_HTTP.search(text) is not None
    for sentence in _wishes(text):
        for pattern in (_RAISED, _VARIABLE, _FILE, _USED, _ROUTE, _SERVICE):
            for hit in pattern.finditer(sentence):
                groups = hit.groupdict()
                whole = groups["name"] or groups.get("other", "")
                found.setdefault(alone(_needle(whole, pattern), joined=""), whole)
    for sentence in sentences(text, semicolons=True) if of_http else ():
        if _NOW.search(sentence) and not _MODAL.search(sentence):
            continue
        for hit in _STATUS.finditer(sentence):
            if not _NO_STATUS.search(sentence[max(hit.start() - BEFORE, 0) : hit.end()]):
                found.setdefault(_of_status(int(hit["name"])), hit["name"])
    return found


def names_of_criterion(text: str) -> list[str]:
    """The names in back quotes with which a criterion begins: "`gross` of 100 is 119"."""
    hits = [_SUBJECT.match(sentence.strip()) for sentence in _wishes(text)]
    return list(dict.fromkeys(hit[1] for hit in hits if hit is not None))


def quoted_lists(text: str) -> list[list[str]]:
    """Lists of at least three texts that a text enumerates, in a row or as points.

    They stand in quotes or back quotes; a point may begin with a number instead.
    """
    rows = [
        within.findall(hit[0])
        for sentence in _wishes(text)
        for row, within in ((_ROW, _QUOTED), (_TICKED_ROW, _TICKED))
        for hit in row.finditer(sentence)
    ]
    points: list[list[str]] = [[]]
    for line in text.splitlines():
        numbered = _NUMBERED.match(line)
        quoted = _QUOTED.findall(line) if _POINT.match(line) else []
        quoted = [numbered[1]] if numbered else quoted
        if len(quoted) == 1:
            points[-1] += quoted
        elif line.strip():
            points.append([])
    return [row for row in [*rows, *points] if len(row) >= LEAST]


def _of_status(number: int) -> str:
    try:
        words = re.findall(r"[A-Za-z]+", HTTPStatus(number).phrase)
    except ValueError:
        return rf"(?<!\d){number}(?!\d)"
    return rf"(?<!\d){number}(?!\d)|(?i:{'[_ -]?'.join(words)})"


def _needle(whole: str, pattern: re.Pattern[str]) -> str:
    if pattern is _FILE:
        return whole.rpartition("/")[2]
    if pattern in (_SERVICE, _ROUTE):
        return whole.strip("/")
    return re.split(r"\.|::|/", whole)[-1]
