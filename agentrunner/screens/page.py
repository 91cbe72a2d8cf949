"""A page of Markdown in a terminal: its paragraphs are broken anew, to the width that is there."""

from __future__ import annotations

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import cell_width

FENCE = lazy_regex(r"\s*(```|~~~)")
AS_IT_IS = lazy_regex(r"\s*(#|\||<|!\[|-{3,}$)| {4,}(?![-*] |\d+\. )\S")
"""Begins a line that is not joined to another: a heading, a row of a table, HTML, code."""
BEGINS = lazy_regex(r"\s*(?:[-*] (?:\[.\] )?|\d+\. |> )?")
"""What a paragraph begins with: blanks, and the mark of a list or a quotation."""
WORD = lazy_regex(r"`[^`]+`\S*|\S+")


def broken_to(text: str, columns: int) -> str:
    """Return a page whose paragraphs and list items have lines of at most `columns` cells.

    A command in back quotes stays in one piece. Code and tables stay as they are: neither can be
    broken. So does a page that fits.
    """
    lines = text.split("\n")
    if all(cell_width(line) <= columns for line in lines):
        return text
    found: list[str] = []
    paragraph: list[str] = []
    fence = ""
    for line in [*lines, ""]:
        mark = FENCE.match(line)
        inside = bool(fence) or mark is not None
        if mark is not None:
            fence = "" if mark[1] == fence else fence or mark[1]
        item = BEGINS.match(line)
        begins = item is not None and bool(item[0].strip())
        alone = inside or not line.strip() or _stands_alone(line, paragraph)
        if paragraph and (alone or begins):
            found += _broken(paragraph, columns)
            paragraph = []
        if alone:
            found.append(line)
        else:
            paragraph.append(line)
    return "\n".join(found[:-1])


def _stands_alone(line: str, paragraph: list[str]) -> bool:
    """Whether a line is a heading, a row or code; below a list item, an indented one goes on."""
    if line.startswith("    ") and paragraph:
        return False
    return AS_IT_IS.match(line) is not None


def _broken(paragraph: list[str], columns: int) -> list[str]:
    if all(cell_width(line) <= columns for line in paragraph):
        return paragraph
    lead = BEGINS.match(paragraph[0])
    begin = lead[0] if lead else ""
    indent = " " * len(begin)
    text = " ".join([paragraph[0][len(begin) :], *(line.strip() for line in paragraph[1:])])
    lines, row = [], begin
    for word in WORD.findall(text):
        blank = "" if row in (begin, indent) else " "
        if blank and cell_width(row + blank + word) > columns:
            lines.append(row)
            row, blank = indent, ""
        row += blank + word
    return [*lines, row]
