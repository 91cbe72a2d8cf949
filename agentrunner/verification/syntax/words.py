"""Find the names of code in a sentence that a person wrote."""

from __future__ import annotations

import keyword
import mimetypes
import re
from http import HTTPStatus

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.text.sentences import sentences, with_gaps
from agentrunner.verification.syntax.languages import language_of

_PLAIN_NAME = r"[A-Za-z_]\w*"
_EXCEPTION = rf"`?(?P<name>(?:{_PLAIN_NAME}(?:\.|::))*[A-Z]\w*(?:Error|Exception|Warning))`?"
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
    rf"`(?P<name>{_PLAIN_NAME}(?:(?:\.|::|/)@?{_PLAIN_NAME})*)(?:\(\))?`"
)
_ROUTE = lazy_regex(
    r"(?i:\b(?:from|to|at|via|calls?|asks?|fetch(?:es)?|GET|POST|PUT|PATCH|DELETE)) (?:the )?"
    r"`(?:[A-Z]+ )?(?P<name>/[a-z][\w-]*(?:/[a-z][\w-]*)*)[^`]*`"
)
_SERVICE = lazy_regex(
    r"(?i:\b(?:from|to|at|via|through|calls?|asks?|fetch(?:es)?|gets?|posts?|GET|POST|PUT|DELETE))"
    r" (?:the )?`?https?://(?P<name>[\w-]+(?:\.[\w-]+)+)"
)
_NUMBER = lazy_regex(
    r"(?i)\bdefaults? (?:value )?(?:to|is|of) `?(?P<name>\d{2,3})\b`?(?![.,]\d)(?! ?[a-z%])"
    r"|\b(?:at most|no more than|up to|longer than|(?:cuts?|cut off|limit(?:s|ed)?|truncated?)"
    r" (?:\w+ )?(?:at|after|to)) (?P<other>\d{2,3}) (?:characters?|items?|rows?|lines?|entries)\b"
)
"""A default or a bound that no unit turns into another number."""
_TEXT = lazy_regex(
    r"(?i:\b(?:says?|prints?|shows?|displays?|answers?|reports?|the (?:message|text|title|label))) "
    r"\"(?P<name>[A-Za-z][a-z]*(?:[ ,]+[a-z]+)+[.!?]?)\""
)
"""A text of several words and nothing else; the longest of them has to stand in the code."""
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
_SHORT_TICKED = lazy_regex(r"`([^`\n]{1,40})`")
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

# In Japanese text names are not set apart by spaces, so `\b` and `\w` would not do.
_BEFORE = r"(?<![A-Za-z0-9_@/\\:.$-])"
_AFTER = r"(?![A-Za-z0-9_@/\\])"
_NAME = r"[A-Za-z_$][A-Za-z0-9_$]*"
_PATH = rf"{_NAME}(?:(?:\.|::|#){_NAME})*"
_TICKED = lazy_regex(r"(?<!`)`+([^`\n]+)`+")
_CALLED = lazy_regex(rf"{_BEFORE}({_PATH})\((?=[^()\n]*\))")
_DOTTED = lazy_regex(rf"{_BEFORE}({_NAME}(?:(?:\.|::){_NAME})+){_AFTER}")
_SINGLE = lazy_regex(rf"{_BEFORE}({_NAME}){_AFTER}")
_SIGNATURE = lazy_regex(
    rf"(?:({_PATH})(?:\.|::|#))?({_NAME})\(([^()]*)\)(?: *(?:->|:|=>)? *[\w.\[\]<>*&|, ?]*)?"
)
_PARAMETER = lazy_regex(r"[&*.]*[A-Za-z_]\w*\??(?:[ :]+[&*]*[A-Za-z_][\w.\[\]<>&*:| ]*)?(?: ?=.*)?")
_OPTION = lazy_regex(
    r"(?:-\w(?:,| |\|)? ?)?--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?:[ =][\w<>\[\]./]+)?"
)
_KIND = (
    r"(?:headers?|attributes?|keys?|fields?|propert(?:y|ies)|columns?|cookies?|elements?"
    r"|events?|parameters?)\b|属性|ヘッダ|キー|フィールド|列|プロパティ|パラメータ"
)
_WANTED = lazy_regex(
    rf"`([A-Za-z][\w-]*)`[- ]?(?:という)?(?:{_KIND})"
    rf"|\b(?:{_KIND})(?: (?:named|called))? `([A-Za-z][\w-]*)`"
    r"|\ban? `([A-Za-z]\w*(?:-\w+)+)`"
    r"|\b(?:gets?|has|have|sets?|adds?|carr(?:y|ies)|gains?|needs?|and|with)"
    r" `([A-Za-z][\w-]*)=[\"'][^`]*`",
    re.IGNORECASE,
)
"""A name in back quotes, with the word for what it names, or with the value that it gets."""
_SILENT = lazy_regex(
    r"(?i)\b(?:remov|delet|drop|obsolete|renam|replac)|\b(?:instead of|no longer|without|not|never"
    r"|e\.g\.|for (?:example|instance)|such as|like|unknown|any|other|some|if|when|where)\b|n't\b"
    r"|削除|廃止|例えば|など|ない|場合|のような"
)
"""Sentences that name what shall go, or what somebody may hand over."""
_KEYWORDS = (
    frozenset(keyword.kwlist)
    | frozenset(keyword.softkwlist)
    | {word.lower() for word in keyword.kwlist}
    | {"null", "undefined", "nil", "this", "self", "void"}
)
_TEXTS = frozenset("md rst toml yaml yml ini cfg conf lock env log sql tf proto gradle kt".split())
"""File endings that the table of media types lacks."""
_TYPES = mimetypes.MimeTypes(filenames=())


