"""Whether tests turn on what the work adds and leaves off: the product as delivered does not do it.

A switch is a name that the work sets to false. A test that sets it to true shows what the product
would do. Where the requirements name the switch, that is what they ask for. An argument is one
where they write the function with its parameters, and without that one, or where they leave
nothing to whoever calls: "a cart above 100 euros gets 10 percent off".
"""

from __future__ import annotations

import asyncio
import re
from functools import partial

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.proof.other_tests import PlacedTests
from agentrunner.verification.syntax.words import signatures
from agentrunner.verification.world import SnapshotTrees

OFF = lazy_regex(rb"(?<![\w-])(?P<name>[A-Za-z_]\w*)[\"']?\s*(?::\s*\w+\s*)?[:=]\s*(?:[Ff]alse)\b")
HEAD = lazy_regex(rb"(?:\bdef|\bfunction|\bconstructor|\bfn|\bfunc)\s*\w*\s*\(([^()]*)\)")
OFFERS = lazy_regex(
    r"(?i)\b(?:option\w*|flag|switch\w*|parameter|argument|keyword|mode|allow\w*|can|may|could|support\w*"
    r"|choos\w+|choice|enabl\w+|opt|opt-?in|setting|config\w*|want\w*|if|when|unless|whether|default\w*"
    r"|toggle|either|also|callers?|users?|dry|verbose|strict|lenient|force)\b"
    r"|オプション|引数|設定|場合|モード|選択|できる"
)
"""Words of a text that may leave something to whoever calls."""
WHERE_OFF = "it passes only where it turns on `{}`, which the work adds and leaves off"
MOST = 5
"""So many switches are tried."""


async def find_switched_on(tests: PlacedTests, asked: str) -> dict[str, str]:
    """Tests that fail where the switches stay off, each with the reason.

    Raises what running in rooms raises.
    """
    found: dict[str, str] = {}
    switches = await asyncio.to_thread(_switches, tests.exam.world, asked)
    for switch in sorted(switches)[:MOST]:
        off = partial(_off_in, switch=switch, handed=switches[switch])
        red = await tests.red_in_other_words(off)
        found |= dict.fromkeys(red, WHERE_OFF.format(switch))
    return found


def _switches(world: SnapshotTrees, asked: str) -> dict[str, bool]:
    """Names that the work sets to false, and that neither the old files nor people name. Blocks.

    The values are whether one is a parameter more than people write.
    """
    added: set[str] = set()
    written = signatures(asked, bare=True)
    handed: set[str] = set()
    for path in world.product:
        text, before = world.now(path) or b"", world.was(path) or b""
        found = {hit["name"].decode() for hit in OFF.finditer(text)}
        added |= {name for name in found if not re.search(to_bytes(rf"\b{name}\b"), before)}
        heads = [re.search(to_bytes(rf"(?<!\w){one}\s*\(([^()]*)\)"), text) for one in written]
        if not heads and not OFFERS.search(asked):
            heads = list(HEAD.finditer(text))
        handed |= {
            name
            for name in found
            if any(head and re.search(to_bytes(rf"\b{name}\b"), head[1]) for head in heads)
        }
    named = {name for name in added if re.search(rf"(?<!\w){name}(?!\w)", asked)}
    return {name: name in handed for name in added - named}


def _off_in(_path: str, text: bytes, *, switch: str, handed: bool) -> bytes:
    return left_off(text, switch, handed=handed)


def left_off(source: bytes, switch: str, *, handed: bool = False) -> bytes:
    """A source that leaves a switch off where it turned it on: `"ACTIVE", True`, `active = true`.

    An argument of that name is none, but where it is `handed`: `run(active=True)` is what callers
    say.
    """
    heads = [rf"[\"'`](?:[\w./:]+[./:])?{switch}[\"'`]\s*,\s*|\.{switch}\s*=\s*"]
    if handed:
        heads.insert(0, rf"(?<![\w.]){switch}\s*[=:]\s*")
    for head in heads:
        on = re.compile(to_bytes(rf"({head})([Tt])rue\b"))
        source = on.sub(lambda hit: hit[1] + (b"False" if hit[2] == b"T" else b"false"), source)
    return source
