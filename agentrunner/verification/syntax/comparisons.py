"""Find where a source asks whether a value is one certain literal, in any language. Pure.

That is a comparison for equality, an arm of `switch`, `match`, `case` or `when`, a place in a list
that is asked whether it contains the value, and a key of a table by which something is looked up;
each for the literal or for a pair or list of literals that it is in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.tokens import Token, Value, number, tokens, value_of

SAME = frozenset("== === != !== <> ~= eq ne is".split())
SHELL_SAME = frozenset("= == !=".split())
EQUALS = lazy_regex(
    r"(?i)equals?(?:ignorecase|fold|to)?$|eql\?|^equal\?$|^(?:str|mem|wcs)\w*cmp\w*$"
)
HAS = lazy_regex(r"(?i)^(?:includes?\??|contains|index_?of|has|member\?|count)$")
GETS = lazy_regex(r"(?i)^(?:get|fetch|at|dig|get_?or_?default)$")
COLLECTIONS = lazy_regex(r"(?i)^(?:of|\w*(?:list|set|array|vec|tuple))$")
ARROWS = {"rust": ("=>",), "php": ("=>",), "c": ("->", "=>")}
"""What stands behind the pattern of an arm, by family of languages."""
OPENS, CLOSES = frozenset("([{"), frozenset(")]}")
ENDS = frozenset(
    "; , = && || ? : and or if unless elif elsif while until return not ! then when case else print"
    " == != === !== => -> < > <= >= += in is { }".split()
)
"""What an operand ends at."""
COMPUTES = frozenset("+ - * / // % ** << >> & ^".split())
"""Signs by which a literal is only a part of what is compared."""
BEFORE_SIGN = frozenset("return case when and or not in is if elif yield".split())
"""Words after which a minus is a sign."""
BEFORE_PAIR = BEFORE_SIGN | {"eq", "ne", "is"}
"""Words after which a bracket is a pair or a list."""
_VALUE = r"-?\d[\w.]*+"
BOUND = lazy_regex(
    rf"(?<![=\-<>])[<>]=?\s*{_VALUE}(?!\s*[<>])|(?<![\w.<>]){_VALUE}\s*[<>]=?(?![<>]|\w+>)"
    rf"|(?i:\b(?>\w*(?:less|greater|below|above|at_?least|at_?most))\w*+\s*\((?:[^()]|\([^()]*\))*?)"
    rf"(?<![\w.]){_VALUE}|:[<>]=?\s*,\s*{_VALUE}"
)
"""A number that a value may only not exceed, or fall below."""
LONGEST = 40
"""The most tokens of an operand."""
WIDEST = 2_000
"""The most tokens in a bracket that is looked at."""


class Comparison(Struct, frozen=True):
    """A literal that a value is compared with, or by which something is looked up."""

    subject: str
    """The value's expression, its tokens apart; "" if it is not known."""
    value: Value
    start: int
    """Where the literal begins, with its sign, as the offset of a byte."""
    end: int
    line: int
    """Counted from 1."""
    answer: Value | None = None
    """The literal that alone is chosen where the value is the same; None for anything else."""


def comparisons(source: bytes, family: str) -> list[Comparison]:
    """Return the comparisons of a source in the order of their literals."""
    return list(_Comparisons(tokens(source, family), family).all())


def lists_of(source: bytes, family: str) -> list[tuple[int, int]]:
    """Return for each token where the list, set, table or `match` opens that it is in.

    And the one around that, for rows of a table. -1 stands for none.
    """
    read = _Comparisons(tokens(source, family), family)
    found = []
    for at, opened in enumerate(read.openings):
        around = read.openings[opened] if opened >= 0 else -1
        inner = opened if read.is_no_call(opened) or read.is_key(at, opened) else -1
        found.append((inner, around if inner >= 0 and read.is_no_call(around) else -1))
    return found


def literals(source: bytes, family: str) -> list[Value]:
    """Return the values of all literals of a source; a number after a minus has that sign."""
    read = tokens(source, family)
    values = (signed(read, at)[0] for at in range(len(read)))
    return [value for value in values if value is not None]


def signed(read: Sequence[Token], at: int) -> tuple[Value | None, int]:
    """Return the value of a literal with its sign, and the place where it begins."""
    value = value_of(read[at])
    if value is None or value[0] != "number" or at == 0 or read[at - 1].text != "-":
        return value, at
    before = read[at - 2] if at > 1 else None
    if before is not None and (
        before.kind in ("number", "string")
        or before.text in (")", "]")
        or (before.kind == "name" and before.text not in BEFORE_SIGN)
    ):
        return value, at
    return number(f"-{value[1]}"), at - 1


PARTS = (",", "|", "-")
"""What stands between the patterns of an arm, or before one."""


