"""Escape untrusted text as Markdown that shows it faithfully and forges nothing.

All text from a model, a worker, a repository or a PRD passes one of these functions: outside a
fence it cannot become a heading, list, checkbox, link, image, HTML or table cell. All but `fence`
return one line. The results are `Markup`, which templates print unchanged.
"""

from __future__ import annotations

import re

from markupsafe import Markup

from agentrunner.text.lazy_regex import lazy_regex

_SPECIAL = lazy_regex(
    r"""[\\`*\[\]<|~]
      | (?<![^\W_])_ | _(?![^\W_])              # inside a word it is literal
      | &(?=\#|\w)                              # an entity
      | :(?=//) | (?<=www)\. | @(?=[\w-]+\.)   # what renderers make links of by themselves
      | (?:^|(?<=\s))\#                         # a heading, or the closing marks of one
      | ^[-+=>]""",
    re.VERBOSE | re.IGNORECASE,
)
_NUMBERED = lazy_regex(r"^(\d{1,9})([.)])(?=\s|$)")
_CODE = lazy_regex(r"(?<!`)`([^`|\\]+)`(?!`)")


def flat(text: str, limit: int = 0) -> str:
    """Return `text` on one line, not yet escaped, cut to `limit` characters (0: whole)."""
    line = " ".join(text.split())
    return line[: limit - 1].rstrip() + "…" if 0 < limit < len(line) else line


def inline(text: object, limit: int = 0) -> Markup:
    """Escape `text` as plain words, for paragraphs, list items, headings and table cells.

    Words between single back-ticks are shown as code.
    """
    parts = _CODE.split(flat(str(text), limit))
    # Every other part was between back-ticks.
    return Markup("").join(
        code(part) if index % 2 and part.strip() else _words(f"`{part}`" if index % 2 else part)
        for index, part in enumerate(parts)
    )


def _words(text: str) -> Markup:
    return Markup(_NUMBERED.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", text)))


def code(text: object, limit: int = 0) -> Markup:
    """Format `text` as a code span; "" for empty text."""
    line = flat(str(text), limit)
    if not line:
        return Markup("")
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return Markup(f"{ticks}{pad}{line}{pad}{ticks}")


def cell_code(text: object, limit: int = 0) -> Markup:
    r"""`text` as a code span inside a table, where a bar ends the cell even in code.

    Renderers disagree about ``\|`` after a backslash, so such text is shown as plain words.
    """
    line = flat(str(text), limit)
    if "\\|" in line or line.endswith("\\"):
        return inline(line)
    return Markup(code(line).replace("|", "\\|"))


def fence(text: object, info: str = "text") -> Markup:
    """Format `text` as a fenced block, with a fence longer than any run of back-ticks in it."""
    body = re.sub(r"\r\n?", "\n", str(text)).strip("\n")
    ticks = "`" * max(3, _longest_run(body) + 1)
    return Markup(f"{ticks}{info}\n{body}\n{ticks}")


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