def identifiers(text: str) -> set[str]:
    """Return the names of code in a sentence, each part of a dotted name by itself.

    A name is: what stands in back quotes as a single name, what is called (`total()`), what is
    dotted (`Cart.total`), or what is spelled as no plain word is: `snake_case`, `camelCase`,
    `MAX_ITEMS`. File names, addresses, options, versions and keywords are left out.
    """
    found: set[str] = set()
    text = re.sub(r"(?i)\b[a-z][a-z0-9+.-]*://[^\s`\"'<>)]*", " ", text)
    for ticked in _TICKED.findall(text):
        whole = re.fullmatch(rf"[@.#]?({_PATH})(?:\(.*\))?;?", ticked.strip())
        if whole and not _is_file(whole.group(1)):
            found.update(_parts(whole.group(1)))
        else:
            found.update(_plain(ticked))
    found.update(_plain(_TICKED.sub(" ", text)))
    return {name for name in found if name.lower() not in _KEYWORDS and len(name) > 1}


_VALUE = lazy_regex(r"\"[^\"\n]*\"|'[^'\n]*'|-?\d+(?:\.\d+)?")
_EXAMPLE = lazy_regex(
    r"(?<![\w.])(?P<name>[A-Za-z_]\w*)\((?P<of>[^()\n]+)\)`?\s*"
    r"(?:(?:is|are|gives|returns|yields|becomes|equals|prints|must\s+(?:be|return|give)|(?:has\s+to|should)\s+(?:be|return|give))\b|==?|->|=>|→)"
    r"\s*(?:`?(?P<value>\"[^\"\n]+\"|'[^'\n]+'|-?\d+(?:\.\d+)?)(?![\w%])(?!\.\d)"
    r"|`(?P<bare>[^`\n]+)`)"
)
_COMMAND_LINE = lazy_regex(r"`[\w./-]+(?: [^\s`]+)+`")
"""Several words in back quotes, as what somebody types."""
_BARE_SIGNATURE = lazy_regex(
    r"(?<![\w.`])[A-Za-z_]\w*\((?!e?s\))[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*\)"
)
"""A function with its parameters in plain text; `item(s)` is none."""


def signatures(text: str, *, bare: bool = False) -> dict[str, str]:
    """Names of functions that a text writes in back quotes with their parameters; and how.

    With `bare` also those without back quotes.
    `percent(n)` and `cart.Discount(cents, percent int) int` are signatures. What is called with
    values or with nothing may be anybody's: `exit()`, `slug("A b")`.
    """
    found: dict[str, str] = {}
    plain = [hit[0] for hit in _BARE_SIGNATURE.finditer(_TICKED.sub(" ", text))]
    for ticked in [*_TICKED.findall(text), *(plain if bare else [])]:
        hit = _SIGNATURE.fullmatch(ticked.strip())
        if hit is None or hit[2].lower() in _KEYWORDS:
            continue
        given = [one.strip() for one in hit[3].split(",")]
        names = [one for one in given if _PARAMETER.fullmatch(one)]
        if names and len(names) == len(given) and not any(one in _KEYWORDS for one in given):
            found.setdefault(hit[2], ticked.strip())
    return found


