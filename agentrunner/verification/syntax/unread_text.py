"""Parameters that no function reads, in languages that are read by patterns: Ruby and PHP. Pure."""

from __future__ import annotations

import re

from agentrunner.verification.syntax.tokens import lexical_family, tokens

HEADS = {
    "ruby": rb"^(?P<indent>[ \t]*)def (?:self\.)?(?P<name>\w+[?!]?)\((?P<of>[^()]*)\)",
    "php": rb"^(?P<indent>[ \t]*)[\w \t]*\bfunction (?P<name>\w+)\s*\((?P<of>[^()]*)\)",
}
ENDS = {"ruby": rb"(?m)^%send\b", "php": rb"(?m)^%s\}"}
"""What ends a function, at the indentation of its head."""
PARAMETER = re.compile(rb"\$?(?P<name>[A-Za-z_]\w*)\s*(?:[=:,]|$)")


def unread_in_text(before: bytes, after: bytes, path: str) -> set[tuple[str, str]]:
    """Functions by name, with parameters that they only now have and that none of them reads."""
    family = lexical_family(path, after) or ""
    had = {(name, parameter) for name, parameter, _ in _parameters(before, family)}
    read: set[tuple[str, str]] = set()
    idle: set[tuple[str, str]] = set()
    for name, parameter, used in _parameters(after, family):
        if (name, parameter) not in had:
            (read if used else idle).add((name, parameter))
    return idle - read


def _parameters(source: bytes, family: str) -> list[tuple[str, str, bool]]:
    """The parameters of all functions: name of the function, of the parameter, and whether read."""
    found = []
    for hit in re.finditer(HEADS[family], source, re.MULTILINE) if family in HEADS else ():
        end = re.compile(ENDS[family] % re.escape(hit["indent"])).search(source, hit.end())
        body = source[hit.end() : end.start() if end else len(source)]
        # A text may hold the parameter: "#{sign}", "$sign".
        words = set(re.findall(rb"\w+", b" ".join(_texts(body, family))))
        for one in hit["of"].split(b","):
            if parameter := PARAMETER.match(one.strip().lstrip(b"*&")):
                name = parameter["name"]
                found.append((hit["name"].decode(), name.decode(), name in words))
    return found


def _texts(body: bytes, family: str) -> list[bytes]:
    """The tokens of a function's body, without comments."""
    return [token.text.encode("latin-1") for token in tokens(body, family)]
