"""The ways in which programs print a secret.

Raw, base64 at the three byte alignments, URL-, JSON-, shell-, HTML- and hex-encoded, and line by
line.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterator
from urllib.parse import quote, quote_plus


def spellings_of(value: str) -> Iterator[str]:
    """Yield every way in which a program may print the value."""
    raw = value.encode("utf-8", "surrogateescape")
    for text in dict.fromkeys((value, value.strip(), *map(str.strip, value.splitlines()))):
        yield text
        yield from _quoted(text)
    for data in dict.fromkeys((raw, raw.strip())):
        yield from (data.hex(), data.hex().upper())
        for encoded in _base64(data):
            yield encoded
            yield encoded.translate(_URL_ALPHABET)


_URL_ALPHABET = str.maketrans("+/", "-_")


def _base64(data: bytes) -> Iterator[str]:
    """Yield the plain encoding, then the parts that are the same in any surrounding bytes."""
    alone = base64.b64encode(data).decode("ascii")
    yield from (alone, alone.rstrip("="))
    for before in range(3):
        bits = 8 * (before + len(data))
        encoded = base64.b64encode(bytes(before) + data).decode("ascii")
        yield encoded[-(-8 * before // 6) : bits // 6]


def _quoted(text: str) -> Iterator[str]:
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield once.replace("/", "\\/")
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]  # an event stream quoted in another
    for url in (quote(text, safe="", errors="replace"), quote_plus(text, errors="replace")):
        yield url
        yield re.sub("%..", lambda code: code[0].lower(), url)
    yield quote(text, errors="replace")
    yield quote(text, safe="!'()*~", errors="replace")  # encodeURIComponent
    yield shlex.quote(text)[1:-1] if shlex.quote(text) != text else text
    yield text.replace("'", "'\\''")
    yield re.sub(r"([^\w@%+=:,./-])", r"\\\1", text, flags=re.ASCII)  # printf %q
    yield re.sub(r'([\\"$`])', r"\\\1", text)  # between double quotes
    yield repr(text)[1:-1]
    yield html.escape(text)