def examples(text: str, *, bare: bool = False) -> list[tuple[str, str]]:
    """Calls with values that a text states with what they give, and that: `("f(2)", "4")`.

    With `bare` also what stands in back quotes without other ones.
    """
    found = []
    for hit in _EXAMPLE.finditer(text):
        given = [
            one.strip()
            for one in re.split(r",(?=(?:[^\"']*[\"'][^\"']*[\"'])*[^\"']*$)", hit["of"])
        ]
        value = hit["value"] or (hit["bare"] if bare else None)
        if value and all(_VALUE.fullmatch(one) for one in given):
            found.append((f"{hit['name']}({hit['of']})", value))
    return found


def without_examples(text: str) -> str:
    """Return a text without examples: what calls are handed and give, and numbers of commands.

    So `seconds("45s")` loses what stands in its brackets, and `sh fib.sh 10` its number; other
    words of a command may be its choices.
    """
    text = _EXAMPLE.sub(lambda hit: hit["name"], text)
    text = _COMMAND_LINE.sub(lambda hit: re.sub(r" -?\d[\d.]*(?=[ `])", "", hit[0]), text)
    return re.sub(r"(?<=\w)\([^()\n]*\)", "", text)


def options(text: str) -> dict[str, str]:
    """Names of options that a text writes alone in back quotes, without dashes; and how."""
    hits = [(_OPTION.fullmatch(one.strip()), one.strip()) for one in _TICKED.findall(text)]
    return {hit[1]: one for hit, one in hits if hit is not None}


def things(text: str) -> dict[str, str]:
    """Names in back quotes that a text calls an attribute, a header, a key or the like; and how.

    Hyphenated names after "a" or "an" are among them, and attributes that get a value. Sentences
    that take something away, give an example or a condition are left out.
    """
    found: dict[str, str] = {}
    for sentence in sentences(text):
        if not _SILENT.search(sentence):
            for hit in _WANTED.findall(sentence):
                found |= {name: name for name in hit if len(name) > 1}
    return found


def _plain(text: str) -> set[str]:
    """Return the names in a text without back quotes."""
    found: set[str] = set()
    for path in _CALLED.findall(text):
        found.update(_parts(path))
    for path in _DOTTED.findall(text):
        parts = _parts(path)
        if not _is_file(path) and all(len(part) > 1 for part in parts):
            found.update(parts)
    for name in _SINGLE.findall(text):
        if _is_spelt_as_code(name):
            found.add(name)
    return found


def _parts(path: str) -> list[str]:
    return [part for part in re.split(r"\.|::|#", path) if part]


def _is_file(name: str) -> bool:
    """Whether a dotted name is a file name, judging by its ending."""
    ending = name.rpartition(".")[2].lower()
    if "::" in name or "." not in name:
        return False
    return ending in _TEXTS or bool(language_of(name) or _TYPES.guess_type(f"x.{ending}")[0])


def _is_spelt_as_code(name: str) -> bool:
    """Whether a name has an inner underscore, or a capital after small letters, unlike plain words.

    `CamelCase` alone does not count: it can be the name of a product ("GitHub").
    """
    bare = name.strip("_$")
    if "_" in bare:
        return True
    return bool(re.match(r"[a-z]{2}[a-z0-9]*(?:[A-Z][a-z0-9]|[A-Z]{3})", bare))


def _is_report(sentence: str) -> bool:
    """Whether a sentence says how things are, or takes something away, and wishes for nothing."""
    happens_now = _NOW.search(sentence) and not _MODAL.search(sentence)
    return bool(_FAULT.search(_TICKED.sub("``", sentence)) or happens_now)


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

    An exception that is to be raised, a variable of the environment, a file that is written, a
    function or a library that is to be used, a service that is to be asked. A report of what goes
    wrong names such things, too, and so does an example: sentences of these kinds ask for nothing.
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
        for pattern in (_RAISED, _VARIABLE, _FILE, _USED, _ROUTE, _SERVICE, _NUMBER, _TEXT):
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
        for row, within in ((_ROW, _QUOTED), (_TICKED_ROW, _SHORT_TICKED))
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
    if pattern is _TEXT:
        return max(whole.split(), key=len).strip(",.!?")
    return re.split(r"\.|::|/", whole)[-1]
