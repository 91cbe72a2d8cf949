"""Makes assertions of programs in PHP, Ruby and C fail, each by its words alone. Pure.

There is no grammar for these languages here. Comments and strings are blanked first. A change is
only made where the text stays well-formed whatever surrounds it, since a program that cannot be
parsed is red for another reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.failing_assertions import Failing
from agentrunner.verification.syntax.programs import KILLS
from agentrunner.verification.syntax.word_tests import end_of_arguments

PHP_KILL, RUBY_KILL, C_KILL = KILLS["php"], KILLS["ruby"], KILLS["c"]
_PHP_BLANK = lazy_regex(
    rb"""/\*.*?\*/|(?:\#(?!\[)|//)[^\n]*?(?=\?>|\n|\Z)|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|"""
    rb"""<<<\s*['"]?(\w+)['"]?\n.*?\n\s*\1\b|\?>.*?(?:<\?php|<\?=|\Z)""",
    re.DOTALL,
)
_RUBY_BLANK = lazy_regex(
    rb"""^=begin\b.*?^=end\b|^__END__$.*|\#[^\n]*|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|"""
    rb""""(?:\\.|\#\{[^{}]*\}|[^"\\])*"|<<[~-]?['"]?([A-Z]\w*)['"]?[^\n]*\n.*?^\s*\1$|"""
    rb"""(?<=[(,=~!|&{;])[ ]?/(?:\\.|[^/\\\n])+/|%[wWiIqQ]?(?:\[[^\]]*\]|\([^)]*\)|\{[^}]*\})|"""
    rb"""\?\w\b""",
    re.DOTALL | re.MULTILINE,
)
_C_BLANK = lazy_regex(
    rb"""/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*\"""", re.DOTALL
)
_PHP_ENDS = lazy_regex(r"\b(throw)\b|\b(exit|die)\s*\(\s*[1-9]")
_PHP_ELSE = lazy_regex(r"(\bor\b|\|\|)(\s*)(?=(?:exit|die)\s*\(\s*[1-9]|throw\b)")
_RUBY_MODIFIED = lazy_regex(
    r"^[ \t]*(raise|fail|abort|exit!?)\b[^;{}\n]*?\s(unless|if)[ (](.*)$", re.MULTILINE
)
_RUBY_ENDS = lazy_regex(r"\b(raise|fail|abort)\b|\b(exit)!?[ (]\s*(?:[1-9]|false)")
_RUBY_BLOCK = lazy_regex(r"^([ \t]*)(if|unless)[ ](.+?)(?:[ ]then)?[ \t]*$", re.MULTILINE)
_RUBY_ELSE = lazy_regex(r"[ ](or|\|\|)[ ](?=(?:raise|fail|abort|exit!?)\b)")
_COMPARED = lazy_regex(r"(?<![=!<>])(===|!==|==|!=)(?![=>~])")
_INVERSE = {"===": "!==", "!==": "===", "==": "!=", "!=": "=="}
_ZERO = lazy_regex(r"\bexit!?[ (]\s*(0|true)\b")


def failing_by_words(source: bytes, language: str) -> list[Failing]:
    """The assertions of a program in "php", "ruby" or "c".

    Where none is known: inverted comparisons in PHP and Ruby, [] in C.
    """
    blank, find = _LANGUAGES[language]
    # One character per byte: a position in the text is the same position in the source.
    text = blank.sub(_blank_out, source).decode("latin-1")
    found = sorted(find(text), key=lambda one: one.line)
    return found if found or language == "c" else list(_inverted_comparisons(text, language))


def _blank_out(hit: re.Match[bytes]) -> bytes:
    inner = re.sub(rb"[^\n]", b" ", hit[0])
    return b"_" + inner[1:-1] + b"_" if hit[0][:1] in b"'\"" and len(hit[0]) > 1 else inner


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _inserted(at: int, text: str) -> Edit:
    return Edit(at, at, text)


def _negated(start: int, end: int) -> tuple[Edit, ...]:
    return (_inserted(start, "!("), _inserted(end, ")"))


def _alternatives(text: str, pattern: re.Pattern[str], kind: str, kill: str) -> Iterator[Failing]:
    """`total() === 15 or exit(1)`, by a pattern whose first group is the `or`."""
    for hit in pattern.finditer(text):
        edit = Edit(*hit.span(1), "and" if hit[1] == "or" else "&&")
        killed = Edit(*hit.span(1), f"; {kill};")
        yield Failing(kind, True, _line(text, hit.start(1)), (edit,), (killed,))


# PHP ----------------------------------------------------------------------------------------------


