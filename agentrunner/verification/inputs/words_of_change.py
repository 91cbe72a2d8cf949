"""Words by which a PRD orders a change, denies one, or speaks of another. English and Japanese."""

from __future__ import annotations

import re

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.shell import ALSO_LOOK, COMPARES, LOOKS, PASSES_ON, steps_of

CHECK = lazy_regex(
    r"(?:\(|(?<!\s))\s*(?:check|確認|チェック)\s*[:：]\s*`(?P<command>[^`\n]*)`", re.IGNORECASE
)
ABSENT = lazy_regex(
    r"(?:\btest\s+!|\[\s+!|!\s+test|!\s+\[)\s+-[aefd]\s+(?:\./)?[\"']?([\w@+./*~-]+)", re.ASCII
)
"""A check that wants a path to be gone."""
MOST = 200_000

CHANGES = r"""renam(?:e|es|ed|ing)|mov(?:e|es|ed|ing)|delet(?:e|es|ed|ing)|remov(?:e|es|ed|ing)
|drop(?:s|ped|ping)?|updat(?:e|es|ed|ing)|chang(?:e|es|ed|ing)|edit(?:s|ed|ing)?
|rewrit(?:e|es|ten|ing)|replac(?:e|es|ed|ing)|port(?:s|ed|ing)?|convert(?:s|ed|ing)?
|migrat(?:e|es|ed|ing)|regenerat(?:e|es|ed|ing)|refresh(?:es|ed|ing)?|extend(?:s|ed|ing)?
|split(?:s|ting)?|merg(?:e|es|ed|ing)|adapt(?:s|ed|ing)?|adjust(?:s|ed|ing)?
|modif(?:y|ies|ied|ying)|amend(?:s|ed|ing)?|revis(?:e|es|ed|ing)|get(?:s|ting)? rid of"""
VERB = lazy_regex(rf"\b(?:{CHANGES.replace(chr(10), '')})\b", re.IGNORECASE)
ADDS = lazy_regex(
    r"(?i)\b(?:add(?:s|ed|ing)?|creat(?:e|es|ed|ing)|introduc(?:e|es|ed|ing)|provid(?:e|es|ed|ing)"
    r"|commit(?:s|ted|ting)?|check(?:s|ed|ing)? in|includ(?:e|es|ed|ing)|writ(?:e|es|ten|ing)"
    r"|suppl(?:y|ies|ied|ying))\b"
)
BREAK = lazy_regex(
    r"(?i)\b(?:so|until|till|such|because|which|while|when|where|if|unless|like|as|using|with|without"
    r"|pass|passes|passing|green|succeeds?|to\s+(?:make|get|let|satisfy|fix|match|fit|suit|meet)"
    r"|and\s+(?:make|run|check|keep|see)|then|see|per|from|against|according|but|except|via|by)\b|[;:!?]|\.\s"
)
ANOTHER = lazy_regex(
    r"(?i)\b(?:nothing|no|not|never|none|neither|nor|that|which|what|who|whose|whatever|leave|keep)\b"
)
"""Between a verb and a path: the change is denied, or applies to something else."""
NEGATED = lazy_regex(
    r"(?i)(?:\bnot|\bnever|n['’]t|\bwithout|\bno need to|\binstead of|\brather than"
    r"|\bavoid|\bforbid\w*|\bprohibit\w*|\bno)\b(?!\W+(?:ever\s+)?(?:forget|fail|neglect|omit|hesitate)\s+to\b)\W+(?:\w+\W+){0,3}$"
)
"""Before a verb of change: it is denied. "Don't forget to" is a request."""
JA_CHANGES = (
    r"(?:変更|改名|リネーム|移動|削除|更新|書き換|書き直|置き換|置換|消[すし]|消去"
    r"|変え|移[すし]|移植|改訂|再生成|作り直|分割|統合|調整|追従|適合)"
)
JA_OBJECT = lazy_regex(
    rf"^[`」』\"'*_）)\s]*(?:の[^。\n、]{{0,20}}?)?を([^。\n]{{0,60}}?){JA_CHANGES}([^。\n]{{0,12}})"
)
JA_ORDER = lazy_regex(
    rf"^[`」』\"'*_）)\s]*の{JA_CHANGES}(?:も|を)[^。\n、]{{0,10}}?"
    r"(?:忘れ(?:ずに|ないで|ないよう)|お願い|行[なうっい]|実施|頼[むみ])([^。\n]{0,12})"
)
"""After a path: "its update, too, please", and "do not forget to"."""
JA_NOT = lazy_regex(
    r"しない|せず|しては|するな|禁止|ないで|なく|不要|ません|えない|さない|さず|えず"
)
BECOMES = lazy_regex(
    r"(?i)^[`'\"*_)]*(?:\s*+(?:,\s*+)?\b(?:which|that))?\s+(?:(?:is|are|gets?|(?:must|should|shall|will|has\s+to|have\s+to|needs?\s+to"
    r"|(?:is|are)\s+to)\s+(?:be|get))\s+(?:(?:also|then|therefore|thus|likewise|accordingly)\s+)?"
    r"(?:updated|changed|edited|rewritten|replaced|regenerated|refreshed|extended|adapted|adjusted"
    r"|modified|amended|revised|removed|deleted|dropped|renamed|moved|renewed|remade"
    r"|(?:generated|made|written)\s+(?:anew|again)|brought\s+(?:up\s+to\s+date|in(?:to)?\s+line))"
    r"|(?:(?:must|should|shall|will|has\s+to|have\s+to)\s+)?changes?\s+(?:accordingly|likewise|too|as\s+well)"
    r"|needs?\s+(?:updating|regenerating|refreshing|adapting|adjusting|an\s+update)"
    r"|(?:gets?|receives?)\s+(?:an?|new|another|real|proper|the(?=(?:\s+[\w-]+){1,3}:?\s+[`'\"]))\b)"
    r"(?=[\s.,;:!?)]|$)((?:[^.;:!?\n]|\n(?!\s*\n)){0,100})"
)
"""After a path: it is what has to change, in the passive voice."""
HABIT = lazy_regex(
    r"(?i)\b(?:if|when|whenever|while|unless|until|once|each|every|after|before|always|only|whether"
    r"|next|soon|eventually|nightly|daily|weekly|automatically|later|separately|elsewhere|already"
    r"|which"
    r"|by\b(?!\s+(?:hand|\w+ing)\b))\b"
)
"""Words by which a sentence says when something happens, or who does it."""
DENIED = lazy_regex(
    r"(?i)\b(?:no|not|never|none|nothing|neither|nor|nobody|without|cannot|forbid\w*|prevent\w*"
    r"|avoid\w*|refus\w*|reject\w*|detect\w*|complain\w*|warn\w*|wrong\w*)\b|n't\b"
)
CLAUSE = lazy_regex(r"[,;]|\b(?:and|so|but)\b")
JA_BECOMES = lazy_regex(
    r"^[`」』\"'*_）)\s]*(?:の[^。\n、を]{0,20}?)?(?:も|は|が)([^。\n、をはが]{0,40}?)"
    rf"{JA_CHANGES}([^。\n]{{0,20}})"
)
JA_HABIT = lazy_regex(
    r"とき|時に|場合|たび|度に|なら|れば|たら|毎|自動|すで|既に|まで|のみ|だけ|後で|別途|済|なし|無し"
    r"|れない|れず|れては|べきでは"
)
ARTICLE = r"(?:the\s+|our\s+|its\s+|file\s+)*"
NAMED_FILE = (
    r"[`'\"]{0,9}(?P<path>(?:[\w.-]{1,99}/)*"
    r"(?:[\w-]{1,99}(?:\.\w{1,10}){1,9}|README|CHANGELOG|CHANGES|HISTORY))(?![\w/])"
)
"""A file as a sentence names it."""
UNSURE = lazy_regex(
    r"(?i)\b(?:if|when|where|unless|optional\w*|may|might|could|need not|not|never|n't|or"
    r"|separate\w*|later|already|e\.g|for example)\b|任意|場合|不要|ない"
)
"""What makes of an order one that need not be carried out."""