class _Comparisons(Struct, frozen=True, dict=True):
    read: Sequence[Token]
    family: str

    def all(self) -> Iterator[Comparison]:
        for at in range(len(self.read)):
            value, begin = signed(self.read, at)
            subject = self._subject_of_any(begin, at) if value is not None else None
            if value is not None and subject is not None:
                first, last = self.read[begin], self.read[at]
                answer = self._answer_behind(at + 1) or self._answer_before(begin)
                yield Comparison(subject, value, first.start, last.end, last.line, answer)

    def _subject_of_any(self, begin: int, at: int) -> str | None:
        """Return what a literal, or else the pair or list that it is in, is compared with."""
        subject = self._subject(begin, at)
        opened = self._opening(begin)
        if subject is not None or opened < 0 or self.family == "shell":
            return subject
        if not (self.is_no_call(opened) and self._has_only_literals(opened)):
            return None
        return self._subject(opened, self._closing(opened))

    def is_key(self, at: int, opened: int) -> bool:
        """Whether a literal is a key or an arm in braces."""
        return self._text(opened) == "{" and self._text(at + 1) in (":", "=>", "->", "|")

    def is_no_call(self, opened: int) -> bool:
        """Whether a bracket is that of a pair, a list or a table, and of no call or index."""
        if opened < 1:
            return opened == 0
        before = self._text(opened - 1)
        is_name = self.read[opened - 1].kind == "name" and before not in BEFORE_PAIR
        return before not in CLOSES and not is_name

    def _text(self, at: int) -> str:
        return self.read[at].text if 0 <= at < len(self.read) else ""

    def _subject(self, begin: int, at: int) -> str | None:
        """Return what a literal is compared with; None if it is not compared."""
        before, after = self._text(begin - 1), self._text(at + 1)
        if before in COMPUTES or after in COMPUTES:  # `year % 400 == 0`
            return None
        same = SHELL_SAME if self.family == "shell" else SAME
        if before in same:
            # `top=9` of a shell assigns, `"$top" = 9` compares.
            assigns = before == "=" and self.read[begin - 1].start == self.read[begin - 2].end
            return None if assigns else self._operand_before(begin - 2)
        if self.family == "shell" and before in ("eq", "ne") and self._text(begin - 2) == "-":
            return self._operand_before(begin - 3)
        if self.family == "shell":
            return None
        if after in same:
            return self._operand_behind(at + 2)
        if after == "." and EQUALS.search(self._text(at + 2)):
            return self._operand_behind(at + 4)
        called = self._call(begin, at)
        if called is not None and EQUALS.search(called[0]):
            return called[1]
        return "" if self._is_arm(begin, at) else self._listed(begin, at)

    def _is_arm(self, begin: int, at: int) -> bool:
        """Whether a literal is a pattern of `switch`, `match`, `case` or `when`, alone or not."""
        begin, at = self._rows[begin][0], self._rows[at][1]
        if self._text(begin - 1) in ("case", "when"):
            return True
        return self._text(at + 1) in ARROWS.get(self.family, ()) and (
            self._text(self._opening(begin)) == "{"
        )

    @cached_property
    def _rows(self) -> list[tuple[int, int]]:
        """Where the row of literals, and of what parts them, around each token begins and ends."""
        rows: list[tuple[int, int]] = []
        for begin in range(len(self.read)):
            if begin < len(rows):
                continue
            end = begin
            while end < len(self.read) and (
                self.read[end].kind in ("number", "string") or self.read[end].text in PARTS
            ):
                end += 1
            end = max(end, begin + 1)
            rows += [(begin, end - 1)] * (end - begin)
        return rows

    def _call(self, begin: int, at: int) -> tuple[str, str] | None:
        """Return the function that a literal is handed to directly, and what it is handed to.

        That is the first other argument, or else the object whose method it is.
        """
        opened = self._opening(begin)
        if self._text(opened) != "(" or opened == 0 or self.read[opened - 1].kind != "name":
            return None
        name = self._text(opened - 1)
        if opened + 1 < begin:
            return name, self._operand_behind(opened + 1)
        if self._text(opened - 2) in (".", "?.", "->", "::") and self._text(at + 1) == ")":
            return name, self._operand_before(opened - 3)
        return name, self._operand_behind(at + 2)

    def _listed(self, begin: int, at: int) -> str | None:
        """Return what is looked up in the list or table that holds a literal."""
        before, after = self._text(begin - 1), self._text(at + 1)
        opened = self._opening(begin)
        if opened < 0 or before not in ("(", "[", "{", ",", "|"):
            return None
        closed, ahead = self._closing(opened), self._text(opened - 1)
        behind, method = self._text(closed + 1), self._text(closed + 2)
        dotted = behind in (".", "?.")
        if after in (":", "=>"):
            if behind == "[":
                return self._operand_behind(closed + 2)
            if dotted and GETS.match(method):
                return self._operand_behind(closed + 4)
            return "" if ahead == "=" and self._is_looked_up(self._text(opened - 2)) else None
        inner = self.read[opened + 1 : closed]
        if not all(one.kind in ("number", "string") or one.text in ",-|" for one in inner):
            return None
        if ahead == "in":
            return self._operand_before(opened - 2)
        if dotted and HAS.match(method) and (self._text(opened) == "[" or COLLECTIONS.match(ahead)):
            return self._operand_behind(closed + 4)
        call = self._call(opened, closed)
        return call[1] if call is not None and call[0] == "in_array" else None

    def _is_looked_up(self, name: str) -> bool:
        """Whether something is looked up in the table of this name."""
        return any(
            one.text == name
            and (
                self._text(at + 1) == "["
                or (self._text(at + 1) in (".", "?.") and GETS.match(self._text(at + 2)))
            )
            for at, one in enumerate(self.read)
        )

    def _answer_behind(self, at: int) -> Value | None:
        """Return the literal that is chosen by what ends here: `) return 5;`, `? 5 :`, `=> 5,`."""
        opened = False
        while self._text(at) in (")", "{", ":", "?", "then", "return", "=>", "->", "print", "echo"):
            opened = opened or self._text(at) != ")"
            at += 1
        if not opened and self._text(at - 1) != ")":
            return None
        at += self._text(at) == "-"
        if at >= len(self.read):
            return None
        value, _ = signed(self.read, at)
        return value if self._ends(at + 1) else None

    def _answer_before(self, begin: int) -> Value | None:
        """Return the literal of `5 if value == literal else …`."""
        at = begin - 1
        while at >= 0 and begin - at < LONGEST and self._text(at) not in ("if", ";", "{", "}"):
            at -= 1
        if self.family != "python" or at < 1 or self._text(at) != "if":
            return None
        value, first = signed(self.read, at - 1)
        whole = self._text(first - 1) in ("return", "=", "(", ",", "else", ":", "yield")
        return value if whole and self.read[at].line == self.read[at - 1].line else None

    def _ends(self, at: int) -> bool:
        """Whether an expression ends before this token."""
        if at >= len(self.read) or self._text(at) in (";", ",", ":", "}", ")", "]", "else", "end"):
            return True
        return self.read[at].line > self.read[at - 1].line and self.read[at].kind != "op"

    def _opening(self, begin: int) -> int:
        """Return the place of the bracket around a token, -1 if there is none near."""
        opened = self.openings[begin]
        return opened if opened > begin - WIDEST else -1

    @property
    def openings(self) -> list[int]:
        """The place of the bracket around each token, however far it is; -1 where there is none."""
        return self._brackets[0]

    @cached_property
    def _brackets(self) -> tuple[list[int], dict[int, int]]:
        """The openings, and where brackets close, by where they open."""
        places: list[int] = []
        closings: dict[int, int] = {}
        opened: list[int] = []
        for at, token in enumerate(self.read):
            places.append(opened[-1] if opened else -1)
            if token.text in OPENS:
                opened.append(at)
            elif token.text in CLOSES and opened:
                closings[opened.pop()] = at
        return places, closings

    def _closing(self, opened: int) -> int:
        """Return the place where a bracket closes, its own if that is not near."""
        closed = self._brackets[1].get(opened, opened)
        return closed if closed < opened + WIDEST else opened

    def _has_only_literals(self, opened: int) -> bool:
        """Whether there is nothing but literals in a bracket."""
        if opened not in self._plain:
            inner = self.read[opened + 1 : self._closing(opened)]
            plain = (one.kind in ("number", "string") or one.text in ",-" for one in inner)
            self._plain[opened] = all(plain)
        return self._plain[opened]

    @cached_property
    def _plain(self) -> dict[int, bool]:
        return {}

    def _operand_before(self, end: int) -> str:
        """Return the operand whose last token this is."""
        return " ".join(self._operand(end, -1)[::-1])

    def _operand_behind(self, begin: int) -> str:
        """Return the operand whose first token this is."""
        return " ".join(self._operand(begin, 1))

    def _operand(self, at: int, step: int) -> list[str]:
        """Return the texts of an operand from one of its ends on."""
        opens, closes = ("(", "["), (")", "]")
        if step < 0:
            opens, closes = closes, opens
        found: list[str] = []
        depth = 0
        while 0 <= at < len(self.read) and len(found) < LONGEST:
            text = self.read[at].text
            if depth == 0 and (text in ENDS or text in closes):
                break
            depth += (text in opens) - (text in closes)
            found.append(text)
            at += step
        return found