def _php(text: str) -> Iterator[Failing]:
    edits: tuple[Edit, ...]
    kill: tuple[Edit, ...]
    for hit in re.finditer(r"(?<![\w>:$\\])\\?assert\s*\(", text):
        first, closes = end_of_arguments(text, hit.end()), end_of_arguments(text, hit.end(), 0)
        if closes < len(text) and not re.search(r"\bfunction\s+$", text[: hit.start()][-20:]):
            edits = _negated(hit.end(), first)
            kill = (_inserted(hit.start(), f"{PHP_KILL} and "),)
            yield Failing("assert", True, _line(text, hit.start()), edits, kill)
    for hit in re.finditer(r"(?<![\w$>:])(?:else)?if\s*\(", text):
        end = end_of_arguments(text, hit.end(), 0)
        ends = _PHP_ENDS.search(_php_branch(text, end + 1))
        if ends is None:
            continue
        condition = text[hit.end() : end]
        edits = _negated(hit.end(), end)
        kill = (_inserted(hit.end(), f"{PHP_KILL} && ("), _inserted(end, ")"))
        sure = bool(re.search(r"!==?|^\s*!", condition)) and not re.search(r"\+\+|--", condition)
        kind = f"if … {ends[1] or ends[2]}"
        yield Failing(kind, sure, _line(text, hit.start()), edits, kill)
    yield from _alternatives(text, _PHP_ELSE, "or exit", PHP_KILL)
    yield from _exits(text, PHP_KILL)


def _php_branch(text: str, at: int) -> str:
    """The statement or block after a condition."""
    rest = text[at:]
    if rest.lstrip().startswith("{"):
        start = at + rest.index("{") + 1
        end = end_of_arguments(text, start, 0)
        return text[start:end] if end < len(text) else ""
    return rest[: rest.find(";") + 1]


def _exits(text: str, kill: str) -> Iterator[Failing]:
    """`exit(total() === 15 ? 0 : 1)`, and Ruby's `exit(total == 15)`."""
    for hit in re.finditer(r"^[ \t]*exit!?\s*\(", text, re.MULTILINE):
        end = end_of_arguments(text, hit.end(), 0)
        if end < len(text):
            edits = tuple(
                Edit(hit.end() + one.start(), hit.end() + one.end(), _INVERSE[one[0]])
                for one in _COMPARED.finditer(text[hit.end() : end])
            )
            if edits:
                at = _line(text, hit.end())
                yield Failing("exit", True, at, edits, (_inserted(hit.start(), f"{kill}; "),))


# Ruby ---------------------------------------------------------------------------------------------


def _ruby(text: str) -> Iterator[Failing]:
    edits: tuple[Edit, ...]
    kill: tuple[Edit, ...]
    for hit in _RUBY_MODIFIED.finditer(text):
        if _ZERO.search(hit[0]):
            continue
        other = "if" if hit[2] == "unless" else "unless"
        sure = hit[2] == "unless" or bool(re.search(r"!=|^\s*(!|not\b)", hit[3]))
        edits = (Edit(hit.start(2), hit.end(2), other),)
        kill = (_inserted(hit.start(1), f"{RUBY_KILL}; "),)
        yield Failing(hit[1], sure, _line(text, hit.start(1)), edits, kill)
    for hit in _RUBY_BLOCK.finditer(text):
        then = re.match(rf"\n((?:(?:{hit[1]}[ \t]+[^\n]*)?\n)*)", text[hit.end() :])
        ends = _RUBY_ENDS.search(then[1]) if then else None
        condition = hit[3]
        if ends is None or _is_unfinished(condition):
            continue
        edits = _negated(*hit.span(3))
        sure = hit[2] == "unless" or bool(re.search(r"!=|^\s*(!|not\b)", condition))
        kill = (_inserted(hit.start(2), f"{RUBY_KILL}; "),)
        kind = f"if … {ends[1] or ends[2]}"
        yield Failing(kind, sure, _line(text, hit.start(2)), edits, kill)
    yield from _alternatives(text, _RUBY_ELSE, "or raise", RUBY_KILL)
    yield from _exits(text, RUBY_KILL)


def _is_unfinished(condition: str) -> bool:
    """Whether a condition continues in the next line, or is more than one condition."""
    if re.search(r"(&&|\|\||\band|\bor|\bnot|[,\\+*/.=<>!-])\s*$|;|\bdo\b", condition):
        return True
    return any(condition.count(one) != condition.count(other) for one, other in ("()", "[]", "{}"))


# C ------------------------------------------------------------------------------------------------


def _c(text: str) -> Iterator[Failing]:
    """Calls of the standard `assert`, which flags and headers can turn off."""
    if not re.search(r"^[ \t]*#[ \t]*include[ \t]*<(?:assert\.h|cassert)>", text, re.MULTILINE):
        return
    for hit in re.finditer(r"(?<![\w.>#])assert\s*\(", text):
        end = end_of_arguments(text, hit.end(), 0)
        if end < len(text):
            edits = _negated(hit.end(), end)
            kill = (_inserted(hit.start(), f"{C_KILL}, "),)
            yield Failing("assert", True, _line(text, hit.start()), edits, kill)


def _inverted_comparisons(text: str, language: str) -> Iterator[Failing]:
    """Every comparison inverted, for a program that has no known assertion."""
    for hit in _COMPARED.finditer(text):
        if language == "ruby" and len(hit[0]) == 3:
            continue
        edit = Edit(hit.start(), hit.end(), _INVERSE[hit[0]])
        yield Failing("comparison", False, _line(text, hit.start()), (edit,), ())


_LANGUAGES: dict[str, tuple[re.Pattern[bytes], Callable[[str], Iterator[Failing]]]] = {
    "php": (_PHP_BLANK, _php),
    "ruby": (_RUBY_BLANK, _ruby),
    "c": (_C_BLANK, _c),
}