def becomes_in_japanese(before: str, behind: str) -> bool:
    """Whether the words around a noun order it to be changed, or say that it is to become so."""
    found = JA_ORDER.match(behind) or JA_BECOMES.match(behind)
    ending = "".join(found.groups()) if found else ""
    return bool(found) and not (JA_NOT.search(ending) or JA_HABIT.search(before + ending))


def last_verb(text: str) -> re.Match[str] | None:
    """The last verb of change in a text."""
    return next(reversed(list(VERB.finditer(text))), None)


def outside_of_checks(text: str) -> str:
    """Return a PRD without the commands of its checks: what it says in words."""
    return CHECK.sub("", text)


def wanted_gone(check: str) -> set[str]:
    """Return paths that, according to a check's text, have to be gone for it to pass."""
    return {found[1] for found in ABSENT.finditer(check)}


def is_looked_at(command: str, word: str) -> bool:
    """Whether a command names a path and only looks at it, so that the path may well change.

    It does not only look if it compares the path with anything but its own copy of it.
    """
    own = [step for step in steps_of(command) if word in step.words or word in step.reads]
    copies = {step.words[-1] for step in own if step.words[0] == "cp"}
    for step in own:
        program = step.words[0]
        if program in COMPARES:
            if copies.isdisjoint(step.words):
                return False
        elif program not in LOOKS | PASSES_ON | ALSO_LOOK | {"cp"} or "-f" in step.words[1:-1]:
            return False
    return bool(own)
